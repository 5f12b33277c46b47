//! The three priority channels of an association (RFC 5811 section 4.2).
//!
//! A channel keeps the order of its messages. Sending and receiving use strict priority across
//! channels, so a flood of redirected packets cannot delay a configuration.

use std::collections::VecDeque;

use crate::wire::{Header, Message, MessageKind, TooLong, encode, frame_octets};

/// Maximum octets that wait to be sent on one channel of one association.
///
/// On the middle and low channels the queue drops and counts further messages. While the high
/// channel is full, the end stops reading.
pub const QUEUE_OCTETS_MAX: usize = 32 << 20;

/// A channel of an association.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// Associations, configurations, queries and their responses. Reliable.
    High,
    /// Events.
    Middle,
    /// Redirected packets and heartbeats.
    Low,
}

impl Channel {
    /// All channels, in descending priority.
    pub const ALL: [Channel; 3] = [Channel::High, Channel::Middle, Channel::Low];

    /// Returns the channel of a message type.
    pub fn of(kind: MessageKind) -> Channel {
        match kind {
            MessageKind::EventNotification => Channel::Middle,
            MessageKind::PacketRedirect | MessageKind::Heartbeat => Channel::Low,
            _ => Channel::High,
        }
    }

    /// Returns its port number (RFC 5811).
    pub fn port(self) -> u16 {
        6704 + self as u16
    }

    /// Returns its SCTP payload protocol identifier (RFC 5811).
    pub fn payload_protocol(self) -> u32 {
        21 + self as u32
    }
}

/// Returns the default priority of a message type (RFC 5811 section 4.2.1).
pub(super) fn priority(kind: MessageKind) -> u8 {
    match kind {
        MessageKind::AssociationSetup
        | MessageKind::AssociationSetupResponse
        | MessageKind::AssociationTeardown => 7,
        MessageKind::Config
        | MessageKind::ConfigResponse
        | MessageKind::Query
        | MessageKind::QueryResponse => 4,
        MessageKind::EventNotification => 3,
        MessageKind::PacketRedirect => 2,
        MessageKind::Heartbeat => 1,
    }
}

/// Messages to send, by channel.
#[derive(Debug, Default)]
pub(super) struct Queues {
    waiting: [VecDeque<Vec<u8>>; 3],
    octets: [usize; 3],
    /// Number of dropped messages.
    pub left_out: u64,
}

impl Queues {
    /// Queues a message on its channel; returns its octets, or 0 if it was dropped.
    pub fn push(&mut self, message: &Message) -> Result<usize, TooLong> {
        let channel = Channel::of(message.body.kind());
        let at = channel as usize;
        let mut bytes = Vec::new();
        encode(message, &mut bytes)?;
        if channel != Channel::High && self.octets[at] + bytes.len() > QUEUE_OCTETS_MAX {
            self.left_out += 1;
            return Ok(0);
        }
        let octets = bytes.len();
        self.octets[at] += octets;
        self.waiting[at].push_back(bytes);
        Ok(octets)
    }

    /// Returns the next message of a channel.
    pub fn pop_of(&mut self, channel: Channel) -> Option<Vec<u8>> {
        let bytes = self.waiting[channel as usize].pop_front()?;
        self.octets[channel as usize] -= bytes.len();
        Some(bytes)
    }

    /// Returns the next message of the highest-priority channel that has one.
    pub fn pop(&mut self) -> Option<(Channel, Vec<u8>)> {
        Channel::ALL.into_iter().find_map(|channel| Some((channel, self.pop_of(channel)?)))
    }

    /// Returns whether the high channel is full.
    pub fn is_full(&self) -> bool {
        self.octets[Channel::High as usize] >= QUEUE_OCTETS_MAX
    }
}

/// Checks framing and channel of a received message, and reads its header.
pub(super) fn received(channel: Channel, bytes: &[u8]) -> Result<(Header, MessageKind), Dropped> {
    match frame_octets(bytes) {
        Ok(Some(octets)) if octets == bytes.len() => {}
        _ => return Err(Dropped::Malformed),
    }
    let (header, framing) = Header::read(bytes).map_err(|_| Dropped::Malformed)?;
    // RFC 5811: drop a message on the wrong channel.
    if Channel::of(framing.kind) != channel {
        return Err(Dropped::WrongChannel);
    }
    Ok((header, framing.kind))
}

/// Why a message was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
    /// It is malformed.
    Malformed,
    /// It arrived on the wrong channel.
    WrongChannel,
    /// Its source or destination is wrong.
    Misaddressed,
    /// It is unexpected in this state or from this end.
    Unexpected,
}
