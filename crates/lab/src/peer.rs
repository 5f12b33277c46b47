//! A switch, bridge or router under test, whoever made it, commanded the same way.
//!
//! A peer is started at a site, becomes ready, is told who is where, is read and is
//! stopped. Flows of OpenFlow peers are not installed here but by OpenFlow, through the channel
//! that [`Peer::ready`] hands out: every OpenFlow switch through the same door.
//!
//! Order of every file below: start, ready, install, counters, stop, describe.
//! Invariant: a peer dropped or stopped leaves no process, namespace, interface or file.

pub mod direct;
pub mod dpdk;
pub mod linux_bridge;
pub mod linux_router;
pub mod openvswitch;
pub mod ours;
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
    /// Starts it on a site's ports.
    fn start(&mut self, site: &Site) -> Result<(), LabError>;

    /// Waits, at most `patience`, until it can be told what to do, and says how.
    fn ready(&mut self, patience: Duration) -> Result<Access, LabError>;

    /// Tells it its stations, neighbours and routes; what it has no use for is refused.
    fn install(&mut self, site: &Site, plan: &Plan) -> Result<(), LabError>;

    /// What it counted itself, by dotted name; the kernel's counters are [`Site::account`]'s.
    fn counters(&mut self) -> Result<BTreeMap<String, u64>, LabError>;

    /// How many addresses of stations it knows, where it is a bridge and tells.
    fn addresses_learned(&mut self) -> Result<Option<u64>, LabError> {
        Ok(None)
    }

    /// Fails, with its last words, if it has ended by itself.
    fn check(&mut self) -> Result<(), LabError>;

    /// The processes that are the peer, for their time on the cores.
    fn processes(&self) -> Vec<u32>;

    /// Makes it stand still until it is released, so that it takes no time of a core that others
    /// are measured on; it keeps all it holds. What the kernel does is never held.
    fn hold(&mut self) {}

    /// Lets it go on.
    fn release(&mut self) {}

    /// Ends it.
    fn stop(&mut self) -> Result<(), LabError>;

    /// What it is, for the record.
    fn describe(&self) -> Description;
}

/// How a peer is told what to do beyond [`Peer::install`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// By OpenFlow, at this channel (`unix:FILE`).
    OpenFlow {
        /// Where to connect to.
        channel: String,
    },
    /// By lines of JSON at this socket.
    Control {
        /// The socket's file.
        socket: PathBuf,
    },
    /// By [`Peer::install`] only.
    Install,
    /// Not at all: a cable.
    Nothing,
}

/// What a peer shall know before frames come. Ports count from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Bridges: which station is behind which port, for good.
    pub stations: Vec<Station>,
    /// Routers: who is behind which port, so that nobody is asked for by ARP.
    pub neighbors: Vec<PortNeighbor>,
    /// Routers: the routing table beside the ports' own networks.
    pub routes: Vec<PortRoute>,
    /// Taggers: which frames of port 1 leave by port 2 with which tag; of several rules the first counts.
    pub tags: Vec<TagRule>,
}

/// A station behind a bridge port.
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
    /// The bits of it that name the network.
    pub length: u8,
}

/// A router's neighbour behind a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortNeighbor {
    /// The port.
    pub port: u32,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its Ethernet address.
    pub mac: Mac,
}

/// A route through a neighbour behind a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRoute {
    /// The destination network.
    pub prefix: Ipv4Addr,
    /// The bits of it that count.
    pub length: u8,
    /// The neighbour.
    pub via: Ipv4Addr,
    /// The port it is behind.
    pub port: u32,
}

/// Which frames get which VLAN tag. What is left out is asked of no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagRule {
    /// The first and the last DSCP of IPv4 that it is for.
    pub dscp: Option<(u8, u8)>,
    /// The destination port of UDP over IPv4 that it is for.
    pub udp_destination: Option<u16>,
    /// The VLAN, 0 to 4095.
    pub vlan: u16,
    /// The priority, 0 to 7.
    pub priority: u8,
}

/// What a peer is, for the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// What kind of peer: "linux-bridge", "ovs"...
    pub kind: String,
    /// Which version of it.
    pub version: String,
    /// What was set, by name.
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

    /// What every peer at a site shares: ports, packet size, cores and who does the kernel's work.
    fn wired(self, site: Option<&Wired>) -> Description {
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

/// What a peer remembers of its site, to describe itself when the site is gone.
#[derive(Debug, Clone)]
struct Wired {
    ports: u32,
    mtu: u32,
    cores: Vec<usize>,
    threads: usize,
    pinned: bool,
    refused: Option<String>,
}

impl Wired {
    fn of(site: &Site) -> Wired {
        let threads: Vec<_> = site.target.iter().filter_map(|end| end.threads.as_ref()).collect();
        Wired {
            ports: site.wiring.ports,
            mtu: site.wiring.mtu,
            cores: site.wiring.cores.target.clone(),
            threads: threads.iter().map(|found| found.threads.len()).sum(),
            pinned: !threads.is_empty() && threads.iter().all(|found| found.pinned),
            refused: threads.iter().find_map(|found| found.refused.clone()),
        }
    }
}

/// The kernel's release: the version of a peer that is the kernel.
pub fn kernel_release() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", text.trim())
}

/// Refuses what a kind of peer has no use for.
fn refuse(kind: &str, what: &'static str, given: bool) -> Result<(), LabError> {
    if given { Err(LabError::Argument { what, value: kind.to_owned() }) } else { Ok(()) }
}

/// A router's addresses, for the record: "p1 10.0.1.1/24, p2 10.0.2.1/24".
fn addresses_text(addresses: &[PortAddress]) -> String {
    let text = |own: &PortAddress| format!("p{} {}/{}", own.port, own.address, own.length);
    addresses.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// An Ethernet address as people write it: "02:49:00:00:01:01".
fn mac_text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
