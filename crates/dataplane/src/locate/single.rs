//! The link header with one tag, and the IPv4 header behind it, as the four-word key has them.
//!
//! One tag at most is looked behind, as OpenFlow 1.0 knows one, and an IPv4 header that contradicts
//! itself or the frame's length is no header.

use packet::header::{ethernet, vlan};

/// Where the outermost tag is and what follows the link headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Offset of the outermost tag's type field.
    pub vlan_at: Option<usize>,
    /// The Ethernet type as the key has it.
    pub eth_type: u16,
    /// Offset of the first byte after the link headers.
    pub payload_at: usize,
    /// Offset of the byte after the last one that the link headers let be payload.
    pub end: usize,
}

impl Link {
    /// Reads the link headers of a frame of at least 14 bytes.
    pub fn of(bytes: &[u8]) -> Link {
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|two| u16::from_be_bytes(*two));
        let mut link = Link {
            vlan_at: None,
            eth_type: word(ethernet::TYPE.start).unwrap_or(0),
            payload_at: ethernet::HEADER_BYTES,
            end: bytes.len(),
        };
        if let (true, Some(eth_type)) = (vlan::is_tag(link.eth_type), word(16)) {
            link.vlan_at = Some(ethernet::TYPE.start);
            link.eth_type = eth_type;
            link.payload_at += vlan::TAG_BYTES;
        }
        if link.eth_type < ethernet::TYPE_MIN {
            link.read_llc(bytes);
        }
        link
    }

    /// What looks like a type is an 802.3 length: the type is in the SNAP header, if any.
    fn read_llc(&mut self, bytes: &[u8]) {
        let end = self.payload_at + usize::from(self.eth_type);
        self.end = if end <= bytes.len() { end } else { bytes.len() };
        self.eth_type = ethernet::TYPE_NONE;
        if let Some([0xaa, 0xaa, 3, 0, 0, 0, rest @ ..]) = bytes.get(self.payload_at..self.end)
            && let Some(&snap) = rest.first_chunk()
            && u16::from_be_bytes(snap) >= ethernet::TYPE_MIN
        {
            self.eth_type = u16::from_be_bytes(snap);
            self.payload_at += 8;
        }
    }
}

/// An IPv4 header that contradicts neither itself nor the frame's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4 {
    /// Protocol of the payload.
    pub proto: u8,
    /// Whether this is part of a fragmented datagram.
    pub fragment: bool,
    /// Whether it is a part that does not start with the L4 header.
    pub fragment_later: bool,
    /// Offset of the first byte after the header.
    pub l4_at: usize,
    /// Offset of the byte after the last one that the header's length covers.
    pub end: usize,
}

impl Ipv4 {
    /// The header at `at`, if it makes sense.
    pub fn at(bytes: &[u8], at: usize) -> Option<Ipv4> {
        let header: &[u8; 20] = bytes.get(at..)?.first_chunk()?;
        let header_bytes = usize::from(header[0] & 0xf) * 4;
        let total_bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let fragment_bits = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
        let sane = header[0] >> 4 == 4
            && header_bytes >= 20
            && total_bytes >= header_bytes
            && total_bytes <= bytes.len() - at;
        sane.then_some(Ipv4 {
            proto: header[9],
            fragment: fragment_bits != 0,
            fragment_later: fragment_bits & 0x1fff != 0,
            l4_at: at + header_bytes,
            end: at + total_bytes,
        })
    }
}
