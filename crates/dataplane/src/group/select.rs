//! Choice of a bucket for a flow by weighted rendezvous hashing.
//!
//! Source: D. G. Thaler and C. V. Ravishankar, "Using name-based mappings to increase hit rates",
//! IEEE/ACM Transactions on Networking 6(1), 1998; weights as in the CRUSH "straw2" bucket. Each
//! bucket draws a number u in (0, 1] by hashing itself with the flow, and the smallest −log u /
//! weight wins. Bucket i wins with probability wᵢ / Σw. A draw does not depend on other buckets, so
//! if a bucket is removed, only its own flows move.
//!
//! The logarithm uses integers, so that the choice is the same on every machine.

use crate::hash::mix;

/// Steps of the logarithm table.
const STEPS: usize = 1024;
/// Number of fraction bits of a logarithm.
const FRACTION_BITS: u32 = 32;

/// log₂(1 + index / [`STEPS`]), with [`FRACTION_BITS`].
static LOGARITHMS: [u64; STEPS + 1] = logarithms();

/// Returns the index of the bucket for a flow, given indexes, identities and weights. A bucket with
/// weight zero never wins.
pub fn choose(flow: u64, buckets: impl Iterator<Item = (usize, u64, u16)>) -> Option<usize> {
    let mut best: Option<(usize, u64, u64)> = None;
    for (place, identity, weight) in buckets.filter(|(.., weight)| *weight > 0) {
        let (weight, draw) = (u64::from(weight), minus_log(mix(flow ^ identity, identity)));
        // draw / weight < best draw / best weight, without division: both sides are below 2⁵⁵.
        if best.is_none_or(|(_, other, heavy)| draw * heavy < other * weight) {
            best = Some((place, draw, weight));
        }
    }
    best.map(|(place, ..)| place)
}

/// −log₂ of (`word` + 1) / 2⁶⁴, with [`FRACTION_BITS`].
#[inline]
fn minus_log(word: u64) -> u64 {
    let word = word | 1;
    let zeros = word.leading_zeros();
    // Bits after the leading one: ten select the step, the next 22 interpolate between steps.
    let behind = (word << zeros) << 1;
    let step = (behind >> 54) as usize;
    let (low, high) = (LOGARITHMS[step], LOGARITHMS[step + 1]);
    let between = ((high - low) * (behind >> 32 & 0x3f_ffff)) >> 22;
    (u64::from(zeros + 1) << FRACTION_BITS) - (low + between)
}

const fn logarithms() -> [u64; STEPS + 1] {
    let mut table = [0; STEPS + 1];
    let mut step = 0;
    while step < STEPS {
        table[step] = logarithm(((1u128 << 64) * (STEPS + step) as u128) / STEPS as u128);
        step += 1;
    }
    table[STEPS] = 1 << FRACTION_BITS;
    table
}

/// Returns log₂ of a number that is at least 1 and below 2, given with 64 fraction bits. Squaring
/// doubles the logarithm and so yields its bits one by one.
const fn logarithm(number: u128) -> u64 {
    let (mut number, mut log, mut bit) = (number >> 2, 0, 0);
    while bit < FRACTION_BITS {
        number = (number * number) >> 62;
        log <<= 1;
        if number >= 1 << 63 {
            log |= 1;
            number >>= 1;
        }
        bit += 1;
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_correct_to_a_millionth() {
        let mut word = 1u64;
        for _ in 0..10_000 {
            word = mix(word, 5);
            for word in [word, word >> 40, word >> (word & 63)] {
                let exact = 64.0 - ((word | 1) as f64).log2();
                let ours = minus_log(word) as f64 / (1u64 << FRACTION_BITS) as f64;
                assert!((exact - ours).abs() < 1e-6, "{word:#x}: {exact} {ours}");
            }
        }
        assert_eq!(minus_log(0), 64 << FRACTION_BITS);
        assert_eq!(minus_log(1 << 63), 1 << FRACTION_BITS);
    }

    #[test]
    fn shares_are_proportional_to_the_weights() {
        const FLOWS: u64 = 200_000;
        for weights in [&[1, 1, 1][..], &[1, 2, 3, 4], &[65_535, 1, 300, 0], &[7; 20]] {
            let mut counts = vec![0u64; weights.len()];
            for flow in 0..FLOWS {
                let buckets = weights.iter().enumerate();
                let buckets = buckets.map(|(place, weight)| (place, place as u64 + 77, *weight));
                counts[choose(mix(flow, 9), buckets).unwrap()] += 1;
            }
            let sum: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
            let chi_square = (weights.iter().zip(&counts)).filter(|(weight, _)| **weight > 0).fold(
                0.0,
                |chi, (weight, count)| {
                    let expected = FLOWS as f64 * f64::from(*weight) / sum;
                    chi + (*count as f64 - expected).powi(2) / expected
                },
            );
            // With d degrees of freedom, the mean is d and the variance 2 d; at least 99.99 % of
            // fair draws stay below this.
            let freedom = weights.iter().filter(|weight| **weight > 0).count() as f64 - 1.0;
            let most = freedom + 5.0 * (2.0 * freedom).sqrt();
            assert!(chi_square < most, "{weights:?}: {counts:?}, chi square {chi_square}");
        }
    }

    #[test]
    fn no_bucket_is_chosen_if_all_weights_are_zero() {
        assert_eq!(choose(5, [].into_iter()), None);
        assert_eq!(choose(5, [(0, 3, 0), (1, 4, 0)].into_iter()), None);
    }
}
