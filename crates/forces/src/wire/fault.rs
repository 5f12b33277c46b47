//! What is wrong with bytes, with the octet where it stands and the result that answers it.

use std::fmt;

use super::outcome::ResultCode;
use super::{MESSAGE_OCTETS_MAX, PATH_DEPTH_MAX};
use crate::value::{ValueFault, ValueWhy};

/// A fault in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireFault {
    /// The octet at which it was found, from the message's first.
    pub at: usize,
    /// What it is.
    pub why: WireWhy,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireWhy {
    /// It ends before so many octets that have to come.
    Short {
        /// How many.
        octets: usize,
    },
    /// A version that is not spoken.
    Version(u8),
    /// A kind of message that is not known.
    MessageKind(u8),
    /// A length that cannot be: of less than its own octets, or of more than there are.
    Length {
        /// What it says.
        octets: usize,
    },
    /// Octets behind what there should be.
    Long {
        /// How many.
        octets: usize,
    },
    /// A TLV that does not belong there.
    Tlv(u16),
    /// An operation that is not known, or does not belong into such a message.
    Operation(u16),
    /// Flags of a path that say no selector where one stands, or the other way round.
    PathFlags(u16),
    /// PATH-DATA within PATH-DATA too often.
    PathDepth,
    /// A TLV that has to be there.
    Missing(super::Tlv),
    /// A value that its type does not have.
    Value(ValueFault),
}

impl WireFault {
    /// The result that answers it.
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

/// The result that answers a value that its type does not have.
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
            WireWhy::Short { octets } => write!(f, "{octets} octets have to come"),
            WireWhy::Version(version) => write!(f, "version {version} is not spoken"),
            WireWhy::MessageKind(kind) => write!(f, "there is no message {kind:#04x}"),
            WireWhy::Length { octets } => write!(f, "the length cannot be {octets} octets"),
            WireWhy::Long { octets } => write!(f, "there are {octets} octets too many"),
            WireWhy::Tlv(kind) => write!(f, "TLV {kind:#06x} does not belong there"),
            WireWhy::Operation(kind) => write!(f, "operation {kind:#06x} does not belong there"),
            WireWhy::PathFlags(flags) => {
                write!(f, "flags {flags:#06x} do not go with what stands behind the path")
            }
            WireWhy::PathDepth => write!(f, "paths are nested over {PATH_DEPTH_MAX} deep"),
            WireWhy::Missing(tlv) => write!(f, "{tlv:?} has to be there"),
            WireWhy::Value(fault) => write!(f, "the value: {fault}"),
        }
    }
}

impl std::error::Error for WireFault {}

impl fmt::Display for super::TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} octets is longer than one may be (a message {MESSAGE_OCTETS_MAX}, what stands \
             in it {})",
            self.what,
            self.octets,
            super::TLV_OCTETS_MAX
        )
    }
}

impl std::error::Error for super::TooLong {}
