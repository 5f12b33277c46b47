//! Effect size with an interval: the ratio of one series to another.
//!
//! Sources: Student's t of logarithms for few values. From [`RANKS_MIN`] values, the Hodges-Lehmann
//! estimate, which a few outliers cannot move. Its exact interval uses Wilcoxon's signed ranks for
//! pairs, together with the median's interval, and the Mann-Whitney statistic for two series
//! (Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, chapters 3 and 4). For two equal
//! targets, the difference of a pair is symmetric under any common disturbance, which is the only
//! requirement of signed ranks. Invariant: an interval has only a level that its method reaches
//! with the available values.

use crate::interval;
use crate::series;
use record::{Interval, IntervalMethod};

/// Minimum number of values for rank methods.
pub const RANKS_MIN: usize = 10;

/// Number of pairs above which the normal approximation of the rank distribution is used.
const EXACT_MAX: usize = 60;

/// Substitute for zero, as a share of the largest value.
const NOTHING: f64 = 1e-9;

/// Variation between two runs of the same target, as a standard deviation of the logarithm of the
/// results. Causes are a different memory layout and the temperature of the machine. A single run
/// does not show it.
pub const BETWEEN_RUNS: f64 = 0.005;

/// A ratio of two series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// New value divided by base value.
    pub ratio: f64,
    /// Number of pairs, or of values in the shorter series.
    pub n: u32,
    /// Its interval; absent if there are too few values for the level.
    pub interval: Option<Interval>,
}

/// `new / base` over pairs measured next to each other. Absent without pairs, or if a value is
/// negative or not a number. A zero counts as very much smaller than any other value.
pub fn of_pairs(pairs: &[(f64, f64)], level_percent: f64) -> Option<Effect> {
    let log = logarithm(pairs.iter().flat_map(|(base, new)| [*base, *new]))?;
    let logs: Vec<f64> = pairs.iter().map(|(base, new)| log(*new) - log(*base)).collect();
    let n = logs.len() as u32;
    if logs.len() >= RANKS_MIN {
        let averages = walsh_averages(&logs);
        let ratio = series::median_of_sorted(&averages)?.exp();
        let interval = by_ranks(&averages, &logs, level_percent);
        return Some(Effect {
            ratio,
            n,
            interval: interval.or_else(|| by_t(&logs, level_percent)),
        });
    }
    Some(Effect { ratio: series::mean(&logs)?.exp(), n, interval: by_t(&logs, level_percent) })
}

/// `new / base` over two separately measured series, which may differ by [`BETWEEN_RUNS`] without a
/// cause. Absent in the same cases as for pairs.
pub fn of_series(base: &[f64], new: &[f64], level_percent: f64) -> Option<Effect> {
    if base.is_empty() || new.is_empty() {
        return None;
    }
    let log = logarithm(base.iter().chain(new).copied())?;
    let logs = |row: &[f64]| row.iter().map(|value| log(*value)).collect::<Vec<f64>>();
    let (base, new) = (logs(base), logs(new));
    let n = base.len().min(new.len()) as u32;
    let ranked = (n as usize >= RANKS_MIN).then(|| rank_sum(&base, &new, level_percent)).flatten();
    let (middle, interval) = match ranked {
        Some((middle, interval)) => (middle, Some(interval)),
        None => welch(&base, &new, level_percent)?,
    };
    let apart = normal_quantile((1.0 + level_percent / 100.0) / 2.0)
        * BETWEEN_RUNS
        * std::f64::consts::SQRT_2;
    let wider = |interval: Interval| Interval {
        low: (middle - (middle - interval.low).hypot(apart)).exp(),
        high: (middle + (interval.high - middle).hypot(apart)).exp(),
        ..interval
    };
    Some(Effect { ratio: middle.exp(), n, interval: interval.map(wider) })
}

/// Returns a logarithm that replaces zero by a billionth of the largest value. Absent without
/// values, or if a value is negative or not finite.
fn logarithm(values: impl Iterator<Item = f64>) -> Option<impl Fn(f64) -> f64> {
    let mut greatest = None;
    for value in values {
        if !value.is_finite() || value < 0.0 {
            return None;
        }
        greatest = Some(value.max(greatest.unwrap_or(0.0)));
    }
    let least = match greatest? {
        0.0 => 1.0,
        greatest => (greatest * NOTHING).max(f64::MIN_POSITIVE),
    };
    Some(move |value: f64| value.max(least).ln())
}

fn by_t(logs: &[f64], level_percent: f64) -> Option<Interval> {
    let middle = series::mean(logs)?;
    let n = logs.len() as f64;
    let half = student_t(level_percent, n - 1.0, series::deviation(logs)? / n.sqrt());
    let method = IntervalMethod::StudentTLog;
    Some(Interval {
        low: (middle - half).exp(),
        high: (middle + half).exp(),
        level_percent,
        method,
    })
}

/// Difference of the means and its interval, both of logarithms, by Welch's t.
fn welch(base: &[f64], new: &[f64], level_percent: f64) -> Option<(f64, Option<Interval>)> {
    let middle = series::mean(new)? - series::mean(base)?;
    let part = |row: &[f64]| series::deviation(row).map(|it| it * it / row.len() as f64);
    let (Some(a), Some(b)) = (part(base), part(new)) else { return Some((middle, None)) };
    let freedom = |part: f64, row: &[f64]| part * part / (row.len() as f64 - 1.0);
    let degrees = match freedom(a, base) + freedom(b, new) {
        // Without scatter the half width is zero for any degrees of freedom.
        0.0 => 1.0,
        sum => ((a + b) * (a + b) / sum).floor().max(1.0),
    };
    let half = student_t(level_percent, degrees, (a + b).sqrt());
    let method = IntervalMethod::StudentTLog;
    let (low, high) = (middle - half, middle + half);
    Some((middle, Some(Interval { low, high, level_percent, method })))
}

/// Median of all differences between the two series and its interval, both of logarithms. Absent if
/// there are too few values for the level.
fn rank_sum(base: &[f64], new: &[f64], level_percent: f64) -> Option<(f64, Interval)> {
    let mut shifts: Vec<f64> =
        new.iter().flat_map(|new| base.iter().map(move |base| new - base)).collect();
    shifts.sort_by(f64::total_cmp);
    let (n, m) = (base.len() as f64, new.len() as f64);
    let z = normal_quantile((1.0 + level_percent / 100.0) / 2.0);
    let cut = n * m / 2.0 - z * (n * m * (n + m + 1.0) / 12.0).sqrt();
    if cut < 1.0 {
        return None;
    }
    let cut = cut.floor() as usize;
    let method = IntervalMethod::Ranks;
    let (low, high) = (shifts[cut - 1], shifts[shifts.len() - cut]);
    Some((series::median_of_sorted(&shifts)?, Interval { low, high, level_percent, method }))
}

/// Intersection of the signed-rank interval and the median's interval, each with half of the error
/// probability. The former is narrower for regular noise; the latter is valid with up to one
/// outlier in six values.
fn by_ranks(averages: &[f64], logs: &[f64], level_percent: f64) -> Option<Interval> {
    let half = f64::midpoint(100.0, level_percent);
    let cut = signed_ranks(logs.len(), half)?;
    let row = series::sorted(logs);
    let ranks = interval::ranks_of_quantile(row.len() as u64, 0.5, half)?;
    let low = averages[cut - 1].max(row[ranks.low as usize - 1]);
    let high = averages[averages.len() - cut].min(row[ranks.high as usize - 1]);
    // If they do not overlap, the interval is the gap between them.
    let (low, high) = (low.min(high).exp(), high.max(low).exp());
    Some(Interval { low, high, level_percent, method: IntervalMethod::Ranks })
}

/// Walsh averages: means of all pairs of values, each value with itself included, in rising order.
fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages: Vec<f64> = (0..values.len())
        .flat_map(|i| (i..values.len()).map(move |j| f64::midpoint(values[i], values[j])))
        .collect();
    averages.sort_by(f64::total_cmp);
    averages
}

/// Number of averages to cut off at each end for the level; absent if `n` values do not reach it.
fn signed_ranks(n: usize, level_percent: f64) -> Option<usize> {
    let tail = (1.0 - level_percent / 100.0) / 2.0;
    let sums = n * (n + 1) / 2;
    if n > EXACT_MAX {
        let (n, sums) = (n as f64, sums as f64);
        let z = normal_quantile(1.0 - tail);
        let cut = sums / 2.0 - z * (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        return (cut >= 1.0).then_some(cut.floor() as usize);
    }
    // Number of ways to choose ranks with each sum, out of 2^n.
    let mut ways = vec![0.0; sums + 1];
    ways[0] = 1.0;
    for rank in 1..=n {
        for sum in (rank..=sums).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let all = (n as f64).exp2();
    let mut below = 0.0;
    // The largest cut with P(sum < cut) <= tail.
    let cut = ways.iter().take_while(|&&ways| {
        below += ways;
        below / all <= tail
    });
    Some(cut.count()).filter(|&cut| cut > 0)
}

/// Half width of an interval by Student's t with integer degrees of freedom.
fn student_t(level_percent: f64, degrees: f64, error: f64) -> f64 {
    error * interval::student_t_quantile((1.0 + level_percent / 100.0) / 2.0, degrees)
}

/// Quantile of the normal distribution for a probability above one half: Student's t with so many
/// degrees of freedom that no difference remains.
fn normal_quantile(probability: f64) -> f64 {
    student_t(200.0 * probability - 100.0, 1e4, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_cut_offs_equal_published_tables() {
        // Hollander, Wolfe, Chicken, table A.4: P(T+ >= 52) = .005 for n = 10 (0.0049), so 4
        // averages are cut off.
        assert_eq!(signed_ranks(10, 99.0), Some(4));
        // n = 15: P(T+ >= 104) = .005, of 120.
        assert_eq!(signed_ranks(15, 99.0), Some(16));
        // Six values reach at most 97 %.
        assert_eq!(signed_ranks(6, 99.0), None);
        assert_eq!(signed_ranks(6, 95.0), Some(1));
        let (exact, normal) = (signed_ranks(60, 99.0).unwrap(), signed_ranks(61, 99.0).unwrap());
        assert!(normal > exact && normal - exact < 30, "{exact} {normal}");
        assert!((normal_quantile(0.975) - 1.959_964).abs() < 1e-3);
    }

    #[test]
    fn one_outlier_pair_hardly_changes_the_result() {
        let wave = |i: u32| 1.0 + 0.002 * f64::from(i % 3);
        let mut row: Vec<(f64, f64)> = (0..15).map(|i| (wave(i), 0.95 * wave(i + 1))).collect();
        row[4].1 = 0.2;
        let found = of_pairs(&row, 99.0).unwrap();
        assert!((found.ratio - 0.95).abs() < 0.002, "{found:?}");
        assert!(found.interval.unwrap().high < 0.955, "{found:?}");
        row.truncate(5);
        assert!(of_pairs(&row, 99.0).unwrap().interval.unwrap().high > 1.0, "five are not enough");
    }

    #[test]
    fn unpaired_series_have_wider_intervals() {
        let (base, new) = ([100.0; 5], [99.0; 5]);
        let found = of_series(&base, &new, 95.0).unwrap();
        let interval = found.interval.unwrap();
        assert!((found.ratio - 0.99).abs() < 1e-12);
        assert!(interval.high > 1.0 && interval.low < 0.98, "{interval:?}");
        let long = |value: f64| (0..12).map(|i| value + f64::from(i % 4)).collect::<Vec<f64>>();
        let found = of_series(&long(100.0), &long(90.0), 99.0).unwrap().interval.unwrap();
        assert_eq!(found.method, IntervalMethod::Ranks);
        assert!(found.high < 0.95, "{found:?}");
    }

    #[test]
    fn zero_rates_are_lower_than_others() {
        let all = of_pairs(&[(100.0, 0.0); 5], 99.0).unwrap();
        assert!(all.ratio < 1e-6 && all.interval.unwrap().high < 1e-6, "{all:?}");
        let some: Vec<(f64, f64)> =
            (0..30).map(|i| (100.0, if i % 2 == 0 { 0.0 } else { 50.0 })).collect();
        assert!(of_pairs(&some, 99.0).unwrap().interval.unwrap().high < 0.6);
        assert_eq!(of_pairs(&[(0.0, 0.0); 5], 99.0).unwrap().ratio, 1.0, "both are zero");
        let apart = of_series(&[100.0; 5], &[0.0; 5], 99.0).unwrap();
        assert!(apart.interval.unwrap().high < 1e-6, "{apart:?}");
    }

    #[test]
    fn values_without_a_ratio_have_no_result() {
        assert_eq!(of_pairs(&[], 99.0), None);
        assert_eq!(of_pairs(&[(f64::NAN, 1.0)], 99.0), None);
        assert_eq!(of_series(&[1.0], &[-1.0], 99.0), None);
        assert_eq!(of_pairs(&[(2.0, 1.0)], 99.0).unwrap().interval, None);
        assert_eq!(of_series(&[2.0], &[1.0], 99.0).unwrap().interval, None);
    }
}
