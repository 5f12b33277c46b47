//! Figures and tables of the standards' methods.
//!
//! Source: the reporting formats of RFC 2544 (section 26), RFC 9004, RFC 8219 and RFC 2889. A value
//! that these require in a table is a column; one that they require in a graph is the view's
//! metric. Experiments are identified by their ids.

use super::View;
use record::{Experiment, Metric};

/// The views of a standard's method, most important first; none for other experiments.
pub(super) fn views(experiment: &Experiment) -> Option<Vec<View>> {
    let view = View::new;
    let further = |columns: &[Metric]| View { is_further: true, ..View::new(columns) };
    Some(match experiment.id.as_str() {
        "rfc2544/throughput" => {
            vec![View { has_theory: true, ..view(&[Metric::ThroughputPps]) }]
        }
        "rfc2544/latency" => vec![View { logarithmic: true, ..view(&LATENCY) }],
        "rfc2544/loss" => {
            vec![view(&[Metric::LossRatio, Metric::RatePpsOffered, Metric::RatePpsForwarded])]
        }
        "rfc2544/back-to-back" | "rfc9004" => vec![
            view(&[
                Metric::BurstFrames,
                Metric::BufferNsImplied,
                Metric::BufferNsCorrected,
                Metric::ThroughputPps,
            ]),
            further(&[Metric::BufferNsCorrected]),
        ],
        "rfc2544/recovery" => vec![view(&[Metric::RecoveryNs, Metric::ThroughputPps])],
        "rfc2544/reset" => {
            vec![view(&[Metric::ResetNs, Metric::ResetNsFrameLossMethod, Metric::ThroughputPps])]
        }
        "rfc8219" => vec![
            View { logarithmic: true, ..view(&VARIATION) },
            View { logarithmic: true, ..further(&[Metric::PdvNsP999]) },
        ],
        "rfc2889/throughput" => vec![view(&[Metric::ThroughputPps])],
        "rfc2889/full-mesh" | "rfc2889/one-to-many" | "rfc2889/many-to-one" => {
            let rate = [Metric::RatePpsForwarded, Metric::RatePpsOffered, Metric::LossRatio];
            vec![View { reference: Some(Metric::RatePpsOffered), ..view(&rate) }]
        }
        "rfc2889/max-rate" => {
            vec![view(&[Metric::RatePpsMaximum, Metric::LoadPpsOfMaximum, Metric::ThroughputPps])]
        }
        "rfc2889/congestion" => vec![
            view(&[
                Metric::LossRatioUncongested,
                Metric::LossRatioCongested,
                Metric::RatePpsOffered,
            ]),
            further(&[Metric::LossRatioCongested]),
        ],
        "rfc2889/broadcast" => vec![view(&[
            Metric::LossRatioBroadcast,
            Metric::RatePpsOffered,
            Metric::RatePpsForwarded,
        ])],
        "rfc2889/broadcast-latency" => vec![View { logarithmic: true, ..view(&LATENCY) }],
        "rfc2889/caching" => vec![view(&[Metric::MacAddressesLearned])],
        "rfc2889/learning" => vec![view(&[Metric::AddressesLearnedPerS])],
        "soak" => vec![
            view(&[
                Metric::LatencyNsP50,
                Metric::LatencyNsP99,
                Metric::RatePpsForwarded,
                Metric::LossRatio,
                Metric::MemoryBytes,
            ]),
            further(&[Metric::LossRatio]),
            further(&[Metric::MemoryBytes]),
        ],
        _ => return None,
    })
}

/// Latency at the throughput, with the standard's own metric first.
const LATENCY: [Metric; 9] = [
    Metric::LatencyNsMean,
    Metric::LatencyNsMin,
    Metric::LatencyNsP50,
    Metric::LatencyNsP90,
    Metric::LatencyNsP99,
    Metric::LatencyNsP999,
    Metric::LatencyNsMax,
    Metric::RatePpsOffered,
    Metric::LossRatio,
];

/// Typical and worst-case latency, PDV and IPDV.
const VARIATION: [Metric; 8] = [
    Metric::LatencyNsP50,
    Metric::LatencyNsP999,
    Metric::PdvNsP999,
    Metric::IpdvNsMin,
    Metric::IpdvNsP50,
    Metric::IpdvNsMax,
    Metric::RatePpsOffered,
    Metric::LossRatio,
];
