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
    INVALID_HEADER = 0x01, "invalid header";
    LENGTH_MISMATCH = 0x02, "length mismatch between header and message";
    VERSION_MISMATCH = 0x03, "unsupported protocol version";
    INVALID_DESTINATION = 0x04, "invalid destination ID";
    LFB_UNKNOWN = 0x05, "unknown LFB class";
    LFB_NOT_FOUND = 0x06, "LFB class not in use";
    INSTANCE_NOT_FOUND = 0x07, "no such LFB instance";
    INVALID_PATH = 0x08, "invalid path";
    COMPONENT_DOES_NOT_EXIST = 0x09, "no component at the path";
    EXISTS = 0x0A, "exists already";
    NOT_FOUND = 0x0B, "not found";
    READ_ONLY = 0x0C, "read-only";
    INVALID_ARRAY_CREATION = 0x0D, "invalid row index";
    VALUE_OUT_OF_RANGE = 0x0E, "value out of range";
    CONTENTS_TOO_LONG = 0x0F, "value too long";
    INVALID_PARAMETERS = 0x10, "invalid value";
    INVALID_MESSAGE_TYPE = 0x11, "invalid message type";
    INVALID_FLAGS = 0x12, "invalid flags";
    INVALID_TLV = 0x13, "invalid TLV";
    EVENT_ERROR = 0x14, "event error";
    NOT_SUPPORTED = 0x15, "not supported";
    MEMORY_ERROR = 0x16, "out of memory";
    INTERNAL_ERROR = 0x17, "internal error";
    TIMED_OUT = 0x18, "timed out";
    INVALID_TABLE_FLAGS = 0x19, "invalid table flags";
    INVALID_OPERATION = 0x1A, "invalid operation";
    CONGESTED = 0x1B, "congested";
    NOT_A_TABLE = 0x1C, "not a table";
    NOT_PERMITTED = 0x1D, "not permitted";
    BUSY = 0x1E, "busy with another operation";
    EMPTY = 0x1F, "table empty";
    UNKNOWN = 0x20, "unknown error";
    UNSPECIFIED = 0xFF, "unspecified error";
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
