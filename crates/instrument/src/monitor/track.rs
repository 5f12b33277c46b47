//! One leg of a stream as it arrives: what became of its frames, and when they came.
//!
//! What is counted can be read at any time. Delays wait until there are some more of them: they are
//! for the end.

use packet::time::Nanos;

use crate::generate::schedule::{Cursor, Schedule};
use crate::monitor::delay::Delay;
use crate::monitor::seen::{Arrived, Seen, Tally};
use crate::monitor::train::{Moment, Train};
use crate::trial::{Classes, Corruption, Histogram, Jitter, Latency, Missed};

/// Trains of a stream whose delays are noted at once: its histograms are fetched for all of them.
const WAITING_MAX: usize = 16;

/// One leg of a stream as it arrives.
#[derive(Debug)]
pub(super) struct Track {
    /// When frames are due, if that is known, and where that was looked up last.
    due: Option<(Schedule, Cursor)>,
    /// How many frames there are to be.
    pub(super) count: u64,
    seen: Seen,
    pub(super) classes: Classes,
    next: u64,
    delay: Option<Delay>,
    /// Trains whose delays are not noted yet.
    waiting: Vec<Train>,
    first: Option<Nanos>,
    last: Option<Nanos>,
    /// The longest time between arrivals.
    silence: Nanos,
    corruption: Option<Corruption>,
}

/// What one leg of a stream came to.
#[derive(Debug)]
pub struct Arrivals {
    /// What became of the frames.
    pub classes: Classes,
    /// Different frames that came back in whatever state.
    pub received: u64,
    /// When the first frame arrived.
    pub first: Option<Nanos>,
    /// When the last frame arrived.
    pub last: Option<Nanos>,
    /// When frames were missed; moments are those of the schedule.
    pub missed: Missed,
    /// By how much the last frames took longer than the first ones.
    pub stretch: Nanos,
    /// Latency of the correct frames.
    pub latency: Latency,
    /// Its variation.
    pub jitter: Jitter,
    /// The first corrupt frame.
    pub corruption: Option<Corruption>,
}

impl Track {
    pub(super) fn new(schedule: Option<Schedule>, seen: Seen, delay: Option<Delay>) -> Self {
        Track {
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

    /// Latencies that were noted so far; those of the last few trains are not.
    pub(super) fn latencies(&self) -> Option<&Histogram> {
        self.delay.as_ref().map(Delay::latencies)
    }

    /// Notes that frames arrived, in whatever state. What the tester did not hear is no silence.
    #[inline]
    pub(super) fn note(&mut self, Moment { at, silent_until, .. }: Moment) {
        // Frames that came together have the same time.
        if self.last != Some(at) {
            let before = *self.first.get_or_insert(at);
            let silence = silent_until.since(self.last.unwrap_or(before));
            self.silence = self.silence.max(silence);
            self.last = self.last.max(Some(at));
        }
    }

    /// Sorts intact frames that should arrive on port `to`; how many are first copies on another.
    #[inline]
    pub(super) fn arrive(&mut self, port: usize, to: usize, train: &Train) -> u64 {
        self.note(train.moment);
        if port == to && self.seen.mark_new(train.number, train.frames, port) {
            self.arrive_correct(train);
            return 0;
        }
        train.each().map(|one| self.arrive_one(port, to, &one)).sum()
    }

    /// Sorts an intact frame of a train of one.
    fn arrive_one(&mut self, port: usize, to: usize, one: &Train) -> u64 {
        let arrived = self.seen.mark(one.number, port);
        let is_elsewhere = arrived == Arrived::First && port != to;
        match arrived {
            Arrived::TooLate => self.classes.late += 1,
            Arrived::Again => self.classes.duplicate += 1,
            Arrived::First if is_elsewhere => self.classes.elsewhere += 1,
            Arrived::First => self.arrive_correct(one),
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

    /// Notes the delays of the trains that wait for it.
    fn note_delays(&mut self) {
        let Some(delay) = &mut self.delay else { return };
        for train in self.waiting.drain(..) {
            if !train.moment.is_known {
                delay.miss(train.frames);
            } else if let Some((schedule, near)) = &mut self.due {
                schedule.due_near(near, train.number);
                // In a variable of its own, so that it does not go through memory each time.
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
            Arrived::TooLate => self.classes.late += 1,
            Arrived::First | Arrived::Again => self.classes.corrupt += 1,
        }
        self.corruption.get_or_insert(corruption);
    }

    pub(super) fn finish(mut self) -> Arrivals {
        self.note_delays();
        let Tally { seen, misrouted, flooded, .. } = self.seen.tally();
        let moments = self.due.as_ref().and_then(|(schedule, _)| {
            let numbers = self.seen.missed(schedule.count)?;
            Some(numbers.map(|number| schedule.seek(number).due))
        });
        let [first, last] = moments.map_or([None; 2], |moments| moments.map(Some));
        let missed = Missed { first, last, silence: self.silence };
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
