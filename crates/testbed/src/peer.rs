//! A switch, bridge or router under test of any make, with a common interface.
//!
//! A peer is started at a site, becomes ready, is configured, is read and is stopped. Flow entries
//! of OpenFlow peers are not installed here, but by OpenFlow through the channel that
//! [`Peer::ready`] returns. This is the same for all OpenFlow switches.
//!
//! Order of methods in each submodule: start, ready, install, counters, stop, describe.
//!
//! Invariant: a peer that was dropped or stopped leaves no process, namespace, interface or file.

pub mod direct;
pub mod dpdk;
pub mod linux_bridge;
pub mod linux_router;
pub mod openvswitch;
pub mod planimeter;
pub mod ovs_dpdk;
pub mod testpmd;

use crate::{LabError, Mac, Site};
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

/// A device under test.
pub trait Peer: Send {
    /// Starts the peer on a site's ports.
    fn start(&mut self, site: &Site) -> Result<(), LabError>;

    /// Waits until the peer can be configured, at most `patience`, and returns the way to configure
    /// it.
    fn ready(&mut self, patience: Duration) -> Result<ControlInterface, LabError>;

    /// Configures stations, neighbors and routes; rejects what the peer does not support.
    fn install(&mut self, site: &Site, plan: &Plan) -> Result<(), LabError>;

    /// Returns the peer's own counters by dotted name; [`Site::account`] has the kernel's counters.
    fn counters(&mut self) -> Result<BTreeMap<String, u64>, LabError>;

    /// Returns the number of learned station addresses, if the peer is a bridge and reports it.
    fn addresses_learned(&mut self) -> Result<Option<u64>, LabError> {
        Ok(None)
    }

    /// Fails, with the last lines of its output, if the peer has ended by itself.
    fn check(&mut self) -> Result<(), LabError>;

    /// Returns the peer's processes, to measure their CPU time.
    fn processes(&self) -> Vec<u32>;

    /// Suspends the peer until it is released, so that it uses no CPU time of a core in a
    /// measurement. It keeps its state. Work of the kernel is never suspended.
    fn hold(&mut self) {}

    /// Resumes the peer.
    fn release(&mut self) {}

    /// Ends the peer.
    fn stop(&mut self) -> Result<(), LabError>;

    /// Describes the peer for reports.
    fn describe(&self) -> Description;
}

/// How to configure a peer beyond [`Peer::install`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlInterface {
    /// By OpenFlow, at this channel (`unix:FILE`).
    OpenFlow {
        /// Address to connect to.
        channel: String,
    },
    /// By lines of JSON at this socket.
    Control {
        /// The socket's file.
        socket: PathBuf,
    },
    /// Only by [`Peer::install`].
    Install,
    /// Not at all: a cable.
    Nothing,
}

/// Configuration of a peer before traffic starts. Ports count from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Bridges: static stations by port.
    pub stations: Vec<Station>,
    /// Routers: neighbors by port, so that no ARP request is sent.
    pub neighbors: Vec<PortNeighbor>,
    /// Routers: the routing table in addition to the ports' own networks.
    pub routes: Vec<PortRoute>,
    /// Taggers: which frames of port 1 leave by port 2 with which tag; the first matching rule
    /// applies.
    pub tags: Vec<TagRule>,
}

/// A station at a bridge port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Station {
    /// Its address.
    pub mac: Mac,
    /// The port.
    pub port: u32,
}

/// A router's own address on a port: a setting, known before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortAddress {
    /// The port.
    pub port: u32,
    /// The address.
    pub address: Ipv4Addr,
    /// The prefix length.
    pub length: u8,
}

/// A router's neighbor at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortNeighbor {
    /// The port.
    pub port: u32,
    /// Its IP address.
    pub address: Ipv4Addr,
    /// Its Ethernet address.
    pub mac: Mac,
}

/// A route through a neighbor at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRoute {
    /// The destination network.
    pub prefix: Ipv4Addr,
    /// Its prefix length.
    pub length: u8,
    /// The next hop.
    pub via: Ipv4Addr,
    /// The port of the next hop.
    pub port: u32,
}

/// A match on frames and the VLAN tag that they get. A field that is `None` matches all frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagRule {
    /// First and last DSCP of IPv4 to match.
    pub dscp: Option<(u8, u8)>,
    /// Destination port of UDP over IPv4 to match.
    pub udp_destination: Option<u16>,
    /// The VLAN, 0 to 4095.
    pub vlan: u16,
    /// The priority, 0 to 7.
    pub priority: u8,
}

/// Description of a peer for reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// Kind of peer: "linux-bridge", "ovs"...
    pub kind: String,
    /// Its version.
    pub version: String,
    /// Its settings by name.
    pub settings: BTreeMap<String, String>,
}

impl Description {
    fn new(kind: &str, version: String) -> Description {
        Description { kind: kind.to_owned(), version, settings: BTreeMap::new() }
    }

    fn set(mut self, name: &str, value: impl ToString) -> Description {
        self.settings.insert(name.to_owned(), value.to_string());
        self
    }

    /// Adds the settings that all peers share: ports, MTU, cores and receive threads.
    fn wired(self, site: Option<&SiteProperties>) -> Description {
        let Some(wired) = site else {
            return self;
        };
        let described = self
            .set("ports", wired.ports)
            .set("mtu_bytes", wired.mtu)
            .set("cores_target", format!("{:?}", wired.cores))
            .set("receive_threads", wired.threads)
            .set("receive_threads_pinned", wired.pinned);
        match &wired.refused {
            Some(why) => described.set("receive_threads_refused", why),
            None => described,
        }
    }
}

/// The site's properties that a peer keeps, to describe itself after the site is gone.
#[derive(Debug, Clone)]
struct SiteProperties {
    ports: u32,
    mtu: u32,
    cores: Vec<usize>,
    threads: usize,
    pinned: bool,
    refused: Option<String>,
}

impl SiteProperties {
    fn of(site: &Site) -> SiteProperties {
        let threads: Vec<_> = site.target.iter().filter_map(|end| end.threads.as_ref()).collect();
        SiteProperties {
            ports: site.wiring.ports,
            mtu: site.wiring.mtu,
            cores: site.wiring.cores.target.clone(),
            threads: threads.iter().map(|found| found.threads.len()).sum(),
            pinned: !threads.is_empty() && threads.iter().all(|found| found.pinned),
            refused: threads.iter().find_map(|found| found.refused.clone()),
        }
    }
}

/// Returns the kernel's release: the version of a peer that is part of the kernel.
pub fn kernel_release() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", text.trim())
}

/// Rejects a setting that a kind of peer does not support.
fn refuse(kind: &str, what: &'static str, given: bool) -> Result<(), LabError> {
    if given { Err(LabError::Argument { what, value: kind.to_owned() }) } else { Ok(()) }
}

/// Formats a router's addresses for reports: "p1 10.0.1.1/24, p2 10.0.2.1/24".
fn addresses_text(addresses: &[PortAddress]) -> String {
    let text = |own: &PortAddress| format!("p{} {}/{}", own.port, own.address, own.length);
    addresses.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Formats an Ethernet address: "02:49:00:00:01:01".
fn mac_text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
