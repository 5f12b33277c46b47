//! Repeatable scatter: a number's bits stirred until they look random.
//!
//! Random choices of the instrument are functions of a seed and a position, not of how often a
//! generator was called before: what frame number one million looks like can be computed without
//! the frames before it. The stirring is the finaliser of Steele, Lea and Flood's SplitMix
//! ("Fast splittable pseudorandom number generators", OOPSLA 2014).

/// Stirs 64 bits: a bijection in which every input bit moves about half of the output bits.
#[inline]
pub fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A number below `limit` from random bits, even to one part in 2^64 / `limit`.
#[inline]
pub fn below(bits: u64, limit: u64) -> u64 {
    ((bits as u128 * limit as u128) >> 64) as u64
}

/// A number from 0 up to below 1 from random bits.
#[inline]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_even_and_within_the_limit() {
        let mut counts = [0u32; 10];
        for position in 0..100_000 {
            counts[below(mix(7 ^ mix(position)), 10) as usize] += 1;
        }
        // Each count is binomial with mean 10,000 and deviation 95: five deviations.
        assert!(counts.iter().all(|&count| (9_525..=10_475).contains(&count)), "{counts:?}");
    }

    #[test]
    fn one_bit_in_moves_half_of_the_bits_out() {
        let flips: u32 = (0..64).map(|bit| (mix(1234) ^ mix(1234 ^ (1 << bit))).count_ones()).sum();
        assert!((28 * 64..36 * 64).contains(&flips), "{flips}");
    }
}
