//! Statistics of schedule deviations, frame by frame.

use packet::time::Nanos;

use crate::trial::{Histogram, Pacing};

/// A [`Pacing`] in progress.
#[derive(Debug)]
pub struct Pace {
    pacing: Pacing,
    /// Send time and due time of the last frame.
    last: Option<(Nanos, Nanos)>,
}

/// A run of equal values, which is recorded in one step.
#[derive(Debug, Default)]
struct Run {
    ns: u64,
    times: u64,
}

impl Pace {
    /// Creates empty statistics.
    pub fn new() -> Self {
        Pace { pacing: Pacing::empty(), last: None }
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

    /// Returns the statistics so far.
    pub fn pacing(&self) -> &Pacing {
        &self.pacing
    }

    /// Takes the statistics.
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
