//! Hash of one word, for the tables of bridge and router.
//!
//! A folded multiplication (64 by 64 to 128 bits, halves combined), as in wyhash. The seed protects
//! against chosen addresses that collide. Not cryptographic.

use std::hash::{BuildHasher, Hasher};

/// Hashes `word`; all 64 bits are usable, the upper ones best.
#[inline]
pub fn mix(word: u64, seed: u64) -> u64 {
    let once = fold(word ^ seed, seed.rotate_left(23) ^ 0x9e37_79b9_7f4a_7c15);
    fold(once ^ 0xd6e8_feb8_6659_fd93, word ^ 0xa076_1d64_78bd_642f)
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// Creates maps whose iteration order depends only on a seed, so that runs are reproducible.
#[derive(Debug, Clone, Copy)]
pub struct Seeded(pub u64);

/// Hashes a key word by word.
#[derive(Debug)]
pub struct SeededHasher(u64);

impl BuildHasher for Seeded {
    type Hasher = SeededHasher;

    fn build_hasher(&self) -> SeededHasher {
        SeededHasher(self.0)
    }
}

impl Hasher for SeededHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = mix(word, self.0);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighboring_words_are_spread_evenly_for_every_seed() {
        for seed in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
            let mut places = vec![0u32; 1 << 10];
            for word in 0..1u64 << 16 {
                places[(mix(word, seed) >> 54) as usize] += 1;
            }
            // The expected value is 64; the bounds are at least six standard deviations away.
            assert!(places.iter().all(|&count| (16..=128).contains(&count)), "seed {seed}");
        }
    }

    #[test]
    fn the_seed_changes_the_positions() {
        let moved = (0..1000u64).filter(|&word| mix(word, 1) >> 54 != mix(word, 2) >> 54).count();
        assert!(moved > 980, "{moved}");
    }
}
