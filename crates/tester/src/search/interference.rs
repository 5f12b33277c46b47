//! Detection of trials whose loss the tester itself may have caused.
//!
//! A stalled tester neither sends nor receives. After the stall it sends the overdue frames in one
//! burst. Frames lost then may be the tester's fault (docs/decisions, 0010). The recorded stalls
//! and the tester's own rings bound their number. Nothing that the target reports is used.
//!
//! A loss within the goal counts immediately. So does a loss beyond what the tester can have
//! caused. A loss between these limits is repeated up to [`REPEATS_MAX`] times and then counts.

use super::measured::MeasuredLoad;
use crate::trial::{Flag, StreamReport, Trial, TrialReport};

/// Maximum number of repetitions of a trial because of disturbances.
pub const REPEATS_MAX: u32 = 3;

/// Whether a trial counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It counts.
    Counts,
    /// The tester disturbed it: repeat the trial.
    Again,
    /// The tester disturbed the last repetition too, and the trial counts.
    Exhausted,
}

/// Policy for repeating trials.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// The last repeated trial, and its number of repetitions.
    repeated: Option<(Trial, u32)>,
    /// Current maximum number of repetitions. It shrinks when repeating does not help.
    repeats_max: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy { repeated: None, repeats_max: REPEATS_MAX }
    }
}

impl RetryPolicy {
    /// Decides on a trial for goals with these loss ratios. Without goals every trial counts.
    pub fn judge(&mut self, trial: &Trial, report: &TrialReport, allowed: &[f64]) -> Verdict {
        let (measured, owed) = (MeasuredLoad::from(report), owed(report));
        let verdict = if !allowed.iter().any(|&ratio| measured.is_undecided(ratio, owed)) {
            Verdict::Counts
        } else if self.repeats(trial) < self.repeats_max {
            Verdict::Again
        } else {
            Verdict::Exhausted
        };
        self.note(trial, verdict);
        verdict
    }

    /// Records the verdict on a trial.
    pub fn note(&mut self, trial: &Trial, verdict: Verdict) {
        match verdict {
            Verdict::Counts => self.repeats_max = REPEATS_MAX,
            Verdict::Again => self.repeated = Some((trial.clone(), self.repeats(trial) + 1)),
            Verdict::Exhausted => self.repeats_max /= 2,
        }
    }

    fn repeats(&self, trial: &Trial) -> u32 {
        self.repeated.as_ref().filter(|(last, _)| last == trial).map_or(0, |(_, times)| *times)
    }
}

/// Returns the number of lost frames that the tester can have caused:
///
/// - frames due during its stalls, which left late in a burst or not at all,
/// - as many frames that arrived during the stalls and were not received,
/// - frames that its own rings dropped.
pub fn owed(report: &TrialReport) -> u64 {
    let due = |stream: &StreamReport| {
        let span = stream.load.duration_offered.0.max(1) as f64;
        stream.load.intended as f64 * report.stalls.ns_total as f64 / span
    };
    let due: f64 = report.streams.iter().map(due).sum();
    let dropped = report.flags.iter().map(|flag| match flag {
        Flag::TesterDrops(frames) => *frames,
        _ => 0,
    });
    (2.0 * due).ceil() as u64 + dropped.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use packet::time::Nanos;

    use super::*;
    use crate::generator::template;
    use crate::stream::{Rate, Stream};
    use crate::trial::Load;

    const MS: u64 = 1_000_000;

    /// A trial of 100 ms and its report with this stall of the tester and `lost` of 100,000 frames
    /// lost.
    fn trial(stall: u64, lost: u64) -> (Trial, TrialReport) {
        let stream = Stream { rate: Rate::FramesPerSecond(1e6), ..template::tests::stream(64) };
        let duration = Nanos(100 * MS);
        let trial = Trial::new(vec![stream.clone()], Nanos::ZERO, duration, Nanos::ZERO);
        let load = Load {
            intended: 100_000,
            offered: 100_000,
            forwarded: 100_000 - lost,
            duration_offered: duration,
            duration_forwarded: duration,
        };
        let mut report = TrialReport::unmeasured(&trial, Nanos::ZERO, load);
        report.streams.push(StreamReport::unmeasured(&stream, load));
        if stall > 0 {
            report.stalls.add(stall);
        }
        (trial, report)
    }

    fn judged(stall: u64, lost: u64, allowed: &[f64]) -> Verdict {
        let (trial, report) = trial(stall, lost);
        RetryPolicy::default().judge(&trial, &report, allowed)
    }

    #[test]
    fn only_a_loss_that_a_tester_stall_explains_is_retried() {
        // Two milliseconds are 2,000 late frames and 2,000 frames not received.
        assert_eq!(judged(2 * MS, 4_000, &[0.0]), Verdict::Again);
        assert_eq!(judged(2 * MS, 4_001, &[0.0]), Verdict::Counts);
        assert_eq!(judged(2 * MS, 0, &[0.0]), Verdict::Counts, "nothing was lost");
        assert_eq!(judged(0, 1, &[0.0]), Verdict::Counts, "the tester did not stall");
        assert_eq!(judged(2 * MS, 400, &[0.005]), Verdict::Counts, "the goal allows it");
        assert_eq!(judged(2 * MS, 4_400, &[0.005]), Verdict::Again);
        assert_eq!(
            judged(2 * MS, 400, &[0.005, 0.0]),
            Verdict::Again,
            "one goal does not allow it"
        );
        assert_eq!(judged(2 * MS, 400, &[]), Verdict::Counts, "there is no search");
        let (trial, mut report) = trial(0, 10);
        report.flags.push(Flag::TesterDrops(10));
        assert_eq!(RetryPolicy::default().judge(&trial, &report, &[0.0]), Verdict::Again);
        report.total.forwarded -= 1;
        assert_eq!(RetryPolicy::default().judge(&trial, &report, &[0.0]), Verdict::Counts);
    }

    #[test]
    fn repeated_disturbances_count_and_are_retried_less_often() {
        let mut patience = RetryPolicy::default();
        let (mut same, report) = trial(2 * MS, 1);
        let mut is_retried = Vec::new();
        for _ in 0..12 {
            let verdict = patience.judge(&same, &report, &[0.0]);
            is_retried.push(verdict == Verdict::Again);
            if verdict == Verdict::Exhausted {
                same.duration.0 += 1;
            }
        }
        let wanted =
            [true, true, true, false, true, false, false, false, false, false, false, false];
        assert_eq!(is_retried, wanted);
        patience.note(&same, Verdict::Counts);
        assert_eq!(patience.judge(&same, &report, &[0.0]), Verdict::Again);
    }
}
