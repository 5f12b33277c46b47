//! Seeded random numbers for wrappers and for models of switches.
//!
//! The generator is PCG XSL RR 128/64 (O'Neill, 2014). Its seed fixes its sequence on every
//! platform.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// A random number generator determined by its seed.
#[derive(Debug, Clone)]
pub struct Chance(Pcg64);

impl Chance {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Chance(Pcg64::seed_from_u64(seed))
    }

    /// Returns true with this probability: never for 0 or less, always for 1 or more.
    pub fn happens(&mut self, probability: f64) -> bool {
        // 53 random bits are a number in [0, 1) with all of an f64's precision.
        let drawn = (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        drawn < probability
    }

    /// Returns a number below `bound`, which is not 0. The distribution is uniform, with a bias
    /// below 2^-32 for bounds below 2^32.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}
