//! The metrics of cells: names, units, and how repeats are combined.
//!
//! Invariant: a metric's name contains its unit and qualifier. Records and their readers use this
//! name.

use serde::{Deserialize, Serialize};

use super::Name;

/// A metric of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Offered load, frames per second.
    RatePpsOffered,
    /// Forwarding rate, frames per second.
    RatePpsForwarded,
    /// Offered load in bit/s, link layer (with frame check sequence, without preamble and gap).
    RateBpsOffered,
    /// Forwarding rate in bit/s, link layer.
    RateBpsForwarded,
    /// Frame loss rate: share of offered frames that did not arrive at the expected port.
    LossRatio,
    /// Throughput (RFC 2544), frames per second.
    ThroughputPps,
    /// Largest load with no more than the allowed loss, frames per second.
    ThroughputPpsLossTolerated,
    /// Conditional throughput (RFC 9971) of the goal `rfc2544`: no loss in a one-minute trial.
    ThroughputPpsRfc2544,
    /// Conditional throughput of the goal `tst009`: no loss in one of two such trials.
    ThroughputPpsTst009,
    /// Conditional throughput of the goal `ndr`: no loss in half of the time.
    ThroughputPpsNdr,
    /// Conditional throughput of the goal `pdr`: no more than the allowed loss in half of the time.
    ThroughputPpsPdr,
    /// Conditional throughput of the goal `quick-ndr`, a shorter `ndr`.
    ThroughputPpsQuickNdr,
    /// Conditional throughput of the goal `quick-pdr`, a shorter `pdr`.
    ThroughputPpsQuickPdr,
    /// Mean latency from the actual send time.
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
    /// Median latency from the scheduled send time.
    LatencyFromScheduleNsP50,
    /// 99th percentile of the latency from the scheduled send time.
    LatencyFromScheduleNsP99,
    /// Packet delay variation: 99.9th percentile minus minimum.
    PdvNsP999,
    /// Smallest difference between the latencies of successive frames, signed (RFC 8219).
    IpdvNsMin,
    /// Median of those differences.
    IpdvNsP50,
    /// Largest of those differences.
    IpdvNsMax,
    /// Time-stamp counter cycles that the target used per frame.
    CyclesBusyPerFrame,
    /// Cycles per frame relative to those without control operations.
    CyclesBusyRatio,
    /// 99th percentile of latency while programs are swapped, minus that of a trial without swaps.
    LatencyNsP99Increase,
    /// Rate with new flows divided by the rate with known flows.
    RateRatioColdCache,
    /// Flow entries added per second, from the first byte sent to the last reply.
    FlowModsAddedPerS,
    /// Flow entries modified per second.
    FlowModsModifiedPerS,
    /// Flow entries deleted per second, each by match and priority.
    FlowModsDeletedPerS,
    /// Flow entries added and deleted again per second.
    FlowModsAddDeletePerS,
    /// Flow entries reported with counters per second.
    FlowStatsPerS,
    /// Flow statistics reply time: until all entries were reported.
    FlowStatsNs,
    /// Time until the first entry was reported.
    FlowStatsNsFirstReply,
    /// Growth of the target's memory per flow.
    MemoryBytesPerFlow,
    /// Processing time in the target by the formula of bianco2010: Tp = L - 2 (Tt + D).
    ProcessingNs,
    /// Frame loss rate of the first flow.
    LossRatioF1,
    /// Frame loss rate of the second flow.
    LossRatioF2,
    /// Loss rate of the first flow minus that of the second.
    LossRatioDifference,
    /// Jain's fairness index of the forwarded share of each flow: 1 if all shares are equal.
    FairnessIndexJain,
    /// Smallest ratio of a flow's share to its max-min fair share: 1 if the division was max-min
    /// fair.
    MaxMinShareRatio,
    /// Longest burst at line rate without loss (RFC 9004).
    BurstFrames,
    /// Duration of that burst at line rate (RFC 9004).
    BufferNsImplied,
    /// That duration, corrected for the frames forwarded during the burst (RFC 9004).
    BufferNsCorrected,
    /// Time from the end of an overload to the last loss after it (RFC 2544, 26.5).
    RecoveryNs,
    /// Time without frames around a reset of the target (RFC 6201, timestamp-based method).
    ResetNs,
    /// Frames lost in a reset divided by the offered load (RFC 6201, frame-loss-based method).
    ResetNsFrameLossMethod,
    /// Maximum forwarding rate under any offered load (RFC 2889, 5.6).
    RatePpsMaximum,
    /// Offered load per port at the maximum forwarding rate.
    LoadPpsOfMaximum,
    /// Frame loss rate to the uncongested port (RFC 2889, 5.5).
    LossRatioUncongested,
    /// Frame loss rate to the congested port (RFC 2889, 5.5).
    LossRatioCongested,
    /// Address caching capacity: addresses learned without a flooded frame (RFC 2889, 5.7).
    MacAddressesLearned,
    /// Address learning rate: highest rate of new addresses that were all learned (RFC 2889, 5.8).
    AddressesLearnedPerS,
    /// Share of broadcast copies that did not reach their port (RFC 2889, 5.10).
    LossRatioBroadcast,
    /// Resident memory of the target's processes, huge pages included.
    MemoryBytes,
    /// CPU load of the target, 1 for one core: time of polling threads on frames, or time of its
    /// processes and of the kernel threads that work for it.
    CpuLoadRatio,
    /// A metric that a measurement module defines.
    #[serde(untagged)]
    Named(Name),
}

impl Metric {
    /// All listed metrics, in the order of tables.
    pub const ALL: [Metric; 60] = [
        Metric::RatePpsOffered,
        Metric::RatePpsForwarded,
        Metric::RateBpsOffered,
        Metric::RateBpsForwarded,
        Metric::LossRatio,
        Metric::ThroughputPps,
        Metric::ThroughputPpsLossTolerated,
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
        Metric::LatencyFromScheduleNsP50,
        Metric::LatencyFromScheduleNsP99,
        Metric::PdvNsP999,
        Metric::IpdvNsMin,
        Metric::IpdvNsP50,
        Metric::IpdvNsMax,
        Metric::CyclesBusyPerFrame,
        Metric::CyclesBusyRatio,
        Metric::LatencyNsP99Increase,
        Metric::RateRatioColdCache,
        Metric::FlowModsAddedPerS,
        Metric::FlowModsModifiedPerS,
        Metric::FlowModsDeletedPerS,
        Metric::FlowModsAddDeletePerS,
        Metric::FlowStatsPerS,
        Metric::FlowStatsNs,
        Metric::FlowStatsNsFirstReply,
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
        Metric::ResetNsFrameLossMethod,
        Metric::RatePpsMaximum,
        Metric::LoadPpsOfMaximum,
        Metric::LossRatioUncongested,
        Metric::LossRatioCongested,
        Metric::MacAddressesLearned,
        Metric::AddressesLearnedPerS,
        Metric::LossRatioBroadcast,
        Metric::MemoryBytes,
        Metric::CpuLoadRatio,
    ];

    /// Name as stored.
    pub fn name(self) -> &'static str {
        match self {
            Metric::RatePpsOffered => "rate_pps_offered",
            Metric::RatePpsForwarded => "rate_pps_forwarded",
            Metric::RateBpsOffered => "rate_bps_offered",
            Metric::RateBpsForwarded => "rate_bps_forwarded",
            Metric::LossRatio => "loss_ratio",
            Metric::ThroughputPps => "throughput_pps",
            Metric::ThroughputPpsLossTolerated => "throughput_pps_loss_tolerated",
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
            Metric::LatencyFromScheduleNsP50 => "latency_from_schedule_ns_p50",
            Metric::LatencyFromScheduleNsP99 => "latency_from_schedule_ns_p99",
            Metric::PdvNsP999 => "pdv_ns_p999",
            Metric::IpdvNsMin => "ipdv_ns_min",
            Metric::IpdvNsP50 => "ipdv_ns_p50",
            Metric::IpdvNsMax => "ipdv_ns_max",
            Metric::CyclesBusyPerFrame => "cycles_busy_per_frame",
            Metric::CyclesBusyRatio => "cycles_busy_ratio",
            Metric::LatencyNsP99Increase => "latency_ns_p99_increase",
            Metric::RateRatioColdCache => "rate_ratio_cold_cache",
            Metric::FlowModsAddedPerS => "flow_mods_added_per_s",
            Metric::FlowModsModifiedPerS => "flow_mods_modified_per_s",
            Metric::FlowModsDeletedPerS => "flow_mods_deleted_per_s",
            Metric::FlowModsAddDeletePerS => "flow_mods_add_delete_per_s",
            Metric::FlowStatsPerS => "flow_stats_per_s",
            Metric::FlowStatsNs => "flow_stats_ns",
            Metric::FlowStatsNsFirstReply => "flow_stats_ns_first_reply",
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
            Metric::ResetNsFrameLossMethod => "reset_ns_frame_loss_method",
            Metric::RatePpsMaximum => "rate_pps_maximum",
            Metric::LoadPpsOfMaximum => "load_pps_of_maximum",
            Metric::LossRatioUncongested => "loss_ratio_uncongested",
            Metric::LossRatioCongested => "loss_ratio_congested",
            Metric::MacAddressesLearned => "mac_addresses_learned",
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
            | Metric::ThroughputPpsLossTolerated
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
            | Metric::RateRatioColdCache => "ratio",
            Metric::CyclesBusyPerFrame => "cycles",
            Metric::FlowModsAddedPerS
            | Metric::FlowModsModifiedPerS
            | Metric::FlowModsDeletedPerS
            | Metric::FlowModsAddDeletePerS
            | Metric::FlowStatsPerS
            | Metric::AddressesLearnedPerS => "per_s",
            Metric::MacAddressesLearned => "addresses",
            Metric::BurstFrames => "frames",
            Metric::MemoryBytesPerFlow | Metric::MemoryBytes => "bytes",
            Metric::FairnessIndexJain => "index",
            Metric::Named(name) => name.unit(),
            _ => "ns",
        }
    }

    /// Whether the metric is a share with a maximum of 1.
    pub fn is_at_most_one(self) -> bool {
        /// Words of modules for shares of rules or frames.
        const SHARES: [&str; 5] = ["premature", "active", "unready", "right", "back"];
        if let Metric::Named(name) = self {
            let is_share = name.text().split('_').any(|word| SHARES.contains(&word));
            return name.unit() == "ratio" && is_share;
        }
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

    /// Whether repeats are combined by their median. Percentiles and extremes are never averaged.
    pub fn is_by_median(self) -> bool {
        let is_of_means = matches!(
            self,
            Metric::ProcessingNs
                | Metric::BufferNsImplied
                | Metric::BufferNsCorrected
                | Metric::RecoveryNs
                | Metric::ResetNs
                | Metric::ResetNsFrameLossMethod
        );
        let is_mean = self.name().ends_with("_mean");
        self.unit() == "ns" && !is_of_means && !is_mean
    }
}
