//! Moments of a Poisson process of which any frame's can be found.
//!
//! Frames come in blocks. A block takes exactly the time that its frames take on average, and within
//! it their times are those of a Poisson process of which it is known that so many fell into this
//! time: uniform and independent, in order. These are found one after the other without sorting
//! (J. L. Bentley, J. B. Saxe, "Generating sorted lists of random numbers", ACM Transactions on
//! Mathematical Software 6(3), 1980): what is left of the block shrinks, frame by frame, by a power of
//! a random number. Gaps have the exponential distribution but for one part in [`BLOCK_FRAMES`].

use crate::mix::{mix, unit};

/// Frames of a block.
pub const BLOCK_FRAMES: u64 = 1024;

/// A place in a block.
#[derive(Debug, Clone, Copy)]
pub struct Walk {
    seed: u64,
    /// The natural logarithm of what is left of the block behind the frame, less than 0.
    left: f64,
}

impl Walk {
    /// Before the first frame of a block.
    pub fn begin(seed: u64) -> Self {
        Walk { seed, left: 0.0 }
    }

    /// At a frame that [`Walk::bits`] told of.
    pub fn resume(seed: u64, bits: u64) -> Self {
        Walk { seed, left: f64::from_bits(bits) }
    }

    /// The place as bits.
    pub fn bits(self) -> u64 {
        self.left.to_bits()
    }

    /// Goes to frame `number` from the one before it, or from the block's beginning.
    #[inline]
    pub fn step(self, number: u64) -> Self {
        let draw = 1.0 - unit(mix(self.seed ^ mix(number)));
        let frames_left = BLOCK_FRAMES - number % BLOCK_FRAMES;
        Walk { left: self.left + draw.ln() / frames_left as f64, ..self }
    }

    /// How far into the block it is, of a whole of `span`.
    #[inline]
    pub fn after(self, span: u64) -> u64 {
        (span as f64 * -self.left.exp_m1()) as u64
    }
}
