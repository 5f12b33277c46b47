//! Random choices of a model, reproducible for each seed on every machine.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// Pseudorandom number generator.
#[derive(Debug)]
pub struct Chance(Pcg64);

impl Chance {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Chance {
        Chance(Pcg64::seed_from_u64(seed))
    }

    /// Returns a number below `sides`, which is not 0. Takes the high half of a 128-bit product,
    /// which is nearly uniform.
    pub fn below(&mut self, sides: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(sides)) >> 64) as u64
    }
}
