//! The metrics of cells: names, units, and how repeats are combined.
//!
//! Invariant: a metric's name contains its unit and qualifier. Records and their readers use this
//! name.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Name;

/// Declares the listed metrics: one row for each, with its stored name, unit and display name.
macro_rules! metrics {
    ($($(#[$doc:meta])+ $metric:ident $name:literal $unit:literal $title:literal;)+) => {
        /// A metric of a cell.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize
        )]
        pub enum Metric {
            $($(#[$doc])+ #[serde(rename = $name)] $metric,)+
            /// A metric that a measurement module defines.
            #[serde(untagged)]
            Named(Name),
        }

        impl Metric {
            /// All listed metrics, in the order of tables.
            pub const ALL: [Metric; [$($name),+].len()] = [$(Metric::$metric),+];

            /// Name as stored.
            pub fn name(self) -> &'static str {
                match self {
                    $(Metric::$metric => $name,)+
                    Metric::Named(name) => name.text(),
                }
            }

            /// Its unit.
            pub fn unit(self) -> &'static str {
                match self {
                    $(Metric::$metric => $unit,)+
                    Metric::Named(name) => name.unit(),
                }
            }

            /// Name for display.
            pub(crate) fn title(self) -> Cow<'static, str> {
                match self {
                    $(Metric::$metric => Cow::Borrowed($title),)+
                    Metric::Named(name) => Cow::Owned(name.title()),
                }
            }
        }
    };
}

metrics! {
    /// Offered load, frames per second.
    RatePpsOffered "rate_pps_offered" "pps" "offered load";
    /// Forwarding rate, frames per second.
    RatePpsForwarded "rate_pps_forwarded" "pps" "forwarding rate";
    /// Offered load in bit/s, link layer (with frame check sequence, without preamble and gap).
    RateBpsOffered "rate_bps_offered" "bps" "offered load";
    /// Forwarding rate in bit/s, link layer.
    RateBpsForwarded "rate_bps_forwarded" "bps" "forwarding rate";
    /// Frame loss rate: share of offered frames that did not arrive at the expected port.
    LossRatio "loss_ratio" "ratio" "frame loss rate";
    /// Throughput (RFC 2544), frames per second.
    ThroughputPps "throughput_pps" "pps" "throughput";
    /// Largest load with no more than the allowed loss, frames per second.
    ThroughputPpsLossTolerated "throughput_pps_loss_tolerated" "pps" "throughput with allowed loss";
    /// Conditional throughput (RFC 9971) of the goal `rfc2544`: no loss in a one-minute trial.
    ThroughputPpsRfc2544 "throughput_pps_rfc2544" "pps" "conditional throughput (rfc2544)";
    /// Conditional throughput of the goal `tst009`: no loss in one of two such trials.
    ThroughputPpsTst009 "throughput_pps_tst009" "pps" "conditional throughput (tst009)";
    /// Conditional throughput of the goal `ndr`: no loss in half of the time.
    ThroughputPpsNdr "throughput_pps_ndr" "pps" "conditional throughput (ndr)";
    /// Conditional throughput of the goal `pdr`: no more than the allowed loss in half of the time.
    ThroughputPpsPdr "throughput_pps_pdr" "pps" "conditional throughput (pdr)";
    /// Conditional throughput of the goal `quick-ndr`, a shorter `ndr`.
    ThroughputPpsQuickNdr "throughput_pps_quick_ndr" "pps" "conditional throughput (quick-ndr)";
    /// Conditional throughput of the goal `quick-pdr`, a shorter `pdr`.
    ThroughputPpsQuickPdr "throughput_pps_quick_pdr" "pps" "conditional throughput (quick-pdr)";
    /// Mean latency from the actual send time.
    LatencyNsMean "latency_ns_mean" "ns" "mean latency";
    /// Smallest latency.
    LatencyNsMin "latency_ns_min" "ns" "minimum latency";
    /// Median latency.
    LatencyNsP50 "latency_ns_p50" "ns" "median latency";
    /// 90th percentile of the latency.
    LatencyNsP90 "latency_ns_p90" "ns" "p90 latency";
    /// 99th percentile of the latency.
    LatencyNsP99 "latency_ns_p99" "ns" "p99 latency";
    /// 99.9th percentile of the latency.
    LatencyNsP999 "latency_ns_p999" "ns" "p99.9 latency";
    /// 99.99th percentile of the latency.
    LatencyNsP9999 "latency_ns_p9999" "ns" "p99.99 latency";
    /// Largest latency.
    LatencyNsMax "latency_ns_max" "ns" "maximum latency";
    /// Median latency from the scheduled send time.
    LatencyFromScheduleNsP50 "latency_from_schedule_ns_p50" "ns"
        "median latency from scheduled time";
    /// 99th percentile of the latency from the scheduled send time.
    LatencyFromScheduleNsP99 "latency_from_schedule_ns_p99" "ns" "p99 latency from scheduled time";
    /// Packet delay variation: 99.9th percentile minus minimum.
    PdvNsP999 "pdv_ns_p999" "ns" "packet delay variation (p99.9 minus minimum)";
    /// Smallest difference between the latencies of successive frames, signed (RFC 8219).
    IpdvNsMin "ipdv_ns_min" "ns" "minimum IPDV";
    /// Median of those differences.
    IpdvNsP50 "ipdv_ns_p50" "ns" "median IPDV";
    /// Largest of those differences.
    IpdvNsMax "ipdv_ns_max" "ns" "maximum IPDV";
    /// Time-stamp counter cycles that the target used per frame.
    CyclesBusyPerFrame "cycles_busy_per_frame" "cycles" "busy cycles per frame";
    /// Cycles per frame relative to those without control operations.
    CyclesBusyRatio "cycles_busy_ratio" "ratio" "busy cycles per frame relative to a quiet trial";
    /// 99th percentile of latency while programs are swapped, minus that of a trial without swaps.
    LatencyNsP99Increase "latency_ns_p99_increase" "ns" "p99 latency increase over a quiet trial";
    /// Rate with new flows divided by the rate with known flows.
    RateRatioColdCache "rate_ratio_cold_cache" "ratio"
        "rate of unknown flows relative to known flows";
    /// Flow entries added per second, from the first byte sent to the last reply.
    FlowModsAddedPerS "flow_mods_added_per_s" "per_s" "flow entries added";
    /// Flow entries modified per second.
    FlowModsModifiedPerS "flow_mods_modified_per_s" "per_s" "flow entries modified";
    /// Flow entries deleted per second, each by match and priority.
    FlowModsDeletedPerS "flow_mods_deleted_per_s" "per_s" "flow entries deleted";
    /// Flow entries added and deleted again per second.
    FlowModsAddDeletePerS "flow_mods_add_delete_per_s" "per_s" "flow entries added and deleted";
    /// Flow entries reported with counters per second.
    FlowStatsPerS "flow_stats_per_s" "per_s" "flow entries reported";
    /// Flow statistics reply time: until all entries were reported.
    FlowStatsNs "flow_stats_ns" "ns" "flow statistics dump time";
    /// Time until the first entry was reported.
    FlowStatsNsFirstReply "flow_stats_ns_first_reply" "ns" "time to the first reported flow entry";
    /// Growth of the target's memory per flow.
    MemoryBytesPerFlow "memory_bytes_per_flow" "bytes" "memory per flow entry";
    /// Processing time in the target by the formula of bianco2010: Tp = L - 2 (Tt + D).
    ProcessingNs "processing_ns" "ns" "processing time";
    /// Frame loss rate of the first flow.
    LossRatioF1 "loss_ratio_f1" "ratio" "frame loss rate of F1";
    /// Frame loss rate of the second flow.
    LossRatioF2 "loss_ratio_f2" "ratio" "frame loss rate of F2";
    /// Loss rate of the first flow minus that of the second.
    LossRatioDifference "loss_ratio_difference" "ratio" "frame loss rate of F1 minus F2";
    /// Jain's fairness index of the forwarded share of each flow: 1 if all shares are equal.
    FairnessIndexJain "fairness_index_jain" "index" "Jain's index";
    /// Smallest ratio of a flow's share to its max-min fair share: 1 if the division was max-min
    /// fair.
    MaxMinShareRatio "max_min_share_ratio" "ratio" "max-min share";
    /// Longest burst at line rate without loss (RFC 9004).
    BurstFrames "burst_frames" "frames" "longest burst without loss";
    /// Duration of that burst at line rate (RFC 9004).
    BufferNsImplied "buffer_ns_implied" "ns" "implied buffer time";
    /// That duration, corrected for the frames forwarded during the burst (RFC 9004).
    BufferNsCorrected "buffer_ns_corrected" "ns" "corrected buffer time";
    /// Time from the end of an overload to the last loss after it (RFC 2544, 26.5).
    RecoveryNs "recovery_ns" "ns" "recovery time";
    /// Time without frames around a reset of the target (RFC 6201, timestamp-based method).
    ResetNs "reset_ns" "ns" "reset time";
    /// Frames lost in a reset divided by the offered load (RFC 6201, frame-loss-based method).
    ResetNsFrameLossMethod "reset_ns_frame_loss_method" "ns" "reset time by frame loss";
    /// Maximum forwarding rate under any offered load (RFC 2889, 5.6).
    RatePpsMaximum "rate_pps_maximum" "pps" "maximum forwarding rate";
    /// Offered load per port at the maximum forwarding rate.
    LoadPpsOfMaximum "load_pps_of_maximum" "pps" "load of a port at the maximum";
    /// Frame loss rate to the uncongested port (RFC 2889, 5.5).
    LossRatioUncongested "loss_ratio_uncongested" "ratio" "frame loss rate at the uncongested port";
    /// Frame loss rate to the congested port (RFC 2889, 5.5).
    LossRatioCongested "loss_ratio_congested" "ratio" "frame loss rate at the congested port";
    /// Address caching capacity: addresses learned without a flooded frame (RFC 2889, 5.7).
    MacAddressesLearned "mac_addresses_learned" "addresses" "address caching capacity";
    /// Address learning rate: highest rate of new addresses that were all learned (RFC 2889, 5.8).
    AddressesLearnedPerS "addresses_learned_per_s" "per_s" "address learning rate";
    /// Share of broadcast copies that did not reach their port (RFC 2889, 5.10).
    LossRatioBroadcast "loss_ratio_broadcast" "ratio" "loss rate of broadcast copies";
    /// Resident memory of the target's processes, huge pages included.
    MemoryBytes "memory_bytes" "bytes" "memory";
    /// CPU load of the target, 1 for one core: time of polling threads on frames, or time of its
    /// processes and of the kernel threads that work for it.
    CpuLoadRatio "cpu_load_ratio" "ratio" "CPU load (one core = 100 %)";
}

impl Metric {
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
