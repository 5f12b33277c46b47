//! Figures 7 and 8: activation delay of entries compared with the barrier reply, and their order.
//!
//! Claim: a hardware switch sends the barrier reply seconds before the last entries are active. Inserting entries
//! of rising priority takes longer than modifying them, because the switch moves entries. Software takes the same
//! time for both, and is a thousand times faster. Entries activate in batches, and in an order that looks random.
//!
//! Method: the module `rule-activation`, with up to 1,400 entries, and with 1,000 for figure 8. Figure 8 shows
//! insertions and modifications, each with ascending and with random priority, unless a parameter selects one of
//! these. Parameters: those of the module.

use experiments::control_plane::rounds::RepeatedModule;
use experiments::control_plane::updates;
use experiments::show::{Chart, Range};
use experiments::{Context, Method};
use record::Implementation;
use workload::parameter::declaration::Parameter;

/// Numbers of entries.
const COUNTS: &str = "100,400,700,1000,1400";

/// Figure 7a: entries are modified.
pub const MODIFIED: [Parameter; 12] = updates::preset(COUNTS, "modify", "ascending");

/// Figures 7b and 7c: entries are inserted.
pub const INSERTED: [Parameter; 12] = updates::preset(COUNTS, "add", "ascending");

/// Figure 8: a thousand entries are inserted, and modified.
pub const THOUSAND: [Parameter; 12] = updates::preset("1000", "add", "ascending");

/// Prefix of the metric names for entries of random priority.
const RANDOM: &str = "random_";

/// Operation, order of priorities and prefix of the names of figure 8's further measurements.
const FURTHER: [(&str, &str, &str); 3] = [
    ("add", "random", RANDOM),
    ("modify", "ascending", "modified_"),
    ("modify", "random", "modified_random_"),
];

/// Report values of figure 7a. As in the study, ranges are those of the repeats.
pub const PLANES: &[Chart] = &[Chart {
    is_logarithmic: true,
    range: Some(Range::Repeats),
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

/// Report values of figure 7b, which is about hardware.
pub const HARDWARE: &[Chart] =
    &[Chart { implementation: Some(Implementation::Hardware), ..PLANES[0] }];

/// Report values of figure 7c, which is about software. The claim is a linear growth.
pub const SOFTWARE: &[Chart] =
    &[Chart { implementation: Some(Implementation::Software), is_logarithmic: false, ..PLANES[0] }];

/// Report values of figure 8a.
pub const OVER_TIME: &[Chart] = &[
    Chart::series(
        "Active entries over time, ascending priority",
        &["rules_acting", "modified_rules_acting"],
    ),
    Chart::series(
        "Active entries over time, random priority",
        &["random_rules_acting", "modified_random_rules_acting"],
    ),
    Chart::values(
        "Longest pause without an activation",
        &[
            "pause_ns_max",
            "random_pause_ns_max",
            "modified_pause_ns_max",
            "modified_random_pause_ns_max",
        ],
        &["pause_begins_ns", "modified_pause_begins_ns"],
    ),
];

/// Report values of figure 8b.
pub const ORDER: &[Chart] = &[
    Chart::series(
        "Activation position over send position, ascending priority",
        &["place_acting", "modified_place_acting"],
    ),
    Chart::series(
        "Activation position over send position, random priority",
        &["random_place_acting", "modified_random_place_acting"],
    ),
    Chart::values(
        "Activation order compared with send order",
        &[
            "order_tau_index",
            "random_order_tau_index",
            "modified_order_tau_index",
            "modified_random_order_tau_index",
        ],
        &["inversions_count", "modified_inversions_count"],
    ),
];

/// Creates the method of figure 7a.
pub fn modified(context: &Context) -> Box<dyn Method> {
    updates::with(context, &MODIFIED)
}

/// Creates the method of figures 7b and 7c: entries of rising priority, and the same number of random priority.
pub fn inserted(context: &Context) -> Box<dyn Method> {
    let (deed, priorities) = updates::as_set(context, &INSERTED);
    let mut spots = updates::spots(context, &INSERTED, (deed, priorities), "");
    if priorities == "ascending" {
        spots.extend(updates::spots(context, &INSERTED, (deed, "random"), RANDOM));
    }
    Box::new(RepeatedModule::new(context, updates::AXIS, spots))
}

/// Creates the method of figures 8a and 8b.
pub fn thousand(context: &Context) -> Box<dyn Method> {
    let set = updates::as_set(context, &THOUSAND);
    let mut spots = updates::spots(context, &THOUSAND, set, "");
    if set == ("add", "ascending") {
        for (deed, priorities, prefix) in FURTHER {
            spots.extend(updates::spots(context, &THOUSAND, (deed, priorities), prefix));
        }
    }
    Box::new(RepeatedModule::new(context, updates::AXIS, spots))
}
