//! Nicira extensions of OpenFlow 1.0, which the Open vSwitch tools use by default with a 1.0
//! switch.
//!
//! Source: `nicira-ext.h` of Open vSwitch. On the wire these are experimenter messages and
//! statistics; [`crate::codec::nicira`] encodes and decodes them.
//!
//! They add to 1.0: any field in a match, the table of a flow entry, and the time since it last
//! matched.

use super::flow::{FlowMod, FlowRemoved};
use super::multipart::{AggregateStats, FlowStats, FlowStatsRequest};
use super::packet_io::PacketIn;
use super::role::Role;

/// Nicira's experimenter ID.
pub const NICIRA: u32 = 0x2320;

/// Format of messages about flow entries and frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// The format of OpenFlow 1.0.
    #[default]
    Standard,
    /// Nicira's format.
    Nicira,
}

/// A Nicira message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "flow-mods are frequent, and boxing them is slow")]
pub enum NiciraMessage {
    /// Requests a role; there is no [`Role::NoChange`].
    RoleRequest(Role),
    /// The controller's role.
    RoleReply(Role),
    /// Sets the format of messages about flow entries.
    SetFlowFormat(Form),
    /// Adds, modifies or deletes flow entries.
    FlowMod(FlowMod),
    /// Notifies of a removed flow entry.
    FlowRemoved(FlowRemoved),
    /// Sets whether the upper byte of a flow-mod's command is a table ID.
    FlowModTableId(bool),
    /// Sets the format of packet-in messages.
    SetPacketInFormat(Form),
    /// A frame that the switch sends to the controller.
    PacketIn(PacketIn),
    /// Requests idle times in flow statistics; a switch without them replies with an error.
    FlowAge,
    /// Sets the asynchronous message configuration: a bit for each reason, as master or equal and
    /// as slave.
    SetAsyncConfig {
        /// Reasons of packet-in.
        packet_in: [u32; 2],
        /// Reasons of port-status.
        port_status: [u32; 2],
        /// Reasons of flow-removed.
        flow_removed: [u32; 2],
    },
    /// Sets the ID of this connection, which actions of flow entries refer to.
    SetControllerId(u16),
}

/// A Nicira statistics request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NiciraRequest {
    /// Flow entries with their counters.
    Flow(FlowStatsRequest),
    /// Sum of the counters of flow entries.
    Aggregate(FlowStatsRequest),
}

/// A Nicira statistics reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NiciraReply {
    /// Flow entries with their counters.
    Flow(Vec<FlowStats>),
    /// Sum of the counters of flow entries.
    Aggregate(AggregateStats),
}
