//! Tests of rule activation on a switch that activates rules immediately, so that the results are
//! known in advance.

use record::{Ended, Metric, ModuleRun, Name, Record};
use targets::name::TargetKind;

use super::common::Folder;
use super::models::modelled;
use super::{check_resumed, measure, plan};

const OURS: [TargetKind; 1] = [TargetKind::Switch];

/// Probe rate per second, and nanoseconds between two probes of one of 50 rules.
const PROBES: &str = "probes_pps=50000";
const ROUND_NS: f64 = 1e6;

fn update(set: &[&str]) -> Record {
    let set = [&["rules_count=50", PROBES, "wildcard_entries_max=1000", "repeats=1"], set].concat();
    measure(&plan(&["rule-activation"], &OURS, &set, 1))
}

fn module(record: &Record, trial: usize) -> &ModuleRun {
    record.trials[trial].module.as_ref().unwrap()
}

fn value(run: &ModuleRun, name: &'static str) -> f64 {
    let metric = Metric::Named(Name::of(name));
    run.measured.iter().find(|found| found.metric == metric).unwrap().value
}

#[test]
fn activation_times_of_a_correct_switch_are_within_the_probe_resolution() {
    for operation in ["command=add", "command=modify", "command=delete"] {
        for order in ["priority_order=same", "priority_order=ascending", "priority_order=random"] {
            // Repeated updates show nothing further here, so one combination has them.
            let repeated = (operation, order) == ("command=add", "priority_order=same");
            let updates = if repeated { "updates_max=5" } else { "updates_max=1" };
            let record = update(&[operation, order, updates]);
            let [before, after] = [0, 1].map(|trial| module(&record, trial));
            assert_eq!((&before.ended, &after.ended), (&Ended::Completed, &Ended::Completed));
            assert_eq!(value(before, "rules_active_ratio"), 1.0, "{operation}");
            assert_eq!(value(before, "errors_count"), 0.0, "{operation}");
            // If all rules activate immediately, a rule cannot be distinguished from one that
            // activates at its next probe.
            let greatest = value(before, "activation_ns_max");
            assert!((0.0..=ROUND_NS).contains(&greatest), "{operation}: {greatest}");
            assert!(value(before, "resolution_ns_p50") <= ROUND_NS / 2.0 + 2e4, "{operation}");
            assert_eq!(value(before, "rules_premature_ratio"), 0.0, "{operation}");
            assert_eq!(value(before, "stale_frames"), 0.0, "{operation}");
            assert_eq!(value(after, "first_probe_active_ratio"), 1.0, "{operation}");
        }
    }
}

/// One rule after the other, 0.05 ms each. If probes visited the rules in turn, the times would be
/// known to 5 ms at the rate of a virtual cable, and to 0.5 ms at that of shared memory.
#[test]
fn probes_concentrate_on_the_next_of_a_thousand_sequential_rules() {
    let folder = Folder::new();
    let kind = modelled(
        &folder,
        "agent.flow_mod_ns = { value = 50_000, source = \"assumed\" }\n\
         path_hardware.latency_ns = { value = 5_000, source = \"assumed\" }\n",
    );
    for (pps, most_ns) in [("probes_pps=100000", 1e6), ("probes_pps=1000000", 1e5)] {
        let many = "wildcard_entries_max=2000";
        let set = ["rules_count=1000", "probes=before", "repeats=1", "updates_max=1", many, pps];
        let record = measure(&plan(&["rule-activation"], &[kind], &set, 1));
        let run = module(&record, 0);
        assert_eq!(value(run, "rules_active_ratio"), 1.0, "{pps}");
        let half = value(run, "resolution_ns_p50");
        assert!(half < most_ns, "{pps}: ±{half} ns");
        assert!((value(run, "activation_ns_p50") - 25e6).abs() < 1e6 + half, "{pps}");
        assert_eq!(value(run, "order_tau_index"), 1.0, "{pps}");
    }
}

#[test]
fn every_rule_occurs_once_in_the_figure() {
    let record = update(&["probes=before"]);
    let series = &module(&record, 0).series;
    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["rules_acting", "place_acting", "acts_after_ns", "acts_by_ns"]);
    assert!(series[0].points.windows(2).all(|pair| pair[0][0] <= pair[1][0]));
    // All activate at the same time: rules that probes do not distinguish are drawn in the order
    // sent.
    for (rule, [sent, acting]) in (0..50).map(f64::from).zip(&series[1].points) {
        assert_eq!((*sent, *acting), (rule, rule));
    }
    for (low, high) in series[2].points.iter().zip(&series[3].points) {
        assert!(low[0] == high[0] && 0.0 <= low[1] && low[1] <= high[1]);
    }
}

#[test]
fn rejected_rules_are_reported_and_the_others_measured() {
    let record = update(&["wildcard_entries_max=31", "probes=before", "timeout_s=0.2"]);
    let run = module(&record, 0);
    // One of the 31 entries sends frames without a matching rule to the controller.
    assert_eq!(value(run, "rules_active_ratio"), 30.0 / 50.0);
    assert_eq!(value(run, "errors_count"), 20.0);
    assert_eq!(run.errors_received, 20);
    let is_told = |run: &ModuleRun, name| {
        run.measured.iter().any(|it| it.metric == Metric::Named(Name::of(name)))
    };
    assert!(is_told(run, "activation_ns_p50"));
    assert!(!is_told(run, "data_plane_ns"), "the last activation time is unknown");
}

#[test]
fn an_interrupted_run_resumes() {
    let set = ["rules_count=10,20", PROBES, "updates_max=1", "wildcard_entries_max=1000"];
    check_resumed("rule-activation", &set, &[3, 1]);
    let record = measure(&plan(&["rule-activation"], &OURS, &set, 3));
    let metric = Metric::Named(Name::of("data_plane_ns"));
    let cells: Vec<_> = record.cells_of("rule-activation", "switch", metric).collect();
    assert_eq!(cells.iter().map(|cell| cell.n).collect::<Vec<_>>(), [2, 2]);
    assert!(cells.iter().all(|cell| cell.resolution.is_some_and(|it| it > 0.0)));
}
