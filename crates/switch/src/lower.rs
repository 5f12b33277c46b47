//! OpenFlow values to values of the forwarding core, and back for statistics.
//!
//! Both sides have their own types because the core knows no protocol; fields are the same on both
//! (`packet::field`), so that a match is a loop. Going down may fail with the error that the
//! controller has to be told; going up never does, and leaves out what a version cannot say.
//! Invariant: what was installed comes back with the fields that the controller had named.

use openflow::model::{PortNo, reserved};
use packet::field::Field;
use packet::time::Nanos;

/// Actions: down with checks, and up.
pub mod action;
/// Whether actions make sense for the frames that an entry matches.
pub mod sense;
/// Instructions.
pub mod instruction;
/// Entries: what a flow-mod says, and what statistics tell.
pub mod flow;
/// Groups.
pub mod group;
/// Meters.
pub mod meter;
/// Matches.
pub mod matching;
/// What a version cannot say, left out.
pub mod express;

pub use action::{World, actions_down, actions_up};
pub use flow::{filter_down, flow_removed_up, flow_stats_up, spec_down};
pub use instruction::{instructions_down, instructions_up};
pub use matching::{match_down, match_up};

/// The core's number of the first reserved port.
const RESERVED: packet::frame::PortNo = reserved::MAX & 0xffff;

/// Whether the core can number this port, which is not reserved.
pub fn has_core_number(port: PortNo) -> bool {
    port < RESERVED
}

/// A port number as the core has it: reserved ones within 16 bits.
pub fn port_down(port: PortNo) -> packet::frame::PortNo {
    if port >= reserved::MAX { port & 0xffff } else { port }
}

/// A port number as OpenFlow has it.
pub fn port_up(port: packet::frame::PortNo) -> PortNo {
    if port >= RESERVED { port | (reserved::MAX - RESERVED) } else { port }
}

/// Whether a field's values are numbers of ports.
fn is_port(field: Field) -> bool {
    matches!(field, Field::InPort | Field::InPhyPort | Field::ActsetOutput)
}

fn seconds_down(seconds: u16) -> Nanos {
    Nanos::from_secs(seconds.into())
}

pub(crate) fn seconds_up(span: Nanos) -> u16 {
    u16::try_from(span.0 / 1_000_000_000).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
