//! Actions of a flow entry.
//!
//! The actions are those of the OpenFlow switch specifications 1.0.0, section 3.3, to 1.5.1,
//! section 5.8. A list executes in order; outputs see the changes of the actions before them. The
//! control plane checks which actions an entry may have. Here, an action on a header that the frame
//! does not have does nothing.

use std::sync::Arc;

use packet::field::Field;
use packet::frame::PortNo;

/// Port number of the local host, if it is attached to a forwarder.
pub const LOCAL: PortNo = 0xfffe;

/// Output port of an action set without an output.
pub const UNSET: PortNo = 0xfff7;

/// A list of actions.
pub type Actions = Arc<[Action]>;

/// An action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Sends the frame to a port, unless that is the ingress port.
    Output {
        /// The port.
        port: PortNo,
    },
    /// Sends the frame back to the ingress port.
    InPort,
    /// Sends the frame to every port but the ingress port.
    All,
    /// Sends the frame to every port but the ingress port and those with flooding disabled.
    Flood,
    /// Sends the frame to the controller.
    Controller {
        /// Maximum number of bytes to send.
        bytes_max: u16,
    },
    /// Forwards the frame as a learning bridge does.
    Normal,
    /// Sends the frame to the host at port [`LOCAL`].
    Local,
    /// Looks the frame up in the tables, as if it had just been received. Valid only for
    /// packet-outs: in an entry it drops the frame.
    Table,
    /// Sends the frame to a port through one of the port's queues.
    Enqueue {
        /// The port.
        port: PortNo,
        /// The queue's number on that port.
        queue: u32,
    },
    /// Selects the queue of this number for later outputs, on their ports.
    SetQueue(u32),
    /// Processes the frame in a group.
    Group(u32),
    /// Applies a meter, which may drop the frame; this ends the list.
    Meter(u32),
    /// Sets the bits of `mask` in a field to those of `value`, if the frame has the field.
    SetField {
        /// The field.
        field: Field,
        /// The bits, zero outside of the mask.
        value: u128,
        /// Which bits are set.
        mask: u128,
    },
    /// Copies bits of one field to another, if the frame has both.
    CopyField {
        /// The source field.
        from: Field,
        /// Its lowest bit to read.
        from_bit: u8,
        /// The destination field.
        to: Field,
        /// Its lowest bit to write.
        to_bit: u8,
        /// Number of bits.
        bits: u8,
    },
    /// Pushes an outermost tag of this type (0x8100, 0x88a8). It has the contents of the previous
    /// outermost tag, or zero.
    PushVlan(u16),
    /// Pops the outermost tag, if there is one.
    PopVlan,
    /// Pushes an outermost MPLS entry before any tag, and sets the Ethernet type to this one
    /// (0x8847, 0x8848).
    PushMpls(u16),
    /// Pushes an MPLS entry after the VLAN tags, as before OpenFlow 1.3.
    PushMplsBehindVlan(u16),
    /// Pops the outermost MPLS entry, and sets the Ethernet type to this one.
    PopMpls(u16),
    /// Pushes an outermost PBB header with a service tag of this type (0x88e7).
    PushPbb(u16),
    /// Pops the outermost PBB header, if there is one.
    PopPbb,
    /// Copies the TTL of the second outermost header with a TTL to the outermost one.
    CopyTtlOut,
    /// Copies the TTL of the outermost header with a TTL to the second outermost one.
    CopyTtlIn,
    /// Sets the TTL of the outermost MPLS entry.
    SetMplsTtl(u8),
    /// Decrements the TTL of the outermost MPLS entry; a frame without TTL left is invalid.
    DecMplsTtl,
    /// Sets the IP TTL or hop limit.
    SetIpTtl(u8),
    /// Decrements the IP TTL or hop limit; a frame without TTL left is invalid.
    DecIpTtl,
    /// Sets the VLAN identifier (12 bits); adds a tag of priority 0 to a frame without one.
    SetVlan(u16),
    /// Sets the VLAN priority (3 bits); adds a tag of identifier 0 to a frame without one.
    SetVlanPriority(u8),
    /// Sets the source port of TCP, UDP or SCTP, if there is one.
    SetL4Src(u16),
    /// Sets the destination port of TCP, UDP or SCTP, if there is one.
    SetL4Dst(u16),
}

impl Action {
    /// Creates an action that sets a whole field.
    pub const fn set(field: Field, value: u128) -> Action {
        Action::SetField { field, value, mask: field.ones() }
    }

    /// Whether the action sends the frame somewhere (and does not change it).
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

    /// Whether both actions have the same destination, regardless of the queue and of the length
    /// for the controller.
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

    /// Returns the destination as a 16-bit port number, with the reserved numbers, as in a flow
    /// filter.
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

    /// Returns the port that the action names.
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
    fn same_destination_ignores_the_queue_and_the_length() {
        let port = Action::Output { port: 3 };
        assert!(port.same_destination(&Action::Enqueue { port: 3, queue: 9 }));
        assert!(!port.same_destination(&Action::Output { port: 4 }));
        assert!(Action::Local.same_destination(&Action::Output { port: LOCAL }));
        let all = Action::Controller { bytes_max: 65535 };
        assert!(all.same_destination(&Action::Controller { bytes_max: 64 }));
        assert!(!Action::PopVlan.same_destination(&Action::PopVlan));
    }
}
