//! Result of a search with several goals for one of them.
//!
//! Source: RFC 9971 sections 4.6 (goals) and 4.8 (results). Invariant: every attribute of the goal
//! is stored with the result, and a bound that does not exist is absent.

use serde::{Deserialize, Serialize};

use super::Metric;

/// Names of the goals, and the metric of each goal's result.
pub const GOALS: [(&str, Metric); 6] = [
    ("rfc2544", Metric::ThroughputPpsRfc2544),
    ("tst009", Metric::ThroughputPpsTst009),
    ("ndr", Metric::ThroughputPpsNdr),
    ("pdr", Metric::ThroughputPpsPdr),
    ("quick-ndr", Metric::ThroughputPpsQuickNdr),
    ("quick-pdr", Metric::ThroughputPpsQuickPdr),
];

/// Returns the metric of the goal with this name.
pub fn metric_of_goal(name: &str) -> Option<Metric> {
    GOALS.iter().find(|(known, _)| *known == name).map(|(_, metric)| *metric)
}

/// One goal of a search and its result. Loads are per sending port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalResult {
    /// The goal's name.
    pub goal: String,
    /// Goal loss ratio: allowed share of lost frames in a trial.
    pub loss_ratio_allowed: f64,
    /// Goal exceed ratio: share of the time in which trials may exceed the goal loss ratio.
    pub exceed_ratio: f64,
    /// Goal width: target difference of the bounds as a share of the upper one.
    pub width_ratio_wanted: f64,
    /// Goal initial trial duration: shortest trial chosen for the goal.
    pub duration_ns_initial: u64,
    /// Goal final trial duration: length of a full-length trial.
    pub duration_ns_final: u64,
    /// Goal duration sum: time of full-length trials that classifies a load at the latest.
    pub duration_ns_sum: u64,
    /// Relevant lower bound. Without an upper bound, the highest load that met the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_pps_lower: Option<f64>,
    /// Relevant upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_pps_upper: Option<f64>,
    /// Conditional throughput at the lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_pps_conditional: Option<f64>,
    /// Trials chosen for this goal. Trials of other goals count for it too.
    pub trials_chosen: u64,
    /// Total time of these trials, without warm-up and drain.
    pub duration_ns_trials: u64,
    /// Conditions that affect the result's validity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

/// A condition that affects the validity of a goal's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remark {
    /// Irregular: the lowest load failed the goal.
    NoLowerBound,
    /// Irregular: the highest load met the goal.
    NoUpperBound,
    /// Irregular: the limit on time or trials was reached before the bounds were close enough.
    CutShort,
    /// Irregular: more frames were received than sent.
    ExtraFrames,
    /// A load above the upper bound met the goal.
    LossInversion,
    /// At the upper bound, the tester offered too little.
    TesterLimited,
    /// At the upper bound, the tester may have caused the loss.
    Disturbed,
}

impl Remark {
    /// Text for display.
    pub fn words(self) -> &'static str {
        match self {
            Remark::NoLowerBound => "irregular: the lowest load missed the goal",
            Remark::NoUpperBound => {
                "irregular: the highest load reached the goal; the target may be faster"
            }
            Remark::CutShort => "irregular: the search ended before its bounds were close enough",
            Remark::ExtraFrames => "irregular: more frames were received than sent",
            Remark::LossInversion => "a higher load also reached the goal; the lower one is used",
            Remark::TesterLimited => {
                "at the upper bound the offered load was too low; the target may be faster"
            }
            Remark::Disturbed => {
                "at the upper bound the tester disturbed the trial and its repetitions; the target may be faster"
            }
        }
    }
}

impl GoalResult {
    /// Distance of the bounds as a share of the upper one; absent unless both exist.
    pub fn width_ratio(&self) -> Option<f64> {
        let (lower, upper) = self.rate_pps_lower.zip(self.rate_pps_upper)?;
        Some(1.0 - lower / upper)
    }
}
