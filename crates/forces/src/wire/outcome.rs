//! Results of operations: RESULT (RFC 5810 section 7.1.7) and EXTENDEDRESULT (RFC 7391 section
//! 3.2).
//!
//! Table 4 of RFC 5810 has 0x0D for two of them. This module uses 0x0F of its appendix A.5 for
//! contents that are too long.

use std::fmt;

/// A result code. EXTENDEDRESULT has 32 bits, RESULT has eight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResultCode(pub u32);

macro_rules! codes {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        impl ResultCode {
            $(#[doc = concat!($text, ".")] pub const $name: ResultCode = ResultCode($value);)*

            /// All named codes, with their meanings.
            pub const NAMED: &'static [(ResultCode, &'static str)] =
                &[$((ResultCode($value), $text)),*];
        }
    };
}

codes! {
    SUCCESS = 0x00, "success";
    INVALID_HEADER = 0x01, "something is wrong with the header";
    LENGTH_MISMATCH = 0x02, "the header's length is not the message's";
    VERSION_MISMATCH = 0x03, "another version of the protocol";
    INVALID_DESTINATION = 0x04, "the destination is somebody else";
    LFB_UNKNOWN = 0x05, "there is no such class";
    LFB_NOT_FOUND = 0x06, "the class is known and not in use";
    INSTANCE_NOT_FOUND = 0x07, "the class has no such instance";
    INVALID_PATH = 0x08, "there can be nothing at that path";
    COMPONENT_DOES_NOT_EXIST = 0x09, "nothing is there at that path";
    EXISTS = 0x0A, "it is there already";
    NOT_FOUND = 0x0B, "it is not there";
    READ_ONLY = 0x0C, "it cannot be written";
    INVALID_ARRAY_CREATION = 0x0D, "no row can have that index";
    VALUE_OUT_OF_RANGE = 0x0E, "the value is out of range";
    CONTENTS_TOO_LONG = 0x0F, "the value is too long";
    INVALID_PARAMETERS = 0x10, "something is wrong with the value";
    INVALID_MESSAGE_TYPE = 0x11, "such a message is not expected";
    INVALID_FLAGS = 0x12, "such flags are not expected";
    INVALID_TLV = 0x13, "such a TLV is not expected";
    EVENT_ERROR = 0x14, "something is wrong with the event";
    NOT_SUPPORTED = 0x15, "that is not supported";
    MEMORY_ERROR = 0x16, "there is no memory for it";
    INTERNAL_ERROR = 0x17, "something went wrong inside";
    TIMED_OUT = 0x18, "it took too long";
    INVALID_TABLE_FLAGS = 0x19, "such flags of a table are not expected";
    INVALID_OPERATION = 0x1A, "such an operation is not expected";
    CONGESTED = 0x1B, "there is too much to do";
    NOT_A_TABLE = 0x1C, "it is no table";
    NOT_PERMITTED = 0x1D, "that is not permitted";
    BUSY = 0x1E, "something else is under way";
    EMPTY = 0x1F, "the table is empty";
    UNKNOWN = 0x20, "something else";
    UNSPECIFIED = 0xFF, "nobody knows what went wrong";
}

impl ResultCode {
    /// Returns whether the operation succeeded.
    pub fn is_success(self) -> bool {
        self == ResultCode::SUCCESS
    }

    /// Returns the code for an eight-bit RESULT.
    ///
    /// RFC 7391 adds codes up to 0x20 to those of RFC 5810. Others, including vendor codes, become
    /// `UNSPECIFIED`.
    pub fn plain(self) -> ResultCode {
        if self.0 <= 0x20 { self } else { ResultCode::UNSPECIFIED }
    }
}

impl fmt::Display for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ResultCode::NAMED.iter().find(|(code, _)| code == self) {
            Some((_, text)) => f.write_str(text),
            None => write!(f, "result {:#x}", self.0),
        }
    }
}

impl fmt::Debug for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04x} ({self})", self.0)
    }
}

/// Result of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// RESULT with an eight-bit code.
    Plain(u8),
    /// EXTENDEDRESULT with a 32-bit code and a short text, usually at most 32 octets of UTF-8.
    Extended {
        /// Result code.
        code: ResultCode,
        /// Text for humans.
        cause: Vec<u8>,
    },
}

impl Outcome {
    /// Returns the code as the result that the other end supports.
    pub fn of(code: ResultCode, extended: bool) -> Outcome {
        match extended {
            true => Outcome::Extended { code, cause: Vec::new() },
            false => Outcome::Plain(code.plain().0 as u8),
        }
    }

    /// Returns the result code.
    pub fn code(&self) -> ResultCode {
        match self {
            Outcome::Plain(code) => ResultCode(u32::from(*code)),
            Outcome::Extended { code, .. } => *code,
        }
    }
}
