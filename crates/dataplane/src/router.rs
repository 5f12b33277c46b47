//! An IPv4 router: each packet goes to the next hop of the longest prefix that holds its
//! destination.
//!
//! RFC 1812: section 5.2.2 for what a header must fulfil, 5.2.1 for the order of the steps, 5.3.1
//! for the time to live, 4.2.2.7 for fragments, 5.3.7 for addresses that no packet may have, 4.3
//! for what is told to senders ([`icmp`]); RFC 826 for neighbours ([`arp`]); RFC 2644: directed
//! broadcasts are not routed.
//!
//! What is absent: options are carried and not acted upon, source-routed packets are dropped;
//! nothing is reassembled; no redirects are sent; one next hop for a prefix; tagged frames are not
//! routed; there is no check that a source lies behind the port that it came from.
//!
//! Invariant: frames received - packets fragmented + fragments made = forwarded + consumed +
//! dropped, each for one reason, + waiting for a neighbour; what the router sends on its own is
//! counted apart.

use std::net::Ipv4Addr;

use packet::frame::{Batch, Frame, PortNo};
use packet::header::{array_at, ethernet, ethernet::Mac, ipv4, u16_at};
use packet::time::Nanos;

use crate::counter::{DropCounters, DropReason};
use crate::forwarder::{Forwarder, Outputs, Sent};
use crate::neighbor::{
    Due, NEIGHBORS_MAX_DEFAULT, NeighborId, NeighborTable, Place, STEPS_PER_TICK, Timing, Wait,
    Waiting,
};
use crate::route_cache::RouteCache;
use crate::route_table::{HopId, NextHop, Prefix, ROUTES_MAX_DEFAULT, RouteTable, RouteTableFull};

/// Questions to neighbours, and answers.
mod arp;
/// A packet too long for its link, in pieces.
mod fragment;
/// What the router tells senders, and answers to them.
mod icmp;

pub use icmp::IcmpLimit;

/// The longest time for which a router sleeps.
pub const TICK_PAUSE_MAX: Nanos = Nanos::from_millis(100);

/// The longest packet that an interface carries unless told otherwise, in bytes.
pub const MTU_DEFAULT: u16 = 1500;

/// The shortest that RFC 791 lets an interface carry, in bytes.
pub const MTU_MIN: u16 = 68;

/// One interface of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The port that it is on.
    pub port: PortNo,
    /// Its hardware address.
    pub mac: Mac,
    /// Its addresses, each with the length of its network's prefix.
    pub addresses: Vec<(Ipv4Addr, u8)>,
    /// The longest packet that it carries, in bytes.
    pub mtu: u16,
}

/// How a router is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
    /// Routes that it can know, those of its own addresses and networks included.
    pub routes_max: usize,
    /// Neighbours that it can know.
    pub neighbors_max: usize,
    /// Destinations in the cache before the route table; 0 has no cache.
    pub cache_entries: usize,
    /// When neighbours are asked and forgotten.
    pub timing: Timing,
    /// How many errors it tells senders.
    pub icmp_limit: IcmpLimit,
    /// What makes places in its tables unpredictable.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            interfaces: Vec::new(),
            routes_max: ROUTES_MAX_DEFAULT,
            neighbors_max: NEIGHBORS_MAX_DEFAULT,
            cache_entries: 0,
            timing: Timing::default(),
            icmp_limit: IcmpLimit::default(),
            seed: 0x5eed,
        }
    }
}

/// Why a router cannot be set up as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouterError {
    /// Two interfaces on one port.
    InterfaceTwice(PortNo),
    /// An interface's hardware address is zero or that of a group.
    BadMac(PortNo),
    /// No host can have this address, or a prefix is longer than 32 bits.
    BadAddress(Ipv4Addr, u8),
    /// An interface carries only packets shorter than [`MTU_MIN`].
    BadMtu(u16),
    /// There is no interface on this port.
    NoInterface(PortNo),
    /// No interface has the network of this next hop.
    UnreachableHop(Ipv4Addr),
    /// The prefix is one of the router's own addresses.
    OwnAddress(Prefix),
    /// The route table is full.
    RoutesFull(RouteTableFull),
    /// The neighbour table is full: it holds this many.
    NeighborsFull(usize),
}

/// What happened to frames, and what the router sent on its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RouterCounters {
    /// Frames routed onwards.
    pub forwarded: u64,
    /// Frames for the router itself that it dealt with.
    pub consumed: u64,
    /// Packets that were cut in pieces.
    pub fragmented: u64,
    /// Those pieces.
    pub fragments: u64,
    /// ARP requests sent.
    pub arp_requests: u64,
    /// ARP replies sent.
    pub arp_replies: u64,
    /// Echo replies sent.
    pub echo_replies: u64,
    /// ICMP errors sent.
    pub icmp_errors: u64,
    /// ICMP errors not sent because too many were.
    pub icmp_limited: u64,
    /// Frames of its own that got lost on the way out.
    pub own_lost: u64,
}

/// An IPv4 router.
#[derive(Debug)]
pub struct Router {
    interfaces: Vec<Interface>,
    /// Place in `interfaces` by port.
    place: Vec<Option<u16>>,
    routes: RouteTable,
    cache: Option<RouteCache>,
    neighbors: NeighborTable,
    /// The neighbour of each gateway, by next hop's number, where it was found once.
    hop_neighbors: Vec<Option<NeighborId>>,
    icmp: icmp::Limiter,
    identification: u16,
    /// What happened to frames.
    pub counters: RouterCounters,
    /// Frames that were lost, by reason.
    pub drops: DropCounters,
}

/// What the steps of one frame share.
struct Way<'a> {
    now: Nanos,
    out: &'a mut Outputs,
}

/// What becomes of a received frame.
enum Fate {
    /// It was queued, waits, or is accounted for already.
    Done,
    /// It was for the router.
    Consumed,
    /// It is lost.
    Lost(DropReason),
}

/// Where exactly a packet goes next.
#[derive(Debug, Clone, Copy)]
struct Target {
    /// The next hop's number, if it is a gateway: its neighbour is then remembered.
    gateway: Option<HopId>,
    interface: usize,
    place: Place,
}

impl Router {
    /// A router with these interfaces: it knows their networks and addresses, and no other route.
    pub fn new(settings: &Settings) -> Result<Router, RouterError> {
        let mut router = Router {
            interfaces: Vec::new(),
            place: Vec::new(),
            routes: RouteTable::new(settings.routes_max),
            cache: RouteCache::new(settings.cache_entries, settings.seed),
            neighbors: NeighborTable::new(
                settings.neighbors_max,
                settings.timing,
                settings.seed ^ 1,
            ),
            hop_neighbors: Vec::new(),
            icmp: icmp::Limiter::new(settings.icmp_limit),
            identification: 0,
            counters: RouterCounters::default(),
            drops: DropCounters::default(),
        };
        settings.interfaces.iter().try_for_each(|interface| router.add_interface(interface))?;
        Ok(router)
    }

    fn add_interface(&mut self, interface: &Interface) -> Result<(), RouterError> {
        let port = interface.port;
        if self.interface(port).is_some() {
            return Err(RouterError::InterfaceTwice(port));
        }
        if ethernet::is_group(&interface.mac) || interface.mac == [0; 6] {
            return Err(RouterError::BadMac(port));
        }
        if interface.mtu < MTU_MIN {
            return Err(RouterError::BadMtu(interface.mtu));
        }
        if self.place.len() <= port as usize {
            self.place.resize(port as usize + 1, None);
        }
        self.place[port as usize] = Some(self.interfaces.len() as u16);
        self.interfaces.push(interface.clone());
        interface.addresses.iter().try_for_each(|&address| self.add_address(port, address))
    }

    /// Adds the routes for an address of an interface: the address, its network, and the two
    /// broadcast addresses of a network that has room for them (RFC 3021).
    fn add_address(&mut self, port: PortNo, address: (Ipv4Addr, u8)) -> Result<(), RouterError> {
        let (own, length) = address;
        let bad = RouterError::BadAddress(own, length);
        let network = Prefix::new(own, length).ok_or(bad)?;
        if !is_host(own) || length == 0 {
            return Err(bad);
        }
        let host = |address| Prefix::new(address, 32).expect("32 bits are not too many");
        let mut routes = vec![(host(own), NextHop::Local)];
        if length < 32 {
            routes.push((network, NextHop::Link { port }));
        }
        if length < 31 {
            routes.push((host(network.address()), NextHop::Broadcast));
            routes.push((host(network.last()), NextHop::Broadcast));
        }
        for (prefix, hop) in routes {
            // An address of the router stays one even if it is another network's last.
            if self.routes.get(prefix) != Some(NextHop::Local) {
                self.routes.insert(prefix, hop).map_err(RouterError::RoutesFull)?;
            }
        }
        Ok(())
    }

    fn interface(&self, port: PortNo) -> Option<usize> {
        self.place.get(port as usize).copied().flatten().map(usize::from)
    }

    /// The port whose interface has the network of this address.
    pub fn port_towards(&self, address: Ipv4Addr) -> Option<PortNo> {
        let has = |interface: &&Interface| {
            let nets = interface.addresses.iter();
            nets.filter_map(|&(own, length)| Prefix::new(own, length)).any(|net| net.holds(address))
        };
        self.interfaces.iter().find(has).map(|interface| interface.port)
    }

    /// Adds a route, or replaces the one for the same prefix: to a gateway, on `port` or on the
    /// port whose network has it, or (without a gateway) to the destination itself on `port`.
    pub fn add_route(
        &mut self,
        prefix: Prefix,
        via: Option<Ipv4Addr>,
        port: Option<PortNo>,
    ) -> Result<(), RouterError> {
        let towards = || via.and_then(|via| self.port_towards(via));
        let via_or_any = via.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let port = port.or_else(towards).ok_or(RouterError::UnreachableHop(via_or_any))?;
        if self.interface(port).is_none() {
            return Err(RouterError::NoInterface(port));
        }
        if let Some(NextHop::Local | NextHop::Broadcast) = self.routes.get(prefix) {
            return Err(RouterError::OwnAddress(prefix));
        }
        let hop = match via {
            Some(via) if !is_host(via) => return Err(RouterError::BadAddress(via, 32)),
            Some(via) => NextHop::Gateway { port, via },
            None => NextHop::Link { port },
        };
        self.routes.insert(prefix, hop).map_err(RouterError::RoutesFull)
    }

    /// Removes the route for exactly this prefix. False if there is none, or if it is one of the
    /// router's own addresses.
    pub fn remove_route(&mut self, prefix: Prefix) -> bool {
        match self.routes.get(prefix) {
            None | Some(NextHop::Local | NextHop::Broadcast) => false,
            Some(_) => self.routes.remove(prefix).is_some(),
        }
    }

    /// Removes all routes but those of the router's own addresses and networks, and says how many.
    pub fn flush_routes(&mut self) -> usize {
        let own: Vec<Prefix> = self
            .interfaces
            .iter()
            .flat_map(|interface| interface.addresses.iter())
            .filter_map(|&(address, length)| Prefix::new(address, length))
            .collect();
        let all: Vec<Prefix> = self.routes.iter().map(|(prefix, _)| prefix).collect();
        let others = all.into_iter().filter(|prefix| !own.contains(prefix));
        others.filter(|&prefix| self.remove_route(prefix)).count()
    }

    /// The routes, those of its own addresses included.
    pub fn routes(&self) -> &RouteTable {
        &self.routes
    }

    /// The neighbours.
    pub fn neighbors(&self) -> &NeighborTable {
        &self.neighbors
    }

    /// The cache of destinations, if there is one.
    pub fn cache(&self) -> Option<&RouteCache> {
        self.cache.as_ref()
    }

    /// Sets the hardware address of a neighbour, which then stays. Frames that waited for it go.
    pub fn set_neighbor(
        &mut self,
        place: Place,
        mac: Mac,
        out: &mut Outputs,
    ) -> Result<(), RouterError> {
        let Some(interface) = self.interface(place.port) else {
            return Err(RouterError::NoInterface(place.port));
        };
        if ethernet::is_group(&mac) || mac == [0; 6] {
            return Err(RouterError::BadMac(place.port));
        }
        let full = RouterError::NeighborsFull(self.neighbors.len());
        let waiting = self.neighbors.set(place, mac).ok_or(full)?;
        for frame in waiting {
            self.release(interface, mac, frame, out);
        }
        Ok(())
    }

    /// Forgets all neighbours whose address was learned, and says how many.
    pub fn flush_neighbors(&mut self) -> usize {
        self.neighbors.flush()
    }

    fn receive(&mut self, at: usize, frame: &mut Frame, way: &mut Way) -> Fate {
        let bytes = frame.bytes();
        if bytes.len() < ethernet::HEADER_BYTES {
            return Fate::Lost(DropReason::TooShort);
        }
        let destination: Mac = array_at(bytes, 0);
        let group = ethernet::is_group(&destination);
        if !group && destination != self.interfaces[at].mac {
            return Fate::Lost(DropReason::NotForUs);
        }
        match u16_at(bytes, ethernet::TYPE.start) {
            ethernet::TYPE_IPV4 => self.receive_ipv4(at, frame, group, way),
            ethernet::TYPE_ARP => self.receive_arp(at, frame, way),
            _ => Fate::Lost(DropReason::NotRouted),
        }
    }

    /// Steps 1 to 4 of RFC 1812 section 5.2.1: checks, and who it is for.
    fn receive_ipv4(&mut self, at: usize, frame: &mut Frame, group: bool, way: &mut Way) -> Fate {
        let packet = &frame.bytes()[ethernet::HEADER_BYTES..];
        let Some(view) = ipv4::View::new(packet) else {
            return Fate::Lost(DropReason::BadIpHeader);
        };
        let Ok(length) = ipv4::check_lengths(packet, &view) else {
            return Fate::Lost(DropReason::BadIpHeader);
        };
        if !ipv4::checksum_is_right(&packet[..length]) {
            return Fate::Lost(DropReason::BadIpChecksum);
        }
        let (source, destination) = (view.source(), view.destination());
        if !is_host(source) || is_martian(destination) {
            return Fate::Lost(DropReason::Martian);
        }
        if group || destination.octets()[0] >= 224 {
            return Fate::Lost(DropReason::NotUnicast);
        }
        if length > ipv4::HEADER_BYTES && is_source_routed(view.options()) {
            return Fate::Lost(DropReason::SourceRouted);
        }
        // What is behind the packet is padding, and goes no further than a short link needs.
        let end = ethernet::HEADER_BYTES + usize::from(view.total_length());
        frame.truncate(end.max(ethernet::FRAME_BYTES_MIN));
        let hop = self.lookup(destination);
        match hop.map(|hop| self.routes.hop(hop)) {
            None => {
                self.tell(at, frame, icmp::Fault::NoRoute, way);
                Fate::Lost(DropReason::NoRoute)
            }
            Some(NextHop::Broadcast) => Fate::Lost(DropReason::NotUnicast),
            Some(NextHop::Local) => self.receive_own(at, frame, way),
            Some(_) => self.forward_ipv4(at, frame, hop, way),
        }
    }

    /// Steps 5 to 9: time to live, length, and off to the next hop.
    fn forward_ipv4(
        &mut self,
        at: usize,
        frame: &mut Frame,
        hop: Option<HopId>,
        way: &mut Way,
    ) -> Fate {
        let packet = &mut frame.bytes_mut()[ethernet::HEADER_BYTES..];
        let view = ipv4::View::new(packet).expect("the header was checked");
        let (ttl, total, must_stay_whole) = (view.ttl(), view.total_length(), view.dont_fragment());
        let target = hop.and_then(|hop| self.target(hop, view.destination()));
        let Some(target) = target else { return Fate::Lost(DropReason::NoRoute) };
        if ttl <= 1 {
            self.tell(at, frame, icmp::Fault::TtlExpired, way);
            return Fate::Lost(DropReason::TtlExpired);
        }
        let mtu = self.interfaces[target.interface].mtu;
        if must_stay_whole && total > mtu {
            self.tell(at, frame, icmp::Fault::TooLong { mtu }, way);
            return Fate::Lost(DropReason::TooLong);
        }
        ipv4::decrement_ttl(packet);
        self.deliver(target, frame, Some(self.interfaces[at].port), way);
        Fate::Done
    }

    /// Which neighbour a next hop stands for; `None` if it is the router itself.
    #[inline]
    fn target(&self, hop: HopId, destination: Ipv4Addr) -> Option<Target> {
        let (gateway, place) = match self.routes.hop(hop) {
            NextHop::Gateway { port, via } => (Some(hop), Place { port, address: via }),
            NextHop::Link { port } => (None, Place { port, address: destination }),
            NextHop::Local | NextHop::Broadcast => return None,
        };
        Some(Target { gateway, interface: self.interface(place.port)?, place })
    }

    /// Sends a finished packet to a neighbour, in pieces if it is too long, as soon as the
    /// neighbour's address is known. `from` is the port that it came in on, if it did.
    #[inline]
    fn deliver(&mut self, target: Target, frame: &mut Frame, from: Option<PortNo>, way: &mut Way) {
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
    fn wait(&mut self, target: Target, frame: &mut Frame, from: Option<PortNo>, way: &mut Way) {
        let waiting = Waiting { frame: std::mem::take(frame), from };
        match self.neighbors.wait(target.place, waiting, way.now) {
            Wait::Ask => self.ask(target.place, way.out),
            Wait::Queued => {}
            Wait::Displaced(oldest) => self.lose(oldest.from, DropReason::NeighbourQueueFull),
            Wait::Refused(waiting) => self.lose(waiting.from, DropReason::NoNeighbour),
        }
    }

    /// Sends a frame that waited for this address.
    fn release(&mut self, interface: usize, mac: Mac, waiting: Waiting, out: &mut Outputs) {
        let Waiting { mut frame, from } = waiting;
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
    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        let Some(at) = self.interface(port) else {
            return self.drops.add_many(DropReason::NotForUs, batch.len() as u64);
        };
        let mut way = Way { now, out };
        for frame in batch.frames_mut() {
            match self.receive(at, frame, &mut way) {
                Fate::Done => {}
                Fate::Consumed => self.counters.consumed += 1,
                Fate::Lost(why) => self.drops.add(why),
            }
        }
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        let mut steps = STEPS_PER_TICK;
        let mut way = Way { now, out };
        while let Some(due) = self.neighbors.due(now, &mut steps) {
            match due {
                Due::Ask(place) => self.ask(place, way.out),
                Due::GivenUp(_, waiting) => self.give_up(waiting, &mut way),
            }
        }
        // Frames that come in meanwhile may ask, so there is always something to come back for.
        let pause = now.saturating_add(TICK_PAUSE_MAX);
        Some(self.neighbors.next_due().map_or(pause, |due| due.clamp(now, pause)))
    }
}

/// Whether a host can have this address: it is not of this network, looped back, a group's or
/// reserved (RFC 1812 section 5.3.7).
#[inline]
fn is_host(address: Ipv4Addr) -> bool {
    !matches!(address.octets()[0], 0 | 127 | 224..)
}

/// Whether no packet can be for this address.
#[inline]
fn is_martian(address: Ipv4Addr) -> bool {
    matches!(address.octets()[0], 0 | 127 | 240..) && address != Ipv4Addr::BROADCAST
}

/// Whether one of the options lists addresses to be routed by, loosely or strictly.
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
