//! Interfaces of this host that somebody cabled to a device: taken for a while, and given back as they were.
//!
//! Nothing is made here. One that is off is switched on, and off again in the end; promiscuity belongs to
//! the sockets that ask for it, and ends with them. Invariant: an interface with an address, a route or a
//! bridge is not taken unless that was asked for, because it may be how this host is reached.

use crate::netlink::uses::Use;
use crate::veth::Interface;
use crate::{LabError, Namespace, wait};
use std::time::Duration;

/// Interfaces that are taken, in the order in which they were named.
#[derive(Debug)]
pub struct Taken {
    /// Each of them.
    pub interfaces: Vec<Interface>,
    /// What those are used for that were taken all the same.
    pub uses: Vec<(String, Use)>,
    namespace: Namespace,
    /// Those that were off.
    raised: Vec<u32>,
}

impl Taken {
    /// Takes the interfaces of these names in the caller's namespace, and waits for their links. Those that are in use
    /// are refused unless `used_too`.
    pub fn take(names: &[&str], used_too: bool, patience: Duration) -> Result<Taken, LabError> {
        let namespace = Namespace::current()?;
        let mut netlink = namespace.netlink()?;
        let all = netlink.links()?;
        let mut taken = Taken {
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
        // Only now that none is refused is anything changed.
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

impl Drop for Taken {
    fn drop(&mut self) {
        let Ok(mut netlink) = self.namespace.netlink() else { return };
        for index in self.raised.drain(..) {
            // One that is gone by now is not on.
            let _ = netlink.link_down(index);
        }
    }
}
