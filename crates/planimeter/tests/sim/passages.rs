//! Tests of the delay of frames in rules, on a switch of known speed.

use record::{Ended, Metric, ModuleRun, Name, Record};
use targets::name::TargetKind;

use super::{measure, plan};

const OURS: [TargetKind; 1] = [TargetKind::Switch];

const VERSIONS: [&str; 3] = ["version=1.0", "version=1.3", "version=1.5"];

fn record(experiment: &str, set: &[&str]) -> Record {
    let set = [&["repeats=1", "wildcard_entries_max=1000"], set].concat();
    measure(&plan(&[experiment], &OURS, &set, 1))
}

fn module(record: &Record, trial: usize) -> &ModuleRun {
    let run = record.trials[trial].module.as_ref().unwrap();
    assert_eq!(run.ended, Ended::Completed);
    run
}

fn found(run: &ModuleRun, name: &'static str) -> Option<f64> {
    let metric = Metric::Named(Name::of(name));
    run.measured.iter().find(|found| found.metric == metric).map(|found| found.value)
}

fn value(run: &ModuleRun, name: &'static str) -> f64 {
    found(run, name).unwrap_or_else(|| panic!("{name} is missing: {run:?}"))
}

/// Serialization time of a byte on a link of 1 Gbit/s, in nanoseconds.
const BYTE_NS: f64 = 8.0;

#[test]
fn forwarding_latency_includes_the_time_on_both_links() {
    for version in VERSIONS {
        let set = ["sizes=96,1472", "low_mbps=10", "high_mbps=100", version];
        let record = record("forwarding-latency", &set);
        for rate in [0, 1] {
            let [small, large] =
                [rate, rate + 2].map(|trial| value(module(&record, trial), "forwarding_ns_p50"));
            assert_eq!(large - small, 2.0 * (1472.0 - 96.0) * BYTE_NS, "{version} {rate}");
        }
        assert_eq!(value(module(&record, 0), "lost_ratio"), 0.0);
    }
}

#[test]
fn above_the_capacity_frames_wait_and_are_lost() {
    // It forwards 250,000 frames per second, and 844,595 arrive.
    let set = ["sim_service_time_ns=4000", "size=128", "rates_mbps=10,1000", "seconds=0.1"];
    let record = record("queue-delay", &set);
    let [few, many] = [0, 1].map(|trial| module(&record, trial));
    assert_eq!((value(few, "lost_ratio"), value(few, "lost_frames")), (0.0, 0.0));
    let lost = value(many, "lost_ratio");
    assert!((0.65..0.72).contains(&lost), "{lost}");
    let [few, many] = [few, many].map(|run| value(run, "forwarding_ns_p50"));
    assert!(few < 10_000.0 && many > 1_000_000.0, "{few} {many}");
}

#[test]
fn a_requested_queue_is_set_in_every_version() {
    for version in VERSIONS {
        let record = record("queue-delay", &["rates_mbps=10", "queue=1", version]);
        let run = module(&record, 0);
        // Our switch has no such queue; it returns an error or sends without the queue.
        assert!(run.errors_received > 0 || value(run, "lost_ratio") == 0.0, "{version}: {run:?}");
    }
}

#[test]
fn every_rule_of_a_table_is_matched_at_its_position() {
    for version in VERSIONS {
        let record = record("table-lookup", &["occupancy=1,100", version]);
        for trial in 0..4 {
            let run = module(&record, trial);
            assert_eq!(value(run, "refused_rules"), 0.0, "{version}: {:?}", run.notes);
            for name in ["first_ns_p50", "last_ns_p50", "random_ns_p50"] {
                assert!(value(run, name) > 0.0, "{name}");
            }
        }
    }
}

#[test]
fn rules_that_do_not_fit_are_counted_and_have_no_latency() {
    let set = ["occupancy=100", "matches=wildcard", "wildcard_entries_max=51"];
    let record = record("table-lookup", &set);
    let run = module(&record, 0);
    assert_eq!(value(run, "refused_rules"), 50.0);
    assert!(found(run, "first_ns_p50").is_some());
    assert_eq!(found(run, "last_ns_p50"), None);
}

#[test]
fn every_action_of_a_version_is_performed_completely() {
    for version in VERSIONS {
        let record = record("action-delay", &[version, "probes_pps=20000"]);
        let run = module(&record, 0);
        let notes = run.notes.join("\n");
        assert_eq!(value(run, "actions_wrong_count"), 0.0, "{version}: {notes}");
        assert_eq!(value(run, "actions_unseen_count"), 0.0, "{version}: {notes}");
        assert!(value(run, "actions_done_count") >= 15.0, "{version}: {notes}");
        assert!(value(run, "actions_inexpressible_count") > 0.0, "{version}");
        assert_eq!(value(run, "eth_src_right_ratio"), 1.0);
        let extra = value(run, "eth_src_extra_ns_p50");
        assert!(extra.abs() <= 100.0, "{version}: {extra}");
    }
}

#[test]
fn each_rewrite_has_its_cost_and_is_verified() {
    let record = record("header-rewrite", &["probes_pps=20000"]);
    let run = module(&record, 0);
    assert_eq!(value(run, "actions_wrong_count"), 0.0, "{}", run.notes.join("\n"));
    for name in ["none_ns_p50", "ipv4_src_ns_p50", "udp_src_ns_p50", "vlan_pcp_ns_p50"] {
        assert!(value(run, name) > 0.0);
    }
}

#[test]
fn action_lists_are_performed_to_their_end() {
    for version in ["version=1.0", "version=1.4"] {
        let record = record("action-scalability", &["actions_count=1,7,40", version]);
        for trial in 0..3 {
            let run = module(&record, trial);
            let ratio = found(run, "list_right_ratio");
            assert_eq!(ratio, Some(1.0), "{version}: {:?}", run.notes);
        }
    }
}
