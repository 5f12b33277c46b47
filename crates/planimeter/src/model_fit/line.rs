//! Linear regression with uncertainties.
//!
//! Source: least squares.
//!
//! Invariants:
//!
//! - A line needs values at two positions at least.
//! - Residuals and uncertain values increase the uncertainty of the line.

/// A value at a position, with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Position.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Uncertainty.
    pub half: f64,
}

/// A line: values with their half widths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearFit {
    /// Value at position 0.
    pub at_zero: (f64, f64),
    /// Slope.
    pub slope: (f64, f64),
}

/// Fits the line through these values.
pub fn line(dots: &[Point]) -> Option<LinearFit> {
    let count = dots.len() as f64;
    let mean = |pick: fn(&Point) -> f64| dots.iter().map(pick).sum::<f64>() / count;
    let (x, y) = (mean(|dot| dot.x), mean(|dot| dot.y));
    let spread: f64 = dots.iter().map(|dot| (dot.x - x).powi(2)).sum();
    if dots.len() < 2 || spread <= 0.0 {
        return None;
    }
    let together: f64 = dots.iter().map(|dot| (dot.x - x) * (dot.y - y)).sum();
    let slope = together / spread;
    let off: f64 = dots.iter().map(|dot| (dot.y - y - slope * (dot.x - x)).powi(2)).sum();
    let off = if dots.len() > 2 { (off / (count - 2.0)).sqrt() } else { 0.0 };
    let known = (dots.iter().map(|dot| dot.half.powi(2)).sum::<f64>() / count).sqrt();
    let sigma = off.max(known);
    let at_zero_half = 2.0 * sigma * (1.0 / count + x * x / spread).sqrt();
    Some(LinearFit {
        at_zero: (y - slope * x, at_zero_half),
        slope: (slope, 2.0 * sigma / spread.sqrt()),
    })
}

/// Returns the mean of values, weighted by their certainty: value and half width.
pub fn mean(dots: &[Point]) -> Option<(f64, f64)> {
    let least = 1e-9;
    let weight = |dot: &Point| 1.0 / dot.half.max(least).powi(2);
    let weights: f64 = dots.iter().map(weight).sum();
    if dots.is_empty() {
        return None;
    }
    let value = dots.iter().map(|dot| weight(dot) * dot.y).sum::<f64>() / weights;
    let off = dots.iter().map(|dot| weight(dot) * (dot.y - value).powi(2)).sum::<f64>() / weights;
    let count = dots.len() as f64;
    let scatter = if dots.len() > 1 { 2.0 * (off / (count - 1.0)).sqrt() } else { 0.0 };
    Some((value, scatter.max(weights.sqrt().recip())))
}

/// Returns the median.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dots(values: &[(f64, f64)], half: f64) -> Vec<Point> {
        values.iter().map(|&(x, y)| Point { x, y, half }).collect()
    }

    #[test]
    fn a_line_is_found_with_the_accuracy_of_its_points() {
        let exact = line(&dots(&[(0.0, 3.0), (1.0, 5.0), (4.0, 11.0)], 0.0)).unwrap();
        let off = [exact.at_zero.0 - 3.0, exact.slope.0 - 2.0];
        assert!(off.iter().all(|off| off.abs() < 1e-9), "{exact:?}");
        assert!(exact.slope.1 < 1e-9);
        let vague = line(&dots(&[(0.0, 0.0), (10.0, 20.0)], 1.0)).unwrap();
        assert!(vague.slope.1 >= 0.2, "two values off by one each: {vague:?}");
        let bent = line(&dots(&[(0.0, 0.0), (1.0, 9.0), (2.0, 0.0)], 0.0)).unwrap();
        assert!(bent.slope.1 > 5.0, "{bent:?}");
    }

    #[test]
    fn points_at_one_position_have_no_line() {
        assert_eq!(line(&dots(&[(2.0, 1.0), (2.0, 5.0)], 0.1)), None);
        assert_eq!(line(&[]), None);
    }

    #[test]
    fn more_accurate_points_have_more_weight() {
        let dots = [Point { x: 0.0, y: 10.0, half: 0.1 }, Point { x: 0.0, y: 20.0, half: 10.0 }];
        let (value, half) = mean(&dots).unwrap();
        assert!((10.0..10.1).contains(&value) && half >= 0.09, "{value} {half}");
        assert_eq!(mean(&[]), None);
    }
}
