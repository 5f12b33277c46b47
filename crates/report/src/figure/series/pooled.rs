//! Pools the distributions of several trials.
//!
//! The distribution of all values is the mean of the trials' distributions, weighted by their
//! numbers of values. The i-th of n values has the share i/n. A series begins with the first value,
//! so that its first share gives n.

/// Maximum number of points of the pooled distribution.
const POINTS: usize = 400;

/// The pooled distribution as pairs of a value and the share of values up to it, and the number of
/// values; none if a series does not give its number of values.
pub(super) fn of<'a>(all: impl Iterator<Item = &'a [[f64; 2]]>) -> Option<(Vec<[f64; 2]>, u64)> {
    let all: Vec<(&[[f64; 2]], f64)> =
        all.map(|points| Some((points, count(points)?))).collect::<Option<_>>()?;
    let total: f64 = all.iter().map(|(_, count)| count).sum();
    // Each point raises the pooled share in proportion to its step in its own trial.
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for (points, count) in all {
        let mut before = 0.0;
        for &[value, share] in points {
            steps.push((value, (share - before) * count / total));
            before = share;
        }
    }
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut share = 0.0;
    let mut points: Vec<[f64; 2]> = Vec::new();
    for (value, step) in steps {
        share += step;
        points.push([value, share.min(1.0)]);
    }
    points.last_mut()?[1] = 1.0;
    Some((thinned(points), total as u64))
}

/// Number of values in a distribution.
fn count(points: &[[f64; 2]]) -> Option<f64> {
    let first = points.first()?[1];
    (first > 0.0 && first <= 1.0).then(|| (1.0 / first).round())
}

/// At most [`POINTS`] of these points, including the first and the last.
fn thinned(points: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let (all, kept) = (points.len(), POINTS.min(points.len()));
    (0..kept).map(|place| points[place * (all - 1) / (kept - 1).max(1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the distribution of these values.
    fn distribution(values: &[f64]) -> Vec<[f64; 2]> {
        let all = values.len() as f64;
        values.iter().zip(1..).map(|(value, rank)| [*value, f64::from(rank) / all]).collect()
    }

    #[test]
    fn repeats_are_pooled_in_proportion_to_their_values() {
        let one = distribution(&[1.0, 3.0, 5.0]);
        let other = distribution(&[2.0]);
        let (points, count) = of([&one[..], &other[..]].into_iter()).unwrap();
        assert_eq!(count, 4);
        let values: Vec<f64> = points.iter().map(|point| point[0]).collect();
        assert_eq!(values, [1.0, 2.0, 3.0, 5.0]);
        for (point, share) in points.iter().zip([0.25, 0.5, 0.75, 1.0]) {
            assert!((point[1] - share).abs() < 1e-9, "{points:?}");
        }
    }

    #[test]
    fn a_series_without_a_count_is_not_pooled() {
        assert_eq!(of([&[[1.0, 0.0], [2.0, 1.0]][..]].into_iter()), None);
        assert_eq!(of(std::iter::empty()), None);
    }
}
