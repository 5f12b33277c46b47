//! Tests of every module of the catalog on a switch that falls silent during the run, and on one
//! that disconnects.
//!
//! Each module ends by a named limit or by the loss of the connection, within its time, and reports
//! that its results are incomplete. A module that reports completion has all values that it has on
//! a working switch.

use elements::hardware_model::model::Model;
use packet::time::Nanos;
use tester::module::{Ended, StageReport};

use super::one_switch::{self, OneSwitch, Vice};

/// Modules with settings for a short run; only their first point is used.
pub const MODULES: &[(&str, &[&str])] = &[
    ("rule-activation", &["rules_count=20", "probes_pps=5000", "timeout_s=0.5"]),
    ("update-rate", &["rules_count=40", "batches=10", "in_flight=2", "timeout_s=0.3"]),
    ("packet-in", &["frame=96", "samples=20", "rate_max=2000"]),
    ("packet-out", &["frame=96", "samples=20", "rate_max=2000"]),
    ("packet-in-out", &["frame=96", "samples=20", "rate_max=2000"]),
    ("reactive-setup", &["frame=96", "samples=20", "rate_max=2000"]),
    ("echo-delay", &["payload=64", "echoes=50"]),
    ("error-delay", &["invalid_field=port", "flow_mods_before=5", "samples=20"]),
    ("control-rate", &["messages=barrier", "in_flight=4"]),
    ("abuse", &["malformed_percent=1", "floods=messages", "abuse_per_s=500", "probes_pps=5000"]),
    ("update-transient", &["rules_count=20", "probes_pps=5000", "timeout_s=0.5"]),
    ("blackhole", &["rules_count=20", "probes_pps=5000", "timeout_s=0.5"]),
    ("path-setup", &["flows_count=20", "order=together", "probes_pps=2000", "timeout_s=0.3"]),
    ("forwarding-latency", &["sizes=128", "seconds=0.05", "low_mbps=5", "rates=low"]),
    ("queue-delay", &["rates_mbps=5", "seconds=0.05"]),
    ("table-lookup", &["occupancy=20", "seconds=0.05", "probes_pps=2000"]),
    ("action-delay", &["probes_pps=2000", "seconds=0.05"]),
    ("action-scalability", &["actions_count=2", "probes_pps=2000", "seconds=0.05"]),
    ("header-rewrite", &["probes_pps=2000", "seconds=0.05"]),
    ("match-tuples", &["fields_at_once=1", "frames_count=4"]),
    ("table-capacity", &["rules_bound=60", "batch=8", "probes_pps=5000", "timeout_s=0.5"]),
    ("stats-delay", &["rules_count=20", "requests=3", "load_pps=0", "timeout_s=0.2"]),
    ("port-stats-rate", &["rates=100"]),
    ("counter-staleness", &["frames_count=20", "poll_ms=5", "timeout_s=0.3"]),
    (
        "stats-and-updates",
        &["rules_count=40", "batch=8", "poll_ms=10", "update_ms=10", "timeout_s=0.3"],
    ),
    (
        "flow-churn",
        &["rules_count=20", "churn_rules=20", "changes=100", "frames_pps=2000", "timeout_s=0.3"],
    ),
    (
        "control-stall",
        &["load=adds", "entries=50", "adds=20", "rate=1000", "quiet=0.05", "timeout_s=0.3"],
    ),
    ("flow-timeouts", &["rules_count=10", "probes_pps=2000", "timeout_s=0.5"]),
    ("session", &["controllers_count=2", "timeout_s=0.3", "frames_pps=500"]),
];

/// Returns a slow switch, so that there is a time in the middle of a run.
fn slow() -> Model {
    let mut model = Model::default();
    (model.agent.message_ns, model.agent.flow_mod_ns) = (50_000, 50_000);
    (model.agent.packet_out_ns, model.agent.port_stats_ns) = (50_000, 50_000);
    model.hardware.insert_ns = 100_000;
    model
}

/// Returns the report of an experiment's first module.
fn first(id: &str, set: &[&str], vice: Option<Vice>) -> (StageReport, Nanos) {
    let set: Vec<String> = set.iter().map(|it| it.to_string()).collect();
    let mut switch = OneSwitch::like(&slow(), 7);
    if let Some(vice) = vice {
        switch = switch.with(vice);
    }
    switch.run_first(id, &set, 7).unwrap_or_else(|| panic!("{id} is not a module"))
}

/// Returns whether a faulty switch interrupted a module, or the error in the module's report.
fn judge(
    vice: Vice,
    (report, limit): &(StageReport, Nanos),
    whole: &StageReport,
) -> Result<bool, String> {
    let took = report.ended_at.since(report.started_at);
    if took > *limit {
        return Err(format!("took {took} of at most {limit}"));
    }
    match &report.ended {
        // The module was already complete, or continues with frames only.
        Ended::Completed => {
            let tells = |name: &str| report.measured.iter().any(|it| it.name == name);
            let missing: Vec<_> =
                whole.measured.iter().map(|it| &*it.name).filter(|name| !tells(name)).collect();
            let is_whole = missing.is_empty() && report.is_whole();
            if is_whole {
                Ok(false)
            } else {
                Err(format!("reported as complete without {missing:?}"))
            }
        }
        Ended::Limit(name) if !name.is_empty() => Ok(true),
        Ended::Lost { .. } if matches!(vice, Vice::Leaves(_)) => Ok(true),
        Ended::NotReady { why, .. } if !why.is_empty() => Ok(true),
        other => Err(format!("ended by {other:?}")),
    }
}

/// Returns the errors of a module on such switches.
fn faults(id: &str, set: &[&str]) -> Vec<String> {
    let (whole, _) = first(id, set, None);
    assert_eq!(whole.ended, Ended::Completed, "{id}");
    let mut faults = Vec::new();
    for kind in [Vice::FallsSilent, Vice::Leaves] {
        let mut cut_short = 0;
        for thousandths in [2, 100, 500, 800] {
            let vice = kind(Nanos(whole.ended_at.0 * thousandths / 1000));
            let found = first(id, set, Some(vice));
            match judge(vice, &found, &whole) {
                Ok(is_short) => cut_short += u32::from(is_short),
                Err(why) => faults.push(format!("{id} {vice:?}: {why}")),
            }
            // A module that began has measured something, and reports its progress.
            let has_begun = !matches!(found.0.ended, Ended::NotReady { .. });
            if has_begun && found.0.costs.events == 0 {
                faults.push(format!("{id} {vice:?}: no value was reported"));
            }
        }
        if cut_short == 0 {
            faults.push(format!("{id} {:?}: nothing was cut short", kind(Nanos(0))));
        }
    }
    faults
}

#[test]
fn a_silent_or_disconnected_switch_ends_every_module_with_a_named_reason() {
    let faults: Vec<String> = MODULES.iter().flat_map(|(id, set)| faults(id, set)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_module_of_the_catalog_is_covered() {
    for entry in studies::entries().filter(|entry| entry.paper.is_none()) {
        let is_known = MODULES.iter().any(|(id, _)| *id == entry.id);
        let is_module = one_switch::is_module(entry);
        assert_eq!(is_module, is_known, "{}", entry.id);
    }
}
