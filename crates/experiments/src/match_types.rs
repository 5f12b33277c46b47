//! Per-frame cost by match type: costa2017's five types, one entry each, under the same load.
//!
//! Claim: neither the matched fields nor their number change the cost of a frame (costa2017, section IV-A, for
//! delays).
//!
//! Method: one flow of 64-byte frames over one entry of each type; types alternate repeat by repeat. If the
//! target's polling thread reports its work, the result is busy cycles per frame, which do not depend on the rate
//! of the tester. The forwarding rate is reported too.

use super::sweep::{Sweep, SweepPoint};
use super::{Context, FRAME_CURVE, Method, curve_of};
use workload::Setup;
use workload::parameter::Table;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Name of the axis: number of OpenFlow 1.0 fields in the match.
pub const AXIS: &str = "fields_named";

/// Match types by number of fields: the input port; both MAC addresses; EtherType and both IP addresses; these with
/// protocol and both UDP ports; all.
const TYPES: [(f64, Table); 5] = [
    (1.0, Table::Port),
    (2.0, Table::Macs),
    (3.0, Table::Hosts),
    (6.0, Table::Datagrams),
    (12.0, Table::One),
];

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[shared::FRAMES, shared::LOAD];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let (frames, rate) =
        (context.frames(&shared::FRAMES), context.link_percent(context.load(&shared::LOAD)));
    let at = |(x, table), frame_bytes| {
        let setup = Setup { table, entries: 1, ..context.setup() };
        let curve = curve_of(FRAME_CURVE, &frames, frame_bytes);
        SweepPoint { x, curve, setup, trial: context.trial(&setup, frame_bytes, rate) }
    };
    let points = TYPES.into_iter().flat_map(|it| frames.iter().map(move |&size| at(it, size)));
    Box::new(Sweep::new(AXIS, points.collect(), context.parameters.repeats))
}
