//! When each frame of a stream is due: exact integers, so that no rounding adds up.
//!
//! Frame k leaves at floor(k / rate), computed with 128 bits; the fast path adds a whole number of
//! nanoseconds and carries the remainder, and gives the same moments. After hours of any rate the
//! schedule is less than a nanosecond from the ideal one.

use packet::time::Nanos;

use crate::signature::NUMBER_MAX;
use crate::stream::{GAP_BYTES, Rate};

/// Rates and percentages are kept to one part in this.
const PARTS: u128 = 1_000_000;

/// The time between frames as an exact fraction of nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    over: u128,
    /// Below 2^63.
    under: u64,
    /// `over / under` and `over % under`.
    whole: u64,
    rest: u64,
}

/// Frames due between a beginning and an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// When frame 0 is due.
    pub start: Nanos,
    /// Time between frames.
    pub period: Period,
    /// How many frames.
    pub count: u64,
}

/// A place in a schedule that moves on without dividing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The frame at this place.
    pub number: u64,
    /// When it is due.
    pub due: Nanos,
    rest: u64,
}

impl Period {
    /// The period of this rate for frames of `frame_bytes` (frame check sequence included). The
    /// rate is one that [`crate::stream::Stream::validate`] accepts.
    pub fn new(rate: Rate, frame_bytes: usize) -> Self {
        const SECOND: u128 = 1_000_000_000;
        let parts = |number: f64| ((number * PARTS as f64).round() as u128).max(1);
        let (over, under) = match rate {
            Rate::FramesPerSecond(pps) => (SECOND * PARTS, parts(pps)),
            Rate::LinkPercent { percent, link_bits_per_second } => {
                let frame_bits = 8 * (frame_bytes + GAP_BYTES) as u128;
                let bits = u128::from(link_bits_per_second.max(1));
                (SECOND * 100 * PARTS * frame_bits, bits * parts(percent))
            }
        };
        let common = divisor(over, under);
        let (mut over, mut under) = (over / common, under / common);
        // Only percentages of the strangest links have fractions as long as this.
        while under >> 63 != 0 {
            (over, under) = (over >> 1, under >> 1);
        }
        let whole = u64::try_from(over / under).unwrap_or(u64::MAX);
        let rest = (over % under) as u64;
        Period { over, under: under as u64, whole, rest }
    }

    /// When frame `number` is due after frame 0, and the remainder in `under`ths of a nanosecond.
    fn at(&self, number: u64) -> (Nanos, u64) {
        let ticks = u128::from(number.min(NUMBER_MAX)) * self.over;
        let under = u128::from(self.under);
        (Nanos(u64::try_from(ticks / under).unwrap_or(u64::MAX)), (ticks % under) as u64)
    }

    /// How long `frames` periods take, rounded down.
    pub fn span(&self, frames: u64) -> Nanos {
        self.at(frames).0
    }

    /// How many frames are due within `span` after frame 0, which is due at once.
    pub fn frames_within(&self, span: Nanos) -> u64 {
        let frames = (u128::from(span.0) * u128::from(self.under)).div_ceil(self.over);
        u64::try_from(frames).unwrap_or(u64::MAX).min(NUMBER_MAX)
    }
}

impl Schedule {
    /// The frames due in `[start + phase, start + span)`.
    pub fn new(start: Nanos, phase: Nanos, span: Nanos, period: Period) -> Self {
        let count = period.frames_within(span.since(phase));
        Schedule { start: start.saturating_add(phase), period, count }
    }

    /// The place of frame `number`.
    pub fn seek(&self, number: u64) -> Cursor {
        let (after, rest) = self.period.at(number);
        Cursor { number, due: self.start.saturating_add(after), rest }
    }

    /// The place after `cursor`.
    #[inline]
    pub fn after(&self, cursor: Cursor) -> Cursor {
        let rest = cursor.rest + self.period.rest;
        let carry = rest >= self.period.under;
        let whole = Nanos(self.period.whole + carry as u64);
        let rest = if carry { rest - self.period.under } else { rest };
        Cursor { number: cursor.number + 1, due: cursor.due.saturating_add(whole), rest }
    }

    /// How many frames are due at `now` or before.
    pub fn due(&self, now: Nanos) -> u64 {
        if now < self.start {
            return 0;
        }
        self.period
            .frames_within(Nanos(now.0 - self.start.0).saturating_add(Nanos(1)))
            .min(self.count)
    }

    /// When frame `number` is due, quick if `cursor` is at or a little before it; moves `cursor`
    /// there.
    #[inline]
    pub fn due_near(&self, cursor: &mut Cursor, number: u64) -> Nanos {
        const NEAR: u64 = 32;
        if number < cursor.number || number - cursor.number > NEAR {
            *cursor = self.seek(number);
        }
        while cursor.number < number {
            *cursor = self.after(*cursor);
        }
        cursor.due
    }
}

/// The greatest common divisor.
fn divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(rate: Rate, frame_bytes: usize, span: Nanos) -> Schedule {
        Schedule::new(Nanos(5), Nanos::ZERO, span, Period::new(rate, frame_bytes))
    }

    #[test]
    fn line_rate_of_64_byte_frames_on_a_gigabit_is_672_nanoseconds() {
        let line = Rate::LinkPercent { percent: 100.0, link_bits_per_second: 1_000_000_000 };
        let schedule = schedule(line, 64, Nanos::from_secs(1));
        assert_eq!(schedule.seek(1).due, Nanos(5 + 672));
        // 1,488,095.238 frames: the last of them begins within the second.
        assert_eq!(schedule.count, 1_488_096);
    }

    #[test]
    fn stepping_and_seeking_agree_and_do_not_drift_over_hours() {
        for pps in [1.0, 3.0, 7e5, 1_488_095.238, 0.3] {
            let schedule = schedule(Rate::FramesPerSecond(pps), 64, Nanos::from_secs(36_000));
            let mut cursor = schedule.seek(0);
            for _ in 0..100_000 {
                cursor = schedule.after(cursor);
            }
            assert_eq!(cursor, schedule.seek(100_000));
            // Ten hours on, against the ideal moment in integers: micro-frames per second.
            let number = schedule.count - 1;
            let micro = (pps * 1e6).round() as u128;
            let ideal = u128::from(number) * 1_000_000_000_000_000 / micro;
            assert_eq!(u128::from(schedule.seek(number).due.0 - 5), ideal, "{pps}");
            let expected = (micro * 36_000).div_ceil(1_000_000) as u64;
            assert_eq!(schedule.count, expected, "{pps}");
        }
    }

    #[test]
    fn due_counts_exactly_the_frames_whose_moment_has_come() {
        let schedule = schedule(Rate::FramesPerSecond(3.0), 64, Nanos::from_secs(2));
        assert_eq!(schedule.count, 6);
        let moments: Vec<u64> = (0..6).map(|number| schedule.seek(number).due.0).collect();
        assert_eq!(moments[..3], [5, 333_333_338, 666_666_671]);
        for now in [0, 4, 5, 6, 333_333_337, 333_333_338, 666_666_671, 5_000_000_000] {
            let want = moments.iter().filter(|&&moment| moment <= now).count() as u64;
            assert_eq!(schedule.due(Nanos(now)), want, "at {now}");
        }
    }

    #[test]
    fn a_near_look_up_equals_a_far_one_forwards_and_backwards() {
        let schedule = schedule(Rate::FramesPerSecond(123_457.0), 64, Nanos::from_secs(1));
        let mut cursor = schedule.seek(0);
        for number in [0, 1, 5, 4, 20, 21, 21, 60, 3, 9_000] {
            assert_eq!(schedule.due_near(&mut cursor, number), schedule.seek(number).due);
        }
    }

    #[test]
    fn a_phase_moves_the_frames_but_not_the_end() {
        let period = Period::new(Rate::FramesPerSecond(10.0), 64);
        let late = Schedule::new(Nanos(0), Nanos(50_000_000), Nanos::from_secs(1), period);
        assert_eq!((late.seek(0).due, late.count), (Nanos(50_000_000), 10));
        assert!(late.seek(9).due < Nanos::from_secs(1));
        let last = Schedule::new(Nanos(0), Nanos(100_000_000), Nanos::from_secs(1), period);
        assert_eq!(last.count, 9);
    }
}
