//! Speed-up of costa2017: legacy time divided by OpenFlow time.
//!
//! Source: figure 6 of the study. Legacy mode is the switch's own forwarding (NORMAL), a bridge or
//! router of the same family, or a model's hardware without OpenFlow. Invariant: both times are of
//! the same packet size and the same way to send packets.

use record::links::Naming;
use record::{Experiment, Metric, Name, Record};
use stats::conclude::Estimate;

fn named(name: &'static str) -> Metric {
    Metric::Named(Name::of(name))
}

/// Speed-up of a target's OpenFlow mode relative to a legacy mode of the same device.
pub(crate) struct SpeedUp {
    /// The target's name.
    pub target: String,
    /// The target's label.
    pub label: String,
    /// The legacy mode: NORMAL, or the label of another target.
    pub legacy: String,
    /// Packet size.
    pub bytes: f64,
    /// Packets per second; 0 for one packet in flight.
    pub packets_per_s: f64,
    /// Legacy time divided by OpenFlow time.
    pub ratio: f64,
    /// Its 95 % confidence interval.
    pub interval: Option<record::Interval>,
    /// Number of repeats.
    pub n: u32,
    /// Trials of both modes.
    pub trials: Vec<u64>,
    /// Warnings of both modes, as sentences.
    pub warnings: Vec<String>,
}

/// The speed-up of each OpenFlow target relative to the legacy modes of the same device, by size.
pub(crate) fn speed_ups(record: &Record, experiment: &Experiment) -> Vec<SpeedUp> {
    let naming = Naming::within(record, &experiment.id);
    let mut found = Vec::new();
    for target in &record.targets {
        let is_model = target.model().is_some();
        let own = format!("{},mode=legacy", target.name);
        let bases = record.targets.iter().filter_map(|other| {
            let is_own = match is_model {
                true => other.name == own,
                false => other.family == target.family && other.model().is_none(),
            };
            is_own.then(|| (naming.of(&other.name), other.name.as_str(), "legacy_rtt_ns_mean"))
        });
        let normal = ("NORMAL".to_string(), target.name.as_str(), "normal_rtt_ns_mean");
        let bases: Vec<_> = [normal].into_iter().chain(bases).collect();
        for cell in record.cells_of(&experiment.id, &target.name, named("port_rtt_ns_mean")) {
            for (name, other, its) in &bases {
                let mut legacy = record.cells_of(&experiment.id, other, named(its));
                let Some(legacy) = legacy.find(|it| it.point == cell.point) else { continue };
                let it = Estimate::ratio(legacy, cell);
                if it.n == 0 || !it.value.is_finite() {
                    continue;
                }
                let mut warnings: Vec<String> = Vec::new();
                for warning in [cell, legacy].into_iter().flat_map(|it| &it.warnings) {
                    let sentence = warning.sentence();
                    if !warnings.contains(&sentence) {
                        warnings.push(sentence);
                    }
                }
                found.push(SpeedUp {
                    target: target.name.clone(),
                    label: naming.of(&target.name),
                    legacy: name.clone(),
                    bytes: cell.point.value,
                    packets_per_s: cell.point.within.as_ref().map_or(0.0, |within| within.value),
                    ratio: it.value,
                    interval: it.interval,
                    n: cell.n.min(legacy.n),
                    trials: [cell, legacy].into_iter().flat_map(|it| &it.trials).copied().collect(),
                    warnings,
                });
            }
        }
    }
    found
}
