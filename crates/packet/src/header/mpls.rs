//! MPLS: an entry of a label stack.
//!
//! ```text
//!  0                    20    23  24       32
//! +--------------------+------+---+--------+
//! | label              |  TC  | S |  TTL   |     S: this entry is the bottom of the stack
//! +--------------------+------+---+--------+
//! ```
//!
//! RFC 3032 section 2.1, RFC 5462 for the traffic class. No field identifies the payload after the
//! bottom of the stack. By convention, the first four bits identify an IP packet.

use std::fmt;

use super::u32_at;
use crate::error::Malformed;

/// Bytes of a stack entry.
pub const ENTRY_BYTES: usize = 4;
/// Bit position of the label in an entry.
pub const LABEL_SHIFT: u32 = 12;
/// Bit position of the traffic class in an entry.
pub const CLASS_SHIFT: u32 = 9;
/// Bottom-of-stack bit of an entry.
pub const BOTTOM: u32 = 1 << 8;
/// Offset of the time to live in an entry.
pub const TTL_AT: usize = 3;

/// A view of a stack entry, without validation.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Creates a view of the entry at the start of `bytes`, if they are long enough.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= ENTRY_BYTES).then_some(View(bytes))
    }

    /// Returns the whole entry as a number.
    pub fn word(&self) -> u32 {
        u32_at(self.0, 0)
    }

    /// Label, 20 bits.
    pub fn label(&self) -> u32 {
        self.word() >> LABEL_SHIFT
    }

    /// Traffic class, 0 to 7.
    pub fn class(&self) -> u8 {
        (self.word() >> CLASS_SHIFT) as u8 & 7
    }

    /// Returns true at the bottom of the stack.
    pub fn is_bottom(&self) -> bool {
        self.word() & BOTTOM != 0
    }

    /// Time to live.
    pub fn ttl(&self) -> u8 {
        self.0[TTL_AT]
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mpls {} tc {} ttl {}", self.label(), self.class(), self.ttl())?;
        if self.is_bottom() { write!(f, " bottom") } else { Ok(()) }
    }
}

/// A stack entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Label, 20 bits.
    pub label: u32,
    /// Traffic class, 0 to 7.
    pub class: u8,
    /// Whether it is the bottom of the stack, set by a builder.
    pub bottom: bool,
    /// Time to live.
    pub ttl: u8,
}

impl Header {
    /// Parses the entry at the start of `bytes`. Returns it with its length.
    ///
    /// Rejects too few bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let view = View::new(bytes).ok_or(Malformed::truncated(0, ENTRY_BYTES, bytes.len()))?;
        let header = Header {
            label: view.label(),
            class: view.class(),
            bottom: view.is_bottom(),
            ttl: view.ttl(),
        };
        Ok((header, ENTRY_BYTES))
    }

    /// Returns the entry as a number.
    pub fn word(&self) -> u32 {
        (self.label & 0xf_ffff) << LABEL_SHIFT
            | u32::from(self.class & 7) << CLASS_SHIFT
            | if self.bottom { BOTTOM } else { 0 }
            | u32::from(self.ttl)
    }

    /// Appends the entry.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.word().to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_stack_entry_is_written_formatted_and_parsed() {
        let header = Header { label: 0x1_2345, class: 5, bottom: true, ttl: 63 };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        assert_eq!(bytes, [0x12, 0x34, 0x5b, 0x3f]);
        assert_eq!(Header::parse(&bytes), Ok((header, 4)));
        assert_eq!(Header::parse(&bytes[..3]), Err(Malformed::truncated(0, 4, 3)));
        let text = View::new(&bytes).unwrap().to_string();
        assert_eq!(text, "mpls 74565 tc 5 ttl 63 bottom");
    }
}
