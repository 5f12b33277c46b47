//! Frames that are noted together: intact ones of a stream, with successive numbers, that left together
//! and came together.
//!
//! A generator at full load hands frames over by batches, which say one sending time, and most targets
//! keep them together. What such frames have in common is then looked up, compared and counted once
//! for all; it comes to what noting them one by one would.

use packet::time::Nanos;

use crate::generate::sender::Leg;
use crate::signature::Sent;

/// No train goes beyond a multiple of this, so that one word holds a bit for each of its frames.
pub(super) const FRAMES_MAX: u64 = 64;

/// When a frame arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) at: Nanos,
    /// Until when there was silence, if nothing came before.
    pub(super) silent_until: Nanos,
    /// Whether its delay follows from that: the tester was there when it left and when it came.
    pub(super) is_known: bool,
}

/// Frames with successive numbers that have all else in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Train {
    /// The place of their stream.
    pub(super) place: u16,
    pub(super) leg: Leg,
    /// The first one's number.
    pub(super) number: u64,
    /// How many.
    pub(super) frames: u64,
    /// The length of each.
    pub(super) bytes: usize,
    pub(super) sent: Sent,
    pub(super) moment: Moment,
}

impl Train {
    /// Takes in `next`, a train of one, if it follows.
    #[inline]
    pub(super) fn take(&mut self, next: &Train) -> bool {
        let common = |it: &Train| (it.place, it.leg, it.bytes, it.sent, it.moment);
        let follows = next.number == self.number.wrapping_add(self.frames)
            && !next.number.is_multiple_of(FRAMES_MAX)
            && common(self) == common(next);
        self.frames += follows as u64;
        follows
    }

    /// Each of the frames by itself.
    pub(super) fn each(self) -> impl Iterator<Item = Train> {
        (0..self.frames).map(move |place| Train { number: self.number + place, frames: 1, ..self })
    }
}

impl Default for Train {
    /// No frame; none follows it, since no frame has the last number of all.
    fn default() -> Self {
        let (number, sent) = (u64::MAX, Sent::new(Nanos::ZERO));
        let moment = Moment { at: Nanos::ZERO, silent_until: Nanos::ZERO, is_known: false };
        Train { place: 0, leg: Leg::Measured, number, frames: 0, bytes: 0, sent, moment }
    }
}
