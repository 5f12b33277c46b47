//! Exact schedules of a stream's frames, in integers without accumulating rounding errors.
//!
//! - Frame k of a constant rate is due at floor(k / rate), computed with 128 bits.
//! - The fast path adds a whole number of nanoseconds and carries the remainder, with the same
//!   result.
//! - After hours at any rate, the schedule is less than a nanosecond from the ideal one.
//! - Bursts, random blocks and ramps start at exact fractions, so they do not accumulate errors
//!   either.
//! - Any frame's time can be computed without those of earlier frames.

use netio::departure::Gap;
use packet::time::Nanos;

use crate::generator::poisson::{BLOCK_FRAMES, BlockPosition};
use crate::generator::ramp::Ramp;
use crate::signature::NUMBER_MAX;
use crate::stream::{BurstProfile, GAP_BYTES, Rate, Stream};

/// Resolution of rates and percentages, in parts of one.
const PARTS: u128 = 1_000_000;

/// Time between frames as an exact fraction of nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    over: u128,
    /// Below 2^63.
    under: u64,
    /// `over / under` and `over % under`.
    whole: u64,
    rest: u64,
}

/// Frames due between a start and an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Due time of frame 0 at a constant rate, or start of another shape.
    pub start: Nanos,
    /// Time between frames, or its mean.
    pub period: Period,
    /// Number of frames.
    pub count: u64,
    course: ScheduleShape,
}

/// Shape of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScheduleShape {
    /// Constant gap.
    Even,
    /// Random, in blocks.
    Poisson { seed: u64 },
    /// Bursts of frames with constant gaps, repeated after a cycle.
    Bursts { frames: u64, inside: Period, cycle: Period },
    /// Linear change of rate.
    Ramp(Ramp),
}

/// Position in a schedule that advances without division.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Number of the frame.
    pub number: u64,
    /// When it is due.
    pub due: Nanos,
    /// Remainder: a fraction of a nanosecond, or the state of a random walk.
    rest: u64,
}

impl Period {
    /// Returns the period of this rate for frames of `frame_bytes` (frame check sequence included).
    ///
    /// [`crate::stream::Stream::validate`] must accept the rate.
    pub fn new(rate: Rate, frame_bytes: usize) -> Self {
        Period::of(rate, (frame_bytes as u64, 1))
    }

    /// Returns the mean period of a valid stream. For an on-off stream, it applies while on.
    pub fn of_stream(stream: &Stream) -> Self {
        Period::of(stream.rate, stream.mean_bytes())
    }

    /// Returns the period of this rate for this total size of a number of frames.
    fn of(rate: Rate, (bytes, frames): (u64, u64)) -> Self {
        const SECOND: u128 = 1_000_000_000;
        let parts = |number: f64| ((number * PARTS as f64).round() as u128).max(1);
        match rate {
            Rate::FramesPerSecond(pps) => Period::fraction(SECOND * PARTS, parts(pps)),
            Rate::LinkPercent { percent, link_bits_per_second } => {
                let bits = 8 * u128::from(bytes.saturating_add(frames * GAP_BYTES as u64));
                let capacity = u128::from(link_bits_per_second.max(1));
                let over = SECOND * 100 * PARTS * bits;
                Period::fraction(over, capacity * parts(percent) * u128::from(frames))
            }
        }
    }

    /// Returns a period of this many nanoseconds.
    fn whole(span: Nanos) -> Self {
        Period::fraction(u128::from(span.0), 1)
    }

    /// Returns a multiple of the period.
    fn times(&self, count: u64) -> Self {
        Period::fraction(self.over.saturating_mul(count.into()), self.under.into())
    }

    fn fraction(over: u128, under: u128) -> Self {
        let common = divisor(over, under).max(1);
        let (mut over, mut under) = (over / common, under / common);
        // Only percentages of unusual links have such long fractions.
        while under >> 63 != 0 {
            (over, under) = (over >> 1, under >> 1);
        }
        let whole = u64::try_from(over / under).unwrap_or(u64::MAX);
        let rest = (over % under) as u64;
        Period { over, under: under as u64, whole, rest }
    }

    /// Returns the cursor one period later.
    #[inline]
    pub fn step(&self, cursor: Cursor) -> Cursor {
        let rest = cursor.rest + self.rest;
        let carry = rest >= self.under;
        let whole = Nanos(self.whole + carry as u64);
        let rest = if carry { rest - self.under } else { rest };
        Cursor { number: cursor.number + 1, due: cursor.due.saturating_add(whole), rest }
    }

    /// Returns when frame `number` is due after frame 0, and the remainder in `under`ths of a
    /// nanosecond.
    fn at(&self, number: u64) -> (Nanos, u64) {
        let ticks = u128::from(number.min(NUMBER_MAX)).saturating_mul(self.over);
        let under = u128::from(self.under);
        (Nanos(u64::try_from(ticks / under).unwrap_or(u64::MAX)), (ticks % under) as u64)
    }

    /// Returns the length of `frames` periods, rounded down.
    pub fn span(&self, frames: u64) -> Nanos {
        self.at(frames).0
    }

    /// Returns how many frames are due within `span` after frame 0, which is due immediately.
    pub fn frames_within(&self, span: Nanos) -> u64 {
        let frames = (u128::from(span.0) * u128::from(self.under)).div_ceil(self.over.max(1));
        u64::try_from(frames).unwrap_or(u64::MAX).min(NUMBER_MAX)
    }
}

impl ScheduleShape {
    /// Returns the shape of a valid stream's warm-up or measured frames, with this mean period.
    fn of(stream: &Stream, period: Period, is_warmup: bool) -> Self {
        match stream.shape {
            BurstProfile::Constant => ScheduleShape::Even,
            BurstProfile::Poisson { seed } => ScheduleShape::Poisson { seed },
            BurstProfile::Bursts { frames, gap } => ScheduleShape::Bursts {
                frames,
                inside: Period::whole(gap),
                cycle: period.times(frames),
            },
            BurstProfile::OnOff { on, off } => ScheduleShape::Bursts {
                frames: period.frames_within(on).max(1),
                inside: period,
                cycle: Period::whole(on.saturating_add(off)),
            },
            BurstProfile::Ramp { .. } if is_warmup => ScheduleShape::Even,
            BurstProfile::Ramp { to, over } => {
                let to_pps = to.pps_of(stream.mean_bytes());
                ScheduleShape::Ramp(Ramp::new(stream.rate_pps(), to_pps, over.0))
            }
        }
    }

    /// Returns how many frames are due within `span` from the start.
    fn frames_within(&self, period: &Period, span: Nanos) -> u64 {
        match self {
            ScheduleShape::Even => period.frames_within(span),
            ScheduleShape::Ramp(ramp) => ramp.frames_within(span.0).min(NUMBER_MAX),
            ScheduleShape::Bursts { frames, inside, cycle } => {
                let Some(full) = cycle.frames_within(span).checked_sub(1) else { return 0 };
                let into = span.since(cycle.span(full));
                let last = if inside.over == 0 { *frames } else { inside.frames_within(into) };
                full.saturating_mul(*frames).saturating_add(last.min(*frames)).min(NUMBER_MAX)
            }
            ScheduleShape::Poisson { seed } => {
                let Some(last) = period.frames_within(span).checked_sub(1) else { return 0 };
                let first = last / BLOCK_FRAMES * BLOCK_FRAMES;
                let (begins, block) = block(period, first);
                let into = span.since(begins).0;
                let mut walk = BlockPosition::begin(*seed);
                let is_before = |number: &u64| {
                    walk = walk.step(*number);
                    walk.after(block.0) < into
                };
                first + (first..first + BLOCK_FRAMES).take_while(is_before).count() as u64
            }
        }
    }
}

/// Returns start and length of the block whose first frame is `first`.
fn block(period: &Period, first: u64) -> (Nanos, Nanos) {
    let begins = period.span(first);
    (begins, period.span(first + BLOCK_FRAMES).since(begins))
}

impl Schedule {
    /// Creates a schedule of frames due in `[start + phase, start + span)` at a constant rate.
    pub fn new(start: Nanos, phase: Nanos, span: Nanos, period: Period) -> Self {
        Schedule::on(ScheduleShape::Even, start, phase, span, period)
    }

    /// Creates a schedule of a valid stream's frames due in `[start + phase, start + span)`.
    pub fn of(stream: &Stream, start: Nanos, phase: Nanos, span: Nanos, is_warmup: bool) -> Self {
        let period = Period::of_stream(stream);
        let course = ScheduleShape::of(stream, period, is_warmup);
        Schedule::on(course, start, phase, span, period)
    }

    /// Creates a schedule at a constant rate without end.
    pub fn endless(start: Nanos, period: Period) -> Self {
        Schedule { start, period, count: u64::MAX, course: ScheduleShape::Even }
    }

    fn on(course: ScheduleShape, start: Nanos, phase: Nanos, span: Nanos, period: Period) -> Self {
        let count = course.frames_within(&period, span.since(phase));
        Schedule { start: start.saturating_add(phase), period, count, course }
    }

    /// Returns the cursor at frame `number`.
    pub fn seek(&self, number: u64) -> Cursor {
        let (after, rest) = match &self.course {
            ScheduleShape::Even => self.period.at(number),
            ScheduleShape::Ramp(ramp) => (Nanos(ramp.at(number.min(NUMBER_MAX))), 0),
            ScheduleShape::Bursts { frames, inside, cycle } => {
                let (into, rest) = inside.at(number % frames);
                (cycle.span(number / frames).saturating_add(into), rest)
            }
            ScheduleShape::Poisson { seed } => {
                let first = number.min(NUMBER_MAX) / BLOCK_FRAMES * BLOCK_FRAMES;
                let (begins, block) = block(&self.period, first);
                let walk = (first..=number.min(NUMBER_MAX))
                    .fold(BlockPosition::begin(*seed), BlockPosition::step);
                (begins.saturating_add(Nanos(walk.after(block.0))), walk.bits())
            }
        };
        Cursor { number, due: self.start.saturating_add(after), rest }
    }

    /// Returns the cursor after `cursor`.
    #[inline]
    pub fn after(&self, cursor: Cursor) -> Cursor {
        self.step()(cursor)
    }

    /// Returns the constant gap from this cursor on, if it is constant.
    pub fn gap(&self, cursor: &Cursor) -> Option<Gap> {
        let Period { whole, rest, under, .. } = self.period;
        matches!(self.course, ScheduleShape::Even).then_some(Gap {
            whole,
            rest,
            parts: under,
            carried: cursor.rest,
        })
    }

    /// Returns [`Schedule::after`] as a function, for many frames.
    #[inline]
    pub fn step(&self) -> impl Fn(Cursor) -> Cursor {
        let even = matches!(self.course, ScheduleShape::Even).then_some(self.period);
        move |cursor| match &even {
            Some(period) => period.step(cursor),
            None => {
                let Cursor { number, due, rest } = cursor;
                let (due, rest) = self.after_uneven(number, due, rest);
                Cursor { number: number + 1, due, rest }
            }
        }
    }

    /// Returns when the frame after frame `number` is due, and the remainder.
    ///
    /// The arguments are the fields of a cursor, so that callers can keep it in registers.
    fn after_uneven(&self, number: u64, due: Nanos, rest: u64) -> (Nanos, u64) {
        let next = number + 1;
        let Cursor { due, rest, .. } = match &self.course {
            ScheduleShape::Bursts { frames, inside, .. } if !next.is_multiple_of(*frames) => {
                inside.step(Cursor { number, due, rest })
            }
            ScheduleShape::Poisson { seed } if !next.is_multiple_of(BLOCK_FRAMES) => {
                let (begins, block) = block(&self.period, next - next % BLOCK_FRAMES);
                let walk = BlockPosition::resume(*seed, rest).step(next);
                let after = begins.saturating_add(Nanos(walk.after(block.0)));
                let due = self.start.saturating_add(after);
                Cursor { number: next, due, rest: walk.bits() }
            }
            _ => self.seek(next),
        };
        (due, rest)
    }

    /// Returns how many frames are due at `now` or before.
    pub fn due(&self, now: Nanos) -> u64 {
        if now < self.start {
            return 0;
        }
        let span = Nanos(now.0 - self.start.0).saturating_add(Nanos(1));
        self.course.frames_within(&self.period, span).min(self.count)
    }

    /// Returns when frame `number` is due, and moves `cursor` there. Fast if `cursor` is at or a
    /// little before the frame.
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

/// Returns the greatest common divisor.
fn divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests;
