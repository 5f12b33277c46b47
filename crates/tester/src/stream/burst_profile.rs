//! Schedule shapes: constant, Poisson, bursts, on-off, and ramps.

use packet::time::Nanos;

use super::Rate;

/// Maximum duration of a ramp.
pub const RAMP_MAX: Nanos = Nanos::from_secs(3600);

/// How a stream's rate becomes send times.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum BurstProfile {
    /// Constant gaps.
    #[default]
    Constant,
    /// A Poisson process: exponentially distributed gaps with the rate's mean.
    ///
    /// Each block of [`crate::generator::poisson::BLOCK_FRAMES`] frames has the times of a Poisson
    /// process, conditioned on this number of frames in their mean duration. So the rate is exact,
    /// and any frame's time can be computed directly.
    Poisson {
        /// Equal seeds give equal times.
        seed: u64,
    },
    /// Repeated bursts of frames with a constant `gap`. The stream's rate is the mean rate.
    Bursts {
        /// Frames per burst, at least 1.
        frames: u64,
        /// Time from one frame of a burst to the next.
        gap: Nanos,
    },
    /// Constant rate for some time, then a pause.
    OnOff {
        /// Time with frames.
        on: Nanos,
        /// Time without frames.
        off: Nanos,
    },
    /// Linear change from the stream's rate to another one, which then remains. The warm-up has
    /// constant gaps at the stream's rate.
    Ramp {
        /// Final rate.
        to: Rate,
        /// Duration of the ramp, at most [`RAMP_MAX`].
        over: Nanos,
    },
}
