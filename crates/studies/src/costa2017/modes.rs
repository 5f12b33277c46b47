//! Figure 6: the same switch in OpenFlow mode and in legacy mode.
//!
//! Claim: if OpenFlow uses the hardware, both modes take the same time; otherwise OpenFlow has a fifth of the
//! performance of legacy mode.
//!
//! Method: round trips of 64, 128 and 256 bytes in three ways: by an entry for the port, as the study simulated
//! forwarding from port to port; by an entry that outputs to the switch's own forwarding (NORMAL), if it has any;
//! and through bridges and routers without changes. The speed-up is legacy time divided by OpenFlow time.

use openflow::model::message::Message;
use openflow::model::{Action, FlowMod, Match, reserved};

use super::common::{OPEN_BESIDE, PACKETS, WAIT, loops, trip, ways};
use super::matching::{AXIS, FRAMES, LEGACY, LEGACY_PREFIX, by_port};
use experiments::control_plane::rounds::{ModulePoint, RepeatedModule};
use experiments::control_plane::updates::{PATIENCE, VERSION};
use experiments::show::Chart;
use experiments::{Context, Method};
use workload::Technology;
use workload::parameter::declaration::Parameter;

/// Name of the measurement with the NORMAL port.
const NORMAL: &str = "normal";

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[Chart::values(
    "Mean round-trip time in OpenFlow mode and in legacy mode, by size",
    &["port_rtt_ns_mean", "normal_rtt_ns_mean", "legacy_rtt_ns_mean"],
    &[
        "port_returned_ratio",
        "normal_returned_ratio",
        "normal_refused_count",
        "legacy_returned_ratio",
    ],
)];

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FRAMES, PACKETS, OPEN_BESIDE, WAIT, VERSION, PATIENCE];

/// Creates the method of this figure for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let mut spots: Vec<ModulePoint> = Vec::new();
    for bytes in context.frames(&FRAMES) {
        let (x, size) = (f64::from(bytes), usize::from(bytes));
        if context.technology != Technology::OpenFlow {
            let trip = trip(context, LEGACY, ways(context, size), None);
            spots.extend(loops(context, x, LEGACY_PREFIX, trip, &OPEN_BESIDE));
            continue;
        }
        let (ways, rules) = by_port(context, size);
        let by_port = trip(context, "port", ways.clone(), Some(rules));
        spots.extend(loops(context, x, "port_", by_port, &OPEN_BESIDE));
        let normal = FlowMod::add(
            Match::ANY,
            openflow::model::PRIORITY_DEFAULT,
            vec![Action::output(reserved::NORMAL)],
        );
        let rules = vec![Message::FlowMod(normal)];
        let normal = trip(context, NORMAL, ways, Some(rules));
        spots.extend(loops(context, x, "normal_", normal, &OPEN_BESIDE));
    }
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
