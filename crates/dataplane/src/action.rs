//! What is done with a frame that an entry matched.
//!
//! The actions are those of the OpenFlow switch specifications 1.0.0, section 3.3, to 1.5.1, section
//! 5.8. In a list they are done in order; changes to the frame are seen by the outputs after them.
//! Which of them an entry may have is for the control plane to check: here an action on a header
//! that the frame does not have does nothing.

use std::sync::Arc;

use packet::field::Field;
use packet::frame::PortNo;

/// The port number under which the host itself may be attached to a forwarder.
pub const LOCAL: PortNo = 0xfffe;

/// What the output of an action set is called that has none.
pub const UNSET: PortNo = 0xfff7;

/// A list of actions.
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
    /// Outputs after this go by way of the queue of this number on their port.
    SetQueue(u32),
    /// Let a group say what becomes of it.
    Group(u32),
    /// Let it pass a meter, which may drop it and so end the list.
    Meter(u32),
    /// Set a field, if the frame has it: the bits of `mask` to those of `value`.
    SetField {
        /// The field.
        field: Field,
        /// The bits, zero outside of the mask.
        value: u128,
        /// Which bits are set.
        mask: u128,
    },
    /// Copy bits of one field into another, if the frame has both.
    CopyField {
        /// The field that is read.
        from: Field,
        /// Its lowest bit that is read.
        from_bit: u8,
        /// The field that is written.
        to: Field,
        /// Its lowest bit that is written.
        to_bit: u8,
        /// How many bits.
        bits: u8,
    },
    /// Add an outermost tag of this type (0x8100, 0x88a8) with what the tag before it said, or zero.
    PushVlan(u16),
    /// Remove the outermost tag, if there is one.
    PopVlan,
    /// Add an outermost MPLS entry before any tag, which makes this the Ethernet type (0x8847,
    /// 0x8848).
    PushMpls(u16),
    /// The same as before OpenFlow 1.3: it goes behind the VLAN tags.
    PushMplsBehindVlan(u16),
    /// Remove the outermost MPLS entry; this is the Ethernet type of what is behind it.
    PopMpls(u16),
    /// Add an outermost backbone header with a service tag of this type (0x88e7).
    PushPbb(u16),
    /// Remove the outermost backbone header, if there is one.
    PopPbb,
    /// Copy the time to live of the second outermost header that has one to the outermost.
    CopyTtlOut,
    /// Copy the time to live of the outermost header that has one to the second outermost.
    CopyTtlIn,
    /// Set the time to live of the outermost MPLS entry.
    SetMplsTtl(u8),
    /// Take one off the time to live of the outermost MPLS entry; a frame with none left is
    /// invalid.
    DecMplsTtl,
    /// Set the time to live (the hop limit) of IP.
    SetIpTtl(u8),
    /// Take one off the time to live of IP; a frame with none left is invalid.
    DecIpTtl,
    /// Set the VLAN identifier (12 bits), adding a tag of priority 0 to a frame without.
    SetVlan(u16),
    /// Set the VLAN priority (3 bits), adding a tag of identifier 0 to a frame without.
    SetVlanPriority(u8),
    /// Set the source port of TCP, UDP or SCTP, if there is one.
    SetL4Src(u16),
    /// Set the destination port of TCP, UDP or SCTP, if there is one.
    SetL4Dst(u16),
}

impl Action {
    /// Sets a whole field.
    pub const fn set(field: Field, value: u128) -> Action {
        Action::SetField { field, value, mask: field.ones() }
    }

    /// Whether it sends the frame somewhere (and does not change it).
    pub const fn is_output(&self) -> bool {
        matches!(
            self,
            Action::Output { .. }
                | Action::InPort
                | Action::All
                | Action::Flood
                | Action::Controller { .. }
                | Action::Normal
                | Action::Local
                | Action::Table
                | Action::Enqueue { .. }
                | Action::Group(_)
        )
    }

    /// Whether both send the frame to the same place: by whichever queue, and however much of it
    /// the controller wants.
    pub fn same_destination(&self, other: &Action) -> bool {
        if let (Action::Group(here), Action::Group(there)) = (self, other) {
            return here == there;
        }
        match (self.port(), other.port()) {
            (Some(here), Some(there)) => here == there,
            (None, None) if self.is_output() => {
                std::mem::discriminant(self) == std::mem::discriminant(other)
            }
            _ => false,
        }
    }

    /// The number, reserved ones within 16 bits, by which a match asks for its destination.
    pub fn port_asked(&self) -> Option<PortNo> {
        match self {
            Action::InPort => Some(0xfff8),
            Action::Table => Some(0xfff9),
            Action::Normal => Some(0xfffa),
            Action::Flood => Some(0xfffb),
            Action::All => Some(0xfffc),
            Action::Controller { .. } => Some(0xfffd),
            _ => self.port(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_the_same_by_any_queue_and_for_any_length() {
        let port = Action::Output { port: 3 };
        assert!(port.same_destination(&Action::Enqueue { port: 3, queue: 9 }));
        assert!(!port.same_destination(&Action::Output { port: 4 }));
        assert!(Action::Local.same_destination(&Action::Output { port: LOCAL }));
        let all = Action::Controller { bytes_max: 65535 };
        assert!(all.same_destination(&Action::Controller { bytes_max: 64 }));
        assert!(!Action::PopVlan.same_destination(&Action::PopVlan));
    }
}
