//! The quantities that cells hold: names, units, and how repeats of them are combined.
//!
//! Invariant: a name ends in its unit and qualifier, and is what a record and its readers call it.

use serde::{Deserialize, Serialize};

use super::Name;

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
    /// Smallest difference between the latencies of successive frames, signed (RFC 8219).
    IpdvNsMin,
    /// Median of those differences.
    IpdvNsP50,
    /// Largest of those differences.
    IpdvNsMax,
    /// Cycles of the time-stamp counter that the target spent on frames, for each frame that it
    /// took.
    CyclesBusyPerFrame,
    /// The same over what it is without a controller that asks for something meanwhile.
    CyclesBusyRatio,
    /// 99th percentile of latency while programs take each other's place, less that of a quiet trial.
    LatencyNsP99Extra,
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
    /// Longest burst at the link's rate that came through whole (RFC 9004).
    BurstFrames,
    /// Time that such a burst takes at the link's rate (RFC 9004).
    BufferNsImplied,
    /// The same less what was forwarded meanwhile (RFC 9004).
    BufferNsCorrected,
    /// Time from the end of an overload to the last loss after it (RFC 2544, 26.5).
    RecoveryNs,
    /// Time without a frame around a reset of the target (RFC 6201, by time stamps).
    ResetNs,
    /// Frames lost in a reset over the rate at which they were sent (RFC 6201, by loss).
    ResetNsByLoss,
    /// Highest forwarding rate under any load that was offered (RFC 2889, 5.6).
    RatePpsMaximum,
    /// The load offered to each port at which that was forwarded.
    LoadPpsOfMaximum,
    /// Loss of what was meant for the port that no other traffic shared (RFC 2889, 5.5).
    LossRatioUncongested,
    /// Loss of what was meant for the port that more was meant for than it carries.
    LossRatioCongested,
    /// Addresses that were learned and forwarded to without one frame flooded (RFC 2889, 5.7).
    AddressesCached,
    /// Highest rate of new addresses at which all of them were learned (RFC 2889, 5.8).
    AddressesLearnedPerS,
    /// Share of the copies of broadcast frames that did not reach a port (RFC 2889, 5.10).
    LossRatioBroadcast,
    /// Resident memory of the target's processes, huge pages counted.
    MemoryBytes,
    /// How busy the target keeps processors, 1 for one core: what polling threads spend on frames, or the
    /// time of its processes and of the kernel's threads that work for it.
    CpuLoadRatio,
    /// What a measurement module named itself.
    #[serde(untagged)]
    Named(Name),
}

impl Metric {
    /// Every metric of the list, in the order in which tables show them.
    pub const ALL: [Metric; 60] = [
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
        Metric::IpdvNsMin,
        Metric::IpdvNsP50,
        Metric::IpdvNsMax,
        Metric::CyclesBusyPerFrame,
        Metric::CyclesBusyRatio,
        Metric::LatencyNsP99Extra,
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
        Metric::BurstFrames,
        Metric::BufferNsImplied,
        Metric::BufferNsCorrected,
        Metric::RecoveryNs,
        Metric::ResetNs,
        Metric::ResetNsByLoss,
        Metric::RatePpsMaximum,
        Metric::LoadPpsOfMaximum,
        Metric::LossRatioUncongested,
        Metric::LossRatioCongested,
        Metric::AddressesCached,
        Metric::AddressesLearnedPerS,
        Metric::LossRatioBroadcast,
        Metric::MemoryBytes,
        Metric::CpuLoadRatio,
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
            Metric::IpdvNsMin => "ipdv_ns_min",
            Metric::IpdvNsP50 => "ipdv_ns_p50",
            Metric::IpdvNsMax => "ipdv_ns_max",
            Metric::CyclesBusyPerFrame => "cycles_busy_per_frame",
            Metric::CyclesBusyRatio => "cycles_busy_ratio",
            Metric::LatencyNsP99Extra => "latency_ns_p99_extra",
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
            Metric::BurstFrames => "burst_frames",
            Metric::BufferNsImplied => "buffer_ns_implied",
            Metric::BufferNsCorrected => "buffer_ns_corrected",
            Metric::RecoveryNs => "recovery_ns",
            Metric::ResetNs => "reset_ns",
            Metric::ResetNsByLoss => "reset_ns_by_loss",
            Metric::RatePpsMaximum => "rate_pps_maximum",
            Metric::LoadPpsOfMaximum => "load_pps_of_maximum",
            Metric::LossRatioUncongested => "loss_ratio_uncongested",
            Metric::LossRatioCongested => "loss_ratio_congested",
            Metric::AddressesCached => "addresses_cached",
            Metric::AddressesLearnedPerS => "addresses_learned_per_s",
            Metric::LossRatioBroadcast => "loss_ratio_broadcast",
            Metric::MemoryBytes => "memory_bytes",
            Metric::CpuLoadRatio => "cpu_load_ratio",
            Metric::Named(name) => name.text(),
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
            | Metric::ThroughputPpsQuickPdr
            | Metric::RatePpsMaximum
            | Metric::LoadPpsOfMaximum => "pps",
            Metric::RateBpsOffered | Metric::RateBpsForwarded => "bps",
            Metric::LossRatio
            | Metric::LossRatioF1
            | Metric::LossRatioF2
            | Metric::LossRatioDifference
            | Metric::MaxMinShareRatio
            | Metric::LossRatioUncongested
            | Metric::LossRatioCongested
            | Metric::LossRatioBroadcast
            | Metric::CyclesBusyRatio
            | Metric::CpuLoadRatio
            | Metric::RateColdRatio => "ratio",
            Metric::CyclesBusyPerFrame => "cycles",
            Metric::FlowModsAddedPerS
            | Metric::FlowModsModifiedPerS
            | Metric::FlowModsDeletedPerS
            | Metric::FlowModsChangedPerS
            | Metric::FlowStatsPerS
            | Metric::AddressesLearnedPerS => "per_s",
            Metric::AddressesCached => "addresses",
            Metric::BurstFrames => "frames",
            Metric::MemoryBytesPerFlow | Metric::MemoryBytes => "bytes",
            Metric::FairnessIndexJain => "index",
            Metric::Named(name) => name.unit(),
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
                | Metric::LossRatioUncongested
                | Metric::LossRatioCongested
                | Metric::LossRatioBroadcast
                | Metric::FairnessIndexJain
                | Metric::MaxMinShareRatio
        )
    }

    /// Whether repeats are combined by their median: percentiles and extremes are never averaged.
    pub fn is_by_median(self) -> bool {
        let is_of_means = matches!(
            self,
            Metric::ProcessingNs
                | Metric::BufferNsImplied
                | Metric::BufferNsCorrected
                | Metric::RecoveryNs
                | Metric::ResetNs
                | Metric::ResetNsByLoss
        );
        let is_mean = self.name().ends_with("_mean");
        self.unit() == "ns" && !is_of_means && !is_mean
    }
}
