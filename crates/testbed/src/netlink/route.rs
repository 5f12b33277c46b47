//! IPv4 addresses and routes of a namespace.
//!
//! Source: `rtnetlink(7)`, RTM_NEWADDR, RTM_DELADDR and RTM_NEWROUTE.
//!
//! Invariant: a full table (128K routes) takes a few hundred system calls, not one per route.

use super::Netlink;
use crate::LabError;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::net::{IpAddr, Ipv4Addr};

/// A route through a neighbor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The destination network.
    pub prefix: Ipv4Addr,
    /// Its prefix length, 0 to 32.
    pub length: u8,
    /// The next hop.
    pub via: Ipv4Addr,
    /// Index of the outgoing interface.
    pub interface: u32,
}

impl Netlink {
    /// Adds an address to an interface, in a network of `length` bits.
    pub fn address_add(
        &mut self,
        interface: u32,
        address: Ipv4Addr,
        length: u8,
    ) -> Result<(), LabError> {
        let request = RouteNetlinkMessage::NewAddress(address_of(interface, address, length));
        let subject = format!("{address}/{length}");
        self.request("add the address", &subject, request, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Removes an address from an interface. Removing the last one also removes the routes and
    /// neighbors of that interface.
    pub fn address_remove(
        &mut self,
        interface: u32,
        address: Ipv4Addr,
        length: u8,
    ) -> Result<(), LabError> {
        let request = RouteNetlinkMessage::DelAddress(address_of(interface, address, length));
        self.request("remove the address", &format!("{address}/{length}"), request, 0)
    }

    /// Adds a route to one address on an interface's own link, so that only that neighbor is
    /// resolved.
    pub fn route_on_link(&mut self, interface: u32, address: Ipv4Addr) -> Result<(), LabError> {
        let mut message = message_to(address, 32, interface);
        message.header.scope = RouteScope::Link;
        let request = RouteNetlinkMessage::NewRoute(message);
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.request("add the route", &format!("{address} on the link"), request, flags)
    }

    /// Adds routes, replacing those to the same network.
    pub fn routes_add(&mut self, routes: &[Route]) -> Result<(), LabError> {
        let messages = routes.iter().map(|route| {
            let subject = format!("{}/{} via {}", route.prefix, route.length, route.via);
            (subject, RouteNetlinkMessage::NewRoute(message_of(route)))
        });
        self.request_all("add the route", messages, NLM_F_CREATE | NLM_F_REPLACE)
    }
}

fn address_of(interface: u32, address: Ipv4Addr, length: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = length;
    message.header.index = interface;
    message.attributes = vec![
        AddressAttribute::Local(IpAddr::V4(address)),
        AddressAttribute::Address(IpAddr::V4(address)),
    ];
    message
}

fn message_of(route: &Route) -> RouteMessage {
    let mut message = message_to(route.prefix, route.length, route.interface);
    message.attributes.push(RouteAttribute::Gateway(RouteAddress::Inet(route.via)));
    message
}

/// Builds a route without a gateway.
fn message_to(prefix: Ipv4Addr, length: u8, interface: u32) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.destination_prefix_length = length;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Universe;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![
        RouteAttribute::Destination(RouteAddress::Inet(prefix)),
        RouteAttribute::Oif(interface),
    ];
    message
}
