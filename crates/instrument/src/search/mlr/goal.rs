//! What one search is to find: a loss that is allowed, and how sure it has to be.
//!
//! RFC 9971, 4.6 (goal terms). A goal is approached over [`LEVELS`] stages: each but the last asks
//! for twice the width of the next and for less time, so that long trials are spent only where
//! short ones have led. Invariant: a goal that a search works on was found valid.

use std::fmt;

use packet::time::Nanos;

/// Stages in which a goal is approached, the goal itself last.
pub const LEVELS: usize = 3;

/// The longest time that any attribute of a goal may ask for.
pub const DURATION_MAX: Nanos = Nanos::from_secs(86_400);

/// The widest interval that a goal may accept.
pub const WIDTH_MAX: f64 = 0.5;

/// One goal of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Share of a trial's frames that may be lost, from 0 and below 1.
    pub loss_ratio: f64,
    /// Share of the time, from 0 and below 1, whose trials may lose more at a load that counts as
    /// a lower bound.
    pub exceed_ratio: f64,
    /// Length of a full-length trial.
    pub duration_final: Nanos,
    /// Length of the shortest trial chosen for this goal.
    pub duration_initial: Nanos,
    /// Time of full-length trials after which a load is decided at the latest.
    pub duration_sum: Nanos,
    /// How far apart the bounds may be at the end: their difference as a share of the upper one.
    pub width: f64,
}

/// Why a goal was refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GoalError {
    /// The loss ratio is not from 0 and below 1.
    LossRatio(f64),
    /// The exceed ratio is not from 0 and below 1.
    ExceedRatio(f64),
    /// The width is not above 0 and up to [`WIDTH_MAX`].
    Width(f64),
    /// A duration is zero or longer than [`DURATION_MAX`].
    Duration(Nanos),
    /// The initial duration is longer than the final one.
    InitialAboveFinal {
        /// The initial duration.
        initial: Nanos,
        /// The final one.
        full: Nanos,
    },
    /// The sum is shorter than one full-length trial.
    SumBelowFinal {
        /// The sum.
        sum: Nanos,
        /// The final duration.
        full: Nanos,
    },
}

impl Goal {
    /// RFC 2544 without conditions: one trial of 60 seconds without any loss.
    pub fn rfc2544(width: f64) -> Goal {
        let minute = Nanos::from_secs(60);
        Goal { exceed_ratio: 0.0, duration_sum: minute, ..Goal::tst009(width) }
    }

    /// ETSI GS NFV-TST 009 with loss verification: of two trials of 60 seconds one is without loss.
    pub fn tst009(width: f64) -> Goal {
        Goal {
            loss_ratio: 0.0,
            exceed_ratio: 0.5,
            duration_final: Nanos::from_secs(60),
            duration_initial: Nanos::from_secs(1),
            duration_sum: Nanos::from_secs(120),
            width,
        }
    }

    /// The non-drop rate as FD.io CSIT asks for it: no loss in half of 21 trials of a second.
    pub fn ndr() -> Goal {
        let second = Nanos::from_secs(1);
        Goal {
            loss_ratio: 0.0,
            exceed_ratio: 0.5,
            duration_final: second,
            duration_initial: second,
            duration_sum: Nanos::from_secs(21),
            width: 0.005,
        }
    }

    /// The partial-drop rate: the same with this loss allowed.
    pub fn pdr(loss_ratio: f64) -> Goal {
        Goal { loss_ratio, ..Goal::ndr() }
    }

    /// A first look: ten trials of half a second, bounds within 2 %.
    pub fn quick(loss_ratio: f64) -> Goal {
        let half = Nanos::from_millis(500);
        let (duration_final, duration_initial) = (half, half);
        let (duration_sum, width) = (Nanos::from_secs(5), 0.02);
        Goal { duration_final, duration_initial, duration_sum, width, ..Goal::pdr(loss_ratio) }
    }

    /// Whether every attribute is in its range.
    pub fn check(&self) -> Result<(), GoalError> {
        let (initial, full, sum) = (self.duration_initial, self.duration_final, self.duration_sum);
        let is_time = |time: &Nanos| *time > Nanos::ZERO && *time <= DURATION_MAX;
        if !(0.0..1.0).contains(&self.loss_ratio) {
            return Err(GoalError::LossRatio(self.loss_ratio));
        }
        if !(0.0..1.0).contains(&self.exceed_ratio) {
            return Err(GoalError::ExceedRatio(self.exceed_ratio));
        }
        if !(self.width > 0.0 && self.width <= WIDTH_MAX) {
            return Err(GoalError::Width(self.width));
        }
        if let Some(wrong) = [initial, full, sum].into_iter().find(|time| !is_time(time)) {
            return Err(GoalError::Duration(wrong));
        }
        if initial > full {
            return Err(GoalError::InitialAboveFinal { initial, full });
        }
        if sum < full {
            return Err(GoalError::SumBelowFinal { sum, full });
        }
        Ok(())
    }

    /// The same at a stage: 0 is the coarsest, the last is the goal itself.
    pub fn at_level(&self, level: usize) -> Goal {
        let share = level as f64 / (LEVELS - 1) as f64;
        let between = |from: Nanos, to: Nanos| {
            let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
            Nanos::from_secs_f64(from * (to / from).powf(share))
        };
        if level + 1 >= LEVELS {
            return *self;
        }
        let duration_final = between(self.duration_initial, self.duration_final);
        let sum = between(self.duration_initial, self.duration_sum);
        let doublings = (LEVELS - 1 - level) as i32;
        let width = 1.0 - (1.0 - self.width).powi(1 << doublings);
        Goal { duration_final, duration_sum: sum.max(duration_final), width, ..*self }
    }

    /// How far apart bounds are aimed at, as the logarithm of their ratio: a little closer than asked
    /// for, since loads are rounded.
    pub fn log_width(&self) -> f64 {
        -(1.0 - self.width * 0.9999).ln()
    }

    /// Whether bounds at these loads are close enough.
    pub fn is_narrow(&self, lower: f64, upper: f64) -> bool {
        1.0 - lower / upper <= self.width
    }
}

impl fmt::Display for GoalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GoalError::LossRatio(is) => {
                write!(f, "a loss ratio of {is}: give one from 0 and below 1, such as 0.005")
            }
            GoalError::ExceedRatio(is) => {
                write!(f, "an exceed ratio of {is}: give one from 0 and below 1, such as 0.5")
            }
            GoalError::Width(is) => {
                write!(f, "a width of {is}: give one above 0 and up to {WIDTH_MAX}, such as 0.005")
            }
            GoalError::Duration(is) => {
                write!(f, "a duration of {is}: give one above 0 and up to {DURATION_MAX}")
            }
            GoalError::InitialAboveFinal { initial, full } => write!(
                f,
                "an initial trial of {initial} before full-length ones of {full}: give an initial \
                 duration of at most the final one"
            ),
            GoalError::SumBelowFinal { sum, full } => write!(
                f,
                "a sum of {sum} for trials of {full}: give a sum of at least one full-length trial"
            ),
        }
    }
}

impl std::error::Error for GoalError {}
