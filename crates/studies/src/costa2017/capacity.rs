//! Table IV: number of entries that fit, in OpenFlow mode and in legacy mode.
//!
//! Claim: most switches have room for fewer entries in OpenFlow mode than in legacy mode.
//!
//! Method: the controller installs entries until the switch rejects one or stops replying, or until a limit. It
//! does so with entries that match on every field, and with entries that match on an address. Frames then visit
//! each entry or a sample, and show whether it is active. A bridge learns stations until one is missing (RFC 2889,
//! 5.7). A router gets fewer routes until all of them forward ([`super::routes`]). Access lists of legacy mode are
//! not counted: a switch without OpenFlow has none that the tester can program.

use tester::module::Module;

use super::filling::{BOUND, bound};
use super::matching::AXIS;
use super::routes::Routes;
use experiments::control_plane::rounds::{ModulePoint, RepeatedModule};
use experiments::control_plane::table_capacity::{
    self, BATCH, ORDER, PROBES_PPS, SAMPLE, TableCapacity, filling,
};
use experiments::control_plane::updates::VERSION;
use experiments::show::Chart;
use experiments::{Context, Method, rfc2889};
use workload::Technology;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] =
    &[BOUND, BATCH, ORDER, SAMPLE, PROBES_PPS, table_capacity::PATIENCE, VERSION, shared::FRAME];

/// Size of the frames that check entries.
const FRAME_BYTES: u16 = 64;

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[Chart::values(
    "Accepted flow entries, and entries of legacy mode",
    &["exact_accepted_rules", "wildcard_accepted_rules", "mac_addresses_learned", "routes_count"],
    &[
        "is_full_count",
        "exact_is_full_count",
        "exact_is_silent_count",
        "exact_acting_rules",
        "exact_missing_rules",
        "exact_late_rules",
        "exact_unstable_rules",
        "exact_unseen_rules",
        "wildcard_is_full_count",
        "wildcard_is_silent_count",
        "wildcard_acting_rules",
        "wildcard_missing_rules",
        "wildcard_late_rules",
        "wildcard_unstable_rules",
        "wildcard_unseen_rules",
    ],
)];

/// Creates the method of this table for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    match context.technology {
        Technology::Bridging => rfc2889::addresses::capacity(context),
        Technology::Routing => Box::new(Routes::new(context)),
        Technology::OpenFlow | Technology::Tagging | Technology::Wire => {
            let bound = bound(context);
            let at = |is_exact: bool, prefix: &'static str| {
                let filling = filling(context, bound, is_exact);
                let make =
                    move |_| Box::new(TableCapacity::new(filling.clone())) as Box<dyn Module>;
                ModulePoint::new(f64::from(FRAME_BYTES), 2.0, make).named(prefix)
            };
            let spots = vec![at(true, "exact_"), at(false, "wildcard_")];
            Box::new(RepeatedModule::new(context, AXIS, spots))
        }
    }
}
