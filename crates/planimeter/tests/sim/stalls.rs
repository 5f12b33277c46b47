//! Tests of control stalls in virtual time: the longest silence is the switch's own, and every load
//! of the list ends.

use elements::hardware_model::model::Model;
use packet::time::Nanos;
use record::Record;
use targets::name::TargetKind;
use tester::module::{Ended, StageReport};

use super::one_switch::{OneSwitch, Vice, measured_metric};
use super::{measure, plan};

/// Small loads over a small table.
const SMALL: &[&str] = &[
    "entries=300",
    "dump_entries=500",
    "adds=200",
    "requests=20",
    "connections=40",
    "quiet=0.05",
    "timeout_s=2",
];

fn settings(more: &[&str]) -> Vec<String> {
    SMALL.iter().chain(more).map(|it| it.to_string()).collect()
}

fn value(report: &StageReport, name: &str) -> f64 {
    measured_metric(report, name).unwrap_or_else(|| panic!("{name} is missing: {report:?}")).value
}

#[test]
fn a_stall_of_the_switch_under_load_is_the_longest_silence() {
    // Entries are active immediately; the quiet time ends after 50 ms, the observed time after 100
    // ms.
    for (after_ms, quiet_ms, loaded_ms) in [(20, 7.0, 0.0), (70, 0.0, 7.0)] {
        let vice = Vice::StandsStill(Nanos::from_millis(after_ms), Nanos::from_millis(7));
        let mut switch = OneSwitch::like(&Model::default(), 7).with(vice);
        let report = &switch.run("control-stall", &settings(&["load=idle"]), 7)[0];
        assert_eq!(report.ended, Ended::Completed);
        for (name, wanted_ms) in [("quiet_silence_ns_max", quiet_ms), ("silence_ns_max", loaded_ms)]
        {
            // A frame is sent every 100 us.
            let found_ms = value(report, name) / 1e6;
            assert!((found_ms - wanted_ms).abs() < 0.11, "{name}: {found_ms} ms");
        }
        let beyond_ms = value(report, "silence_beyond_quiet_ns") / 1e6;
        assert!((beyond_ms - loaded_ms).abs() < 0.11, "{beyond_ms} ms");
        assert_eq!(value(report, "lost_frames"), 0.0);
        let echo_ms = value(report, "echo_ns_max") / 1e6;
        assert!((echo_ms - loaded_ms).abs() < 1.1, "{echo_ms} ms");
    }
}

fn found(record: &Record, name: &str) -> f64 {
    let metric = experiments::show::metric(Box::leak(name.to_string().into_boxed_str()));
    let outcome = record.outcomes.iter().find(|it| it.metric == metric);
    outcome.unwrap_or_else(|| panic!("{name} is missing")).value
}

#[test]
fn every_load_ends_and_reports_its_messages() {
    let set = [SMALL, &["repeats=1"]].concat();
    let record = measure(&plan(&["control-stall"], &[TargetKind::Switch], &set, 1));
    assert_eq!(record.trials.len(), 7);
    for trial in &record.trials {
        let module = trial.module.as_ref().unwrap();
        assert_eq!(module.ended, record::Ended::Completed, "{module:?}");
    }
    for load in ["bundle_2000", "bundle_65536", "aggregates", "adds", "dump", "connections"] {
        assert_eq!(found(&record, &format!("{load}_finished_ratio")), 1.0, "{load}");
        assert_eq!(found(&record, &format!("{load}_errors_count")), 0.0, "{load}");
        assert_eq!(found(&record, &format!("{load}_lost_frames")), 0.0, "{load}");
    }
    assert_eq!(found(&record, "dump_rows_count"), 500.0);
    assert_eq!(found(&record, "connections_connections_count"), 40.0);
    assert_eq!(found(&record, "idle_entries_count"), 300.0);
}

#[test]
fn a_smaller_switch_is_measured_with_the_entries_that_fit() {
    let mut model = Model::default();
    model.capacity.rules = 120;
    let set = settings(&["load=dump"]);
    let report = &OneSwitch::like(&model, 7).run("control-stall", &set, 7)[0];
    assert_eq!(report.ended, Ended::Completed);
    assert_eq!(value(report, "rows_count"), 120.0);
    let held = measured_metric(report, "entries_count").unwrap();
    assert_eq!(held.value, 120.0);
    assert_eq!(held.note.as_deref(), Some("the switch accepted 120 of 500 entries"));
}

#[test]
fn a_switch_without_bundles_fails_that_load_with_its_reason() {
    let set = settings(&["load=bundle-2000", "version=1.2"]);
    let report = &OneSwitch::like(&Model::default(), 7).run("control-stall", &set, 7)[0];
    let Ended::Failed(why) = &report.ended else { panic!("{}", report.ended) };
    assert!(why.starts_with("cannot encode the load for the switch: "), "{why}");
}

#[test]
fn a_load_that_takes_too_long_is_reported_as_unfinished() {
    let mut model = Model::default();
    model.agent.flow_mod_ns = 20_000_000;
    let set = settings(&["load=adds", "entries=5", "adds=200"]);
    let report = &OneSwitch::like(&model, 7).run("control-stall", &set, 7)[0];
    assert!(matches!(report.ended, Ended::Limit(_)), "{}", report.ended);
    let finished = measured_metric(report, "finished_ratio").unwrap();
    assert_eq!(finished.value, 0.0);
    assert_eq!(finished.note.as_deref(), Some("not completed in 2 s"));
    assert!(measured_metric(report, "load_ns").is_none());
}
