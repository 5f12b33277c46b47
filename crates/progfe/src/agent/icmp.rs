//! ICMP agent of a router: echo replies for its own addresses, and ICMP errors for undeliverable
//! packets.
//!
//! - Divert delivers packets without link-layer header, with the reason in ExceptionID.
//! - Inject sends replies, errors and fragments by output 0 (IPv4) or output 1 (IPv6), which lead
//!   to the longest prefix match.
//! - RFC 1812 section 4.3 and RFC 4443 section 2.4 define which packets get no error. A token
//!   bucket limits the errors.

use core::net::IpAddr;

use packet::frame::Frame;
use packet::header::{ethernet, ipv4};
use packet::time::Nanos;

use super::interface::{Interface, is_host};
use super::{Agent, Around, Sent, Setup, StatusValue};
use crate::lfb::exceptions::DivertedFrame;
use crate::lfb::meter::Bucket;
use crate::lfb::{exception, meta_id};
use crate::program::base_id;

mod message;

use message::{Fault, Whole};

/// Default rate limit, in errors per second.
const ERRORS_PER_S: u64 = 100;
/// Minimum MTU of a link (RFC 791, RFC 8200).
const MTU_MIN_V4: u64 = 68;
const MTU_MIN_V6: u64 = 1280;

/// The ICMP agent.
#[derive(Debug)]
pub struct Icmp {
    interfaces: Vec<Interface>,
    /// Blocks that contain the MTU of links.
    next_hops: Vec<String>,
    errors: Bucket,
    counters: Counters,
}

/// Packets by outcome.
#[derive(Debug, Default, Clone, Copy)]
struct Counters {
    echo_replies: u64,
    errors: u64,
    errors_limited: u64,
    fragmented: u64,
    fragments: u64,
    not_told: u64,
    not_read: u64,
}

impl Icmp {
    /// Creates the agent from its settings.
    pub fn new(setup: &mut Setup<'_>) -> Option<Icmp> {
        let own = setup.own(&["errors_per_s"]);
        let rate = setup.number(own, "errors_per_s", Some(ERRORS_PER_S), 1..=1_000_000)?;
        let (mut interfaces, mut next_hops) = (Vec::new(), Vec::new());
        for setting in setup.elements(&["interface", "next-hops"]) {
            if setting.name == "interface" {
                interfaces.extend(Interface::read(setup, setting));
                continue;
            }
            let fields = setup.fields(setting, &["v4", "v6"]);
            next_hops.extend(setup.instance(fields, "v4", base_id::NEXT_HOP_V4));
            next_hops.extend(setup.instance(fields, "v6", base_id::NEXT_HOP_V6));
        }
        if interfaces.is_empty() {
            let hint = "write <interface port=\"1\" address=\"10.1.0.1/24\"/>";
            setup.lacks("no interface", hint);
        }
        let errors = Bucket::new(rate, rate.min(50));
        Some(Icmp { interfaces, next_hops, errors, counters: Counters::default() })
    }

    fn has(&self, address: IpAddr) -> bool {
        self.interfaces.iter().any(|interface| interface.has(address))
    }

    /// Processes a packet for the router itself.
    fn receive(&mut self, packet: &Whole, port: u32, around: &mut Around<'_>) {
        let source = packet.ends().map(|(source, _)| source);
        if let Some(reply) = packet.echo_reply().filter(|_| source.is_some_and(is_host)) {
            self.counters.echo_replies += 1;
            return put_in(&reply, around);
        }
        match packet.fault_here() {
            Some(fault) => self.tell(packet, fault, port, around),
            None => self.counters.not_told += 1,
        }
    }

    /// Sends an error to the sender of a packet, if permitted and within the rate limit.
    fn tell(&mut self, packet: &Whole, fault: Fault, port: u32, around: &mut Around<'_>) {
        let sender = packet.ends().filter(|_| packet.may_be_told()).map(|(sender, _)| sender);
        let broadcast = |to: IpAddr| {
            let mut networks = self.interfaces.iter().flat_map(|it| &it.networks);
            networks.any(|network| network.is_broadcast(to))
        };
        let sender = sender.filter(|it| !broadcast(*it) && !self.has(*it));
        let about_all = packet.ends().is_some_and(|(_, to)| broadcast(to));
        let from = sender.filter(|_| !about_all).and_then(|sender| self.source_for(sender, port));
        let error = from.and_then(|from| packet.error(fault, from));
        let Some(error) = error else {
            self.counters.not_told += 1;
            return;
        };
        if !self.errors.has(1, around.now) {
            self.counters.errors_limited += 1;
            return;
        }
        self.errors.take(1);
        self.counters.errors += 1;
        put_in(&error, around);
    }

    /// Returns the source address of an error: that of the sender's network, or of the ingress
    /// port.
    fn source_for(&self, sender: IpAddr, port: u32) -> Option<IpAddr> {
        let near = self.interfaces.iter().find(|interface| interface.reaches(sender));
        let came = self.interfaces.iter().find(|interface| interface.port == port);
        near.or(came)?.source_for(sender)
    }

    /// Processes a packet that exceeds the MTU of its next link.
    fn too_big(
        &mut self,
        packet: &Whole,
        told: &DivertedFrame,
        port: u32,
        around: &mut Around<'_>,
    ) {
        let selector = told.meta.iter().find(|(id, _)| *id == meta_id::HOP_SELECTOR);
        let is_v4 = packet.ends().is_some_and(|(source, _)| source.is_ipv4());
        let table = if is_v4 { "IPv4NextHopTable" } else { "IPv6NextHopTable" };
        let mtu = selector.and_then(|(_, row)| {
            let path = format!("{table}[{row}].MTU");
            self.next_hops.iter().find_map(|name| around.tables.number(name, &path, around.now))
        });
        let least = if is_v4 { MTU_MIN_V4 } else { MTU_MIN_V6 };
        let mtu = mtu.filter(|mtu| (least..=u16::MAX.into()).contains(mtu));
        let Some(mtu) = mtu.map(|mtu| mtu as u16) else {
            self.counters.not_told += 1;
            return;
        };
        if packet.stays_whole() {
            return self.tell(packet, Fault::TooBig { mtu }, port, around);
        }
        let pieces = dataplane::router::fragment::cut(told.frame.bytes(), mtu.into());
        let Some(pieces) = pieces else {
            self.counters.not_read += 1;
            return;
        };
        self.counters.fragmented += 1;
        self.counters.fragments += pieces.len() as u64;
        for piece in pieces {
            let bytes = &piece.bytes()[ethernet::HEADER_BYTES..];
            let length = ipv4::View::new(bytes).map_or(0, |view| view.total_length().into());
            put_in(&bytes[..bytes.len().min(length)], around);
        }
    }
}

/// Injects a packet in front of the route lookup.
fn put_in(packet: &[u8], around: &mut Around<'_>) {
    let frame = Frame::from_bytes(packet);
    let output = u32::from(packet.first().is_some_and(|first| first >> 4 == 6));
    around.sent.push(Sent { output, meta: Vec::new(), frame });
}

impl Agent for Icmp {
    fn frame_came(&mut self, told: DivertedFrame, around: &mut Around<'_>) {
        let meta = |id: u32| told.meta.iter().find(|(known, _)| *known == id).map(|(_, it)| *it);
        let port = meta(meta_id::PHY_PORT).unwrap_or(0) as u32;
        // Link-layer multicasts and broadcasts get no reply.
        let to_group = meta(meta_id::DST_MAC).is_some_and(|mac| mac >> 40 & 1 == 1);
        let Some(packet) = Whole::new(told.frame.bytes()) else {
            self.counters.not_read += 1;
            return;
        };
        if to_group {
            self.counters.not_told += 1;
            return;
        }
        if packet.ends().is_some_and(|(_, destination)| self.has(destination)) {
            return self.receive(&packet, port, around);
        }
        let fault = match meta(meta_id::EXCEPTION) {
            Some(exception::BAD_TTL | exception::HOP_LIMIT_ZERO) => Fault::TimeExceeded,
            Some(
                exception::LPM_FAILED
                | exception::HOP_SELECTOR_INVALID
                | exception::NEXT_HOP_FAILED,
            ) => Fault::NoRoute,
            Some(exception::ENCAP_INDEX_INVALID | exception::ENCAP_LOOKUP_FAILED) => Fault::NoHost,
            Some(exception::FRAGMENTATION) => return self.too_big(&packet, &told, port, around),
            _ => {
                self.counters.not_told += 1;
                return;
            }
        };
        self.tell(&packet, fault, port, around);
    }

    fn facts(&self, _now: Nanos) -> StatusValue {
        let counts = &self.counters;
        StatusValue::from([
            ("echo_replies", counts.echo_replies.into()),
            ("errors", counts.errors.into()),
            ("errors_limited", counts.errors_limited.into()),
            ("fragmented", counts.fragmented.into()),
            ("fragments", counts.fragments.into()),
            ("not_told", counts.not_told.into()),
            ("not_read", counts.not_read.into()),
        ])
    }
}

#[cfg(test)]
mod tests;
