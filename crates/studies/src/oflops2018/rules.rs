//! Figures 7 and 8: activation delay of entries compared with the barrier reply, and their order.
//!
//! Claim: a hardware switch sends the barrier reply seconds before the last entries are active. Inserting entries
//! of rising priority takes longer than modifying them, because the switch moves entries. Software takes the same
//! time for both, and is a thousand times faster. Entries activate in batches, and in an order that looks random.
//!
//! Method: the module `rule-activation`, with up to 1,400 entries, and with 1,000 for figure 8. Parameters: those
//! of the module.

use experiments::control_plane::rounds::RepeatedModule;
use experiments::control_plane::updates;
use experiments::show::Chart;
use experiments::{Context, Method};
use workload::parameter::declaration::Parameter;

/// Numbers of entries.
const COUNTS: &str = "100,400,700,1000,1400";

/// Figure 7a: entries are modified.
pub const MODIFIED: [Parameter; 12] = updates::preset(COUNTS, "modify", "ascending");

/// Figures 7b and 7c: entries are inserted.
pub const INSERTED: [Parameter; 12] = updates::preset(COUNTS, "add", "ascending");

/// Figure 8: a thousand entries are inserted.
pub const THOUSAND: [Parameter; 12] = updates::preset("1000", "add", "ascending");

/// Prefix of the metric names for entries of random priority.
const RANDOM: &str = "random_";

/// Report values of figure 7.
pub const PLANES: &[Chart] = &[Chart {
    is_logarithmic: true,
    ..Chart::values(
        "Control-plane and data-plane latency by number of rules",
        &["data_plane_ns", "control_plane_ns"],
        &[
            "activation_ns_min",
            "activation_ns_p50",
            "activation_ns_p90",
            "barrier_gap_ns_max",
            "rules_premature_ratio",
            "rules_active_ratio",
            "random_data_plane_ns",
        ],
    )
}];

/// Report values of figure 8a.
pub const OVER_TIME: &[Chart] = &[
    Chart::series("Active entries over time", &["rules_acting"]),
    Chart::values("Longest pause without an activation", &["pause_ns_max"], &["pause_begins_ns"]),
];

/// Report values of figure 8b.
pub const ORDER: &[Chart] = &[
    Chart::series("Activation position over send position", &["place_acting"]),
    Chart::values(
        "Activation order compared with send order",
        &["order_tau_index"],
        &["inversions_count"],
    ),
];

/// Creates the method of figure 7a.
pub fn modified(context: &Context) -> Box<dyn Method> {
    updates::with(context, &MODIFIED)
}

/// Creates the method of figures 7b and 7c: entries of rising priority, and the same number of random priority.
pub fn inserted(context: &Context) -> Box<dyn Method> {
    let priorities = context.parameters.own.text(&INSERTED[2]);
    let mut spots = updates::spots(context, &INSERTED, priorities, "");
    if priorities == "ascending" {
        spots.extend(updates::spots(context, &INSERTED, "random", RANDOM));
    }
    Box::new(RepeatedModule::new(context, updates::AXIS, spots))
}

/// Creates the method of figures 8a and 8b.
pub fn thousand(context: &Context) -> Box<dyn Method> {
    updates::with(context, &THOUSAND)
}
