//! Which way is better: more frames a second, fewer nanoseconds.
//!
//! Invariant: a quantity that is neither good nor bad in itself (what was offered, at which load something was found) has no
//! direction, and nobody is blamed for it.

use crate::record::Metric;

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// Which way is better for this metric, if either is.
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
        // How deep a buffer is: more holds bursts, and delays.
        Metric::BufferNsImplied | Metric::BufferNsCorrected | Metric::BurstFrames => None,
        Metric::FairnessIndexJain | Metric::MaxMinShareRatio | Metric::RateColdRatio => {
            Some(Direction::Higher)
        }
        Metric::AddressesCached => Some(Direction::Higher),
        Metric::CyclesBusyRatio | Metric::CpuLoadRatio => Some(Direction::Lower),
        _ if is_loss(metric) => Some(Direction::Lower),
        Metric::Named(_) if name.contains("offered") || name.contains("intended") => None,
        // What a module reads off a timer of the device is as it is.
        Metric::Named(_) if name.contains("timeout") => None,
        _ => match metric.unit() {
            "pps" | "bps" | "per_s" => Some(Direction::Higher),
            "ns" | "cycles" | "bytes" => Some(Direction::Lower),
            _ => None,
        },
    }
}

/// Whether it is a share of frames that were lost. Where nothing is lost there is no ratio, so what is compared is the share
/// that arrived.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Name;

    #[test]
    fn rates_are_to_be_high_and_times_low() {
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
