//! Whether two quantities rise together: Spearman's rank correlation, and how far it may be from the truth.
//!
//! Source: Spearman (1904), equal values having the mean of their ranks; the interval is a percentile bootstrap over
//! groups (Davison and Hinkley, 1997, section 3.8): values that were measured on one target are no strangers to each
//! other, so whole groups are drawn and not single values. Invariant: where one of the quantities is the same
//! everywhere, there is no correlation, not one of zero; equal seeds give equal intervals; an interval holds the value,
//! which resampling, by drawing groups twice, tends to miss.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::record::{Interval, IntervalMethod};
use crate::series;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 4000;

/// The least share of resamples that have to have a correlation for an interval to be one.
const USABLE_SHARE: f64 = 0.9;

/// Groups without which resampling says nothing.
pub const GROUPS_MIN: usize = 4;

/// A correlation and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlation {
    /// Spearman's coefficient, -1 to 1.
    pub value: f64,
    /// Where it lies; none with fewer groups than [`GROUPS_MIN`], or where resamples are mostly constant.
    pub interval: Option<Interval>,
    /// Pairs that it rests on.
    pub pairs: usize,
}

/// The rank correlation of pairs that come in groups; none where one of both is constant.
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

/// Spearman's coefficient: Pearson's of the ranks.
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

/// The rank of each value from 1 on, equal ones having the mean of theirs.
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
    fn what_rises_together_is_one_and_what_is_constant_is_nothing() {
        let cubes: Vec<(f64, f64)> = (1..9).map(|n| (f64::from(n), f64::from(n * n * n))).collect();
        assert_eq!(spearman(&cubes), Some(1.0));
        let falling: Vec<(f64, f64)> = cubes.iter().map(|(x, y)| (*x, -y)).collect();
        assert_eq!(spearman(&falling), Some(-1.0));
        let flat: Vec<(f64, f64)> = cubes.iter().map(|(x, _)| (*x, 0.0)).collect();
        assert_eq!(spearman(&flat), None);
        // Of Kendall and Gibbons' textbook rows: two exchanged neighbours of five.
        let near = [(1.0, 2.0), (2.0, 1.0), (3.0, 3.0), (4.0, 5.0), (5.0, 4.0)];
        assert!((spearman(&near).unwrap() - 0.8).abs() < 1e-12);
    }

    #[test]
    fn groups_are_drawn_whole() {
        // Within each group nothing rises with anything; over groups all does.
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
    fn what_is_drawn_by_lot_has_an_interval_that_holds_zero() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let mut draw = || random.next_u32() as f64;
        let mut missed = 0;
        for seed in 0..40 {
            let groups: Vec<_> = (0..10).map(|_| vec![(draw(), draw())]).collect();
            let found = correlation(&groups, 95.0, seed).unwrap().interval.unwrap();
            missed += u32::from(found.low > 0.0 || found.high < 0.0);
        }
        // Two in forty are to be expected of an interval of 95 %; small samples make it too narrow.
        assert!(missed <= 6, "{missed} of 40");
    }
}
