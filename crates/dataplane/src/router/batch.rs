//! Packets that a router processes together, by the first bytes of their frames.
//!
//! A row has plain packets only: valid IPv4 without options, with a TTL above one, and from and to
//! hosts. RFC 1812, section 5.2.2, defines the checks. The code that processes whole frames handles
//! all other packets.
//!
//! Invariant: a row has frames that one port received, in the order of their arrival.

use core::net::Ipv4Addr;

use packet::frame::PortNo;
use packet::header::{ethernet, ethernet::Mac, ipv4, u16_at};

use super::{is_host, is_martian};
use crate::forwarder::{FrameHead, SIGHTS_MAX};
use crate::route_table::{HopId, RouteTable};

/// Version 4, and a header of five words.
const PLAIN: u8 = 0x45;

/// A plain packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet {
    pub(super) destination: Ipv4Addr,
    /// Total length in bytes.
    pub(super) total: u16,
    /// Length of the frame in bytes.
    pub(super) bytes: usize,
}

/// Headers and output port of a forwarded packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct NextHopResult {
    pub(super) port: PortNo,
    /// Address of the neighbor.
    pub(super) destination: Mac,
    /// Address of the output interface.
    pub(super) source: Mac,
    /// Length of the frame on output.
    pub(super) bytes: usize,
}

/// A row of packets.
#[derive(Debug)]
pub(super) struct BatchPackets {
    count: usize,
    packets: [Option<Packet>; SIGHTS_MAX],
    hops: [Option<HopId>; SIGHTS_MAX],
    onward: [NextHopResult; SIGHTS_MAX],
}

impl Default for BatchPackets {
    fn default() -> BatchPackets {
        let onward = NextHopResult { port: 0, destination: [0; 6], source: [0; 6], bytes: 0 };
        BatchPackets {
            count: 0,
            packets: [None; SIGHTS_MAX],
            hops: [None; SIGHTS_MAX],
            onward: [onward; SIGHTS_MAX],
        }
    }
}

impl Packet {
    /// Returns the plain packet in a frame for this station, if there is one.
    #[inline]
    fn of(sight: FrameHead<'_>, own: &Mac) -> Option<Packet> {
        let FrameHead { head, bytes } = sight;
        let headers = head.get(..ethernet::HEADER_BYTES + ipv4::HEADER_BYTES)?;
        let (link, header) = headers.split_at(ethernet::HEADER_BYTES);
        let view = ipv4::View::new(header)?;
        let (total, destination) = (view.total_length(), view.destination());
        let is_plain = link[ethernet::DESTINATION] == own[..]
            && u16_at(link, ethernet::TYPE.start) == ethernet::TYPE_IPV4
            && header[0] == PLAIN
            && (ipv4::HEADER_BYTES..=bytes - ethernet::HEADER_BYTES).contains(&total.into())
            && view.ttl() > 1
            && is_host(view.source())
            && destination.octets()[0] < 224
            && !is_martian(destination)
            && ipv4::checksum_is_right(header);
        is_plain.then_some(Packet { destination, total, bytes })
    }
}

impl NextHopResult {
    /// Whether the frame keeps its length, or its new length is within the visible bytes.
    #[inline]
    pub(super) fn fits(&self, sight: &FrameHead<'_>) -> bool {
        self.bytes == sight.bytes || self.bytes <= sight.head.len()
    }

    /// Rewrites the headers in place, and returns the new length of the frame.
    #[inline]
    pub(super) fn apply(&self, head: &mut [u8]) -> usize {
        head[ethernet::DESTINATION].copy_from_slice(&self.destination);
        head[ethernet::SOURCE].copy_from_slice(&self.source);
        ipv4::decrement_ttl(&mut head[ethernet::HEADER_BYTES..]);
        self.bytes
    }
}

impl BatchPackets {
    /// Adds frames for the station `own`.
    #[inline]
    pub(super) fn see<'a>(
        &mut self,
        sights: impl ExactSizeIterator<Item = FrameHead<'a>>,
        own: &Mac,
    ) {
        self.count = sights.len();
        for (packet, sight) in self.packets.iter_mut().zip(sights) {
            *packet = Packet::of(sight, own);
        }
    }

    /// Prefetches the memory that the route lookups read first.
    #[inline]
    pub(super) fn foresee(&self, routes: &RouteTable) {
        let packets = self.packets[..self.count].iter().flatten();
        packets.for_each(|packet| routes.foresee(packet.destination));
    }

    /// Finds the routes of the packets.
    #[inline]
    pub(super) fn find_routes(&mut self, routes: &RouteTable) {
        let mut addresses = [Ipv4Addr::UNSPECIFIED; SIGHTS_MAX];
        for (address, packet) in addresses.iter_mut().zip(&self.packets[..self.count]) {
            *address = packet.map_or(Ipv4Addr::UNSPECIFIED, |packet| packet.destination);
        }
        routes.lookup_many(&addresses[..self.count], &mut self.hops);
    }

    /// Returns a packet, if it is plain.
    #[inline]
    pub(super) fn packet(&self, place: usize) -> Option<Packet> {
        self.packets[place]
    }

    /// Returns a packet's next hop, if there is one.
    #[inline]
    pub(super) fn hop(&self, place: usize) -> Option<HopId> {
        self.hops[place]
    }

    /// Stores how a packet is forwarded.
    #[inline]
    pub(super) fn keep(&mut self, place: usize, onward: NextHopResult) {
        self.onward[place] = onward;
    }

    /// Returns how a packet is forwarded.
    #[inline]
    pub(super) fn kept(&self, place: usize) -> &NextHopResult {
        &self.onward[place]
    }
}
