//! Nicira's extensions of 1.0: what Open vSwitch's tools say by default to a 1.0 switch.
//!
//! Source: `nicira-ext.h` of Open vSwitch. On the wire these are experimenter's messages and
//! statistics; [`crate::codec::nicira`] turns them into these values and back. They say more than
//! 1.0 can: any field in a match, the table of an entry, the time since it last matched.

use super::flow::{FlowMod, FlowRemoved};
use super::multipart::{AggregateStats, FlowStats, FlowStatsRequest};
use super::packet_io::PacketIn;
use super::role::Role;

/// Nicira's number as an experimenter.
pub const NICIRA: u32 = 0x2320;

/// In which form a switch tells of entries and frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// As 1.0 does.
    #[default]
    Standard,
    /// As Nicira does.
    Nicira,
}

/// One of Nicira's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "a flow-mod is the message that must be quick")]
pub enum NiciraMessage {
    /// Asks for a role, or tells it ([`Role::NoChange`] is not among them).
    RoleRequest(Role),
    /// The controller's role.
    RoleReply(Role),
    /// In which form the switch tells of entries.
    SetFlowFormat(Form),
    /// Adds, changes or deletes entries.
    FlowMod(FlowMod),
    /// An entry has gone.
    FlowRemoved(FlowRemoved),
    /// Whether the upper byte of a flow-mod's command is a table.
    FlowModTableId(bool),
    /// In which form the switch tells of frames.
    SetPacketInFormat(Form),
    /// A frame for the controller.
    PacketIn(PacketIn),
    /// Asks whether the switch tells how long entries have been idle; it refuses if not.
    FlowAge,
    /// Which news the controller gets: a bit for each reason, as master or equal and as slave.
    SetAsyncConfig {
        /// Of frames.
        packet_in: [u32; 2],
        /// Of ports.
        port_status: [u32; 2],
        /// Of entries that have gone.
        flow_removed: [u32; 2],
    },
    /// The number by which entries name this connection.
    SetControllerId(u16),
}

/// One of Nicira's requests for statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NiciraRequest {
    /// Each entry.
    Flow(FlowStatsRequest),
    /// The sum over entries.
    Aggregate(FlowStatsRequest),
}

/// One of Nicira's replies with statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NiciraReply {
    /// Entries.
    Flow(Vec<FlowStats>),
    /// The sum over entries.
    Aggregate(AggregateStats),
}
