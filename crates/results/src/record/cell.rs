//! What is derived from trials: values with intervals, ratios, and verdicts on claims.
//!
//! Invariant: everything here names the trials or values that it came from and can be computed
//! again; nothing here is measured.

use serde::{Deserialize, Serialize};

use super::{Bound, Disturbance, Exclusion, Metric, Point, Reason, Warning};

/// A range that holds the true value with the stated confidence, if the method's premises hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence that the method really gives here, in percent.
    pub level_percent: f64,
    /// How it was found.
    pub method: IntervalMethod,
}

impl Interval {
    /// Whether `value` lies in it, ends counted.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// How an interval was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalMethod {
    /// Student's t of the repeats' mean.
    StudentT,
    /// Student's t of the mean of logarithms (for ratios).
    StudentTLog,
    /// Two of the sorted values: free of any assumption about their distribution.
    OrderStatistics,
    /// Resampling with a seed, percentiles of the resampled medians.
    Bootstrap,
    /// Ranks of differences, of pairs or between two series: only comparisons have it.
    Ranks,
}

/// One metric of one target at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The experiment's id.
    pub experiment: String,
    /// The target's name.
    pub target: String,
    /// The link over which it was measured, where the run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Where on the experiment's axis it lies.
    pub point: Point,
    /// What was measured.
    pub metric: Metric,
    /// Unit of the values.
    pub unit: String,
    /// The value to show: mean of the repeats, or their median for percentiles and extremes.
    pub value: f64,
    /// Repeats that it rests on.
    pub n: u32,
    /// Its interval; absent if there was one repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// The same for a confidence of 99 %, or what the repeats reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_99: Option<Interval>,
    /// Each repeat's value is known to within so much, as far as the way of looking goes: the largest of
    /// theirs. The interval says what repeats differ by, and does not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<f64>,
    /// The repeats' values, in the order of the repeats.
    pub samples: Vec<f64>,
    /// Which repeats those are, in the same order.
    pub repeats: Vec<u32>,
    /// The trials that it rests on.
    pub trials: Vec<u64>,
    /// What kept a forwarding rate from being higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// On which side it only bounds the true value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// What disturbed its repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<Disturbance>,
    /// Why nothing is concluded from it, whatever it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusion: Option<Exclusion>,
    /// What to know before trusting it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// What kept a forwarding rate from being higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The load: all of it was carried.
    Load,
    /// The tester, which offered too little or took too slowly what came back.
    Tester,
    /// The wire: the target is about as fast as the forwarder that looks at no frame.
    Wire,
    /// The target.
    Target,
}

impl Limit {
    /// The words for it.
    pub fn words(self) -> &'static str {
        match self {
            Limit::Load => "the load offered",
            Limit::Tester => "the tester",
            Limit::Wire => "the wire's ceiling",
            Limit::Target => "the target",
        }
    }
}

/// One target against the first, by interleaved pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The experiment's id.
    pub experiment: String,
    /// The target's name.
    pub target: String,
    /// The target that it is compared with.
    pub base: String,
    /// The target's link and the base's, where they differ: what the links differ by is in the ratio too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<[String; 2]>,
    /// Where on the experiment's axis it lies.
    pub point: Point,
    /// What is compared.
    pub metric: Metric,
    /// Middle of the pairs' ratios.
    pub ratio: f64,
    /// Pairs.
    pub n: u32,
    /// Its interval; absent if there was one pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// What the interval allows to say.
    pub answer: Answer,
    /// Why the answer is unclear, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

impl Ratio {
    /// What a reader has to know where the two were not joined alike.
    pub fn across_links(&self) -> Option<String> {
        let [own, base] = self.links.as_ref()?;
        Some(format!("over {own} against {base}: what the links differ by is in the ratio too"))
    }
}

/// What an interval allows to say about a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// More than the base by more than the smallest relevant difference, beyond chance.
    Higher,
    /// Less than the base, likewise.
    Lower,
    /// The same within the smallest relevant difference, beyond chance.
    Alike,
    /// None of these can be concluded.
    Unclear,
}

/// A value that a study prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Short name of the study.
    pub study: String,
    /// Its figure or table.
    pub item: String,
    /// What was measured there.
    pub subject: String,
    /// Where on the axis it lies.
    pub point: Point,
    /// The quantity, with its unit in the name.
    pub metric: String,
    /// The printed value; of a text the number of its bytes.
    pub value: f64,
    /// The text, where one is printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A sentence of a study that measurement can judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Short name of the study.
    pub study: String,
    /// Its figure or table.
    pub item: String,
    /// The place in the study's text, such as `section IV.A`; empty in records of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// What it speaks of.
    pub subject: String,
    /// Under which conditions.
    pub condition: String,
    /// What it states, in words.
    pub claim: String,
    /// The value that it gives, as printed; empty if none.
    pub value: String,
    /// Unit of the value; empty if none.
    pub unit: String,
    /// How the value is meant.
    pub relation: Relation,
}

/// How a claim's value is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// It begins there.
    From,
    /// Near it.
    About,
    /// Smaller than it.
    Below,
    /// At most it.
    UpTo,
    /// Exactly it, as printed.
    Value,
    /// Between two.
    Range,
    /// A relation in words, without a value to compare.
    Shape,
}

/// Whether a claim holds here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimVerdict {
    /// What the study states.
    pub claim: Claim,
    /// Which of our targets it was put to.
    pub targets: Vec<String>,
    /// The answer.
    pub verdict: Verdict,
    /// The numbers that the answer rests on, in one sentence.
    pub numbers: String,
    /// How the claim's words were read, so that a number can decide.
    pub reading: String,
    /// Whether a target is a model that was made from this study, so that the answer follows from the model and counts
    /// for nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_construction: bool,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", content = "why", rename_all = "snake_case")]
pub enum Verdict {
    /// The interval says yes.
    Holds,
    /// The interval says no.
    DoesNot,
    /// The interval says neither, or something was not measured (what).
    CannotTell(String),
}
