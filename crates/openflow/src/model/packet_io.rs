//! Frames that travel on the control channel: to the controller, and from it.
//!
//! Source: OpenFlow 1.0.0 sections 5.3.6 (`ofp_packet_out`) and 5.4.1 (`ofp_packet_in`).

use std::fmt;

use super::action::Action;
use super::flow::{BufferId, show_actions};
use super::port::{PortNo, ShowPort};
use super::text::Hex;

/// Why a frame goes to the controller (`ofp_packet_in_reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketInReason {
    /// No entry matched it.
    NoMatch,
    /// An action sent it there.
    Action,
}

/// A frame that the switch hands to its controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketIn {
    /// Where the switch keeps the whole frame, if it does.
    pub buffer_id: Option<BufferId>,
    /// Bytes of the whole frame.
    pub frame_bytes: u16,
    /// The port that the frame came in on.
    pub in_port: PortNo,
    /// Why.
    pub reason: PacketInReason,
    /// The frame, or its first bytes.
    pub data: Vec<u8>,
}

/// A frame that the controller has the switch send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketOut {
    /// Which kept frame; `None` if the frame is in `data`.
    pub buffer_id: Option<BufferId>,
    /// The port that the frame is said to have come in on, or [`super::reserved::NONE`].
    pub in_port: PortNo,
    /// What is done with the frame.
    pub actions: Vec<Action>,
    /// The frame, if it is not a kept one.
    pub data: Vec<u8>,
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
        };
        write!(f, "{reason} in_port={}", ShowPort(self.in_port))?;
        write!(f, " buffer={} frame_bytes={}", ShowBuffer(self.buffer_id), self.frame_bytes)?;
        write!(f, " data={}:{}", self.data.len(), Hex(&self.data))
    }
}

impl fmt::Display for PacketOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in_port={} buffer={}", ShowPort(self.in_port), ShowBuffer(self.buffer_id))?;
        f.write_str(" actions=")?;
        show_actions(f, &self.actions)?;
        write!(f, " data={}:{}", self.data.len(), Hex(&self.data))
    }
}
