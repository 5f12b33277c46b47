//! A frame with views of its layers, and checksum functions.
//!
//! Every returned view contains its complete header, so reading it cannot fail. Checksums cover the
//! data given by the length fields, without padding.

use super::{Fragment, Layers, Network, Transport};
use crate::checksum::{self, InternetChecksum};
use crate::error::{Malformed, MalformedReason};
use crate::header::{
    arp, ethernet, icmp, icmpv6, ipv4, ipv6, mpls, pbb, put_u16, sctp, tcp, u16_at, udp, vlan,
};

/// A frame with the positions of its layers.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    /// Positions of the layers.
    pub layers: Layers,
}

impl<'a> Packet<'a> {
    /// Parses any bytes, as far as they are valid.
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Self {
        Packet { bytes, layers: Layers::of(bytes) }
    }

    /// Parses bytes strictly: a valid header on each layer, without contradictions. Transport
    /// checksums are not verified ([`Packet::verify_checksums`] does that), because a frame from
    /// the kernel with pending checksum offload has none yet.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        ethernet::Header::parse_source(bytes)?;
        let packet = Packet::of(bytes);
        if let Some(fault) = packet.layers.fault {
            return Err(fault);
        }
        let at = usize::from(packet.layers.network_at);
        let inside = &bytes[at..];
        match packet.layers.network {
            Network::Ipv4 => ipv4::Header::parse(inside).map(|_| packet),
            Network::Ipv6 => ipv6::Header::parse(inside).map(|_| packet),
            Network::Arp | Network::None => Ok(packet),
        }
        .map_err(|fault| fault.shifted(at))
    }

    /// Returns the whole frame.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The Ethernet header.
    #[inline]
    pub fn ethernet(&self) -> Option<ethernet::View<'a>> {
        ethernet::View::new(self.bytes)
    }

    /// Returns the VLAN tag at this depth, 0 for the outermost.
    #[inline]
    pub fn vlan(&self, depth: u8) -> Option<vlan::View<'a>> {
        let at = ethernet::HEADER_BYTES + vlan::TAG_BYTES * usize::from(depth);
        if depth < self.layers.tags { vlan::View::new(&self.bytes[at..]) } else { None }
    }

    /// Returns the 802.1ah tag after the VLAN tags. The customer's frame follows it.
    pub fn pbb(&self) -> Option<pbb::View<'a>> {
        self.typed(&[ethernet::TYPE_PBB]).and_then(pbb::View::new)
    }

    /// Returns the MPLS entries from the outermost to the bottom of the stack. Their payload is not
    /// parsed, because no field identifies it.
    pub fn mpls(&self) -> impl Iterator<Item = mpls::View<'a>> + use<'a> {
        let types = [ethernet::TYPE_MPLS, ethernet::TYPE_MPLS_MULTICAST];
        let stack = self.typed(&types).unwrap_or_default();
        let mut entries = stack.chunks_exact(mpls::ENTRY_BYTES).filter_map(mpls::View::new);
        let mut done = false;
        std::iter::from_fn(move || {
            let entry = if done { None } else { entries.next() };
            done |= entry.is_some_and(|entry| entry.is_bottom());
            entry
        })
    }

    /// The ARP message.
    #[inline]
    pub fn arp(&self) -> Option<arp::View<'a>> {
        self.network(Network::Arp).and_then(arp::View::new)
    }

    /// The IPv4 header.
    #[inline]
    pub fn ipv4(&self) -> Option<ipv4::View<'a>> {
        self.network(Network::Ipv4).and_then(ipv4::View::new)
    }

    /// The IPv6 header.
    #[inline]
    pub fn ipv6(&self) -> Option<ipv6::View<'a>> {
        self.network(Network::Ipv6).and_then(ipv6::View::new)
    }

    /// The ICMP header.
    pub fn icmp(&self) -> Option<icmp::View<'a>> {
        self.transport(Transport::Icmp).and_then(icmp::View::new)
    }

    /// The ICMPv6 header.
    pub fn icmpv6(&self) -> Option<icmpv6::View<'a>> {
        self.transport(Transport::Icmpv6).and_then(icmpv6::View::new)
    }

    /// The TCP header.
    #[inline]
    pub fn tcp(&self) -> Option<tcp::View<'a>> {
        self.transport(Transport::Tcp).and_then(tcp::View::new)
    }

    /// The UDP header.
    #[inline]
    pub fn udp(&self) -> Option<udp::View<'a>> {
        self.transport(Transport::Udp).and_then(udp::View::new)
    }

    /// The SCTP header.
    pub fn sctp(&self) -> Option<sctp::View<'a>> {
        self.transport(Transport::Sctp).and_then(sctp::View::new)
    }

    /// Source and destination port of TCP, UDP or SCTP.
    #[inline]
    pub fn ports(&self) -> Option<(u16, u16)> {
        let at = usize::from(self.layers.transport_at);
        match self.layers.transport {
            Transport::Tcp | Transport::Udp | Transport::Sctp => {
                Some((u16_at(self.bytes, at), u16_at(self.bytes, at + 2)))
            }
            Transport::None | Transport::Icmp | Transport::Icmpv6 => None,
        }
    }

    /// The innermost payload, without padding.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.layers.payload()]
    }

    /// Header and payload of the transport layer, without padding, if there is one.
    pub fn transport_bytes(&self) -> Option<&'a [u8]> {
        let range = self.layers.transport_at.into()..self.layers.payload_end.into();
        (self.layers.transport != Transport::None).then(|| &self.bytes[range])
    }

    #[inline]
    fn network(&self, kind: Network) -> Option<&'a [u8]> {
        let range = self.layers.network_at.into()..self.layers.payload_end.into();
        (self.layers.network == kind).then(|| &self.bytes[range])
    }

    /// Returns the data after the tags, if its EtherType is one of these.
    fn typed(&self, types: &[u16]) -> Option<&'a [u8]> {
        let range = self.layers.network_at.into()..self.layers.payload_end.into();
        types.contains(&self.layers.ether_type).then(|| &self.bytes[range])
    }

    #[inline]
    fn transport(&self, kind: Transport) -> Option<&'a [u8]> {
        (self.layers.transport == kind).then(|| self.transport_bytes()).flatten()
    }

    /// Verifies the checksums of IPv4 header and transport. A UDP checksum of zero is valid in
    /// IPv4. Transport checksums of fragments cannot be verified and pass.
    pub fn verify_checksums(&self) -> Result<(), Malformed> {
        if let Some(header) = self.ipv4().and_then(|view| view.header()) {
            let at = usize::from(self.layers.network_at) + ipv4::CHECKSUM_AT;
            let have = u16_at(self.bytes, at);
            let want = InternetChecksum::default().bytes(header).u16(!have).checksum();
            refuse_unless(checksum::sum(header) == 0xffff, at, want.into(), have.into())?;
        }
        if self.layers.fragment != Fragment::Whole || self.layers.fault.is_some() {
            return Ok(());
        }
        let Some(bytes) = self.transport_bytes() else { return Ok(()) };
        let start = usize::from(self.layers.transport_at);
        if self.layers.transport == Transport::Sctp {
            let (want, have) = (sctp::checksum(bytes), sctp::Header::parse(bytes)?.0.checksum);
            return refuse_unless(want == have, start + sctp::CHECKSUM_AT, want, have);
        }
        let (at, pseudo) = self.checksum_place(bytes.len());
        let have = u16_at(bytes, at);
        let none = self.layers.transport == Transport::Udp && have == 0;
        if none && self.layers.network == Network::Ipv4 {
            return Ok(());
        }
        let want = pseudo.bytes_around(bytes, at).checksum();
        let right = !none && pseudo.bytes(bytes).fold() == 0xffff;
        refuse_unless(right, start + at, want.into(), have.into())
    }

    /// Returns the offset of the Internet checksum in the transport header, and the sum of its
    /// pseudo-header.
    fn checksum_place(&self, length: usize) -> (usize, InternetChecksum) {
        let protocol = self.layers.protocol;
        let pseudo = match (self.ipv4(), self.ipv6()) {
            (Some(view), _) => {
                checksum::pseudo_ipv4(view.source(), view.destination(), protocol, length as u16)
            }
            (None, Some(view)) => {
                let destination = view.final_destination();
                checksum::pseudo_ipv6(view.source(), destination, protocol, length as u32)
            }
            (None, None) => InternetChecksum::default(),
        };
        match self.layers.transport {
            Transport::Tcp => (tcp::CHECKSUM_AT, pseudo),
            Transport::Udp => (udp::CHECKSUM_AT, pseudo),
            Transport::Icmp => (icmp::CHECKSUM_AT, InternetChecksum::default()),
            _ => (icmpv6::CHECKSUM_AT, pseudo),
        }
    }
}

/// Computes the transport checksum of a complete and valid packet and writes it. Returns false
/// without a change if there is no transport header, a fragment or a fault.
pub fn set_transport_checksum(bytes: &mut [u8]) -> bool {
    let packet = Packet::of(bytes);
    let layers = packet.layers;
    let Some(inside) = packet.transport_bytes() else { return false };
    if layers.fragment != Fragment::Whole || layers.fault.is_some() {
        return false;
    }
    let start = usize::from(layers.transport_at);
    if layers.transport == Transport::Sctp {
        let crc = sctp::checksum(inside).to_le_bytes();
        bytes[start + sctp::CHECKSUM_AT..start + sctp::HEADER_BYTES].copy_from_slice(&crc);
        return true;
    }
    let (at, pseudo) = packet.checksum_place(inside.len());
    let sum = pseudo.bytes_around(inside, at);
    let udp = layers.transport == Transport::Udp;
    let checksum = if udp { sum.checksum_udp() } else { sum.checksum() };
    put_u16(bytes, start + at, checksum);
    true
}

fn refuse_unless(right: bool, at: usize, want: u32, have: u32) -> Result<(), Malformed> {
    if right {
        Ok(())
    } else {
        Err(Malformed { at, why: MalformedReason::BadChecksum { want, have } })
    }
}
