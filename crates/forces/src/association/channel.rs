//! Three channels, each more important than the next (RFC 5811 section 4.2).
//!
//! A channel keeps its own order; what goes out and what is read goes by strict priority, so that a
//! flood of redirected packets never holds up a configuration.

use std::collections::VecDeque;

use crate::wire::{Header, Message, MessageKind, TooLong, encode, frame_octets};

/// Most octets that wait to be sent by one channel of one association. What would exceed it on the
/// middle or the low channel is left out and counted; on the high one nothing more is read first.
pub const QUEUE_OCTETS_MAX: usize = 32 << 20;

/// A channel of an association.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// Associations, configurations, queries and their responses; reliable.
    High,
    /// Events.
    Middle,
    /// Redirected packets and heartbeats.
    Low,
}

impl Channel {
    /// All of them, the most important first.
    pub const ALL: [Channel; 3] = [Channel::High, Channel::Middle, Channel::Low];

    /// The channel that a kind of message goes by.
    pub fn of(kind: MessageKind) -> Channel {
        match kind {
            MessageKind::EventNotification => Channel::Middle,
            MessageKind::PacketRedirect | MessageKind::Heartbeat => Channel::Low,
            _ => Channel::High,
        }
    }

    /// The port that RFC 5811 gives it.
    pub fn port(self) -> u16 {
        6704 + self as u16
    }

    /// The payload protocol identifier that RFC 5811 gives it.
    pub fn payload_protocol(self) -> u32 {
        21 + self as u32
    }
}

/// The priority that a kind of message has where nobody says another (RFC 5811 section 4.2.1).
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

/// Messages that wait to be sent, by channel.
#[derive(Debug, Default)]
pub(super) struct Queues {
    waiting: [VecDeque<Vec<u8>>; 3],
    octets: [usize; 3],
    /// Messages that were left out.
    pub left_out: u64,
}

impl Queues {
    /// Queues a message by its own channel; how many octets it has, 0 if it was left out.
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

    /// The next message of a channel.
    pub fn pop_of(&mut self, channel: Channel) -> Option<Vec<u8>> {
        let bytes = self.waiting[channel as usize].pop_front()?;
        self.octets[channel as usize] -= bytes.len();
        Some(bytes)
    }

    /// The most important message.
    pub fn pop(&mut self) -> Option<(Channel, Vec<u8>)> {
        Channel::ALL.into_iter().find_map(|channel| Some((channel, self.pop_of(channel)?)))
    }

    /// Whether so much waits that nothing more should be asked for.
    pub fn is_full(&self) -> bool {
        self.octets[Channel::High as usize] >= QUEUE_OCTETS_MAX
    }
}

/// What can be told of a message that came, before its body is read.
pub(super) fn received(channel: Channel, bytes: &[u8]) -> Result<(Header, MessageKind), Dropped> {
    match frame_octets(bytes) {
        Ok(Some(octets)) if octets == bytes.len() => {}
        _ => return Err(Dropped::Malformed),
    }
    let (header, framing) = Header::read(bytes).map_err(|_| Dropped::Malformed)?;
    // RFC 5811: what comes by the wrong channel is dropped.
    if Channel::of(framing.kind) != channel {
        return Err(Dropped::WrongChannel);
    }
    Ok((header, framing.kind))
}

/// Why a message is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
    /// It cannot be read.
    Malformed,
    /// It came by the wrong channel.
    WrongChannel,
    /// It is somebody else's, or from somebody else.
    Misaddressed,
    /// Such a message is not expected now, or from this end.
    Unexpected,
}
