//! What is derived from trials: values with intervals, ratios, and verdicts on claims.
//!
//! Invariant: everything here names the trials or values that it came from and can be computed
//! again; nothing here is measured.

use serde::{Deserialize, Serialize};

use super::{Point, Warning};

/// A quantity that cells hold; its name ends in its unit and qualifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Frames per second offered.
    RatePpsOffered,
    /// Frames per second that came out where they belong.
    RatePpsForwarded,
    /// Bits per second offered, link layer (frame check sequence counted, preamble and gap not).
    RateBpsOffered,
    /// Bits per second that came out where they belong, link layer.
    RateBpsForwarded,
    /// Share of offered frames that did not come out where they belong.
    LossRatio,
    /// Largest load without loss (RFC 2544), frames per second.
    ThroughputPps,
    /// Largest load within the loss that was allowed, frames per second.
    ThroughputPpsLossy,
    /// Conditional throughput (RFC 9971) of the goal `rfc2544`: no loss in a trial of a minute.
    ThroughputPpsRfc2544,
    /// The same of the goal `tst009`: no loss in one of two such trials.
    ThroughputPpsTst009,
    /// The same of the goal `ndr`: no loss in half of the time.
    ThroughputPpsNdr,
    /// The same of the goal `pdr`: no more than the loss allowed in half of the time.
    ThroughputPpsPdr,
    /// The same of the goal `quick-ndr`, a shorter `ndr`.
    ThroughputPpsQuickNdr,
    /// The same of the goal `quick-pdr`, a shorter `pdr`.
    ThroughputPpsQuickPdr,
    /// Mean latency from the real departure.
    LatencyNsMean,
    /// Smallest latency.
    LatencyNsMin,
    /// Median latency.
    LatencyNsP50,
    /// 90th percentile of the latency.
    LatencyNsP90,
    /// 99th percentile of the latency.
    LatencyNsP99,
    /// 99.9th percentile of the latency.
    LatencyNsP999,
    /// 99.99th percentile of the latency.
    LatencyNsP9999,
    /// Largest latency.
    LatencyNsMax,
    /// Median latency from the scheduled departure.
    LatencyScheduledNsP50,
    /// 99th percentile of the latency from the scheduled departure.
    LatencyScheduledNsP99,
    /// Packet delay variation: 99.9th percentile less minimum.
    PdvNsP999,
    /// Cycles of the time-stamp counter that the target spent on frames, for each frame that it
    /// took.
    CyclesBusyPerFrame,
    /// The same over what it is without a controller that asks for something meanwhile.
    CyclesBusyRatio,
    /// Rate over flows never met before, over the rate when they are known.
    RateColdRatio,
    /// Entries added in a second, from the first byte sent to the last answer.
    FlowModsAddedPerS,
    /// Entries given other actions in a second.
    FlowModsModifiedPerS,
    /// Entries deleted in a second, each by its match and priority.
    FlowModsDeletedPerS,
    /// Entries added and deleted again in a second.
    FlowModsChangedPerS,
    /// Entries told of with their counters in a second.
    FlowStatsPerS,
    /// Time until all entries were told of.
    FlowStatsNs,
    /// Time until the first of them arrived.
    FlowStatsNsFirst,
    /// Growth of the target's memory for each flow.
    MemoryBytesPerFlow,
    /// Time in the target by bianco2010's formula: Tp = L - 2 (Tt + D).
    ProcessingNs,
    /// Share of the first flow's offered frames that did not come out.
    LossRatioF1,
    /// The same of the second flow.
    LossRatioF2,
    /// The former less the latter: above zero, the first flow loses more.
    LossRatioDifference,
    /// Jain's index of what each flow got of what it offered: 1 where all got the same share.
    FairnessIndexJain,
    /// Smallest share that a flow got of what it would have got, were what came out divided
    /// max-min fairly: 1 where it was.
    MaxMinShareRatio,
}

impl Metric {
    /// Every metric, in the order in which tables show them.
    pub const ALL: [Metric; 41] = [
        Metric::RatePpsOffered,
        Metric::RatePpsForwarded,
        Metric::RateBpsOffered,
        Metric::RateBpsForwarded,
        Metric::LossRatio,
        Metric::ThroughputPps,
        Metric::ThroughputPpsLossy,
        Metric::ThroughputPpsRfc2544,
        Metric::ThroughputPpsTst009,
        Metric::ThroughputPpsNdr,
        Metric::ThroughputPpsPdr,
        Metric::ThroughputPpsQuickNdr,
        Metric::ThroughputPpsQuickPdr,
        Metric::LatencyNsMean,
        Metric::LatencyNsMin,
        Metric::LatencyNsP50,
        Metric::LatencyNsP90,
        Metric::LatencyNsP99,
        Metric::LatencyNsP999,
        Metric::LatencyNsP9999,
        Metric::LatencyNsMax,
        Metric::LatencyScheduledNsP50,
        Metric::LatencyScheduledNsP99,
        Metric::PdvNsP999,
        Metric::CyclesBusyPerFrame,
        Metric::CyclesBusyRatio,
        Metric::RateColdRatio,
        Metric::FlowModsAddedPerS,
        Metric::FlowModsModifiedPerS,
        Metric::FlowModsDeletedPerS,
        Metric::FlowModsChangedPerS,
        Metric::FlowStatsPerS,
        Metric::FlowStatsNs,
        Metric::FlowStatsNsFirst,
        Metric::MemoryBytesPerFlow,
        Metric::ProcessingNs,
        Metric::LossRatioF1,
        Metric::LossRatioF2,
        Metric::LossRatioDifference,
        Metric::FairnessIndexJain,
        Metric::MaxMinShareRatio,
    ];

    /// Its name as stored.
    pub fn name(self) -> &'static str {
        match self {
            Metric::RatePpsOffered => "rate_pps_offered",
            Metric::RatePpsForwarded => "rate_pps_forwarded",
            Metric::RateBpsOffered => "rate_bps_offered",
            Metric::RateBpsForwarded => "rate_bps_forwarded",
            Metric::LossRatio => "loss_ratio",
            Metric::ThroughputPps => "throughput_pps",
            Metric::ThroughputPpsLossy => "throughput_pps_lossy",
            Metric::ThroughputPpsRfc2544 => "throughput_pps_rfc2544",
            Metric::ThroughputPpsTst009 => "throughput_pps_tst009",
            Metric::ThroughputPpsNdr => "throughput_pps_ndr",
            Metric::ThroughputPpsPdr => "throughput_pps_pdr",
            Metric::ThroughputPpsQuickNdr => "throughput_pps_quick_ndr",
            Metric::ThroughputPpsQuickPdr => "throughput_pps_quick_pdr",
            Metric::LatencyNsMean => "latency_ns_mean",
            Metric::LatencyNsMin => "latency_ns_min",
            Metric::LatencyNsP50 => "latency_ns_p50",
            Metric::LatencyNsP90 => "latency_ns_p90",
            Metric::LatencyNsP99 => "latency_ns_p99",
            Metric::LatencyNsP999 => "latency_ns_p999",
            Metric::LatencyNsP9999 => "latency_ns_p9999",
            Metric::LatencyNsMax => "latency_ns_max",
            Metric::LatencyScheduledNsP50 => "latency_scheduled_ns_p50",
            Metric::LatencyScheduledNsP99 => "latency_scheduled_ns_p99",
            Metric::PdvNsP999 => "pdv_ns_p999",
            Metric::CyclesBusyPerFrame => "cycles_busy_per_frame",
            Metric::CyclesBusyRatio => "cycles_busy_ratio",
            Metric::RateColdRatio => "rate_cold_ratio",
            Metric::FlowModsAddedPerS => "flow_mods_added_per_s",
            Metric::FlowModsModifiedPerS => "flow_mods_modified_per_s",
            Metric::FlowModsDeletedPerS => "flow_mods_deleted_per_s",
            Metric::FlowModsChangedPerS => "flow_mods_changed_per_s",
            Metric::FlowStatsPerS => "flow_stats_per_s",
            Metric::FlowStatsNs => "flow_stats_ns",
            Metric::FlowStatsNsFirst => "flow_stats_ns_first",
            Metric::MemoryBytesPerFlow => "memory_bytes_per_flow",
            Metric::ProcessingNs => "processing_ns",
            Metric::LossRatioF1 => "loss_ratio_f1",
            Metric::LossRatioF2 => "loss_ratio_f2",
            Metric::LossRatioDifference => "loss_ratio_difference",
            Metric::FairnessIndexJain => "fairness_index_jain",
            Metric::MaxMinShareRatio => "max_min_share_ratio",
        }
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::RatePpsOffered
            | Metric::RatePpsForwarded
            | Metric::ThroughputPps
            | Metric::ThroughputPpsLossy
            | Metric::ThroughputPpsRfc2544
            | Metric::ThroughputPpsTst009
            | Metric::ThroughputPpsNdr
            | Metric::ThroughputPpsPdr
            | Metric::ThroughputPpsQuickNdr
            | Metric::ThroughputPpsQuickPdr => "pps",
            Metric::RateBpsOffered | Metric::RateBpsForwarded => "bps",
            Metric::LossRatio
            | Metric::LossRatioF1
            | Metric::LossRatioF2
            | Metric::LossRatioDifference
            | Metric::MaxMinShareRatio
            | Metric::CyclesBusyRatio
            | Metric::RateColdRatio => "ratio",
            Metric::CyclesBusyPerFrame => "cycles",
            Metric::FlowModsAddedPerS
            | Metric::FlowModsModifiedPerS
            | Metric::FlowModsDeletedPerS
            | Metric::FlowModsChangedPerS
            | Metric::FlowStatsPerS => "per_s",
            Metric::MemoryBytesPerFlow => "bytes",
            Metric::FairnessIndexJain => "index",
            _ => "ns",
        }
    }

    /// Whether it is a share of something, and never more than all of it.
    pub fn is_at_most_one(self) -> bool {
        matches!(
            self,
            Metric::LossRatio
                | Metric::LossRatioF1
                | Metric::LossRatioF2
                | Metric::FairnessIndexJain
                | Metric::MaxMinShareRatio
        )
    }

    /// Whether repeats are combined by their median: percentiles and extremes are never averaged.
    pub fn is_by_median(self) -> bool {
        let is_of_means = matches!(self, Metric::LatencyNsMean | Metric::ProcessingNs);
        self.unit() == "ns" && !is_of_means
    }
}

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
}

/// One metric of one target at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The experiment's id.
    pub experiment: String,
    /// The target's name.
    pub target: String,
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
    /// The repeats' values, in the order of the repeats.
    pub samples: Vec<f64>,
    /// Which repeats those are, in the same order.
    pub repeats: Vec<u32>,
    /// The trials that it rests on.
    pub trials: Vec<u64>,
    /// What kept a forwarding rate from being higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
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
}

/// What an interval allows to say about a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// More than the base, beyond chance.
    Higher,
    /// Less than the base, beyond chance.
    Lower,
    /// The same to within 1 %, beyond chance.
    Alike,
    /// The interval holds 1 and more, or there is none.
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
    /// The printed value.
    pub value: f64,
}

/// A sentence of a study that measurement can judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Short name of the study.
    pub study: String,
    /// Its figure or table.
    pub item: String,
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
