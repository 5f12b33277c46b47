//! A cable: a veth pair in one or two namespaces, configured to carry only the frames that are
//! sent.
//!
//! Source: `veth(4)`; for GRO and threads, see [`crate::napi`].
//!
//! Invariant: both ends of a cable are up. It is removed with both ends when it is dropped or when
//! either namespace vanishes.

use crate::ethtool;
use crate::napi::{self, NapiThreads};
use crate::netlink::link::VethEnd;
use crate::{LabError, Mac, Namespace, wait};
use std::time::Duration;

/// Timeout for the kernel to detect the carrier, which takes up to a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// One end of a cable.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// Its hardware address.
    pub mac: Mac,
    /// The MTU: the largest packet in bytes, without the Ethernet header.
    pub mtu: u32,
    /// The kernel threads that receive here; none if the sender's core does this.
    pub threads: Option<NapiThreads>,
}

/// Settings of an end.
#[derive(Debug, Clone)]
pub struct EndSettings {
    /// Namespace.
    pub namespace: Namespace,
    /// Name, 1 to 15 bytes.
    pub name: String,
    /// Hardware address.
    pub mac: Mac,
    /// Cores of the receiving kernel threads; `None` leaves the work to the sender's core.
    pub threaded: Option<Vec<usize>>,
}

/// A cable between two ends.
#[derive(Debug)]
pub struct Cable {
    /// Its ends, in the order of the arguments.
    pub ends: [Interface; 2],
}

impl Cable {
    /// Creates a cable, which is removed again if its settings fail. It needs some time before it
    /// carries frames.
    pub fn lay(one: &EndSettings, other: &EndSettings, mtu: u32) -> Result<Cable, LabError> {
        one.namespace.netlink()?.veth_add(&veth_end(one), &veth_end(other), mtu)?;
        let mut cable = Cable { ends: [found(one, mtu)?, found(other, mtu)?] };
        // Before either end is up: the kernel then decides whether an end accepts generated frames,
        // which requires that the other end polls.
        for (interface, settings) in cable.ends.iter().zip([one, other]) {
            let gro = settings.threaded.is_some();
            ethtool::offloads_off(&interface.namespace, &interface.name, gro)?;
        }
        for interface in &cable.ends {
            let mut netlink = interface.namespace.netlink()?;
            netlink.link_never_merge(interface.index)?;
            netlink.link_up(interface.index)?;
        }
        // Only now, because a thread requires its interface to be up.
        for (interface, settings) in cable.ends.iter_mut().zip([one, other]) {
            if let Some(cores) = &settings.threaded {
                interface.threads =
                    Some(napi::pin_threads(&interface.namespace, &interface.name, cores));
            }
        }
        Ok(cable)
    }

    /// Waits until both ends have a carrier. Before, the kernel drops frames, and a bridge does not
    /// forward through the cable.
    ///
    /// Create all cables first: the kernel checks all of them once a second.
    pub fn wait_carrying(&self) -> Result<(), LabError> {
        self.ends.iter().try_for_each(Interface::wait_carrying)
    }
}

impl Interface {
    fn wait_carrying(&self) -> Result<(), LabError> {
        let mut netlink = self.namespace.netlink()?;
        if wait::until(PATIENCE, || Ok(netlink.link(&self.name)?.carrying))? {
            return Ok(());
        }
        let program = format!("the veth pair at {}", self.name);
        Err(LabError::NotReady { program, waited: PATIENCE, last: Vec::new() })
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        let end = &self.ends[0];
        // A cable that is already gone with a namespace needs no removal.
        let _ = end.namespace.netlink().and_then(|mut netlink| netlink.link_delete(end.index));
    }
}

fn veth_end(settings: &EndSettings) -> VethEnd {
    VethEnd {
        namespace: settings.namespace.clone(),
        name: settings.name.clone(),
        mac: settings.mac,
    }
}

/// Returns the interface that was just created.
fn found(settings: &EndSettings, mtu: u32) -> Result<Interface, LabError> {
    let link = settings.namespace.netlink()?.link(&settings.name)?;
    Ok(Interface {
        namespace: settings.namespace.clone(),
        name: settings.name.clone(),
        index: link.index,
        mac: settings.mac,
        mtu,
        threads: None,
    })
}
