//! The 24-octet message header (RFC 5810 section 6.1).
//!
//! ```text
//! version:4 reserved:4 type:8 length:16 (words, the header's six among them)
//! source:32 destination:32 correlator:64
//! ack:2 priority:3 reserved:3 mode:2 atomic:1 phase:2 reserved:19
//! ```

use std::fmt;

use super::fault::{WireFault, WireFaultKind};
use super::message::MessageKind;
use super::{HEADER_OCTETS, VERSION};

/// ID of an FE, a CE or a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Id(pub u32);

impl Id {
    /// No ID: an FE that requests one.
    pub const NONE: Id = Id(0);
    /// Every CE.
    pub const ALL_CES: Id = Id(0xFFFF_FFFD);
    /// Every FE.
    pub const ALL_FES: Id = Id(0xFFFF_FFFE);
    /// Every FE and CE.
    pub const ALL: Id = Id(0xFFFF_FFFF);

    /// Returns whether this is the ID of a single FE, or none.
    pub fn is_fe(self) -> bool {
        self.0 <= 0x3FFF_FFFF
    }

    /// Returns whether this is the ID of a single CE.
    pub fn is_ce(self) -> bool {
        (0x4000_0000..=0x7FFF_FFFF).contains(&self.0)
    }

    /// Returns whether this is the ID of a multicast group.
    pub fn is_multicast(self) -> bool {
        (0xC000_0000..=0xFFFF_FFEF).contains(&self.0)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Id::ALL_CES => f.write_str("all CEs"),
            Id::ALL_FES => f.write_str("all FEs"),
            Id::ALL => f.write_str("all"),
            id if id.is_fe() => write!(f, "FE {:#x}", self.0),
            id if id.is_ce() => write!(f, "CE {:#x}", self.0),
            id if id.is_multicast() => write!(f, "group {:#x}", self.0),
            _ => write!(f, "reserved {:#x}", self.0),
        }
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// When the receiver must respond to a configuration or a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ack {
    /// Never.
    #[default]
    Never,
    /// On success.
    Success,
    /// On failure.
    Failure,
    /// Always.
    Always,
}

/// Execution mode: what happens to a message's other operations when one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// None; the value 0 is reserved.
    #[default]
    Unsaid,
    /// Execute all operations or none.
    AllOrNone,
    /// Stop at the first failure; earlier operations remain in effect.
    UntilFailure,
    /// Continue with all other operations.
    Continue,
}

/// Position of a message in a transaction or in a response of several messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Start of transaction (SOT).
    #[default]
    Start,
    /// Middle of transaction (MOT).
    Middle,
    /// End of transaction (EOT).
    End,
    /// Abort (ABT).
    Abort,
}

/// The header's flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// When to respond.
    pub ack: Ack,
    /// Priority from 0 to 7; 7 is the highest.
    pub priority: u8,
    /// Execution mode.
    pub mode: Mode,
    /// Whether the message is part of a transaction.
    pub atomic: bool,
    /// Position in the transaction.
    pub phase: Phase,
}

impl Flags {
    /// Decodes the flags; ignores reserved bits.
    pub fn from_bits(bits: u32) -> Flags {
        Flags {
            ack: [Ack::Never, Ack::Success, Ack::Failure, Ack::Always][(bits >> 30) as usize],
            priority: (bits >> 27 & 7) as u8,
            mode: [Mode::Unsaid, Mode::AllOrNone, Mode::UntilFailure, Mode::Continue]
                [(bits >> 22 & 3) as usize],
            atomic: bits >> 21 & 1 == 1,
            phase: [Phase::Start, Phase::Middle, Phase::End, Phase::Abort]
                [(bits >> 19 & 3) as usize],
        }
    }

    /// Encodes the flags; reserved bits are zero.
    pub fn bits(self) -> u32 {
        let priority = u32::from(self.priority & 7) << 27;
        let atomic = u32::from(self.atomic) << 21;
        (self.ack as u32) << 30
            | priority
            | (self.mode as u32) << 22
            | atomic
            | (self.phase as u32) << 19
    }
}

/// The message header without length and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Sender.
    pub source: Id,
    /// Receiver.
    pub destination: Id,
    /// Identifies the request of a response; 0 if no response is expected.
    pub correlator: u64,
    /// Flags.
    pub flags: Flags,
}

/// Type and length in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    /// Message type.
    pub kind: MessageKind,
    /// Octets of the message, including the header.
    pub octets: usize,
}

impl Header {
    /// Decodes the header of a message. It does not check the length against the available octets.
    pub fn read(bytes: &[u8]) -> Result<(Header, Framing), WireFault> {
        let octets = frame_octets(bytes)?;
        let Some(octets) = octets else {
            return Err(WireFault {
                at: bytes.len(),
                why: WireFaultKind::Short { octets: HEADER_OCTETS },
            });
        };
        let word = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if bytes.len() < HEADER_OCTETS {
            return Err(WireFault {
                at: bytes.len(),
                why: WireFaultKind::Short { octets: HEADER_OCTETS },
            });
        }
        let kind = MessageKind::from_wire(bytes[1])
            .ok_or(WireFault { at: 1, why: WireFaultKind::MessageKind(bytes[1]) })?;
        let header = Header {
            source: Id(word(4)),
            destination: Id(word(8)),
            correlator: u64::from(word(12)) << 32 | u64::from(word(16)),
            flags: Flags::from_bits(word(20)),
        };
        Ok((header, Framing { kind, octets }))
    }

    /// Appends the header of a message of this many octets.
    pub(super) fn write(&self, kind: MessageKind, octets: usize, out: &mut Vec<u8>) {
        out.extend([VERSION << 4, kind.wire()]);
        out.extend(((octets / 4) as u16).to_be_bytes());
        out.extend(self.source.0.to_be_bytes());
        out.extend(self.destination.0.to_be_bytes());
        out.extend(self.correlator.to_be_bytes());
        out.extend(self.flags.bits().to_be_bytes());
    }
}

/// Returns the octets of the message at the start of a stream; `None` before the first four octets
/// have arrived.
///
/// An error is permanent, because the next message boundary is unknown.
pub fn frame_octets(bytes: &[u8]) -> Result<Option<usize>, WireFault> {
    let Some(&[first, _, high, low]) = bytes.first_chunk() else { return Ok(None) };
    if first >> 4 != VERSION {
        return Err(WireFault { at: 0, why: WireFaultKind::Version(first >> 4) });
    }
    let octets = usize::from(u16::from_be_bytes([high, low])) * 4;
    if octets < HEADER_OCTETS {
        return Err(WireFault { at: 2, why: WireFaultKind::Length { octets } });
    }
    Ok(Some(octets))
}
