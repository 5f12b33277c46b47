//! Faults of messages, with their offset and the result code to respond with.

use std::fmt;

use super::outcome::ResultCode;
use super::{MESSAGE_OCTETS_MAX, PATH_DEPTH_MAX};
use crate::model::value::{ValueFault, ValueWhy};

/// A fault in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireFault {
    /// Offset in octets from the message start.
    pub at: usize,
    /// The cause.
    pub why: WireWhy,
}

/// Cause of a fault in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireWhy {
    /// Required octets are missing.
    Short {
        /// Number of required octets.
        octets: usize,
    },
    /// The protocol version is unsupported.
    Version(u8),
    /// The message type is unknown.
    MessageKind(u8),
    /// A length is less than the header that contains it, or exceeds the available octets.
    Length {
        /// The length.
        octets: usize,
    },
    /// There are excess octets.
    Long {
        /// Number of excess octets.
        octets: usize,
    },
    /// A TLV is not allowed here.
    Tlv(u16),
    /// An operation is unknown, or not allowed in this message.
    Operation(u16),
    /// The flags of a path do not match the presence of a selector.
    PathFlags(u16),
    /// PATH-DATA is nested too deep.
    PathDepth,
    /// A required TLV is missing.
    Missing(super::Tlv),
    /// A value is invalid for its type.
    Value(ValueFault),
}

impl WireFault {
    /// Returns the result code to respond with.
    pub fn code(&self) -> ResultCode {
        match &self.why {
            WireWhy::Short { .. } | WireWhy::Length { .. } | WireWhy::Long { .. } => {
                ResultCode::LENGTH_MISMATCH
            }
            WireWhy::Version(_) => ResultCode::VERSION_MISMATCH,
            WireWhy::MessageKind(_) => ResultCode::INVALID_MESSAGE_TYPE,
            WireWhy::Tlv(_) | WireWhy::Missing(_) => ResultCode::INVALID_TLV,
            WireWhy::Operation(_) => ResultCode::INVALID_OPERATION,
            WireWhy::PathFlags(_) => ResultCode::INVALID_TABLE_FLAGS,
            WireWhy::PathDepth => ResultCode::INVALID_PATH,
            WireWhy::Value(fault) => value_code(&fault.why),
        }
    }
}

/// Returns the result code for an invalid value.
pub(crate) fn value_code(why: &ValueWhy) -> ResultCode {
    match why {
        ValueWhy::Range { .. } => ResultCode::VALUE_OUT_OF_RANGE,
        ValueWhy::Octets { .. } | ValueWhy::Rows { .. } | ValueWhy::TextTooLong { .. } => {
            ResultCode::CONTENTS_TOO_LONG
        }
        ValueWhy::Index { .. } => ResultCode::INVALID_ARRAY_CREATION,
        ValueWhy::KeyTwice { .. } => ResultCode::EXISTS,
        ValueWhy::FieldUnknown { .. } => ResultCode::INVALID_PATH,
        _ => ResultCode::INVALID_PARAMETERS,
    }
}

impl fmt::Display for WireFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "octet {}: {}", self.at, self.why)
    }
}

impl fmt::Display for WireWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireWhy::Short { octets } => write!(f, "expected {octets} octets"),
            WireWhy::Version(version) => write!(f, "unsupported version {version}"),
            WireWhy::MessageKind(kind) => write!(f, "unknown message {kind:#04x}"),
            WireWhy::Length { octets } => write!(f, "invalid length of {octets} octets"),
            WireWhy::Long { octets } => write!(f, "{octets} octets too many"),
            WireWhy::Tlv(kind) => write!(f, "unexpected TLV {kind:#06x}"),
            WireWhy::Operation(kind) => write!(f, "unexpected operation {kind:#06x}"),
            WireWhy::PathFlags(flags) => {
                write!(f, "flags {flags:#06x} do not match the data after the path")
            }
            WireWhy::PathDepth => {
                write!(f, "paths are nested more than {PATH_DEPTH_MAX} levels deep")
            }
            WireWhy::Missing(tlv) => write!(f, "missing {tlv:?}"),
            WireWhy::Value(fault) => write!(f, "the value: {fault}"),
        }
    }
}

impl std::error::Error for WireFault {}

impl fmt::Display for super::TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} octets is too long (limit: {MESSAGE_OCTETS_MAX} for a message, {} for a TLV)",
            self.what,
            self.octets,
            super::TLV_OCTETS_MAX
        )
    }
}

impl std::error::Error for super::TooLong {}
