//! Encodes and decodes OpenFlow messages of all supported versions.
//!
//! Each submodule handles one concept in all versions.
//!
//! Source: OpenFlow Switch Specification 1.0.0 section 5.
//!
//! - Decoding is strict about lengths and types, because a switch must reply to an invalid request
//!   with the right error.
//! - Decoding ignores padding; encoding writes padding as zero.
//! - Every decoded message encodes again to the same meaning.
//! - A small multiple of the message's own length bounds the memory that decoding takes.

mod bytes;
pub mod nicira;
mod message;
mod matching;
mod action;
mod instruction;
mod port;
mod flow;
mod packet_io;
mod switch;
mod multipart;
mod property;
mod span;
mod table;
mod role;
mod asynchronous;
mod group;
mod meter;
mod bundle;
mod queue;

use std::fmt;

use packet::error::{Malformed, MalformedReason};
use packet::field::Field;

use crate::header::Header;
use crate::model::message::{Message, OFFENDING_BYTES};
use crate::model::port::{PortNo, ShowPort};
use crate::version::{ActionKind, ErrorCode, InstructionKind, MessageKind, MultipartKind, Version};

pub use bundle::bundled_bytes;
pub use flow::template::{FlowNumbers, FlowTemplate, ROWS_BYTES_MAX, put_flow_row, put_flow_rows};
pub use message::{decode, encode};
pub use multipart::split;

/// A message that a version cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotExpressible {
    /// The version to encode for.
    pub version: Version,
    /// The part that the version cannot express.
    pub what: MessagePart,
}

/// Part of a message that a version cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessagePart {
    /// The version itself: the codec supports only its hello and error messages.
    Version,
    /// A message type.
    Message(MessageKind),
    /// An action type.
    Action(ActionKind),
    /// A multipart type.
    Multipart(MultipartKind),
    /// An error code.
    Error(ErrorCode),
    /// A port number.
    Port(PortNo),
    /// A bit of a bit set, by its name.
    Bit(&'static str),
    /// An instruction type.
    Instruction(InstructionKind),
    /// A match field or a set-field field.
    Field(Field),
    /// An experimenter match field.
    ExperimenterField,
    /// A match field without its prerequisite fields.
    Prerequisite(Field),
    /// A mask that the version does not allow on this field.
    Mask(Field),
    /// A value that is out of the field's range.
    Value {
        /// The field.
        field: &'static str,
        /// The value.
        value: u64,
    },
    /// More bytes than the field or the message can hold.
    TooLong {
        /// The field, or "message".
        field: &'static str,
        /// Actual number of bytes.
        bytes: usize,
        /// Maximum number of bytes.
        bytes_max: usize,
    },
}

/// An invalid message: the cause, and the error to reply with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// The message's header, if the bytes contain one.
    pub header: Option<Header>,
    /// Offset and cause.
    pub malformed: Malformed,
    /// The error that a switch replies with; `None` for error messages, which get no reply.
    pub answer: Option<ErrorCode>,
    /// The message's first bytes.
    pub offending: MessageExcerpt,
}

/// The first bytes of a message, as an error message quotes them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MessageExcerpt {
    bytes: [u8; OFFENDING_BYTES],
    len: u8,
}

impl MessageExcerpt {
    /// Copies the first [`OFFENDING_BYTES`] of `message`, or all of it.
    pub fn of(message: &[u8]) -> MessageExcerpt {
        let len = message.len().min(OFFENDING_BYTES);
        let mut bytes = [0; OFFENDING_BYTES];
        bytes[..len].copy_from_slice(&message[..len]);
        MessageExcerpt { bytes, len: len as u8 }
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl DecodeError {
    /// Returns the error message to reply with, if there is one.
    pub fn answer(&self) -> Option<Message> {
        Some(Message::error(self.answer?, self.offending.as_bytes()))
    }
}

/// A fault inside a message, with the error to reply with.
///
/// The error may be one of any version. [`ErrorCode::nearest`] maps it to one that can be sent.
#[derive(Debug)]
pub(crate) struct Fault {
    pub malformed: Malformed,
    pub answer: ErrorCode,
}

impl Fault {
    fn new(malformed: Malformed, answer: ErrorCode) -> Fault {
        Fault { malformed, answer }
    }

    /// Returns the fault for an invalid value at offset `at`.
    fn value(at: usize, value: impl Into<u64>, answer: ErrorCode) -> Fault {
        Fault::new(Malformed { at, why: MalformedReason::BadValue(value.into()) }, answer)
    }
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Fault {
        Fault { malformed, answer: ErrorCode::RequestBadLength }
    }
}

impl fmt::Debug for MessageExcerpt {
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
            MessagePart::Version => write!(f, "is not supported"),
            MessagePart::Message(kind) => write!(f, "has no message {kind}"),
            MessagePart::Action(kind) => write!(f, "has no action {kind}"),
            MessagePart::Multipart(kind) => write!(f, "has no statistics {kind}"),
            MessagePart::Error(code) => write!(f, "has no error {code}"),
            MessagePart::Port(port) => write!(f, "has no port {}", ShowPort(port)),
            MessagePart::Bit(name) => write!(f, "has no bit {name}"),
            MessagePart::Instruction(kind) => write!(f, "has no instruction {kind}"),
            MessagePart::Field(field) => write!(f, "has no field {field}"),
            MessagePart::ExperimenterField => write!(f, "has no experimenter fields"),
            MessagePart::Prerequisite(field) => {
                write!(f, "cannot match {field} without its prerequisites")
            }
            MessagePart::Mask(field) => write!(f, "cannot use this mask for {field}"),
            MessagePart::Value { field, value } => write!(f, "cannot encode {field} {value}"),
            MessagePart::TooLong { field, bytes, bytes_max } => {
                write!(f, "allows {bytes_max} bytes of {field}, not {bytes}")
            }
        }
    }
}

impl std::error::Error for NotExpressible {}

#[cfg(test)]
mod check;
#[cfg(test)]
mod tests;
