//! Conversion of OpenFlow values to values of the forwarding core, and back for statistics.
//!
//! Both sides have their own types because the core knows no protocol. Match fields are the same on
//! both sides (`packet::field`). Conversion to the core (`_down`) may fail with the error code for
//! the controller. Conversion from the core (`_up`) never fails, and omits what a version cannot
//! express.
//!
//! Invariant: an installed entry is reported with the match fields that the controller specified.

use openflow::model::{PortNo, reserved};
use packet::field::Field;
use packet::time::Nanos;

pub mod action;
pub mod consistency;
pub mod instruction;
pub mod flow;
pub mod group;
pub mod meter;
pub mod matching;
pub mod downgrade;

pub use action::{ActionLimits, actions_down, actions_up};
pub use flow::{filter_down, flow_removed_up, flow_stats_up, spec_down};
pub use instruction::{instructions_down, instructions_up};
pub use matching::{match_down, match_up};

/// The core's number of the first reserved port.
const RESERVED: packet::frame::PortNo = reserved::MAX & 0xffff;

/// Whether the core can represent the number of this non-reserved port.
pub fn has_core_number(port: PortNo) -> bool {
    port < RESERVED
}

/// Converts a port number to the core, which has reserved ports within 16 bits.
pub fn port_down(port: PortNo) -> packet::frame::PortNo {
    if port >= reserved::MAX { port & 0xffff } else { port }
}

/// Converts a port number to OpenFlow.
pub fn port_up(port: packet::frame::PortNo) -> PortNo {
    if port >= RESERVED { port | (reserved::MAX - RESERVED) } else { port }
}

/// Whether a field's values are port numbers.
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
