//! Tests of intervals with values from published tables and exact fractions.

use super::beta::ln_gamma;
use super::*;

fn assert_near(have: f64, want: f64, tolerance: f64) {
    assert!((have - want).abs() <= tolerance, "{have} should be {want} within {tolerance}");
}

#[test]
fn student_t_agrees_with_published_tables() {
    // Two-sided 95 % and 99 % quantiles from standard tables.
    for (freedom, t95, t99) in [
        (1.0, 12.7062, 63.6567),
        (2.0, 4.30265, 9.92484),
        (4.0, 2.77645, 4.60409),
        (9.0, 2.26216, 3.24984),
        (29.0, 2.04523, 2.75639),
        (1000.0, 1.96234, 2.58075),
    ] {
        assert_near(student_t_quantile(0.975, freedom), t95, 1e-4);
        assert_near(student_t_quantile(0.995, freedom), t99, 1e-4);
    }
    // Two degrees of freedom have a closed form.
    let p: f64 = 0.975;
    let exact = (2.0 * p - 1.0) * (2.0 / (4.0 * p * (1.0 - p))).sqrt();
    assert_near(student_t_quantile(p, 2.0), exact, 1e-9);
}

#[test]
fn gamma_and_binomial_functions_equal_exact_counts() {
    assert_near(ln_gamma(5.0), 24f64.ln(), 1e-12);
    assert_near(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln(), 1e-12);
    // Ten coins: 1 + 10 + 45 of 1024 outcomes show at most two heads.
    assert_near(binomial_cdf(2, 10, 0.5), 56.0 / 1024.0, 1e-12);
    assert_near(binomial_cdf(0, 3, 0.1), 0.9f64.powi(3), 1e-12);
    assert_eq!(binomial_cdf(3, 3, 0.1), 1.0);
}

#[test]
fn mean_of_three_repeats() {
    let interval = of_mean(&[9.0, 10.0, 11.0], 95.0).unwrap();
    let half = 4.302_652_73 / 3f64.sqrt();
    assert_near(interval.low, 10.0 - half, 1e-6);
    assert_near(interval.high, 10.0 + half, 1e-6);
    assert!(of_mean(&[9.0], 95.0).is_none());
    assert!(of_mean(&[9.0, 10.0, 11.0], 99.0).unwrap().high > interval.high);
}

#[test]
fn ranks_of_a_quantile_agree_with_published_tables() {
    // Published ranks of distribution-free intervals for the median at 95 %.
    for (count, low, high, level) in
        [(6, 1, 6, 96.875), (10, 2, 9, 97.852), (15, 4, 12, 96.484), (20, 6, 15, 95.861)]
    {
        let ranks = ranks_of_quantile(count, 0.5, 95.0).unwrap();
        assert_eq!((ranks.low, ranks.high), (low, high), "{count} samples");
        assert_near(ranks.level_percent, level, 1e-3);
    }
    assert_eq!(ranks_of_quantile(5, 0.5, 95.0), None);
    // One sample above p99 gives no upper end; a thousand samples give one close to the normal
    // ranks.
    assert_eq!(ranks_of_quantile(100, 0.99, 95.0), None);
    let wide = ranks_of_quantile(100_000, 0.99, 95.0).unwrap();
    let half = 1.96 * (100_000.0 * 0.99 * 0.01f64).sqrt();
    assert_near(wide.low as f64, 99_000.0 - half, 2.0);
    assert_near(wide.high as f64, 99_000.0 + half, 2.0);
    assert!(wide.level_percent >= 95.0);
}

#[test]
fn every_interval_has_its_stated_level() {
    for count in 6..200 {
        for quantile in [0.5, 0.9] {
            if let Some(ranks) = ranks_of_quantile(count, quantile, 95.0) {
                assert!(ranks.level_percent >= 95.0 && ranks.low < ranks.high, "{count} {ranks:?}");
            }
        }
    }
}

#[test]
fn three_repeats_have_a_median_interval_of_75_percent() {
    let interval = of_median(&[30.0, 10.0, 20.0], 95.0).unwrap();
    assert_eq!((interval.low, interval.high, interval.level_percent), (10.0, 30.0, 75.0));
    assert!(of_median(&[1.0], 95.0).is_none());
}

#[test]
fn a_slope_interval_excludes_zero_only_with_a_slope() {
    let line: Vec<(f64, f64)> = (0..10).map(|x| (f64::from(x), 3.0 * f64::from(x) - 7.0)).collect();
    let (slope, range) = of_slope(&line, 95.0).unwrap();
    assert_near(slope, 3.0, 1e-12);
    assert_near(range.high - range.low, 0.0, 1e-9);
    // Anscombe's first set: slope 0.5001, its standard error 0.1179, nine degrees of freedom.
    let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
    let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
    let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
    let (slope, range) = of_slope(&points, 95.0).unwrap();
    assert_near(slope, 0.5001, 1e-4);
    assert_near((range.high - range.low) / 2.0, 2.26216 * 0.1179, 1e-3);
    let flat: Vec<(f64, f64)> = (0..20).map(|x| (f64::from(x), f64::from(x % 2))).collect();
    assert!(of_slope(&flat, 95.0).unwrap().1.contains(0.0));
    assert_eq!(of_slope(&points[..2], 95.0), None);
    assert_eq!(of_slope(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)], 95.0), None);
}
