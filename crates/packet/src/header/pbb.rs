//! Provider backbone bridging: the service instance tag with the customer's addresses.
//!
//! ```text
//!  -2      0                          4             10            16
//! +-------+---------------------------+-------------+-------------+-------+
//! | 0x88e7| PCP(3) DEI UCA 0(3) I-SID |  customer's |  customer's | type  |
//! |       |                     (24)  | destination |   source    |       |
//! +-------+---------------------------+-------------+-------------+-------+
//! ```
//!
//! IEEE 802.1Q-2018 clause 9.7 (formerly 802.1ah). The TPID of the tag is the type field of the
//! preceding header. A complete Ethernet frame starts at the customer's destination.

use std::fmt;

use super::ethernet::{Mac, ShowMac};
use super::{array_at, u32_at};
use crate::error::Malformed;

/// Bytes of the tag after its TPID, including the customer's addresses.
pub const TAG_BYTES: usize = 16;
/// Bit position of the priority in the first word.
pub const PCP_SHIFT: u32 = 29;
/// The drop-eligible bit of the first word.
pub const DEI: u32 = 1 << 28;
/// Use-customer-address bit (UCA) of the first word.
pub const UCA: u32 = 1 << 27;
/// Mask of the service instance in the first word.
pub const ISID_MASK: u32 = 0xff_ffff;
/// Offset of the customer's destination, the first byte of the customer's frame.
pub const CUSTOMER_AT: usize = 4;

/// A view of a service instance tag, without validation.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Creates a view of the tag whose first word is at the start of `bytes`, if they are long
    /// enough.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= TAG_BYTES).then_some(View(bytes))
    }

    /// Priority, 0 to 7.
    pub fn priority(&self) -> u8 {
        (self.word() >> PCP_SHIFT) as u8
    }

    /// Returns true if the frame is drop eligible.
    pub fn drop_eligible(&self) -> bool {
        self.word() & DEI != 0
    }

    /// Returns true if the customer's addresses are to be used.
    pub fn use_customer_addresses(&self) -> bool {
        self.word() & UCA != 0
    }

    /// Service instance, 24 bits.
    pub fn isid(&self) -> u32 {
        self.word() & ISID_MASK
    }

    /// The customer's destination address.
    pub fn destination(&self) -> Mac {
        array_at(self.0, CUSTOMER_AT)
    }

    /// The customer's source address.
    pub fn source(&self) -> Mac {
        array_at(self.0, CUSTOMER_AT + 6)
    }

    fn word(&self) -> u32 {
        u32_at(self.0, 0)
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pbb {} p {}", self.isid(), self.priority())?;
        if self.use_customer_addresses() {
            write!(f, " uca")?;
        }
        write!(f, " {} > {}", ShowMac(self.source()), ShowMac(self.destination()))
    }
}

/// A service instance tag with the customer's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Priority, 0 to 7.
    pub priority: u8,
    /// Whether the frame is drop eligible.
    pub drop_eligible: bool,
    /// Whether the customer's addresses are to be used.
    pub use_customer_addresses: bool,
    /// Service instance, 24 bits.
    pub isid: u32,
    /// The customer's destination address.
    pub destination: Mac,
    /// The customer's source address.
    pub source: Mac,
}

impl Header {
    /// Parses the tag whose first word is at the start of `bytes`. Returns it with its length.
    ///
    /// Rejects too few bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let view = View::new(bytes).ok_or(Malformed::truncated(0, TAG_BYTES, bytes.len()))?;
        let header = Header {
            priority: view.priority(),
            drop_eligible: view.drop_eligible(),
            use_customer_addresses: view.use_customer_addresses(),
            isid: view.isid(),
            destination: view.destination(),
            source: view.source(),
        };
        Ok((header, TAG_BYTES))
    }

    /// Appends the tag without its TPID, which belongs to the preceding header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let word = u32::from(self.priority & 7) << PCP_SHIFT
            | if self.drop_eligible { DEI } else { 0 }
            | if self.use_customer_addresses { UCA } else { 0 }
            | self.isid & ISID_MASK;
        out.extend_from_slice(&word.to_be_bytes());
        out.extend_from_slice(&self.destination);
        out.extend_from_slice(&self.source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_written_formatted_and_parsed() {
        let header = Header {
            priority: 3,
            drop_eligible: true,
            use_customer_addresses: true,
            isid: 0x01_0203,
            destination: [2, 0, 0, 0, 0, 9],
            source: [2, 0, 0, 0, 0, 8],
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        assert_eq!(bytes[..6], [0x78, 1, 2, 3, 2, 0]);
        assert_eq!(Header::parse(&bytes), Ok((header, 16)));
        assert_eq!(Header::parse(&bytes[..15]), Err(Malformed::truncated(0, 16, 15)));
        let text = View::new(&bytes).unwrap().to_string();
        assert_eq!(text, "pbb 66051 p 3 uca 02:00:00:00:00:08 > 02:00:00:00:00:09");
    }
}
