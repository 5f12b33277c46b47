//! Goals of a search: an allowed loss with the required certainty.
//!
//! Source: RFC 9971, section 4.6. A goal is approached in [`LEVELS`] stages. Each stage but the
//! last has twice the width of the next one and needs less time. So long trials happen only where
//! short ones have led.
//!
//! Invariant: the goals of a search are valid.

use std::fmt;

use packet::time::Nanos;

/// Number of stages of a goal. The last one is the goal itself.
pub const LEVELS: usize = 3;

/// Upper limit of a goal's durations.
pub const DURATION_MAX: Nanos = Nanos::from_secs(86_400);

/// Upper limit of a goal's width.
pub const WIDTH_MAX: f64 = 0.5;

/// One goal of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Maximum frame loss rate of a trial, from 0 and below 1.
    pub loss_ratio: f64,
    /// Share of the time, from 0 and below 1, in which trials at a lower bound may exceed the loss
    /// ratio.
    pub exceed_ratio: f64,
    /// Duration of a full-length trial.
    pub duration_final: Nanos,
    /// Duration of the shortest trial for this goal.
    pub duration_initial: Nanos,
    /// Total time of full-length trials after which a load is decided at the latest.
    pub duration_sum: Nanos,
    /// Maximum distance of the bounds at the end, as a share of the upper one.
    pub width: f64,
}

/// Why a goal is invalid.
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
        /// The final duration.
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

    /// ETSI GS NFV-TST 009 with loss verification: one of two 60-second trials is without loss.
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

    /// Non-drop rate as in FD.io CSIT: no loss in half of 21 one-second trials.
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

    /// Partial-drop rate: like `ndr`, with this loss allowed.
    pub fn pdr(loss_ratio: f64) -> Goal {
        Goal { loss_ratio, ..Goal::ndr() }
    }

    /// A quick estimate: ten trials of half a second, bounds within 2 %.
    pub fn quick(loss_ratio: f64) -> Goal {
        let half = Nanos::from_millis(500);
        let (duration_final, duration_initial) = (half, half);
        let (duration_sum, width) = (Nanos::from_secs(5), 0.02);
        Goal { duration_final, duration_initial, duration_sum, width, ..Goal::pdr(loss_ratio) }
    }

    /// Returns an error if an attribute is out of range.
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

    /// Returns the goal of a stage: 0 is the coarsest, the last is the goal itself.
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

    /// Returns the target distance of the bounds, as the logarithm of their ratio.
    ///
    /// It is slightly less than the width, because loads are rounded.
    pub fn log_width(&self) -> f64 {
        -(1.0 - self.width * 0.9999).ln()
    }

    /// Returns whether these bounds are close enough.
    pub fn is_narrow(&self, lower: f64, upper: f64) -> bool {
        1.0 - lower / upper <= self.width
    }
}

impl fmt::Display for GoalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GoalError::LossRatio(is) => {
                write!(
                    f,
                    "invalid loss ratio {is} (hint: use a number from 0 to below 1, such as 0.005)"
                )
            }
            GoalError::ExceedRatio(is) => {
                write!(
                    f,
                    "invalid exceed ratio {is} (hint: use a number from 0 to below 1, such as 0.5)"
                )
            }
            GoalError::Width(is) => {
                write!(
                    f,
                    "invalid width {is} (hint: use a number above 0 and up to {WIDTH_MAX}, such \
                     as 0.005)"
                )
            }
            GoalError::Duration(is) => {
                write!(f, "invalid duration {is} (hint: use one above 0 and up to {DURATION_MAX})")
            }
            GoalError::InitialAboveFinal { initial, full } => write!(
                f,
                "the initial trial of {initial} exceeds the final one of {full} (hint: use an \
                 initial duration of at most the final one)"
            ),
            GoalError::SumBelowFinal { sum, full } => write!(
                f,
                "the sum of {sum} is below one trial of {full} (hint: use a sum of at least one \
                 full-length trial)"
            ),
        }
    }
}

impl std::error::Error for GoalError {}
