//! Frames that a port sends at times in the future, and completes then.

use packet::time::Nanos;

/// When a port sends a frame, how often, and what it writes into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendSchedule {
    /// Time at which the frame leaves, or later if the port is late.
    pub due: Nanos,
    /// How late the frame may leave. If the port is later, it does not send the frame.
    pub slack: Nanos,
    /// Number of frames, at least one: the first one and its repetitions.
    pub frames: u32,
    /// Time between two of them.
    pub gap: Gap,
    /// What each frame has of its own, if anything.
    pub stamp: Option<StampPlace>,
}

/// Time between two frames, as an exact fraction of nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gap {
    /// Whole nanoseconds.
    pub whole: u64,
    /// The rest in `parts` of a nanosecond, less than one.
    pub rest: u64,
    /// Parts of a nanosecond, at most 2^63; zero without a rest.
    pub parts: u64,
    /// By how many parts the first frame is due after its whole nanosecond.
    pub carried: u64,
}

/// Place of a frame's number and send time: two numbers of 8 bytes in network byte order.
///
/// The second number has the low 48 bits of the send time in nanoseconds. Its lower 16 bits are the
/// upper 16 bits of `mix(mix(key ^ first) ^ seed ^ time)`, where `mix` is the finalizer of
/// SplitMix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampPlace {
    /// Offset of the 16 bytes.
    pub at: usize,
    /// The first number. Each repetition of the frame has the next one.
    pub number: u64,
    /// Key of the last two bytes.
    pub key: u64,
    /// Seed of the last two bytes.
    pub seed: u64,
    /// The Internet checksum that covers the 16 bytes, if any. They begin with one of its words.
    pub checksum: Option<ChecksumPlace>,
}

/// Place of an Internet checksum in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChecksumPlace {
    /// Offset of the checksum.
    pub at: usize,
    /// Ones' complement sum of all that it covers except the number and the send time.
    pub sum: u16,
    /// Replacement for a result of zero.
    pub zero: u16,
}

/// Result for a frame with a [`SendSchedule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendReport {
    /// Time at which it was due, or the frame that it repeats.
    pub due: Nanos,
    /// What happened to it.
    pub outcome: Outcome,
}

/// What happened to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It left at this time.
    Left(Nanos),
    /// The port was too late to send it.
    TooLate,
    /// It could not be sent.
    Rejected,
}

impl SendSchedule {
    /// Returns the departure of a single frame.
    pub fn once(due: Nanos, slack: Nanos, stamp: Option<StampPlace>) -> Self {
        SendSchedule { due, slack, frames: 1, gap: Gap::default(), stamp }
    }
}
