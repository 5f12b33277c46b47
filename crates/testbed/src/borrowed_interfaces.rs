//! Interfaces of this host that are cabled to a device: used for a run, and restored afterwards.
//!
//! This module creates nothing. An interface that is down is brought up, and taken down again at
//! the end. Promiscuous mode belongs to the sockets that request it, and ends with them.
//!
//! Invariant: an interface with an address, a route or a bridge is used only on explicit request,
//! because this host may be reached through it.

use crate::netlink::uses::Use;
use crate::veth::Interface;
use crate::{LabError, Namespace, wait};
use std::time::Duration;

/// Interfaces in use, in the order in which they were named.
#[derive(Debug)]
pub struct BorrowedInterfaces {
    /// The interfaces.
    pub interfaces: Vec<Interface>,
    /// Existing uses of interfaces that were accepted nevertheless.
    pub uses: Vec<(String, Use)>,
    namespace: Namespace,
    /// Interfaces that were down.
    raised: Vec<u32>,
}

impl BorrowedInterfaces {
    /// Takes over the interfaces of these names in the caller's namespace, and waits for their
    /// carriers.
    ///
    /// Rejects interfaces that are in use, unless `used_too` is set.
    pub fn take(
        names: &[&str],
        used_too: bool,
        patience: Duration,
    ) -> Result<BorrowedInterfaces, LabError> {
        let namespace = Namespace::current()?;
        let mut netlink = namespace.netlink()?;
        let all = netlink.links()?;
        let mut taken = BorrowedInterfaces {
            interfaces: Vec::new(),
            uses: Vec::new(),
            namespace: namespace.clone(),
            raised: Vec::new(),
        };
        for name in names {
            let link = all.iter().find(|link| link.name == *name);
            let link = link.ok_or_else(|| LabError::NoInterface((*name).to_owned()))?;
            let uses = netlink.uses(link, &all)?;
            if !uses.is_empty() && !used_too {
                return Err(LabError::InterfaceUsed { name: link.name.clone(), uses });
            }
            taken.uses.extend(uses.into_iter().map(|used| (link.name.clone(), used)));
            taken.interfaces.push(Interface {
                namespace: namespace.clone(),
                name: link.name.clone(),
                index: link.index,
                mac: link.mac,
                mtu: link.mtu,
                threads: None,
            });
        }
        // Changes start only after all interfaces are accepted.
        for interface in &taken.interfaces {
            let is_off = all.iter().any(|link| link.index == interface.index && !link.up);
            if is_off {
                netlink.link_up(interface.index)?;
                taken.raised.push(interface.index);
            }
        }
        for interface in &taken.interfaces {
            let is_carrying = || Ok(netlink.link(&interface.name)?.carrying);
            if !wait::until(patience, is_carrying)? {
                return Err(LabError::NoLink { name: interface.name.clone(), waited: patience });
            }
        }
        Ok(taken)
    }
}

impl Drop for BorrowedInterfaces {
    fn drop(&mut self) {
        let Ok(mut netlink) = self.namespace.netlink() else { return };
        for index in self.raised.drain(..) {
            // An interface that is gone is not up.
            let _ = netlink.link_down(index);
        }
    }
}
