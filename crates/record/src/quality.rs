//! Quality of a value: bounds, disturbances, and reasons against a conclusion.
//!
//! `report::analysis` finds these facts from trials, and `stats::conclude` uses them. Invariant: a
//! record stored without them is read as one whose values have none, and its `finish` adds them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value that is known from one side only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The side on which the value bounds the true one.
    pub side: BoundSide,
    /// Cause of the open side.
    pub cause: BoundCause,
}

/// The side on which a value bounds the true one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundSide {
    /// The true value is at least this one.
    Lower,
    /// The true value is at most this one.
    Upper,
}

/// What makes a value a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundCause {
    /// The search ended at the largest value that it tries.
    SearchLimit,
    /// The tester reached its limit before the target did.
    TesterLimit,
    /// The link reached its capacity before the target did.
    LinkLimit,
    /// The value is not larger than its resolution.
    Resolution,
}

impl fmt::Display for BoundCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BoundCause::SearchLimit => "the search ended at its largest value",
            BoundCause::TesterLimit => "the tester reached its limit",
            BoundCause::LinkLimit => "the link reached its capacity",
            BoundCause::Resolution => "the value is below the resolution",
        })
    }
}

/// What disturbed some repeats of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Cause of the disturbance.
    pub cause: DisturbanceCause,
    /// Affected repeats, in rising order.
    pub repeats: Vec<u32>,
}

/// Why a repeat is not valid for its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisturbanceCause {
    /// The tester was descheduled for too large a share of the trial.
    Descheduled,
    /// The tester offered less than intended, or dropped frames that it had received.
    TesterLimited,
    /// The caches of the target were not filled.
    ColdCaches,
    /// A trial or a search did not complete according to its method.
    Irregular,
}

impl fmt::Display for DisturbanceCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DisturbanceCause::Descheduled => "the tester was descheduled",
            DisturbanceCause::TesterLimited => {
                "the tester offered less than intended, or did not take all returned frames in time"
            }
            DisturbanceCause::ColdCaches => "the caches of the target were not filled",
            DisturbanceCause::Irregular => {
                "the trial or search did not follow its method to the end"
            }
        })
    }
}

/// Why a value supports no conclusion, independent of its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Exclusion {
    /// Time was simulated: rates and times belong to the simulation, not to a machine.
    Simulated,
    /// Most trials of the run were disturbed.
    RunDisturbed {
        /// Trials in which the tester was descheduled.
        trials: u64,
        /// All trials.
        of: u64,
    },
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exclusion::Simulated => f.write_str("rates and times are simulated"),
            Exclusion::RunDisturbed { trials, of } => {
                write!(f, "the tester was descheduled in {trials} of {of} trials")
            }
        }
    }
}

/// Why a value, or a pair of values, is inconclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// The run excludes the value.
    Excluded {
        /// Why.
        exclusion: Exclusion,
    },
    /// Too many of its repeats were disturbed.
    Disturbed {
        /// The most frequent cause.
        cause: DisturbanceCause,
        /// Repeats that were disturbed.
        repeats: u32,
        /// All repeats.
        of: u32,
    },
    /// It is a bound whose open side would decide.
    Bounded {
        /// The bound.
        bound: Bound,
    },
    /// Fewer than two repeats give no interval.
    MeasuredOnce,
    /// The interval contains the limit, or exceeds the smallest relevant difference.
    Overlap,
    /// The two values have no repeat in common, or no ratio.
    NoPair,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Excluded { exclusion } => exclusion.fmt(f),
            Reason::Disturbed { cause, repeats, of } => {
                write!(f, "{cause} in {repeats} of {of} repeats")
            }
            Reason::Bounded { bound: Bound { cause: BoundCause::Resolution, .. } } => {
                f.write_str("a value is below the resolution")
            }
            Reason::Bounded { bound: Bound { side, cause } } => {
                let side = if *side == BoundSide::Lower { "a lower" } else { "an upper" };
                write!(f, "a value is only {side} bound, because {cause}")
            }
            Reason::MeasuredOnce => f.write_str("it was measured once"),
            Reason::Overlap => f.write_str("the interval contains the threshold"),
            Reason::NoPair => f.write_str("no pair of repeats can be compared"),
        }
    }
}
