//! Metrics that an experiment can yield, as far as that is known before the measurement.
//!
//! Without this check, a gate on a metric that no part of its plan yields would fail only after hours.
//!
//! Invariants:
//!
//! - A rejected metric is never yielded (the tests in virtual time check every record).
//! - An accepted metric may still be missing, because a module may report more than its figures show.

use record::Metric;

use super::CatalogEntry;

/// Metrics that only some experiments yield, with those experiments: names, or prefixes of items.
const METRIC_SOURCES: &[(&[Metric], &[&str])] = &[
    (&[Metric::ThroughputPps], &["throughput", "rfc2544", "rfc9004", "rfc8219", "rfc2889", "soak"]),
    (&[Metric::ThroughputPpsLossTolerated], &["throughput", "latency", "bianco2010"]),
    (
        &[
            Metric::ThroughputPpsRfc2544,
            Metric::ThroughputPpsTst009,
            Metric::ThroughputPpsNdr,
            Metric::ThroughputPpsPdr,
            Metric::ThroughputPpsQuickNdr,
            Metric::ThroughputPpsQuickPdr,
        ],
        &["rfc9971"],
    ),
    (
        &[Metric::BurstFrames, Metric::BufferNsImplied, Metric::BufferNsCorrected],
        &["rfc9004", "rfc2544/back-to-back"],
    ),
    (&[Metric::RecoveryNs], &["rfc2544/recovery"]),
    (&[Metric::ResetNs, Metric::ResetNsFrameLossMethod], &["rfc2544/reset"]),
    (&[Metric::RatePpsMaximum, Metric::LoadPpsOfMaximum], &["rfc2889/max-rate"]),
    (&[Metric::LossRatioCongested, Metric::LossRatioUncongested], &["rfc2889/congestion"]),
    (&[Metric::MacAddressesLearned], &["rfc2889/caching", "costa2017/table4"]),
    (&[Metric::AddressesLearnedPerS], &["rfc2889/learning"]),
    (&[Metric::LossRatioBroadcast], &["rfc2889/broadcast", "rfc2889/broadcast-latency"]),
    (&[Metric::CyclesBusyRatio], &["flow-mod-impact", "flow-stats-impact", "program-swap"]),
    (&[Metric::LatencyNsP99Increase], &["program-swap"]),
    (&[Metric::RateRatioColdCache], &["cold-start"]),
    (&[Metric::MemoryBytesPerFlow], &["memory-per-flow"]),
    (&[Metric::ProcessingNs], &["bianco2010/table1"]),
    (
        &[
            Metric::LossRatioF1,
            Metric::LossRatioF2,
            Metric::LossRatioDifference,
            Metric::FairnessIndexJain,
            Metric::MaxMinShareRatio,
        ],
        &["fairness", "bianco2010/fig9", "bianco2010/fig10"],
    ),
];

/// Experiments with trials only, which yield no metric named by a module.
const PLAIN: &[&str] = &[
    "throughput",
    "latency",
    "forwarding-rate",
    "match-types",
    "rfc2544",
    "rfc9004",
    "rfc8219",
    "rfc9971",
    "fairness",
    "bianco2010",
];

impl CatalogEntry {
    /// Returns whether the experiment may yield a metric.
    pub fn produces(&self, metric: Metric) -> bool {
        let name = metric.name();
        let is_shown = || {
            let names = self.shows.iter().flat_map(|show| show.drawn.iter().chain(show.beside));
            names.copied().any(|shown| shown == name)
        };
        if self.external.is_some() || is_shown() {
            return true;
        }
        if matches!(metric, Metric::Named(_)) {
            // A module may report values in addition to those in its figures.
            return !PLAIN.iter().any(|it| self.is_of(it));
        }
        match METRIC_SOURCES.iter().find(|(metrics, _)| metrics.contains(&metric)) {
            Some((_, by)) => by.iter().any(|it| self.is_of(it)),
            // Items of studies may have trials in addition to modules.
            None => !self.is_module() || self.paper.is_some() || metric == Metric::MemoryBytes,
        }
    }

    /// Returns whether the experiment has this name, or is an item of it.
    fn is_of(&self, name: &str) -> bool {
        let rest = self.id.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_experiments_exist_and_every_metric_has_one() {
        for (metrics, by) in METRIC_SOURCES {
            for name in *by {
                assert!(crate::entries().any(|entry| entry.is_of(name)), "{name}");
            }
            for metric in *metrics {
                let count = crate::entries().filter(|entry| entry.produces(*metric)).count();
                assert!(count > 0 && count < crate::entries().count(), "{metric:?}: {count}");
            }
        }
        let one = |id: &str| crate::entries().find(|entry| entry.id == id).unwrap();
        assert!(one("latency").produces(Metric::LatencyNsP50));
        assert!(!one("latency").produces(Metric::ThroughputPps));
        assert!(!one("packet-in").produces(Metric::LatencyNsP50));
        assert!(one("packet-in").produces(experiments::show::metric("packet_in_ns_p50")));
        assert!(!one("throughput").produces(experiments::show::metric("packet_in_ns_p50")));
    }
}
