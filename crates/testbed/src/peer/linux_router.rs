//! The Linux router: the kernel's IPv4 forwarding.
//!
//! It is configured as in published studies: addresses on the ports, permanent neighbors, a static
//! routing table; no reverse-path filter, no redirects.
//!
//! Source: `ip(7)`, the kernel's `ip-sysctl` documentation.
//!
//! Invariant: every setting belongs to the target's namespace and is removed with it. A stopped
//! router leaves no address, route or neighbor to the next.

use super::{
    ControlInterface, Description, Peer, Plan, PortAddress, SiteProperties, addresses_text,
    kernel_release, refuse,
};
use crate::netlink::neighbor::Neighbor;
use crate::netlink::route::Route;
use crate::{LabError, Namespace, Site};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

const KIND: &str = "linux-router";

/// The Linux router with its settings.
#[derive(Debug)]
pub struct LinuxRouter {
    /// Its own addresses.
    pub addresses: Vec<PortAddress>,
    routes: usize,
    neighbors: usize,
    /// Addresses added to its ports: interface, address and prefix length.
    given: Vec<(u32, Ipv4Addr, u8)>,
    namespace: Option<Namespace>,
    wired: Option<SiteProperties>,
}

impl LinuxRouter {
    /// Creates a router with these addresses on its ports.
    pub fn new(addresses: Vec<PortAddress>) -> LinuxRouter {
        let (given, namespace, wired) = (Vec::new(), None, None);
        LinuxRouter { addresses, routes: 0, neighbors: 0, given, namespace, wired }
    }
}

impl Peer for LinuxRouter {
    fn start(&mut self, site: &Site) -> Result<(), LabError> {
        let ports = site.target.iter().map(|port| port.name.as_str());
        for interface in ["all", "default"].into_iter().chain(ports) {
            let set = |name: &str, value: &str| {
                site.namespace.set(&format!("net/ipv4/conf/{interface}/{name}"), value)
            };
            set("rp_filter", "0")?;
            set("send_redirects", "0")?;
            set("accept_redirects", "0")?;
        }
        self.namespace = Some(site.namespace.clone());
        let mut netlink = site.namespace.netlink()?;
        for own in &self.addresses {
            let interface = site.port(own.port)?.index;
            netlink.address_add(interface, own.address, own.length)?;
            self.given.push((interface, own.address, own.length));
        }
        site.namespace.set("net/ipv4/ip_forward", "1")?;
        self.wired = Some(SiteProperties::of(site));
        Ok(())
    }

    fn ready(&mut self, _patience: Duration) -> Result<ControlInterface, LabError> {
        Ok(ControlInterface::Install)
    }

    fn install(&mut self, site: &Site, plan: &Plan) -> Result<(), LabError> {
        refuse(KIND, "plan with stations for a peer", !plan.stations.is_empty())?;
        refuse(KIND, "plan with tags for a peer", !plan.tags.is_empty())?;
        let mut netlink = site.namespace.netlink()?;
        let neighbor = |neighbor: &super::PortNeighbor| {
            let interface = site.port(neighbor.port)?.index;
            Ok(Neighbor { address: neighbor.address, mac: neighbor.mac, interface })
        };
        let neighbors =
            plan.neighbors.iter().map(neighbor).collect::<Result<Vec<_>, LabError>>()?;
        netlink.neighbors_add(&neighbors)?;
        let route = |route: &super::PortRoute| {
            let interface = site.port(route.port)?.index;
            Ok(Route { prefix: route.prefix, length: route.length, via: route.via, interface })
        };
        let routes = plan.routes.iter().map(route).collect::<Result<Vec<_>, LabError>>()?;
        netlink.routes_add(&routes)?;
        self.routes += routes.len();
        self.neighbors += neighbors.len();
        Ok(())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, LabError> {
        match &self.namespace {
            Some(namespace) => Ok(crate::account::Account::of(namespace)?.ip),
            None => Ok(BTreeMap::new()),
        }
    }

    fn check(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn stop(&mut self) -> Result<(), LabError> {
        let Some(namespace) = self.namespace.take() else { return Ok(()) };
        namespace.set("net/ipv4/ip_forward", "0")?;
        let mut netlink = namespace.netlink()?;
        for (interface, address, length) in self.given.drain(..) {
            netlink.address_remove(interface, address, length)?;
        }
        Ok(())
    }

    fn describe(&self) -> Description {
        Description::new(KIND, kernel_release())
            .set("addresses", addresses_text(&self.addresses))
            .set("routes", self.routes)
            .set("neighbors", self.neighbors)
            .set("reverse_path_filter", false)
            .set("redirects", false)
            .wired(self.wired.as_ref())
    }
}
