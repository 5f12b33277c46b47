//! Conclusions from random values with a known ground truth.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use record::Point;

/// Returns a value with this number of repeats.
fn cell(metric: Metric, samples: &[f64]) -> Cell {
    let value = if metric.is_by_median() { series::median(samples) } else { series::mean(samples) };
    Cell {
        experiment: "forwarding-rate".into(),
        target: "switch".into(),
        link: None,
        point: Point::new("frame_bytes", 64.0),
        metric,
        unit: metric.unit().into(),
        value: value.unwrap(),
        n: samples.len() as u32,
        interval: None,
        interval_99: None,
        resolution: None,
        repeats: (1..=samples.len() as u32).collect(),
        samples: samples.to_vec(),
        trials: Vec::new(),
        limit: None,
        bound: None,
        disturbances: Vec::new(),
        exclusion: None,
        warnings: Vec::new(),
    }
}

fn rate(samples: &[f64]) -> Cell {
    cell(Metric::RatePpsForwarded, samples)
}

fn bounded(side: BoundSide, samples: &[f64]) -> Cell {
    Cell { bound: Some(Bound { side, cause: BoundCause::SearchLimit }), ..rate(samples) }
}

/// Standard normal values by the method of Box and Muller.
fn normal(random: &mut Pcg64Mcg) -> f64 {
    let mut even = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let (radius, turn) = ((-2.0 * (1.0 - even()).ln()).sqrt(), even() * std::f64::consts::TAU);
    radius * turn.cos()
}

#[test]
fn equal_distributions_differ_in_at_most_one_percent_of_cases() {
    let mut random = Pcg64Mcg::seed_from_u64(56);
    let mut wrong = 0;
    let mut all = 0;
    // Small and large scatter, few and many repeats, even and skewed noise, with and without trials
    // that are far off.
    for repeats in [2, 3, 5, 10, 15, 30] {
        for deviation in [0.001, 0.02, 0.2] {
            for outliers in [0.0, 0.1] {
                for _ in 0..200 {
                    let mut draw = || {
                        let is_off = (random.next_u32() as f64 / u32::MAX as f64) < outliers;
                        let by = (normal(&mut random) * deviation).exp();
                        if is_off { 1e6 * by * 0.5 } else { 1e6 * by }
                    };
                    let mut row = || (0..repeats).map(|_| draw()).collect::<Vec<f64>>();
                    let (one, other) = (rate(&row()), rate(&row()));
                    let found = compare(&one, &other);
                    wrong += u32::from(matches!(found, Conclusion::Greater | Conclusion::Smaller));
                    all += 1;
                }
            }
        }
    }
    assert!(f64::from(wrong) <= 0.01 * f64::from(all), "{wrong} of {all}");
}

#[test]
fn a_true_difference_is_found_and_a_tie_is_a_tie() {
    let mut random = Pcg64Mcg::seed_from_u64(57);
    let (mut found, mut equal) = (0, 0);
    for _ in 0..200 {
        let mut row = |middle: f64| {
            (0..5).map(|_| middle * (1.0 + 0.001 * normal(&mut random))).collect::<Vec<f64>>()
        };
        let (base, less, same) = (rate(&row(1e6)), rate(&row(0.95e6)), rate(&row(1.002e6)));
        found += u32::from(compare(&less, &base) == Conclusion::Smaller);
        equal += u32::from(compare(&same, &base) == Conclusion::Equivalent);
    }
    assert!(found >= 190 && equal >= 180, "{found} found, {equal} equal");
    assert_eq!(compare(&rate(&[5.0; 3]), &rate(&[5.0; 3])), Conclusion::Equivalent);
    // 0.8 % is not a relevant difference, however certain it is.
    assert_eq!(compare(&rate(&[100.8; 3]), &rate(&[100.0; 3])), Conclusion::Equivalent);
}

#[test]
fn a_bound_decides_only_on_its_closed_side() {
    let lower = bounded(BoundSide::Lower, &[100.0, 100.1, 100.2]);
    let estimate = Estimate::of(&lower);
    assert_eq!(estimate.against(50.0), Conclusion::Greater);
    assert!(matches!(estimate.against(200.0), Conclusion::Undecided(Reason::Bounded { .. })));
    let less = rate(&[50.0, 50.1, 50.2]);
    assert_eq!(compare(&lower, &less), Conclusion::Greater);
    assert_eq!(compare(&less, &lower), Conclusion::Smaller);
    let more = rate(&[150.0, 150.1, 150.2]);
    for (of, base) in [(&lower, &more), (&more, &lower), (&lower, &lower)] {
        assert!(matches!(compare(of, base), Conclusion::Undecided(Reason::Bounded { .. })));
    }
    let upper = bounded(BoundSide::Upper, &[100.0, 100.1, 100.2]);
    assert_eq!(Estimate::of(&upper).against(150.0), Conclusion::Smaller);
    assert!(matches!(Estimate::of(&upper).against(50.0), Conclusion::Undecided(_)));
}

#[test]
fn a_value_below_its_resolution_decides_no_ratio() {
    let metric = Metric::LatencyNsMean;
    let fast = Cell { resolution: Some(0.5), ..cell(metric, &[0.4959; 3]) };
    let slow = Cell { resolution: Some(0.5), ..cell(metric, &[288.0, 289.0, 290.0]) };
    let found = compare(&slow, &fast);
    let Conclusion::Undecided(reason) = found else { panic!("{found:?}") };
    assert_eq!(reason.to_string(), "a value is below the resolution");
    // As an upper bound it is below values beyond its resolution.
    assert_eq!(Estimate::of(&fast).against(1.5), Conclusion::Smaller);
    assert!(matches!(Estimate::of(&fast).against(0.7), Conclusion::Undecided(_)));
    // The resolution of each widens a ratio: 290 against 260 may be 289.5 against 260.5.
    let near = Cell { resolution: Some(15.0), ..cell(metric, &[260.0; 3]) };
    let far = Cell { resolution: Some(15.0), ..cell(metric, &[290.0; 3]) };
    assert!(matches!(compare(&far, &near), Conclusion::Undecided(_)));
}

#[test]
fn disturbed_repeats_do_not_count() {
    let cause = DisturbanceCause::Descheduled;
    let with = |repeats: &[u32]| Cell {
        disturbances: vec![Disturbance { cause, repeats: repeats.to_vec() }],
        ..cell(Metric::LatencyNsMean, &[100.0, 100.1, 5000.0, 100.2, 100.1])
    };
    let base = cell(Metric::LatencyNsMean, &[200.0, 200.1, 200.2, 200.1, 200.0]);
    assert_eq!(compare(&with(&[3]), &base), Conclusion::Smaller);
    assert!((Estimate::of(&with(&[3])).value - 100.1).abs() < 1e-9);
    let found = compare(&with(&[1, 2, 3]), &base);
    let Conclusion::Undecided(reason) = found else { panic!("{found:?}") };
    assert_eq!(reason.to_string(), "the tester was descheduled in 3 of 5 repeats");
    // Readers see the values of all repeats, from which nothing is concluded.
    let none = with(&[1, 2, 3, 4, 5]);
    let (ratio, difference) = (Estimate::ratio(&none, &base), Estimate::difference(&none, &base));
    assert!((ratio.value - 1.094).abs() < 0.001 && ratio.n == 0, "{ratio:?}");
    assert!((difference.value - 880.0).abs() < 0.01 && difference.n == 0, "{difference:?}");
    assert!(matches!(ratio.relevant(), Conclusion::Undecided(Reason::Disturbed { .. })));
    assert!(matches!(difference.against(0.0), Conclusion::Undecided(Reason::Disturbed { .. })));
}

#[test]
fn simulated_time_decides_behavior_and_no_rates() {
    let simulated = |cell: Cell| Cell { exclusion: Some(Exclusion::Simulated), ..cell };
    let rate = simulated(rate(&[100.0; 3]));
    let found = Estimate::of(&rate);
    assert!(matches!(found.against(50.0), Conclusion::Undecided(Reason::Excluded { .. })));
    assert_eq!(found.about_behaviour().against(50.0), Conclusion::Greater);
    let rules = Metric::Named(record::Name::of("acting_rules"));
    let rules = simulated(cell(rules, &[2000.0; 3]));
    assert_eq!(Estimate::of(&rules).against(2000.0), Conclusion::Equivalent);
    let spoilt = Exclusion::RunDisturbed { trials: 105, of: 120 };
    let spoilt = Estimate::of(&Cell { exclusion: Some(spoilt), ..rules }).about_behaviour();
    assert!(matches!(spoilt.against(1.0), Conclusion::Undecided(_)));
}

#[test]
fn one_repeat_decides_nothing() {
    assert_eq!(compare(&rate(&[5.0]), &rate(&[1.0])), Conclusion::Undecided(Reason::MeasuredOnce));
    assert_eq!(
        Estimate::of(&rate(&[5.0])).against(1.0),
        Conclusion::Undecided(Reason::MeasuredOnce)
    );
}

/// B5: a search bound is not ranked, but a value that certainly exceeds it is.
#[test]
fn a_bound_is_not_ranked() {
    let least = bounded(BoundSide::Lower, &[100.0, 100.1, 100.2]);
    let (less, more) = (rate(&[50.0, 50.1, 50.2]), rate(&[200.0, 200.1, 200.2]));
    let bound = |found: Result<Vec<&Cell>, Reason>| matches!(found, Err(Reason::Bounded { .. }));
    let among_three = extremes(&[&least, &less, &more]);
    assert!(bound(among_three.highest), "the bounded value may be the highest");
    assert_eq!(among_three.lowest, Ok(vec![&less]));
    assert!(bound(extremes(&[&least, &more]).lowest), "the bounded value may be higher");
    assert_eq!(extremes(&[&least, &less]).highest, Ok(vec![&least]));
}
