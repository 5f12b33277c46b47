//! Complete searches on known loss curves: a step, a slope, noise, and inconsistent results.

use super::*;
use crate::search::binary::{self, BinarySearch};

/// Pseudo-random number generator with a seed.
struct Random(u64);

impl Random {
    /// Returns a number in [0, 1).
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number between these two, uniform on a logarithmic scale.
    fn log(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.share())
    }
}

const MAX: f64 = 1_488_095.0;

fn wanted(goals: &[Goal]) -> SearchGoals {
    SearchGoals {
        goals: goals.to_vec(),
        rate_pps_min: MAX / 1024.0,
        rate_pps_max: MAX,
        duration_max: Nanos::from_secs(7200),
    }
}

fn ndr_pdr() -> [Goal; 2] {
    [Goal::ndr(), Goal::pdr(0.005)]
}

/// Result of a trial in which this share is lost, to the frame.
fn lost(rate_pps: f64, duration: Nanos, share: f64) -> MeasuredLoad {
    let offered = (rate_pps * duration.as_secs_f64()).round() as u64;
    let lost = ((offered as f64 * share).round() as u64).min(offered);
    let (is_tester_limited, is_disturbed) = (false, false);
    MeasuredLoad {
        intended: offered,
        offered,
        forwarded: offered - lost,
        is_tester_limited,
        is_disturbed,
    }
}

/// Runs a search. Returns its results and all trials.
fn run(
    wanted: SearchGoals,
    mut target: impl FnMut(f64, Nanos) -> MeasuredLoad,
) -> (Vec<GoalOutcome>, Vec<(f64, Nanos)>) {
    let (min, max) = (wanted.rate_pps_min, wanted.rate_pps_max);
    let mut search = Search::new(wanted).unwrap();
    let mut tried = Vec::new();
    loop {
        match search.next() {
            NextTrial::Trial { rate_pps, duration, .. } => {
                assert!((min - 0.001..=max).contains(&rate_pps), "{rate_pps}");
                tried.push((rate_pps, duration));
                search.record(target(rate_pps, duration));
            }
            NextTrial::Found(found) => return (found, tried),
        }
    }
}

fn seconds(tried: &[(f64, Nanos)]) -> f64 {
    tried.iter().map(|(_, duration)| duration.as_secs_f64()).sum()
}

/// Asserts that the bounds enclose the true value, to a frame of a full-length trial.
fn assert_brackets(found: &GoalOutcome, goal: &Goal, truth_pps: f64, what: &str) {
    assert!(found.is_regular(), "{what}: {found:?}");
    let frame = 1.0 / goal.duration_final.as_secs_f64();
    let (lower, upper) = (found.rate_pps_lower.unwrap(), found.rate_pps_upper.unwrap());
    assert!(lower <= truth_pps + frame, "{what}: {truth_pps} is below {found:?}");
    assert!(upper >= truth_pps - frame, "{what}: {truth_pps} is above {found:?}");
    assert!(1.0 - lower / upper <= goal.width, "{what}: {found:?}");
    assert!(found.rate_pps_conditional.unwrap() <= lower, "{what}: {found:?}");
}

#[test]
fn a_step_is_bracketed_for_both_goals() {
    for seed in 0..300 {
        let capacity = Random(seed).log(5_000.0, 1_400_000.0);
        let (found, _) = run(wanted(&ndr_pdr()), |rate, duration| {
            lost(rate, duration, (1.0 - capacity / rate).max(0.0))
        });
        let [ndr, pdr] = ndr_pdr();
        assert_brackets(&found[0], &ndr, capacity, &format!("seed {seed}"));
        assert_brackets(&found[1], &pdr, capacity / 0.995, &format!("seed {seed}"));
    }
}

#[test]
fn a_slope_is_bracketed_for_every_goal_at_its_own_load() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let (knee, per_double) = (random.log(5_000.0, 500_000.0), random.log(0.01, 0.5));
        let goals = [Goal::ndr(), Goal::pdr(0.001), Goal::pdr(0.005), Goal::pdr(0.009)];
        let (found, _) = run(wanted(&goals), |rate, duration| {
            let over = (rate / knee - 1.0).max(0.0);
            lost(rate, duration, (over * per_double).min(0.9))
        });
        for (found, goal) in found.iter().zip(&goals) {
            let mut truth = knee * (1.0 + goal.loss_ratio / per_double);
            // Less than half a frame of a trial is rounded to no loss.
            truth += if goal.loss_ratio == 0.0 { 0.5 / per_double } else { 0.0 };
            let slack = Goal { duration_final: Nanos::from_secs_f64(per_double.min(1.0)), ..*goal };
            assert_brackets(found, &slack, truth, &format!("seed {seed}, {goal:?}"));
        }
    }
}

/// A target that occasionally loses additional frames, at any load.
fn disturbed(capacity: f64, share: f64, seed: u64) -> impl FnMut(f64, Nanos) -> MeasuredLoad {
    let mut random = Random(seed);
    move |rate, duration| {
        let disturbance = if random.share() < share { 0.01 } else { 0.0 };
        lost(rate, duration, (1.0 - capacity / rate).max(disturbance))
    }
}

#[test]
fn short_disturbances_do_not_decide_a_verified_goal() {
    let (mut bracketed, mut misled) = (0, 0);
    for seed in 0..200 {
        let capacity = Random(seed).log(5_000.0, 1_400_000.0);
        let (found, _) = run(wanted(&ndr_pdr()), disturbed(capacity, 0.15, seed));
        let holds = |found: &GoalOutcome, truth: f64| {
            let within = |low: f64, high: f64| low <= truth + 1.0 && high >= truth - 1.0;
            found.rate_pps_lower.zip(found.rate_pps_upper).is_some_and(|(l, u)| within(l, u))
        };
        bracketed += u32::from(holds(&found[0], capacity) && holds(&found[1], capacity / 0.995));
        let unforgiving = Goal { exceed_ratio: 0.0, ..Goal::ndr() };
        let (found, _) = run(wanted(&[unforgiving]), disturbed(capacity, 0.15, seed));
        misled += u32::from(!holds(&found[0], capacity));
    }
    assert!(bracketed >= 190, "{bracketed} of 200");
    assert!(misled >= 100, "the disturbance had no effect: {misled} of 200");
}

#[test]
fn ten_searches_agree_within_the_width() {
    for (goals, width) in [(ndr_pdr(), 0.005), ([Goal::quick(0.0), Goal::quick(0.005)], 0.02)] {
        let ten: Vec<Vec<GoalOutcome>> = (0..10)
            .map(|seed| run(wanted(&goals), disturbed(345_678.0, 0.1, 1000 + seed)).0)
            .collect();
        for goal in 0..goals.len() {
            for value in
                [|it: &GoalOutcome| it.rate_pps_lower, |it: &GoalOutcome| it.rate_pps_conditional]
            {
                let values = ten.iter().map(|found| value(&found[goal]).unwrap());
                let least = values.clone().fold(f64::INFINITY, f64::min);
                let most = values.fold(0.0, f64::max);
                assert!(1.0 - least / most <= width, "goal {goal}: {least} to {most}");
            }
        }
    }
}

/// Returns the total trial time of a zero-loss binary search with these trial durations.
fn binary_seconds(capacity: f64, width: f64, search_s: f64, last_s: f64) -> f64 {
    let mut search = BinarySearch::new(binary::Goal {
        loss_ratio: 0.0,
        rate_pps_min: MAX / 1024.0,
        rate_pps_max: MAX,
        resolution_pps: capacity * width,
        is_confirmed: true,
        verifications: 0,
    });
    let mut spent = 0.0;
    loop {
        let (rate, duration) = match search.next() {
            binary::SearchRequest::Search { rate_pps } => (rate_pps, search_s),
            binary::SearchRequest::Confirm { rate_pps } => (rate_pps, last_s),
            binary::SearchRequest::Found(_) => return spent,
        };
        spent += duration;
        let share = (1.0 - capacity / rate).max(0.0);
        search.record(lost(rate, Nanos::from_secs_f64(duration), share));
    }
}

#[test]
fn two_goals_take_no_longer_than_one_binary_search() {
    let (mut ours, mut strict, mut shortened) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 0..100 {
        let mut random = Random(seed);
        let capacity = random.log(20_000.0, 1_400_000.0);
        // A strong overload forwards less than the capacity, or more if queues are full.
        let overloaded = capacity * (0.8 + 0.25 * random.share());
        let (_, tried) = run(wanted(&ndr_pdr()), |rate, duration| {
            let carried = if rate > capacity * 1.2 { overloaded } else { capacity };
            lost(rate, duration, (1.0 - carried / rate).max(0.0))
        });
        ours.push(seconds(&tried));
        strict.push(binary_seconds(capacity, 0.005, 60.0, 60.0));
        // Search trials of a quarter of the length, and a full-length final trial.
        shortened.push(binary_seconds(capacity, 0.005, 15.0, 60.0));
    }
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    println!(
        "NDR and PDR {:.0} s; RFC 2544 {:.0} s, with search trials of 15 s {:.0} s",
        mean(&ours),
        mean(&strict),
        mean(&shortened)
    );
    for ((ours, strict), shortened) in ours.iter().zip(&strict).zip(&shortened) {
        assert!(ours <= strict && ours <= shortened, "{ours} s, {strict} s, {shortened} s");
    }
}

#[test]
fn an_unconditional_and_a_verified_goal_are_searched_together() {
    let goals = [Goal::rfc2544(0.01), Goal::tst009(0.01), Goal::ndr(), Goal::pdr(0.005)];
    let capacity = 123_456.0;
    let (found, tried) = run(wanted(&goals), |rate, duration| {
        lost(rate, duration, (1.0 - capacity / rate).max(0.0))
    });
    for (found, (goal, truth)) in
        found.iter().zip(goals.iter().zip([capacity, capacity, capacity, capacity / 0.995]))
    {
        assert_brackets(found, goal, truth, "together");
    }
    // The lower bound of RFC 2544 had no loss for a minute.
    let minute = Nanos::from_secs(60);
    assert!(tried.iter().any(|it| it.1 >= minute && Some(it.0) == found[0].rate_pps_lower));
    assert_eq!(found[0].rate_pps_conditional, found[0].rate_pps_lower);
}

#[test]
fn a_missing_bound_is_irregular_with_a_reason() {
    let (found, _) = run(wanted(&ndr_pdr()), |rate, duration| lost(rate, duration, 0.0));
    for found in &found {
        assert_eq!(found.irregular, [Irregularity::NoUpperBound]);
        assert_eq!((found.rate_pps_lower, found.rate_pps_upper), (Some(MAX), None));
    }
    let (found, _) = run(wanted(&ndr_pdr()), |rate, duration| lost(rate, duration, 0.5));
    for found in &found {
        assert_eq!(found.irregular, [Irregularity::NoLowerBound]);
        assert_eq!((found.rate_pps_lower, found.rate_pps_conditional), (None, None));
        assert!((found.rate_pps_upper.unwrap() - MAX / 1024.0).abs() < 0.01);
    }
    let short = SearchGoals { duration_max: Nanos::from_secs(22), ..wanted(&ndr_pdr()) };
    let (found, tried) =
        run(short, |rate, duration| lost(rate, duration, (1.0 - 50_000.0 / rate).max(0.0)));
    assert_eq!(found[1].irregular, [Irregularity::CutShort]);
    assert!(seconds(&tried) <= 22.0);
}

#[test]
fn with_a_loss_inversion_the_lower_load_counts() {
    // The overloaded target forwards half of its capacity. Around that rate it loses a little: more
    // than one goal allows and less than the other.
    let (found, _) = run(wanted(&ndr_pdr()), |rate, duration| {
        let share = match rate {
            rate if rate > 800_000.0 => 1.0 - 400_000.0 / rate,
            rate if (390_000.0..410_000.0).contains(&rate) => 0.003,
            _ => 0.0,
        };
        lost(rate, duration, share)
    });
    let [ndr, pdr] = &found[..] else { panic!("two goals: {found:?}") };
    assert_eq!(ndr.irregular, [Irregularity::LossInversion]);
    assert_brackets(ndr, &Goal::ndr(), 390_000.0, "ndr");
    assert_eq!(pdr.irregular, []);
    assert_brackets(pdr, &Goal::pdr(0.005), 800_000.0, "pdr");
}

#[test]
fn a_tester_limit_at_the_upper_bound_and_extra_frames_are_reported() {
    let (found, _) = run(wanted(&[Goal::ndr()]), |rate, duration| {
        let mut measured = lost(rate, duration, 0.0);
        if rate > 300_000.0 {
            measured.offered = (300_000.0 * duration.as_secs_f64()) as u64;
            measured.forwarded = measured.offered;
            measured.is_tester_limited = true;
        }
        measured
    });
    assert_eq!(found[0].irregular, [Irregularity::TesterLimited]);
    assert!(found[0].is_regular());
    assert!((298_000.0..=300_000.0).contains(&found[0].rate_pps_lower.unwrap()), "{found:?}");
    let (found, _) = run(wanted(&[Goal::ndr()]), |rate, duration| {
        let measured = lost(rate, duration, 0.0);
        MeasuredLoad { forwarded: measured.offered + 1, ..measured }
    });
    assert_eq!(found[0].irregular, [Irregularity::NoLowerBound, Irregularity::ExtraFrames]);
}

#[test]
fn inconsistent_results_end_the_search_without_contradictions() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let goals = [Goal::quick(0.0), Goal::pdr(0.3), Goal::tst009(0.05)];
        let mut all: Vec<(f64, TrialAtLoad)> = Vec::new();
        let (found, tried) = run(wanted(&goals), |rate, duration| {
            let offered = (rate * duration.as_secs_f64()) as u64;
            let forwarded = (offered as f64 * random.share() * 1.01) as u64;
            let is_tester_limited = random.share() < 0.1;
            let is_disturbed = random.share() < 0.1;
            let measured = MeasuredLoad {
                intended: offered,
                offered,
                forwarded,
                is_tester_limited,
                is_disturbed,
            };
            all.push((rate, TrialAtLoad { duration, loss_ratio: measured.loss_ratio() }));
            measured
        });
        assert!(tried.len() <= TRIALS_MAX as usize && seconds(&tried) <= 7200.0, "seed {seed}");
        for (found, goal) in found.iter().zip(&goals) {
            let at = |rate: f64| -> Vec<TrialAtLoad> {
                all.iter().filter(|it| it.0 == rate).map(|it| it.1).collect()
            };
            let bound = |rate: f64| classify(goal, &at(rate));
            assert!(found.rate_pps_lower.is_none_or(|rate| bound(rate) == LoadClass::Lower));
            assert!(found.rate_pps_upper.is_none_or(|rate| bound(rate) == LoadClass::Upper));
            let (lower, upper) = (found.rate_pps_lower, found.rate_pps_upper);
            assert!(lower.zip(upper).is_none_or(|(lower, upper)| lower < upper), "seed {seed}");
        }
    }
}

#[test]
fn the_search_starts_at_the_largest_load_and_is_deterministic() {
    let mut search = Search::new(wanted(&ndr_pdr())).unwrap();
    let second = Nanos::from_secs(1);
    assert_eq!(search.next(), NextTrial::Trial { rate_pps: MAX, duration: second, goal: 0 });
    assert_eq!(search.next(), search.next());
    search.record(lost(MAX, second, 0.75));
    let NextTrial::Trial { rate_pps, .. } = search.next() else { panic!("it has only begun") };
    assert!(
        (rate_pps - MAX / 4.0).abs() < 2.0,
        "the next trial has the forwarding rate, not {rate_pps}"
    );
    let once = || run(wanted(&ndr_pdr()), disturbed(77_777.0, 0.2, 5));
    assert_eq!(once(), once());
}

#[test]
fn invalid_searches_are_rejected_with_a_hint() {
    let second = Nanos::from_secs(1);
    let good = wanted(&ndr_pdr());
    assert_eq!(good.check(), Ok(()));
    let ndr = Goal::ndr();
    let wrong_goals = [
        Goal { loss_ratio: 1.0, ..ndr },
        Goal { loss_ratio: f64::NAN, ..ndr },
        Goal { loss_ratio: -0.1, ..ndr },
        Goal { exceed_ratio: 1.0, ..ndr },
        Goal { exceed_ratio: f64::INFINITY, ..ndr },
        Goal { width: 0.0, ..ndr },
        Goal { width: f64::NAN, ..ndr },
        Goal { width: 0.6, ..ndr },
        Goal { duration_final: Nanos::ZERO, ..ndr },
        Goal { duration_initial: Nanos::ZERO, ..ndr },
        Goal { duration_sum: Nanos::from_secs(90_000), ..ndr },
        Goal { duration_initial: Nanos::from_secs(2), ..ndr },
        Goal { duration_sum: Nanos::from_millis(900), ..ndr },
    ];
    let mut refused: Vec<SearchGoals> = wrong_goals.map(|goal| wanted(&[ndr, goal])).to_vec();
    refused.extend([
        wanted(&[]),
        wanted(&[ndr; GOALS_MAX + 1]),
        SearchGoals { rate_pps_min: 0.0, ..good.clone() },
        SearchGoals { rate_pps_min: f64::NAN, ..good.clone() },
        SearchGoals { rate_pps_min: 2e6, ..good.clone() },
        SearchGoals { rate_pps_max: f64::INFINITY, ..good.clone() },
        SearchGoals { rate_pps_min: 0.5, ..good.clone() },
        SearchGoals { duration_max: second, ..good },
    ]);
    for wanted in refused {
        let error = Search::new(wanted.clone()).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("(hint: "), "{message}");
    }
}
