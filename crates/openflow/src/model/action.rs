//! What is done with a frame, one step.
//!
//! Source: OpenFlow 1.0.0 section 5.2.4 (`ofp_action_*`), 1.3.5 section 7.2.5 and 1.5.1 section
//! 7.2.6. A list of actions is a row of these, done in order; an empty list drops the frame. What
//! 1.0 and 1.1 say with an action for each field is [`Action::SetField`] here, but for those whose
//! meaning no field has. Values that do not fit their field are refused when encoding and when
//! decoding.

use std::fmt;

use packet::field::{Field, VLAN_PRESENT};

use super::matching::{FieldMatch, MacAddress, mac_bits};
use super::port::{PortNo, ShowPort, reserved};
use super::text::Hex;
use crate::version::ActionKind;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Sends the frame out of a port.
    Output {
        /// The port, possibly a reserved one.
        port: PortNo,
        /// Bytes of the frame that the controller gets, if that is the port.
        bytes_max: u16,
    },
    /// Has a group deal with it.
    Group(u32),
    /// Chooses the queue for later outputs.
    SetQueue(u32),
    /// Sends the frame through a queue of a port (1.0).
    Enqueue {
        /// A real port, or [`reserved::IN_PORT`].
        port: PortNo,
        /// The queue's number at that port.
        queue: u32,
    },
    /// Sets a field in those bits that the mask has; a mask that is not full needs 1.5.
    SetField(FieldMatch),
    /// Copies bits from one field to another (1.5).
    CopyField(CopyField),
    /// Adds a VLAN tag of this Ethernet type.
    PushVlan(u16),
    /// Removes the outermost VLAN tag, if there is one.
    PopVlan,
    /// Adds an MPLS entry and sets this Ethernet type.
    PushMpls(u16),
    /// Removes the outermost MPLS entry and sets this Ethernet type.
    PopMpls(u16),
    /// Adds a backbone tag of this Ethernet type.
    PushPbb(u16),
    /// Removes the outermost backbone tag.
    PopPbb,
    /// Copies the TTL from the header next to the outermost to the outermost.
    CopyTtlOut,
    /// Copies the TTL from the outermost header to the next.
    CopyTtlIn,
    /// Sets the TTL of the outermost MPLS entry.
    SetMplsTtl(u8),
    /// Takes one off it.
    DecMplsTtl,
    /// Sets the TTL of IP.
    SetNwTtl(u8),
    /// Takes one off it.
    DecNwTtl,
    /// Has a meter look at the frame (1.5; before, an instruction).
    Meter(u32),
    /// Sets the VLAN id (0 to 4095), adding a tag if there is none (1.0).
    SetVlanVid(u16),
    /// Sets the VLAN priority (0 to 7), adding a tag if there is none (1.0).
    SetVlanPcp(u8),
    /// Sets the source port, or the ICMP type, of whatever transport there is (1.0 and 1.1).
    SetTransportSrc(u16),
    /// Sets the destination port, or the ICMP code, of whatever transport there is (1.0 and 1.1).
    SetTransportDst(u16),
    /// What somebody else defines.
    Experimenter(Experimenter),
}

/// Which bits are copied where. Bits count from the least significant one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CopyField {
    /// How many.
    pub bits: u16,
    /// From this field.
    pub src: Field,
    /// From this bit on.
    pub src_offset: u16,
    /// To this field.
    pub dst: Field,
    /// To this bit and those above.
    pub dst_offset: u16,
}

/// Bytes that somebody else gives a meaning; "vendor" in 1.0. Also an experimenter's property.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Experimenter {
    /// Whose: an organisation's 24-bit OUI, or a number that was given out.
    pub experimenter: u32,
    /// Everything after that number. In an action its length is four bytes more than a multiple
    /// of eight.
    pub body: Vec<u8>,
}

impl Action {
    /// Sends the frame out of `port`, whole if that is the controller.
    pub fn output(port: PortNo) -> Action {
        let bytes_max = if port == reserved::CONTROLLER { u16::MAX } else { 0 };
        Action::Output { port, bytes_max }
    }

    /// Sets the whole field.
    pub fn set(field: Field, value: impl Into<u128>) -> Action {
        Action::SetField(FieldMatch::exact(field, value))
    }

    /// Sets an Ethernet address.
    pub fn set_mac(field: Field, mac: MacAddress) -> Action {
        Action::set(field, mac_bits(mac))
    }

    /// Sets the identifier of the tag that there is.
    pub fn set_vlan(id: u16) -> Action {
        Action::set(Field::VlanVid, VLAN_PRESENT | u128::from(id & 0xfff))
    }

    /// Its row in the table of versions.
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
