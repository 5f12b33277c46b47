//! Existing uses of an interface: addresses, routes, and a bridge or bond that it belongs to.
//!
//! Source: `rtnetlink(7)`, RTM_GETADDR and RTM_GETROUTE. Addresses and routes that the kernel adds
//! to every interface (IPv6 link-local, multicast) do not count.

use super::Netlink;
use super::link::Link;
use crate::LabError;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use std::fmt;
use std::net::IpAddr;

/// A use of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// It has this address, with this prefix length.
    Address(IpAddr, u8),
    /// A route uses it: to a network with this prefix length, or the default route.
    Route(Option<IpAddr>, u8),
    /// It belongs to this interface.
    PartOf(String),
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Use::Address(address, length) => write!(f, "it has the address {address}/{length}"),
            Use::Route(Some(network), length) => {
                write!(f, "the route to {network}/{length} uses it")
            }
            Use::Route(None, _) => f.write_str("the default route uses it"),
            Use::PartOf(name) => write!(f, "it belongs to {name}"),
        }
    }
}

impl Netlink {
    /// Returns the uses of this interface; `all` are the interfaces of the namespace.
    pub fn uses(&mut self, link: &Link, all: &[Link]) -> Result<Vec<Use>, LabError> {
        let parent = |index| match all.iter().find(|other| other.index == index) {
            Some(other) => Use::PartOf(other.name.clone()),
            None => Use::PartOf(format!("interface {index}")),
        };
        let mut uses: Vec<Use> = link.controller.map(parent).into_iter().collect();
        let addresses = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let addresses = self.dump("list the addresses", addresses)?;
        uses.extend(addresses.iter().filter_map(|message| address_on(message, link.index)));
        let routes = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        let routes = self.dump("list the routes", routes)?;
        for found in routes.iter().filter_map(|message| route_by(message, link.index)) {
            // Connected networks are implied by the addresses.
            let is_own = |used: &Use| matches!(used, Use::Address(..));
            if !uses.iter().any(is_own) && !uses.contains(&found) {
                uses.push(found);
            }
        }
        Ok(uses)
    }
}

fn address_on(message: &RouteNetlinkMessage, index: u32) -> Option<Use> {
    let RouteNetlinkMessage::NewAddress(message) = message else { return None };
    let own = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    let told = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Address(address) => Some(*address),
        _ => None,
    });
    let address = own.or(told).filter(|address| !is_automatic(*address))?;
    (message.header.index == index).then_some(Use::Address(address, message.header.prefix_len))
}

fn route_by(message: &RouteNetlinkMessage, index: u32) -> Option<Use> {
    let RouteNetlinkMessage::NewRoute(message) = message else { return None };
    let leads = message.attributes.contains(&RouteAttribute::Oif(index));
    if !leads || message.header.kind != RouteType::Unicast {
        return None;
    }
    let network = message.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Destination(RouteAddress::Inet(address)) => Some(IpAddr::V4(*address)),
        RouteAttribute::Destination(RouteAddress::Inet6(address)) => Some(IpAddr::V6(*address)),
        _ => None,
    });
    if network.is_some_and(is_automatic) {
        return None;
    }
    Some(Use::Route(network, message.header.destination_prefix_length))
}

/// Returns whether the kernel adds the address to every interface (RFC 4291, 2.5.6 and 2.7).
fn is_automatic(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_multicast(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.is_multicast(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_the_kernel_assigns_do_not_count_as_use() {
        for (text, automatic) in
            [("fe80::1", true), ("ff00::", true), ("2001:db8::1", false), ("192.0.2.1", false)]
        {
            assert_eq!(is_automatic(text.parse().unwrap()), automatic, "{text}");
        }
    }
}
