//! What a frame costs by the type of match: costa2017's five, one rule each, under the same load.
//!
//! Claim: neither which fields a rule names nor how many changes what a frame costs (costa2017, section IV-A, of delays).
//! Method: one flow of 64-byte frames over one rule of each type, types taking turns repeat by repeat. Of targets whose polling
//! thread says what it spends, busy cycles a frame are the answer, as they do not depend on what the tester can send; the
//! rate stands beside.

use super::sweep::{Sweep, SweepPoint};
use super::{Context, FRAME_CURVE, Method, curve_of};
use crate::parameter::Table;
use crate::parameter::own::Declared;
use crate::parameter::shared;
use crate::workload::Setup;

/// Name of the axis: how many fields of OpenFlow 1.0 a rule names.
pub const AXIS: &str = "fields_named";

/// The types, by how many fields they name: the port, both MAC addresses, the kind of packet and both IP addresses,
/// these with protocol and both UDP ports, and all.
const TYPES: [(f64, Table); 5] = [
    (1.0, Table::Port),
    (2.0, Table::Macs),
    (3.0, Table::Hosts),
    (6.0, Table::Datagrams),
    (12.0, Table::One),
];

/// Parameters of the experiment.
pub const PARAMETERS: &[Declared] = &[shared::FRAMES, shared::LOAD];

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
