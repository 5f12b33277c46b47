//! One-line text form of a frame.
//!
//! The line lists the headers from the outermost inwards as far as they are valid, then payload
//! length, padding and faults. It resembles the output of tcpdump but is stable, because tests
//! compare it. Formatting never fails or allocates.

use std::fmt;

use crate::header::ethernet;
use crate::parse::{Network, Packet, Transport};

/// Displays the bytes of a frame, destination address first.
pub struct Show<'a>(pub &'a [u8]);

impl fmt::Display for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packet = Packet::of(self.0);
        match packet.ethernet() {
            Some(view) => write!(f, "{view}")?,
            None => write!(f, "no frame")?,
        }
        for depth in 0..packet.layers.tags {
            if let Some(view) = packet.vlan(depth) {
                write!(f, " {view}")?;
            }
        }
        show_network(&packet, f)?;
        show_transport(&packet, f)?;
        write!(f, " payload {}", packet.payload().len())?;
        match self.0.len() - packet.layers.payload().end {
            0 => {}
            padding => write!(f, " padding {padding}")?,
        }
        if let Err(fault) = packet.layers.fault.map_or_else(|| packet.verify_checksums(), Err) {
            write!(f, " malformed {fault}")?;
        }
        Ok(())
    }
}

fn show_network(packet: &Packet<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some(view) = packet.arp() {
        write!(f, " {view}")?;
    }
    if let Some(view) = packet.pbb() {
        return write!(f, " {view}");
    }
    let mut labelled = false;
    for view in packet.mpls() {
        write!(f, " {view}")?;
        labelled = true;
    }
    if labelled {
        return Ok(());
    }
    if let Some(view) = packet.ipv4() {
        write!(f, " {view}")?;
    }
    if let Some(view) = packet.ipv6() {
        write!(f, " {view}")?;
    }
    match (packet.layers.network, packet.layers.ether_type) {
        (Network::None, 0) => Ok(()),
        (Network::None, ethernet::TYPE_NONE) => write!(f, " llc"),
        (Network::None, ether_type) => write!(f, " type {ether_type:#06x}"),
        _ => Ok(()),
    }
}

fn show_transport(packet: &Packet<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some(view) = packet.icmp() {
        write!(f, " {view}")?;
    }
    if let Some(view) = packet.icmpv6() {
        write!(f, " {view}")?;
    }
    if let Some(view) = packet.tcp() {
        write!(f, " {view}")?;
    }
    if let Some(view) = packet.udp() {
        write!(f, " {view}")?;
    }
    if let Some(view) = packet.sctp() {
        write!(f, " {view}")?;
    }
    let ip = matches!(packet.layers.network, Network::Ipv4 | Network::Ipv6);
    match packet.layers.transport {
        Transport::None if ip => write!(f, " protocol {}", packet.layers.protocol),
        _ => Ok(()),
    }
}
