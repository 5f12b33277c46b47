//! Configuration of a router: interfaces, routes and neighbors.
//!
//! Source: RFC 1812, section 2.2, for interfaces; RFC 3021 for networks of two addresses. Each
//! interface address adds routes to itself, to its network and to that network's broadcast
//! addresses. Routes to the router's addresses and to broadcast addresses cannot be replaced or
//! removed.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use packet::frame::PortNo;
use packet::header::ethernet::{self, Mac};

use super::{IcmpLimit, Router, RouterCounters, icmp, is_host};
use crate::counter::DropCounters;
use crate::forwarder::Outputs;
use crate::neighbor::NeighborMirror;
use crate::neighbor::{NEIGHBORS_MAX_DEFAULT, NeighborTable, Place, Timing};
use crate::route_cache::RouteCache;
use crate::route_table::RouteMirror;
use crate::route_table::{NextHop, Prefix, ROUTES_MAX_DEFAULT, RouteTable, RouteTableFull};

/// Default MTU in bytes.
pub const MTU_DEFAULT: u16 = 1500;

/// Minimum MTU in bytes (RFC 791).
pub const MTU_MIN: u16 = 68;

/// An interface of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The port of the interface.
    pub port: PortNo,
    /// The hardware address.
    pub mac: Mac,
    /// The IP addresses with prefix lengths.
    pub addresses: Vec<(Ipv4Addr, u8)>,
    /// The MTU in bytes.
    pub mtu: u16,
}

/// Settings of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The interfaces.
    pub interfaces: Vec<Interface>,
    /// Capacity of the route table, including routes of the router's own addresses and networks.
    pub routes_max: usize,
    /// Capacity of the neighbor table.
    pub neighbors_max: usize,
    /// Size of the route cache; 0 disables it.
    pub cache_entries: usize,
    /// Timing of ARP requests and ageing.
    pub timing: Timing,
    /// Rate limit of ICMP errors.
    pub icmp_limit: IcmpLimit,
    /// Secret for hashing.
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

/// Configuration error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouterError {
    /// Two interfaces have the same port.
    InterfaceTwice(PortNo),
    /// An interface's hardware address is zero or a group address.
    BadMac(PortNo),
    /// The address is not a valid host address, or the prefix is longer than 32 bits.
    BadAddress(Ipv4Addr, u8),
    /// The MTU is below [`MTU_MIN`].
    BadMtu(u16),
    /// The port has no interface.
    NoInterface(PortNo),
    /// No interface is in the network of this next hop.
    UnreachableHop(Ipv4Addr),
    /// The prefix is one of the router's own addresses.
    OwnAddress(Prefix),
    /// The route table is full.
    RoutesFull(RouteTableFull),
    /// The neighbor table is full; it has this many neighbors.
    NeighborsFull(usize),
}

impl Router {
    /// Creates a router with these interfaces, and with no routes but those to their networks and
    /// addresses.
    pub fn new(settings: &Settings) -> Result<Router, RouterError> {
        let mut router = Router {
            interfaces: Vec::new(),
            place: Vec::new(),
            routes: RouteTable::new(settings.routes_max),
            route_mirror: None,
            cache: RouteCache::new(settings.cache_entries, settings.seed),
            neighbors: NeighborTable::new(
                settings.neighbors_max,
                settings.timing,
                settings.seed ^ 1,
            ),
            hop_neighbors: Vec::new(),
            leaving: Vec::new(),
            icmp: icmp::IcmpRateLimiter::new(settings.icmp_limit),
            identification: 0,
            row: Box::default(),
            ahead: Box::default(),
            is_ahead: false,
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

    /// Adds the routes for an interface address: the address, its network, and the two broadcast
    /// addresses if the network has more than two addresses (RFC 3021).
    fn add_address(&mut self, port: PortNo, address: (Ipv4Addr, u8)) -> Result<(), RouterError> {
        let (own, length) = address;
        let bad = RouterError::BadAddress(own, length);
        let network = Prefix::new(own, length).ok_or(bad)?;
        if !is_host(own) || length == 0 {
            return Err(bad);
        }
        let host = |address| Prefix::new(address, 32).expect("32 bits are a valid length");
        let mut routes = vec![(host(own), NextHop::Local)];
        if length < 32 {
            routes.push((network, NextHop::Link { port }));
        }
        if length < 31 {
            routes.push((host(network.address()), NextHop::Broadcast));
            routes.push((host(network.last()), NextHop::Broadcast));
        }
        for (prefix, hop) in routes {
            // A router address has priority, even if it is the last address of another network.
            if self.routes.get(prefix) != Some(NextHop::Local) {
                self.insert_route(prefix, hop)?;
            }
        }
        Ok(())
    }

    /// Returns the interfaces.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Passes all routes and known neighbors, and from now on every change, to mirrors. With
    /// `None`, passes nothing any more.
    pub fn set_mirrors(
        &mut self,
        mirrors: Option<(Box<dyn RouteMirror>, Box<dyn NeighborMirror>)>,
    ) {
        let (routes, neighbors) = mirrors.unzip();
        self.neighbors.set_mirror(neighbors);
        self.route_mirror = routes;
        self.project_routes();
    }

    /// Passes all routes to the mirror.
    fn project_routes(&mut self) {
        let Some(mirror) = &mut self.route_mirror else { return };
        mirror.clear_routes();
        for (prefix, hop) in self.routes.iter() {
            let id = self.routes.id(prefix).expect("a listed route has a next hop");
            mirror.set_route(prefix, id, hop);
        }
    }

    /// Adds a route, or replaces the one for the same prefix, here and in the mirror.
    fn insert_route(&mut self, prefix: Prefix, hop: NextHop) -> Result<(), RouterError> {
        self.routes.insert(prefix, hop).map_err(RouterError::RoutesFull)?;
        if let (Some(mirror), Some(id)) = (&mut self.route_mirror, self.routes.id(prefix)) {
            mirror.set_route(prefix, id, hop);
        }
        Ok(())
    }

    /// Returns the port whose interface is in the network of this address.
    pub fn port_towards(&self, address: Ipv4Addr) -> Option<PortNo> {
        let has = |interface: &&Interface| {
            let nets = interface.addresses.iter();
            nets.filter_map(|&(own, length)| Prefix::new(own, length)).any(|net| net.holds(address))
        };
        self.interfaces.iter().find(has).map(|interface| interface.port)
    }

    /// Adds a route, or replaces the one for the same prefix. With a gateway, the port is `port` or
    /// the port of the gateway's network. Without a gateway, the destinations are on the link of
    /// `port`.
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
        self.insert_route(prefix, hop)
    }

    /// Removes the route for exactly this prefix. Returns false if there is none, or if it belongs
    /// to one of the router's own addresses.
    pub fn remove_route(&mut self, prefix: Prefix) -> bool {
        match self.routes.get(prefix) {
            None | Some(NextHop::Local | NextHop::Broadcast) => false,
            Some(_) => {
                if let Some(mirror) = &mut self.route_mirror {
                    mirror.remove_route(prefix, self.routes.covering(prefix));
                }
                self.routes.remove(prefix).is_some()
            }
        }
    }

    /// Removes all routes but those of the router's own addresses and networks, and returns their
    /// number. The routes are removed immediately;
    /// [`Forwarder::tick`](crate::forwarder::Forwarder::tick) frees their memory.
    pub fn flush_routes(&mut self) -> usize {
        let mut kept = BTreeMap::new();
        for interface in &self.interfaces {
            for &(address, length) in &interface.addresses {
                let network =
                    Prefix::new(address, length).expect("addresses of interfaces are valid");
                let hosts = [address, network.address(), network.last()];
                let hosts = hosts.into_iter().filter_map(|host| Prefix::new(host, 32));
                for prefix in hosts.chain([network]) {
                    let hop = self.routes.get(prefix);
                    let is_own = matches!(hop, Some(NextHop::Local | NextHop::Broadcast));
                    if let Some(hop) = hop.filter(|_| is_own || prefix == network) {
                        kept.insert(prefix, hop);
                    }
                }
            }
        }
        let removed = self.routes.len() - kept.len();
        if removed > 0 {
            let kept: Vec<_> = kept.into_iter().collect();
            self.leaving.push(self.routes.keep_only(&kept));
            self.hop_neighbors.clear();
            self.project_routes();
        }
        removed
    }

    /// Returns the routes, including those of the router's own addresses.
    pub fn routes(&self) -> &RouteTable {
        &self.routes
    }

    /// Returns the neighbors.
    pub fn neighbors(&self) -> &NeighborTable {
        &self.neighbors
    }

    /// Returns the route cache, if there is one.
    pub fn cache(&self) -> Option<&RouteCache> {
        self.cache.as_ref()
    }

    /// Sets a static neighbor address, and sends the frames that waited for it.
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

    /// Removes some learned neighbors and returns how many (see [`NeighborTable::flush_some`]).
    pub fn flush_neighbors_some(&mut self, from: &mut usize, steps: &mut usize) -> usize {
        self.neighbors.flush_some(from, steps)
    }
}
