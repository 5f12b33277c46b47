//! One target against another, by interleaved pairs.
//!
//! Targets are measured A B A B, so that what disturbs the machine disturbs both of a pair; the
//! ratio is taken within each pair and only then over pairs. Invariant: where the interval holds
//! 1 and reaches further than `ALIKE_RATIO` from it, or there is none, the answer is *unclear*.

use crate::interval::{self, LEVEL_PERCENT};
use crate::record::{Answer, Interval};
use crate::series;

/// From this many pairs the median of ratios with its bootstrap interval is used, which one odd
/// pair cannot move; with fewer, the geometric mean with Student's t, because resampling a few
/// values never looks beyond them.
pub const BOOTSTRAP_PAIRS_MIN: usize = 10;

/// What pairs say about a ratio.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Middle of the pairs' ratios.
    pub ratio: f64,
    /// Pairs.
    pub n: u32,
    /// Its interval; absent if there was one pair.
    pub interval: Option<Interval>,
    /// What may be said.
    pub answer: Answer,
}

/// Compares `value / base` over pairs; absent without a pair or if a value is not positive.
pub fn pairs(pairs: &[(f64, f64)], seed: u64) -> Option<Comparison> {
    if pairs.is_empty() || pairs.iter().any(|&(value, base)| value <= 0.0 || base <= 0.0) {
        return None;
    }
    let ratios: Vec<f64> = pairs.iter().map(|(value, base)| value / base).collect();
    let (ratio, interval) = if ratios.len() < BOOTSTRAP_PAIRS_MIN {
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        (series::mean(&logs)?.exp(), interval::of_ratio(&ratios, LEVEL_PERCENT))
    } else {
        let interval = interval::of_median_bootstrap(&ratios, LEVEL_PERCENT, seed);
        (series::median(&ratios)?, interval)
    };
    Some(Comparison { ratio, n: ratios.len() as u32, interval, answer: answer(interval) })
}

/// Ratios this near to 1 are called alike, if the whole interval is.
pub const ALIKE_RATIO: f64 = 0.01;

/// What an interval of a ratio allows to say.
pub fn answer(interval: Option<Interval>) -> Answer {
    match interval {
        Some(Interval { low, high, .. })
            if low >= 1.0 - ALIKE_RATIO && high <= 1.0 + ALIKE_RATIO =>
        {
            Answer::Alike
        }
        Some(interval) if interval.low > 1.0 => Answer::Higher,
        Some(interval) if interval.high < 1.0 => Answer::Lower,
        _ => Answer::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairing_removes_what_both_share() {
        // The machine slows down threefold over the run; within each pair the ratio stays near 2.
        let slowing = [(30.0, 15.1), (20.0, 9.9), (10.0, 5.05)];
        let paired = pairs(&slowing, 1).unwrap();
        assert_eq!(paired.answer, Answer::Higher);
        assert!((paired.ratio - 2.0).abs() < 0.03);
        let shuffled = [(30.0, 5.05), (20.0, 15.1), (10.0, 9.9)];
        assert_eq!(pairs(&shuffled, 1).unwrap().answer, Answer::Unclear);
    }

    #[test]
    fn alike_needs_a_narrow_interval_around_one() {
        let near = [(1.001, 1.0), (0.999, 1.0), (1.002, 1.0), (1.0, 1.0)];
        assert_eq!(pairs(&near, 1).unwrap().answer, Answer::Alike);
        let wide = [(1.05, 1.0), (0.95, 1.0), (1.0, 1.0)];
        assert_eq!(pairs(&wide, 1).unwrap().answer, Answer::Unclear);
    }

    #[test]
    fn one_pair_is_never_clear() {
        let one = pairs(&[(5.0, 1.0)], 1).unwrap();
        assert_eq!((one.n, one.interval, one.answer), (1, None, Answer::Unclear));
        assert!((one.ratio - 5.0).abs() < 1e-12);
        assert_eq!(pairs(&[], 1), None);
        assert_eq!(pairs(&[(0.0, 1.0), (1.0, 1.0)], 1), None);
    }

    #[test]
    fn many_pairs_shrug_off_an_odd_one() {
        let mut row: Vec<(f64, f64)> = (0..12).map(|n| (0.8 + 0.001 * f64::from(n), 1.0)).collect();
        row[3] = (80.0, 1.0);
        let compared = pairs(&row, 3).unwrap();
        assert_eq!(compared.answer, Answer::Lower);
        assert!((compared.ratio - 0.8065).abs() < 1e-9);
    }
}
