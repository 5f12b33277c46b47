//! Tests of message rates of switches with known limits, and of the verdicts on faulty switches
//! near these limits.

use elements::hardware_model::model::Model;
use packet::time::Nanos;
use record::{Metric, Name, Record, target_name};
use targets::name::TargetKind;
use tester::module::{Ended, StageReport};

use super::super::common::Folder;
use super::super::models::modelled;
use super::super::one_switch::{OneSwitch, Vice, measured_metric};
use super::super::{measure, plan};

/// An agent that takes 150 us for a rule, 50 us for a barrier and a millisecond for statistics.
const AGENT: &str = "agent.flow_mod_ns = { value = 150_000, source = \"assumed\" }\n\
                     agent.message_ns = { value = 50_000, source = \"assumed\" }\n\
                     agent.port_stats_ns = { value = 1_000_000, source = \"assumed\" }\n\
                     barrier.answers = { value = \"taken\", source = \"assumed\" }\n";

const RULES_PER_S: f64 = 5_000.0;
const STATISTICS_PER_S: f64 = 1_000.0;

fn bears(record: &Record, kind: TargetKind) -> Vec<Vec<String>> {
    let experiment = record.experiments.last().unwrap();
    let sheets = report::table::sheets(record, experiment);
    let sheet = sheets.iter().find(|it| it.title == "Control plane capacity").unwrap();
    let rows =
        sheet.tables[0].rows.iter().filter(|row| row[0].text == target_name::label(kind.name()));
    rows.map(|row| row.iter().map(|it| it.text.clone()).collect()).collect()
}

#[test]
fn the_sustained_message_rate_is_that_of_the_model() {
    let [stable, small] = [Folder::new(), Folder::new()];
    let kind = modelled(&stable, AGENT);
    // In any case, half of the added rules are rejected.
    let full = format!("{AGENT}capacity.rules = {{ value = 50, source = \"assumed\" }}\n");
    let refusing = modelled(&small, &full);
    let items = ["costa2017/table3", "costa2017/messages", "costa2017/discussion"];
    let set = ["packets=100", "open_pps=0", "match_types=port", "wait=0.01", "step_duration_s=1"];
    let record = measure(&plan(&items, &[kind, refusing], &set, 1));
    let of = |kind: TargetKind, name: &str| {
        let metric = Metric::Named(Name::read(name).unwrap());
        let cell = record.cells_of("costa2017/messages", kind.name(), metric).next();
        cell.unwrap_or_else(|| panic!("{name} is missing")).value
    };
    for (word, truth) in [("flow_mod", RULES_PER_S), ("port_stats", STATISTICS_PER_S)] {
        let reported = |what: &str| of(kind, &format!("{word}_{what}"));
        let taken = reported("taken_per_s");
        // Messages in flight at the end do not count.
        assert!((taken / truth - 1.0).abs() < 64.0 / (0.2 * truth), "{word}: {taken} of {truth}");
        assert_eq!(reported("near_answered_ratio"), 1.0, "{word}");
        assert_eq!((reported("near_errors_count"), reported("lost_count")), (0.0, 0.0), "{word}");
        assert!((reported("near_per_s") / taken - 0.9).abs() < 1e-9, "{word}");
        assert!((reported("beyond_per_s") / taken - 1.2).abs() < 1e-9, "{word}");
    }
    assert!(of(refusing, "flow_mod_near_errors_count") > 100.0);
    let shown = |kind: TargetKind| {
        bears(&record, kind).iter().map(|row| row[8].clone()).collect::<Vec<_>>()
    };
    assert_eq!(shown(kind), ["stable"; 3]);
    assert_eq!(shown(refusing), ["stable", "unstable near its limit", "stable"]);
}

/// Returns the report on a switch with this fault, whose agent is the one above.
fn near_its_limit(vice: Vice) -> StageReport {
    let mut model = Model::default();
    model.agent.flow_mod_ns = 150_000;
    model.agent.message_ns = 50_000;
    model.barrier.answers = 2;
    let set = ["messages=flow_mod", "step_duration_s=2", "timeout_s=0.5"].map(String::from);
    let mut switch = OneSwitch::like(&model, 1).with(vice);
    let mut reports = switch.run("costa2017/messages", &set, 1);
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

#[test]
fn a_switch_that_fails_near_its_limit_is_reported() {
    let value = |report: &StageReport, name: &str| measured_metric(report, name).map(|it| it.value);
    // About 0.2 s are for the limit, the next two seconds are near it.
    let silent = near_its_limit(Vice::FallsSilent(Nanos::from_millis(1200)));
    assert_eq!(silent.ended, Ended::Completed);
    let near = value(&silent, "near_answered_ratio").unwrap();
    assert!((0.3..0.7).contains(&near), "{near}");
    assert_eq!(value(&silent, "beyond_answered_ratio"), Some(0.0));
    assert_eq!(value(&silent, "lost_count"), Some(0.0));
    let leaving = near_its_limit(Vice::Leaves(Nanos::from_millis(1200)));
    assert!(matches!(leaving.ended, Ended::Lost { .. }), "{:?}", leaving.ended);
    assert_eq!(value(&leaving, "lost_count"), Some(1.0));
    let why = measured_metric(&leaving, "lost_count").unwrap().note.clone().unwrap();
    assert!(why.starts_with("under the load near the message rate"), "{why}");
    assert_eq!(value(&leaving, "beyond_answered_ratio"), None, "the fault did not occur");
}

#[test]
fn endless_statistics_replies_are_abandoned_and_the_run_continues() {
    let set = ["pace=0.05", "requests=2", "heavy_pps=1000", "timeout_s=0.2", "rules_bound=20"];
    let mut switch = OneSwitch::like(&Model::default(), 1).with(Vice::NeverEnds);
    let reports = switch.run("costa2017/table7", &set.map(String::from), 1);
    assert_eq!(reports.len(), 2, "one rule, and many");
    for report in &reports {
        assert_eq!(report.ended, Ended::Completed);
        let value = |name: &str| measured_metric(report, name).map(|it| it.value);
        for load in ["light", "heavy"] {
            assert_eq!(value(&format!("{load}_flow_endless_count")), Some(2.0));
            assert_eq!(value(&format!("{load}_flow_answered_ratio")), Some(0.0));
            assert_eq!(value(&format!("{load}_port_answered_ratio")), Some(1.0));
        }
    }
}
