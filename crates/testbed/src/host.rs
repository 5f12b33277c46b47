//! A host at the end of a cable: an address on the tester's interface, and programs that use
//! sockets.
//!
//! ```text
//!   client's namespace            target namespace            server's namespace
//!   NAME-1  ───────────── cable ─── p1     p2 ─── cable ───────────── NAME-2
//!   10.0.1.2                                                         10.0.2.2
//! ```
//! The interface keeps its place and the tester's packet socket. A host only adds settings to its
//! namespace: the hardware address of the tester's frames, an IP address, a route and a permanent
//! neighbor. The target therefore sees the same headers as from the tester, and no ARP request is
//! sent.
//!
//! Alternatives: moving the interface would lose the tester's sockets and the target's link. A
//! macvlan device would be one more step for each packet. The neighbor entry for the other host has
//! that host's hardware address, or that of a router between them.
//!
//! Source: `rtnetlink(7)`, `udp(7)`.
//!
//! Invariant: dropping a host removes all its settings and restores the interface's own hardware
//! address. The kernel then drops frames for the tester, as before.

pub mod iperf;
mod settings;
pub mod talk;

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::netlink::neighbor::Neighbor;
use crate::veth::Interface;
use crate::{LabError, Mac, Namespace};

/// Settings of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostSettings {
    /// Hardware address of the host.
    pub mac: Mac,
    /// IP address of the host.
    pub address: Ipv4Addr,
    /// UDP port of the host.
    pub port: u16,
    /// IP address of the other host.
    pub peer: Ipv4Addr,
    /// Hardware address of the next hop: the other host, or a router.
    pub next_hop: Mac,
}

/// A configured host.
#[derive(Debug)]
pub struct Host {
    interface: Interface,
    settings: HostSettings,
}

impl Host {
    /// Configures a host at an interface that has no address.
    pub fn settle(interface: &Interface, settings: HostSettings) -> Result<Host, LabError> {
        let mut netlink = interface.namespace.netlink()?;
        let index = interface.index;
        // From here on, dropping the host removes the settings made so far.
        let host = Host { interface: interface.clone(), settings };
        netlink.link_mac(index, settings.mac)?;
        netlink.address_add(index, settings.address, 32)?;
        netlink.route_on_link(index, settings.peer)?;
        let (address, mac) = (settings.peer, settings.next_hop);
        netlink.neighbors_add(&[Neighbor { address, mac, interface: index }])?;
        Ok(host)
    }

    /// Returns the namespace of the host's programs.
    pub fn namespace(&self) -> &Namespace {
        &self.interface.namespace
    }

    /// Returns the host's IP address and UDP port.
    pub fn socket_address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.settings.address, self.settings.port)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let (index, own) = (self.interface.index, self.interface.mac);
        // Settings that are gone already, with the namespace or because they were never made, need
        // no removal. Removing the address also removes routes and neighbors.
        let _ = self.interface.namespace.netlink().map(|mut netlink| {
            let _ = netlink.address_remove(index, self.settings.address, 32);
            let _ = netlink.link_mac(index, own);
        });
    }
}
