//! Statistics of schedule deviations, frame by frame.

use packet::time::Nanos;

use crate::trial::{Histogram, Pacing};

/// A [`Pacing`] in progress.
#[derive(Debug)]
pub struct Pace {
    pacing: Pacing,
    /// Send time and due time of the last frame.
    last: Option<(Nanos, Nanos)>,
    /// Send times and due times of frames that left one by one and are not recorded yet.
    waiting: Vec<(Nanos, Nanos)>,
}

/// Number of frames that left one by one and are recorded together.
const WAITING_MAX: usize = 64;

/// A run of equal values, which is recorded in one step.
#[derive(Debug, Default)]
struct Run {
    ns: u64,
    times: u64,
}

impl Pace {
    /// Creates empty statistics.
    pub fn new() -> Self {
        Pace { pacing: Pacing::empty(), last: None, waiting: Vec::with_capacity(WAITING_MAX) }
    }

    /// Records frames that were sent together at `now`, with their due times in order.
    #[inline]
    pub fn sent(&mut self, now: Nanos, mut dues: impl Iterator<Item = Nanos>) {
        let Pacing { lateness, gap_error, gaps, lateness_max, .. } = &mut self.pacing;
        let Some(first) = dues.next() else { return };
        *lateness_max = now.since(first).max(*lateness_max);
        if let Some((sent_before, due_before)) = self.last {
            let (achieved, intended) = (now.since(sent_before), first.since(due_before));
            gaps.record(achieved.0);
            gap_error.record(achieved.0.abs_diff(intended.0));
        }
        // Frames sent together have no gap.
        let (mut last, mut errors, mut together) = (first, Run::default(), 0);
        lateness.record_all(std::iter::once(now.since(first).0).chain(dues.map(|due| {
            errors.note(due.since(last).0, gap_error);
            (last, together) = (due, together + 1);
            now.since(due).0
        })));
        errors.end(gap_error);
        gaps.record_many(0, together);
        self.last = Some((now, last));
    }

    /// Records a frame that was sent alone at `now`, with the same result as [`Pace::sent`].
    #[inline]
    pub fn sent_alone(&mut self, now: Nanos, due: Nanos) {
        self.waiting.push((now, due));
        if self.waiting.len() == WAITING_MAX {
            self.note_waiting();
        }
    }

    /// Records the frames that are not recorded yet.
    pub fn note_waiting(&mut self) {
        let Some(&end) = self.waiting.last() else { return };
        let Pacing { lateness, gap_error, gaps, lateness_max, .. } = &mut self.pacing;
        let late = || self.waiting.iter().map(|(now, due)| now.since(*due));
        *lateness_max = late().fold(*lateness_max, Nanos::max);
        lateness.record_all(late().map(|late| late.0));
        let before = self.last.iter().chain(&self.waiting);
        let first = usize::from(self.last.is_none());
        let pairs = || before.clone().zip(&self.waiting[first..]);
        let gap = |((from, _), (now, _)): (&(Nanos, Nanos), &(Nanos, Nanos))| now.since(*from).0;
        gaps.record_all(pairs().map(gap));
        gap_error.record_all(pairs().map(|(before, frame)| {
            let intended = frame.1.since(before.1).0;
            gap((before, frame)).abs_diff(intended)
        }));
        self.last = Some(end);
        self.waiting.clear();
    }

    /// Returns the recorded statistics.
    pub fn pacing(&self) -> &Pacing {
        &self.pacing
    }

    /// Takes the recorded statistics.
    pub fn take(&mut self) -> Pacing {
        std::mem::replace(&mut self.pacing, Pacing::empty())
    }
}

impl Default for Pace {
    fn default() -> Self {
        Pace::new()
    }
}

impl Run {
    #[inline]
    fn note(&mut self, ns: u64, histogram: &mut Histogram) {
        if ns != self.ns {
            histogram.record_many(self.ns, self.times);
            *self = Run { ns, times: 0 };
        }
        self.times += 1;
    }

    #[inline]
    fn end(self, histogram: &mut Histogram) {
        histogram.record_many(self.ns, self.times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::{below, mix};

    #[test]
    fn frames_that_left_alone_have_the_same_statistics_when_recorded_together() {
        let (mut each, mut together) = (Pace::new(), Pace::new());
        let (mut now, mut due) = (0, 0);
        for number in 0..1_000 {
            due += 1 + below(mix(number), 1_000);
            now = due.max(now) + below(mix(!number), 300);
            each.sent(Nanos(now), std::iter::once(Nanos(due)));
            together.sent_alone(Nanos(now), Nanos(due));
            if number % 97 < 2 {
                together.note_waiting();
                let [each, together] = [&each, &together].map(Pace::pacing);
                assert_eq!(format!("{each:?}"), format!("{together:?}"));
            }
        }
        together.note_waiting();
        assert_eq!(together.take().lateness.count(), 1_000);
    }
}
