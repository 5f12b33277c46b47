//! IPv4, IPv6 and their payload.
//!
//! Source: RFC 791 and RFC 8200; the bits of `ipv6_exthdr` are those of OpenFlow Switch
//! Specification 1.3.5, section 7.2.3.8. Two of these bits depend on the recommended order of
//! extension headers in RFC 8200, section 4.1: hop-by-hop, destination, routing, fragment,
//! authentication, encapsulating security payload, destination again.

use packet::header::{icmp, icmpv6, ipv4, ipv6, sctp, tcp, udp};

use super::{Fragment, Headers, Network, Transport};

/// The chain ends in "no next header".
pub const EXTHDR_NO_NEXT: u16 = 1 << 0;
/// An encapsulating security payload (ESP).
pub const EXTHDR_ESP: u16 = 1 << 1;
/// An authentication header.
pub const EXTHDR_AUTH: u16 = 1 << 2;
/// Destination options.
pub const EXTHDR_DEST: u16 = 1 << 3;
/// A fragment header.
pub const EXTHDR_FRAG: u16 = 1 << 4;
/// A routing header.
pub const EXTHDR_ROUTER: u16 = 1 << 5;
/// Hop-by-hop options, as the first extension header.
pub const EXTHDR_HOP: u16 = 1 << 6;
/// A header occurs more often than expected.
pub const EXTHDR_REPEATED: u16 = 1 << 7;
/// A header precedes another that it should follow.
pub const EXTHDR_DISORDERED: u16 = 1 << 8;

/// Protocol number of ESP (RFC 4303), which hides everything after it.
const NEXT_ESP: u8 = 50;

impl Headers {
    /// Parses an IPv4 header, if it is consistent with itself and with the frame's length.
    pub(super) fn read_ipv4(&mut self, inside: &[u8]) {
        let at = usize::from(self.network_at);
        let room = inside.len() - at;
        let Some(view) = ipv4::View::new(&inside[at..]) else { return };
        let (length, total) = (view.header_length(), usize::from(view.total_length()));
        if view.version() != 4 || length < ipv4::HEADER_BYTES || total < length || total > room {
            return;
        }
        self.network = Network::Ipv4;
        self.end = (at + total) as u16;
        self.proto = view.protocol();
        self.proto_at = (at + ipv4::PROTOCOL_AT) as u16;
        self.transport_at = (at + length) as u16;
        if view.fragment_offset() != 0 {
            self.fragment = Fragment::Later;
            return;
        }
        if view.more_fragments() {
            self.fragment = Fragment::First;
        }
        self.read_transport(inside);
    }

    /// Parses an IPv6 header, if its payload is complete, and its extension headers.
    pub(super) fn read_ipv6(&mut self, inside: &[u8]) {
        let at = usize::from(self.network_at);
        let Some(view) = ipv6::View::new(&inside[at..]) else { return };
        let end = at + ipv6::HEADER_BYTES + usize::from(view.payload_length());
        if view.version() != 6 || end > inside.len() {
            return;
        }
        self.network = Network::Ipv6;
        self.end = end as u16;
        self.proto_at = (at + ipv6::NEXT_HEADER_AT) as u16;
        let mut chain = view.extensions();
        let mut order = ExtensionOrder::default();
        for extension in chain.by_ref() {
            order.meet(extension.kind);
            self.proto_at = (at + extension.at) as u16;
            self.routed |=
                extension.kind == ipv6::NEXT_ROUTING && inside[at + extension.at + 3] != 0;
            match extension.fragment {
                Some(part) if part.offset != 0 => self.fragment = Fragment::Later,
                Some(part) if part.more => self.fragment = Fragment::First,
                _ => {}
            }
        }
        self.proto = chain.next;
        self.transport_at = (at + chain.at) as u16;
        if self.fragment != Fragment::Later && chain.fault.is_none() {
            order.meet(chain.next);
            self.read_transport(inside);
        }
        self.exthdr = order.bits;
    }

    /// Parses the transport header, if its fixed part is complete.
    fn read_transport(&mut self, inside: &[u8]) {
        let ipv6 = self.network == Network::Ipv6;
        let (transport, need) = match self.proto {
            ipv4::PROTOCOL_TCP => (Transport::Tcp, tcp::HEADER_BYTES),
            ipv4::PROTOCOL_UDP => (Transport::Udp, udp::HEADER_BYTES),
            ipv4::PROTOCOL_SCTP => (Transport::Sctp, sctp::HEADER_BYTES),
            ipv4::PROTOCOL_ICMP if !ipv6 => (Transport::Icmp, icmp::HEADER_BYTES),
            ipv4::PROTOCOL_ICMPV6 if ipv6 => (Transport::Icmpv6, icmpv6::HEADER_BYTES),
            _ => return,
        };
        if usize::from(self.end - self.transport_at) < need {
            return;
        }
        self.transport = transport;
        if transport == Transport::Icmpv6 {
            self.read_neighbour(&inside[self.transport_at.into()..self.end.into()]);
        }
    }

    /// Parses the target of a neighbor discovery message, and the option that belongs to its type.
    fn read_neighbour(&mut self, message: &[u8]) {
        let kind = match message[0] {
            icmpv6::NEIGHBOUR_SOLICITATION => icmpv6::OPTION_SOURCE_LINK,
            icmpv6::NEIGHBOUR_ADVERTISEMENT => icmpv6::OPTION_TARGET_LINK,
            _ => return,
        };
        let Some(options) = message.get(icmpv6::OPTIONS_AT..) else { return };
        self.neighbour = Some(message[0]);
        if let Some(at) = icmpv6::option_at(options, kind) {
            self.link_option_at = self.transport_at + (icmpv6::OPTIONS_AT + at) as u16 + 2;
        }
    }
}

/// State of the chain of extension headers.
#[derive(Debug, Default)]
struct ExtensionOrder {
    bits: u16,
    /// Number of headers so far.
    count: usize,
    /// Highest position so far in the recommended order.
    rank: u8,
    destinations: u8,
}

impl ExtensionOrder {
    /// Processes the next header in the chain, or the header after it.
    fn meet(&mut self, kind: u8) {
        let (bit, rank) = match kind {
            ipv6::NEXT_HOP_BY_HOP => (EXTHDR_HOP, 1),
            ipv6::NEXT_DESTINATION if self.rank < 2 => (EXTHDR_DEST, 2),
            ipv6::NEXT_ROUTING => (EXTHDR_ROUTER, 3),
            ipv6::NEXT_FRAGMENT => (EXTHDR_FRAG, 4),
            ipv6::NEXT_AUTHENTICATION => (EXTHDR_AUTH, 5),
            NEXT_ESP => (EXTHDR_ESP, 6),
            // The second destination options; the first ones are for all addresses in a routing
            // header.
            ipv6::NEXT_DESTINATION => (EXTHDR_DEST, 7),
            ipv6::NEXT_NONE => (EXTHDR_NO_NEXT, 8),
            _ => (0, 0),
        };
        self.destinations += u8::from(bit == EXTHDR_DEST);
        let late = bit == EXTHDR_HOP && self.count > 0;
        let expected = bit == EXTHDR_DEST && self.destinations <= 2;
        self.count += 1;
        if bit != 0 && (rank < self.rank || late) {
            self.bits |= EXTHDR_DISORDERED;
        }
        if self.bits & bit != 0 && !expected {
            self.bits |= EXTHDR_REPEATED;
        }
        if !late {
            self.bits |= bit;
        }
        self.rank = self.rank.max(rank);
    }
}
