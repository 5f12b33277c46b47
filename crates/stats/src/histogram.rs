//! Latency histograms: three significant digits up to an hour, mergeable, never averaged.
//!
//! Source: HdrHistogram (its V2 encoding and its percentile text, `.hgrm`, which common viewers
//! plot). Invariants:
//!
//! - A percentile requires at least `SAMPLES_ABOVE_MIN` samples above it.
//! - Minimum, maximum and mean are exact, independent of the buckets.
//! - Stored text restores to an equal histogram.
//! - Times that do not occur allocate nothing.

mod buckets;
mod text;
#[cfg(test)]
mod tests;

pub use text::HistogramError;

use self::buckets::{Buckets, bucket, highest, lowest};
use crate::interval::{self, LEVEL_PERCENT};
use record::{Distribution, Interval, IntervalMethod, PercentileRange};

/// Minimum number of samples above a displayed percentile.
pub const SAMPLES_ABOVE_MIN: u64 = 10;

/// Largest time with a bucket: an hour in nanoseconds. Longer times count as this.
pub const NS_MAX: u64 = 3_600_000_000_000;

/// The percentiles of a summary.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Significant digits of a bucket.
const DIGITS: u8 = 3;

/// A histogram of times in nanoseconds.
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

    /// Counts a time.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Counts a time `times` times.
    #[inline]
    pub fn record_many(&mut self, ns: u64, times: u64) {
        if times == 0 {
            return;
        }
        let ns = ns.min(NS_MAX);
        self.buckets.add(bucket(ns), times);
        self.note(times, u128::from(ns) * u128::from(times), ns, ns);
    }

    /// Counts several times, faster than one by one.
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

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        other.buckets.counted().for_each(|(bucket, times)| self.buckets.add(bucket, times));
        self.note(other.count, other.sum_ns, other.ns_min, other.ns_max);
    }

    /// Updates the exact count, sum, minimum and maximum.
    #[inline]
    fn note(&mut self, count: u64, sum_ns: u128, least: u64, most: u64) {
        self.count = self.count.saturating_add(count);
        self.sum_ns += sum_ns;
        self.ns_min = self.ns_min.min(least);
        self.ns_max = self.ns_max.max(most);
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        *self = Histogram::new();
    }

    /// Number of counted times.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All non-empty buckets: upper limit and count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.buckets.counted().map(|(bucket, times)| (highest(bucket), times))
    }

    /// Smallest time; absent if the histogram is empty.
    pub fn ns_min(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.ns_min)
    }

    /// Largest time; absent if the histogram is empty.
    pub fn ns_max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.ns_max)
    }

    /// Exact mean; absent if the histogram is empty.
    pub fn ns_mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// The quantile (0 to 1) with three significant digits. Absent if fewer than
    /// [`SAMPLES_ABOVE_MIN`] samples are above it.
    pub fn ns_at_quantile(&self, quantile: f64) -> Option<u64> {
        let above = self.count() as f64 * (1.0 - quantile);
        (above + 1e-6 >= SAMPLES_ABOVE_MIN as f64).then(|| self.value_at_quantile(quantile))
    }

    /// Interval of a quantile by order statistics for independent samples, with at least
    /// `level_percent`. It includes the whole buckets of both ends. Absent if there are too few
    /// samples.
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

    /// The summary to store; absent if the histogram is empty. `file` is the file with the whole
    /// histogram.
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

    /// Interval of a percentile, if the summary contains the percentile.
    fn range(&self, percentile: f64) -> Option<PercentileRange> {
        self.ns_at_quantile(percentile / 100.0)?;
        let found = self.interval_of_quantile(percentile / 100.0, LEVEL_PERCENT)?;
        let (ns_low, ns_high) = (found.low as u64, found.high as u64);
        Some(PercentileRange { percentile, ns_low, ns_high, level_percent: found.level_percent })
    }

    /// A bucket's upper limit, clamped to the exact minimum and maximum.
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

    /// The sample of this rank in rising order, from 1, with three significant digits.
    pub fn ns_at_rank(&self, rank: u64) -> u64 {
        // Half a rank less, so that rounding in the division cannot select the next sample.
        self.value_at_quantile((rank as f64 - 0.5) / self.count() as f64)
    }
}
