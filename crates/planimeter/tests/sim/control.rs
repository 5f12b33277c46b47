//! Tests of controllers during traffic in virtual time: every command is performed and answered,
//! and frames are forwarded.

use record::{ControllerCommand, ControllerLoad, Metric, Record, Role};
use targets::name::TargetKind;

use super::{SLOW, carry_out, check_resumed, measure, plan};
use crate::common::Folder;
use runner::Destination;

const OURS: [TargetKind; 1] = [TargetKind::Switch];

/// Returns the record of an experiment, and checks that all its commands were performed.
fn ordered(experiment: &str, set: &[&str]) -> Record {
    let folder = Folder::new();
    let plan = plan(&[experiment], &OURS, set, 1);
    let record = carry_out(&plan, Destination::New(folder.0.clone()), None).0.record;
    assert!(!record.partial);
    for trial in &record.trials {
        let refused = trial.orders.as_ref().map(|orders| (orders.errors, &orders.error));
        assert!(refused.is_none_or(|(errors, _)| errors == 0), "{refused:?}");
        assert_eq!(trial.unexplained(), 0);
    }
    record
}

fn orders(record: &Record) -> Vec<&ControllerLoad> {
    record.trials.iter().filter_map(|trial| trial.orders.as_ref()).collect()
}

#[test]
fn flow_mods_are_sent_one_by_one_in_batches_and_in_bundles() {
    for priority in ["priority=same", "priority=ascending", "priority=random"] {
        let set = ["flows=300", "batch=1,100,bundle:150", priority, "repeats=1"];
        let record = ordered("flow-mod-rate", &set);
        let done: Vec<(ControllerCommand, u64, u64)> = orders(&record)
            .iter()
            .map(|orders| (orders.command, orders.flow_mods, orders.answers))
            .collect();
        let each = |mods, answers| {
            [ControllerCommand::Add, ControllerCommand::Modify, ControllerCommand::Delete]
                .map(|command| (command, mods, answers))
        };
        let wanted = [each(30, 30), each(300, 3), each(300, 2)].concat();
        assert_eq!(done, wanted, "{priority}");
        let entries = |at: usize| {
            let counters = &record.trials[at].counters;
            counters.iter().find(|it| it.name == "tables.exact.entries").unwrap().after
        };
        let held: Vec<u64> = (0..9).map(entries).collect();
        assert_eq!(held, [31, 31, 1, 301, 301, 1, 301, 301, 1], "{priority}");
        let rate = record.cells_of("flow-mod-rate", "switch", Metric::FlowModsAddedPerS).next();
        assert!(rate.is_some_and(|cell| cell.point.value == 1.0 && cell.value > 0.0));
    }
}

#[test]
fn every_version_with_barriers_is_supported() {
    for version in ["1.0", "1.1", "1.2", "1.3", "1.5"] {
        let version = format!("openflow={version}");
        let set = [version.as_str(), "flows=20", "batch=10", "repeats=1"];
        assert_eq!(orders(&ordered("flow-mod-rate", &set)).len(), 3);
        let reported = ordered("flow-stats-dump", &set);
        assert_eq!(orders(&reported)[0].rows, 20, "{version}");
    }
}

#[test]
fn a_dump_reports_every_flow() {
    let record = ordered("flow-stats-dump", &["flows=1234", "repeats=2"]);
    let reported = orders(&record);
    assert_eq!(reported.len(), 2);
    assert!(
        reported
            .iter()
            .all(|it| (it.command, it.rows, it.answers) == (ControllerCommand::FlowStats, 1234, 1))
    );
    let cells: Vec<_> = record.cells_of("flow-stats-dump", "switch", Metric::FlowStatsNs).collect();
    assert_eq!(cells.len(), 1);
    assert_eq!((cells[0].point.value, cells[0].n), (1234.0, 2));
}

#[test]
fn frames_are_sent_at_a_share_of_the_maximum_during_flow_mods() {
    let set = [
        SLOW,
        "flows=20",
        "flow_mods_per_s=20000",
        "batch=10",
        "background_load_percent=80",
        "repeats=1",
    ];
    for experiment in ["flow-mod-impact", "flow-stats-impact", "flow-mod-rate", "flow-stats-dump"] {
        let record = ordered(experiment, &set);
        let [search, rest @ ..] = &record.trials[..] else { panic!("no trials") };
        assert_eq!(search.role, Role::Maximum);
        assert!(rest.iter().any(|trial| trial.orders.is_some()), "{experiment}");
        for trial in rest {
            // The slow target forwards 500,000 frames a second.
            let share = trial.rate_pps_offered().unwrap() / 500_000.0;
            // A short full load also counts frames that are in rings at its end.
            assert!((share - 0.8).abs() < 0.06, "{experiment}: {share}");
            assert_eq!(trial.frames_forwarded, trial.frames_offered, "{experiment}");
        }
        let paced = rest.iter().filter_map(|trial| trial.orders.as_ref());
        for orders in paced.filter(|orders| orders.command == ControllerCommand::AddDelete) {
            let rate = orders.flow_mods_per_s().unwrap();
            assert!((18_000.0..22_000.0).contains(&rate), "{rate}");
        }
    }
}

#[test]
fn unused_flows_cost_our_switch_nothing() {
    let record = measure(&plan(&["cold-start"], &OURS, &[SLOW, "flows=512"], 1));
    let ratios: Vec<f64> = record.outcomes.iter().map(|outcome| outcome.value).collect();
    assert_eq!(ratios, [1.0; 2]);
    let cell = record.cells_of("cold-start", "switch", Metric::RateRatioColdCache).next().unwrap();
    assert_eq!((cell.point.value, cell.value), (0.0, 1.0));
}

#[test]
fn a_target_in_this_process_has_no_memory_value_and_is_recreated() {
    let record = ordered("memory-per-flow", &["flows=100", SLOW]);
    let met: Vec<f64> = record.trials.iter().map(|trial| trial.point.value).collect();
    assert_eq!(met, [0.0, 1.0, 0.0, 1.0]);
    assert!(record.trials.iter().all(|trial| trial.memory.is_none()));
    assert!(record.trials[1].frames_forwarded > 0);
}

#[test]
fn loads_can_be_shares_of_the_maximum_of_another_target() {
    let kinds = [TargetKind::Switch, TargetKind::Direct];
    let set = [SLOW, "seconds=0.05", "load=10,50", "load_reference=switch", "repeats=1"];
    let record = measure(&plan(&["latency"], &kinds, &set, 1));
    let [found] = &record.outcomes[..] else { panic!("{:?}", record.outcomes) };
    assert_eq!(found.target, "switch");
    let measured = record.trials.iter().filter(|trial| trial.role == Role::Measure);
    let mut of_direct = 0;
    for trial in measured {
        let share = trial.rate_pps_offered().unwrap() / found.value * 100.0;
        assert!((share / trial.point.value - 1.0).abs() < 0.01, "{} {share}", trial.target);
        of_direct += u32::from(trial.target == "direct");
    }
    assert_eq!(of_direct, 2);
    assert!(record.trials.iter().all(|it| it.target == "switch" || it.role == Role::Measure));
}

#[test]
fn a_resumed_series_of_trials_equals_an_uninterrupted_one() {
    check_resumed("cold-start", &["flows=64", SLOW], &[3]);
}
