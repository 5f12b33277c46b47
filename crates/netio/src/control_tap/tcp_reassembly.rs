//! When a channel's bytes passed the interface, from reordered TCP segments.
//!
//! A timestamp at a socket gives the time at which a program received bytes. The network stack and
//! a scheduler are between it and the wire. Captured segments may be duplicated, out of order, or
//! missing. Their sequence numbers (RFC 9293, section 3.4) restore the byte stream. Each byte then
//! has a time at which all bytes up to it had passed.
//!
//! Invariant: memory is bounded by [`MARKS_MAX`] and [`AHEAD_MAX`]. Bytes beyond these limits, or
//! never captured, are counted and have no time; times are never guessed.

use std::collections::{BTreeMap, VecDeque};

use channel::passage::MARKS_MAX;
use channel::{CaptureAnomalies, Direction, UnknownTime};
use packet::time::Nanos;

/// Maximum number of segments that are stored until the bytes before them have passed.
pub const AHEAD_MAX: usize = 1024;

/// A captured segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The sequence number of its first byte, or of its SYN.
    pub sequence: u32,
    /// The acknowledgement number for the other direction.
    pub acknowledged: Option<u32>,
    /// Whether it begins the stream (SYN).
    pub is_first: bool,
    /// Bytes of the stream in it.
    pub bytes: u32,
}

/// The captured byte streams of a connection.
#[derive(Debug, Default)]
pub struct ByteStreams {
    out: StreamDirection,
    inn: StreamDirection,
}

/// One direction.
#[derive(Debug, Default)]
struct StreamDirection {
    /// Sequence number of the first byte of the stream, once known.
    first: Option<u32>,
    /// How many bytes have passed without a gap.
    passed: u64,
    /// Byte positions with the times at which they had passed; no time for bytes never captured.
    marks: VecDeque<(u64, Option<Nanos>)>,
    /// Segments after a gap: start and end.
    ahead: BTreeMap<u64, u64>,
    remarks: CaptureAnomalies,
}

impl ByteStreams {
    /// Adds a captured segment.
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

    /// Returns when the first `end` bytes of a direction had passed, if known.
    ///
    /// Queries must be in stream order; earlier times are dropped.
    pub fn moment(&mut self, direction: Direction, end: u64) -> Result<Nanos, UnknownTime> {
        let half = match direction {
            Direction::Out => &mut self.out,
            Direction::In => &mut self.inn,
        };
        half.moment(end)
    }

    /// Returns the anomalies of both directions together.
    pub fn remarks(&self) -> CaptureAnomalies {
        self.out.remarks.and(self.inn.remarks)
    }
}

impl StreamDirection {
    fn pass(&mut self, segment: Segment, at: Nanos) {
        if segment.is_first {
            self.first.get_or_insert(segment.sequence.wrapping_add(1));
        }
        let Some(first) = self.first else { return };
        if segment.bytes == 0 {
            return;
        }
        // The nearest position in the stream with this sequence number.
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
                let (from, _) = self
                    .ahead
                    .first_key_value()
                    .map(|(a, b)| (*a, *b))
                    .expect("the map is not empty");
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

    /// Segments after a closed gap have passed too, all at this time.
    fn take_ahead(&mut self, at: Nanos) {
        while let Some(entry) = self.ahead.first_entry() {
            if *entry.key() > self.passed {
                break;
            }
            self.passed = self.passed.max(entry.remove());
        }
        self.mark(Some(at));
    }

    /// Handles an acknowledgement: bytes before this number that were not captured never will be.
    fn acknowledged(&mut self, number: u32) {
        let Some(first) = self.first else { return };
        let here = first.wrapping_add(self.passed as u32);
        let distance = number.wrapping_sub(here) as i32;
        // The FIN counts as one sequence number, but is no byte.
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

    fn moment(&mut self, end: u64) -> Result<Nanos, UnknownTime> {
        while self.marks.front().is_some_and(|(mark, _)| *mark < end) {
            self.marks.pop_front();
        }
        match self.marks.front() {
            Some((_, Some(at))) => Ok(*at),
            Some((_, None)) => Err(UnknownTime::Unknown),
            None if self.passed >= end => Err(UnknownTime::Unknown),
            None => Err(UnknownTime::NotYet),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a connection whose streams begin with these sequence numbers.
    fn begun(out: u32, inn: u32) -> ByteStreams {
        let mut passage = ByteStreams::default();
        let syn =
            |sequence, acknowledged| Segment { sequence, acknowledged, is_first: true, bytes: 0 };
        passage.pass(Direction::Out, syn(out, None), Nanos(1));
        passage.pass(Direction::In, syn(inn, Some(out.wrapping_add(1))), Nanos(2));
        passage
    }

    fn data(sequence: u32, bytes: u32) -> Segment {
        Segment { sequence, acknowledged: None, is_first: false, bytes }
    }

    fn at(ns: u64) -> Result<Nanos, UnknownTime> {
        Ok(Nanos(ns))
    }

    #[test]
    fn bytes_have_the_time_of_the_segment_that_completed_them() {
        let mut passage = begun(u32::MAX - 5, 100);
        // The sequence numbers wrap within the stream.
        passage.pass(Direction::Out, data(u32::MAX - 4, 10), Nanos(10));
        passage.pass(Direction::Out, data(5, 20), Nanos(20));
        assert_eq!(passage.moment(Direction::Out, 8), at(10));
        assert_eq!(passage.moment(Direction::Out, 10), at(10));
        assert_eq!(passage.moment(Direction::Out, 11), at(20));
        assert_eq!(passage.moment(Direction::Out, 30), at(20));
        assert_eq!(passage.moment(Direction::Out, 31), Err(UnknownTime::NotYet));
        assert_eq!(passage.moment(Direction::In, 1), Err(UnknownTime::NotYet));
        assert_eq!(passage.remarks(), CaptureAnomalies::default());
    }

    #[test]
    fn reordered_segments_wait_and_repeated_ones_change_nothing() {
        let mut passage = begun(0, 0);
        passage.pass(Direction::In, data(1, 4), Nanos(10));
        passage.pass(Direction::In, data(9, 4), Nanos(11));
        passage.pass(Direction::In, data(1, 4), Nanos(12));
        assert_eq!(passage.moment(Direction::In, 4), at(10));
        assert_eq!(passage.moment(Direction::In, 12), Err(UnknownTime::NotYet));
        passage.pass(Direction::In, data(3, 6), Nanos(13));
        assert_eq!(passage.moment(Direction::In, 12), at(13));
        let expected = CaptureAnomalies { retransmitted: 2, ..CaptureAnomalies::default() };
        assert_eq!(passage.remarks(), expected);
    }

    #[test]
    fn acknowledged_bytes_that_were_not_captured_have_no_time() {
        let mut passage = begun(0, 0);
        passage.pass(Direction::Out, data(1, 4), Nanos(10));
        let answer = Segment { acknowledged: Some(15), ..data(1, 8) };
        passage.pass(Direction::In, answer, Nanos(20));
        passage.pass(Direction::Out, data(15, 6), Nanos(30));
        assert_eq!(passage.moment(Direction::Out, 4), at(10));
        assert_eq!(passage.moment(Direction::Out, 14), Err(UnknownTime::Unknown));
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
        /// For all segments, every time is that of a captured segment, and times do not
        /// decrease.
        #[test]
        fn any_segments_give_captured_and_increasing_times(
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
