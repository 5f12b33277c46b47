//! What a search with several goals found for one of them.
//!
//! Source: RFC 9971 sections 4.6 (goals) and 4.8 (results). Invariant: every attribute of the goal
//! stands beside what was found, and a bound that does not exist is absent.

use serde::{Deserialize, Serialize};

use super::Metric;

/// Goals by their names, and the metric under which what was found for each is kept.
pub const GOALS: [(&str, Metric); 6] = [
    ("rfc2544", Metric::ThroughputPpsRfc2544),
    ("tst009", Metric::ThroughputPpsTst009),
    ("ndr", Metric::ThroughputPpsNdr),
    ("pdr", Metric::ThroughputPpsPdr),
    ("quick-ndr", Metric::ThroughputPpsQuickNdr),
    ("quick-pdr", Metric::ThroughputPpsQuickPdr),
];

/// The metric of the goal with this name.
pub fn metric_of_goal(name: &str) -> Option<Metric> {
    GOALS.iter().find(|(known, _)| *known == name).map(|(_, metric)| *metric)
}

/// One goal of a search, and what was found for it. Loads are those of a sending port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalResult {
    /// The goal's name.
    pub goal: String,
    /// Share of a trial's frames that may be lost.
    pub loss_ratio_allowed: f64,
    /// Share of the time whose trials may lose more.
    pub exceed_ratio: f64,
    /// Width at which bounds are close enough: their difference as a share of the upper one.
    pub width_ratio_wanted: f64,
    /// Length of the shortest trial chosen for the goal.
    pub duration_ns_initial: u64,
    /// Length of a full-length trial.
    pub duration_ns_final: u64,
    /// Time of full-length trials after which a load is decided at the latest.
    pub duration_ns_sum: u64,
    /// Relevant lower bound; where there is no upper bound, the highest load that reached the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_pps_lower: Option<f64>,
    /// Relevant upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_pps_upper: Option<f64>,
    /// Conditional throughput at the lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_pps_conditional: Option<f64>,
    /// Trials that were chosen for this goal; those of the other goals served it too.
    pub trials_chosen: u64,
    /// Time of those trials, without warm-up and drain.
    pub duration_ns_trials: u64,
    /// What is remarkable about the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

/// What is remarkable about a goal's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remark {
    /// Irregular: the lowest load missed the goal.
    NoLowerBound,
    /// Irregular: the highest load reached the goal.
    NoUpperBound,
    /// Irregular: time or trials ended before the bounds were close enough.
    CutShort,
    /// Irregular: more frames came back than were sent.
    ExtraFrames,
    /// A load above the upper bound reached the goal.
    LossInversion,
    /// At the upper bound the tester offered too little.
    TesterLimited,
    /// At the upper bound the tester may have lost the frames itself.
    Disturbed,
}

impl Remark {
    /// The words for it.
    pub fn words(self) -> &'static str {
        match self {
            Remark::NoLowerBound => "irregular: the lowest load missed the goal",
            Remark::NoUpperBound => {
                "irregular: the highest load reached the goal, so the target may do better"
            }
            Remark::CutShort => "irregular: the search ended before its bounds were close enough",
            Remark::ExtraFrames => "irregular: more frames came back than were sent",
            Remark::LossInversion => {
                "a higher load reached the goal as well; the lower is believed"
            }
            Remark::TesterLimited => {
                "at the upper bound the tester offered too little, so the target may do better"
            }
            Remark::Disturbed => {
                "at the upper bound the tester disturbed trial and repetitions, so the target may do better"
            }
        }
    }
}

impl GoalResult {
    /// How far the bounds are apart, as a share of the upper one; absent unless there are both.
    pub fn width_ratio(&self) -> Option<f64> {
        let (lower, upper) = self.rate_pps_lower.zip(self.rate_pps_upper)?;
        Some(1.0 - lower / upper)
    }
}
