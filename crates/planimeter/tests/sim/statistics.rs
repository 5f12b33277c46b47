//! Tests of statistics and counters of a switch that replies immediately, in several OpenFlow
//! versions, so that the results are known in advance.

use record::{Ended, Metric, ModuleRun, Name, Record};
use targets::name::TargetKind;

use super::{measure, plan};

const OURS: [TargetKind; 1] = [TargetKind::Switch];

const VERSIONS: [&str; 4] = ["1.0", "1.3", "1.4", "1.5"];

/// Longest time of our switch for a message in virtual time.
const AT_ONCE_NS: f64 = 1e6;

fn run(experiment: &str, version: &str, set: &[&str]) -> Record {
    let version = format!("version={version}");
    let set = [&["wildcard_entries_max=5000", "repeats=1", &version], set].concat();
    let record = measure(&plan(&[experiment], &OURS, &set, 1));
    for trial in &record.trials {
        let run = trial.module.as_ref().unwrap();
        assert_eq!(run.ended, Ended::Completed, "{experiment} {version}: {run:?}");
        assert_eq!(run.notes, Vec::<String>::new(), "{experiment} {version}");
    }
    record
}

fn modules(record: &Record) -> impl Iterator<Item = &ModuleRun> {
    record.trials.iter().map(|trial| trial.module.as_ref().unwrap())
}

fn found(run: &ModuleRun, name: &str) -> Option<(f64, Option<f64>)> {
    let metric = Metric::Named(Name::read(name).unwrap());
    let measured = run.measured.iter().find(|found| found.metric == metric)?;
    Some((measured.value, measured.resolution))
}

fn value(run: &ModuleRun, name: &str) -> f64 {
    found(run, name).unwrap_or_else(|| panic!("{name} is missing: {run:?}")).0
}

#[test]
fn every_kind_of_statistics_is_complete() {
    for version in VERSIONS {
        let set =
            ["rules_count=20", "load_pps=0,50000", "requests=3", "pace=0.01", "groups_count=4"];
        let record = run("stats-delay", version, &set);
        assert_eq!(record.trials.len(), 3);
        for run in modules(&record) {
            // One lowest-priority rule sends frames without a match to the controller.
            assert_eq!(value(run, "flow_reply_rows"), 21.0, "{version}");
            assert_eq!(value(run, "aggregate_reply_rows"), 1.0, "{version}");
            assert_eq!(value(run, "port_reply_rows"), 2.0, "{version}");
            assert!(value(run, "flow_reply_bytes") > value(run, "aggregate_reply_bytes"));
            for word in ["flow", "aggregate", "table", "port"] {
                assert_eq!(value(run, &format!("{word}_answered_ratio")), 1.0, "{version}");
                let delay = value(run, &format!("{word}_reply_ns_max"));
                assert!((0.0..=AT_ONCE_NS).contains(&delay), "{version} {word}: {delay}");
            }
            let [groups, meters] =
                ["group_reply_rows", "meter_reply_rows"].map(|name| found(run, name));
            let four = (version != "1.0").then_some((4.0, Some(0.0)));
            assert_eq!((groups, meters), (four, four), "{version}");
            assert_eq!(value(run, "errors_count"), 0.0, "{version}");
        }
    }
}

#[test]
fn the_delay_of_paced_statistics_has_its_own_metrics() {
    let set = ["rules_count=3", "load_pps=0", "requests=2", "pace=0.01"];
    let record = run("stats-delay", "1.3", &set);
    let names: Vec<&str> = record.outcomes.iter().map(|found| found.metric.name()).collect();
    for name in ["flow_reply_ns_p50", "paced_flow_reply_ns_p50", "paced_port_reply_rows"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
}

#[test]
fn fresh_counters_have_a_staleness_within_the_poll_interval() {
    for version in VERSIONS {
        let set = ["frames_count=1,200", "frames_pps=100000", "poll_ms=0.5"];
        let record = run("counter-staleness", version, &set);
        for run in modules(&record) {
            assert_eq!(value(run, "missing_frames"), 0.0);
            for word in ["flow", "aggregate", "table", "port"] {
                assert_eq!(value(run, &format!("{word}_visible_ratio")), 1.0, "{version} {word}");
                let (stale, half) = found(run, &format!("{word}_stale_ns")).unwrap();
                let half = half.unwrap();
                assert!(half <= 0.25e6 + AT_ONCE_NS / 2.0, "{version} {word}: {half}");
                // They were counted on arrival, which is a frame's transit time after they were
                // sent.
                assert!(stale - half <= 20_000.0, "{version} {word}: {stale} {half}");
            }
        }
    }
}

#[test]
fn statistics_and_updates_are_reported_alone_and_combined() {
    for version in VERSIONS {
        let set = ["poll_ms=1,5", "rules_count=100", "batch=30", "duration_s=0.03"];
        let record = run("stats-and-updates", version, &set);
        for run in modules(&record) {
            for what in ["statistics", "update"] {
                for when in ["alone", "together"] {
                    assert_eq!(value(run, &format!("{what}_{when}_answered_ratio")), 1.0);
                    let delay = value(run, &format!("{what}_{when}_ns_max"));
                    assert!((0.0..=AT_ONCE_NS).contains(&delay), "{version} {what}: {delay}");
                }
                assert!(found(run, &format!("{what}_slowed_ratio")).is_some());
            }
            assert_eq!(value(run, "errors_count"), 0.0, "{version}");
        }
    }
}

#[test]
fn a_switch_that_always_forwards_loses_nothing_to_flow_churn() {
    for version in VERSIONS {
        let set = [
            "changes=0,10000",
            "polls=0,100",
            "rules_count=50",
            "churn_rules=20",
            "duration_s=0.1",
        ];
        let record = run("flow-churn", version, &set);
        assert_eq!(record.trials.len(), 4);
        for (place, run) in modules(&record).enumerate() {
            assert_eq!(value(run, "lost_ratio"), 0.0, "{version}");
            assert_eq!(value(run, "errors_count"), 0.0, "{version}");
            assert!(value(run, "frames_latency_ns_max") < AT_ONCE_NS);
            let changes = value(run, "changes_per_s");
            let requested = if place % 2 == 0 { 0.0 } else { 10_000.0 };
            assert!((changes - requested).abs() <= 200.0, "{version}: {changes} of {requested}");
            assert_eq!(found(run, "barrier_ns_p50").is_some(), requested > 0.0);
            assert_eq!(found(run, "statistics_ns_p50").is_some(), place >= 2);
        }
    }
}

#[test]
fn rejected_rules_are_reported_next_to_the_frames() {
    let set = ["changes=1000", "polls=0", "rules_count=50", "churn_rules=20", "duration_s=0.1"];
    let full = [&["wildcard_entries_max=51"], &set[..]].concat();
    let record = measure(&plan(&["flow-churn"], &OURS, &[&["repeats=1"], &full[..]].concat(), 1));
    let run = modules(&record).next().unwrap();
    assert_eq!((value(run, "lost_ratio"), &run.ended), (0.0, &Ended::Completed));
    assert!((45.0..=50.0).contains(&value(run, "errors_count")), "{run:?}");
}

#[test]
fn every_request_is_answered_at_any_rate() {
    for version in VERSIONS {
        let record = run("port-stats-rate", version, &["rates=2,64,1024", "duration_s=0.1"]);
        let rates = [2.0, 64.0, 1024.0];
        for (run, rate) in modules(&record).zip(rates) {
            assert_eq!((value(run, "lost_ratio"), value(run, "refused_ratio")), (0.0, 0.0));
            assert!((value(run, "requests_per_s") / rate - 1.0).abs() < 0.01);
            assert!((0.0..=AT_ONCE_NS).contains(&value(run, "reply_ns_max")), "{version}");
        }
    }
}

/// Interval at which our switch checks timeouts.
const LATE_NS: f64 = 10e6;

#[test]
fn correct_timeouts_are_found_correct() {
    for version in VERSIONS {
        let record = run("flow-timeouts", version, &["rules_count=10", "probes_pps=5000"]);
        for run in modules(&record) {
            assert_eq!(value(run, "removed_told_ratio"), 1.0, "{version}");
            for none in ["removed_strange_count", "still_acting_count", "errors_count"] {
                assert_eq!(value(run, none), 0.0, "{version} {none}");
            }
            let within = |name: &str, moments: f64, most: f64| {
                for extreme in ["min", "max"] {
                    let (error, half) = found(run, &format!("{name}_{extreme}")).unwrap();
                    let half = half.unwrap();
                    assert!(half <= moments * 0.6e6, "{version} {name}: {half}");
                    let truth = -half..=most + half;
                    assert!(truth.contains(&error), "{version} {name}: {error} of {half}");
                }
            };
            // No report comes before, and nothing becomes active after, by any measure. Each time
            // that probes show is known to half a round of probes.
            within("hard_error_ns", 2.0, LATE_NS);
            within("hard_told_ns", 1.0, LATE_NS);
            within("idle_error_ns", 1.0, LATE_NS);
            within("removed_delay_ns", 1.0, AT_ONCE_NS);
        }
    }
}

#[test]
fn a_session_with_a_switch_that_keeps_its_rules_is_recognized() {
    for version in VERSIONS {
        let record = run("session", version, &["controllers_count=2,5", "frames_pps=5000"]);
        for run in modules(&record) {
            for (name, truth) in [
                ("equal_told_ratio", 1.0),
                ("connections_failed_count", 0.0),
                ("alone_ruled_ratio", 1.0),
                ("alone_missed_ratio", 0.0),
            ] {
                assert_eq!(value(run, name), truth, "{version} {name}");
            }
            for name in ["reconnect_ns_max", "echo_ns_max", "port_down_told_ns", "port_up_told_ns"]
            {
                let delay = value(run, name);
                assert!((0.0..=AT_ONCE_NS).contains(&delay), "{version} {name}: {delay}");
            }
            for name in ["port_down_ns", "port_up_ns"] {
                let (moment, half) = found(run, name).unwrap();
                let half = half.unwrap();
                assert!((0.0..=1.1e5).contains(&half), "{version} {name}: {half}");
                let least = moment - half;
                assert!((0.0..=AT_ONCE_NS).contains(&least), "{version} {name}: {moment}");
            }
            for (name, truth) in [
                ("master_told_ratio", 1.0),
                ("slaves_told_frames", 0.0),
                ("slave_refused_ratio", 1.0),
                ("takeover_missed_frames", 0.0),
                ("old_master_told_frames", 0.0),
            ] {
                assert_eq!(value(run, name), truth, "{version} {name}");
            }
            assert!(value(run, "takeover_ns") <= AT_ONCE_NS, "{version}");
        }
    }
}
