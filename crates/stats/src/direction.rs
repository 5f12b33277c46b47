//! Better direction of a metric: more frames per second, fewer nanoseconds.
//!
//! Invariant: a metric that is neither good nor bad (an offered load, or the load at which a value
//! was found) has no direction and cannot be a regression.

use record::Metric;

/// The better direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Larger is better.
    Higher,
    /// Smaller is better.
    Lower,
}

/// The better direction of a metric, if any.
pub fn of(metric: Metric) -> Option<Direction> {
    let name = metric.name();
    match metric {
        Metric::RatePpsOffered
        | Metric::RateBpsOffered
        | Metric::LoadPpsOfMaximum
        | Metric::LossRatioDifference
        | Metric::IpdvNsMin
        | Metric::IpdvNsP50
        | Metric::IpdvNsMax => None,
        // Buffer depth: a deeper buffer absorbs longer bursts but adds delay.
        Metric::BufferNsImplied | Metric::BufferNsCorrected | Metric::BurstFrames => None,
        Metric::FairnessIndexJain | Metric::MaxMinShareRatio | Metric::RateRatioColdCache => {
            Some(Direction::Higher)
        }
        Metric::MacAddressesLearned => Some(Direction::Higher),
        Metric::CyclesBusyRatio | Metric::CpuLoadRatio => Some(Direction::Lower),
        _ if is_loss(metric) => Some(Direction::Lower),
        Metric::Named(_) if name.contains("offered") || name.contains("intended") => None,
        // A timeout of the device is a setting, neither good nor bad.
        Metric::Named(_) if name.contains("timeout") => None,
        _ => match metric.unit() {
            "pps" | "bps" | "per_s" => Some(Direction::Higher),
            "ns" | "cycles" | "bytes" => Some(Direction::Lower),
            _ => None,
        },
    }
}

/// Whether the metric is a frame loss rate. Without loss there is no ratio, so the shares that
/// arrived are compared.
pub fn is_loss(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::LossRatio
            | Metric::LossRatioF1
            | Metric::LossRatioF2
            | Metric::LossRatioUncongested
            | Metric::LossRatioCongested
            | Metric::LossRatioBroadcast
    )
}

/// Metrics in which targets are compared with the first target.
const COMPARED: [Metric; 33] = [
    Metric::RatePpsForwarded,
    Metric::CyclesBusyPerFrame,
    Metric::ThroughputPps,
    Metric::ThroughputPpsLossTolerated,
    Metric::ThroughputPpsRfc2544,
    Metric::ThroughputPpsTst009,
    Metric::ThroughputPpsNdr,
    Metric::ThroughputPpsPdr,
    Metric::ThroughputPpsQuickNdr,
    Metric::ThroughputPpsQuickPdr,
    Metric::LatencyNsMean,
    Metric::LatencyNsP50,
    Metric::LatencyNsP99,
    Metric::LatencyNsP999,
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
    Metric::BurstFrames,
    Metric::BufferNsCorrected,
    Metric::RecoveryNs,
    Metric::ResetNs,
    Metric::RatePpsMaximum,
    Metric::MacAddressesLearned,
    Metric::AddressesLearnedPerS,
    Metric::MemoryBytes,
];

/// Whether targets are compared by this metric. Times and rates of modules are.
pub fn is_compared(metric: Metric) -> bool {
    let is_named = matches!(metric, Metric::Named(_));
    COMPARED.contains(&metric)
        || is_named && matches!(metric.unit(), "ns" | "per_s" | "pps" | "bps")
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Name;

    #[test]
    fn rates_are_better_high_and_times_better_low() {
        for (metric, wanted) in [
            (Metric::ThroughputPps, Some(Direction::Higher)),
            (Metric::RatePpsForwarded, Some(Direction::Higher)),
            (Metric::FlowModsAddedPerS, Some(Direction::Higher)),
            (Metric::LatencyNsP99, Some(Direction::Lower)),
            (Metric::LossRatio, Some(Direction::Lower)),
            (Metric::CyclesBusyPerFrame, Some(Direction::Lower)),
            (Metric::Named(Name::of("activation_ns_p50")), Some(Direction::Lower)),
            (Metric::Named(Name::of("echo_per_s")), Some(Direction::Higher)),
            (Metric::Named(Name::of("rules_active_ratio")), None),
            (Metric::RatePpsOffered, None),
        ] {
            assert_eq!(of(metric), wanted, "{}", metric.name());
        }
    }
}
