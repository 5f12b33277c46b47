//! What a frame costs by the type of match: costa2017's five, one rule each, under the same load.
//!
//! Claim: neither which fields a rule names nor how many changes what a frame costs (costa2017, section IV-A, of delays).
//! Method: one flow of 64-byte frames over one rule of each type, types taking turns repeat by repeat. Of targets whose polling
//! thread says what it spends, busy cycles a frame are the answer, as they do not depend on what the tester can send; the
//! rate stands beside.

use super::sweep::{Sweep, SweepPoint};
use super::{Context, Method};
use crate::parameter::Table;
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

/// The method on one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let frame_bytes = context.frames_or(&[64])[0];
    let percent = context.loads_or(&[100.0])[0];
    let at = |(x, table)| {
        let setup = Setup { table, entries: 1, ..context.setup() };
        let trial = context.trial(&setup, frame_bytes, context.link_percent(percent));
        SweepPoint { x, curve: None, setup, trial }
    };
    Box::new(Sweep::new(AXIS, TYPES.map(at).into(), context.parameters.repeats))
}
