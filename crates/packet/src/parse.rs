//! Layers of a frame, located in one pass.
//!
//! `Layers::of` accepts any bytes. It parses as deep as the headers are valid, records the offsets,
//! and stores the first contradiction as `fault`. It allocates nothing and has a fast path for
//! Ethernet, IPv4 and UDP or TCP, because every forwarded frame passes through it. `Packet`
//! combines the layers with the bytes; `Packet::parse` is the strict parser.
//!
//! Invalid frames are treated as in OpenFlow 1.0 section 3.4 and Open vSwitch:
//!
//! - If a network header contradicts itself, only the EtherType is valid.
//! - A fragment other than the first has no transport header.
//! - A transport header is valid only if it is complete.
//!
//! Offsets never exceed the frame. Bytes beyond 65,535 are ignored.

use std::ops::Range;

use crate::error::{Malformed, MalformedReason};
use crate::header::{arp, ethernet, icmp, icmpv6, ipv4, ipv6, sctp, tcp, u16_at, udp, vlan};

mod packet;

pub use packet::{Packet, set_transport_checksum};

/// Network layer protocol, if its header is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Another protocol, or an invalid header.
    None,
    /// ARP for IPv4 over Ethernet.
    Arp,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// Transport protocol, if its fixed header is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Another protocol, a fragment other than the first, or too few bytes.
    None,
    /// ICMP in IPv4.
    Icmp,
    /// ICMPv6 in IPv6.
    Icmpv6,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// Fragmentation state of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fragment {
    /// Not a fragment.
    Whole,
    /// The first fragment, which has the transport header.
    First,
    /// A later fragment, possibly the last, without transport header.
    Later,
}

/// Positions of the layers of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layers {
    /// Number of VLAN tags, at most [`vlan::VLAN_DEPTH_MAX`].
    pub tags: u8,
    /// EtherType after the tags; [`ethernet::TYPE_NONE`] for IEEE 802.3 without SNAP.
    pub ether_type: u16,
    /// Network layer protocol.
    pub network: Network,
    /// Offset of the network layer, after tags, LLC and SNAP.
    pub network_at: u16,
    /// Fragmentation state.
    pub fragment: Fragment,
    /// Protocol of the IP payload, after extension headers; zero without IP.
    pub protocol: u8,
    /// Transport protocol.
    pub transport: Transport,
    /// Offset of the transport layer; the end if there is none.
    pub transport_at: u16,
    /// Offset of the innermost payload, after the last valid header.
    pub payload_at: u16,
    /// End of that payload by the innermost valid length field; padding follows.
    pub payload_end: u16,
    /// The first contradiction found.
    pub fault: Option<Malformed>,
}

impl Layers {
    /// Locates the layers of any bytes.
    #[inline]
    pub fn of(bytes: &[u8]) -> Layers {
        Layers::plain(bytes).unwrap_or_else(|| Layers::any(bytes))
    }

    /// Locates the layers of a common frame: a complete UDP or TCP packet in IPv4 without options,
    /// tags or contradictions. Returns `None` for all others. The result equals that of
    /// [`Layers::any`].
    #[inline]
    fn plain(bytes: &[u8]) -> Option<Layers> {
        let head: &[u8; 54] = bytes.first_chunk()?;
        let (total, protocol) = (u16_at(head, 16), head[23]);
        let end = usize::from(total) + ethernet::HEADER_BYTES;
        let fragment = u16_at(head, 20) & (ipv4::MORE_FRAGMENTS | ipv4::OFFSET_MASK);
        if head[12..15] != [8, 0, 0x45] || fragment != 0 || end > bytes.len() || end > 0xffff {
            return None;
        }
        let (transport, payload_at, payload_end) = match protocol {
            ipv4::PROTOCOL_UDP => {
                let length = usize::from(u16_at(head, 34 + udp::LENGTH_AT));
                (Transport::Udp, 34 + udp::HEADER_BYTES, 34 + length.min(end))
            }
            ipv4::PROTOCOL_TCP => (Transport::Tcp, 34 + usize::from(head[46] >> 4) * 4, end),
            _ => return None,
        };
        let least = if protocol == ipv4::PROTOCOL_TCP { 54 } else { 42 };
        if payload_at < least || payload_at > payload_end || payload_end > end {
            return None;
        }
        Some(Layers {
            ether_type: ethernet::TYPE_IPV4,
            network: Network::Ipv4,
            network_at: ethernet::HEADER_BYTES as u16,
            protocol,
            transport,
            transport_at: 34,
            payload_at: payload_at as u16,
            payload_end: payload_end as u16,
            ..Layers::nothing(0)
        })
    }

    /// Locates the layers of any bytes, step by step.
    fn any(bytes: &[u8]) -> Layers {
        let bytes = &bytes[..bytes.len().min(u16::MAX.into())];
        let mut layers = Layers::nothing(bytes.len());
        if bytes.len() < ethernet::HEADER_BYTES {
            layers.fault = Some(Malformed::truncated(0, ethernet::HEADER_BYTES, bytes.len()));
            return layers;
        }
        layers.ether_type = u16_at(bytes, ethernet::TYPE.start);
        layers.begin(ethernet::HEADER_BYTES);
        if layers.ether_type != ethernet::TYPE_IPV4 {
            layers.read_link(bytes);
        }
        match layers.ether_type {
            ethernet::TYPE_IPV4 => layers.read_ipv4(bytes),
            ethernet::TYPE_ARP => layers.read_arp(bytes),
            ethernet::TYPE_IPV6 => layers.read_ipv6(bytes),
            _ => {}
        }
        layers
    }

    #[inline(always)]
    fn nothing(length: usize) -> Layers {
        Layers {
            tags: 0,
            ether_type: 0,
            network: Network::None,
            network_at: length as u16,
            fragment: Fragment::Whole,
            protocol: 0,
            transport: Transport::None,
            transport_at: length as u16,
            payload_at: length as u16,
            payload_end: length as u16,
            fault: None,
        }
    }

    /// Sets the start of the network layer.
    #[inline]
    fn begin(&mut self, at: usize) {
        self.network_at = at as u16;
        self.payload_at = at as u16;
    }

    #[inline]
    fn fail(&mut self, fault: Malformed) {
        self.fault.get_or_insert(fault);
    }

    /// Parses tags, LLC and SNAP up to the EtherType of the payload.
    fn read_link(&mut self, bytes: &[u8]) {
        while vlan::is_tag(self.ether_type) {
            let at = usize::from(self.network_at);
            if usize::from(self.tags) == vlan::VLAN_DEPTH_MAX {
                let why = MalformedReason::LimitReached("VLAN_DEPTH_MAX");
                return self.fail(Malformed { at, why });
            }
            if bytes.len() - at < vlan::TAG_BYTES {
                return self.fail(Malformed::truncated(at, vlan::TAG_BYTES, bytes.len() - at));
            }
            self.tags += 1;
            self.ether_type = u16_at(bytes, at + 2);
            self.begin(at + vlan::TAG_BYTES);
        }
        if self.ether_type < ethernet::TYPE_MIN {
            self.read_llc(bytes);
        }
    }

    fn read_llc(&mut self, bytes: &[u8]) {
        let (at, length) = (usize::from(self.network_at), usize::from(self.ether_type));
        self.ether_type = ethernet::TYPE_NONE;
        if length > bytes.len() - at {
            self.fail(Malformed { at: at - 2, why: MalformedReason::BadLength(length) });
        } else {
            self.payload_end = (at + length) as u16;
        }
        let inside = &bytes[at..usize::from(self.payload_end)];
        match ethernet::llc_type(inside) {
            Some((type_, behind)) => {
                self.ether_type = type_;
                self.begin(at + behind);
            }
            None => self.fail(Malformed::truncated(at, ethernet::LLC_BYTES, inside.len())),
        }
    }

    fn read_arp(&mut self, bytes: &[u8]) {
        let at = usize::from(self.network_at);
        match arp::Header::parse(&bytes[at..usize::from(self.payload_end)]) {
            Ok((_, length)) => {
                self.network = Network::Arp;
                self.payload_at = (at + length) as u16;
                self.payload_end = self.payload_at;
                self.transport_at = self.payload_at;
            }
            Err(fault) => self.fail(fault.shifted(at)),
        }
    }

    #[inline]
    fn read_ipv4(&mut self, bytes: &[u8]) {
        let at = usize::from(self.network_at);
        let inside = &bytes[at..usize::from(self.payload_end)];
        let Some(view) = ipv4::View::new(inside) else {
            return self.fail(Malformed::truncated(at, ipv4::HEADER_BYTES, inside.len()));
        };
        let length = match ipv4::check_lengths(inside, &view) {
            Ok(length) => length,
            Err(fault) => return self.fail(fault.shifted(at)),
        };
        self.network = Network::Ipv4;
        self.protocol = view.protocol();
        self.payload_end = (at + usize::from(view.total_length())) as u16;
        self.transport_at = (at + length) as u16;
        self.payload_at = self.transport_at;
        if view.fragment_offset() != 0 {
            self.fragment = Fragment::Later;
            return;
        }
        if view.more_fragments() {
            self.fragment = Fragment::First;
        }
        self.read_transport(bytes);
    }

    fn read_ipv6(&mut self, bytes: &[u8]) {
        let at = usize::from(self.network_at);
        let inside = &bytes[at..usize::from(self.payload_end)];
        let Some(view) = ipv6::View::new(inside) else {
            return self.fail(Malformed::truncated(at, ipv6::HEADER_BYTES, inside.len()));
        };
        let end = ipv6::HEADER_BYTES + usize::from(view.payload_length());
        if view.version() != 6 {
            return self.fail(Malformed { at, why: MalformedReason::BadValue(inside[0].into()) });
        }
        if end > inside.len() {
            let why = MalformedReason::BadLength(view.payload_length().into());
            return self.fail(Malformed { at: at + ipv6::PAYLOAD_LENGTH_AT, why });
        }
        self.network = Network::Ipv6;
        self.payload_end = (at + end) as u16;
        let mut chain = view.extensions();
        for extension in chain.by_ref() {
            match extension.fragment {
                Some(part) if part.offset != 0 => self.fragment = Fragment::Later,
                Some(part) if part.more => self.fragment = Fragment::First,
                _ => {}
            }
        }
        self.protocol = chain.next;
        self.transport_at = (at + chain.at) as u16;
        self.payload_at = self.transport_at;
        match chain.fault {
            Some(fault) => self.fail(fault.shifted(at)),
            None if self.fragment == Fragment::Later => {}
            None => self.read_transport(bytes),
        }
    }

    #[inline]
    fn read_transport(&mut self, bytes: &[u8]) {
        let (transport, need) = match (self.protocol, self.network) {
            (ipv4::PROTOCOL_UDP, _) => (Transport::Udp, udp::HEADER_BYTES),
            (ipv4::PROTOCOL_TCP, _) => (Transport::Tcp, tcp::HEADER_BYTES),
            (ipv4::PROTOCOL_ICMP, Network::Ipv4) => (Transport::Icmp, icmp::HEADER_BYTES),
            (ipv4::PROTOCOL_ICMPV6, Network::Ipv6) => (Transport::Icmpv6, icmpv6::HEADER_BYTES),
            (ipv4::PROTOCOL_SCTP, _) => (Transport::Sctp, sctp::HEADER_BYTES),
            _ => return,
        };
        let (at, end) = (usize::from(self.transport_at), usize::from(self.payload_end));
        if end - at < need {
            return self.fail(Malformed::truncated(at, need, end - at));
        }
        self.transport = transport;
        self.payload_at = (at + need) as u16;
        match transport {
            Transport::Udp => self.read_udp_length(u16_at(bytes, at + udp::LENGTH_AT), at, end),
            Transport::Tcp => self.read_tcp_length(usize::from(bytes[at + 12] >> 4) * 4, at, end),
            _ => {}
        }
    }

    /// The length of a complete datagram is at most that of its IP payload; the length of a first
    /// fragment is larger.
    #[inline]
    fn read_udp_length(&mut self, length: u16, at: usize, end: usize) {
        let length = usize::from(length);
        let whole = self.fragment == Fragment::Whole;
        if length < udp::HEADER_BYTES || (whole && length > end - at) {
            self.fail(Malformed {
                at: at + udp::LENGTH_AT,
                why: MalformedReason::BadLength(length),
            });
        } else if whole {
            self.payload_end = (at + length) as u16;
        }
    }

    #[inline]
    fn read_tcp_length(&mut self, length: usize, at: usize, end: usize) {
        if length < tcp::HEADER_BYTES || (self.fragment == Fragment::Whole && length > end - at) {
            self.fail(Malformed { at: at + 12, why: MalformedReason::BadLength(length) });
        } else {
            self.payload_at = (at + length).min(end) as u16;
        }
    }

    /// Returns the range of the innermost payload.
    pub fn payload(&self) -> Range<usize> {
        self.payload_at.into()..self.payload_end.into()
    }
}

#[cfg(test)]
mod tests;
