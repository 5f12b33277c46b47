//! How well moments were kept, frame by frame.

use packet::time::Nanos;

use crate::trial::{Pacing, Tally};

/// A [`Pacing`] in the making.
#[derive(Debug)]
pub struct Pace {
    lateness: Tally,
    gap_error: Tally,
    gaps: Tally,
    lateness_max: Nanos,
    /// When the last frame was sent and when it was due.
    last: Option<(Nanos, Nanos)>,
}

/// The same time several times over, which is counted at once.
#[derive(Debug, Default)]
struct Run {
    ns: u64,
    times: u64,
}

impl Pace {
    /// Nothing sent yet.
    pub fn new() -> Self {
        let (lateness, gap_error, gaps) = (Tally::new(), Tally::new(), Tally::new());
        Pace { lateness, gap_error, gaps, lateness_max: Nanos::ZERO, last: None }
    }

    /// Notes frames that were sent together at `now`, and when each was due.
    #[inline]
    pub fn sent(&mut self, now: Nanos, dues: impl Iterator<Item = Nanos>) {
        let (mut errors, mut gaps) = (Run::default(), Run::default());
        for due in dues {
            let lateness = now.since(due);
            self.lateness.record(lateness.0);
            self.lateness_max = self.lateness_max.max(lateness);
            if let Some((sent_before, due_before)) = self.last {
                let (achieved, intended) = (now.since(sent_before), due.since(due_before));
                errors.note(achieved.0.abs_diff(intended.0), &mut self.gap_error);
                gaps.note(achieved.0, &mut self.gaps);
            }
            self.last = Some((now, due));
        }
        errors.end(&mut self.gap_error);
        gaps.end(&mut self.gaps);
    }

    /// What it has come to.
    pub fn finish(&self) -> Pacing {
        Pacing {
            lateness: self.lateness.finish(),
            gap_error: self.gap_error.finish(),
            gaps: self.gaps.finish(),
            stalls: 0,
            lateness_max: self.lateness_max,
        }
    }
}

impl Default for Pace {
    fn default() -> Self {
        Pace::new()
    }
}

impl Run {
    #[inline]
    fn note(&mut self, ns: u64, tally: &mut Tally) {
        if ns != self.ns {
            tally.record_many(self.ns, self.times);
            *self = Run { ns, times: 0 };
        }
        self.times += 1;
    }

    #[inline]
    fn end(self, tally: &mut Tally) {
        tally.record_many(self.ns, self.times);
    }
}
