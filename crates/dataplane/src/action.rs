//! What is done with a frame that an entry matched.
//!
//! The actions are those of the OpenFlow switch specification 1.0.0, section 3.3. They are done
//! in order; changes to the frame are seen by the outputs after them. Lists of actions are shared
//! between the entries that have the same, because a table of 131,072 entries usually knows a
//! handful of lists.

use std::collections::HashMap;
use std::sync::Arc;

use packet::frame::PortNo;

/// The port number under which the host itself may be attached to a forwarder.
pub const LOCAL: PortNo = 0xfffe;

/// A list of actions, shared by everyone who has the same.
pub type Actions = Arc<[Action]>;

/// One thing done with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send it out of a port, unless that is the one it came in on.
    Output {
        /// The port.
        port: PortNo,
    },
    /// Send it back out of the port that it came in on.
    InPort,
    /// Send it out of every port but the one it came in on.
    All,
    /// Send it out of every port but the one it came in on and those that are not to be flooded.
    Flood,
    /// Hand it to the control plane.
    Controller {
        /// Bytes of it that the controller wants.
        bytes_max: u16,
    },
    /// Forward it as a learning bridge does.
    Normal,
    /// Hand it to the host that is attached to port [`LOCAL`].
    Local,
    /// Look it up in the tables, as if it had come in just now. Only for frames that the control
    /// plane sends: in an entry it drops the frame.
    Table,
    /// Send it out of a port by way of one of the port's queues.
    Enqueue {
        /// The port.
        port: PortNo,
        /// The queue's number on that port.
        queue: u32,
    },
    /// Set the VLAN identifier (12 bits), adding a tag of priority 0 to a frame without.
    SetVlan(u16),
    /// Set the VLAN priority (3 bits), adding a tag of identifier 0 to a frame without.
    SetVlanPriority(u8),
    /// Remove the outermost tag, if there is one.
    StripVlan,
    /// Set the source address.
    SetEthSrc([u8; 6]),
    /// Set the destination address.
    SetEthDst([u8; 6]),
    /// Set the IPv4 source address, if there is one.
    SetIpSrc([u8; 4]),
    /// Set the IPv4 destination address, if there is one.
    SetIpDst([u8; 4]),
    /// Set the upper 6 bits of the IPv4 type of service to those of this value; the lower two,
    /// which belong to congestion notification, stay.
    SetIpTos(u8),
    /// Set the TCP or UDP source port, if there is one.
    SetL4Src(u16),
    /// Set the TCP or UDP destination port, if there is one.
    SetL4Dst(u16),
}

impl Action {
    /// Whether it sends the frame somewhere (and does not change it).
    pub fn is_output(&self) -> bool {
        match self {
            Action::Output { .. }
            | Action::InPort
            | Action::All
            | Action::Flood
            | Action::Controller { .. }
            | Action::Normal
            | Action::Local
            | Action::Table
            | Action::Enqueue { .. } => true,
            Action::SetVlan(_)
            | Action::SetVlanPriority(_)
            | Action::StripVlan
            | Action::SetEthSrc(_)
            | Action::SetEthDst(_)
            | Action::SetIpSrc(_)
            | Action::SetIpDst(_)
            | Action::SetIpTos(_)
            | Action::SetL4Src(_)
            | Action::SetL4Dst(_) => false,
        }
    }

    /// Whether both send the frame to the same place: by whichever queue, and however much of it
    /// the controller wants.
    pub fn same_destination(&self, other: &Action) -> bool {
        match (self.port(), other.port()) {
            (Some(here), Some(there)) => here == there,
            (None, None) if self.is_output() => {
                std::mem::discriminant(self) == std::mem::discriminant(other)
            }
            _ => false,
        }
    }

    /// The port that it names.
    pub fn port(&self) -> Option<PortNo> {
        match self {
            Action::Output { port } | Action::Enqueue { port, .. } => Some(*port),
            Action::Local => Some(LOCAL),
            _ => None,
        }
    }
}

/// The lists of actions in use, each once, with the number of its users.
#[derive(Debug, Default)]
pub struct ActionLists {
    users: HashMap<Actions, usize>,
}

impl ActionLists {
    /// The shared list that equals `actions`; the caller is one more user of it.
    pub fn share(&mut self, actions: &[Action]) -> Actions {
        let known = self.users.get_key_value(actions).map(|(list, _)| Arc::clone(list));
        let list = known.unwrap_or_else(|| actions.into());
        *self.users.entry(Arc::clone(&list)).or_default() += 1;
        list
    }

    /// Gives back a list that was shared; the last user frees it.
    pub fn release(&mut self, list: &Actions) {
        if let Some(users) = self.users.get_mut(list) {
            *users -= 1;
            if *users == 0 {
                self.users.remove(list);
            }
        }
    }

    /// How many different lists are in use.
    pub fn count(&self) -> usize {
        self.users.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_one_and_the_last_user_frees_it() {
        let mut lists = ActionLists::default();
        let first = lists.share(&[Action::Output { port: 1 }]);
        let second = lists.share(&[Action::Output { port: 1 }]);
        let other = lists.share(&[Action::Output { port: 2 }]);
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(lists.count(), 2);
        lists.release(&first);
        lists.release(&other);
        assert_eq!(lists.count(), 1);
        lists.release(&second);
        assert_eq!(lists.count(), 0);
    }

    #[test]
    fn a_destination_is_the_same_by_any_queue_and_for_any_length() {
        let port = Action::Output { port: 3 };
        assert!(port.same_destination(&Action::Enqueue { port: 3, queue: 9 }));
        assert!(!port.same_destination(&Action::Output { port: 4 }));
        assert!(Action::Local.same_destination(&Action::Output { port: LOCAL }));
        let all = Action::Controller { bytes_max: 65535 };
        assert!(all.same_destination(&Action::Controller { bytes_max: 64 }));
        assert!(!Action::StripVlan.same_destination(&Action::StripVlan));
    }
}
