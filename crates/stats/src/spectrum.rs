//! Latency percentiles of single trials, from stored histograms.
//!
//! Source: HdrHistogram's percentile distributions, whose axis is 1 / (1 - percentile). A trial's
//! latencies are stored at [`STEPS`] steps per decade of that axis, as far as ten samples are
//! above. Invariant: percentiles of repeats are combined by their median, never averaged.

use std::collections::BTreeMap;

use crate::histogram::Histogram;
use crate::interval::{self, LEVEL_PERCENT};
use crate::series;
use record::Interval;

/// Preferred numbers (R10 of ISO 3), so that 50, 90, 99 % and so on are among the steps.
pub const STEPS: [f64; 10] = [1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0];

/// Number of decades: enough for more samples than any trial has.
const DECADES: i32 = 12;

/// Latencies of trials by percentile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spectra {
    /// By trial number: latencies in ns at the steps, smallest first.
    of: BTreeMap<u64, Vec<f64>>,
    /// Unreadable histograms with the reason.
    problems: Vec<String>,
}

/// Maximum number of unreadable histograms to list. The others are only counted.
const PROBLEMS_TOLD: usize = 3;

/// Combined latency of repeats at one percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpectrumPoint {
    /// 1 / (1 - percentile): 2 is the median, 100 the 99th percentile.
    pub inverse: f64,
    /// Median of the repeats' latencies.
    pub ns: f64,
    /// The median's interval; absent for one repeat.
    pub interval: Option<Interval>,
}

impl Spectra {
    /// Adds a trial's latencies.
    pub fn add(&mut self, trial: u64, histogram: &Histogram) {
        let quantile = |inverse: f64| histogram.ns_at_quantile(1.0 - 1.0 / inverse);
        let found = inverses().map_while(quantile).map(|ns| ns as f64);
        let found: Vec<f64> = found.collect();
        if !found.is_empty() {
            self.of.insert(trial, found);
        }
    }

    /// Records an omitted histogram and the reason.
    pub fn leave_out(&mut self, trial: u64, why: &str) {
        self.problems.push(format!("trial {trial}: {why}"));
    }

    /// Summary of the omitted histograms; empty if there are none.
    pub fn left_out(&self) -> Vec<String> {
        let mut told: Vec<String> = self.problems.iter().take(PROBLEMS_TOLD).cloned().collect();
        if self.problems.len() > told.len() {
            told.push(format!("and {} more trials", self.problems.len() - told.len()));
        }
        told
    }

    /// Combined percentiles of these trials, up to the highest that all trials with data reach;
    /// empty if none has data.
    pub fn of_trials(&self, trials: &[u64]) -> Vec<SpectrumPoint> {
        let rows: Vec<&Vec<f64>> = trials.iter().filter_map(|trial| self.of.get(trial)).collect();
        let reached = rows.iter().map(|row| row.len()).min().unwrap_or(0);
        let point = |(place, inverse): (usize, f64)| {
            let samples: Vec<f64> = rows.iter().map(|row| row[place]).collect();
            let interval = interval::of_median(&samples, LEVEL_PERCENT);
            series::median(&samples).map(|ns| SpectrumPoint { inverse, ns, interval })
        };
        inverses().take(reached).enumerate().filter_map(point).collect()
    }
}

fn inverses() -> impl Iterator<Item = f64> {
    (0..DECADES).flat_map(|decade| STEPS.map(|step| step * 10f64.powi(decade)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_are_percentiles_up_to_ten_remaining_samples() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|ns| histogram.record(ns));
        let mut spectra = Spectra::default();
        spectra.add(7, &histogram);
        let found = spectra.of_trials(&[7, 8]);
        let at = |inverse: f64| found.iter().find(|it| it.inverse == inverse).map(|it| it.ns);
        assert_eq!(
            (at(1.0), at(2.0), at(10.0), at(100.0)),
            (Some(1.0), Some(500.0), Some(900.0), Some(990.0))
        );
        assert_eq!(found.last().map(|it| it.inverse), Some(100.0), "nine samples are above p99.1");
        assert!(found.iter().all(|it| it.interval.is_none()), "one repeat has no interval");
        assert!(spectra.of_trials(&[8]).is_empty());
    }

    #[test]
    fn repeats_are_combined_by_their_median_up_to_the_common_percentile() {
        let mut spectra = Spectra::default();
        for (trial, factor, count) in [(1, 1u64, 1000), (2, 2, 1000), (3, 9, 100)] {
            let mut histogram = Histogram::new();
            (1..=count).for_each(|ns| histogram.record(ns * factor));
            spectra.add(trial, &histogram);
        }
        let found = spectra.of_trials(&[1, 2, 3]);
        assert_eq!(found.last().map(|it| it.inverse), Some(10.0));
        let least = found[0];
        assert_eq!(least.ns, 2.0);
        let interval = least.interval.unwrap();
        assert_eq!((interval.low, interval.high, interval.level_percent), (1.0, 9.0, 75.0));
    }
}
