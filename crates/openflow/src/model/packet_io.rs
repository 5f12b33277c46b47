//! Packet-in and packet-out messages.
//!
//! Source: OpenFlow 1.0.0 sections 5.3.6 (`ofp_packet_out`) and 5.4.1 (`ofp_packet_in`), 1.3.5
//! sections 7.3.7 and 7.4.1, 1.5.1 sections 7.3.6 and 7.4.1.

use std::fmt;

use super::action::Action;
use super::flow::{BufferId, show_actions};
use super::matching::Match;
use super::port::{PortNo, ShowPort, reserved};
use super::text::Hex;

/// Why the switch sends a frame to the controller (`ofp_packet_in_reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketInReason {
    /// Table miss: no flow entry matched, or the table-miss entry did.
    NoMatch,
    /// An output action; from 1.4 on, one of apply-actions.
    Action,
    /// Invalid TTL ([`PacketInReason::Action`] before 1.2).
    InvalidTtl,
    /// An output action of the action set ([`PacketInReason::Action`] before 1.4).
    ActionSet,
    /// An output action of a group ([`PacketInReason::Action`] before 1.4).
    Group,
    /// An output action of a packet-out ([`PacketInReason::Action`] before 1.4).
    PacketOut,
}

/// Cookie of a packet-in without a flow entry.
pub const COOKIE_NONE: u64 = u64::MAX;

/// A frame that the switch sends to the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketIn {
    /// ID of the buffered frame, if the switch buffers it.
    pub buffer_id: Option<BufferId>,
    /// Length of the whole frame in bytes.
    pub frame_bytes: u16,
    /// Ingress port.
    pub in_port: PortNo,
    /// Other pipeline fields: metadata, tunnel, packet type, and the physical port if it is not
    /// [`PacketIn::in_port`].
    ///
    /// Sent from 1.2 on, the physical port from 1.1 on.
    pub fields: Match,
    /// The reason.
    pub reason: PacketInReason,
    /// The last table that the frame was looked up in (from 1.1 on).
    pub table: u8,
    /// Cookie of the flow entry that sent it, or [`COOKIE_NONE`] (from 1.3 on).
    pub cookie: u64,
    /// The frame, or its first bytes.
    pub data: Vec<u8>,
}

/// A frame that the controller sends through the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketOut {
    /// ID of a buffered frame; `None` if the frame is in `data`.
    pub buffer_id: Option<BufferId>,
    /// Ingress port for the actions; [`super::reserved::NONE`] in 1.0 or
    /// [`super::reserved::CONTROLLER`] later for none.
    pub in_port: PortNo,
    /// Other pipeline fields (1.5).
    pub fields: Match,
    /// Actions on the frame.
    pub actions: Vec<Action>,
    /// The frame, if it is not a buffered one.
    pub data: Vec<u8>,
}

impl Default for PacketIn {
    fn default() -> Self {
        PacketIn {
            buffer_id: None,
            frame_bytes: 0,
            in_port: reserved::NONE,
            fields: Match::ANY,
            reason: PacketInReason::NoMatch,
            table: 0,
            cookie: COOKIE_NONE,
            data: Vec::new(),
        }
    }
}

impl Default for PacketOut {
    fn default() -> Self {
        PacketOut {
            buffer_id: None,
            in_port: reserved::NONE,
            fields: Match::ANY,
            actions: Vec::new(),
            data: Vec::new(),
        }
    }
}

struct ShowBuffer(Option<BufferId>);

impl fmt::Display for ShowBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(id) => write!(f, "{id:#x}"),
            None => f.write_str("none"),
        }
    }
}

impl fmt::Display for PacketIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            PacketInReason::NoMatch => "no_match",
            PacketInReason::Action => "action",
            PacketInReason::InvalidTtl => "invalid_ttl",
            PacketInReason::ActionSet => "action_set",
            PacketInReason::Group => "group",
            PacketInReason::PacketOut => "packet_out",
        };
        write!(f, "{reason} in_port={} table={}", ShowPort(self.in_port), self.table)?;
        if self.cookie != COOKIE_NONE {
            write!(f, " cookie={:#x}", self.cookie)?;
        }
        if self.fields != Match::ANY {
            write!(f, " fields={}", self.fields)?;
        }
        write!(f, " buffer={} frame_bytes={}", ShowBuffer(self.buffer_id), self.frame_bytes)?;
        write!(f, " data={}:{}", self.data.len(), Hex(&self.data))
    }
}

impl fmt::Display for PacketOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in_port={} buffer={}", ShowPort(self.in_port), ShowBuffer(self.buffer_id))?;
        if self.fields != Match::ANY {
            write!(f, " fields={}", self.fields)?;
        }
        f.write_str(" actions=")?;
        show_actions(f, &self.actions)?;
        write!(f, " data={}:{}", self.data.len(), Hex(&self.data))
    }
}
