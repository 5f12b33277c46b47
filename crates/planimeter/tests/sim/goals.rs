//! Tests of searches in virtual time with several goals (RFC 9971) and with loss verification
//! (TST009): they find the target's values, and the record contains every trial and request.

use std::fs;

use record::{GoalResult, Metric, Outcome, Record, Remark, Role};
use runner::Destination;
use targets::name::TargetKind;

use super::{ALL, RING_FRAMES, carry_out, check_resumed, measure, plan};
use crate::common::Folder;

/// A target with a service time of 20 us, behind a link with three times the capacity...
const SLOW: [&str; 3] = ["sim_service_time_ns=20000", "capacity=100M", "warmup=0"];
/// ...forwards this many frames per second.
const CAPACITY_PPS: f64 = 50_000.0;

const OURS: [TargetKind; 1] = [TargetKind::Switch];

fn goal_of(outcome: &Outcome) -> &GoalResult {
    outcome.goal.as_ref().expect("a search with goals has a goal in each result")
}

fn goals<'a>(record: &'a Record, name: &'a str) -> impl Iterator<Item = &'a GoalResult> {
    record.outcomes.iter().map(goal_of).filter(move |goal| goal.goal == name)
}

#[test]
fn both_goals_bracket_the_capacity_and_the_record_is_complete() {
    let asked = ["goals=ndr,pdr", "goal_initial=0.1", "goal_final=0.5", "goal_duration_sum=1.5"];
    let set = [&SLOW[..], &asked, &["goal_width=0.02", "loss=0.05", "repeats=1"]].concat();
    let record = measure(&plan(&["rfc9971"], &OURS, &set, 1));
    // Frames that the rings before and behind the target, and its batches, absorb without loss in a
    // full-length trial.
    let absorbed_pps = 2.5 * RING_FRAMES / 0.5;
    for (name, allowed) in [("ndr", 0.0), ("pdr", 0.05)] {
        let goal = goals(&record, name).next().unwrap();
        let range =
            CAPACITY_PPS / (1.0 - allowed)..=(CAPACITY_PPS + absorbed_pps) / (1.0 - allowed);
        let (lower, upper) = (goal.rate_pps_lower.unwrap(), goal.rate_pps_upper.unwrap());
        assert!(lower <= *range.end() && upper >= *range.start(), "{goal:?} against {range:?}");
        assert!(goal.width_ratio().unwrap() <= 0.02 && goal.remarks.is_empty(), "{goal:?}");
        assert!(lower >= range.start() * 0.98 && upper <= range.end() / 0.98, "{goal:?}");
        let conditional = goal.rate_pps_conditional.unwrap();
        assert!(conditional <= lower && conditional >= lower * (1.0 - allowed) - 1.0, "{goal:?}");
        assert_eq!((goal.loss_ratio_allowed, goal.exceed_ratio), (allowed, 0.5));
        assert_eq!((goal.duration_ns_final, goal.duration_ns_sum), (500_000_000, 1_500_000_000));
    }
    let [ndr, pdr] = &record.outcomes[..] else { panic!("{:?}", record.outcomes) };
    assert_eq!((ndr.metric, pdr.metric), (Metric::ThroughputPpsNdr, Metric::ThroughputPpsPdr));
    let cell = record.cells_of("rfc9971", "switch", Metric::ThroughputPpsNdr).next().unwrap();
    assert_eq!(Some(cell.value), goal_of(ndr).rate_pps_conditional);
    // Both rest on every trial, and each trial names the goal for which it was chosen.
    let ids: Vec<u64> = record.trials.iter().map(|trial| trial.id).collect();
    assert_eq!((&ndr.trials, &pdr.trials), (&ids, &ids));
    for (name, goal) in [("ndr", goal_of(ndr)), ("pdr", goal_of(pdr))] {
        let chosen = record.trials.iter().filter(|trial| trial.goal.as_deref() == Some(name));
        let lengths: Vec<u64> = chosen.map(|trial| trial.duration_ns_intended).collect();
        assert_eq!(lengths.len() as u64, goal.trials_chosen, "{name}");
        assert_eq!(lengths.iter().sum::<u64>(), goal.duration_ns_trials, "{name}");
    }
    let chosen: u64 = [ndr, pdr].map(|outcome| goal_of(outcome).trials_chosen).iter().sum();
    assert_eq!(chosen, record.trials.len() as u64);
    assert!(record.trials.iter().all(|trial| trial.role == Role::Bound));
    // The bounds appear among the trials: a lower bound was tried at full length and passed.
    let held = record.trials.iter().find(|trial| {
        let is_at = goal_of(ndr)
            .rate_pps_lower
            .is_some_and(|lower| (trial.rate_pps_intended / lower - 1.0).abs() < 1e-4);
        is_at && trial.duration_ns_intended == 500_000_000 && trial.loss_ratio() == Some(0.0)
    });
    assert!(held.is_some(), "no full-length trial without loss at the lower bound");
}

#[test]
fn ten_searches_agree_within_the_width_of_each_goal() {
    let asked = ["goals=ndr,pdr", "goal_initial=0.03", "goal_final=0.05", "goal_duration_sum=0.15"];
    let traffic = ["goal_width=0.02", "repeats=10", "entries=300", "traffic=random"];
    let record = measure(&plan(&["rfc9971"], &OURS, &[&SLOW[..], &asked, &traffic].concat(), 1));
    for name in ["ndr", "pdr"] {
        for of in
            [|goal: &GoalResult| goal.rate_pps_lower, |goal: &GoalResult| goal.rate_pps_conditional]
        {
            let found: Vec<f64> = goals(&record, name).map(|goal| of(goal).unwrap()).collect();
            assert_eq!(found.len(), 10);
            let least = found.iter().copied().fold(f64::INFINITY, f64::min);
            let most = found.iter().copied().fold(0.0, f64::max);
            assert!(1.0 - least / most <= 0.02, "{name}: {found:?}");
        }
    }
}

#[test]
fn every_target_is_searched_and_missing_bounds_are_marked() {
    let asked = ["goals=quick,tst009,rfc2544", "goal_initial=0.03", "goal_final=0.05"];
    let short = ["goal_duration_sum=0.15", "goal_width=0.05", "repeats=1"];
    let plan = plan(&["rfc9971"], &ALL, &[&SLOW[..], &asked, &short].concat(), 1);
    let folder = Folder::new();
    let (finished, _) = carry_out(&plan, Destination::New(folder.0.clone()), None);
    let record = finished.record;
    assert_eq!(record.outcomes.len(), 4 * ALL.len());
    for outcome in &record.outcomes {
        let goal = goal_of(outcome);
        let is_cable = outcome.target == "direct";
        let expected: &[Remark] = if is_cable { &[Remark::NoUpperBound] } else { &[] };
        assert_eq!(goal.remarks, expected, "{outcome:?}");
        assert_eq!(goal.rate_pps_upper.is_none(), is_cable);
        assert!(outcome.value > 0.0, "{outcome:?}");
    }
    let read = |name: &str| fs::read_to_string(finished.folder.join(name)).unwrap();
    for page in [read("summary.md"), read("report.html")] {
        for word in ["Goals and bounds", "conditional throughput", "exceed ratio", "tst009"] {
            assert!(page.contains(word), "{word} is missing");
        }
        assert!(page.contains("irregular: the highest load reached the goal"));
    }
    let cells = read("rfc9971.csv");
    assert!(cells.contains("throughput_pps_quick_pdr") && cells.contains("throughput_pps_rfc2544"));
    assert!(record.is_doubtful(), "a result without an upper bound is not regular");
}

#[test]
fn a_resumed_search_for_goals_equals_an_uninterrupted_one() {
    let asked = ["goals=ndr,pdr", "goal_initial=0.03", "goal_final=0.05", "goal_duration_sum=0.15"];
    let set = [&SLOW[..], &asked, &["goal_width=0.05", "frame=64,72", "repeats=1"]].concat();
    check_resumed("rfc9971", &set, &[4, 25, 1]);
}

#[test]
fn loss_verification_repeats_failed_trials_and_finds_the_same() {
    let of = |verify: &str| {
        let set =
            [&SLOW[..], &["frame=64", "loss=0", "repeats=1", "seconds=0.05", verify]].concat();
        measure(&plan(&["throughput"], &OURS, &set, 1))
    };
    let (plain, verified) = (of("loss_verification=0"), of("loss_verification=2"));
    assert_eq!(plain.outcomes[0].value, verified.outcomes[0].value);
    let misses = |record: &Record| {
        let missed = |trial: &&record::Trial| trial.frames_forwarded < trial.frames_offered;
        record.trials.iter().filter(missed).count()
    };
    assert!(misses(&plain) > 0);
    assert_eq!(misses(&verified), 3 * misses(&plain));
}
