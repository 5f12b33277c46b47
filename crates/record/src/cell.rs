//! Values derived from trials: values with intervals, ratios, and verdicts on claims.
//!
//! Invariant: every item names the trials or values that it is derived from and can be recomputed.
//! Nothing here is measured.

use serde::{Deserialize, Serialize};

use super::{Bound, Disturbance, Exclusion, Metric, Point, Reason, Warning};

/// Confidence level of reports, in percent.
pub const LEVEL_PERCENT: f64 = 95.0;

/// The higher confidence level that records also contain, in percent.
pub const LEVEL_PERCENT_HIGH: f64 = 99.0;

/// A range that contains the true value with the stated confidence, if the method's assumptions
/// hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Actual confidence level of the method here, in percent.
    pub level_percent: f64,
    /// Method that produced the interval.
    pub method: IntervalMethod,
}

impl Interval {
    /// Whether the interval contains `value`, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Method that produced an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalMethod {
    /// Student's t for the mean of the repeats.
    StudentT,
    /// Student's t for the mean of logarithms (for ratios).
    StudentTLog,
    /// Two of the sorted values. Makes no assumption about their distribution.
    OrderStatistics,
    /// Seeded resampling: percentiles of the resampled medians.
    Bootstrap,
    /// Ranks of differences, of pairs or between two series. Only for comparisons.
    Ranks,
}

/// One metric of one target at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The experiment's id.
    pub experiment: String,
    /// The target's name.
    #[serde(deserialize_with = "crate::target_name::read")]
    pub target: String,
    /// The link, if the run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Position on the experiment's axis.
    pub point: Point,
    /// The metric.
    pub metric: Metric,
    /// Unit of the values.
    pub unit: String,
    /// The value to display: mean of the repeats, or their median for percentiles and extremes.
    pub value: f64,
    /// Number of repeats.
    pub n: u32,
    /// Its interval; absent for one repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// The interval at 99 % confidence, or at the highest level that the repeats allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_99: Option<Interval>,
    /// Resolution: the largest resolution of the repeats' values. The interval covers the
    /// differences between repeats and does not include the resolution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<f64>,
    /// Values of the repeats, in order.
    pub samples: Vec<f64>,
    /// Repeat numbers of `samples`, in the same order.
    pub repeats: Vec<u32>,
    /// Ids of the trials that the value uses.
    pub trials: Vec<u64>,
    /// What limited a forwarding rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Which side of the true value this bounds, if it is only a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Disturbances of its repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<Disturbance>,
    /// Why the value supports no conclusion, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusion: Option<Exclusion>,
    /// Warnings that apply to the value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

impl Cell {
    /// The interval, widened by the resolution of the repeats; absent for one repeat.
    pub fn range(&self) -> Option<Interval> {
        let each = self.resolution.unwrap_or(0.0);
        let is_positive = self.samples.iter().all(|sample| *sample >= 0.0);
        let least = if is_positive { 0.0 } else { f64::NEG_INFINITY };
        let most = if self.metric.is_at_most_one() { 1.0 } else { f64::INFINITY };
        let found = self.interval?;
        let (low, high) = ((found.low - each).max(least), (found.high + each).min(most));
        Some(Interval { low: low.min(found.low), high: high.max(found.high), ..found })
    }
}

/// What limited a forwarding rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The load: the target forwarded all of it.
    Load,
    /// The tester: it offered too little, or received too slowly.
    Tester,
    /// The link: the target is about as fast as a forwarder that does not parse frames.
    Wire,
    /// The target.
    Target,
}

impl Limit {
    /// Text for display.
    pub fn words(self) -> &'static str {
        match self {
            Limit::Load => "the offered load",
            Limit::Tester => "the tester",
            Limit::Wire => "the link's capacity",
            Limit::Target => "the target",
        }
    }
}

/// One target compared with the first, from interleaved pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The experiment's id.
    pub experiment: String,
    /// The target's name.
    #[serde(deserialize_with = "crate::target_name::read")]
    pub target: String,
    /// The target that it is compared with.
    #[serde(deserialize_with = "crate::target_name::read")]
    pub base: String,
    /// The links of the target and of the base, if they differ. The ratio then includes the
    /// difference between the links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<[String; 2]>,
    /// Position on the experiment's axis.
    pub point: Point,
    /// The metric.
    pub metric: Metric,
    /// Central value of the pairs' ratios.
    pub ratio: f64,
    /// Number of pairs.
    pub n: u32,
    /// Its interval; absent for one pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// The conclusion that the interval allows.
    pub answer: Answer,
    /// Reason for an inconclusive answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

impl Ratio {
    /// Warning text for targets with different links.
    pub fn across_links(&self) -> Option<String> {
        let [own, base] = self.links.as_ref()?;
        Some(format!(
            "over {own} against {base}: the ratio includes the difference between the links"
        ))
    }
}

/// The conclusion that an interval allows about a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Significantly higher than the base, by more than the smallest relevant difference.
    Higher,
    /// Significantly lower than the base, by more than the smallest relevant difference.
    Lower,
    /// Equal to the base within the smallest relevant difference, with significance.
    Equivalent,
    /// The interval allows none of these conclusions.
    Inconclusive,
}

/// A value printed in a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Short name of the study.
    pub study: String,
    /// Its figure or table.
    pub item: String,
    /// The device that the study measured.
    pub subject: String,
    /// Position on the axis.
    pub point: Point,
    /// The quantity, with its unit in the name.
    pub metric: String,
    /// The printed value; for a text, its length in bytes.
    pub value: f64,
    /// The printed text, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A statement of a study that measurements can verify.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Short name of the study.
    pub study: String,
    /// Its figure or table.
    pub item: String,
    /// Place in the study's text, such as `section IV.A`; empty in records of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Subject of the statement.
    pub subject: String,
    /// Conditions of the statement.
    pub condition: String,
    /// The statement in words.
    pub claim: String,
    /// The stated value as printed; empty if none.
    pub value: String,
    /// Unit of the value; empty if none.
    pub unit: String,
    /// Meaning of the value.
    pub relation: Relation,
}

/// Meaning of a claim's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Starts at the value.
    From,
    /// Close to the value.
    About,
    /// Below the value.
    Below,
    /// At most the value.
    UpTo,
    /// Exactly the value, as printed.
    Value,
    /// Between two values.
    Range,
    /// A qualitative relation without a value.
    Shape,
}

/// Verdict on a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimVerdict {
    /// The claim.
    pub claim: Claim,
    /// The targets that the verdict is about.
    #[serde(deserialize_with = "crate::target_name::read_all")]
    pub targets: Vec<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// The numbers behind the verdict, in one sentence.
    pub numbers: String,
    /// Interpretation of the claim that makes it measurable.
    pub reading: String,
    /// Whether a target is a model made from this study. The verdict then follows from the model
    /// and does not count as evidence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_construction: bool,
}

/// Verdict on a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", content = "why", rename_all = "snake_case")]
pub enum Verdict {
    /// The interval confirms the claim.
    Holds,
    /// The interval contradicts the claim.
    Contradicted,
    /// The interval is inconclusive, or a measurement is missing (which).
    Undecided(String),
}
