//! A cable: two interfaces, in one or two namespaces, set so that it only carries what is sent.
//!
//! Source: `veth(4)`; why GRO and threads, see [`crate::napi`].
//! Invariant: both ends are up when a cable exists; it goes with both ends when it is dropped or
//! when either namespace vanishes.

use crate::ethtool;
use crate::napi::{self, NapiThreads};
use crate::netlink::link::VethEnd;
use crate::{LabError, Mac, Namespace, wait};
use std::time::Duration;

/// How long the kernel may take to notice that a cable is plugged in; it promises a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// One end of a cable.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Where it is.
    pub namespace: Namespace,
    /// Its name there.
    pub name: String,
    /// The kernel's number for it there.
    pub index: u32,
    /// Its address.
    pub mac: Mac,
    /// The largest packet in bytes, without the Ethernet header.
    pub mtu: u32,
    /// The kernel threads that receive here; nothing if that was left to the sender's core.
    pub threads: Option<NapiThreads>,
}

/// What an end shall be.
#[derive(Debug, Clone)]
pub struct EndSettings {
    /// Where.
    pub namespace: Namespace,
    /// Its name there, 1 to 15 bytes.
    pub name: String,
    /// Its address.
    pub mac: Mac,
    /// The cores that receive here on threads of their own; nothing leaves it to the sender's.
    pub threaded: Option<Vec<usize>>,
}

/// A cable between two ends.
#[derive(Debug)]
pub struct Cable {
    /// Its ends, in the order they were asked for.
    pub ends: [Interface; 2],
}

impl Cable {
    /// Lays a cable, which will soon carry frames; one that cannot be set as asked is taken up again.
    pub fn lay(one: &EndSettings, other: &EndSettings, mtu: u32) -> Result<Cable, LabError> {
        one.namespace.netlink()?.veth_add(&veth_end(one), &veth_end(other), mtu)?;
        let mut cable = Cable { ends: [found(one, mtu)?, found(other, mtu)?] };
        for (interface, settings) in cable.ends.iter_mut().zip([one, other]) {
            let gro = settings.threaded.is_some();
            ethtool::offloads_off(&interface.namespace, &interface.name, gro)?;
            let mut netlink = interface.namespace.netlink()?;
            netlink.link_never_merge(interface.index)?;
            netlink.link_up(interface.index)?;
        }
        // Only now has each end something to work for: a thread needs its interface to be up.
        for (interface, settings) in cable.ends.iter_mut().zip([one, other]) {
            if let Some(cores) = &settings.threaded {
                interface.threads =
                    Some(napi::pin_threads(&interface.namespace, &interface.name, cores));
            }
        }
        Ok(cable)
    }

    /// Waits until the cable carries frames: until the kernel has noticed that it is plugged in, it
    /// drops what is sent, and a bridge does not forward through it. Lay all cables first: the
    /// kernel looks once a second, at all of them.
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
        let program = format!("the cable at {}", self.name);
        Err(LabError::NotReady { program, waited: PATIENCE, last: Vec::new() })
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        let end = &self.ends[0];
        // A cable that is already gone, with a namespace, is what dropping wants.
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

/// The interface that was just made.
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
