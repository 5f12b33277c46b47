//! Tests of gelberger2013 in virtual time, where the model is the ground truth: every target takes
//! the same time for a frame regardless of its actions, so no action costs more and no delay
//! varies.

use std::sync::LazyLock;

use record::{Cell, Metric, Name, Record, Verdict};
use targets::name::TargetKind;

use super::{CAPACITY_PPS, SLOW, claims_with_rates, measure, plan, program};

/// Targets of all kinds.
const TARGETS: [TargetKind; 4] =
    [TargetKind::Bridge, TargetKind::Switch, TargetKind::Router, TargetKind::Tagger];

/// Service time of a target for a frame, and serialization time of 64 bytes on two links of 1
/// Gbit/s, in ns.
const SERVICE_NS: f64 = 2000.0;
const LINKS_NS: f64 = 2.0 * 672.0;

/// The study, measured once for all tests.
static STUDY: LazyLock<Record> = LazyLock::new(|| {
    let set = [
        SLOW,
        "frame=64,1518",
        "repeats=3",
        "capacity=1G",
        "seconds=0.06",
        "samples=50",
        "rate_max=20000",
        "step=0.01",
    ];
    measure(&plan(&["gelberger2013"], &TARGETS, &set, 1))
});

fn named(name: &'static str) -> Metric {
    let listed = Metric::ALL.into_iter().find(|metric| metric.name() == name);
    listed.unwrap_or(Metric::Named(Name::of(name)))
}

/// Returns a target's cell at 64 bytes in a workload.
fn cell<'a>(
    record: &'a Record,
    item: &str,
    target: &str,
    name: &'static str,
    work: f64,
) -> &'a Cell {
    let id = format!("gelberger2013/{item}");
    let mut cells = record.cells.iter().filter(|cell| {
        cell.experiment == id
            && cell.target == target
            && cell.metric == named(name)
            && cell.point.value == 64.0
            && cell.point.within.as_ref().is_some_and(|curve| curve.value == work)
    });
    cells.next().unwrap_or_else(|| panic!("{item}: no {name} of {target} in workload {work}"))
}

fn near(have: f64, want: f64, what: &str) {
    assert!((have / want - 1.0).abs() < 0.05, "{what}: {have}, not {want}");
}

#[test]
fn every_item_has_values_and_a_verdict_for_each_claim() {
    let record = &*STUDY;
    // Switching, routing, tagging; an OpenFlow switch does each.
    let works = [
        ("bridge", &[1.0][..]),
        ("switch", &[1.0, 2.0, 3.0]),
        ("router", &[2.0]),
        ("tagger", &[3.0]),
    ];
    for (target, works) in works {
        for &work in works {
            let rate = cell(record, "discussion", target, "rate_pps_forwarded", work).value;
            near(rate, CAPACITY_PPS, target);
            let item = if work == 3.0 { "fig8" } else { "fig5" };
            let delay = cell(record, item, target, "latency_ns_p50", work).value;
            // A tag also takes time on the link.
            near(delay, SERVICE_NS + LINKS_NS, target);
            for name in ["pdv_ns_p99", "pdv_ns_mean", "pdv_ns_max", "ipdv_ns_mean"] {
                let varied = cell(record, "fig6", target, name, work).value;
                assert!(varied < 50.0, "{target}: {name} {varied}");
            }
        }
    }
    let bridged = |name| {
        cell(record, "fig3", "bridge", name, if name == "bridge_rate_pps" { 1.0 } else { 0.0 })
    };
    near(bridged("bridge_rate_pps").value, CAPACITY_PPS, "fig3");
    near(bridged("bridge_latency_ns_p50").value, SERVICE_NS + LINKS_NS, "fig3");
    // A bridge learns without messages; a switch has two messages for each frame.
    for (target, messages) in [("bridge", 0.0), ("switch", 2.0)] {
        let each =
            cell(record, "offload", target, "controller_messages_for_frame_count", 1.0).value;
        assert!((each - messages).abs() < 0.2, "{target}: {each}");
        assert!(cell(record, "offload", target, "frames_per_s_lossfree", 1.0).value > 0.0);
    }
    for task in [2.0, 3.0] {
        let each = cell(record, "offload", "switch", "controller_messages_for_frame_count", task);
        assert!((each.value - 2.0).abs() < 0.2, "task {task}: {}", each.value);
        assert!(cell(record, "offload", "switch", "frames_per_s_lossfree", task).value > 0.0);
        assert_eq!(cell(record, "offload", "switch", "lost_ratio", task).value, 0.0, "task {task}");
    }
    // The switch's rules do the work of a router: each frame arrived correctly or was lost to the
    // load.
    for trial in &record.trials {
        assert_eq!(
            (trial.classes.corrupt, trial.classes.misrouted),
            (0, 0),
            "{}",
            trial.experiment
        );
    }
    for item in record.experiments.iter().filter_map(|it| it.item.as_deref()) {
        assert!(record.claims.iter().any(|line| line.claim.item == item), "{item} has no claim");
    }
}

#[test]
fn a_program_answers_oam_without_the_two_messages_of_a_controller() {
    let kinds = [program("oam.fe.xml"), TargetKind::Switch];
    let set = ["frame=96", "repeats=1", "samples=50", "rate_max=20000", "step=0.01"];
    let record = measure(&plan(&["gelberger2013/offload"], &kinds, &set, 1));
    for (kind, messages) in kinds.into_iter().zip([0.0, 2.0]) {
        let value = |name: &'static str| {
            let cells = record.cells.iter();
            let mut cells = cells.filter(|cell| {
                let curve = cell.point.within.as_ref().map(|it| it.value);
                (cell.target.as_str(), cell.metric, curve) == (kind.name(), named(name), Some(3.0))
            });
            cells.next().unwrap_or_else(|| panic!("no {name} of {}", kind.name())).value
        };
        let each = value("controller_messages_for_frame_count");
        assert!((each - messages).abs() < 0.2, "{}: {each}", kind.name());
        assert_eq!(value("lost_ratio"), 0.0, "{}", kind.name());
        assert!(value("frames_per_s_lossfree") > 1000.0, "{}", kind.name());
    }
    assert!(record.trials.iter().all(|trial| trial.frames_unexplained == 0));
}

#[test]
fn an_item_without_hosts_states_why_it_is_skipped() {
    let record = &*STUDY;
    let ids: Vec<&str> = record.experiments.iter().map(|it| it.id.as_str()).collect();
    let reported: Vec<&str> = (record.experiments.iter())
        .flat_map(|it| &it.left_out)
        .filter(|(_, why)| why.contains("cannot connect hosts"))
        .map(|(target, _)| target.as_str())
        .collect();
    assert!(
        !ids.contains(&"gelberger2013/fig4") || reported.contains(&"switch"),
        "{ids:?} {reported:?}"
    );
}

#[test]
fn a_workload_without_cost_is_reported_as_such() {
    let claims = claims_with_rates(&STUDY);
    let answer = |text: &str, target: &str| {
        let line = claims.iter().find(|line| {
            line.claim.claim.contains(text) && line.targets.iter().any(|name| name == target)
        });
        line.unwrap_or_else(|| panic!("{text} on {target}")).verdict.clone()
    };
    // The link was full in both workloads, so the rates are bounds.
    let cost = answer("complexity of the workload does impact", "switch");
    assert!(matches!(&cost, Verdict::Undecided(why) if why.contains("bound")), "{cost:?}");
    // Without a TCP connection there is no verdict on the cause of its timeouts.
    let cause = claims.iter().find(|line| line.claim.claim.contains("time-outs")).unwrap();
    assert!(matches!(cause.verdict, Verdict::Undecided(_)), "{cause:?}");
}
