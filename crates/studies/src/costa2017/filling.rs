//! Table V: one entry compared with a full table.
//!
//! Claim: neither the number of entries nor their order changes the round trip time, except on one switch of nine.
//!
//! Method: round trips of 64-byte packets by entries that are the only ones, and by entries that are installed last
//! in a full table. This runs with entries that match on every field, and with entries that match on an address.
//! Without a table-full error, filling ends at a limit. The report shows the number of entries.

use openflow::model::message::Message;

use super::common::{OPEN_BESIDE, PACKETS, WAIT, loops, trip};
use super::matching;
use experiments::control_plane::round_trip::table_fill::Fill;
use experiments::control_plane::rounds::{ModulePoint, RepeatedModule};
use experiments::control_plane::rules::Rules;
use experiments::control_plane::updates::{PATIENCE, VERSION};
use experiments::show::Chart;
use experiments::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis: occupancy of the table.
pub const AXIS: &str = "occupancy_percent";

/// Maximum number of entries, and the maximum if trials last less than a second.
const BOUND_PUBLISHED: u64 = 1_000_000;
const BOUND_QUICK: u64 = 20_000;

/// Limit for filling tables.
pub const BOUND: Parameter = Parameter {
    key: "rules_bound",
    takes: ValueType::Integer(0, 2_000_000),
    default: "0",
    unit: "rules",
    help: "maximum number of entries to add; 0 means a million, or 20,000 if trials are shorter \
           than a second",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[BOUND, PACKETS, OPEN_BESIDE, WAIT, VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[Chart::values(
    "Mean round-trip time with one entry and with a full table",
    &["exact_rtt_ns_mean", "wildcard_rtt_ns_mean"],
    &[
        "exact_taken_rules",
        "exact_is_full_count",
        "wildcard_taken_rules",
        "wildcard_is_full_count",
        "exact_returned_ratio",
        "wildcard_returned_ratio",
    ],
)];

/// Returns the maximum number of entries.
pub fn bound(context: &Context) -> u32 {
    let asked = match context.parameters.own.integer(&BOUND) {
        0 if context.parameters.seconds < 1.0 => BOUND_QUICK,
        0 => BOUND_PUBLISHED,
        asked => asked,
    };
    asked as u32
}

/// Creates the method of this table for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let bound = bound(context);
    let mut spots: Vec<ModulePoint> = Vec::new();
    for (word, name, prefix) in [("exact", "exact", "exact_"), ("ip", "wildcard", "wildcard_")] {
        let (ways, rules) = matching::typed(context, word, 64);
        let one = trip(context, name, ways, Some(rules.clone()));
        let mut full = one.clone();
        full.fill = Some(Fill {
            rules: Rules::new(context, bound),
            is_exact: word == "exact",
            share: 1.0,
            leaves: rules.iter().filter(|it| matches!(it, Message::FlowMod(_))).count() as u32,
        });
        spots.extend(loops(context, 0.0, prefix, one, &OPEN_BESIDE));
        spots.extend(loops(context, 100.0, prefix, full, &OPEN_BESIDE));
    }
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
