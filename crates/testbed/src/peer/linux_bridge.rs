//! The Linux bridge: the kernel's learning bridge (IEEE 802.1D).
//!
//! It is configured as in published studies: static or learned addresses, an ageing time, no
//! spanning tree, no multicast snooping, no firewall hooks.
//!
//! Source: `bridge(8)`, the kernel's `net/bridge`.
//!
//! Invariant: the bridge is a device of the target's namespace and is removed with it.

use super::{ControlInterface, Description, Peer, Plan, SiteProperties, kernel_release, refuse};
use crate::netlink::link::{BridgePortSettings, BridgeSettings};
use crate::{LabError, Mac, Namespace, Site, wait};
use std::collections::BTreeMap;
use std::time::Duration;

const KIND: &str = "linux-bridge";
const BRIDGE: &str = "br0";
/// The firewall hooks that a bridge calls if the module br_netfilter is loaded.
const HOOKS: [&str; 3] =
    ["bridge-nf-call-iptables", "bridge-nf-call-ip6tables", "bridge-nf-call-arptables"];

/// The Linux bridge with its settings.
#[derive(Debug)]
pub struct LinuxBridge {
    /// Ageing time of learned addresses, up to an hour. Zero effectively disables learning: every
    /// frame to a non-static address is flooded.
    pub ageing: Duration,
    /// Whether the bridge learns addresses.
    pub learning: bool,
    stations: usize,
    namespace: Option<Namespace>,
    wired: Option<SiteProperties>,
}

impl LinuxBridge {
    /// Creates a learning bridge with this ageing time.
    pub fn new(ageing: Duration) -> LinuxBridge {
        LinuxBridge { ageing, learning: true, stations: 0, namespace: None, wired: None }
    }

    /// Changes the ageing time of the running bridge.
    pub fn age(&mut self, ageing: Duration) -> Result<(), LabError> {
        checked_ageing(ageing)?;
        if let Some(namespace) = &self.namespace {
            namespace.netlink()?.bridge_ageing(BRIDGE, ageing)?;
        }
        self.ageing = ageing;
        Ok(())
    }

    /// Returns the static and learned addresses, as (address, interface number, static).
    pub fn table(&self) -> Result<Vec<(Mac, u32, bool)>, LabError> {
        let Some(namespace) = &self.namespace else {
            return Ok(Vec::new());
        };
        let entries = namespace.netlink()?.bridge_entries()?;
        Ok(entries.iter().map(|entry| (entry.mac, entry.port, entry.permanent)).collect())
    }
}

impl Peer for LinuxBridge {
    fn start(&mut self, site: &Site) -> Result<(), LabError> {
        checked_ageing(self.ageing)?;
        let mut netlink = site.namespace.netlink()?;
        netlink.bridge_add(BRIDGE, &BridgeSettings { ageing: self.ageing })?;
        let bridge = netlink.link(BRIDGE)?.index;
        for port in &site.target {
            netlink.bridge_join(port.index, bridge)?;
            let settings = BridgePortSettings { learning: self.learning, flooding: true };
            netlink.bridge_port(port.index, settings)?;
        }
        netlink.link_up(bridge)?;
        no_firewall(&site.namespace)?;
        self.namespace = Some(site.namespace.clone());
        self.wired = Some(SiteProperties::of(site));
        Ok(())
    }

    fn ready(&mut self, patience: Duration) -> Result<ControlInterface, LabError> {
        let (Some(namespace), Some(wired)) = (&self.namespace, &self.wired) else {
            return Err(LabError::Argument {
                what: "use of a peer before its start",
                value: KIND.to_owned(),
            });
        };
        let mut netlink = namespace.netlink()?;
        let mut is_forwarding = || {
            let links = netlink.links()?;
            Ok(links.iter().filter(|link| link.bridged).count() == wired.ports as usize)
        };
        if !wait::until(patience, &mut is_forwarding)? {
            let bridge = netlink.link(BRIDGE)?.index;
            let links = netlink.links()?;
            let ports = links.iter().filter(|link| link.controller == Some(bridge));
            let silent = ports.filter(|link| !link.bridged).map(|link| {
                let down = if link.up {
                    "the other end of its veth pair is down"
                } else {
                    "the interface is down"
                };
                format!("port {} does not forward: {down}", link.name)
            });
            let (program, last) = (KIND.to_owned(), silent.collect());
            return Err(LabError::NotReady { program, waited: patience, last });
        }
        Ok(ControlInterface::Install)
    }

    fn install(&mut self, site: &Site, plan: &Plan) -> Result<(), LabError> {
        refuse(KIND, "plan with neighbours for a peer", !plan.neighbors.is_empty())?;
        refuse(KIND, "plan with routes for a peer", !plan.routes.is_empty())?;
        refuse(KIND, "plan with tags for a peer", !plan.tags.is_empty())?;
        let entry = |station: &super::Station| Ok((station.mac, site.port(station.port)?.index));
        let entries = plan.stations.iter().map(entry).collect::<Result<Vec<_>, LabError>>()?;
        site.namespace.netlink()?.bridge_entries_add(&entries)?;
        self.stations += entries.len();
        Ok(())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, LabError> {
        let Some(namespace) = &self.namespace else { return Ok(BTreeMap::new()) };
        // Listing a table takes the kernel time proportional to the square of its size, so older
        // kernels without this counter are not queried.
        let learned = namespace.netlink()?.link(BRIDGE)?.learned;
        let learned = learned.map(|learned| ("macs.learned".to_owned(), u64::from(learned)));
        let fixed = ("macs.static".to_owned(), self.stations as u64);
        Ok([fixed].into_iter().chain(learned).collect())
    }

    fn check(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn stop(&mut self) -> Result<(), LabError> {
        if let Some(namespace) = self.namespace.take() {
            let mut netlink = namespace.netlink()?;
            let bridge = netlink.link(BRIDGE)?.index;
            netlink.link_delete(bridge)?;
        }
        Ok(())
    }

    fn describe(&self) -> Description {
        Description::new(KIND, kernel_release())
            .set("ageing_s", self.ageing.as_secs_f64())
            .set("learning", self.learning)
            .set("stations_static", self.stations)
            .set("spanning_tree", false)
            .set("multicast_snooping", false)
            .set("firewall_hooks", false)
            .wired(self.wired.as_ref())
    }
}

fn checked_ageing(ageing: Duration) -> Result<(), LabError> {
    if ageing <= Duration::from_secs(3600) {
        return Ok(());
    }
    let value = format!("{} s", ageing.as_secs());
    Err(LabError::Argument { what: "ageing time (at most an hour)", value })
}

/// Disables the firewall hooks, which only exist in kernels with the module.
fn no_firewall(namespace: &Namespace) -> Result<(), LabError> {
    for hook in HOOKS {
        match namespace.set(&format!("net/bridge/{hook}"), "0") {
            Err(error) if error.number() != Some(libc::ENOENT) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
