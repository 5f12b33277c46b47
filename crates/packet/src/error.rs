//! What is wrong with some bytes, and where.
//!
//! A decoder that refuses bytes says at which offset and why, so that a person can find the byte
//! in a hex dump. Variants are facts; only the command line turns them into prose.

use std::fmt;

/// Bytes that cannot mean what they should: the offset of the first offending byte, counted from
/// the start of what was handed to the decoder, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Offset in bytes of the first byte that does not fit.
    pub at: usize,
    /// What does not fit there.
    pub why: Why,
}

/// The reason why bytes were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// Fewer bytes than the structure needs: how many were needed and how many there were.
    Truncated {
        /// Bytes that the structure needs.
        need: usize,
        /// Bytes that were there.
        have: usize,
    },
    /// A length field contradicts the bytes around it (the value it holds).
    BadLength(usize),
    /// A version or type field holds a value that is not defined (the value it holds).
    BadValue(u64),
    /// A checksum does not match (what it should have been).
    BadChecksum {
        /// The checksum computed over the bytes.
        want: u32,
        /// The checksum that the bytes carry.
        have: u32,
    },
    /// A limit with this name was reached.
    LimitReached(&'static str),
}

impl Malformed {
    /// `need` bytes were wanted at offset `at`, and only `have` were left there.
    pub fn truncated(at: usize, need: usize, have: usize) -> Self {
        Malformed { at, why: Why::Truncated { need, have } }
    }

    /// The same fault, seen from a buffer in which this one starts `offset` bytes later.
    pub fn shifted(self, offset: usize) -> Self {
        Malformed { at: self.at + offset, ..self }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.at)?;
        match self.why {
            Why::Truncated { need, have } => write!(f, "needs {need} bytes, has {have}"),
            Why::BadLength(length) => write!(f, "length {length} does not fit"),
            Why::BadValue(value) => write!(f, "value {value:#x} is not defined here"),
            Why::BadChecksum { want, have } => {
                write!(f, "checksum {have:#06x} should be {want:#06x}")
            }
            Why::LimitReached(limit) => write!(f, "more than {limit} allows"),
        }
    }
}

impl std::error::Error for Malformed {}
