//! Where in a frame the headers are that a pipeline matches and changes.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 5.3 (what a match sees) and 7.2.3.7 (what
//! each field is). From the outside in: any number of VLAN tags, then the type behind them, which
//! decides what is looked at next: an 802.1ah tag and an MPLS stack hide everything behind
//! themselves, ARP and IP have fields of their own, IP a transport header. IEEE 802.3 frames have
//! the type of their SNAP header if its organisation is 0, and [`ethernet::TYPE_NONE`] else.
//!
//! What has a field for matching has it for changing: keys and [`crate::rewrite`] both ask here.
//! One difference is theirs to make: the first fragment of a datagram holds the transport header,
//! so that it can be changed there, but no fragment matches by it, so that all of them match alike
//! ([`Headers::transport_to_match`]).
//!
//! Invariant: for any bytes, what is said to be somewhere is there entirely, within the lengths
//! that the headers around it give; a header that contradicts itself or the frame is not there.

use packet::header::{arp, ethernet, mpls, pbb, u16_at, vlan};
pub use packet::parse::{Fragment, Transport};

/// IPv4, IPv6 and what they carry.
mod ip;
/// Where each field stands, and what it is.
mod place;

pub use place::{Covered, Place};

/// What the frame carries, as far as its header makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Something else, or a header that contradicts itself.
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

/// Where the headers of a frame are. Offsets count from the frame's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// VLAN tags: the outermost one's own type is at offset 12, each is 4 bytes long.
    pub tags: u16,
    /// The type behind the tags, or [`ethernet::TYPE_NONE`].
    pub eth_type: u16,
    /// Offset of that type; of the length of an IEEE 802.3 frame that has none.
    pub type_at: u16,
    /// What the frame carries.
    pub network: Network,
    /// Offset of what the frame carries: behind tags, LLC and SNAP.
    pub network_at: u16,
    /// Where it ends: by the lengths of IEEE 802.3 and IP, or with the frame.
    pub end: u16,
    /// Whether the IP packet is whole.
    pub fragment: Fragment,
    /// Protocol of IPv4 or, behind its extension headers, IPv6; zero without IP.
    pub proto: u8,
    /// Offset of the byte that says so; zero without IP.
    pub proto_at: u16,
    /// Which IPv6 extension headers there are: the bits of `ipv6_exthdr`.
    pub exthdr: u16,
    /// Whether an IPv6 routing header still has addresses to visit, so that the transport's
    /// checksum was made for another destination than the one in the header.
    pub routed: bool,
    /// What the IP packet carries, in its first fragment too.
    pub transport: Transport,
    /// Offset of what the IP packet carries.
    pub transport_at: u16,
    /// Type of the ICMPv6 message if it is a neighbour solicitation or advertisement with its
    /// target address.
    pub neighbour: Option<u8>,
    /// Offset of the link-layer address in the first option that a neighbour solicitation
    /// (its source's) or advertisement (its target's) has for one; zero without.
    pub link_option_at: u16,
}

impl Headers {
    /// The headers of any bytes. What is past 65,535 bytes is not looked at.
    #[inline]
    pub fn of(bytes: &[u8]) -> Headers {
        Headers::plain(bytes).unwrap_or_else(|| Headers::any(bytes))
    }

    /// The headers of what most frames are: an untagged, whole UDP or TCP packet in IPv4 without
    /// options. `None` for all others; what it gives is what [`Headers::any`] gives.
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

    /// The headers of any bytes, one after the other.
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
            // The customer's frame goes on with a type.
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

    /// Follows tags, LLC and SNAP to the type of what the frame carries.
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

    /// What looks like a type is an 802.3 length: the type is in the SNAP header, if any.
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

    /// ARP for IPv4 over Ethernet; other address kinds have no fields.
    fn read_arp(&mut self, inside: &[u8]) {
        let view = arp::View::new(&inside[self.network_at.into()..]);
        if view.is_some_and(|view| view.is_ipv4_over_ethernet()) {
            self.network = Network::Arp;
        }
    }

    /// Whether the frame is of IEEE 802.3, so that a length stands before LLC and SNAP.
    pub fn has_length(&self) -> bool {
        self.eth_type == ethernet::TYPE_NONE || self.length_at() != self.type_at
    }

    /// Offset of the type or length behind the tags.
    pub fn length_at(&self) -> u16 {
        (ethernet::TYPE.start + vlan::TAG_BYTES * usize::from(self.tags)) as u16
    }

    /// The transport header by whose fields the frame matches: that of whole packets only.
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
