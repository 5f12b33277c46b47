//! Hash function for reproducible pseudo-random values.
//!
//! Random choices are functions of a seed and a position, not of a generator's state. So the
//! content of frame number one million can be computed without the frames before it. The function
//! is the finalizer of SplitMix (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", OOPSLA 2014).

/// Mixes 64 bits: a bijection in which each input bit flips about half of the output bits.
#[inline]
pub fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Maps random bits to a number below `limit`, uniform to one part in 2^64 / `limit`.
#[inline]
pub fn below(bits: u64, limit: u64) -> u64 {
    ((bits as u128 * limit as u128) >> 64) as u64
}

/// Maps random bits to a number in [0, 1).
#[inline]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_uniform_and_within_the_limit() {
        let mut counts = [0u32; 10];
        for position in 0..100_000 {
            counts[below(mix(7 ^ mix(position)), 10) as usize] += 1;
        }
        // Each count is binomial with mean 10,000 and standard deviation 95. The limits are five
        // deviations.
        assert!(counts.iter().all(|&count| (9_525..=10_475).contains(&count)), "{counts:?}");
    }

    #[test]
    fn a_changed_input_bit_changes_half_of_the_output_bits() {
        let flips: u32 = (0..64).map(|bit| (mix(1234) ^ mix(1234 ^ (1 << bit))).count_ones()).sum();
        assert!((28 * 64..36 * 64).contains(&flips), "{flips}");
    }
}
