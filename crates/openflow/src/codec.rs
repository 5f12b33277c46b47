//! Messages to bytes and back, one file for each concept and all versions in it.
//!
//! Source: OpenFlow Switch Specification 1.0.0 section 5. Decoding is strict about lengths and
//! types, because a switch must answer a wrong request with the right error, and ignores padding;
//! encoding writes padding as zero. Whatever decodes encodes again to the same meaning, and the
//! memory that decoding takes is bounded by a small multiple of the message's own length.

/// Reading and appending numbers.
mod bytes;
/// Nicira's extensions of 1.0.
pub mod nicira;
/// Header, kind and body.
mod message;
/// `ofp_match`.
mod matching;
/// `ofp_action_*`.
mod action;
/// `ofp_instruction_*`.
mod instruction;
/// `ofp_phy_port`, port-mod, port-status; what ports count.
mod port;
/// Flow-mod, flow-removed; counters of entries, and news of them.
mod flow;
/// Packet-in, packet-out.
mod packet_io;
/// Features, configuration.
mod switch;
/// Statistics.
mod multipart;
/// Properties.
mod property;
/// How long something has been there.
mod span;
/// Table-mod, table descriptions, table statistics, table features.
mod table;
/// Roles of controllers.
mod role;
/// Which news a controller gets.
mod asynchronous;
/// Groups.
mod group;
/// Meters.
mod meter;
/// Bundles, forwarded requests.
mod bundle;
/// Queues.
mod queue;

use std::fmt;

use packet::error::{Malformed, Why};
use packet::field::Field;

use crate::header::Header;
use crate::model::message::{Message, OFFENDING_BYTES};
use crate::model::port::{PortNo, ShowPort};
use crate::version::{ActionKind, ErrorCode, InstructionKind, MessageKind, MultipartKind, Version};

pub use bundle::bundled_bytes;
pub use flow::template::{FlowNumbers, FlowTemplate, ROWS_BYTES_MAX, put_flow_row, put_flow_rows};
pub use message::{decode, encode};
pub use multipart::split;

/// A message that this version cannot say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotExpressible {
    /// The version that it was to be encoded for.
    pub version: Version,
    /// What it cannot say.
    pub what: What,
}

/// What a version cannot say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Anything but hello and error: the codec does not speak the version.
    Version,
    /// A kind of message.
    Message(MessageKind),
    /// A kind of action.
    Action(ActionKind),
    /// A type of statistics.
    Multipart(MultipartKind),
    /// An error.
    Error(ErrorCode),
    /// A port number.
    Port(PortNo),
    /// A bit of a set, by its name.
    Bit(&'static str),
    /// A kind of instruction.
    Instruction(InstructionKind),
    /// A field of a match, or to be set.
    Field(Field),
    /// A field that somebody else defines.
    ExperimenterField,
    /// A field of a match without those fields that say that a frame has it.
    Prerequisite(Field),
    /// A mask on this field that the version does not have.
    Mask(Field),
    /// A value that is out of the field's range.
    Value {
        /// The field.
        field: &'static str,
        /// The value.
        value: u64,
    },
    /// More bytes than the field, or the message, can hold.
    TooLong {
        /// The field, or "message".
        field: &'static str,
        /// Bytes that there are.
        bytes: usize,
        /// Bytes that fit.
        bytes_max: usize,
    },
}

/// A message that was refused: why, and what its sender is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// The message's header, if that much was there.
    pub header: Option<Header>,
    /// Where and why.
    pub malformed: Malformed,
    /// The error that a switch answers with; `None` for errors, which nobody answers.
    pub answer: Option<ErrorCode>,
    /// The message's first bytes.
    pub offending: Offending,
}

/// The first bytes of a message, to go along with an error about it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Offending {
    bytes: [u8; OFFENDING_BYTES],
    len: u8,
}

impl Offending {
    /// The first [`OFFENDING_BYTES`] of `message`, or all of it.
    pub fn of(message: &[u8]) -> Offending {
        let len = message.len().min(OFFENDING_BYTES);
        let mut bytes = [0; OFFENDING_BYTES];
        bytes[..len].copy_from_slice(&message[..len]);
        Offending { bytes, len: len as u8 }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl DecodeError {
    /// The error message that answers the refused one, if anything does.
    pub fn answer(&self) -> Option<Message> {
        Some(Message::error(self.answer?, self.offending.as_bytes()))
    }
}

/// A fault inside a message, with the error that answers it: of any version, from which
/// [`ErrorCode::nearest`] finds the one to be sent.
#[derive(Debug)]
pub(crate) struct Fault {
    pub malformed: Malformed,
    pub answer: ErrorCode,
}

impl Fault {
    fn new(malformed: Malformed, answer: ErrorCode) -> Fault {
        Fault { malformed, answer }
    }

    /// A value at this offset that cannot be.
    fn value(at: usize, value: impl Into<u64>, answer: ErrorCode) -> Fault {
        Fault::new(Malformed { at, why: Why::BadValue(value.into()) }, answer)
    }
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Fault {
        Fault { malformed, answer: ErrorCode::RequestBadLength }
    }
}

impl fmt::Debug for Offending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", crate::model::text::Hex(self.as_bytes()))
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.malformed)?;
        match self.answer {
            Some(answer) => write!(f, " ({answer})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for DecodeError {}

impl fmt::Display for NotExpressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenFlow {} ", self.version)?;
        match self.what {
            What::Version => write!(f, "is not spoken here"),
            What::Message(kind) => write!(f, "has no message {kind}"),
            What::Action(kind) => write!(f, "has no action {kind}"),
            What::Multipart(kind) => write!(f, "has no statistics {kind}"),
            What::Error(code) => write!(f, "has no error {code}"),
            What::Port(port) => write!(f, "has no port {}", ShowPort(port)),
            What::Bit(name) => write!(f, "has no bit {name}"),
            What::Instruction(kind) => write!(f, "has no instruction {kind}"),
            What::Field(field) => write!(f, "has no field {field}"),
            What::ExperimenterField => write!(f, "has no experimenter's fields"),
            What::Prerequisite(field) => write!(f, "cannot match {field} without what it needs"),
            What::Mask(field) => write!(f, "cannot mask {field} so"),
            What::Value { field, value } => write!(f, "cannot say {field} {value}"),
            What::TooLong { field, bytes, bytes_max } => {
                write!(f, "holds {bytes_max} bytes of {field}, not {bytes}")
            }
        }
    }
}

impl std::error::Error for NotExpressible {}

/// How tests say and read messages.
#[cfg(test)]
mod check;
#[cfg(test)]
mod tests;
