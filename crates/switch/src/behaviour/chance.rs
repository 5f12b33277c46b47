//! Random choices of a model: the same for the same seed, on every machine.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// A sequence of choices.
#[derive(Debug)]
pub struct Chance(Pcg64);

impl Chance {
    /// The choices that follow from a seed.
    pub fn new(seed: u64) -> Chance {
        Chance(Pcg64::seed_from_u64(seed))
    }

    /// A number below `sides`, which is not 0: the high half of a product, as even as 64 bits are.
    pub fn below(&mut self, sides: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(sides)) >> 64) as u64
    }
}
