//! What is done with a frame, one step.
//!
//! Source: OpenFlow 1.0.0 section 5.2.4 (`ofp_action_*`). A list of actions is a row of these,
//! done in order; an empty list drops the frame. Values that their header field cannot hold (a
//! VLAN id above 4095, a priority above 7, a DSCP above 63) are refused when encoding and when
//! decoding.

use core::net::Ipv4Addr;
use std::fmt;

use super::matching::{MacAddress, show_mac};
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
    /// Sets the VLAN id (0 to 4095), adding a tag if there is none.
    SetVlanVid(u16),
    /// Sets the VLAN priority (0 to 7), adding a tag if there is none.
    SetVlanPcp(u8),
    /// Removes the outermost VLAN tag, if there is one.
    StripVlan,
    /// Sets the source address.
    SetEthSrc(MacAddress),
    /// Sets the destination address.
    SetEthDst(MacAddress),
    /// Sets the IPv4 source.
    SetIpSrc(Ipv4Addr),
    /// Sets the IPv4 destination.
    SetIpDst(Ipv4Addr),
    /// Sets the DSCP (0 to 63).
    SetIpDscp(u8),
    /// Sets the TCP or UDP source port, or the ICMP type.
    SetTransportSrc(u16),
    /// Sets the TCP or UDP destination port, or the ICMP code.
    SetTransportDst(u16),
    /// Sends the frame through a queue of a port.
    Enqueue {
        /// A real port, or [`reserved::IN_PORT`].
        port: PortNo,
        /// The queue's number at that port.
        queue: u32,
    },
    /// What somebody else defines.
    Experimenter(Experimenter),
}

/// Bytes that somebody else gives a meaning; "vendor" in 1.0.
#[derive(Debug, Clone, PartialEq, Eq)]
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

    /// Its row in the table of versions.
    pub fn kind(&self) -> ActionKind {
        match self {
            Action::Output { .. } => ActionKind::Output,
            Action::SetVlanVid(_) => ActionKind::SetVlanVid,
            Action::SetVlanPcp(_) => ActionKind::SetVlanPcp,
            Action::StripVlan => ActionKind::StripVlan,
            Action::SetEthSrc(_) => ActionKind::SetEthSrc,
            Action::SetEthDst(_) => ActionKind::SetEthDst,
            Action::SetIpSrc(_) => ActionKind::SetIpSrc,
            Action::SetIpDst(_) => ActionKind::SetIpDst,
            Action::SetIpDscp(_) => ActionKind::SetIpDscp,
            Action::SetTransportSrc(_) => ActionKind::SetTransportSrc,
            Action::SetTransportDst(_) => ActionKind::SetTransportDst,
            Action::Enqueue { .. } => ActionKind::Enqueue,
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
            Action::SetVlanVid(value)
            | Action::SetTransportSrc(value)
            | Action::SetTransportDst(value) => write!(f, "{name}:{value}"),
            Action::SetVlanPcp(value) | Action::SetIpDscp(value) => write!(f, "{name}:{value}"),
            Action::StripVlan => write!(f, "{name}"),
            Action::SetEthSrc(mac) | Action::SetEthDst(mac) => {
                write!(f, "{name}:")?;
                show_mac(f, mac)
            }
            Action::SetIpSrc(ip) | Action::SetIpDst(ip) => write!(f, "{name}:{ip}"),
            Action::Enqueue { port, queue } => write!(f, "{name}:{}:{queue}", ShowPort(*port)),
            Action::Experimenter(experimenter) => write!(f, "{name}:{experimenter}"),
        }
    }
}

impl fmt::Display for Experimenter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}:{}", self.experimenter, Hex(&self.body))
    }
}
