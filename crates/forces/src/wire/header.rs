//! The 24 octets in front of each message (RFC 5810 section 6.1).
//!
//! ```text
//! version:4 reserved:4 type:8 length:16 (words, the header's six among them)
//! source:32 destination:32 correlator:64
//! ack:2 priority:3 reserved:3 mode:2 atomic:1 phase:2 reserved:19
//! ```

use std::fmt;

use super::fault::{WireFault, WireWhy};
use super::message::MessageKind;
use super::{HEADER_OCTETS, VERSION};

/// Who sends or receives: an FE, a CE, or several at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Id(pub u32);

impl Id {
    /// Nobody yet: an FE that asks for an id.
    pub const NONE: Id = Id(0);
    /// Every CE.
    pub const ALL_CES: Id = Id(0xFFFF_FFFD);
    /// Every FE.
    pub const ALL_FES: Id = Id(0xFFFF_FFFE);
    /// Everybody.
    pub const ALL: Id = Id(0xFFFF_FFFF);

    /// Whether it is a single FE's, or nobody's yet.
    pub fn is_fe(self) -> bool {
        self.0 <= 0x3FFF_FFFF
    }

    /// Whether it is a single CE's.
    pub fn is_ce(self) -> bool {
        (0x4000_0000..=0x7FFF_FFFF).contains(&self.0)
    }

    /// Whether it is a group's.
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

/// When the receiver is to answer a configuration or a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ack {
    /// Never.
    #[default]
    Never,
    /// If all went well.
    Success,
    /// If something went wrong.
    Failure,
    /// In any case.
    Always,
}

/// What happens to the rest of a message when an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Not said; what 0 means is reserved.
    #[default]
    Unsaid,
    /// All operations take effect or none does.
    AllOrNone,
    /// Those before the failure stay, those behind are not tried.
    UntilFailure,
    /// All others are tried.
    Continue,
}

/// Which part of a transaction, or of an answer in several parts, a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Its start (SOT).
    #[default]
    Start,
    /// Its middle (MOT).
    Middle,
    /// Its end (EOT).
    End,
    /// It is aborted (ABT).
    Abort,
}

/// The header's flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// When to answer.
    pub ack: Ack,
    /// 0 to 7, more important the higher.
    pub priority: u8,
    /// What happens when an operation fails.
    pub mode: Mode,
    /// Whether the message is one of several that belong together.
    pub atomic: bool,
    /// Which one.
    pub phase: Phase,
}

impl Flags {
    /// The flags' bits; reserved ones are not looked at.
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

    /// The bits of the flags, reserved ones zero.
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

/// What stands before a message's body, but for its length and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Who sends it.
    pub source: Id,
    /// Who is to receive it.
    pub destination: Id,
    /// What finds the request that a response answers; 0 where none comes.
    pub correlator: u64,
    /// How it is to be treated.
    pub flags: Flags,
}

/// What the header says about the octets behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    /// What kind of message it is.
    pub kind: MessageKind,
    /// Octets of the message, the header among them.
    pub octets: usize,
}

impl Header {
    /// Reads the header of a message. Its length is not compared with anything.
    pub fn read(bytes: &[u8]) -> Result<(Header, Framing), WireFault> {
        let octets = frame_octets(bytes)?;
        let Some(octets) = octets else {
            return Err(WireFault {
                at: bytes.len(),
                why: WireWhy::Short { octets: HEADER_OCTETS },
            });
        };
        let word = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if bytes.len() < HEADER_OCTETS {
            return Err(WireFault {
                at: bytes.len(),
                why: WireWhy::Short { octets: HEADER_OCTETS },
            });
        }
        let kind = MessageKind::from_wire(bytes[1])
            .ok_or(WireFault { at: 1, why: WireWhy::MessageKind(bytes[1]) })?;
        let header = Header {
            source: Id(word(4)),
            destination: Id(word(8)),
            correlator: u64::from(word(12)) << 32 | u64::from(word(16)),
            flags: Flags::from_bits(word(20)),
        };
        Ok((header, Framing { kind, octets }))
    }

    /// Appends the header of a message of so many octets.
    pub(super) fn write(&self, kind: MessageKind, octets: usize, out: &mut Vec<u8>) {
        out.extend([VERSION << 4, kind.wire()]);
        out.extend(((octets / 4) as u16).to_be_bytes());
        out.extend(self.source.0.to_be_bytes());
        out.extend(self.destination.0.to_be_bytes());
        out.extend(self.correlator.to_be_bytes());
        out.extend(self.flags.bits().to_be_bytes());
    }
}

/// How many octets the message at the start of a stream has; `None` until the four that say it are
/// there. A stream that is refused here cannot be read on, for nobody knows where the next message
/// begins.
pub fn frame_octets(bytes: &[u8]) -> Result<Option<usize>, WireFault> {
    let Some(&[first, _, high, low]) = bytes.first_chunk() else { return Ok(None) };
    if first >> 4 != VERSION {
        return Err(WireFault { at: 0, why: WireWhy::Version(first >> 4) });
    }
    let octets = usize::from(u16::from_be_bytes([high, low])) * 4;
    if octets < HEADER_OCTETS {
        return Err(WireFault { at: 2, why: WireWhy::Length { octets } });
    }
    Ok(Some(octets))
}
