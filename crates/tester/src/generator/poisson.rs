//! Poisson processes with random access to any frame's time.
//!
//! Frames are grouped in blocks. A block takes exactly the mean time of its frames. Within it, the
//! times are those of a Poisson process conditioned on the number of frames: uniform, independent
//! and sorted. They are generated in order without sorting (J. L. Bentley, J. B. Saxe, "Generating
//! sorted lists of random numbers", ACM Transactions on Mathematical Software 6(3), 1980): each
//! frame reduces the rest of the block by a power of a random number. Gaps have an exponential
//! distribution but for one part in [`BLOCK_FRAMES`].

use crate::mix::{mix, unit};

/// Number of frames in a block.
pub const BLOCK_FRAMES: u64 = 1024;

/// Position in a block.
#[derive(Debug, Clone, Copy)]
pub struct BlockPosition {
    seed: u64,
    /// Natural logarithm of the rest of the block after the frame, less than 0.
    left: f64,
}

impl BlockPosition {
    /// Creates the position before a block's first frame.
    pub fn begin(seed: u64) -> Self {
        BlockPosition { seed, left: 0.0 }
    }

    /// Restores a position from [`BlockPosition::bits`].
    pub fn resume(seed: u64, bits: u64) -> Self {
        BlockPosition { seed, left: f64::from_bits(bits) }
    }

    /// Returns the position as bits.
    pub fn bits(self) -> u64 {
        self.left.to_bits()
    }

    /// Advances to frame `number` from the previous one, or from the block's start.
    #[inline]
    pub fn step(self, number: u64) -> Self {
        let draw = 1.0 - unit(mix(self.seed ^ mix(number)));
        let frames_left = BLOCK_FRAMES - number % BLOCK_FRAMES;
        BlockPosition { left: self.left + draw.ln() / frames_left as f64, ..self }
    }

    /// Returns the time into the block, for a block of length `span`.
    #[inline]
    pub fn after(self, span: u64) -> u64 {
        (span as f64 * -self.left.exp_m1()) as u64
    }
}
