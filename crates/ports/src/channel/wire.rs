//! When a channel's bytes passed the interface: segments of TCP put in order again.
//!
//! A stamp at a socket says when a program was handed bytes; between it and the wire lie the stack and a
//! scheduler. What passes the interface are segments, which may come twice, out of order, or not be
//! captured at all; by their sequence numbers (RFC 9293, section 3.4) they are bytes of a stream again, and each byte has a moment at
//! which all bytes up to it had passed.
//!
//! Invariant: memory is bounded by [`MARKS_MAX`] and [`AHEAD_MAX`]; what is beyond them, or was never seen, is counted and has no
//! moment, never a guessed one.

use std::collections::{BTreeMap, VecDeque};

use packet::time::Nanos;

/// Moments that are kept of one direction until they are asked for.
pub const MARKS_MAX: usize = 1 << 16;

/// Segments that are kept until what is before them has passed.
pub const AHEAD_MAX: usize = 1024;

/// In which direction bytes pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From this end to the other.
    Out,
    /// From the other end to this.
    In,
}

/// What was remarkable about segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Segments with bytes that had passed before: retransmissions.
    pub retransmitted: u64,
    /// Places at which bytes were acknowledged that were never seen to pass.
    pub gaps: u64,
    /// Bytes in those.
    pub bytes_unseen: u64,
    /// Moments that were given up because nobody asked for them.
    pub forgotten: u64,
}

impl Remarks {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Remarks) -> Remarks {
        Remarks {
            retransmitted: self.retransmitted + other.retransmitted,
            gaps: self.gaps + other.gaps,
            bytes_unseen: self.bytes_unseen + other.bytes_unseen,
            forgotten: self.forgotten + other.forgotten,
        }
    }
}

/// A segment that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The number of its first byte, or of its SYN.
    pub sequence: u32,
    /// What it acknowledges of the other direction.
    pub acknowledged: Option<u32>,
    /// Whether it begins the stream.
    pub is_first: bool,
    /// Bytes of the stream in it.
    pub bytes: u32,
}

/// A connection's bytes as they pass.
#[derive(Debug, Default)]
pub struct Passage {
    out: Half,
    inn: Half,
}

/// One direction.
#[derive(Debug, Default)]
struct Half {
    /// The number of the first byte of the stream, once it is known.
    first: Option<u32>,
    /// How many bytes have passed, without a hole.
    passed: u64,
    /// Up to which byte what had passed when; none for what was never seen.
    marks: VecDeque<(u64, Option<Nanos>)>,
    /// Segments behind a hole: from where, up to where.
    ahead: BTreeMap<u64, u64>,
    remarks: Remarks,
}

impl Passage {
    /// A segment passed.
    pub fn pass(&mut self, direction: Direction, segment: Segment, at: Nanos) {
        let (half, other) = match direction {
            Direction::Out => (&mut self.out, &mut self.inn),
            Direction::In => (&mut self.inn, &mut self.out),
        };
        half.pass(segment, at);
        if let Some(number) = segment.acknowledged {
            other.acknowledged(number);
        }
    }

    /// When the first `end` bytes of a direction had passed, if that is known. Moments are asked for in the order of the
    /// stream: what is before is forgotten.
    pub fn moment(&mut self, direction: Direction, end: u64) -> Result<Nanos, Unseen> {
        let half = match direction {
            Direction::Out => &mut self.out,
            Direction::In => &mut self.inn,
        };
        half.moment(end)
    }

    /// What was remarkable, in both directions together.
    pub fn remarks(&self) -> Remarks {
        self.out.remarks.and(self.inn.remarks)
    }
}

/// Why a moment is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// The bytes have not passed yet, as far as is known.
    NotYet,
    /// They have passed and nobody saw when.
    Unknown,
}

impl Half {
    fn pass(&mut self, segment: Segment, at: Nanos) {
        if segment.is_first {
            self.first.get_or_insert(segment.sequence.wrapping_add(1));
        }
        let Some(first) = self.first else { return };
        if segment.bytes == 0 {
            return;
        }
        // The nearest place in the stream that has this number.
        let number =
            if segment.is_first { segment.sequence.wrapping_add(1) } else { segment.sequence };
        let here = first.wrapping_add(self.passed as u32);
        let distance = i64::from(number.wrapping_sub(here) as i32);
        let Some(from) = self.passed.checked_add_signed(distance) else {
            self.remarks.retransmitted += 1;
            return;
        };
        let end = from + u64::from(segment.bytes);
        if from < self.passed {
            self.remarks.retransmitted += 1;
        }
        if from > self.passed {
            let longest = self.ahead.entry(from).or_insert(end);
            *longest = (*longest).max(end);
            if self.ahead.len() > AHEAD_MAX {
                let (from, _) =
                    self.ahead.first_key_value().map(|(a, b)| (*a, *b)).expect("one is there");
                self.skip_to(from);
                self.take_ahead(at);
            }
            return;
        }
        if end > self.passed {
            self.passed = end;
            self.take_ahead(at);
        }
    }

    /// What lay behind a hole that is none any more has passed too, all of it at this moment.
    fn take_ahead(&mut self, at: Nanos) {
        while let Some(entry) = self.ahead.first_entry() {
            if *entry.key() > self.passed {
                break;
            }
            self.passed = self.passed.max(entry.remove());
        }
        self.mark(Some(at));
    }

    /// The other end has all bytes before this number: those that were not seen never will be.
    fn acknowledged(&mut self, number: u32) {
        let Some(first) = self.first else { return };
        let here = first.wrapping_add(self.passed as u32);
        let distance = number.wrapping_sub(here) as i32;
        // The end of the stream counts as a byte: that is none.
        if distance > 1 || distance == 1 && !self.ahead.is_empty() {
            self.skip_to(self.passed + distance as u64);
        }
    }

    fn skip_to(&mut self, end: u64) {
        self.remarks.gaps += 1;
        self.remarks.bytes_unseen += end - self.passed;
        self.passed = end;
        self.ahead.retain(|_, last| *last > end);
        self.mark(None);
    }

    fn mark(&mut self, at: Option<Nanos>) {
        if self.marks.len() == MARKS_MAX {
            self.marks.pop_front();
            self.remarks.forgotten += 1;
        }
        self.marks.push_back((self.passed, at));
    }

    fn moment(&mut self, end: u64) -> Result<Nanos, Unseen> {
        while self.marks.front().is_some_and(|(mark, _)| *mark < end) {
            self.marks.pop_front();
        }
        match self.marks.front() {
            Some((_, Some(at))) => Ok(*at),
            Some((_, None)) => Err(Unseen::Unknown),
            None if self.passed >= end => Err(Unseen::Unknown),
            None => Err(Unseen::NotYet),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A connection whose streams begin with these numbers.
    fn begun(out: u32, inn: u32) -> Passage {
        let mut passage = Passage::default();
        let syn =
            |sequence, acknowledged| Segment { sequence, acknowledged, is_first: true, bytes: 0 };
        passage.pass(Direction::Out, syn(out, None), Nanos(1));
        passage.pass(Direction::In, syn(inn, Some(out.wrapping_add(1))), Nanos(2));
        passage
    }

    fn data(sequence: u32, bytes: u32) -> Segment {
        Segment { sequence, acknowledged: None, is_first: false, bytes }
    }

    fn at(ns: u64) -> Result<Nanos, Unseen> {
        Ok(Nanos(ns))
    }

    #[test]
    fn bytes_have_the_moment_of_the_segment_that_ended_them() {
        let mut passage = begun(u32::MAX - 5, 100);
        // The numbers go round within the stream.
        passage.pass(Direction::Out, data(u32::MAX - 4, 10), Nanos(10));
        passage.pass(Direction::Out, data(5, 20), Nanos(20));
        assert_eq!(passage.moment(Direction::Out, 8), at(10));
        assert_eq!(passage.moment(Direction::Out, 10), at(10));
        assert_eq!(passage.moment(Direction::Out, 11), at(20));
        assert_eq!(passage.moment(Direction::Out, 30), at(20));
        assert_eq!(passage.moment(Direction::Out, 31), Err(Unseen::NotYet));
        assert_eq!(passage.moment(Direction::In, 1), Err(Unseen::NotYet));
        assert_eq!(passage.remarks(), Remarks::default());
    }

    #[test]
    fn a_segment_out_of_order_waits_and_one_that_comes_twice_changes_nothing() {
        let mut passage = begun(0, 0);
        passage.pass(Direction::In, data(1, 4), Nanos(10));
        passage.pass(Direction::In, data(9, 4), Nanos(11));
        passage.pass(Direction::In, data(1, 4), Nanos(12));
        assert_eq!(passage.moment(Direction::In, 4), at(10));
        assert_eq!(passage.moment(Direction::In, 12), Err(Unseen::NotYet));
        passage.pass(Direction::In, data(3, 6), Nanos(13));
        assert_eq!(passage.moment(Direction::In, 12), at(13));
        let expected = Remarks { retransmitted: 2, ..Remarks::default() };
        assert_eq!(passage.remarks(), expected);
    }

    #[test]
    fn what_is_acknowledged_and_was_not_seen_is_a_gap_without_a_moment() {
        let mut passage = begun(0, 0);
        passage.pass(Direction::Out, data(1, 4), Nanos(10));
        let answer = Segment { acknowledged: Some(15), ..data(1, 8) };
        passage.pass(Direction::In, answer, Nanos(20));
        passage.pass(Direction::Out, data(15, 6), Nanos(30));
        assert_eq!(passage.moment(Direction::Out, 4), at(10));
        assert_eq!(passage.moment(Direction::Out, 14), Err(Unseen::Unknown));
        assert_eq!(passage.moment(Direction::Out, 20), at(30));
        let remarks = passage.remarks();
        assert_eq!((remarks.gaps, remarks.bytes_unseen), (1, 10));
    }

    #[test]
    fn memory_is_bounded() {
        let mut passage = begun(0, 0);
        for segment in 0..3 * AHEAD_MAX as u32 {
            passage.pass(Direction::Out, data(100 + 10 * segment, 4), Nanos(5));
            assert!(passage.out.ahead.len() <= AHEAD_MAX);
        }
        assert!(passage.remarks().gaps > 0);
        let mut passage = begun(0, 0);
        for byte in 0..MARKS_MAX as u32 + 7 {
            passage.pass(Direction::Out, data(1 + byte, 1), Nanos(u64::from(byte)));
        }
        assert_eq!((passage.out.marks.len(), passage.remarks().forgotten), (MARKS_MAX, 7));
    }

    proptest! {
        /// Whatever passes, a moment is that of a segment that was seen, and moments do not go back.
        #[test]
        fn any_segments_are_borne(
            first in any::<u32>(),
            segments in prop::collection::vec((any::<bool>(), 0..64u32, 0..9u32, prop::option::of(0..99u32)), 0..200),
        ) {
            let mut passage = begun(first, first);
            let mut last = Nanos::ZERO;
            for (place, (is_out, ahead, bytes, acknowledged)) in segments.into_iter().enumerate() {
                let direction = if is_out { Direction::Out } else { Direction::In };
                let sequence = first.wrapping_add(1).wrapping_add(ahead);
                let acknowledged = acknowledged.map(|it| first.wrapping_add(it));
                let now = Nanos(10 + place as u64);
                let segment = Segment { sequence, acknowledged, is_first: false, bytes };
                passage.pass(direction, segment, now);
                let passed = passage.out.passed;
                if let Ok(at) = passage.moment(Direction::Out, passed) {
                    prop_assert!(at >= last && at <= now);
                    last = at;
                }
            }
        }
    }
}
