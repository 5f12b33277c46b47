//! Validation of the tester with ground truth in virtual time: links that delay, scatter, lose,
//! duplicate and reorder frames by values that are drawn from a seed and hidden from the method.
//!
//! A value counts as found if the ground truth is within the error that the method states. Counts
//! have no error. `TRUTH_CASES` sets the number of links.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod activation;
mod case;
#[path = "../common/mod.rs"]
mod common;
mod method;
mod models;
mod refitted;
mod round_trips;
mod verdicts;
#[path = "../common/one_switch.rs"]
#[allow(dead_code, reason = "the suite about switches that leave uses the rest of it")]
mod one_switch;

use case::{Case, Draw, Kind, Link, limited};
use method::{Results, mean_of, measure, search};
use netio::memory::{MemoryPort, pair_stamped};
use netio::port::Port;
use netio::wrap::delay::DelayOptions;
use packet::frame::Batch;
use packet::time::{Clock, Nanos};
use tester::rig::sim::{Device, SimRig};
use tester::search::mlr::goal::Goal;
use tester::stream::line_rate_pps;

/// Capacity of a link's ring, in frames.
const RING_FRAMES: usize = 1024;

/// The load of the links' measurement...
const RATE_PPS: f64 = 20_000.0;
/// ...and its duration: 2,000 frames...
const DURATION: Nanos = Nanos::from_millis(100);
/// ...or 6,000 frames; in four trials 24 of them are above the 99.9th percentile.
const LONG: Nanos = Nanos::from_millis(300);
/// Wait for frames in flight after each trial.
const DRAIN: Nanos = Nanos::from_millis(20);
/// Time between frames.
const GAP: Nanos = Nanos::from_micros(50);

/// Number of trials whose scatter is the stated error of a mean.
const REPEATS: usize = 6;

/// Share of values that must be within their errors.
const FOUND_SHARE: f64 = 0.95;

/// Largest permitted error of a mean delay.
const NS_ERROR_MAX: f64 = 1_000.0;

/// A wire with a link in it.
struct Wire {
    from: MemoryPort,
    to: Link,
    batch: Batch,
}

impl Device for Wire {
    fn step(&mut self, now: Nanos) -> Option<Nanos> {
        self.from.receive(&mut self.batch, now).unwrap();
        let sent = self.to.transmit(&mut self.batch, now).unwrap();
        self.batch.drop_front(sent);
        self.to.next_event()
    }
}

fn rig(link: impl FnOnce(Box<dyn Port>) -> Link) -> SimRig<Wire> {
    let pair = |label| pair_stamped(RING_FRAMES, label, Clock::Virtual);
    let ((near_in, from), (near_out, far_out)) = (pair("in"), pair("out"));
    let near: Vec<Box<dyn Port>> = vec![Box::new(near_in), Box::new(near_out)];
    let to = link(Box::new(far_out));
    SimRig::new(near, Wire { from, to, batch: Batch::new(RING_FRAMES) }, 0x7247)
}

fn cases() -> u64 {
    std::env::var("TRUTH_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(140)
}

/// Describes the values that were not found.
fn faults(case: &Case, results: &Results, rig: &SimRig<Wire>) -> Vec<String> {
    let done = rig.device.to.faults();
    let mut faults = Vec::new();
    let mut check = |is_found: bool, what: String| {
        if !is_found {
            faults.push(what);
        }
    };
    check(results.lost == done.lost as i64, format!("lost {} of {}", results.lost, done.lost));
    let (have, want) = (results.duplicated, done.duplicated);
    check(have == want, format!("repeated {have} of {want}"));
    check(results.reordered == done.reordered, format!("{} of {done:?}", results.reordered));
    check(results.wrong == 0, format!("wrong {}", results.wrong));
    // Frames that wait until others have passed have a longer delay.
    if case.kind != Kind::Reorder {
        let mean = mean_of(&results.means).unwrap();
        check(mean.contains(case.ns_mean()), format!("{mean:?} without {}", case.ns_mean()));
        check((mean.high - mean.low) / 2.0 <= NS_ERROR_MAX, format!("{mean:?} is wide"));
        let most = results.delays.ns_max().unwrap();
        check(most <= case.ns_max(), format!("{most} ns of at most {}", case.ns_max()));
    }
    faults
}

#[test]
fn link_properties_are_found_within_the_stated_error() {
    let (count, mut missed) = (cases(), Vec::new());
    for seed in 0..count {
        let case = Case::draw(seed, GAP);
        let mut rig = rig(|port| case.link(port));
        if let Some((after, span)) = case.stall {
            rig.pause_tester(after, span);
        }
        let results = measure(&mut rig, RATE_PPS, [DURATION, DRAIN], REPEATS).unwrap();
        let faults = faults(&case, &results, &rig);
        if !faults.is_empty() {
            missed.push(format!("{case:?}: {}", faults.join(", ")));
        }
        assert!(!results.is_tester_limited, "{case:?}");
        check_stall(&case, &results);
    }
    let found = 1.0 - missed.len() as f64 / count as f64;
    assert!(count >= 100 && found >= FOUND_SHARE, "{found} of {count}\n{}", missed.join("\n"));
    println!(
        "{} of {count} links were found within the stated errors",
        count - missed.len() as u64
    );
    println!("{}", missed.join("\n"));
}

/// Checks that a tester that stalled reports this, and derives no delay from it.
fn check_stall(case: &Case, results: &Results) {
    let reported = results.delays.count() + results.stalls.delays_unknown;
    assert_eq!(
        reported, results.forwarded,
        "{case:?}: every frame has a delay or is counted apart"
    );
    match case.stall {
        None => assert_eq!(results.stalls.count, 0, "{case:?}"),
        Some((_, span)) => {
            let (stalls, ns) = (results.stalls, case.delay.fixed.0);
            assert_eq!((stalls.count, stalls.ns_longest), (1, span.0), "{case:?}");
            let found = results.delays.ns_min().zip(results.delays.ns_max());
            assert_eq!(found, Some((ns, ns)), "{case:?}: a stall counts as a delay");
            // Nothing is sent in this time: frames in flight arrive while the tester stalls.
            let under_way = ns.min(span.0) / GAP.0;
            assert!(stalls.delays_unknown.abs_diff(under_way) <= 1, "{case:?}: {stalls:?}");
        }
    }
}

#[test]
fn percentiles_of_random_delays_are_found_within_their_intervals() {
    let scatters = (0..cases()).map(|seed| Case::draw(seed, GAP));
    let (mut found, mut count) = (0, 0);
    for case in scatters.filter(|case| case.kind == Kind::Jitter) {
        let results =
            measure(&mut rig(|port| case.link(port)), RATE_PPS, [LONG, DRAIN], REPEATS).unwrap();
        let interval = results.delay_p999.expect("12 frames of each trial lie above it");
        count += 1;
        found += u64::from(interval.contains(case.ns_at(0.999)));
    }
    assert!(count >= 15 && found * 100 >= count * 95, "{found} of {count}");
}

#[test]
fn a_rate_limit_is_found_within_the_width_of_the_goal() {
    let goal = Goal {
        duration_initial: Nanos::from_millis(20),
        duration_final: Nanos::from_millis(100),
        duration_sum: Nanos::from_millis(200),
        ..Goal::tst009(0.02)
    };
    for seed in 0..cases() / 10 {
        let mut draw = Draw::new(seed);
        let (mbit, queue) = (draw.between(10, 60), draw.between(2, 8));
        let bits = mbit * 1_000_000 + draw.between(0, 999_999);
        let mut rig = rig(|port| limited(port, bits, queue as usize));
        let found = search(&mut rig, goal, 200_000.0).unwrap();
        let capacity = line_rate_pps(bits, 64);
        // Frames in the queue at the end of a trial are not lost.
        let most = capacity + (queue + 1) as f64 / goal.duration_final.as_secs_f64();
        let (lower, upper) = (found.rate_pps_lower.unwrap(), found.rate_pps_upper.unwrap());
        assert!(found.is_regular(), "{bits} bit/s: {found:?}");
        assert!(lower <= most && upper >= capacity, "{found:?} against {capacity} to {most}");
        assert!(lower >= capacity * (1.0 - goal.width), "{found:?} against {capacity}");
    }
}

#[test]
fn ten_searches_over_a_link_with_random_loss_agree_within_the_width() {
    let goal = Goal {
        duration_initial: Nanos::from_millis(50),
        duration_final: Nanos::from_millis(50),
        duration_sum: Nanos::from_millis(350),
        ..Goal::quick(0.01)
    };
    // The same link repeatedly: each search starts in another state of the link.
    let mut rig = rig(|port| limited(port, 40_000_000, 8));
    let found: Vec<f64> = (0..10)
        .map(|_| search(&mut rig, goal, 200_000.0).unwrap().rate_pps_lower.unwrap())
        .collect();
    let least = found.iter().copied().fold(f64::INFINITY, f64::min);
    let most = found.iter().copied().fold(0.0, f64::max);
    assert!(1.0 - least / most <= goal.width, "{found:?}");
}

#[test]
fn a_stall_of_two_milliseconds_is_not_a_latency() {
    let ns = 700_000;
    let delay = DelayOptions { fixed: Nanos(ns), ..DelayOptions::default() };
    let case = Case { delay, ..Case::draw(0, GAP) };
    assert_eq!(case.kind, Kind::Delay);
    let mut rig = rig(|port| case.link(port));
    for trial in 0..REPEATS as u64 {
        let length = DURATION + DRAIN;
        rig.pause_tester(Nanos(trial * length.0) + Nanos::from_millis(30), Nanos::from_millis(2));
    }
    let results = measure(&mut rig, RATE_PPS, [DURATION, DRAIN], REPEATS).unwrap();
    assert_eq!(results.stalls.count, REPEATS as u64);
    assert_eq!(results.stalls.ns_total, REPEATS as u64 * 2_000_000);
    assert_eq!((results.delays.ns_min(), results.delays.ns_max()), (Some(ns), Some(ns)));
    // Frames in flight arrived during each stall, and none is lost because of it.
    let under_way = REPEATS as u64 * (ns / GAP.0);
    assert!(
        results.stalls.delays_unknown.abs_diff(under_way) <= REPEATS as u64,
        "{:?}",
        results.stalls
    );
    assert!(
        under_way > 0 && results.lost == 0 && results.late_ns_max >= 2_000_000,
        "{}",
        results.counts()
    );
}
