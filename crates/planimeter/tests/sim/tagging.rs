//! Tests of VLAN tagging by conditions: every target that supports it adds the same tags, and
//! removes them again.

use super::*;

#[test]
fn each_target_adds_the_tag_of_the_rule_and_removes_it() {
    let kinds =
        [program("vlan16.fe.xml"), TargetKind::Tagger, TargetKind::Switch, TargetKind::Direct];
    for traffic in ["sequential", "random"] {
        let traffic = format!("traffic={traffic}");
        let set = ["table=tags", "entries=16", &traffic, "load=5", "repeats=1"];
        let record = measure(&plan(&["forwarding-rate"], &kinds, &set, 1));
        for kind in kinds {
            let trials = record.trials.iter().filter(|trial| trial.target == kind.name());
            let counts: Vec<_> = trials.map(|it| (it.frames_offered, it.classes.correct)).collect();
            let is_right = |&(offered, correct): &(u64, u64)| offered > 200 && offered == correct;
            assert!(
                counts.len() == 2 && counts.iter().all(is_right),
                "{}: {counts:?}",
                kind.name()
            );
        }
    }
}

#[test]
fn a_program_is_a_router_next_to_ours() {
    let kinds = [program("router.fe.xml"), TargetKind::Router];
    let set = ["table=lpm", "entries=1000", "traffic=random", "load=5", "repeats=1"];
    let record = measure(&plan(&["forwarding-rate"], &kinds, &set, 1));
    for trial in &record.trials {
        assert_eq!(trial.frames_offered, trial.classes.correct, "{}", trial.target);
        assert!(trial.frames_offered > 200);
    }
}

#[test]
fn program_swaps_lose_and_reorder_no_frame() {
    let set = ["swaps_per_s=400", "seconds=0.05", "sim_service_time_ns=2000", "repeats=2"];
    let kinds = [program("bridge.fe.xml"), TargetKind::Bridge];
    let record = measure(&plan(&["program-swap"], &kinds, &set, 1));
    let [search, rest @ ..] = &record.trials[..] else { panic!("no trials") };
    assert_eq!((search.role, rest.len()), (Role::Maximum, 4), "only an element has a program");
    let met: Vec<f64> = rest.iter().map(|trial| trial.point.value).collect();
    assert_eq!(met, [0.0, 400.0, 0.0, 400.0]);
    for trial in rest {
        // The slow target forwards 500,000 frames a second.
        let share = trial.rate_pps_offered().unwrap() / 500_000.0;
        assert!((share - 0.8).abs() < 0.06, "{share}");
        assert_eq!(trial.frames_offered, trial.classes.correct);
    }
    // In virtual time a swap takes no time.
    let extras: Vec<f64> = record.outcomes.iter().map(|outcome| outcome.value).collect();
    assert_eq!(extras.len(), 2);
    assert!(extras.iter().all(|extra| extra.abs() < 4_000.0), "{extras:?}");
}
