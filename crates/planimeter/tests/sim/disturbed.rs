//! Tests of searches by a tester that stalls in every other trial: its own losses decide nothing,
//! the target's losses decide as usual, and ambiguous trials are marked.

use record::{Flag, Outcome, Record, Role, Trial, Warning};
use runner::Destination;
use targets::name::TargetKind;

use super::{carry_out, plan};
use crate::common::Folder;

const OURS: [TargetKind; 1] = [TargetKind::Switch];

/// A target that forwards 5,000 frames per second, behind rings for 13 milliseconds of frames...
const SLOW: [&str; 5] =
    ["sim_service_time_ns=200000", "capacity=10M", "warmup=0", "ring_frames=64", "seconds=0.2"];

/// ...and a tester that stalls longer than that in every other trial.
const AWAY: &str = "sim_tester_pause_ns=20000000";

/// The record of an experiment under these settings.
fn measured(experiment: &str, set: &[&str]) -> Record {
    let folder = Folder::new();
    let plan = plan(&[experiment], &OURS, &[&SLOW[..], set].concat(), 1);
    carry_out(&plan, Destination::New(folder.0.clone()), None).0.record
}

fn has(trial: &Trial, flag: Flag) -> bool {
    trial.flags.contains(&flag)
}

/// Returns the results without marks of the tester.
fn found(record: &Record) -> Vec<(f64, bool)> {
    let disturbed = |outcome: &Outcome| outcome.flags.contains(&Flag::TesterInterference);
    record.outcomes.iter().map(|outcome| (outcome.value, disturbed(outcome))).collect()
}

#[test]
fn a_search_with_stalls_finds_the_result_without_stalls() {
    let goals = ["goals=ndr,pdr", "goal_initial=0.2", "goal_final=0.2", "goal_duration_sum=0.6"];
    let cases: [(&str, &[&str]); 4] = [
        ("throughput", &["frame=64", "repeats=3"]),
        ("rfc9971", &[&goals[..], &["goal_width=0.02", "repeats=2"]].concat()),
        ("rfc8219", &["frame=64", "repeats=20"]),
        ("rfc9004", &["frame=64", "repeats=2"]),
    ];
    for (experiment, set) in cases {
        let quiet = measured(experiment, set);
        let record = measured(experiment, &[set, &[AWAY]].concat());
        assert!(record.trials.iter().all(|trial| trial.unexplained() == 0), "{experiment}");
        assert!(quiet.trials.iter().all(|trial| !has(trial, Flag::Retried)), "{experiment}");
        let repeated = record.trials.iter().filter(|trial| has(trial, Flag::Retried)).count();
        assert!(repeated > 0, "{experiment}: nothing was repeated");
        let reported = Warning::Retried { trials: repeated as u32 };
        assert!(record.warnings.iter().any(|notice| notice.warning == reported), "{experiment}");
        let (wanted, found) = (found(&quiet), found(&record));
        assert_eq!(found.len(), wanted.len(), "{experiment}");
        for ((wanted, _), (found, is_disturbed)) in wanted.into_iter().zip(found) {
            let is_alike = (found / wanted - 1.0).abs() < 0.05;
            assert!(is_alike || is_disturbed, "{experiment}: {found} instead of {wanted}");
        }
    }
}

#[test]
fn a_repeated_trial_is_in_the_record_and_does_not_count() {
    let record = measured(
        "rfc9971",
        &["goals=quick", "goal_final=0.2", "goal_duration_sum=1", "repeats=1", AWAY],
    );
    let mut fruitless_extensions = 0;
    for (trial, next) in record.trials.iter().zip(record.trials[1..].iter()) {
        if !has(trial, Flag::Retried) {
            fruitless_extensions = 0;
            continue;
        }
        fruitless_extensions += 1;
        assert!(fruitless_extensions <= 3, "{}", trial.id);
        assert!(trial.stalls.is_some_and(|stalls| stalls.count > 0) && trial.role == Role::Bound);
        assert_eq!(trial.rate_pps_intended, next.rate_pps_intended);
        assert_eq!(trial.duration_ns_intended, next.duration_ns_intended);
    }
    let counted = record.trials.iter().filter(|trial| !has(trial, Flag::Retried));
    let chosen = record.outcomes.iter().map(|it| it.goal.as_ref().unwrap().trials_chosen);
    assert_eq!(chosen.sum::<u64>(), counted.clone().count() as u64);
    let ids: Vec<u64> = counted.map(|trial| trial.id).collect();
    assert!(record.outcomes.iter().all(|outcome| outcome.trials == ids));
}

#[test]
fn losses_of_the_target_count_in_spite_of_stalls() {
    // Its service time is one second per frame: less than any load that is tried.
    let record =
        measured("throughput", &["sim_service_time_ns=1000000000", "frame=64", "repeats=1", AWAY]);
    assert!(!record.outcomes.is_empty());
    for outcome in &record.outcomes {
        assert_eq!(outcome.value, 0.0);
        assert!(outcome.flags.contains(&Flag::Irregular), "{outcome:?}");
    }
    // A target that loses frames beyond its capacity is judged immediately, whether the tester
    // stalled or not.
    let record = measured("throughput", &["frame=64", "repeats=1", AWAY]);
    let high = record.trials.iter().filter(|trial| trial.rate_pps_intended > 8_000.0);
    assert!(high.clone().any(|trial| trial.stalls.is_some()), "none was disturbed");
    assert!(high.clone().all(|trial| !has(trial, Flag::Retried)));
}

#[test]
fn a_result_of_a_disturbed_trial_is_marked() {
    let record = measured("throughput", &["frame=64", "repeats=20", AWAY]);
    let marked =
        record.outcomes.iter().filter(|it| it.flags.contains(&Flag::TesterInterference)).count();
    assert!(marked > 0 && marked < record.outcomes.len() / 2, "{marked}");
    assert!(record.trials.iter().any(|trial| has(trial, Flag::TesterInterference)));
    assert!(record.is_doubtful());
    let is_expected = |it: &Warning| matches!(it, Warning::TesterInterference { results } if *results == marked as u32);
    assert!(record.warnings.iter().any(|notice| is_expected(&notice.warning)));
}

#[test]
fn stored_trials_give_the_same_decisions() {
    for experiment in ["throughput", "rfc9971"] {
        let folder = Folder::new();
        let set =
            ["goals=quick", "goal_final=0.2", "goal_duration_sum=1", "frame=64", "repeats=2", AWAY];
        let plan = plan(&[experiment], &OURS, &[&SLOW[..], &set].concat(), 1);
        let (finished, _) = carry_out(&plan, Destination::New(folder.0.clone()), None);
        let (resumed, watcher) =
            carry_out(&plan, Destination::resume(&finished.folder).unwrap(), None);
        assert_eq!(watcher.steps, 0, "{experiment}: a trial was run again");
        assert_eq!(resumed.record.trials, finished.record.trials);
        assert_eq!(resumed.record.outcomes, finished.record.outcomes);
        assert!(finished.record.trials.iter().any(|trial| has(trial, Flag::Retried)));
    }
}
