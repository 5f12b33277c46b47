//! Ethernet II and IEEE 802.3: destination, source, type or length, LLC and SNAP.
//!
//! ```text
//!  0           6           12      14
//! +-----------+-----------+-------+------------------
//! |destination|  source   | type  | payload            0x0600 and above: Ethernet II
//! +-----------+-----------+-------+------------------
//! |destination|  source   |length | DSAP SSAP control  below 0x0600: IEEE 802.3 with LLC;
//! +-----------+-----------+-------+------------------  AA AA 03, then OUI (3) and type (2): SNAP
//! ```
//!
//! IEEE 802.3 clause 3, IEEE 802.2; RFC 1042 for SNAP. As in OpenFlow 1.0 (section 3.4), the type
//! of an IEEE 802.3 frame is that of its SNAP header if the OUI is 0. Otherwise it is `TYPE_NONE`.

use std::fmt;
use std::ops::Range;

use super::{array_at, u16_at};
use crate::error::{Malformed, MalformedReason};

/// A MAC address.
pub type Mac = [u8; 6];

/// The broadcast address.
pub const BROADCAST: Mac = [0xff; 6];

/// Destination address.
pub const DESTINATION: Range<usize> = 0..6;
/// Source address.
pub const SOURCE: Range<usize> = 6..12;
/// Type or length.
pub const TYPE: Range<usize> = 12..14;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 14;
/// Bytes of an LLC header with a one-byte control field.
pub const LLC_BYTES: usize = 3;
/// Bytes of an LLC header with a SNAP header.
pub const LLC_SNAP_BYTES: usize = 8;

/// Minimum frame length without FCS. Shorter frames are padded.
pub const FRAME_BYTES_MIN: usize = 60;

/// Smallest type; smaller values are lengths.
pub const TYPE_MIN: u16 = 0x0600;
/// Placeholder type of a frame without a type (OpenFlow 1.0's `OFP_DL_TYPE_NOT_ETH_TYPE`).
pub const TYPE_NONE: u16 = 0x05ff;
/// IPv4.
pub const TYPE_IPV4: u16 = 0x0800;
/// ARP.
pub const TYPE_ARP: u16 = 0x0806;
/// IEEE 802.1Q customer tag.
pub const TYPE_VLAN: u16 = 0x8100;
/// IPv6.
pub const TYPE_IPV6: u16 = 0x86dd;
/// IEEE 802.1ad service tag.
pub const TYPE_SERVICE_VLAN: u16 = 0x88a8;
/// MPLS.
pub const TYPE_MPLS: u16 = 0x8847;
/// MPLS with an upstream-assigned label, usually multicast.
pub const TYPE_MPLS_MULTICAST: u16 = 0x8848;
/// IEEE 802.1ah service instance tag.
pub const TYPE_PBB: u16 = 0x88e7;

/// Returns true for a group address, including broadcast.
#[inline]
pub fn is_group(mac: &Mac) -> bool {
    mac[0] & 1 != 0
}

/// Displays an address in the usual notation.
pub struct ShowMac(pub Mac);

impl fmt::Display for ShowMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Parses an address: six pairs of hexadecimal digits separated by `:` or `-`.
pub fn mac_from_text(text: &str) -> Option<Mac> {
    let mut mac = [0; 6];
    let mut pairs = text.split([':', '-']);
    for byte in &mut mac {
        let pair = pairs.next().filter(|pair| pair.len() == 2 && !pair.starts_with('+'))?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    pairs.next().is_none().then_some(mac)
}

/// A view of an Ethernet header, without validation.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Creates a view of the header at the start of `bytes`, if they are long enough.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= HEADER_BYTES).then_some(View(bytes))
    }

    /// Destination address.
    pub fn destination(&self) -> Mac {
        array_at(self.0, 0)
    }

    /// Source address.
    pub fn source(&self) -> Mac {
        array_at(self.0, 6)
    }

    /// Type, or length if below [`TYPE_MIN`].
    pub fn type_or_length(&self) -> u16 {
        u16_at(self.0, 12)
    }

    /// Returns the payload after the header.
    pub fn payload(&self) -> &'a [u8] {
        &self.0[HEADER_BYTES..]
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", ShowMac(self.source()), ShowMac(self.destination()))
    }
}

/// A valid Ethernet header: the source is not a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Destination address.
    pub destination: Mac,
    /// Source address.
    pub source: Mac,
    /// Type, or length if below [`TYPE_MIN`].
    pub type_or_length: u16,
}

impl Header {
    /// Parses the header at the start of `bytes`. Returns it with its length.
    ///
    /// Rejects too few bytes, a group address as source, and a length that exceeds the bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let view = Header::parse_source(bytes)?;
        let type_or_length = view.type_or_length();
        if type_or_length < TYPE_MIN && usize::from(type_or_length) > view.payload().len() {
            let why = MalformedReason::BadLength(type_or_length.into());
            return Err(Malformed { at: TYPE.start, why });
        }
        let header =
            Header { destination: view.destination(), source: view.source(), type_or_length };
        Ok((header, HEADER_BYTES))
    }

    /// Returns a view of the header at the start of `bytes`, if its source is not a group.
    pub(crate) fn parse_source(bytes: &[u8]) -> Result<View<'_>, Malformed> {
        let view = View::new(bytes).ok_or(Malformed::truncated(0, HEADER_BYTES, bytes.len()))?;
        if is_group(&view.source()) {
            let why = MalformedReason::BadValue(view.source()[0].into());
            return Err(Malformed { at: SOURCE.start, why });
        }
        Ok(view)
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.destination);
        out.extend_from_slice(&self.source);
        out.extend_from_slice(&self.type_or_length.to_be_bytes());
    }
}

/// Returns the type from an LLC header, and the offset of the payload from that header. `bytes`
/// start with the header and may be too short for it.
#[inline]
pub(crate) fn llc_type(bytes: &[u8]) -> Option<(u16, usize)> {
    let snap = bytes.len() >= LLC_SNAP_BYTES && bytes[..6] == [0xaa, 0xaa, 3, 0, 0, 0];
    if snap && u16_at(bytes, 6) >= TYPE_MIN {
        return Some((u16_at(bytes, 6), LLC_SNAP_BYTES));
    }
    (bytes.len() >= LLC_BYTES).then_some((TYPE_NONE, LLC_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First bytes of `tests/bytes/icmpv6-router-solicitation.txt`, sent by Linux.
    const FOREIGN: [u8; 14] = [0x33, 0x33, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0x0a, 0x86, 0xdd];

    #[test]
    fn a_header_of_linux_round_trips() {
        let (header, length) = Header::parse(&FOREIGN).unwrap();
        assert_eq!(length, 14);
        assert_eq!(header.type_or_length, TYPE_IPV6);
        assert!(is_group(&header.destination));
        let mut out = Vec::new();
        header.emit(&mut out);
        assert_eq!(out, FOREIGN);
        let text = View::new(&FOREIGN).unwrap().to_string();
        assert_eq!(text, "02:00:00:00:00:0a > 33:33:00:00:00:02");
    }

    #[test]
    fn short_bytes_group_sources_and_long_lengths_are_rejected() {
        assert_eq!(Header::parse(&FOREIGN[..13]), Err(Malformed::truncated(0, 14, 13)));
        let mut bytes = FOREIGN;
        bytes[6] = 1;
        assert_eq!(Header::parse(&bytes).unwrap_err().at, 6);
        let mut bytes = FOREIGN;
        bytes[12..].copy_from_slice(&[0, 5]);
        let refused = Header::parse(&bytes).unwrap_err();
        assert_eq!(refused, Malformed { at: 12, why: MalformedReason::BadLength(5) });
    }

    #[test]
    fn only_snap_with_oui_zero_has_an_ethernet_type() {
        assert_eq!(llc_type(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]), Some((TYPE_IPV4, 8)));
        assert_eq!(llc_type(&[0xaa, 0xaa, 3, 0, 0, 1, 8, 0]), Some((TYPE_NONE, 3)));
        assert_eq!(llc_type(&[0xaa, 0xaa, 3, 0, 0, 0, 0, 9]), Some((TYPE_NONE, 3)));
        assert_eq!(llc_type(&[0x42, 0x42, 3]), Some((TYPE_NONE, 3)));
        assert_eq!(llc_type(&[0x42, 0x42]), None);
    }

    #[test]
    fn mac_addresses_are_parsed_in_the_usual_notations() {
        assert_eq!(mac_from_text("02:00:00:00:00:0a"), Some([2, 0, 0, 0, 0, 10]));
        assert_eq!(mac_from_text("02-00-00-00-00-0A"), Some([2, 0, 0, 0, 0, 10]));
        for bad in
            ["02:00:00:00:00", "02:00:00:00:00:0a:0b", "2:0:0:0:0:a", "", "+2:00:00:00:00:00"]
        {
            assert_eq!(mac_from_text(bad), None, "{bad}");
        }
    }
}
