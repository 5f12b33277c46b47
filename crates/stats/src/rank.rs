//! Spearman's rank correlation of two quantities, with its interval.
//!
//! Source: Spearman (1904), with mean ranks for equal values. The interval is a percentile
//! bootstrap over groups (Davison and Hinkley, 1997, section 3.8). Values of one target are not
//! independent, so whole groups are resampled. Invariants:
//!
//! - If one of the quantities is constant, there is no correlation, rather than one of zero.
//! - Equal seeds give equal intervals.
//! - An interval contains the value, which resampling, by drawing groups twice, tends to miss.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::series;
use record::{Interval, IntervalMethod};

/// Resamples of the bootstrap.
const RESAMPLES: usize = 4000;

/// Minimum share of resamples with a correlation for an interval to exist.
const USABLE_SHARE: f64 = 0.9;

/// Minimum number of groups for resampling.
pub const GROUPS_MIN: usize = 4;

/// A correlation with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlation {
    /// Spearman's coefficient, -1 to 1.
    pub value: f64,
    /// Its interval; none with fewer than [`GROUPS_MIN`] groups, or if most resamples are constant.
    pub interval: Option<Interval>,
    /// Number of pairs.
    pub pairs: usize,
}

/// The rank correlation of grouped pairs; none if one quantity is constant.
pub fn correlation(
    groups: &[Vec<(f64, f64)>],
    level_percent: f64,
    seed: u64,
) -> Option<Correlation> {
    let all: Vec<(f64, f64)> = groups.iter().flatten().copied().collect();
    let value = spearman(&all)?;
    let interval = interval(groups, level_percent, seed);
    let holding =
        |it: Interval| Interval { low: it.low.min(value), high: it.high.max(value), ..it };
    Some(Correlation { value, interval: interval.map(holding), pairs: all.len() })
}

fn interval(groups: &[Vec<(f64, f64)>], level_percent: f64, seed: u64) -> Option<Interval> {
    if groups.len() < GROUPS_MIN {
        return None;
    }
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut drawn = || {
        let below = groups.len() as u128;
        &groups[((u128::from(random.next_u64()) * below) >> 64) as usize]
    };
    let mut found: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let sample: Vec<(f64, f64)> =
                (0..groups.len()).flat_map(|_| drawn().iter().copied()).collect();
            spearman(&sample)
        })
        .collect();
    if (found.len() as f64) < USABLE_SHARE * RESAMPLES as f64 {
        return None;
    }
    found.sort_by(f64::total_cmp);
    let cut = ((1.0 - level_percent / 100.0) / 2.0 * found.len() as f64) as usize;
    let (low, high) = (found[cut], found[found.len() - 1 - cut]);
    Some(Interval { low, high, level_percent, method: IntervalMethod::Bootstrap })
}

/// Spearman's coefficient: Pearson's coefficient of the ranks.
fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let (xs, ys): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (xs, ys) = (ranks(&xs), ranks(&ys));
    let (x_mean, y_mean) = (series::mean(&xs)?, series::mean(&ys)?);
    let sum = |pick: &dyn Fn(f64, f64) -> f64| -> f64 {
        xs.iter().zip(&ys).map(|(x, y)| pick(x - x_mean, y - y_mean)).sum()
    };
    let spread = (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt();
    (spread > 0.0).then(|| (sum(&|x, y| x * y) / spread).clamp(-1.0, 1.0))
}

/// Ranks from 1. Equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for alike in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let mean = first as f64 + (alike.len() as f64 + 1.0) / 2.0;
        alike.iter().for_each(|&place| ranks[place] = mean);
        first += alike.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        assert_eq!(ranks(&[]), Vec::<f64>::new());
    }

    #[test]
    fn monotonic_values_correlate_and_constant_ones_have_no_correlation() {
        let cubes: Vec<(f64, f64)> = (1..9).map(|n| (f64::from(n), f64::from(n * n * n))).collect();
        assert_eq!(spearman(&cubes), Some(1.0));
        let falling: Vec<(f64, f64)> = cubes.iter().map(|(x, y)| (*x, -y)).collect();
        assert_eq!(spearman(&falling), Some(-1.0));
        let flat: Vec<(f64, f64)> = cubes.iter().map(|(x, _)| (*x, 0.0)).collect();
        assert_eq!(spearman(&flat), None);
        // Example from Kendall and Gibbons: two neighbours of five exchanged.
        let near = [(1.0, 2.0), (2.0, 1.0), (3.0, 3.0), (4.0, 5.0), (5.0, 4.0)];
        assert!((spearman(&near).unwrap() - 0.8).abs() < 1e-12);
    }

    #[test]
    fn groups_are_resampled_as_a_whole() {
        // No correlation within a group, full correlation over groups.
        let group = |at: f64| vec![(at, at + 0.2), (at + 0.1, at + 0.1), (at + 0.2, at)];
        let groups: Vec<_> = (0..8).map(|n| group(f64::from(n))).collect();
        let found = correlation(&groups, 95.0, 1).unwrap();
        let interval = found.interval.unwrap();
        assert!(interval.low > 0.7 && found.pairs == 24, "{found:?}");
        assert!((interval.low..=interval.high).contains(&found.value), "{found:?}");
        assert_eq!(correlation(&groups, 95.0, 1), Some(found), "equal seeds, equal intervals");
        assert_eq!(correlation(&groups[..3], 95.0, 1).unwrap().interval, None, "too few groups");
    }

    #[test]
    fn random_values_have_an_interval_that_contains_zero() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let mut draw = || random.next_u32() as f64;
        let mut missed = 0;
        for seed in 0..40 {
            let groups: Vec<_> = (0..10).map(|_| vec![(draw(), draw())]).collect();
            let found = correlation(&groups, 95.0, seed).unwrap().interval.unwrap();
            missed += u32::from(found.low > 0.0 || found.high < 0.0);
        }
        // A 95 % interval misses two in forty on average; small samples make it too narrow.
        assert!(missed <= 6, "{missed} of 40");
    }
}
