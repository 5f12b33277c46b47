//! IPv4 router: forwards each packet to the next hop of its longest matching prefix.
//!
//! Sources:
//! - RFC 1812, section 5.2.2 for header checks, 5.2.1 for the order of the steps, 5.3.1 for the
//!   TTL, 4.2.2.7 for fragmentation, 5.3.7 for invalid addresses, and 4.3 for ICMP errors (`icmp`);
//! - RFC 826 for ARP (`arp`);
//! - RFC 2644: directed broadcasts are not routed.
//!
//! Limitations:
//! - Options are forwarded but not processed, and source-routed packets are dropped.
//! - Packets are not reassembled.
//! - The router sends no redirects.
//! - A prefix has one next hop.
//! - Tagged frames are not routed.
//! - There is no reverse path check of source addresses.
//!
//! Frames are processed in rows. Plain packets for a neighbor with a known address are routed by
//! their first bytes, in the receive buffer or in a copy. All other frames are processed one by
//! one.
//!
//! Invariant: frames received - packets fragmented + fragments created = forwarded + consumed +
//! dropped (each with one reason) + waiting for a neighbor. The router's own packets have separate
//! counters.

use core::net::Ipv4Addr;

use packet::frame::{Batch, Frame, PortNo};
use packet::header::{array_at, ethernet, ethernet::Mac, ipv4, u16_at};
use packet::time::Nanos;

use crate::counter::{DropCounters, DropReason};
use crate::forwarder::{
    BatchDecision, Decision, Forwarder, FrameHead, GROWS_MAX, Outputs, PendingBatch, SIGHTS_MAX,
    Sent,
};
use crate::neighbor::{
    DueWork, NeighborId, NeighborTable, Place, STEPS_PER_TICK, Wait, WaitingFrame,
};
use crate::route_cache::RouteCache;
use crate::route_table::RouteMirror;
use crate::route_table::{HopId, NextHop, RouteTable};

mod arp;
pub mod fragment;
mod icmp;
mod batch;
mod setup;

use batch::{BatchPackets, NextHopResult};

pub use icmp::IcmpLimit;
pub use setup::{Interface, MTU_DEFAULT, MTU_MIN, RouterError, Settings};

/// Maximum interval between two ticks.
pub const TICK_PAUSE_MAX: Nanos = Nanos::from_millis(100);

/// Number of routes of flushed tables that one tick frees.
const FREED_PER_TICK: usize = 512;

/// Counters of received frames and of the router's own packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RouterCounters {
    /// Forwarded frames.
    pub forwarded: u64,
    /// Frames for the router itself that it processed.
    pub consumed: u64,
    /// Packets that were fragmented.
    pub fragmented: u64,
    /// Fragments created.
    pub fragments: u64,
    /// ARP requests sent.
    pub arp_requests: u64,
    /// ARP replies sent.
    pub arp_replies: u64,
    /// Echo replies sent.
    pub echo_replies: u64,
    /// ICMP errors sent.
    pub icmp_errors: u64,
    /// ICMP errors suppressed by the rate limit.
    pub icmp_limited: u64,
    /// The router's own packets that were dropped on output.
    pub own_lost: u64,
}

/// An IPv4 router.
#[derive(Debug)]
pub struct Router {
    interfaces: Vec<Interface>,
    /// Index in `interfaces`, by port.
    place: Vec<Option<u16>>,
    routes: RouteTable,
    route_mirror: Option<Box<dyn RouteMirror>>,
    cache: Option<RouteCache>,
    neighbors: NeighborTable,
    /// The neighbor of each gateway, by next hop number, once it was found.
    hop_neighbors: Vec<Option<NeighborId>>,
    /// Flushed route tables that are being freed.
    leaving: Vec<RouteTable>,
    icmp: icmp::IcmpRateLimiter,
    identification: u16,
    /// The current frames.
    row: Box<BatchPackets>,
    /// The next frames, if they are known: the memory for their lookups is being prefetched.
    ahead: Box<BatchPackets>,
    /// Whether `ahead` has frames.
    is_ahead: bool,
    /// Frame counters.
    pub counters: RouterCounters,
    /// Dropped frames, by reason.
    pub drops: DropCounters,
}

/// State that the processing steps of one frame share.
struct FrameContext<'a> {
    now: Nanos,
    out: &'a mut Outputs,
}

/// Result of processing a received frame.
enum FrameOutcome {
    /// Queued, waiting, or already counted.
    Done,
    /// Processed by the router itself.
    Consumed,
    /// Dropped.
    Lost(DropReason),
}

/// Output interface and neighbor of a packet.
#[derive(Debug, Clone, Copy)]
struct Target {
    /// The next hop number, if it is a gateway, to store its neighbor.
    gateway: Option<HopId>,
    interface: usize,
    place: Place,
}

impl Router {
    fn interface(&self, port: PortNo) -> Option<usize> {
        self.place.get(port as usize).copied().flatten().map(usize::from)
    }

    fn receive(&mut self, at: usize, frame: &mut Frame, way: &mut FrameContext) -> FrameOutcome {
        let bytes = frame.bytes();
        if bytes.len() < ethernet::HEADER_BYTES {
            return FrameOutcome::Lost(DropReason::TooShort);
        }
        let destination: Mac = array_at(bytes, 0);
        let group = ethernet::is_group(&destination);
        if !group && destination != self.interfaces[at].mac {
            return FrameOutcome::Lost(DropReason::NotForUs);
        }
        match u16_at(bytes, ethernet::TYPE.start) {
            ethernet::TYPE_IPV4 => self.receive_ipv4(at, frame, group, way),
            ethernet::TYPE_ARP => self.receive_arp(at, frame, way),
            _ => FrameOutcome::Lost(DropReason::NotRouted),
        }
    }

    /// Steps 1 to 4 of RFC 1812, section 5.2.1: checks, and local delivery.
    fn receive_ipv4(
        &mut self,
        at: usize,
        frame: &mut Frame,
        group: bool,
        way: &mut FrameContext,
    ) -> FrameOutcome {
        let packet = &frame.bytes()[ethernet::HEADER_BYTES..];
        let Some(view) = ipv4::View::new(packet) else {
            return FrameOutcome::Lost(DropReason::BadIpHeader);
        };
        let Ok(length) = ipv4::check_lengths(packet, &view) else {
            return FrameOutcome::Lost(DropReason::BadIpHeader);
        };
        if !ipv4::checksum_is_right(&packet[..length]) {
            return FrameOutcome::Lost(DropReason::BadIpChecksum);
        }
        let (source, destination) = (view.source(), view.destination());
        if !is_host(source) || is_martian(destination) {
            return FrameOutcome::Lost(DropReason::Martian);
        }
        if group || destination.octets()[0] >= 224 {
            return FrameOutcome::Lost(DropReason::NotUnicast);
        }
        if length > ipv4::HEADER_BYTES && is_source_routed(view.options()) {
            return FrameOutcome::Lost(DropReason::SourceRouted);
        }
        // Bytes after the packet are padding: keep only what the minimum frame length requires.
        let end = ethernet::HEADER_BYTES + usize::from(view.total_length());
        frame.truncate(end.max(ethernet::FRAME_BYTES_MIN));
        let hop = self.lookup(destination);
        match hop.map(|hop| self.routes.hop(hop)) {
            None => {
                self.tell(at, frame, icmp::IcmpReason::NoRoute, way);
                FrameOutcome::Lost(DropReason::NoRoute)
            }
            Some(NextHop::Broadcast) => FrameOutcome::Lost(DropReason::NotUnicast),
            Some(NextHop::Local) => self.receive_own(at, frame, way),
            Some(_) => self.forward_ipv4(at, frame, hop, way),
        }
    }

    /// Steps 5 to 9: TTL, length and output.
    fn forward_ipv4(
        &mut self,
        at: usize,
        frame: &mut Frame,
        hop: Option<HopId>,
        way: &mut FrameContext,
    ) -> FrameOutcome {
        let packet = &mut frame.bytes_mut()[ethernet::HEADER_BYTES..];
        let view = ipv4::View::new(packet).expect("the header was checked before");
        let (ttl, total, must_stay_whole) = (view.ttl(), view.total_length(), view.dont_fragment());
        let target = hop.and_then(|hop| self.target(hop, view.destination()));
        let Some(target) = target else { return FrameOutcome::Lost(DropReason::NoRoute) };
        if ttl <= 1 {
            self.tell(at, frame, icmp::IcmpReason::TtlExpired, way);
            return FrameOutcome::Lost(DropReason::TtlExpired);
        }
        let mtu = self.interfaces[target.interface].mtu;
        if must_stay_whole && total > mtu {
            self.tell(at, frame, icmp::IcmpReason::TooLong { mtu }, way);
            return FrameOutcome::Lost(DropReason::TooLong);
        }
        ipv4::decrement_ttl(packet);
        self.deliver(target, frame, Some(self.interfaces[at].port), way);
        FrameOutcome::Done
    }

    /// Returns the neighbor of a next hop; `None` if it is the router itself.
    #[inline]
    fn target(&self, hop: HopId, destination: Ipv4Addr) -> Option<Target> {
        let (gateway, place) = match self.routes.hop(hop) {
            NextHop::Gateway { port, via } => (Some(hop), Place { port, address: via }),
            NextHop::Link { port } => (None, Place { port, address: destination }),
            NextHop::Local | NextHop::Broadcast => return None,
        };
        Some(Target { gateway, interface: self.interface(place.port)?, place })
    }

    /// Sends a finished packet to a neighbor as soon as its address is known, with fragmentation if
    /// the packet exceeds the MTU. `from` is the ingress port, if it was received.
    #[inline]
    fn deliver(
        &mut self,
        target: Target,
        frame: &mut Frame,
        from: Option<PortNo>,
        way: &mut FrameContext,
    ) {
        let total = u16_at(frame.bytes(), ethernet::HEADER_BYTES + ipv4::TOTAL_LENGTH_AT);
        if total > self.interfaces[target.interface].mtu {
            return self.deliver_pieces(target, frame, from, way);
        }
        let mac = self.neighbor_mac(target);
        let bytes = frame.bytes_mut();
        bytes[ethernet::SOURCE].copy_from_slice(&self.interfaces[target.interface].mac);
        match mac {
            Some(mac) => {
                bytes[ethernet::DESTINATION].copy_from_slice(&mac);
                let sent = way.out.send(target.place.port, frame);
                self.account(sent, from);
            }
            None => self.wait(target, frame, from, way),
        }
    }

    #[inline]
    fn neighbor_mac(&mut self, target: Target) -> Option<Mac> {
        let Some(HopId(hop)) = target.gateway else {
            let id = self.neighbors.find(target.place)?;
            return self.neighbors.mac_at(id, target.place);
        };
        let hop = hop as usize;
        if let Some(&Some(id)) = self.hop_neighbors.get(hop)
            && let Some(mac) = self.neighbors.mac_at(id, target.place)
        {
            return Some(mac);
        }
        let id = self.neighbors.find(target.place)?;
        if self.hop_neighbors.len() <= hop {
            self.hop_neighbors.resize(self.routes.hops_end(), None);
        }
        self.hop_neighbors[hop] = Some(id);
        self.neighbors.mac_at(id, target.place)
    }

    #[cold]
    fn wait(
        &mut self,
        target: Target,
        frame: &mut Frame,
        from: Option<PortNo>,
        way: &mut FrameContext,
    ) {
        let waiting = WaitingFrame { frame: std::mem::take(frame), from };
        match self.neighbors.wait(target.place, waiting, way.now) {
            Wait::Ask => self.ask(target.place, way.out),
            Wait::Queued => {}
            Wait::Displaced(oldest) => self.lose(oldest.from, DropReason::NeighbourQueueFull),
            Wait::Refused(waiting) => self.lose(waiting.from, DropReason::NoNeighbour),
        }
    }

    /// Sends a frame that waited for this address.
    fn release(&mut self, interface: usize, mac: Mac, waiting: WaitingFrame, out: &mut Outputs) {
        let WaitingFrame { mut frame, from } = waiting;
        frame.bytes_mut()[ethernet::DESTINATION].copy_from_slice(&mac);
        let sent = out.send(self.interfaces[interface].port, &mut frame);
        self.account(sent, from);
    }

    #[inline]
    fn account(&mut self, sent: Sent, from: Option<PortNo>) {
        match (sent, from) {
            (Sent::Queued, Some(_)) => self.counters.forwarded += 1,
            (Sent::Queued, None) => {}
            (Sent::QueueFull, from) => self.lose(from, DropReason::OutputQueueFull),
            (Sent::NoSuchPort, from) => self.lose(from, DropReason::NoSuchPort),
        }
    }

    fn lose(&mut self, from: Option<PortNo>, why: DropReason) {
        match from {
            Some(_) => self.drops.add(why),
            None => self.counters.own_lost += 1,
        }
    }

    /// Finds the routes of the row's packets, unless there is a cache to look in first.
    #[inline]
    fn find_routes(&mut self) {
        if self.cache.is_none() {
            self.row.find_routes(&self.routes);
        }
    }

    /// Returns how to forward a packet of the row, if it is plain.
    #[inline]
    fn onward(&mut self, place: usize) -> Option<NextHopResult> {
        let packet = self.row.packet(place)?;
        let hop = match self.cache {
            None => self.row.hop(place)?,
            Some(_) => self.lookup(packet.destination)?,
        };
        let target = self.target(hop, packet.destination)?;
        let interface = &self.interfaces[target.interface];
        if packet.total > interface.mtu {
            return None;
        }
        let (port, source) = (target.place.port, interface.mac);
        let destination = self.neighbor_mac(target)?;
        // Bytes after the packet are padding: keep only what the minimum frame length requires.
        let end = ethernet::HEADER_BYTES + usize::from(packet.total);
        let bytes = packet.bytes.min(end.max(ethernet::FRAME_BYTES_MIN));
        Some(NextHopResult { port, destination, source, bytes })
    }

    #[inline]
    fn lookup(&mut self, destination: Ipv4Addr) -> Option<HopId> {
        let routes = &self.routes;
        match &mut self.cache {
            None => routes.lookup(destination),
            Some(cache) => {
                cache.lookup(destination, routes.generation, || routes.lookup(destination))
            }
        }
    }
}

impl Forwarder for Router {
    type Pending<'a> = RouterBatch<'a>;

    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        let Some(at) = self.interface(port) else {
            return self.drops.add_many(DropReason::NotForUs, batch.len() as u64);
        };
        let mut way = FrameContext { now, out };
        for frames in batch.frames_mut().chunks_mut(SIGHTS_MAX) {
            let mac = self.interfaces[at].mac;
            self.row
                .see(frames.iter().map(|it| FrameHead { head: it.bytes(), bytes: it.len() }), &mac);
            self.find_routes();
            for (place, frame) in frames.iter_mut().enumerate() {
                if let Some(onward) = self.onward(place) {
                    let bytes = onward.apply(frame.bytes_mut());
                    frame.truncate(bytes);
                    let sent = way.out.send(onward.port, frame);
                    self.account(sent, Some(port));
                    continue;
                }
                match self.receive(at, frame, &mut way) {
                    FrameOutcome::Done => {}
                    FrameOutcome::Consumed => self.counters.consumed += 1,
                    FrameOutcome::Lost(why) => self.drops.add(why),
                }
            }
        }
    }

    fn decides(&self) -> bool {
        true
    }

    /// Decides packets until one in a row needs more than its first bytes and known state.
    fn decide(
        &mut self,
        port: PortNo,
        [sights, next]: [&[FrameHead<'_>]; 2],
        _now: Nanos,
        decisions: &mut [Decision; SIGHTS_MAX],
    ) -> BatchDecision<RouterBatch<'_>> {
        let Some(at) = self.interface(port) else { return BatchDecision::Done(0) };
        let mac = self.interfaces[at].mac;
        if !self.is_ahead {
            self.ahead.see(sights.iter().copied(), &mac);
        }
        std::mem::swap(&mut self.row, &mut self.ahead);
        self.is_ahead = !next.is_empty();
        if self.is_ahead {
            self.ahead.see(next.iter().copied(), &mac);
            self.ahead.foresee(&self.routes);
        }
        self.find_routes();
        for (place, (sight, decision)) in sights.iter().zip(decisions).enumerate() {
            match self.onward(place) {
                // A packet that leaves by its ingress port needs its own buffer.
                Some(onward) if onward.port != port && onward.fits(sight) => {
                    self.row.keep(place, onward);
                    *decision = Decision::Output(onward.port);
                    self.counters.forwarded += 1;
                }
                _ => return BatchDecision::Rewrites(place, RouterBatch(&self.row)),
            }
        }
        BatchDecision::Rewrites(sights.len(), RouterBatch(&self.row))
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        let mut steps = STEPS_PER_TICK;
        let mut way = FrameContext { now, out };
        while let Some(due) = self.neighbors.due(now, &mut steps) {
            match due {
                DueWork::Ask(place) => self.ask(place, way.out),
                DueWork::GivenUp(_, waiting) => self.give_up(waiting, &mut way),
            }
        }
        let mut steps = FREED_PER_TICK;
        if self.leaving.last_mut().is_some_and(|table| !table.dismantle(&mut steps)) {
            self.leaving.pop();
        }
        if !self.leaving.is_empty() {
            return Some(now);
        }
        // Frames in the meantime may send requests, so a next tick is always due.
        let pause = now.saturating_add(TICK_PAUSE_MAX);
        Some(self.neighbors.next_due().map_or(pause, |due| due.clamp(now, pause)))
    }
}

/// The next hops of a batch.
pub struct RouterBatch<'a>(&'a BatchPackets);

impl PendingBatch for RouterBatch<'_> {
    #[inline]
    fn rewrite(&self, place: usize, head: &mut [u8], bytes: usize) -> (usize, usize) {
        (GROWS_MAX, self.0.kept(place).apply(&mut head[GROWS_MAX..]).min(bytes))
    }
}

/// Whether a host can have this address: it is not in network 0, loopback, multicast or reserved
/// (RFC 1812, section 5.3.7).
#[inline]
fn is_host(address: Ipv4Addr) -> bool {
    !matches!(address.octets()[0], 0 | 127 | 224..)
}

/// Whether this is an invalid destination address (martian).
#[inline]
fn is_martian(address: Ipv4Addr) -> bool {
    matches!(address.octets()[0], 0 | 127 | 240..) && address != Ipv4Addr::BROADCAST
}

/// Whether an option requests loose or strict source routing.
fn is_source_routed(mut options: &[u8]) -> bool {
    loop {
        match options {
            [] | [0, ..] => return false,
            [131 | 137, ..] => return true,
            [1, rest @ ..] => options = rest,
            [_, length, ..] if *length >= 2 => {
                options = options.get(usize::from(*length)..).unwrap_or_default();
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests;
