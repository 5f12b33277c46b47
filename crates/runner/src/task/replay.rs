//! Replay of a task from the trials that an earlier attempt stored.
//!
//! Invariants:
//! - A stored trial counts only where the method requests it.
//! - If some are missing, each trial is found by its purpose and its load.
//! - A trial that is not stored is measured.

use std::collections::VecDeque;

use packet::time::Nanos;
use tester::procedure::Outcome;
use tester::search::interference::Verdict;
use tester::stream::Stream;
use tester::trial::{Flag, Load, MissingSpan, OFFERED_SHARE_MIN, StreamReport, Trial, TrialReport};

use super::{MeasurementTask, NextStep};
use crate::recording;

impl MeasurementTask {
    /// Takes this task's trials of an earlier attempt, in order.
    pub fn take_stored(&mut self, stored: VecDeque<record::Trial>, has_gaps: bool) {
        (self.stored, self.has_gaps) = (stored, has_gaps);
    }

    /// Replays stored trials while the method requests one of them, and returns them. A trial that
    /// was interrupted runs again.
    pub fn catch_up(&mut self) -> Vec<record::Trial> {
        let mut used = Vec::new();
        while let Some(first) = self.stored.front() {
            if first.flags.contains(&record::Flag::Interrupted) {
                used.extend(self.stored.pop_front());
                continue;
            }
            if self.method.waits() {
                break;
            }
            let mut setup_left = self.pending_setup.take();
            let next = match self.pending.take() {
                None => self.advance(|setup| {
                    setup_left = Some(*setup);
                    Ok(())
                }),
                pending => Ok(pending),
            };
            self.pending_setup = setup_left;
            let Ok(Some(next)) = next else { break };
            let stored = self.stored_as(&next).and_then(|place| self.stored.remove(place));
            let Some(stored) = stored else {
                self.pending = Some(next);
                break;
            };
            self.replay(next, &stored);
            used.push(stored);
        }
        used
    }

    /// Returns the index of the next trial among the stored ones.
    fn stored_as(&self, next: &NextStep) -> Option<usize> {
        if !self.has_gaps {
            return Some(0);
        }
        let (NextStep::Trial(point, _) | NextStep::Module(point, _)) = next;
        let (point, tag, goal) = (recording::point(point), self.method.tag(), self.method.goal());
        self.stored.iter().position(|stored| {
            !stored.flags.contains(&record::Flag::Interrupted)
                && (&stored.point, stored.repeat, stored.role) == (&point, tag.repeat, tag.role)
                && stored.goal.as_deref() == goal
                && match next {
                    NextStep::Trial(_, trial) => has_load_of(stored, trial),
                    NextStep::Module(..) => stored.module.is_some(),
                }
        })
    }

    /// Advances as if the next trial had run with the stored result.
    fn replay(&mut self, next: NextStep, stored: &record::Trial) {
        match next {
            NextStep::Trial(point, trial) => {
                let verdict = said(stored);
                self.patience.note(&trial, verdict);
                match verdict {
                    Verdict::Again => self.repeat(point, trial),
                    _ => self.digest(point, restored(stored, &trial), stored.id),
                }
            }
            NextStep::Module(point, _) => {
                self.trials.push(stored.id);
                let report = Box::new(recording::module::restored(stored));
                self.last = Some(Outcome::Module { point, report });
            }
        }
    }
}

/// Returns whether a stored trial sent the load of this one; steps of a search differ only in their
/// load.
fn has_load_of(stored: &record::Trial, trial: &Trial) -> bool {
    /// Frames of rounding difference for each stream and each capture file.
    const FRAMES_ROUNDED: f64 = 2.0;
    let frames = |(place, stream): (usize, &Stream)| {
        stream.rate_pps() * trial.window(place).span().as_secs_f64()
    };
    let wanted: f64 = trial.streams.iter().enumerate().map(frames).sum();
    let rounded = FRAMES_ROUNDED * trial.streams.len() as f64;
    let is_near = (stored.frames_intended as f64 - wanted).abs() <= rounded;
    stored.duration_ns_intended == trial.duration.0 && (is_near || !trial.replays.is_empty())
}

/// Returns the verdict on a stored trial.
fn said(stored: &record::Trial) -> Verdict {
    if stored.flags.contains(&record::Flag::Retried) {
        Verdict::Again
    } else if stored.flags.contains(&record::Flag::TesterInterference) {
        Verdict::Exhausted
    } else {
        Verdict::Counts
    }
}

/// Restores the parts of a report that a method uses; others, such as histograms, are empty. The
/// record already holds the whole report.
fn restored(stored: &record::Trial, trial: &Trial) -> TrialReport {
    let total = Load {
        intended: stored.frames_intended,
        offered: stored.frames_offered,
        forwarded: stored.frames_forwarded,
        duration_offered: Nanos(stored.duration_ns_effective),
        duration_forwarded: Nanos(stored.duration_ns_receiving.unwrap_or(0)),
    };
    // The trial's flag also reports frames lost in the tester's own rings.
    let share = total.offered_share();
    let mut report = TrialReport::unmeasured(trial, Nanos::ZERO, total);
    report.classes.duplicate = stored.classes.duplicate;
    report.flags.extend((share < OFFERED_SHARE_MIN).then_some(Flag::TesterLimited(share)));
    let is_disturbed = stored.flags.contains(&record::Flag::TesterInterference);
    report.flags.extend(is_disturbed.then_some(Flag::TesterInterference));
    report.played = stored.orders.as_ref().map(recording::played);
    report.work = stored.work;
    report.streams =
        stored.streams.iter().zip(&trial.streams).zip(0..).map(restored_stream(trial)).collect();
    report
}

/// Restores the parts of a stream's report that a method uses.
fn restored_stream(
    trial: &Trial,
) -> impl Fn(((&record::StreamCount, &Stream), usize)) -> StreamReport + use<'_> {
    |((stored, stream), place)| {
        let duration = trial.window(place).span();
        let load = Load {
            intended: stored.frames_intended,
            offered: stored.frames_offered,
            forwarded: stored.classes.correct,
            duration_offered: duration,
            duration_forwarded: duration,
        };
        let missed = MissingSpan {
            first: stored.missed_ns_first.map(Nanos),
            last: stored.missed_ns_last.map(Nanos),
            silence: Nanos(stored.gap_ns_max),
        };
        let classes = recording::restored_classes(&stored.classes);
        StreamReport { missed, classes, ..StreamReport::unmeasured(stream, load) }
    }
}
