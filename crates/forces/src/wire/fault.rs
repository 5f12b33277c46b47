//! Faults of messages, with their offset and the result code to respond with.

use std::fmt;

use super::outcome::ResultCode;
use super::{MESSAGE_OCTETS_MAX, PATH_DEPTH_MAX};
use crate::model::value::{ValueFault, ValueFaultKind};

/// A fault in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireFault {
    /// Offset in octets from the message start.
    pub at: usize,
    /// The cause.
    pub why: WireFaultKind,
}

/// Cause of a fault in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireFaultKind {
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
            WireFaultKind::Short { .. }
            | WireFaultKind::Length { .. }
            | WireFaultKind::Long { .. } => ResultCode::LENGTH_MISMATCH,
            WireFaultKind::Version(_) => ResultCode::VERSION_MISMATCH,
            WireFaultKind::MessageKind(_) => ResultCode::INVALID_MESSAGE_TYPE,
            WireFaultKind::Tlv(_) | WireFaultKind::Missing(_) => ResultCode::INVALID_TLV,
            WireFaultKind::Operation(_) => ResultCode::INVALID_OPERATION,
            WireFaultKind::PathFlags(_) => ResultCode::INVALID_TABLE_FLAGS,
            WireFaultKind::PathDepth => ResultCode::INVALID_PATH,
            WireFaultKind::Value(fault) => value_code(&fault.why),
        }
    }
}

/// Returns the result code for an invalid value.
pub(crate) fn value_code(why: &ValueFaultKind) -> ResultCode {
    match why {
        ValueFaultKind::Range { .. } => ResultCode::VALUE_OUT_OF_RANGE,
        ValueFaultKind::Octets { .. }
        | ValueFaultKind::Rows { .. }
        | ValueFaultKind::TextTooLong { .. } => ResultCode::CONTENTS_TOO_LONG,
        ValueFaultKind::Index { .. } => ResultCode::INVALID_ARRAY_CREATION,
        ValueFaultKind::KeyTwice { .. } => ResultCode::EXISTS,
        ValueFaultKind::FieldUnknown { .. } => ResultCode::INVALID_PATH,
        _ => ResultCode::INVALID_PARAMETERS,
    }
}

impl fmt::Display for WireFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "octet {}: {}", self.at, self.why)
    }
}

impl fmt::Display for WireFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireFaultKind::Short { octets } => write!(f, "expected {octets} octets"),
            WireFaultKind::Version(version) => write!(f, "unsupported version {version}"),
            WireFaultKind::MessageKind(kind) => write!(f, "unknown message {kind:#04x}"),
            WireFaultKind::Length { octets } => write!(f, "invalid length of {octets} octets"),
            WireFaultKind::Long { octets } => write!(f, "{octets} octets too many"),
            WireFaultKind::Tlv(kind) => write!(f, "unexpected TLV {kind:#06x}"),
            WireFaultKind::Operation(kind) => write!(f, "unexpected operation {kind:#06x}"),
            WireFaultKind::PathFlags(flags) => {
                write!(f, "flags {flags:#06x} do not match the data after the path")
            }
            WireFaultKind::PathDepth => {
                write!(f, "paths are nested more than {PATH_DEPTH_MAX} levels deep")
            }
            WireFaultKind::Missing(tlv) => write!(f, "missing {tlv:?}"),
            WireFaultKind::Value(fault) => write!(f, "the value: {fault}"),
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
