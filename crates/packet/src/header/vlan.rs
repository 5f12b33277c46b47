//! IEEE 802.1Q and 802.1ad tags.
//!
//! ```text
//!  -2      0                2      4
//! +-------+----------------+-------+
//! | tag   | PCP(3) DEI VID |  type |    the type of a tag is the type field of the previous header
//! | type  |           (12) |       |
//! +-------+----------------+-------+
//! ```
//!
//! IEEE 802.1Q-2018 clause 9. Tags may be stacked. The parser follows at most `VLAN_DEPTH_MAX` of
//! them.

use std::fmt;

use super::ethernet::{TYPE_SERVICE_VLAN, TYPE_VLAN};
use super::u16_at;
use crate::error::{Malformed, MalformedReason};

/// Bytes of a tag, including its TPID.
pub const TAG_BYTES: usize = 4;
/// Maximum number of tags that are followed. The data after more tags is not parsed.
pub const VLAN_DEPTH_MAX: usize = 8;
/// Mask of the VLAN identifier in the tag control information.
pub const VID_MASK: u16 = 0x0fff;
/// Drop-eligible bit of the tag control information.
pub const DEI_MASK: u16 = 0x1000;
/// Bit position of the priority in the tag control information.
pub const PCP_SHIFT: u32 = 13;

/// TPIDs of VLAN tags (0x9100 is an older private value of the service tag).
pub const TAG_TYPES: [u16; 3] = [TYPE_VLAN, TYPE_SERVICE_VLAN, 0x9100];

/// Returns true if the type is the TPID of a VLAN tag.
#[inline]
pub fn is_tag(type_: u16) -> bool {
    TAG_TYPES.contains(&type_)
}

/// A view of a tag without its TPID, without validation.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Creates a view of the tag whose control information is at the start of `bytes`, if they are
    /// long enough.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= TAG_BYTES).then_some(View(bytes))
    }

    /// Tag control information: priority, drop eligibility and identifier.
    pub fn control(&self) -> u16 {
        u16_at(self.0, 0)
    }

    /// VLAN identifier, 0 to 4095 (0: priority only).
    pub fn vid(&self) -> u16 {
        self.control() & VID_MASK
    }

    /// Priority, 0 to 7.
    pub fn priority(&self) -> u8 {
        (self.control() >> PCP_SHIFT) as u8
    }

    /// Returns true if the frame is drop eligible.
    pub fn drop_eligible(&self) -> bool {
        self.control() & DEI_MASK != 0
    }

    /// Type or length after the tag.
    pub fn type_or_length(&self) -> u16 {
        u16_at(self.0, 2)
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vlan {} p {}", self.vid(), self.priority())?;
        if self.drop_eligible() { write!(f, " dei") } else { Ok(()) }
    }
}

/// A valid tag: its identifier is not the reserved 4095.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Priority, 0 to 7.
    pub priority: u8,
    /// Whether the frame is drop eligible.
    pub drop_eligible: bool,
    /// VLAN identifier, 0 to 4094 (0: priority only).
    pub vid: u16,
    /// Type or length after the tag.
    pub type_or_length: u16,
}

impl Header {
    /// Parses the tag whose control information is at the start of `bytes`. Returns it with its
    /// length.
    ///
    /// Rejects too few bytes, and identifier 4095.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let view = View::new(bytes).ok_or(Malformed::truncated(0, TAG_BYTES, bytes.len()))?;
        if view.vid() == VID_MASK {
            return Err(Malformed { at: 0, why: MalformedReason::BadValue(view.vid().into()) });
        }
        let header = Header {
            priority: view.priority(),
            drop_eligible: view.drop_eligible(),
            vid: view.vid(),
            type_or_length: view.type_or_length(),
        };
        Ok((header, TAG_BYTES))
    }

    /// Returns the tag control information: priority, drop eligibility and identifier.
    pub fn control(&self) -> u16 {
        u16::from(self.priority & 7) << PCP_SHIFT
            | if self.drop_eligible { DEI_MASK } else { 0 }
            | self.vid & VID_MASK
    }

    /// Appends the tag without its TPID, which belongs to the preceding header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.control().to_be_bytes());
        out.extend_from_slice(&self.type_or_length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_of_scapy_round_trips() {
        // From `tests/bytes/vlan-udp.txt`, made by scapy.
        let foreign = [0xa0, 0x64, 0x08, 0x00];
        let (header, length) = Header::parse(&foreign).unwrap();
        assert_eq!((header.priority, header.vid, length), (5, 100, 4));
        let mut out = Vec::new();
        header.emit(&mut out);
        assert_eq!(out, foreign);
        assert_eq!(View::new(&foreign).unwrap().to_string(), "vlan 100 p 5");
    }

    #[test]
    fn short_tags_and_the_reserved_identifier_are_rejected() {
        assert_eq!(Header::parse(&[0, 1, 8]), Err(Malformed::truncated(0, 4, 3)));
        assert!(Header::parse(&[0x0f, 0xff, 8, 0]).is_err());
        assert_eq!(View::new(&[0x1f, 0xff, 8, 0]).unwrap().to_string(), "vlan 4095 p 0 dei");
    }
}
