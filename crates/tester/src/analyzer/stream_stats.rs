//! Tracking of one phase of a stream: frame classes and arrival times.
//!
//! Frame counts are always current. Delays are recorded in batches, and are complete only at the
//! end.

use packet::time::Nanos;

use crate::analyzer::burst::{ArrivalTime, Train};
use crate::analyzer::delay::Delay;
use crate::analyzer::duplicate_window::{ArrivalKind, DistinctCounts, DuplicateWindow};
use crate::generator::schedule::{Cursor, Schedule};
use crate::trial::{Classes, Corruption, Histogram, Jitter, Latency, MissingSpan};

/// Maximum number of trains whose delays wait, so that the stream's histograms are fetched once for
/// all.
const WAITING_MAX: usize = 16;

/// One phase of a stream.
#[derive(Debug)]
pub(super) struct PhaseStats {
    /// Schedule of the frames, if known, with the cursor of the last lookup.
    due: Option<(Schedule, Cursor)>,
    /// Number of scheduled frames.
    pub(super) count: u64,
    seen: DuplicateWindow,
    pub(super) classes: Classes,
    next: u64,
    delay: Option<Delay>,
    /// Trains with delays not yet recorded.
    waiting: Vec<Train>,
    first: Option<Nanos>,
    last: Option<Nanos>,
    /// Longest gap between arrivals.
    silence: Nanos,
    corruption: Option<Corruption>,
}

/// Results of one phase of a stream.
#[derive(Debug)]
pub struct Arrivals {
    /// Frame classes.
    pub classes: Classes,
    /// Distinct frames received in any state.
    pub received: u64,
    /// Arrival time of the first frame.
    pub first: Option<Nanos>,
    /// Arrival time of the last frame.
    pub last: Option<Nanos>,
    /// When frames were missing, in scheduled send times.
    pub missed: MissingSpan,
    /// How much longer the last frames took than the first ones.
    pub stretch: Nanos,
    /// Latency of the correct frames.
    pub latency: Latency,
    /// Variation of that latency.
    pub jitter: Jitter,
    /// The first corrupt frame.
    pub corruption: Option<Corruption>,
}

impl PhaseStats {
    pub(super) fn new(
        schedule: Option<Schedule>,
        seen: DuplicateWindow,
        delay: Option<Delay>,
    ) -> Self {
        PhaseStats {
            due: schedule.map(|schedule| (schedule, schedule.seek(0))),
            count: schedule.map_or(u64::MAX, |schedule| schedule.count),
            seen,
            classes: Classes::default(),
            next: 0,
            delay,
            waiting: Vec::with_capacity(WAITING_MAX),
            first: None,
            last: None,
            silence: Nanos::ZERO,
            corruption: None,
        }
    }

    /// Returns the recorded latencies. Those of the last few trains are missing.
    pub(super) fn latencies(&self) -> Option<&Histogram> {
        self.delay.as_ref().map(Delay::latencies)
    }

    /// Records the arrival of frames in any state. A stall of the tester is not counted as silence.
    #[inline]
    pub(super) fn note(&mut self, ArrivalTime { at, silent_until, .. }: ArrivalTime) {
        // Frames that arrived together have the same time.
        if self.last != Some(at) {
            let before = *self.first.get_or_insert(at);
            let silence = silent_until.since(self.last.unwrap_or(before));
            self.silence = self.silence.max(silence);
            self.last = self.last.max(Some(at));
        }
    }

    /// Counts intact frames expected on port `to`. Returns how many are first copies on another
    /// port.
    #[inline]
    pub(super) fn arrive(&mut self, port: usize, to: usize, train: &Train) -> u64 {
        self.note(train.moment);
        if port == to && self.seen.mark_new(train.number, train.frames, port) {
            self.arrive_correct(train);
            return 0;
        }
        train.each().map(|one| self.arrive_one(port, to, &one)).sum()
    }

    /// Counts a single intact frame.
    fn arrive_one(&mut self, port: usize, to: usize, one: &Train) -> u64 {
        let arrived = self.seen.mark(one.number, port);
        let is_elsewhere = arrived == ArrivalKind::First && port != to;
        match arrived {
            ArrivalKind::TooLate => self.classes.late += 1,
            ArrivalKind::Again => self.classes.duplicate += 1,
            ArrivalKind::First if is_elsewhere => self.classes.elsewhere += 1,
            ArrivalKind::First => self.arrive_correct(one),
        }
        is_elsewhere as u64
    }

    #[inline]
    fn arrive_correct(&mut self, train: &Train) {
        let (number, end) = (train.number, train.number + train.frames);
        self.classes.correct += train.frames;
        self.classes.reordered += self.next.min(end).saturating_sub(number);
        self.next = self.next.max(end);
        if self.delay.is_some() {
            self.waiting.push(*train);
            if self.waiting.len() == WAITING_MAX {
                self.note_delays();
            }
        }
    }

    /// Records the delays of the waiting trains.
    fn note_delays(&mut self) {
        let Some(delay) = &mut self.delay else { return };
        for train in self.waiting.drain(..) {
            if !train.moment.is_known {
                delay.miss(train.frames);
            } else if let Some((schedule, near)) = &mut self.due {
                schedule.due_near(near, train.number);
                // A local variable keeps the cursor in registers.
                let (mut cursor, step) = (*near, schedule.step());
                let dues = (0..train.frames).map(|_| {
                    let due = cursor.due;
                    cursor = step(cursor);
                    due
                });
                delay.record(&train, dues);
                *near = cursor;
            } else {
                delay.record(&train, std::iter::empty());
            }
        }
    }

    pub(super) fn arrive_corrupt(&mut self, number: u64, corruption: Corruption) {
        let lane = self.seen.corrupt_lane();
        match self.seen.mark(number, lane) {
            ArrivalKind::TooLate => self.classes.late += 1,
            ArrivalKind::First | ArrivalKind::Again => self.classes.corrupt += 1,
        }
        self.corruption.get_or_insert(corruption);
    }

    pub(super) fn finish(mut self) -> Arrivals {
        self.note_delays();
        let DistinctCounts { seen, misrouted, flooded, .. } = self.seen.tally();
        let moments = self.due.as_ref().and_then(|(schedule, _)| {
            let numbers = self.seen.missed(schedule.count)?;
            Some(numbers.map(|number| schedule.seek(number).due))
        });
        let [first, last] = moments.map_or([None; 2], |moments| moments.map(Some));
        let missed = MissingSpan { first, last, silence: self.silence };
        let classes = Classes { misrouted, flooded, ..self.classes };
        let stretch = self.delay.as_ref().map_or(Nanos::ZERO, Delay::stretch);
        let (latency, jitter) = match self.delay {
            Some(delay) => delay.finish(),
            None => (Latency::empty(), Jitter::default()),
        };
        Arrivals {
            classes,
            received: seen + classes.late,
            first: self.first,
            last: self.last,
            missed,
            stretch,
            latency,
            jitter,
            corruption: self.corruption,
        }
    }
}
