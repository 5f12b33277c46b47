//! Confidence intervals for means, medians and slopes.
//!
//! Source: Student's t for means of repeats; order statistics (binomial ranks) for percentiles,
//! without assumptions about the distribution.
//! Invariant: an interval states the confidence level that its method actually reaches. The
//! interval of a median of three repeats therefore has 75 %, not a false 95 %.

mod beta;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::series;
use beta::beta_regularised;
use record::{Interval, IntervalMethod};
pub use record::{LEVEL_PERCENT, LEVEL_PERCENT_HIGH};

/// Size of the cache of quantiles.
const QUANTILES_KEPT: usize = 4096;

/// Interval of the mean of `values` by Student's t; absent below two values.
pub fn of_mean(values: &[f64], level_percent: f64) -> Option<Interval> {
    let middle = series::mean(values)?;
    let deviation = series::deviation(values)?;
    let n = values.len() as f64;
    let tail = (1.0 + level_percent / 100.0) / 2.0;
    let half = student_t_quantile(tail, n - 1.0) * deviation / n.sqrt();
    let method = IntervalMethod::StudentT;
    Some(Interval { low: middle - half, high: middle + half, level_percent, method })
}

/// Least-squares slope of a line through points, with its interval by Student's t. Absent below
/// three points, or if all have the same x.
pub fn of_slope(points: &[(f64, f64)], level_percent: f64) -> Option<(f64, Interval)> {
    let n = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let middle = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / n;
    let (x_mean, y_mean) = (middle(|point| point.0), middle(|point| point.1));
    let spread: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    if spread <= 0.0 {
        return None;
    }
    let slope = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum::<f64>() / spread;
    let left: f64 = points.iter().map(|(x, y)| (y - y_mean - slope * (x - x_mean)).powi(2)).sum();
    let error = (left / (n - 2.0) / spread).sqrt();
    let half = student_t_quantile((1.0 + level_percent / 100.0) / 2.0, n - 2.0) * error;
    let method = IntervalMethod::StudentT;
    Some((slope, Interval { low: slope - half, high: slope + half, level_percent, method }))
}

/// Interval of the median of `values` by order statistics; absent below two values. If there are
/// too few values for the level, the interval is the whole range with its actual level.
pub fn of_median(values: &[f64], level_percent: f64) -> Option<Interval> {
    let row = series::sorted(values);
    let count = row.len() as u64;
    if count < 2 {
        return None;
    }
    let ranks = ranks_of_quantile(count, 0.5, level_percent).unwrap_or_else(|| Ranks {
        low: 1,
        high: count,
        level_percent: coverage(count, 0.5, 1, count),
    });
    Some(Interval {
        low: row[ranks.low as usize - 1],
        high: row[ranks.high as usize - 1],
        level_percent: ranks.level_percent,
        method: IntervalMethod::OrderStatistics,
    })
}

/// Two ranks in a sorted series, counted from 1, that enclose a quantile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranks {
    /// Rank of the lower end.
    pub low: u64,
    /// Rank of the upper end.
    pub high: u64,
    /// Actual confidence level in percent, at least the requested one.
    pub level_percent: f64,
}

/// The ranks that enclose the `quantile` (0 to 1) of the distribution of `count` samples, with at
/// least this confidence. Each side has at most half the error probability. Absent if there are too
/// few samples.
pub fn ranks_of_quantile(count: u64, quantile: f64, level_percent: f64) -> Option<Ranks> {
    let doubt = (1.0 - level_percent / 100.0) / 2.0;
    // Lower end: the largest rank l with P(X < l) <= doubt, X counting samples below the quantile.
    let low = partition(count, |rank| binomial_cdf(rank, count, quantile) > doubt);
    // Upper end: the smallest rank u with P(X >= u) <= doubt.
    let high = partition(count, |below| 1.0 - binomial_cdf(below, count, quantile) <= doubt) + 1;
    if low == 0 || high > count {
        return None;
    }
    Some(Ranks { low, high, level_percent: coverage(count, quantile, low, high) })
}

/// The smallest `k` in `0..count` for which `holds`, or `count`; `holds` turns true once.
fn partition(count: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut from, mut to) = (0, count);
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(middle) { to = middle } else { from = middle + 1 }
    }
    from
}

/// Confidence in percent that the quantile lies between the ranks `low` and `high`.
fn coverage(count: u64, quantile: f64, low: u64, high: u64) -> f64 {
    let inside = binomial_cdf(high - 1, count, quantile) - binomial_cdf(low - 1, count, quantile);
    (inside * 1e8).round() / 1e6
}

/// Probability of at most `k` successes in `n` trials of probability `p`.
fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
    if k >= n { 1.0 } else { beta_regularised(1.0 - p, (n - k) as f64, k as f64 + 1.0) }
}

/// The value that Student's t with `freedom` degrees stays below with this probability (above
/// one half), to about nine digits. It is cached, because thousands of cells need the same few.
pub fn student_t_quantile(probability: f64, freedom: f64) -> f64 {
    thread_local! {
        static KNOWN: RefCell<BTreeMap<(u64, u64), f64>> = const { RefCell::new(BTreeMap::new()) };
    }
    KNOWN.with_borrow_mut(|known| {
        if known.len() > QUANTILES_KEPT {
            known.clear();
        }
        let key = (probability.to_bits(), freedom.to_bits());
        *known.entry(key).or_insert_with(|| find_student_t_quantile(probability, freedom))
    })
}

fn find_student_t_quantile(probability: f64, freedom: f64) -> f64 {
    assert!(
        (0.5..1.0).contains(&probability) && freedom >= 1.0,
        "an upper quantile of Student's t"
    );
    let (mut low, mut high) = (0.0, 1.0);
    while student_t_cdf(high, freedom) < probability {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if student_t_cdf(middle, freedom) < probability { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Probability that Student's t with `freedom` degrees stays below `t`, for `t` of at least 0.
fn student_t_cdf(t: f64, freedom: f64) -> f64 {
    1.0 - 0.5 * beta_regularised(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}
