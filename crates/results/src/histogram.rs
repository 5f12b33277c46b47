//! Latencies counted in buckets: three significant digits over an hour, mergeable, never averaged.
//!
//! Source: HdrHistogram (its V2 encoding and its percentile text, `.hgrm`, which common viewers
//! plot). Invariants: a percentile stands only where at least `SAMPLES_ABOVE_MIN` samples lie
//! above it; minimum, maximum and mean are exact, beside the buckets; what is written restores to
//! an equal histogram. Nothing is allocated for times that do not occur.

mod buckets;
mod text;
#[cfg(test)]
mod tests;

pub use text::HistogramError;

use self::buckets::{Buckets, bucket, highest, lowest};
use crate::interval::{self, LEVEL_PERCENT};
use crate::record::{Distribution, Interval, IntervalMethod, PercentileRange};

/// Samples that have to lie above a percentile before it is shown.
pub const SAMPLES_ABOVE_MIN: u64 = 10;

/// Largest time that has a bucket: an hour in nanoseconds. Longer times count as this long.
pub const NS_MAX: u64 = 3_600_000_000_000;

/// The percentiles of a summary.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Significant digits of a bucket.
const DIGITS: u8 = 3;

/// Counts of times in nanoseconds.
#[derive(Debug, Clone)]
pub struct Histogram {
    buckets: Buckets,
    count: u64,
    sum_ns: u128,
    ns_min: u64,
    ns_max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let buckets = Buckets::default();
        Histogram { buckets, count: 0, sum_ns: 0, ns_min: u64::MAX, ns_max: 0 }
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let exact = |it: &Histogram| (it.count, it.sum_ns, it.ns_min, it.ns_max);
        exact(self) == exact(other) && self.buckets.counted().eq(other.buckets.counted())
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Histogram::default()
    }

    /// Counts one time.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Counts one time as often as it occurred.
    #[inline]
    pub fn record_many(&mut self, ns: u64, times: u64) {
        if times == 0 {
            return;
        }
        let ns = ns.min(NS_MAX);
        self.buckets.add(bucket(ns), times);
        self.note(times, u128::from(ns) * u128::from(times), ns, ns);
    }

    /// Counts several times, which together cost less than one by one.
    #[inline]
    pub fn record_all(&mut self, times: impl Iterator<Item = u64>) {
        let (mut count, mut sum_ns, mut least, mut most) = (0, 0, u64::MAX, 0);
        for ns in times {
            let ns = ns.min(NS_MAX);
            self.buckets.add(bucket(ns), 1);
            count += 1;
            sum_ns += u128::from(ns);
            (least, most) = (least.min(ns), most.max(ns));
        }
        self.note(count, sum_ns, least, most);
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        other.buckets.counted().for_each(|(bucket, times)| self.buckets.add(bucket, times));
        self.note(other.count, other.sum_ns, other.ns_min, other.ns_max);
    }

    /// What is exact of so many times whose buckets were counted.
    #[inline]
    fn note(&mut self, count: u64, sum_ns: u128, least: u64, most: u64) {
        self.count = self.count.saturating_add(count);
        self.sum_ns += sum_ns;
        self.ns_min = self.ns_min.min(least);
        self.ns_max = self.ns_max.max(most);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Histogram::new();
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Every bucket that counted something: the longest time in it, and how many.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.buckets.counted().map(|(bucket, times)| (highest(bucket), times))
    }

    /// Smallest time; absent if none was counted.
    pub fn ns_min(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.ns_min)
    }

    /// Largest time; absent if none was counted.
    pub fn ns_max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.ns_max)
    }

    /// Mean, exact; absent if nothing was counted.
    pub fn ns_mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// The time that this share (0 to 1) of the samples does not exceed, to three digits. Absent
    /// where fewer than [`SAMPLES_ABOVE_MIN`] samples lie above it.
    pub fn ns_at_quantile(&self, quantile: f64) -> Option<u64> {
        let above = self.count() as f64 * (1.0 - quantile);
        (above + 1e-6 >= SAMPLES_ABOVE_MIN as f64).then(|| self.value_at_quantile(quantile))
    }

    /// Interval of a quantile by order statistics, for independent samples, at least as certain as
    /// `level_percent`. It holds the buckets of both its ends. Absent where there are too few samples
    /// to bound it.
    pub fn interval_of_quantile(&self, quantile: f64, level_percent: f64) -> Option<Interval> {
        let ranks = interval::ranks_of_quantile(self.count(), quantile, level_percent)?;
        let low = lowest(bucket(self.ns_at_rank(ranks.low)));
        Some(Interval {
            low: low.max(self.ns_min) as f64,
            high: self.ns_at_rank(ranks.high) as f64,
            level_percent: ranks.level_percent,
            method: IntervalMethod::OrderStatistics,
        })
    }

    /// The stored summary; absent if nothing was counted. `file` is where the whole is kept.
    pub fn distribution(&self, file: Option<String>) -> Option<Distribution> {
        Some(Distribution {
            count: self.count(),
            ns_min: self.ns_min()?,
            ns_mean: self.ns_mean()?,
            ns_p50: self.ns_at_quantile(0.5),
            ns_p90: self.ns_at_quantile(0.9),
            ns_p99: self.ns_at_quantile(0.99),
            ns_p999: self.ns_at_quantile(0.999),
            ns_p9999: self.ns_at_quantile(0.9999),
            ns_max: self.ns_max()?,
            ranges: PERCENTILES.iter().filter_map(|&it| self.range(it)).collect(),
            file,
        })
    }

    /// Between which times a percentile lies, if it is one that is shown.
    fn range(&self, percentile: f64) -> Option<PercentileRange> {
        self.ns_at_quantile(percentile / 100.0)?;
        let found = self.interval_of_quantile(percentile / 100.0, LEVEL_PERCENT)?;
        let (ns_low, ns_high) = (found.low as u64, found.high as u64);
        Some(PercentileRange { percentile, ns_low, ns_high, level_percent: found.level_percent })
    }

    /// A bucket's upper end, but never outside what was really counted.
    fn value_at_quantile(&self, quantile: f64) -> u64 {
        if quantile == 0.0 {
            return self.ns_min;
        }
        let wanted = ((quantile * self.count as f64).ceil() as u64).max(1);
        let mut below = 0u64;
        let found = self.buckets().find(|&(_, times)| {
            below = below.saturating_add(times);
            below >= wanted
        });
        found.map_or(0, |(ns, _)| ns).clamp(self.ns_min, self.ns_max)
    }

    /// The sample of this rank in rising order, from 1, to three digits.
    pub fn ns_at_rank(&self, rank: u64) -> u64 {
        // Half a rank down, so that rounding in the division cannot reach the next sample.
        self.value_at_quantile((rank as f64 - 0.5) / self.count() as f64)
    }
}
