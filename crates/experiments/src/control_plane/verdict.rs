//! Verdict about an entry from its frames: done, late, unstable or not done.
//!
//! A barrier reply does not prove that an entry is active, and a cache may contain the previous entry for a while.
//! Frames therefore probe an entry until several in a row arrive as expected, or until a time limit. The
//! measurement begins afterwards. Source: oflops2018 (early barriers); costa2017, section IV-E (actions that are
//! accepted and not done).
//!
//! Invariants:
//!
//! - An entry is *not done* only if none of its frames arrived as expected.
//! - An entry is *unstable* if some frames arrived as expected and others did not, after it was active.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use packet::time::Nanos;

/// Share of the time limit to wait for an entry that was not active in an earlier repeat.
const CONFIRM_SHARE: u64 = 10;

/// Frames of an entry since the barrier reply after it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Activation {
    right: u64,
    wrong: u64,
    /// Correct frames since the last incorrect one.
    in_a_row: u64,
    wrong_last_at: Option<Nanos>,
    /// Time of the first correct frame since the last incorrect one.
    right_first_at: Option<Nanos>,
    right_last_at: Option<Nanos>,
    /// Whether enough consecutive frames were correct before the measurement.
    is_active: bool,
    /// Incorrect frames of the measurement.
    wrong_since: u64,
}

/// Verdict about an entry that the switch accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its frames arrive as expected.
    Done,
    /// Its frames arrive as expected, except the first ones after the barrier reply.
    Late,
    /// Some frames arrive as expected and some do not.
    Unstable,
    /// No frame arrives as expected.
    NotDone,
    /// There is no evidence from frames.
    Unseen,
}

impl Activation {
    /// Counts a frame with this departure time.
    pub fn note(&mut self, sent_at: Nanos, is_right: bool) {
        if is_right {
            self.right += 1;
            self.in_a_row += 1;
            self.right_first_at.get_or_insert(sent_at);
            self.right_last_at = Some(sent_at);
            return;
        }
        self.wrong += 1;
        self.wrong_since += u64::from(self.is_active);
        if !self.is_active {
            (self.in_a_row, self.right_first_at) = (0, None);
            self.wrong_last_at = Some(sent_at);
        }
    }

    /// Returns whether there is no evidence since this time.
    pub fn is_silent_since(&self, at: Nanos) -> bool {
        [self.wrong_last_at, self.right_last_at].iter().flatten().all(|last| *last < at)
    }

    /// Returns whether this many consecutive frames were correct.
    pub fn has_in_a_row(&self, frames: u64) -> bool {
        self.in_a_row >= frames
    }

    /// Returns whether the last frame was incorrect.
    pub fn is_failing(&self) -> bool {
        self.wrong > 0 && self.in_a_row == 0
    }

    /// Ends the probing; later frames belong to the measurement. `is_active`: enough consecutive frames were
    /// correct.
    pub fn settle(&mut self, is_active: bool) {
        self.is_active = is_active;
    }

    /// Returns the verdict.
    pub fn verdict(&self) -> Verdict {
        match (self.right, self.wrong) {
            (0, 0) => Verdict::Unseen,
            (0, _) => Verdict::NotDone,
            _ if !self.is_active && self.wrong > 0 || self.wrong_since > 0 => Verdict::Unstable,
            (_, 0) => Verdict::Done,
            _ => Verdict::Late,
        }
    }

    /// Returns the time from the barrier reply until the entry was active; `None` unless the entry was late.
    ///
    /// The second value is half the interval between the two frames that show it.
    pub fn late_ns(&self, acknowledged_at: Nanos) -> Option<(f64, f64)> {
        let (wrong, right) = self.wrong_last_at.zip(self.right_first_at)?;
        let [wrong, right] = [wrong, right].map(|at| at.since(acknowledged_at).0 as f64);
        (self.verdict() == Verdict::Late)
            .then(|| (f64::midpoint(wrong, right), (right - wrong) / 2.0))
    }
}

/// Time limit for activation, shared between repeats. After it expired once, later repeats only confirm that.
#[derive(Debug, Clone, Default)]
pub struct ActivationLimit(Arc<AtomicBool>);

impl ActivationLimit {
    /// Returns the time to wait for an entry, at most `patience`.
    pub fn of(&self, patience: Nanos) -> Nanos {
        match self.0.load(Ordering::Relaxed) {
            true => Nanos(patience.0 / CONFIRM_SHARE),
            false => patience,
        }
    }

    /// Records that the whole time limit expired.
    pub fn missed(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates frames at intervals of 1 ms; the first `probes` precede the measurement.
    fn of(frames: &[bool], probes: usize) -> Activation {
        let mut activation = Activation::default();
        for (place, &is_right) in frames.iter().enumerate() {
            if place == probes {
                activation.settle(activation.has_in_a_row(2));
            }
            activation.note(Nanos::from_millis(place as u64 + 1), is_right);
        }
        activation
    }

    #[test]
    fn stale_frames_before_activation_make_an_entry_late() {
        let late = of(&[false, false, true, true, true, true], 4);
        assert_eq!(late.verdict(), Verdict::Late);
        // Between 2 ms and 3 ms after the barrier reply.
        assert_eq!(late.late_ns(Nanos::ZERO), Some((2.5e6, 0.5e6)));
        assert_eq!(of(&[true, true, true, true], 2).verdict(), Verdict::Done);
    }

    #[test]
    fn only_an_entry_without_a_correct_frame_is_not_done() {
        assert_eq!(of(&[false; 6], 4).verdict(), Verdict::NotDone);
        assert_eq!(of(&[false, true, false, true, false], 4).verdict(), Verdict::Unstable);
        assert_eq!(of(&[true, true, true, false], 2).verdict(), Verdict::Unstable);
        assert_eq!(of(&[], 0).verdict(), Verdict::Unseen);
    }

    #[test]
    fn an_exceeded_time_limit_is_shorter_in_later_repeats() {
        let bound = ActivationLimit::default();
        let later = bound.clone();
        assert_eq!(later.of(Nanos::from_secs(10)), Nanos::from_secs(10));
        bound.missed();
        assert_eq!(later.of(Nanos::from_secs(10)), Nanos::from_secs(1));
    }
}
