//! ARP requests and replies.
//!
//! Source: RFC 826. Any message updates the address of a known or pending neighbor. A neighbor that
//! sends a request to the router is added. All other messages, including unsolicited announcements,
//! are dropped silently. Only addresses of the interface's own networks are added. A message from
//! one of the router's own addresses (a duplicate) changes nothing.

use core::net::Ipv4Addr;

use packet::build::Builder;
use packet::frame::Frame;
use packet::header::{arp, ethernet};

use super::{FrameContext, FrameOutcome, Interface, Router, is_host};
use crate::counter::DropReason;
use crate::forwarder::{Outputs, Sent};
use crate::neighbor::Place;
use crate::route_table::Prefix;

impl Router {
    pub(super) fn receive_arp(
        &mut self,
        at: usize,
        frame: &Frame,
        way: &mut FrameContext,
    ) -> FrameOutcome {
        let bytes = &frame.bytes()[ethernet::HEADER_BYTES..];
        let Ok((message, _)) = arp::Header::parse(bytes) else {
            return FrameOutcome::Lost(DropReason::BadArp);
        };
        if ethernet::is_group(&message.sender_mac) || message.sender_mac == [0; 6] {
            return FrameOutcome::Lost(DropReason::BadArp);
        }
        let interface = &self.interfaces[at];
        let asks_us = interface.has(message.target_ip);
        let (port, sender) = (interface.port, message.sender_ip);
        if is_host(sender) && !interface.has(sender) {
            let place = Place { port, address: sender };
            let add = asks_us && interface.reaches(sender);
            let waiting = self.neighbors.learn(place, message.sender_mac, add, way.now);
            for frame in waiting {
                self.release(at, message.sender_mac, frame, way.out);
            }
        }
        if asks_us && message.operation == arp::REQUEST {
            self.answer(at, &message, way.out);
        }
        FrameOutcome::Consumed
    }

    fn answer(&mut self, at: usize, request: &arp::Header, out: &mut Outputs) {
        let (port, mac) = (self.interfaces[at].port, self.interfaces[at].mac);
        let reply = arp::Header {
            operation: arp::REPLY,
            sender_mac: mac,
            sender_ip: request.target_ip,
            target_mac: request.sender_mac,
            target_ip: request.sender_ip,
        };
        let mut frame = Builder::new(request.sender_mac, mac).arp(reply).frame();
        match out.send(port, &mut frame) {
            Sent::Queued => self.counters.arp_replies += 1,
            Sent::NoSuchPort | Sent::QueueFull => self.counters.own_lost += 1,
        }
    }

    /// Broadcasts an ARP request for a neighbor.
    pub(super) fn ask(&mut self, place: Place, out: &mut Outputs) {
        let interface = self.interface(place.port).map(|at| &self.interfaces[at]);
        let Some((interface, sender_ip)) =
            interface.and_then(|interface| Some((interface, interface.source_for(place.address)?)))
        else {
            self.counters.own_lost += 1;
            return;
        };
        let request = arp::Header {
            operation: arp::REQUEST,
            sender_mac: interface.mac,
            sender_ip,
            target_mac: [0; 6],
            target_ip: place.address,
        };
        let mut frame = Builder::new(ethernet::BROADCAST, interface.mac).arp(request).frame();
        match out.send(place.port, &mut frame) {
            Sent::Queued => self.counters.arp_requests += 1,
            Sent::NoSuchPort | Sent::QueueFull => self.counters.own_lost += 1,
        }
    }
}

impl Interface {
    /// Whether the interface has this address.
    fn has(&self, address: Ipv4Addr) -> bool {
        self.addresses.iter().any(|&(own, _)| own == address)
    }

    /// Whether the address is in one of the interface's networks.
    fn reaches(&self, address: Ipv4Addr) -> bool {
        self.network_of(address).is_some()
    }

    /// Returns the source address for packets to this address: the one in the same network, or else
    /// the first.
    pub(super) fn source_for(&self, address: Ipv4Addr) -> Option<Ipv4Addr> {
        let first = || self.addresses.first().map(|&(own, _)| own);
        self.network_of(address).or_else(first)
    }

    /// Returns the interface's address in the network of this address.
    fn network_of(&self, address: Ipv4Addr) -> Option<Ipv4Addr> {
        let mut nets = self.addresses.iter();
        let holds = |own, length| Prefix::new(own, length).is_some_and(|net| net.holds(address));
        nets.find(|&&(own, length)| holds(own, length)).map(|&(own, _)| own)
    }
}
