//! Tests of frames during rule changes, on a switch that activates rules immediately.

use record::{Ended, Metric, ModuleRun, Name, Record};
use targets::name::TargetKind;

use super::common::Folder;
use super::models::modelled;
use super::{measure, plan};

const OURS: [TargetKind; 1] = [TargetKind::Switch];

/// Probe rate per second, and nanoseconds between two probes of one of 50 rules.
const PROBES: &str = "probes_pps=50000";
const ROUND_NS: f64 = 1e6;

fn record(experiment: &str, set: &[&str]) -> Record {
    let set = [&["rules_count=50", PROBES, "wildcard_entries_max=1000", "repeats=1"], set].concat();
    measure(&plan(&[experiment], &OURS, &set, 1))
}

fn module(record: &Record) -> &ModuleRun {
    record.trials[0].module.as_ref().unwrap()
}

fn found(run: &ModuleRun, name: &'static str) -> Option<f64> {
    let metric = Metric::Named(Name::of(name));
    run.measured.iter().find(|found| found.metric == metric).map(|found| found.value)
}

fn value(run: &ModuleRun, name: &'static str) -> f64 {
    found(run, name).unwrap_or_else(|| panic!("{name} is missing"))
}

const VERSIONS: [&str; 3] = ["version=1.0", "version=1.3", "version=1.4"];

#[test]
fn rule_changes_of_a_correct_switch_lose_and_duplicate_no_frame() {
    for version in VERSIONS {
        for by in ["by=modify", "by=overwrite", "by=replace"] {
            let record = record("update-transient", &[by, version]);
            let run = module(&record);
            assert_eq!(run.ended, Ended::Completed, "{by} {version}");
            for none in ["lost_frames", "both_frames", "again_frames", "stale_frames"] {
                assert_eq!(value(run, none), 0.0, "{none} {by} {version}");
            }
            assert_eq!(value(run, "rules_changed_ratio"), 1.0);
            assert_eq!(value(run, "inconsistent_ns_max"), 0.0);
            assert!(value(run, "update_ns") <= ROUND_NS + 2e5, "{}", value(run, "update_ns"));
            assert!(value(run, "new_frames") >= 50.0 - 1.0);
        }
    }
}

#[test]
fn rejected_rules_are_reported_as_unchanged() {
    // Frames of initially rejected rules are dropped by the rule below; the rules are rejected
    // again.
    let set = ["by=modify", "wildcard_entries_max=31", "timeout_s=0.2"];
    let record = record("update-transient", &set);
    let run = module(&record);
    assert_eq!(value(run, "rules_changed_ratio"), 30.0 / 50.0);
    assert!(value(run, "errors_count") >= 20.0);
    assert!(value(run, "lost_frames") > 0.0);
    assert_eq!(found(run, "update_ns"), None, "the time of the last change is unknown");
}

#[test]
fn flows_stop_within_the_probe_resolution_for_any_method() {
    for version in VERSIONS {
        for by in ["by=drop", "by=delete", "by=delete-all"] {
            let record = record("blackhole", &[by, version]);
            let run = module(&record);
            assert_eq!(run.ended, Ended::Completed, "{by} {version}");
            assert_eq!(value(run, "rules_stopped_ratio"), 1.0, "{by} {version}");
            assert_eq!(value(run, "leaked_after_barrier_frames"), 0.0);
            assert!(value(run, "stop_ns_max") <= ROUND_NS + 2e5, "{}", value(run, "stop_ns_max"));
        }
    }
}

#[test]
fn late_activation_is_detected_without_loss() {
    let folder = Folder::new();
    let kind = modelled(
        &folder,
        "hardware.activation_ns = { value = 40_000_000, source = \"assumed\" }\n\
         barrier.answers = { value = \"taken\", source = \"assumed\" }\n",
    );
    for (experiment, by, late) in [
        ("update-transient", "by=modify", "stale_frames"),
        ("blackhole", "by=drop", "leaked_after_barrier_frames"),
    ] {
        let set = ["rules_count=50", PROBES, "repeats=1", by];
        let record = measure(&plan(&[experiment], &[kind], &set, 1));
        let run = module(&record);
        // 40 ms of 50,000 frames per second.
        let late = value(run, late);
        assert!((1800.0..2200.0).contains(&late), "{experiment}: {late}");
        let took = found(run, "update_ns").or(found(run, "stop_ns_max")).unwrap();
        assert!((4e7 - ROUND_NS..4e7 + 2.0 * ROUND_NS).contains(&took), "{experiment}: {took}");
        assert_eq!(found(run, "lost_frames").unwrap_or(0.0), 0.0);
    }
}
