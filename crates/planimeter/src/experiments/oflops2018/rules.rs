//! Figures 7 and 8: how long rules take to act against what the barrier says, and in which order.
//!
//! Claim: a hardware switch answers the barrier seconds before the last rules act; inserting rules of
//! rising priority takes longer than modifying them, since entries have to move; software does both alike
//! and a thousand times as fast. Rules act in batches, and in an order that looks random. Method: the module
//! `rule-activation`, with 1,400 rules at most, and with 1,000 for figure 8. Parameters: those of the
//! module.

use super::super::modules::rounds::Rounds;
use super::super::modules::updates;
use super::super::{Context, Method};
use crate::catalog::Show;
use crate::parameter::own::Declared;

/// Numbers of rules.
const COUNTS: &str = "100,400,700,1000,1400";

/// Figure 7a: rules are modified.
pub const MODIFIED: [Declared; 12] = updates::preset(COUNTS, "modify", "ascending");

/// Figures 7b and 7c: rules are inserted.
pub const INSERTED: [Declared; 12] = updates::preset(COUNTS, "add", "ascending");

/// Figure 8: a thousand rules are inserted.
pub const THOUSAND: [Declared; 12] = updates::preset("1000", "add", "ascending");

/// What comes before the metrics of rules of random priority.
const RANDOM: &str = "random_";

/// What figure 7 shows.
pub const PLANES: &[Show] = &[Show {
    is_logarithmic: true,
    ..Show::values(
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

/// What figure 8a shows.
pub const OVER_TIME: &[Show] = &[
    Show::series("Rules that act over time", &["rules_acting"]),
    Show::values("Pauses in which no rule comes to act", &["pause_ns_max"], &["pause_begins_ns"]),
];

/// What figure 8b shows.
pub const ORDER: &[Show] = &[
    Show::series(
        "Place at which rules began to act over the place at which they were sent",
        &["place_acting"],
    ),
    Show::values("Order of acting against order sent", &["order_tau_index"], &["inversions_count"]),
];

/// Figure 7a on one target.
pub fn modified(context: &Context) -> Box<dyn Method> {
    updates::with(context, &MODIFIED)
}

/// Figures 7b and 7c on one target: rules of increasing priority, and for comparison as many of random priority.
pub fn inserted(context: &Context) -> Box<dyn Method> {
    let priorities = context.parameters.own.text(&INSERTED[2]);
    let mut spots = updates::spots(context, &INSERTED, priorities, "");
    if priorities == "ascending" {
        spots.extend(updates::spots(context, &INSERTED, "random", RANDOM));
    }
    Box::new(Rounds::new(context, updates::AXIS, spots))
}

/// Figures 8a and 8b on one target.
pub fn thousand(context: &Context) -> Box<dyn Method> {
    updates::with(context, &THOUSAND)
}
