//! When a stream's frames leave: evenly, at random, in bursts, for a while and then not, or ever
//! faster.

use packet::time::Nanos;

use super::Rate;

/// The longest that a rate may take to become another.
pub const RAMP_MAX: Nanos = Nanos::from_secs(3600);

/// How a stream's rate becomes moments.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Shape {
    /// Evenly.
    #[default]
    Constant,
    /// At random: the gaps are exponentially distributed, with the rate's mean. Of each
    /// [`crate::generate::poisson::BLOCK_FRAMES`] frames the times are those of a Poisson process of
    /// which it is known that so many frames fell into the time that they take on average; so the
    /// rate is exact, and the frame with any number can be found.
    Poisson {
        /// Equal seeds give equal moments.
        seed: u64,
    },
    /// So many frames a `gap` apart, over and over, as often as the rate asks for: the rate is that of
    /// all frames.
    Bursts {
        /// Frames of a burst, at least 1.
        frames: u64,
        /// From one frame of a burst to the next.
        gap: Nanos,
    },
    /// Evenly at the rate for some time, then none for some time.
    OnOff {
        /// How long frames are sent.
        on: Nanos,
        /// How long none are.
        off: Nanos,
    },
    /// From the stream's rate to another in a straight line, and on at that. While frames warm up they
    /// leave evenly, at the stream's rate.
    Ramp {
        /// The rate at the end.
        to: Rate,
        /// How long it takes, at most [`RAMP_MAX`].
        over: Nanos,
    },
}
