//! Neighbors of a namespace: permanent ARP entries, and the forwarding database of a bridge.
//!
//! Source: `rtnetlink(7)`, RTM_NEWNEIGH (family INET for ARP, BRIDGE for a bridge's table).
//!
//! Invariant: entries added here are permanent: they do not age, and no request is sent for them.

use super::Netlink;
use crate::{LabError, Mac};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::net::Ipv4Addr;

/// An IPv4 neighbor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbor {
    /// Its IP address.
    pub address: Ipv4Addr,
    /// Its Ethernet address.
    pub mac: Mac,
    /// Index of its interface.
    pub interface: u32,
}

/// An entry of a bridge's forwarding database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgeEntry {
    /// The station's address.
    pub mac: Mac,
    /// Index of the bridge port.
    pub port: u32,
    /// Whether the entry never ages; learned entries are not permanent.
    pub permanent: bool,
}

impl Netlink {
    /// Adds permanent neighbors, replacing those with the same address.
    pub fn neighbors_add(&mut self, neighbors: &[Neighbor]) -> Result<(), LabError> {
        let messages = neighbors.iter().map(|neighbor| {
            let mut message = entry(AddressFamily::Inet, neighbor.interface, neighbor.mac);
            message.header.state = NeighbourState::Permanent;
            message
                .attributes
                .push(NeighbourAttribute::Destination(NeighbourAddress::Inet(neighbor.address)));
            (neighbor.address.to_string(), RouteNetlinkMessage::NewNeighbour(message))
        });
        self.request_all("add the neighbour", messages, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Adds static addresses to the bridges that the ports belong to.
    pub fn bridge_entries_add(&mut self, entries: &[(Mac, u32)]) -> Result<(), LabError> {
        let messages = entries.iter().map(|(mac, port)| {
            let mut message = entry(AddressFamily::Bridge, *port, *mac);
            message.header.state = NeighbourState::Noarp;
            message.header.flags = NeighbourFlags::Controller;
            (format!("{mac:02x?} at {port}"), RouteNetlinkMessage::NewNeighbour(message))
        });
        self.request_all("add the bridge entry", messages, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Returns the forwarding databases of the namespace's bridges, without the ports' own
    /// addresses.
    pub fn bridge_entries(&mut self) -> Result<Vec<BridgeEntry>, LabError> {
        let mut request = NeighbourMessage::default();
        request.header.family = AddressFamily::Bridge;
        let request = RouteNetlinkMessage::GetNeighbour(request);
        let listed = self.dump("list the bridge entries", request)?;
        Ok(listed.iter().filter_map(bridge_entry_of).collect())
    }
}

fn entry(family: AddressFamily, interface: u32, mac: Mac) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family;
    message.header.ifindex = interface;
    message.attributes = vec![NeighbourAttribute::LinkLocalAddress(mac.to_vec())];
    message
}

/// A port's own address is listed as permanent; a station's is static (no ARP) or learned.
fn bridge_entry_of(message: &RouteNetlinkMessage) -> Option<BridgeEntry> {
    let RouteNetlinkMessage::NewNeighbour(message) = message else {
        return None;
    };
    if message.header.state == NeighbourState::Permanent {
        return None;
    }
    let mac = message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLocalAddress(bytes) => Mac::try_from(&bytes[..]).ok(),
        _ => None,
    })?;
    let permanent = message.header.state == NeighbourState::Noarp;
    Some(BridgeEntry { mac, port: message.header.ifindex, permanent })
}
