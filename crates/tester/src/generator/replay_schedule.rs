//! Schedule of a replay, in exact integers without accumulating rounding errors.
//!
//! Times never decrease, for any file, and continue from pass to pass.

use netio::capture::read_ahead::FrameLocation;
use packet::frame::FCS_BYTES;
use packet::time::Nanos;

use crate::generator::schedule::{Cursor, Period, Schedule};
use crate::stream::replay::{Failure, Timing};
use crate::stream::{GAP_BYTES, Rate};

/// Resolution of factors, in parts of one.
const PARTS: u128 = 1_000_000_000;

const SECOND: u64 = 1_000_000_000;

/// Schedule of a replay in progress.
#[derive(Debug)]
pub struct ReplaySchedule {
    start: Nanos,
    kind: Kind,
    /// Number of frames of the file so far, over all passes.
    met: u64,
}

#[derive(Debug)]
enum Kind {
    /// Captured times, with gaps scaled by `parts` of [`PARTS`].
    Own { parts: u128, pass: FilePosition },
    /// Constant gap.
    Gap { gap: Nanos, next: Nanos },
    /// Constant rate.
    Rate { schedule: Schedule, cursor: Cursor },
    /// Back to back over a link: bit rate, due time of the next frame, and the remaining fraction
    /// of a nanosecond in units of 1/`bits`.
    Link { bits: u64, next: Nanos, rest: u64 },
    /// Immediately.
    Unpaced,
}

/// Position in the file, in the file's own time since its first pass.
#[derive(Debug, Default)]
struct FilePosition {
    begins: u64,
    /// Capture time of the pass's first frame.
    first: Nanos,
    latest: u64,
    frames: u64,
}

impl ReplaySchedule {
    /// Creates a schedule whose first frame is due at `start`.
    pub fn new(timing: Timing, start: Nanos) -> Self {
        let own = |factor: f64| Kind::Own {
            parts: ((factor * PARTS as f64).round() as u128).max(1),
            pass: FilePosition::default(),
        };
        let kind = match timing {
            Timing::Original => own(1.0),
            Timing::Scaled(factor) => own(factor),
            Timing::Gap(gap) => Kind::Gap { gap, next: start },
            Timing::FramesPerSecond(pps) => {
                let period = Period::new(Rate::FramesPerSecond(pps), 0);
                let schedule = Schedule::endless(start, period);
                Kind::Rate { schedule, cursor: schedule.seek(0) }
            }
            Timing::Link(bits) => Kind::Link { bits: bits.max(1), next: start, rest: 0 },
            Timing::Unpaced => Kind::Unpaced,
        };
        ReplaySchedule { start, kind, met: 0 }
    }

    /// Returns whether frames have due times.
    pub fn is_paced(&self) -> bool {
        !matches!(self.kind, Kind::Unpaced)
    }

    /// Returns when the next frame is due. It is sent with this size.
    #[inline]
    pub fn due(&mut self, place: FrameLocation, frame_bytes: usize) -> Result<Nanos, Failure> {
        self.met += 1;
        Ok(match &mut self.kind {
            Kind::Own { parts, pass } => {
                let after = pass.meet(place, self.met - 1)?;
                let scaled = match *parts {
                    PARTS => after,
                    parts => u64::try_from(u128::from(after) * parts / PARTS).unwrap_or(u64::MAX),
                };
                self.start.saturating_add(Nanos(scaled))
            }
            Kind::Gap { gap, next } => {
                let due = *next;
                *next = due.saturating_add(*gap);
                due
            }
            Kind::Rate { schedule, cursor } => {
                let due = cursor.due;
                *cursor = schedule.after(*cursor);
                due
            }
            Kind::Link { bits, next, rest } => {
                let due = *next;
                // The frame's bits and a remainder below 2^64.
                let frame_bits = 8 * (frame_bytes + FCS_BYTES + GAP_BYTES) as u64;
                let ticks = u128::from(frame_bits * SECOND) + u128::from(*rest);
                let (whole, left) = match u64::try_from(ticks) {
                    Ok(ticks) => (ticks / *bits, ticks % *bits),
                    Err(_) => {
                        let bits = u128::from(*bits);
                        ((ticks / bits) as u64, (ticks % bits) as u64)
                    }
                };
                *next = due.saturating_add(Nanos(whole));
                *rest = left;
                due
            }
            Kind::Unpaced => self.start,
        })
    }

    /// Skips the next frame. Its captured time still passes, if it is used.
    pub fn pass_over(&mut self, place: FrameLocation) -> Result<(), Failure> {
        self.met += 1;
        match &mut self.kind {
            Kind::Own { pass, .. } => pass.meet(place, self.met - 1).map(|_| ()),
            _ => Ok(()),
        }
    }
}

impl FilePosition {
    /// Returns when this frame is due after the very first one, in the file's own time.
    fn meet(&mut self, place: FrameLocation, number: u64) -> Result<u64, Failure> {
        let at = place.at.ok_or(Failure::NoTime(number))?;
        if place.is_first {
            if self.frames > 0 {
                let span = self.latest - self.begins;
                let gap = span / (self.frames - 1).max(1);
                if gap == 0 {
                    return Err(Failure::NoGaps);
                }
                self.begins = self.latest.saturating_add(gap);
            }
            (self.first, self.frames) = (at, 0);
        }
        self.frames += 1;
        let after = self.begins.saturating_add(at.since(self.first).0);
        self.latest = self.latest.max(after);
        Ok(self.latest)
    }
}
