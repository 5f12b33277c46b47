//! Positions of the headers that a pipeline matches and changes.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 5.3 (matching) and 7.2.3.7 (fields).
//! Parsing starts with any number of VLAN tags. The type after them determines the next header. An
//! 802.1ah tag and an MPLS stack hide everything after them. ARP and IP have their own fields, and
//! IP has a transport header. An IEEE 802.3 frame has the type of its SNAP header if the
//! organization is 0, and otherwise [`ethernet::TYPE_NONE`].
//!
//! Matching and changing agree on the fields of a frame, since keys and [`crate::rewrite`] both use
//! this module. There is one difference. The first fragment of a datagram has the transport header,
//! so its fields can be changed. But no fragment matches on them, so that all fragments match alike
//! ([`Headers::transport_to_match`]).
//!
//! Invariant: for any bytes, a reported header is completely present, within the lengths in the
//! headers around it. A header that contradicts itself or the frame is not reported.

use packet::header::{arp, ethernet, mpls, pbb, u16_at, vlan};
pub use packet::parse::{Fragment, Transport};

mod ip;
mod place;

pub use place::{ChecksumCoverage, FieldPosition};

/// Network header of a frame, if it is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Another header, or an invalid one.
    None,
    /// ARP for IPv4 over Ethernet.
    Arp,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// A stack of MPLS entries, the outermost first.
    Mpls,
    /// An 802.1ah tag with a whole frame.
    Pbb,
}

/// Positions of a frame's headers. Offsets count from the frame's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// Number of VLAN tags. The first type is at offset 12, and each tag has 4 bytes.
    pub tags: u16,
    /// The type after the tags, or [`ethernet::TYPE_NONE`].
    pub eth_type: u16,
    /// Offset of that type, or of the length of an IEEE 802.3 frame without a type.
    pub type_at: u16,
    /// The network header.
    pub network: Network,
    /// Offset of the network header: after tags, LLC and SNAP.
    pub network_at: u16,
    /// End of the payload: by the lengths of IEEE 802.3 and IP, or at the end of the frame.
    pub end: u16,
    /// Whether the IP packet is a fragment.
    pub fragment: Fragment,
    /// Protocol of IPv4, or of IPv6 after its extension headers; zero without IP.
    pub proto: u8,
    /// Offset of the protocol byte; zero without IP.
    pub proto_at: u16,
    /// Set of IPv6 extension headers: the bits of `ipv6_exthdr`.
    pub exthdr: u16,
    /// Whether an IPv6 routing header has addresses left to visit. Then the transport checksum
    /// refers to another destination than the one in the header.
    pub routed: bool,
    /// Transport header of the IP packet, also in its first fragment.
    pub transport: Transport,
    /// Offset of the transport header.
    pub transport_at: u16,
    /// Type of the ICMPv6 message if it is a neighbor solicitation or advertisement with a target
    /// address.
    pub neighbour: Option<u8>,
    /// Offset of the link-layer address in the first matching option of a neighbor solicitation
    /// (source address) or advertisement (target address); zero without one.
    pub link_option_at: u16,
}

impl Headers {
    /// Parses the headers of any bytes. Bytes beyond 65,535 are ignored.
    #[inline]
    pub fn of(bytes: &[u8]) -> Headers {
        Headers::plain(bytes).unwrap_or_else(|| Headers::any(bytes))
    }

    /// Parses the most frequent frames: an untagged, unfragmented UDP or TCP packet in IPv4 without
    /// options. Returns `None` for all others, and else the result of [`Headers::any`].
    #[inline]
    fn plain(bytes: &[u8]) -> Option<Headers> {
        let head: &[u8; 42] = bytes.first_chunk()?;
        let (total, proto) = (usize::from(u16_at(head, 16)), head[23]);
        let (transport, least) = match proto {
            17 => (Transport::Udp, 28),
            6 => (Transport::Tcp, 40),
            _ => return None,
        };
        let whole = head[12..15] == [8, 0, 0x45] && u16_at(head, 20) & 0x3fff == 0;
        let end = total + ethernet::HEADER_BYTES;
        if !whole || total < least || end > bytes.len() || end > 0xffff {
            return None;
        }
        Some(Headers {
            eth_type: ethernet::TYPE_IPV4,
            network: Network::Ipv4,
            end: end as u16,
            proto,
            proto_at: 23,
            transport,
            transport_at: 34,
            ..Headers::nothing(0)
        })
    }

    /// Parses the headers of any bytes, one after the other.
    fn any(bytes: &[u8]) -> Headers {
        let bytes = &bytes[..bytes.len().min(u16::MAX.into())];
        let mut headers = Headers::nothing(bytes.len());
        if bytes.len() < ethernet::HEADER_BYTES {
            return headers;
        }
        headers.read_link(bytes);
        let inside = &bytes[..headers.end.into()];
        let room = inside.len() - usize::from(headers.network_at);
        match headers.eth_type {
            ethernet::TYPE_IPV4 => headers.read_ipv4(inside),
            ethernet::TYPE_IPV6 => headers.read_ipv6(inside),
            ethernet::TYPE_ARP => headers.read_arp(inside),
            ethernet::TYPE_MPLS | ethernet::TYPE_MPLS_MULTICAST if room >= mpls::ENTRY_BYTES => {
                headers.network = Network::Mpls;
            }
            // The customer's frame continues with a type.
            ethernet::TYPE_PBB if room >= pbb::TAG_BYTES + 2 => headers.network = Network::Pbb,
            _ => {}
        }
        headers
    }

    #[inline(always)]
    fn nothing(length: usize) -> Headers {
        Headers {
            tags: 0,
            eth_type: 0,
            type_at: ethernet::TYPE.start as u16,
            network: Network::None,
            network_at: ethernet::HEADER_BYTES as u16,
            end: length as u16,
            fragment: Fragment::Whole,
            proto: 0,
            proto_at: 0,
            exthdr: 0,
            routed: false,
            transport: Transport::None,
            transport_at: length as u16,
            neighbour: None,
            link_option_at: 0,
        }
    }

    /// Skips tags, LLC and SNAP to find the type of the network header.
    fn read_link(&mut self, bytes: &[u8]) {
        let mut at = ethernet::TYPE.start;
        while vlan::is_tag(u16_at(bytes, at)) && at + 2 + vlan::TAG_BYTES <= bytes.len() {
            self.tags += 1;
            at += vlan::TAG_BYTES;
        }
        self.eth_type = u16_at(bytes, at);
        self.type_at = at as u16;
        self.network_at = at as u16 + 2;
        if self.eth_type < ethernet::TYPE_MIN {
            self.read_llc(bytes, at + 2);
        }
    }

    /// Parses LLC: the field is an 802.3 length, and the type is in the SNAP header, if there is
    /// one.
    fn read_llc(&mut self, bytes: &[u8], at: usize) {
        let end = at + usize::from(self.eth_type);
        self.end = if end <= bytes.len() { end } else { bytes.len() } as u16;
        self.eth_type = ethernet::TYPE_NONE;
        if let Some([0xaa, 0xaa, 3, 0, 0, 0, rest @ ..]) = bytes.get(at..self.end.into())
            && let Some(&snap) = rest.first_chunk()
            && u16::from_be_bytes(snap) >= ethernet::TYPE_MIN
        {
            self.eth_type = u16::from_be_bytes(snap);
            self.type_at = at as u16 + 6;
            self.network_at = at as u16 + 8;
        }
    }

    /// Parses ARP for IPv4 over Ethernet; other address types have no fields.
    fn read_arp(&mut self, inside: &[u8]) {
        let view = arp::View::new(&inside[self.network_at.into()..]);
        if view.is_some_and(|view| view.is_ipv4_over_ethernet()) {
            self.network = Network::Arp;
        }
    }

    /// Whether this is an IEEE 802.3 frame, with a length before LLC and SNAP.
    pub fn has_length(&self) -> bool {
        self.eth_type == ethernet::TYPE_NONE || self.length_at() != self.type_at
    }

    /// Returns the offset of the type or length after the tags.
    pub fn length_at(&self) -> u16 {
        (ethernet::TYPE.start + vlan::TAG_BYTES * usize::from(self.tags)) as u16
    }

    /// Returns the transport header for matching: only unfragmented packets have one.
    #[inline]
    pub fn transport_to_match(&self) -> Transport {
        match self.fragment {
            Fragment::Whole => self.transport,
            Fragment::First | Fragment::Later => Transport::None,
        }
    }
}

#[cfg(test)]
mod tests;
