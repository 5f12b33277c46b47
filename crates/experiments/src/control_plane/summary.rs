//! Summary of many values: minimum, median, percentiles, maximum.
//!
//! Invariant: a percentile is reported only if at least ten samples are above it.

use tester::module::{MeasuredValue, Series};

/// Minimum number of samples above a percentile.
const ABOVE_MIN: f64 = 10.0;

/// Maximum number of points of a distribution.
const POINTS: usize = 400;

/// Samples in rising order; at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary(Vec<f64>);

impl Summary {
    /// Creates the summary of these samples; `None` if there are none.
    pub fn of(mut samples: Vec<f64>) -> Option<Summary> {
        samples.sort_by(f64::total_cmp);
        (!samples.is_empty()).then_some(Summary(samples))
    }

    /// Returns the number of samples.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the smallest sample.
    pub fn least(&self) -> f64 {
        self.0[0]
    }

    /// Returns the largest sample.
    pub fn greatest(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// Returns the mean.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Returns the quantile at this share, interpolated between samples.
    pub fn quantile(&self, share: f64) -> f64 {
        let place = share * (self.0.len() - 1) as f64;
        let (below, above) = (place.floor() as usize, place.ceil() as usize);
        self.0[below] + (self.0[above] - self.0[below]) * place.fract()
    }

    /// Returns the empirical distribution of samples in nanoseconds: the share i/n at the i-th of n samples.
    ///
    /// It begins at the first sample, so that the first share gives n.
    pub fn distribution(&self, name: String, over: &'static str) -> Series {
        let (all, points) = (self.0.len(), POINTS.min(self.0.len()));
        let rank = |place: usize| 1 + place * (all - 1) / (points - 1).max(1);
        let point = |rank: usize| (self.0[rank - 1], rank as f64 / all as f64);
        let points = (0..points).map(|place| point(rank(place)));
        Series {
            name: name.into(),
            unit: "ratio".into(),
            x_name: over.into(),
            x_unit: "ns".into(),
            points: points.collect(),
        }
    }

    /// Returns half of the interquartile range, an estimate of the median's uncertainty.
    pub fn quartiles_half(&self) -> f64 {
        (self.quantile(0.75) - self.quantile(0.25)) / 2.0
    }

    /// Reports values with only lower and upper bounds.
    ///
    /// `least` and `greatest` have the same length. Each reported value covers everything that the bounds allow.
    pub fn tell_between(
        least: &Summary,
        greatest: &Summary,
        name: &str,
        tell: &mut impl FnMut(MeasuredValue),
    ) {
        let (mut low, mut high) = (Vec::new(), Vec::new());
        least.tell(name, 0.0, &mut |measured| low.push(measured));
        greatest.tell(name, 0.0, &mut |measured| high.push(measured));
        for (low, high) in low.into_iter().zip(high) {
            let (value, half) = ((low.value + high.value) / 2.0, (high.value - low.value) / 2.0);
            tell(MeasuredValue { value, half_width: Some(half), ..low });
        }
    }

    /// Reports `NAME_min`, `_p50`, `_p90`, `_p99`, `_max` and `_mean` in nanoseconds, each with the uncertainty
    /// `half`.
    pub fn tell(&self, name: &str, half: f64, tell: &mut impl FnMut(MeasuredValue)) {
        let mut say = |what: &str, value: f64| {
            let named = MeasuredValue::new(format!("{name}_{what}"), "ns", value, half);
            tell(named.of(self.count()));
        };
        say("min", self.least());
        say("p50", self.quantile(0.5));
        for (what, share) in [("p90", 0.9), ("p99", 0.99)] {
            if (1.0 - share) * self.0.len() as f64 + 1e-9 >= ABOVE_MIN {
                say(what, self.quantile(share));
            }
        }
        say("max", self.greatest());
        say("mean", self.mean());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_have_the_expected_values() {
        let spread = Summary::of(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((spread.least(), spread.quantile(0.5), spread.greatest()), (1.0, 2.5, 4.0));
        assert_eq!(spread.mean(), 2.5);
        assert_eq!(Summary::of(Vec::new()), None);
    }

    #[test]
    fn a_distribution_ranges_from_minimum_to_maximum() {
        let spread = Summary::of((0..1000).map(f64::from).collect()).unwrap();
        let series = spread.distribution("x_share".into(), "round_trip_ns");
        assert_eq!((series.points[0], series.points[399]), ((0.0, 0.001), (999.0, 1.0)));
        assert_eq!(series.points.len(), 400);
        // The i-th of n samples has the share i/n.
        assert!(series.points.iter().all(|(value, share)| *share == (value + 1.0) / 1000.0));
        let one = Summary::of(vec![7.0]).unwrap().distribution("x_share".into(), "x");
        assert_eq!(one.points, [(7.0, 1.0)]);
    }

    #[test]
    fn a_percentile_needs_ten_samples_above_it() {
        let reported = |count: u32| {
            let mut names = Vec::new();
            let spread = Summary::of((0..count).map(f64::from).collect()).unwrap();
            spread.tell("x_ns", 0.0, &mut |measured| names.push(measured.name.to_string()));
            names
        };
        assert_eq!(reported(99), ["x_ns_min", "x_ns_p50", "x_ns_max", "x_ns_mean"]);
        assert!(reported(100).contains(&"x_ns_p90".to_string()));
        assert!(reported(1000).contains(&"x_ns_p99".to_string()));
    }
}
