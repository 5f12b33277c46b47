//! Change points of a series of runs: positions where a value changed permanently.
//!
//! Method: Pettitt's test (A. N. Pettitt, Applied Statistics 28, 1979), which uses only ranks.
//! [`PERMUTATIONS`] random permutations of the values give its distribution. A change is
//! significant if its probability is at most [`FALSE_ALARM_PERCENT`] percent and
//! [`crate::conclude`] finds the values before and after it different. Both parts are then tested
//! in the same way.
//!
//! Invariants:
//!
//! - A series without a change gets one in at most [`FALSE_ALARM_PERCENT`] percent of cases. This
//!   holds for any distribution of its values, as long as they do not depend on their order.
//! - Equal series give equal change points.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::conclude::{Conclusion, DIFFERENT_PERCENT, EQUIVALENT_PERCENT, Estimate};
use crate::effect;
use crate::series;

/// Probability of a false alarm for a series without a change, in percent.
pub const FALSE_ALARM_PERCENT: f64 = 1.0;

/// Number of random permutations for the distribution of the statistic.
pub const PERMUTATIONS: u32 = 999;

/// Minimum length of a series: a shorter one cannot reach the confidence level.
pub const VALUES_MIN: usize = 10;

/// Seed of the permutations. It is constant, so that a series always has the same change points.
const SEED: u64 = 1;

/// A change point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Index of the first value after it.
    pub at: usize,
    /// Ratio of the values after it to those before it, within the tested part of the series.
    pub ratio: f64,
}

/// The change points of a time series, in rising order.
pub fn changes(values: &[f64]) -> Vec<Change> {
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let mut found = Vec::new();
    let mut parts = vec![(0, values.len())];
    while let Some((from, to)) = parts.pop() {
        let Some(change) = change(&values[from..to], &mut random) else { continue };
        let at = from + change.at;
        found.push(Change { at, ..change });
        parts.extend([(from, at), (at, to)]);
    }
    found.sort_by_key(|change| change.at);
    found
}

/// The change point of a series, if any.
fn change(values: &[f64], random: &mut Pcg64Mcg) -> Option<Change> {
    if values.len() < VALUES_MIN || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut ranks = ranks(values);
    let (at, statistic) = pettitt(&ranks);
    let mut as_large = 1;
    let most = f64::from(PERMUTATIONS + 1) * FALSE_ALARM_PERCENT / 100.0;
    for _ in 0..PERMUTATIONS {
        shuffle(&mut ranks, random);
        as_large += u32::from(pettitt(&ranks).1 >= statistic);
        if f64::from(as_large) > most {
            return None;
        }
    }
    let (before, after) = values.split_at(at);
    let of = |level| effect::of_series(before, after, level);
    let ratio = Estimate::of_effects(of(EQUIVALENT_PERCENT), of(DIFFERENT_PERCENT));
    matches!(ratio.relevant(), Conclusion::Greater | Conclusion::Smaller)
        .then_some(Change { at, ratio: ratio.value })
}

/// The index after the most likely change, and its Pettitt statistic.
fn pettitt(ranks: &[f64]) -> (usize, f64) {
    let n = ranks.len();
    let (mut sum, mut best) = (0.0, (1, -1.0));
    for (place, rank) in ranks[..n - 1].iter().enumerate() {
        sum += 2.0 * rank - (n as f64 + 1.0);
        if f64::abs(sum) > best.1 {
            best = (place + 1, f64::abs(sum));
        }
    }
    best
}

/// Ranks from 1. Equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rising = series::sorted(values);
    let rank = |value: &f64| {
        let below = rising.partition_point(|other| other < value);
        let up_to = rising.partition_point(|other| other <= value);
        (below + up_to + 1) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

/// Shuffles values uniformly.
fn shuffle(values: &mut [f64], random: &mut Pcg64Mcg) {
    for place in (1..values.len()).rev() {
        let bound = place as u128 + 1;
        values.swap(place, ((u128::from(random.next_u64()) * bound) >> 64) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(random: &mut Pcg64Mcg) -> f64 {
        (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(random: &mut Pcg64Mcg) -> f64 {
        let radius = (-2.0 * (1.0 - even(random)).ln()).sqrt();
        radius * (std::f64::consts::TAU * even(random)).cos()
    }

    /// Noise between runs of an unchanged target.
    const NOISES: [fn(&mut Pcg64Mcg) -> f64; 3] = [
        |random| 0.01 * normal(random),
        // Heavy tails: Student's t with three degrees of freedom.
        |random| {
            let chi: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
            0.01 * normal(random) / (chi / 3.0).sqrt()
        },
        // Some runs are slow.
        |random| 0.005 * normal(random) - if even(random) < 0.1 { 0.1 } else { 0.0 },
    ];

    /// Runs with a value of 1, and of `after` from index `at`.
    fn series_of(
        noise: usize,
        n: usize,
        (at, after): (usize, f64),
        random: &mut Pcg64Mcg,
    ) -> Vec<f64> {
        let value = |place| if place >= at { after } else { 1.0 };
        (0..n).map(|place| value(place) * NOISES[noise](random).exp()).collect()
    }

    #[test]
    fn an_unchanged_series_hardly_ever_has_a_change_point() {
        let cases = 2000;
        for noise in 0..NOISES.len() {
            for n in [10, 40] {
                let mut random = Pcg64Mcg::seed_from_u64(11 + noise as u64);
                let series = (0..cases).map(|_| series_of(noise, n, (n, 1.0), &mut random));
                let alarms = series.filter(|values| !changes(values).is_empty()).count();
                let percent = 100.0 * alarms as f64 / f64::from(cases);
                println!("noise {noise}, {n} runs: {percent} % false alarms");
                // Five standard errors of a share of 1 % of 2,000.
                assert!(
                    percent <= FALSE_ALARM_PERCENT + 1.12,
                    "noise {noise}, {n} runs: {percent} %"
                );
            }
        }
    }

    #[test]
    fn a_change_of_five_percent_is_found_at_its_position() {
        for noise in 0..NOISES.len() {
            let mut random = Pcg64Mcg::seed_from_u64(23 + noise as u64);
            let mut hits = 0;
            for _ in 0..200 {
                let values = series_of(noise, 30, (18, 0.95), &mut random);
                let found = changes(&values);
                hits += u32::from(
                    matches!(found.as_slice(), [one] if one.at.abs_diff(18) <= 2 && one.ratio < 0.97),
                );
            }
            println!("noise {noise}: {hits} of 200 changes found");
            assert!(hits >= 160, "noise {noise}: {hits} of 200");
        }
    }

    #[test]
    fn several_changes_are_found_and_irrelevant_differences_are_not() {
        let row =
            |value: f64| (0..12).map(move |place| value * (1.0 + 0.001 * f64::from(place % 3)));
        let values: Vec<f64> = row(100.0).chain(row(120.0)).chain(row(90.0)).collect();
        let found: Vec<usize> = changes(&values).iter().map(|change| change.at).collect();
        assert_eq!(found, [12, 24]);
        let small: Vec<f64> = row(100.0).chain(row(100.5)).collect();
        assert_eq!(changes(&small), []);
        assert_eq!(changes(&[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]), [], "six values are not enough");
    }
}
