//! OAM frame encoding (IEEE 802.1Q clause 21, ITU-T Y.1731 clause 9).
//!
//! A frame consists of:
//!
//! - an Ethernet header with at most one tag and EtherType 0x8902,
//! - the common header: level and version, opcode, flags, first TLV offset,
//! - a body that depends on the opcode.
//!
//! Invariants: no read goes past the end. A TLV longer than the remaining bytes ends the list.

use packet::build::Builder;
use packet::header::ethernet::{self, Mac};
use packet::header::vlan;

pub use packet::header::oam::{COMMON_BYTES, ETHER_TYPE, op, tlv};

/// CCM flag: the sender has lost a peer.
pub const RDI: u8 = 0x80;
/// Linktrace flag: use only entries of the filtering database.
pub const USE_FDB_ONLY: u8 = 0x80;
/// Linktrace flag: the message was relayed.
pub const FWD_YES: u8 = 0x40;
/// Linktrace flag: a terminal MEP replied.
pub const TERMINAL_MEP: u8 = 0x20;

/// Bytes of a CCM from the common header to the end TLV.
const CCM_BODY_BYTES: usize = 70;
/// Bytes of a MAID.
pub const MAID_BYTES: usize = 48;
/// End of the four time stamps in the body.
pub const DELAY_BYTES: usize = 32;

/// A received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pdu<'a> {
    /// Destination address.
    pub destination: Mac,
    /// Source address.
    pub source: Mac,
    /// Tag control information: priority and VLAN.
    pub tag: Option<u16>,
    /// Level, 0 to 7.
    pub level: u8,
    /// Opcode.
    pub op: u8,
    /// Flags, which depend on the opcode.
    pub flags: u8,
    /// Offset of the first TLV in the body.
    pub tlv_offset: usize,
    /// Data after the common header.
    pub body: &'a [u8],
}

impl<'a> Pdu<'a> {
    /// Parses a frame. Returns none if it is no OAM frame or too short.
    pub fn read(frame: &'a [u8]) -> Option<Pdu<'a>> {
        let outer = ethernet::View::new(frame)?;
        let (mut rest, mut kind, mut tag) = (outer.payload(), outer.type_or_length(), None);
        if vlan::is_tag(kind) {
            let view = vlan::View::new(rest)?;
            (tag, kind) = (Some(view.control()), view.type_or_length());
            rest = &rest[vlan::TAG_BYTES..];
        }
        let (&[first, op, flags, offset], body) = rest.split_first_chunk::<COMMON_BYTES>()?;
        (kind == ETHER_TYPE).then_some(Pdu {
            destination: outer.destination(),
            source: outer.source(),
            tag,
            level: first >> 5,
            op,
            flags,
            tlv_offset: offset.into(),
            body,
        })
    }

    /// Returns the VLAN id; zero for untagged.
    pub fn vid(&self) -> u16 {
        self.tag.map_or(0, |tag| tag & vlan::VID_MASK)
    }

    /// Reads a big-endian number from the body.
    pub fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(*self.body.get(at..)?.first_chunk()?))
    }

    /// Reads an address from the body.
    pub fn mac(&self, at: usize) -> Option<Mac> {
        self.body.get(at..)?.first_chunk().copied()
    }

    /// Reads a time stamp from the body as nanoseconds since 1970.
    pub fn stamp(&self, at: usize) -> Option<u64> {
        let (seconds, nanos) = (self.u32(at)?, self.u32(at + 4)?);
        Some(u64::from(seconds) * 1_000_000_000 + u64::from(nanos))
    }

    /// Returns the value of the first TLV of a type.
    pub fn tlv(&self, wanted: u8) -> Option<&'a [u8]> {
        let mut rest = self.body.get(self.tlv_offset..)?;
        loop {
            let (&kind, after) = rest.split_first()?;
            if kind == tlv::END {
                return None;
            }
            let (length, after) = after.split_first_chunk::<2>()?;
            let value = after.get(..usize::from(u16::from_be_bytes(*length)))?;
            if kind == wanted {
                return Some(value);
            }
            rest = &after[value.len()..];
        }
    }
}

/// Header of a frame to send.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    /// Destination address.
    pub destination: Mac,
    /// Source address.
    pub source: Mac,
    /// Tag control information, if the frame is tagged.
    pub tag: Option<u16>,
    /// Level.
    pub level: u8,
    /// Opcode.
    pub op: u8,
    /// Flags.
    pub flags: u8,
    /// Offset of the first TLV in the body.
    pub tlv_offset: u8,
}

impl Header {
    /// Builds the frame with a body.
    pub fn frame(&self, body: &[u8]) -> Vec<u8> {
        let builder = Builder::new(self.destination, self.source);
        let builder = match self.tag {
            Some(tag) => builder.vlan(tag),
            None => builder,
        };
        let common = [self.level << 5, self.op, self.flags, self.tlv_offset];
        builder.ether_type(ETHER_TYPE).payload(&[&common, body].concat()).bytes()
    }
}

/// Returns the multicast address of a level, for end points or for linktrace messages (IEEE 802.1Q
/// table 8-13).
pub fn group(level: u8, linktrace: bool) -> Mac {
    [0x01, 0x80, 0xc2, 0, 0, 0x30 | u8::from(linktrace) << 3 | level]
}

/// Encodes a MAID (IEEE 802.1Q 21.6.5): optional domain name and association name, both as text.
pub fn maid(domain: Option<&str>, association: &str) -> Option<[u8; MAID_BYTES]> {
    const NO_DOMAIN: u8 = 1;
    const DOMAIN_TEXT: u8 = 4;
    const ASSOCIATION_TEXT: u8 = 2;
    let mut bytes = match domain {
        None => vec![NO_DOMAIN],
        Some(name) => [&[DOMAIN_TEXT, name.len() as u8], name.as_bytes()].concat(),
    };
    bytes.extend([ASSOCIATION_TEXT, association.len() as u8]);
    bytes.extend(association.as_bytes());
    let fits = bytes.len() <= MAID_BYTES && !association.is_empty() && domain != Some("");
    bytes.resize(MAID_BYTES.max(bytes.len()), 0);
    fits.then_some(())?;
    bytes.try_into().ok()
}

/// Builds the body of a CCM, without frame counters.
pub fn ccm(sequence: u32, mep: u16, maid: &[u8; MAID_BYTES]) -> Vec<u8> {
    let mut body = Vec::with_capacity(CCM_BODY_BYTES + 1);
    body.extend(sequence.to_be_bytes());
    body.extend(mep.to_be_bytes());
    body.extend(maid);
    body.resize(CCM_BODY_BYTES, 0);
    body.push(tlv::END);
    body
}

/// Appends a TLV.
pub fn put(body: &mut Vec<u8>, kind: u8, value: &[u8]) {
    body.push(kind);
    body.extend((value.len() as u16).to_be_bytes());
    body.extend(value);
}

/// Offset of the first TLV of a CCM.
pub const CCM_TLVS: u8 = CCM_BODY_BYTES as u8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip_with_and_without_tag() {
        for tag in [None, Some(0xe064)] {
            let header = Header {
                destination: group(5, false),
                source: [2, 0, 0, 0, 0, 1],
                tag,
                level: 5,
                op: op::CCM,
                flags: RDI | 4,
                tlv_offset: CCM_TLVS,
            };
            let maid = maid(None, "test").unwrap();
            let frame = header.frame(&ccm(7, 100, &maid));
            let pdu = Pdu::read(&frame).unwrap();
            assert_eq!((pdu.destination, pdu.source), (header.destination, header.source));
            assert_eq!((pdu.tag, pdu.vid()), (tag, tag.map_or(0, |_| 100)));
            assert_eq!((pdu.level, pdu.op, pdu.flags), (5, op::CCM, RDI | 4));
            assert_eq!((pdu.u32(0), &pdu.body[6..14]), (Some(7), &b"\x01\x02\x04test\0"[..]));
            for cut in 0..frame.len() {
                if let Some(pdu) = Pdu::read(&frame[..cut]) {
                    pdu.tlv(tlv::DATA);
                    pdu.stamp(24);
                }
            }
        }
    }

    #[test]
    fn invalid_names_are_rejected() {
        assert!(maid(Some("0123456789012345678901"), "0123456789012345678901").is_some());
        assert!(maid(Some("0123456789012345678901"), "01234567890123456789012").is_none());
        assert!(maid(None, "").is_none());
    }
}
