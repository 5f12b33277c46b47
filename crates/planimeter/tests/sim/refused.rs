//! Tests of a target that cannot hold the state of an experiment: the rest of that experiment is
//! skipped for this target, with its name and the reason, and everything else is measured.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use record::{Record, Warning};
use runner::Destination;
use targets::name::{Link, TargetKind};
use targets::{Benches, HostPaths};

use super::{StopAfter, assert_accounted, carry_out, measure, plan, program};
use crate::common::Folder;

/// A switch with room for 16,000 entries.
const SMALL: &str = "switch:model=hp-2920";

fn small() -> TargetKind {
    SMALL.parse().unwrap()
}

/// Returns where a target was measured: experiment and point.
fn places(record: &Record, target: &str) -> Vec<(String, f64)> {
    let mut places = Vec::new();
    for trial in record.trials.iter().filter(|trial| trial.target == target) {
        let place = (trial.experiment.clone(), trial.point.value);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Returns what was skipped, and why.
fn left_out(record: &Record) -> Vec<(String, String)> {
    let reported = record.warnings.iter().filter_map(|notice| match &notice.warning {
        Warning::Skipped { why } => Some((notice.about.clone(), why.clone())),
        _ => None,
    });
    reported.collect()
}

const WHY: &str = "remaining trials: the switch rejected 115072 of 131072 flows, first number 16000: \
                   flow_mod_failed/table_full";

#[test]
fn other_targets_and_experiments_continue() {
    let plan = plan(
        &["forwarding-rate", "bianco2010/fig4"],
        &[TargetKind::Switch, small()],
        &["load=5"],
        1,
    );
    let record = measure(&plan);
    let [one, all] = [1.0, 131_072.0].map(|entries| ("forwarding-rate".to_string(), entries));
    let later = ("bianco2010/fig4".to_string(), 5.0);
    assert_eq!(places(&record, "switch"), [one.clone(), all, later.clone()]);
    assert_eq!(places(&record, SMALL), [one, later]);
    let reported = (format!("forwarding-rate on {SMALL}"), WHY.to_string());
    assert_eq!(left_out(&record), [reported]);
}

#[test]
fn an_element_with_too_few_ports_is_skipped() {
    let element = program("bridge.fe.xml");
    let kinds = [element, TargetKind::Bridge];
    let record = measure(&plan(&["bianco2010/fig9", "bianco2010/fig10"], &kinds, &["load=5"], 1));
    let met = |target| -> Vec<String> {
        let mut met: Vec<_> =
            places(&record, target).into_iter().map(|(experiment, _)| experiment).collect();
        met.dedup();
        met
    };
    assert_eq!(met(element.name()), ["bianco2010/fig9"]);
    assert_eq!(met("bridge"), ["bianco2010/fig9", "bianco2010/fig10"]);
    let why = "its program declares too few ports for the experiment".to_string();
    assert_eq!(left_out(&record), [(format!("bianco2010/fig10 on {}", element.name()), why)]);
}

#[test]
fn a_target_that_no_experiment_applies_to_is_left_out_with_the_reason() {
    let mut plan = plan(&["match-types"], &[TargetKind::Switch, TargetKind::Bridge], &[], 1);
    plan.links.apart = vec![(TargetKind::Bridge, Link::Memif)];
    assert_eq!(plan.links_used(), [Link::Memory], "the link of the bridge is not needed");
    let record = measure(&plan);
    assert!(record.targets.iter().all(|target| target.name == "switch"));
    let why = "the run is about OpenFlow switches only".to_string();
    assert_eq!(left_out(&record), [("match-types on bridge".to_string(), why)]);
}

#[test]
fn a_resumed_run_reports_a_skip_once() {
    let plan = plan(&["forwarding-rate"], &[TargetKind::Switch, small()], &[], 1);
    let folder = Folder::new();
    // The last trial is not run.
    let (begun, _) = carry_out(&plan, Destination::New(folder.0.clone()), Some(4));
    assert!(begun.record.partial);
    assert_eq!(left_out(&begun.record).len(), 1);
    let (finished, _) = carry_out(&plan, Destination::resume(&begun.folder).unwrap(), None);
    assert!(!finished.record.partial);
    assert_accounted(&finished.record);
    assert_eq!(left_out(&finished.record).len(), 1);
    assert_eq!(finished.record.trials.len(), 5);
}

#[test]
fn a_run_without_any_measurement_fails_with_the_reason() {
    let set = ["table=exact", "entries=20000"];
    let plan = plan(&["forwarding-rate"], &[small()], &set, 1);
    let (folder, stop) = (Folder::new(), Arc::new(AtomicBool::new(false)));
    let surroundings = HostPaths { program: PathBuf::new(), root: PathBuf::new() };
    let mut benches =
        Benches::open(&plan.links_used(), &surroundings, &plan.parameters, &stop).unwrap();
    let mut watcher =
        StopAfter { trials: None, stop: Arc::clone(&stop), steps: 0, expected: 0, told: vec![] };
    let destination = Destination::New(folder.0.clone());
    let run = runner::run(&plan, destination, &mut benches, &stop, &mut watcher);
    let error = run.err().unwrap();
    let wanted = format!(
        "{SMALL}: the switch rejected 4000 of 20000 flows, first number 16000: flow_mod_failed/table_full"
    );
    assert_eq!(error.to_string(), wanted);
}
