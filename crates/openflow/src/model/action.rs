//! Actions on a frame.
//!
//! Source: OpenFlow 1.0.0 section 5.2.4 (`ofp_action_*`), 1.3.5 section 7.2.5 and 1.5.1 section
//! 7.2.6.
//!
//! - The switch executes a list of actions in order; an empty list drops the frame.
//! - [`Action::SetField`] also represents the actions of 1.0 and 1.1 that set one field each. Those
//!   without an equivalent field have variants of their own.
//! - The codec rejects values that do not fit their field, when encoding and when decoding.

use std::fmt;

use packet::field::{Field, VLAN_PRESENT};

use super::matching::{FieldMatch, MacAddress, mac_bits};
use super::port::{PortNo, ShowPort, reserved};
use super::text::Hex;
use crate::version::ActionKind;

/// One action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Sends the frame out of a port.
    Output {
        /// The port, possibly a reserved one.
        port: PortNo,
        /// Maximum bytes of the frame that the controller receives, if the port is the controller.
        bytes_max: u16,
    },
    /// Processes the frame in a group.
    Group(u32),
    /// Selects the queue for later outputs.
    SetQueue(u32),
    /// Sends the frame through a queue of a port (1.0).
    Enqueue {
        /// A physical port, or [`reserved::IN_PORT`].
        port: PortNo,
        /// The queue's number at that port.
        queue: u32,
    },
    /// Sets the bits of a field that are in the mask; a partial mask requires 1.5.
    SetField(FieldMatch),
    /// Copies bits from one field to another (1.5).
    CopyField(CopyField),
    /// Adds a VLAN tag of this Ethernet type.
    PushVlan(u16),
    /// Removes the outermost VLAN tag, if there is one.
    PopVlan,
    /// Adds an MPLS label stack entry and sets this Ethernet type.
    PushMpls(u16),
    /// Removes the outermost MPLS label stack entry and sets this Ethernet type.
    PopMpls(u16),
    /// Adds a PBB tag of this Ethernet type.
    PushPbb(u16),
    /// Removes the outermost PBB tag.
    PopPbb,
    /// Copies the TTL from the next-to-outermost header to the outermost.
    CopyTtlOut,
    /// Copies the TTL from the outermost header to the next-to-outermost.
    CopyTtlIn,
    /// Sets the TTL of the outermost MPLS label stack entry.
    SetMplsTtl(u8),
    /// Decrements the TTL of the outermost MPLS label stack entry.
    DecMplsTtl,
    /// Sets the IP TTL.
    SetNwTtl(u8),
    /// Decrements the IP TTL.
    DecNwTtl,
    /// Applies a meter to the frame (1.5; an instruction in 1.3 and 1.4).
    Meter(u32),
    /// Sets the VLAN ID (0 to 4095); adds a tag if there is none (1.0).
    SetVlanVid(u16),
    /// Sets the VLAN priority (0 to 7); adds a tag if there is none (1.0).
    SetVlanPcp(u8),
    /// Sets the transport source port or the ICMP type (1.0 and 1.1).
    SetTransportSrc(u16),
    /// Sets the transport destination port or the ICMP code (1.0 and 1.1).
    SetTransportDst(u16),
    /// An experimenter action.
    Experimenter(Experimenter),
}

/// Source and destination of a copy-field action. Bits count from the least significant one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CopyField {
    /// Number of bits.
    pub bits: u16,
    /// Source field.
    pub src: Field,
    /// First bit in the source field.
    pub src_offset: u16,
    /// Destination field.
    pub dst: Field,
    /// First bit in the destination field.
    pub dst_offset: u16,
}

/// Experimenter data ("vendor" in 1.0), of an action, a message or a property.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Experimenter {
    /// Experimenter ID: a 24-bit OUI, or an ID that the ONF assigned.
    pub experimenter: u32,
    /// The bytes after the experimenter ID. In an action their number is four more than a multiple
    /// of eight.
    pub body: Vec<u8>,
}

impl Action {
    /// Returns an output action to `port`; the controller receives the whole frame.
    pub fn output(port: PortNo) -> Action {
        let bytes_max = if port == reserved::CONTROLLER { u16::MAX } else { 0 };
        Action::Output { port, bytes_max }
    }

    /// Returns an action that sets the whole field.
    pub fn set(field: Field, value: impl Into<u128>) -> Action {
        Action::SetField(FieldMatch::exact(field, value))
    }

    /// Returns an action that sets an Ethernet address.
    pub fn set_mac(field: Field, mac: MacAddress) -> Action {
        Action::set(field, mac_bits(mac))
    }

    /// Returns an action that sets the VLAN ID of an existing tag.
    pub fn set_vlan(id: u16) -> Action {
        Action::set(Field::VlanVid, VLAN_PRESENT | u128::from(id & 0xfff))
    }

    /// Returns the action type.
    pub fn kind(&self) -> ActionKind {
        match self {
            Action::Output { .. } => ActionKind::Output,
            Action::Group(_) => ActionKind::Group,
            Action::SetQueue(_) => ActionKind::SetQueue,
            Action::Enqueue { .. } => ActionKind::Enqueue,
            Action::SetField(_) => ActionKind::SetField,
            Action::CopyField(_) => ActionKind::CopyField,
            Action::PushVlan(_) => ActionKind::PushVlan,
            Action::PopVlan => ActionKind::PopVlan,
            Action::PushMpls(_) => ActionKind::PushMpls,
            Action::PopMpls(_) => ActionKind::PopMpls,
            Action::PushPbb(_) => ActionKind::PushPbb,
            Action::PopPbb => ActionKind::PopPbb,
            Action::CopyTtlOut => ActionKind::CopyTtlOut,
            Action::CopyTtlIn => ActionKind::CopyTtlIn,
            Action::SetMplsTtl(_) => ActionKind::SetMplsTtl,
            Action::DecMplsTtl => ActionKind::DecMplsTtl,
            Action::SetNwTtl(_) => ActionKind::SetNwTtl,
            Action::DecNwTtl => ActionKind::DecNwTtl,
            Action::Meter(_) => ActionKind::Meter,
            Action::SetVlanVid(_) => ActionKind::SetVlanVid,
            Action::SetVlanPcp(_) => ActionKind::SetVlanPcp,
            Action::SetTransportSrc(_) => ActionKind::SetTransportSrc,
            Action::SetTransportDst(_) => ActionKind::SetTransportDst,
            Action::Experimenter(_) => ActionKind::Experimenter,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.kind();
        match self {
            Action::Output { port: reserved::CONTROLLER, bytes_max } => {
                write!(f, "{name}:controller:{bytes_max}")
            }
            Action::Output { port, bytes_max: 0 } => write!(f, "{name}:{}", ShowPort(*port)),
            Action::Output { port, bytes_max } => {
                write!(f, "{name}:{}:{bytes_max}", ShowPort(*port))
            }
            Action::Group(number) | Action::SetQueue(number) | Action::Meter(number) => {
                write!(f, "{name}:{number}")
            }
            Action::Enqueue { port, queue } => write!(f, "{name}:{}:{queue}", ShowPort(*port)),
            Action::SetField(field) => write!(f, "{name}:{field}"),
            Action::CopyField(copy) => write!(f, "{name}:{copy}"),
            Action::PushVlan(eth_type)
            | Action::PushMpls(eth_type)
            | Action::PopMpls(eth_type)
            | Action::PushPbb(eth_type) => write!(f, "{name}:{eth_type:#06x}"),
            Action::SetVlanVid(value)
            | Action::SetTransportSrc(value)
            | Action::SetTransportDst(value) => write!(f, "{name}:{value}"),
            Action::SetVlanPcp(value) | Action::SetMplsTtl(value) | Action::SetNwTtl(value) => {
                write!(f, "{name}:{value}")
            }
            Action::PopVlan
            | Action::PopPbb
            | Action::CopyTtlOut
            | Action::CopyTtlIn
            | Action::DecMplsTtl
            | Action::DecNwTtl => write!(f, "{name}"),
            Action::Experimenter(experimenter) => write!(f, "{name}:{experimenter}"),
        }
    }
}

impl fmt::Display for CopyField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CopyField { bits, src, src_offset, dst, dst_offset } = self;
        write!(f, "{src}[{src_offset}]->{dst}[{dst_offset}]*{bits}")
    }
}

impl fmt::Display for Experimenter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}:{}", self.experimenter, Hex(&self.body))
    }
}
