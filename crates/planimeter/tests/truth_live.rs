//! Validation of the tester with ground truth on a real clock: links over shared memory and between
//! interfaces that delay, scatter, lose, duplicate and reorder frames by values that are drawn from
//! a seed and hidden from the method.
//!
//! Counts must be exact. A mean delay, minus that of the same path without the link, must be within
//! the method's stated error. This applies to trials in which neither the tester nor the forwarding
//! thread was interrupted. No test depends on speed.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "truth/case.rs"]
#[allow(dead_code, reason = "the suite in virtual time uses all of it")]
mod case;
mod common;
#[path = "truth/living.rs"]
mod living;
#[path = "truth/method.rs"]
#[allow(dead_code, reason = "as above")]
mod method;
#[path = "common/one_by_one.rs"]
mod one_by_one;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use case::{Case, Kind, Link};
use common::Folder;
use method::{Mean, Results, mean_of, measure};
use netio::afpacket::Options;
use netio::open::open;
use netio::port::Port;
use netio::wrap::delay::DelayOptions;
use netio::wrap::fault::{FaultCounters, FaultOptions};
use netio::xdp::live;
use one_by_one::Test;
use os::clock;
use packet::frame::Batch;
use packet::time::Nanos;
use record::Interval;
use testbed::Namespace;
use testbed::affinity::{self, Cores};
use testbed::probe;
use testbed::requirement::{self, Feature, Requirement};
use testbed::veth::{Cable, EndSettings};
use tester::pauses::AWAY;
use tester::rig::live::LiveRig;

const TESTS: [Test<Requirement>; 5] = [
    (
        "links_between_shared_memory_are_measured",
        || Ok(()),
        links_between_shared_memory_are_measured,
    ),
    ("links_between_interfaces_are_measured", veth_needs, links_between_interfaces_are_measured),
    ("links_between_live_ports_are_measured", live_needs, links_between_live_ports_are_measured),
    ("models_over_shared_memory_are_measured", lab_needs, models_over_shared_memory_are_measured),
    ("models_over_interfaces_are_measured", veth_needs, models_over_interfaces_are_measured),
];

/// The load of the links' measurement, with frames 50 us apart, and its duration.
const RATE_PPS: f64 = 20_000.0;
const GAP: Nanos = Nanos::from_micros(50);
const DURATION: Nanos = Nanos::from_millis(30);

/// Trials of each link, and how many must be undisturbed to judge its delay.
const REPEATS: usize = 12;
const UNDISTURBED_MIN: usize = 4;

/// A machine is quiet if this percentage of all trials was undisturbed.
const QUIET_PERCENT: usize = 98;

/// Initial wait for frames in flight, and the number of further attempts, each four times as long.
const DRAIN: Nanos = Nanos::from_millis(10);
const ATTEMPTS: u32 = 5;

/// Time limit to connect two ports; only a failure takes this long.
const PATIENCE: Nanos = Nanos::from_secs(30);

fn main() -> ExitCode {
    one_by_one::run(&TESTS)
}

fn veth_needs() -> Result<(), Requirement> {
    if !requirement::privileged() {
        return Err(Requirement::Privilege);
    }
    probe::require(Feature::PacketSocket).map(drop)
}

fn live_needs() -> Result<(), Requirement> {
    veth_needs()?;
    live::probe().map_err(|_| Requirement::Privilege)
}

fn lab_needs() -> Result<(), Requirement> {
    if requirement::privileged() { Ok(()) } else { Err(Requirement::Privilege) }
}

fn models_over_shared_memory_are_measured() {
    living::check("memif", models());
}

fn models_over_interfaces_are_measured() {
    living::check("veth", models());
}

/// Returns the number of switches of each kind: a run takes far longer than a trial of a link.
fn models() -> u64 {
    cases().div_ceil(14)
}

fn cases() -> u64 {
    std::env::var("TRUTH_CASES_LIVE").ok().and_then(|text| text.parse().ok()).unwrap_or(14)
}

/// Creates both ends of the path: the tester's two ports, and the two ports of the forwarding
/// thread.
type Ends<'a> = &'a dyn Fn() -> ([Box<dyn Port>; 2], [Box<dyn Port>; 2]);

/// The forwarding thread's counters and interruptions.
struct Passed {
    faults: FaultCounters,
    /// Mean lateness of frames, without interruptions.
    ns_late: f64,
    /// Start and end of its interruptions.
    away: Vec<(Nanos, Nanos)>,
}

impl Passed {
    /// Returns the trials without interruption of the forwarding thread.
    fn undisturbed<'a>(&self, means: &'a [Mean]) -> Vec<&'a Mean> {
        let is_free = |mean: &&Mean| {
            !self.away.iter().any(|&(from, until)| from < mean.until && until > mean.from)
        };
        means.iter().filter(is_free).collect()
    }
}

/// Forwards frames from one port to the other through a link, until it is stopped.
fn pass_on(mut from: Box<dyn Port>, mut to: Link, stop: &AtomicBool) -> Passed {
    let (mut batch, mut away, mut last) = (Batch::new(256), Vec::new(), clock::now());
    let (mut late, mut released) = (0u64, 0u64);
    while !stop.load(Ordering::Relaxed) {
        let now = clock::now();
        if now.since(last) >= AWAY {
            away.push((last, now));
        } else if let Some(due) = to.next_event().filter(|&due| due <= now) {
            late += now.since(due).0;
            released += 1;
        }
        last = now;
        from.receive(&mut batch, now).unwrap();
        let sent = to.transmit(&mut batch, now).unwrap();
        batch.drop_front(sent);
    }
    let ns_late = late as f64 / released.max(1) as f64;
    Passed { faults: to.faults(), ns_late, away }
}

/// Connects both ends of shared memory.
fn join(ports: &mut [&mut dyn Port]) {
    let (mut nothing, deadline) = (Batch::new(1), clock::now() + PATIENCE);
    while !ports.iter().all(|port| port.has_link()) {
        for port in ports.iter_mut() {
            port.receive(&mut nothing, clock::now()).unwrap();
        }
        assert!(clock::now() < deadline, "the ports do not connect");
    }
}

/// Measures one link: returns the tester's results and the ground truth. If frames were still in
/// flight at the end of a trial, because another process had the core, it is measured again with a
/// longer wait.
fn run(case: &Case, ends: Ends<'_>, cores: &Cores) -> (Results, Passed) {
    for attempt in 0..ATTEMPTS {
        let drain = Nanos(DRAIN.0 << (2 * attempt));
        let (results, passed) = run_once(case, ends, cores, drain);
        if attempt + 1 == ATTEMPTS || is_counted(&results, &passed.faults) {
            return (results, passed);
        }
    }
    unreachable!("the last attempt returns")
}

fn run_once(case: &Case, ends: Ends<'_>, cores: &Cores, drain: Nanos) -> (Results, Passed) {
    let ([mut first, mut second], [mut from, mut to]) = ends();
    join(&mut [&mut first, &mut second, &mut from, &mut to]);
    let link = case.link(to);
    let (done, stop) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    let mut rig = LiveRig::new(vec![first, second], case.delay.seed, stop);
    std::thread::scope(|scope| {
        let passing = scope.spawn(|| {
            affinity::pin(0, &cores.target).unwrap();
            pass_on(from, link, &done)
        });
        let measuring = scope.spawn(|| {
            affinity::pin(0, &cores.instrument).unwrap();
            let _done = SetWhenDropped(&done);
            measure(&mut rig, RATE_PPS, [DURATION, drain], REPEATS).unwrap()
        });
        let results = measuring.join().unwrap();
        (results, passing.join().unwrap())
    })
}

/// Stops the forwarding thread even if the measurement panics.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns a link without effect, to measure the path itself.
fn bare() -> Case {
    let (delay, faults) = (DelayOptions::default(), FaultOptions::default());
    Case { kind: Kind::Delay, delay, faults, stall: None }
}

/// Draws links and measures each.
///
/// The size of the stated errors depends on the machine. The method must ensure that at least half
/// of them do not exceed the differences between the trials.
fn check(name: &str, ends: Ends<'_>) {
    let cores = Cores::of_machine().unwrap();
    let (mut judged, mut missed, mut errors) = (0, Vec::new(), Vec::new());
    let (mut undisturbed, mut trials, mut vague) = (0, 0, 0);
    for seed in 0..cases() {
        let case = Case { stall: None, ..Case::draw(seed, GAP) };
        let (results, passed) = run(&case, ends, &cores);
        check_counts(&case, &results, &passed.faults);
        let (alone, quiet) = run(&bare(), ends, &cores);
        let (mean, bias) = (passed.undisturbed(&results.means), quiet.undisturbed(&alone.means));
        undisturbed += mean.len() + bias.len();
        trials += 2 * REPEATS;
        // Frames that wait until others have passed have a longer delay.
        let too_few = mean.len().min(bias.len()) < UNDISTURBED_MIN;
        if case.kind == Kind::Reorder || too_few || cores.shared() {
            continue;
        }
        judged += 1;
        let spread = spread(&mean) + spread(&bias);
        let (mean, bias) = (mean_of(mean).unwrap(), mean_of(bias).unwrap());
        let error = half(&mean) + half(&bias);
        // Both intervals are rounded outwards to whole nanoseconds.
        vague += usize::from(error > spread + 2.0);
        let off = middle(&mean) - middle(&bias) - (case.ns_mean() + passed.ns_late);
        errors.push(error);
        if off.abs() > error {
            missed.push(format!("{off:+.0} ns, stated {error:.0}: {case:?}"));
        }
    }
    errors.sort_by(f64::total_cmp);
    let usual = errors.get(errors.len() / 2).copied().unwrap_or(0.0);
    let found = judged - missed.len();
    println!(
        "{name}: {found} of {judged} undisturbed means found, usual error {usual:.0} ns; {undisturbed} of {trials} trials undisturbed"
    );
    println!("{}", missed.join("\n"));
    // On a busy machine errors are large and uneven: there half of the values must be found, and a
    // single value proves nothing, since a 95 % interval misses one in twenty.
    let is_quiet = undisturbed * 100 >= trials * QUIET_PERCENT;
    let allowed = if is_quiet { 1 + judged / 20 } else { (judged / 2).max(1) };
    assert!(missed.len() <= allowed, "{found} of {judged}: {}", missed.join("\n"));
    assert!(
        !is_quiet || 2 * vague <= judged,
        "{vague} of {judged} errors exceed what trials differ by"
    );
}

/// Returns the largest difference between the means of trials, in nanoseconds.
fn spread(means: &[&Mean]) -> f64 {
    let of =
        |pick: fn(f64, f64) -> f64| means.iter().map(|mean| mean.ns).reduce(pick).unwrap_or(0.0);
    of(f64::max) - of(f64::min)
}

fn half(interval: &Interval) -> f64 {
    (interval.high - interval.low) / 2.0
}

fn middle(interval: &Interval) -> f64 {
    (interval.high + interval.low) / 2.0
}

/// Returns whether the tester's counts match the real events.
fn is_counted(results: &Results, done: &FaultCounters) -> bool {
    let lost = results.lost - results.lost_by_tester as i64;
    let counted = (lost, results.duplicated, results.reordered, results.wrong);
    counted == (done.lost as i64, done.duplicated, done.reordered, 0)
}

/// Checks the counts, which have no error in spite of disturbances.
fn check_counts(case: &Case, results: &Results, done: &FaultCounters) {
    assert!(is_counted(results, done), "{case:?}: {} instead of {done:?}", results.counts());
    assert_eq!(
        results.delays.count() + results.stalls.delays_unknown,
        results.forwarded,
        "{case:?}"
    );
}

fn links_between_shared_memory_are_measured() {
    let folder = Folder::new();
    let ends = || {
        let end = |number: u32, role: &str| {
            let path = folder.0.join(format!("{number}.sock"));
            let spec = format!("memif:{},role={role}", path.display());
            open(&spec, &Options::monitor()).unwrap()
        };
        let far = [end(1, "server"), end(2, "server")];
        ([end(1, "client"), end(2, "client")], far)
    };
    check("memif", &ends);
}

fn links_between_interfaces_are_measured() {
    check_interfaces("veth", "afpacket:END", None);
}

/// The tester's frames are generated and received by the kernel. The other ends must poll to accept
/// generated frames.
fn links_between_live_ports_are_measured() {
    let cores = Cores::of_machine().unwrap();
    check_interfaces("veth:live", "live:END,receive", Some(cores.target));
}

/// Measures links between interfaces: the tester's ports are of this kind, and the kernel's threads
/// at the other ends run on these cores.
fn check_interfaces(name: &str, kind: &str, threaded: Option<Vec<usize>>) {
    let namespace = Namespace::create().unwrap();
    let end = |number: u8| EndSettings {
        namespace: namespace.clone(),
        name: format!("end{number}"),
        mac: [2, 0, 0, 0, 0, number],
        threaded: threaded.clone().filter(|_| number.is_multiple_of(2)),
    };
    let cables = [1, 3].map(|at| Cable::lay(&end(at), &end(at + 1), 1_500).unwrap());
    cables.iter().for_each(|cable| cable.wait_carrying().unwrap());
    let ends = || {
        let port = |kind: &str, number: u8, options: Options| {
            let spec = kind.replace("END", &format!("end{number}"));
            namespace.run(|| open(&spec, &options)).unwrap().unwrap()
        };
        let near = [1, 3].map(|number| port(kind, number, Options::monitor()));
        (near, [2, 4].map(|number| port("afpacket:END", number, Options::forwarder())))
    };
    check(name, &ends);
}
