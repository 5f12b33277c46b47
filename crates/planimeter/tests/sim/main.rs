//! Tests of the experiments in virtual time: every one ends, accounts for every frame, and is
//! repeatable.
//!
//! A plan runs through the runner as from the command line, over serializing links of 1 Gbit/s. The
//! results are the model's and therefore known in advance: a target that takes 2,000 ns for a frame
//! forwards 500,000 frames per second. `UPDATE=1` updates the snapshot.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod activation;
mod bianco2010;
mod bounded;
mod bridges;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod costa2017;
mod disturbed;
mod estimates;
mod fitting;
mod gelberger2013;
mod goals;
mod models;
mod oflops2018;
mod modules;
#[path = "../common/one_switch.rs"]
#[allow(dead_code, reason = "the suite about hidden values uses the rest of it")]
mod one_switch;
mod partial;
mod passages;
mod packets;
mod refused;
mod searching;
mod standards;
mod stalls;
mod statistics;
mod tagging;
mod topologies;
mod transients;
mod tuples;
mod witness;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Folder, bytes};
use record::{ClaimVerdict, Metric, Outcome, Record, Role, Trial};
use runner::live::event::Event;
use runner::{Destination, Finished, Plan, ProgressListener};
use studies::taking;
use targets::links::Links;
use targets::name::{Link, TargetKind};
use targets::{Benches, HostPaths};
use workload::parameter::{Effort, ParameterError, Parameters};

/// Every target that supports in-memory links.
const ALL: [TargetKind; 5] = [
    TargetKind::Switch,
    TargetKind::Bridge,
    TargetKind::Router,
    TargetKind::RouterCache,
    TargetKind::Direct,
];

/// A target with this service time...
const SLOW: &str = "sim_service_time_ns=2000";
/// ...forwards this many frames per second.
const CAPACITY_PPS: f64 = 500_000.0;

/// Capacity of a link's ring, in frames.
const RING_FRAMES: f64 = 1024.0;

/// A link, a target and rings of a tenth of the size: a tenth of the frames show the same.
const SMALL: [&str; 3] = ["sim_service_time_ns=20000", "capacity=100M", "ring_frames=64"];

/// The capacity of that target, in frames/s.
const SMALL_PPS: f64 = 50_000.0;

/// The frames in one of its rings.
const SMALL_RING_FRAMES: f64 = 64.0;

/// Counts trials, and sets the flag after a number of them.
struct StopAfter {
    trials: Option<u64>,
    stop: Arc<AtomicBool>,
    steps: u64,
    expected: u64,
    /// The events received.
    told: Vec<Event>,
}

impl ProgressListener for StopAfter {
    fn say(&mut self, _: &str) {}

    fn expect(&mut self, trials: u64) {
        self.expected = trials;
    }

    fn step(&mut self, _: &str) {
        self.steps += 1;
        if Some(self.steps) == self.trials {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn tell(&mut self, event: &Event) {
        self.told.push(event.clone());
    }
}

fn plan(experiments: &[&str], kinds: &[TargetKind], set: &[&str], seed: u64) -> Plan {
    let mut parameters = Parameters::at(Effort::Quick);
    let short = ["simulate=true", "seconds=0.01", "warmup=0.002", "repeats=2"];
    let texts = |texts: &[&str]| texts.iter().map(|it| it.to_string()).collect::<Vec<_>>();
    let entries: Vec<&'static studies::CatalogEntry> =
        experiments.iter().flat_map(|name| studies::find(name).unwrap()).collect();
    let mut assignments = texts(&[&short[..], set].concat());
    // Tests pass one list to several experiments, which may not support all of it, or every value.
    assignments.retain(|it| {
        let of =
            |entry: &&'static studies::CatalogEntry| taking::assign(&mut parameters, &[*entry], it);
        let reported: Vec<_> = entries.iter().map(of).collect();
        let is_wrong =
            |it: &Result<_, _>| !matches!(it, Ok(_) | Err(ParameterError::NotTaken { .. }));
        let is_taken = reported.iter().any(Result::is_ok);
        assert!(is_taken || !reported.iter().any(is_wrong), "{reported:?}");
        is_taken
    });
    Plan {
        entries,
        kinds: kinds.to_vec(),
        links: Links::all_by(Link::Memory),
        hooks: Default::default(),
        effort: Effort::Quick,
        parameters,
        assignments,
        seed,
        command_line: "planimeter run, from a test".into(),
        created: "2026-01-31T12:00:00Z".into(),
    }
}

/// Runs a plan on a separate bench, and stops after this many trials.
fn carry_out(plan: &Plan, destination: Destination, trials: Option<u64>) -> (Finished, StopAfter) {
    let stop = Arc::new(AtomicBool::new(false));
    let surroundings = HostPaths { program: PathBuf::new(), root: PathBuf::new() };
    let mut benches =
        Benches::open(&plan.links_used(), &surroundings, &plan.parameters, &stop).unwrap();
    let mut watcher =
        StopAfter { trials, stop: Arc::clone(&stop), steps: 0, expected: 0, told: vec![] };
    let finished = runner::run(plan, destination, &mut benches, &stop, &mut watcher).unwrap();
    for cell in &finished.record.cells {
        let of = |entry: &&&studies::CatalogEntry| entry.id == cell.experiment;
        let entry = plan.entries.iter().find(of);
        let (metric, id) = (cell.metric.name(), &cell.experiment);
        assert!(
            entry.is_none_or(|it| it.produces(cell.metric)),
            "{metric} comes of {id} after all"
        );
    }
    (finished, watcher)
}

/// Returns the claims as judged for a real clock. Simulated time decides none of them, but the
/// rules are still tested.
fn claims_with_rates(record: &Record) -> Vec<ClaimVerdict> {
    let mut record = record.clone();
    record.cells.iter_mut().for_each(|cell| cell.exclusion = None);
    report::claims::judge(&record, &studies::papers::claims().unwrap())
}

/// Runs a plan in a separate folder, and returns the record.
fn measure(plan: &Plan) -> Record {
    let folder = Folder::new();
    let (finished, watcher) = carry_out(plan, Destination::New(folder.0.clone()), None);
    let record = finished.record;
    assert!(!record.partial);
    assert_eq!(watcher.steps, record.trials.len() as u64);
    assert_accounted(&record);
    record
}

fn assert_accounted(record: &Record) {
    assert!(!record.trials.is_empty());
    for trial in &record.trials {
        let name = format!("{} {} {:?}", trial.experiment, trial.target, trial.point);
        // A module may have no frames at all.
        let offered = trial.frames_offered > 0 || trial.module.is_some();
        assert!(offered, "{name}: nothing was offered");
        assert_eq!(trial.frames_offered, trial.frames_intended, "{name}");
        assert_eq!((trial.frames_unexplained, trial.unexplained()), (0, 0), "{name}");
        let classes = &trial.classes;
        if trial.module.is_some() {
            // The module itself checks where its frames return.
            continue;
        }
        let wrong = [classes.misrouted, classes.flooded, classes.duplicate, classes.corrupt];
        assert_eq!((wrong, classes.reordered, classes.foreign), ([0; 4], 0, 0), "{name}");
        assert_eq!(classes.correct, trial.frames_forwarded, "{name}");
    }
}

/// Returns the target of a program in the repository.
fn program(name: &str) -> TargetKind {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/progfe");
    format!("progfe:{}", folder.join(name).display()).parse().unwrap()
}

#[test]
fn one_seed_gives_the_same_bytes() {
    let set = ["load=5,60,100", "entries=300", "traffic=random", SLOW];
    let run = |seed| {
        let folder = Folder::new();
        let plan = plan(&["bianco2010/fig3", "bianco2010/fig4"], &ALL, &set, seed);
        let (finished, _) = carry_out(&plan, Destination::New(folder.0.clone()), None);
        bytes(&finished.folder)
    };
    let (first, second) = (run(7), run(7));
    let names = |files: &[(String, Vec<u8>)]| -> Vec<String> {
        files.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&first), names(&second));
    for name in ["record.json", "trials.jsonl", "report.html", "latency/00001.hgrm"] {
        assert!(names(&first).iter().any(|known| known == name), "{name} is missing");
    }
    for ((name, first), (_, second)) in first.iter().zip(&second) {
        assert!(first == second, "{name} differs");
    }
    let of = |files: &[(String, Vec<u8>)]| {
        files.iter().find(|(name, _)| name == "record.json").unwrap().1.clone()
    };
    assert_ne!(of(&first), of(&run(8)), "the seed has no effect");
}

#[test]
fn every_experiment_completes_on_every_target() {
    let experiments =
        ["bianco2010/fig2", "bianco2010/fig3", "bianco2010/fig4", "throughput", "latency"];
    for experiment in experiments {
        let record = measure(&plan(&[experiment], &ALL, &["repeats=1"], 1));
        for kind in ALL {
            let trials = record.trials.iter().filter(|trial| trial.target == kind.name());
            assert!(trials.count() > 1, "{experiment} skipped {}", kind.name());
        }
    }
}

#[test]
fn figures_that_share_trials_run_them_once() {
    let alone = measure(&plan(&["bianco2010/fig4"], &[TargetKind::Switch], &[], 1));
    let both =
        measure(&plan(&["bianco2010/fig3", "bianco2010/fig4"], &[TargetKind::Switch], &[], 1));
    let fig3 = both.trials.iter().filter(|trial| trial.experiment == "bianco2010/fig3").count();
    assert!(both.trials.iter().all(|trial| trial.experiment != "bianco2010/fig4"));
    assert_eq!(fig3, alone.trials.len());
    let latencies = |record: &Record| -> Vec<f64> {
        record
            .cells_of("bianco2010/fig4", "switch", Metric::LatencyNsMean)
            .map(|cell| cell.value)
            .collect()
    };
    assert_eq!(latencies(&both), latencies(&alone));
    assert_eq!(latencies(&both).len(), 8);
}

#[test]
fn a_requested_table_is_filled_and_matched_on_every_target() {
    let set = ["load=10", "entries=20000", "traffic=sequential", "seconds=0.2", "repeats=1"];
    let record = measure(&plan(&["bianco2010/fig3"], &ALL, &set, 1));
    for trial in &record.trials {
        assert!(trial.frames_offered > 20_000, "not every entry was matched");
        assert_eq!(trial.frames_forwarded, trial.frames_offered, "{}", trial.target);
    }
    let counter = |target: &str, name: &str| {
        let trial = record.trials.iter().find(|trial| trial.target == target).unwrap();
        trial.counters.iter().find(|counter| counter.name == name).unwrap().after
    };
    assert_eq!(counter("switch", "tables.exact.entries"), 20_000);
    assert_eq!(counter("switch", "tables.wildcard.entries"), 0);
}

#[test]
fn every_workload_matches_the_entries_of_our_switch() {
    let tables: [&[&str]; 8] = [
        &["table=port"],
        &["table=one"],
        &["table=exact", "entries=1024"],
        &["table=wildcard", "entries=100"],
        &["table=wildcard", "entries=100", "rules=addresses"],
        &["table=wildcard", "entries=100", "rules=either"],
        &["table=chain", "entries=300"],
        &["table=mac", "entries=300", "wildcard_entries_max=300"],
    ];
    let lpm: &[&str] = &["table=lpm", "entries=700", "wildcard_entries_max=700"];
    for set in tables.into_iter().chain([lpm]) {
        for traffic in ["traffic=one", "traffic=sequential", "traffic=random"] {
            let set = [set, &[traffic, "load=50", "repeats=1"]].concat();
            let record = measure(&plan(&["forwarding-rate"], &[TargetKind::Switch], &set, 1));
            for trial in &record.trials {
                assert_eq!(trial.frames_forwarded, trial.frames_offered, "{set:?}");
            }
        }
    }
}

#[test]
fn a_bridge_learns_before_it_is_measured() {
    let set = ["table=learned", "entries=3000", "traffic=random", "load=50", "repeats=2"];
    let record = measure(&plan(&["forwarding-rate"], &[TargetKind::Bridge], &set, 1));
    assert_eq!(record.trials.len(), 2);
    for trial in &record.trials {
        assert_eq!(trial.frames_forwarded, trial.frames_offered);
        let counter = |name: &str| trial.counters.iter().find(|it| it.name == name).unwrap();
        // The stations, and at the end the sender to them.
        assert!(counter("bridge.macs").before >= 3000, "{:?}", counter("bridge.macs"));
        assert_eq!(counter("bridge.macs").after, 3001);
        let flooded = counter("bridge.flooded_unknown");
        assert_eq!(flooded.before, flooded.after, "{flooded:?}");
    }
}

#[test]
fn routers_have_prefixes_of_all_lengths() {
    for traffic in ["traffic=one", "traffic=sequential", "traffic=random"] {
        let set = ["table=lpm", "entries=3000", traffic, "load=50", "repeats=1"];
        let kinds = [TargetKind::Router, TargetKind::RouterCache];
        let record = measure(&plan(&["forwarding-rate"], &kinds, &set, 1));
        for trial in &record.trials {
            assert!(trial.frames_offered > 1000, "{trial:?}");
            assert_eq!(trial.frames_forwarded, trial.frames_offered, "{traffic}: {trial:?}");
        }
    }
}

#[test]
fn a_slow_target_saturates_at_its_capacity() {
    let set = [&SMALL[..], &["load=10,30,40,100", "seconds=0.1", "warmup=0.02", "repeats=1"]];
    let record = measure(&plan(&["bianco2010/fig3"], &ALL, &set.concat(), 1));
    for kind in ALL {
        let rates: Vec<f64> = record
            .cells_of("bianco2010/fig3", kind.name(), Metric::RatePpsForwarded)
            .map(|cell| cell.value)
            .collect();
        let offered: Vec<f64> = record
            .cells_of("bianco2010/fig3", kind.name(), Metric::RatePpsOffered)
            .map(|cell| cell.value)
            .collect();
        let is_slow = kind != TargetKind::Direct;
        for (rate, offered) in rates.iter().zip(&offered) {
            let expected = if is_slow { offered.min(SMALL_PPS) } else { *offered };
            let error = (rate / expected - 1.0).abs();
            assert!(error < 0.01, "{}: {rate} of {offered}, {expected} expected", kind.name());
        }
        let overloaded = record
            .trials
            .iter()
            .find(|trial| trial.target == kind.name() && trial.point.value == 100.0)
            .unwrap();
        let dropped: u64 = overloaded.drops.iter().map(|drop| drop.frames).sum();
        assert_eq!(dropped > 0, is_slow, "{}", kind.name());
        let latency = overloaded.latency.as_ref().unwrap();
        // A full ring before a slow target: each frame waits for all earlier ones in the ring.
        let waits_ns = SMALL_RING_FRAMES * 20_000.0;
        assert_eq!(latency.ns_max as f64 > 0.9 * waits_ns, is_slow, "{}", kind.name());
    }
}

#[test]
fn a_search_finds_the_capacity_within_its_resolution() {
    let (seconds, resolution) = (0.2, 0.02);
    let set = [&SMALL[..], &["frame=64", "seconds=0.2", "warmup=0", "repeats=1", "loss=0"]];
    let record = measure(&plan(&["throughput"], &[TargetKind::Switch], &set.concat(), 1));
    let [Outcome { metric: Metric::ThroughputPps, value, trials, .. }] = &record.outcomes[..]
    else {
        panic!("one search gives one result: {:?}", record.outcomes)
    };
    let resolution_pps = resolution * 1e8 / (8.0 * 84.0);
    // Frames that the rings before and behind the target absorb without loss, over a final trial.
    let absorbed_pps = 2.0 * SMALL_RING_FRAMES / (4.0 * seconds);
    let range = SMALL_PPS - resolution_pps..=SMALL_PPS + absorbed_pps;
    assert!(range.contains(value), "{value} is not in {range:?}");
    let rests_on = |trial: &&Trial| trials.contains(&trial.id);
    let confirmed = record.trials.iter().filter(rests_on).any(|trial| {
        let without_loss = trial.frames_forwarded == trial.frames_offered;
        trial.role == Role::Confirm && without_loss && trial.duration_ns_intended == 800_000_000
    });
    assert!(confirmed, "no longer trial confirms it");
}

#[test]
fn latency_is_measured_at_shares_of_the_throughput() {
    let set = [SLOW, "seconds=0.1", "repeats=2"];
    let record = measure(&plan(&["latency"], &[TargetKind::Bridge], &set, 1));
    let loads = |metric| -> Vec<f64> {
        record.cells_of("latency", "bridge", metric).map(|cell| cell.point.value).collect()
    };
    assert_eq!(loads(Metric::LatencyNsMean), [10.0, 50.0, 90.0, 100.0]);
    assert_eq!(loads(Metric::ThroughputPpsLossTolerated), [100.0]);
    let [found] = &record.outcomes[..] else { panic!("{:?}", record.outcomes) };
    for trial in record.trials.iter().filter(|trial| trial.role == Role::Measure) {
        let expected = found.value * trial.point.value / 100.0;
        let error = (trial.rate_pps_offered().unwrap() / expected - 1.0).abs();
        assert!(error < 0.001, "{} % of {}: {error}", trial.point.value, found.value);
    }
}

/// Removes the fields of a trial that differ between a restarted and a fresh target: initial
/// counters, learned addresses, and cache contents.
fn without_origin(trial: &Trial) -> Trial {
    let mut trial = trial.clone();
    trial.counters.retain(|counter| counter.name.starts_with("ports."));
    for counter in &mut trial.counters {
        counter.after -= counter.before;
        counter.before = 0;
    }
    trial
}

fn check_resumed(experiment: &str, set: &[&str], after: &[u64]) {
    let kinds = [TargetKind::Switch, TargetKind::Bridge, TargetKind::RouterCache];
    let plan = plan(&[experiment], &kinds, set, 3);
    let whole = measure(&plan);
    let folder = Folder::new();
    let (mut broken, _) = carry_out(&plan, Destination::New(folder.0.clone()), Some(after[0]));
    assert!(broken.record.partial);
    assert_eq!(broken.record.trials.len() as u64, after[0]);
    for trials in after[1..].iter().copied().map(Some).chain([None]) {
        let stored = broken.record.trials.clone();
        broken = carry_out(&plan, Destination::resume(&broken.folder).unwrap(), trials).0;
        assert!(broken.record.trials.starts_with(&stored), "stored trials have changed");
        assert_eq!(broken.record.partial, trials.is_some());
    }
    let resumed: Vec<Trial> = broken.record.trials.iter().map(without_origin).collect();
    let whole_trials: Vec<Trial> = whole.trials.iter().map(without_origin).collect();
    assert_eq!(resumed.len(), whole_trials.len());
    for (resumed, whole) in resumed.iter().zip(&whole_trials) {
        assert_eq!(resumed, whole);
    }
    assert_eq!(broken.record.outcomes, whole.outcomes);
    let text = |cells: &[record::Cell]| serde_json::to_string(cells).unwrap();
    assert_eq!(text(&broken.record.cells), text(&whole.cells));
    let lines = fs::read_to_string(broken.folder.join("trials.jsonl")).unwrap();
    let stored = whole.trials.len() + whole.outcomes.len();
    assert_eq!(lines.lines().count(), stored, "a line for each trial and outcome");
}

#[test]
fn a_resumed_sweep_equals_an_uninterrupted_one() {
    check_resumed("bianco2010/fig3", &["load=5,80,100", SLOW], &[5]);
}

#[test]
fn a_resumed_search_equals_an_uninterrupted_one() {
    let set = [&SMALL[..], &["frame=64,128", "seconds=0.02", "repeats=1"]].concat();
    check_resumed("throughput", &set, &[4, 25, 1]);
}

/// Figure 3's cells as a table.
fn table(record: &Record) -> String {
    let metrics = [
        Metric::RatePpsOffered,
        Metric::RatePpsForwarded,
        Metric::LossRatio,
        Metric::LatencyNsMean,
        Metric::LatencyNsP99,
        Metric::LatencyNsMax,
    ];
    let mut text = format!("{:16} {:>5} {:>2}", "target", "load", "n");
    for metric in metrics {
        write!(text, " {:>18}", metric.name()).unwrap();
    }
    text.push('\n');
    for kind in ALL {
        let of = |metric| record.cells_of("bianco2010/fig3", kind.name(), metric);
        for rate in of(Metric::RatePpsForwarded) {
            write!(text, "{:16} {:>5} {:>2}", kind.name(), rate.point.value, rate.n).unwrap();
            for metric in metrics {
                let cell = of(metric).find(|cell| cell.point == rate.point);
                let value = cell.map_or("-".to_string(), |cell| match metric {
                    Metric::LossRatio => format!("{:.4}", cell.value),
                    _ => format!("{:.0}", cell.value),
                });
                write!(text, " {value:>18}").unwrap();
            }
            text.push('\n');
        }
    }
    text
}

#[test]
fn figure_3_of_slow_targets_equals_the_snapshot() {
    let set = [SLOW, "load=5,30,40,60,100", "seconds=0.03", "repeats=3"];
    let record = measure(&plan(&["bianco2010/fig3"], &ALL, &set, 1));
    let found = table(&record);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/fig3-sim.txt");
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(golden.parent().unwrap()).unwrap();
        fs::write(&golden, &found).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(found, expected, "UPDATE=1 re-blesses {}", golden.display());
}
