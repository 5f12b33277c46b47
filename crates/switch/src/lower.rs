//! OpenFlow values to values of the forwarding core, and back for statistics.
//!
//! Both sides have their own types because the core knows no protocol. Going down may fail with
//! the error that the controller has to be told; going up never does. Invariant: what was
//! installed comes back with the fields that the controller had named, because the entry
//! remembers them (see `matching`).

use openflow::model::{PortNo, reserved};
use packet::time::Nanos;

/// Actions: down with checks, and up.
pub mod action;
/// Entries: what a flow-mod says, and what statistics tell.
pub mod flow;
/// Matches, and which fields were named.
pub mod matching;

pub use action::{PortNumbers, actions_down, actions_up};
pub use flow::{filter_down, flow_removed_up, flow_stats_up, spec_down};
pub use matching::{match_down, match_up};

/// A port number as the core has it: reserved ones within 16 bits.
pub fn port_down(port: PortNo) -> packet::frame::PortNo {
    if port >= reserved::MAX { port & 0xffff } else { port }
}

/// A port number as OpenFlow has it.
pub fn port_up(port: packet::frame::PortNo) -> PortNo {
    const RESERVED: packet::frame::PortNo = reserved::MAX & 0xffff;
    if port >= RESERVED { port | (reserved::MAX - RESERVED) } else { port }
}

fn seconds_down(seconds: u16) -> Nanos {
    Nanos::from_secs(seconds.into())
}

fn seconds_up(span: Nanos) -> u16 {
    u16::try_from(span.0 / 1_000_000_000).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
