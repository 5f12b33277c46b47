//! Trains: intact frames of a stream with successive numbers that left and arrived together.
//!
//! A generator at full load sends batches with one send time, and most targets keep them together.
//! Such frames are looked up, compared and counted once for all. The result is the same as one by
//! one.

use packet::time::Nanos;

use crate::generator::sender::TrafficPhase;
use crate::signature::SendTime;

/// Trains do not cross multiples of this number, so that one word has a bit for each frame.
pub(super) const FRAMES_MAX: u64 = 64;

/// Time of arrival of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ArrivalTime {
    pub(super) at: Nanos,
    /// End of the silence before it, if nothing arrived earlier.
    pub(super) silent_until: Nanos,
    /// Whether the delay is known: the tester stalled neither at departure nor at arrival.
    pub(super) is_known: bool,
}

/// Frames with successive numbers that are otherwise alike.
#[derive(Debug, Clone, Copy)]
pub(super) struct Train {
    /// Index of the stream.
    pub(super) place: u16,
    pub(super) phase: TrafficPhase,
    /// Number of the first frame.
    pub(super) number: u64,
    /// Number of frames.
    pub(super) frames: u64,
    /// Length of each frame.
    pub(super) bytes: usize,
    pub(super) sent: SendTime,
    pub(super) moment: ArrivalTime,
}

impl Train {
    /// Appends `next`, a train of one frame, if it continues this one.
    #[inline]
    pub(super) fn take(&mut self, next: &Train) -> bool {
        let common = |it: &Train| (it.place, it.phase, it.bytes, it.sent, it.moment);
        let follows = next.number == self.number.wrapping_add(self.frames)
            && !next.number.is_multiple_of(FRAMES_MAX)
            && common(self) == common(next);
        self.frames += follows as u64;
        follows
    }

    /// Returns the frames as trains of one.
    pub(super) fn each(self) -> impl Iterator<Item = Train> {
        (0..self.frames).map(move |place| Train { number: self.number + place, frames: 1, ..self })
    }
}

impl Default for Train {
    /// An empty train. No frame continues it, because none has the highest number.
    fn default() -> Self {
        let (number, sent) = (u64::MAX, SendTime::new(Nanos::ZERO));
        let moment = ArrivalTime { at: Nanos::ZERO, silent_until: Nanos::ZERO, is_known: false };
        Train { place: 0, phase: TrafficPhase::Measured, number, frames: 0, bytes: 0, sent, moment }
    }
}
