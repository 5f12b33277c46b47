//! A host at the end of a cable: an address on the instrument's interface, and programs with sockets behind it.
//!
//! ```text
//!   client's namespace            target namespace            server's namespace
//!   NAME-1  ───────────── cable ─── p1     p2 ─── cable ───────────── NAME-2
//!   10.0.1.2                                                         10.0.2.2
//! ```
//! The cable's end stays where it is and as it is, with the instrument's packet socket at it; a host is what its
//! namespace has while one is settled there: the hardware address that the instrument's frames have too, an
//! address, a route and a permanent neighbour, so that the target sees the same headers as from the instrument and nobody asks for
//! anything. An end that was moved would lose the instrument's sockets, and its target the link; a device on top of it
//! (macvlan) would be one more in the way of each packet. What leads to the other host is a neighbour
//! with its hardware address, or with that of the router between.
//!
//! Source: `rtnetlink(7)`, `udp(7)`. Invariant: dropped, nothing of a host is left, and the interface has its own
//! hardware address again; the kernel then drops what comes for the instrument as it did before.

/// Programs that make load.
pub mod iperf;
/// Settings that are other ones for a while.
mod settings;
/// A client and a server.
pub mod talk;

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::netlink::neighbor::Neighbor;
use crate::veth::Interface;
use crate::{LabError, Mac, Namespace};

/// What a host is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostSettings {
    /// Its hardware address.
    pub mac: Mac,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its UDP port.
    pub port: u16,
    /// The other host's address.
    pub peer: Ipv4Addr,
    /// The hardware address that leads there: the other host's, or a router's.
    pub next_hop: Mac,
}

/// A host that is settled.
#[derive(Debug)]
pub struct Host {
    interface: Interface,
    settings: HostSettings,
}

impl Host {
    /// Settles a host at an interface that has no address.
    pub fn settle(interface: &Interface, settings: HostSettings) -> Result<Host, LabError> {
        let mut netlink = interface.namespace.netlink()?;
        let index = interface.index;
        // From here on dropping it takes back what there is.
        let host = Host { interface: interface.clone(), settings };
        netlink.link_mac(index, settings.mac)?;
        netlink.address_add(index, settings.address, 32)?;
        netlink.route_on_link(index, settings.peer)?;
        let (address, mac) = (settings.peer, settings.next_hop);
        netlink.neighbors_add(&[Neighbor { address, mac, interface: index }])?;
        Ok(host)
    }

    /// Where its programs run.
    pub fn namespace(&self) -> &Namespace {
        &self.interface.namespace
    }

    /// Its address and its UDP port.
    pub fn socket_address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.settings.address, self.settings.port)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let (index, own) = (self.interface.index, self.interface.mac);
        // What is gone already, with its namespace or because it never was, is what dropping wants. With the address
        // go routes and neighbours.
        let _ = self.interface.namespace.netlink().map(|mut netlink| {
            let _ = netlink.address_remove(index, self.settings.address, 32);
            let _ = netlink.link_mac(index, own);
        });
    }
}
