//! Errors of decoders: offset and reason.
//!
//! The offset locates the byte in a hex dump. Variants contain only facts; the command line formats
//! them.

use std::fmt;

/// Invalid bytes: the offset of the first invalid byte in the decoder's input, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Offset of the first invalid byte.
    pub at: usize,
    /// Reason.
    pub why: MalformedReason,
}

/// Reason why bytes are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MalformedReason {
    /// Fewer bytes than the structure requires.
    Truncated {
        /// Number of bytes required.
        need: usize,
        /// Number of bytes available.
        have: usize,
    },
    /// A length field contradicts the surrounding bytes. Contains its value.
    BadLength(usize),
    /// A version or type field has an undefined value. Contains the value.
    BadValue(u64),
    /// A checksum is wrong.
    BadChecksum {
        /// Checksum computed over the bytes.
        want: u32,
        /// Checksum in the bytes.
        have: u32,
    },
    /// The limit with this name is exceeded.
    LimitReached(&'static str),
}

impl Malformed {
    /// Creates an error: `need` bytes were required at offset `at`, and only `have` were available.
    pub fn truncated(at: usize, need: usize, have: usize) -> Self {
        Malformed { at, why: MalformedReason::Truncated { need, have } }
    }

    /// Adds the offset of the decoder's input in a larger buffer.
    pub fn shifted(self, offset: usize) -> Self {
        Malformed { at: self.at + offset, ..self }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.at)?;
        match self.why {
            MalformedReason::Truncated { need, have } => {
                write!(f, "needs {need} bytes, has {have}")
            }
            MalformedReason::BadLength(length) => write!(f, "invalid length {length}"),
            MalformedReason::BadValue(value) => write!(f, "undefined value {value:#x}"),
            MalformedReason::BadChecksum { want, have } => {
                write!(f, "checksum {have:#06x} should be {want:#06x}")
            }
            MalformedReason::LimitReached(limit) => write!(f, "more than {limit} allows"),
        }
    }
}

impl std::error::Error for Malformed {}
