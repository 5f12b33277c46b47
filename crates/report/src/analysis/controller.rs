//! Results that the tester's own controller may have limited, instead of the switch.
//!
//! Source: RFC 2544, section 6 (calibration of the tester), applied to the control channel. A rate
//! of at least [`SHARE`] of the controller's maximum, measured with a peer of almost no cost, may
//! be limited by the controller. Invariant: the result is a function of cells and calibrations.

use record::links;
use record::{Bound, BoundCause, BoundSide, Cell, Metric, Record, Warning, WarningEntry};

/// Share of the controller's maximum from which the controller may limit a rate.
pub const SHARE: f64 = 0.8;

/// Prefixes of rates, and the maximum that applies to each. The first match counts.
const CEILINGS: &[(&str, &str)] = &[
    ("echo_", "echo"),
    ("barrier_", "barrier"),
    ("flow_mod_", "flow_mod"),
    ("packet_out_", "packet_out"),
    ("packet_outs_", "packet_out"),
    ("packet_ins_", "packet_in"),
    ("kept_packet_ins_", "packet_in"),
    ("packets_", "packet_round_trip"),
    ("setups_", "packet_round_trip"),
    ("flow_mods_", "flow_mod_played"),
];

/// Marks the rates that the controller may have limited.
pub(super) fn find(record: &mut Record) {
    let warnings: Vec<Option<Warning>> = record.cells.iter().map(|cell| of(record, cell)).collect();
    for (cell, warning) in record.cells.iter_mut().zip(warnings) {
        if warning.is_some() {
            let (side, cause) = (BoundSide::Lower, BoundCause::TesterLimit);
            cell.bound = cell.bound.or(Some(Bound { side, cause }));
        }
        cell.warnings.extend(warning);
    }
}

/// The most severe warning per experiment and target.
pub(super) fn notices(record: &Record) -> Vec<WarningEntry> {
    let mut found: Vec<(String, Warning)> = Vec::new();
    for cell in &record.cells {
        let limited = |it: &&Warning| matches!(it, Warning::ControllerLimited { .. });
        let Some(warning) = cell.warnings.iter().find(limited) else { continue };
        let about = format!("{} on {}", cell.experiment, cell.target);
        match found.iter_mut().find(|(known, _)| *known == about) {
            Some((_, known)) if known.share() < warning.share() => *known = warning.clone(),
            Some(_) => {}
            None => found.push((about, warning.clone())),
        }
    }
    found.into_iter().map(|(about, warning)| WarningEntry { about, warning }).collect()
}

fn of(record: &Record, cell: &Cell) -> Option<Warning> {
    let kind = kind_of(cell.metric)?;
    let controller = links::calibration(record, &cell.target)?.controller.as_ref()?;
    let most_per_s = *controller.per_s.get(kind)?;
    (cell.value >= SHARE * most_per_s)
        .then_some(Warning::ControllerLimited { per_s: cell.value, most_per_s })
}

/// The controller's rate that bounds a metric.
fn kind_of(metric: Metric) -> Option<&'static str> {
    let name = metric.name();
    if !name.contains("_per_s") {
        return None;
    }
    CEILINGS.iter().find(|(begins, _)| name.starts_with(begins)).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Name;

    #[test]
    fn each_message_rate_has_its_ceiling() {
        let of = |name| kind_of(Metric::Named(Name::of(name)));
        assert_eq!(of("echo_done_per_s"), Some("echo"));
        assert_eq!(of("flow_mod_messages_per_s_peak"), Some("flow_mod"));
        assert_eq!(of("kept_packet_ins_per_s_lossfree"), Some("packet_in"));
        assert_eq!(kind_of(Metric::FlowModsAddedPerS), Some("flow_mod_played"));
        assert_eq!(kind_of(Metric::FlowStatsPerS), None);
        assert_eq!(of("port_stats_done_per_s"), None);
        assert_eq!(of("packet_in_ns_p50"), None);
    }
}
