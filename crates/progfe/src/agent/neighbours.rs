//! Neighbour agent of a router: ARP (RFC 826) and neighbour discovery (RFC 4861).
//!
//! - The agent replies to requests for the addresses of its interfaces and learns the senders.
//! - Packets for which EtherEncap has no header wait here while the agent requests the address of
//!   their next hop.
//! - After a reply, EtherEncap gets the header and the packets continue. Without a reply, they
//!   leave by another output as unreachable.
//!
//! Invariant: the agent learns only addresses in networks of its interfaces, and never its own.

use core::net::IpAddr;

use packet::header::ethernet::{self, Mac};
use packet::header::{ipv4, ipv6};
use packet::time::Nanos;

use super::interface::{Interface, is_host};
use super::{Agent, Around, Sent, Setup, StatusValue};
use crate::lfb::exceptions::DivertedFrame;
use crate::lfb::{exception, meta_id};
use crate::program::base_id;

mod message;
mod table;

use message::{Message, Speaker};
use table::{Due, Place, Table, Wanted};

/// Events of such an agent.
pub const EVENTS: &[&str] = &["NeighbourFound", "NeighbourMoved", "NeighbourLost"];

/// The neighbour agent.
#[derive(Debug)]
pub struct Neighbours {
    interfaces: Vec<Interface>,
    /// Name of the EtherEncap that gets the neighbours.
    encap: Option<String>,
    /// Outputs of Inject for packets that waited, after the outputs for ports.
    resolved: u32,
    unresolved: u32,
    table: Table,
    is_fresh: bool,
    counters: Counters,
}

/// Frames by outcome.
#[derive(Debug, Default, Clone, Copy)]
struct Counters {
    questions: u64,
    answers: u64,
    resolved: u64,
    unresolved: u64,
    waiting_lost: u64,
    not_read: u64,
    no_interface: u64,
}

impl Neighbours {
    /// Creates the agent from its settings.
    pub fn new(setup: &mut Setup<'_>) -> Option<Neighbours> {
        setup.own(&[]);
        let ports = setup.program.ports.len() as u64;
        let (mut interfaces, mut encap, mut outputs) = (Vec::new(), None, [ports, ports + 1]);
        for setting in setup.elements(&["interface", "resolve"]) {
            if setting.name == "interface" {
                interfaces.extend(Interface::read(setup, setting));
                continue;
            }
            let fields = setup.fields(setting, &["encap", "output", "unreachable"]);
            setup.needed(fields, "encap");
            encap = setup.instance(fields, "encap", base_id::ENCAP);
            for (output, name) in outputs.iter_mut().zip(["output", "unreachable"]) {
                *output = setup.number(fields, name, Some(*output), 0..=4095).unwrap_or(*output);
            }
        }
        if interfaces.is_empty() {
            let hint = "write <interface port=\"1\" address=\"10.1.0.1/24\"/>";
            setup.lacks("no interface", hint);
        }
        Some(Neighbours {
            interfaces,
            encap,
            resolved: outputs[0] as u32,
            unresolved: outputs[1] as u32,
            table: Table::default(),
            is_fresh: true,
            counters: Counters::default(),
        })
    }

    /// Resolves the next hop of a packet, or forwards the packet if it is known.
    fn want(&mut self, told: DivertedFrame, around: &mut Around<'_>) {
        let meta = |id: u32| told.meta.iter().find(|(known, _)| *known == id).map(|(_, it)| *it);
        let port = meta(meta_id::L3_PORT);
        let next =
            next_hop(told.frame.bytes(), meta(meta_id::NEXT_HOP_V4), meta(meta_id::NEXT_HOP_V6));
        let at = self.interfaces.iter().position(|it| {
            Some(u128::from(it.port)) == port && next.is_some_and(|next| it.reaches(next))
        });
        let (Some(at), Some(next)) = (at, next.filter(|next| is_host(*next))) else {
            self.counters.no_interface += 1;
            return self.give_up(told, around);
        };
        match self.table.want((at, next), told, around.now) {
            Wanted::Known(mac, told) => {
                self.tell((at, next), Some(mac), around);
                self.go_on(told, around);
            }
            Wanted::Waits(is_first) => {
                if is_first {
                    self.ask((at, next), None, around);
                }
            }
            Wanted::Lost => self.counters.waiting_lost += 1,
        }
    }

    fn ask(&mut self, (at, address): Place, to: Option<Mac>, around: &mut Around<'_>) {
        let interface = &self.interfaces[at];
        let Some(own) = interface.source_for(address) else { return };
        let speaker = Speaker { mac: interface.mac(around), address: own, vid: interface.vid };
        if let Some(frame) = speaker.question(address, to) {
            around.send(interface.port, &frame);
            self.counters.questions += 1;
        }
    }

    /// Sets or removes a neighbour in EtherEncap.
    fn tell(&self, (at, address): Place, mac: Option<Mac>, around: &mut Around<'_>) {
        let Some(encap) = &self.encap else { return };
        let interface = &self.interfaces[at];
        let source = interface.mac(around);
        let header = mac.map(|destination| (destination, source, interface.vid));
        around.tables.set_neighbour(encap, (interface.port, address), header);
    }

    fn go_on(&mut self, told: DivertedFrame, around: &mut Around<'_>) {
        self.counters.resolved += 1;
        send_on(told, self.resolved, around);
    }

    fn give_up(&mut self, told: DivertedFrame, around: &mut Around<'_>) {
        self.counters.unresolved += 1;
        send_on(told, self.unresolved, around);
    }

    fn message_came(&mut self, port: u32, vid: u16, message: &Message, around: &mut Around<'_>) {
        let Some(at) = self.interfaces.iter().position(|it| (it.port, it.vid) == (port, vid))
        else {
            self.counters.no_interface += 1;
            return;
        };
        let interface = &self.interfaces[at];
        let asks_us = message.asks && interface.has(message.target);
        // A request teaches the address of its sender, a reply that of its target.
        let learnt = if message.asks { message.sender } else { Some(message.target) };
        if let (Some(address), Some(mac)) = (learnt, message.mac)
            && is_host(address)
            && interface.reaches(address)
            && !interface.has(address)
        {
            self.learn((at, address), mac, asks_us, around);
        }
        let known = || self.table.mac((at, message.sender?));
        if asks_us {
            // A request without a hardware address gets a reply if the address is known.
            let asked = Message { mac: message.mac.or_else(known), ..*message };
            let interface = &self.interfaces[at];
            let (mac, vid) = (interface.mac(around), interface.vid);
            let speaker = Speaker { mac, address: message.target, vid };
            if let Some(frame) = speaker.answer(&asked) {
                around.send(interface.port, &frame);
                self.counters.answers += 1;
            }
        }
    }

    fn learn(&mut self, place: Place, mac: Mac, add: bool, around: &mut Around<'_>) {
        let before = self.table.mac(place).is_some();
        let Some((is_new, waiting)) = self.table.learn(place, mac, add, around.now) else { return };
        if is_new {
            self.tell(place, Some(mac), around);
            let event = if before { "NeighbourMoved" } else { "NeighbourFound" };
            around.event(event, self.about(place, Some(mac)));
        }
        waiting.into_iter().for_each(|told| self.go_on(told, around));
    }

    fn about(&self, (at, address): Place, mac: Option<Mac>) -> StatusValue {
        StatusValue::from([
            ("port", self.interfaces[at].port.into()),
            ("address", StatusValue::text(address)),
            ("mac", mac.map(|mac| StatusValue::text(ethernet::ShowMac(mac))).into()),
        ])
    }
}

/// Injects a packet with its original metadata.
fn send_on(told: DivertedFrame, output: u32, around: &mut Around<'_>) {
    around.sent.push(Sent { output, meta: told.meta, frame: told.frame });
}

/// Returns the next hop of a packet: from the metadata, or else its destination.
fn next_hop(packet: &[u8], v4: Option<u128>, v6: Option<u128>) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => {
            let said = v4.filter(|hop| *hop != 0).map(|hop| (hop as u32).into());
            said.or_else(|| Some(ipv4::View::new(packet)?.destination())).map(IpAddr::V4)
        }
        6 => {
            let said = v6.filter(|hop| *hop != 0).map(Into::into);
            said.or_else(|| Some(ipv6::View::new(packet)?.destination())).map(IpAddr::V6)
        }
        _ => None,
    }
}

/// Restores the Ethernet header that a classifier removed.
pub(super) fn with_header(told: &DivertedFrame) -> Option<Vec<u8>> {
    let meta = |id: u32| told.meta.iter().find(|(known, _)| *known == id).map(|(_, it)| *it);
    let ether_type = meta(meta_id::ETHER_TYPE)? as u16;
    let mac = |id| <[u8; 6]>::try_from(&(meta(id)? as u64).to_be_bytes()[2..]).ok();
    let (destination, source) = (mac(meta_id::DST_MAC)?, mac(meta_id::SRC_MAC)?);
    let mut frame = [destination, source].concat();
    frame.extend(ether_type.to_be_bytes());
    frame.extend(told.frame.bytes());
    Some(frame)
}

impl Agent for Neighbours {
    fn frame_came(&mut self, told: DivertedFrame, around: &mut Around<'_>) {
        let meta = |id: u32| told.meta.iter().find(|(known, _)| *known == id).map(|(_, it)| *it);
        let lacks_header = [exception::ENCAP_INDEX_INVALID, exception::ENCAP_LOOKUP_FAILED];
        if meta(meta_id::EXCEPTION).is_some_and(|why| lacks_header.contains(&why)) {
            return self.want(told, around);
        }
        let port = meta(meta_id::PHY_PORT).unwrap_or(0) as u32;
        let vid = meta(meta_id::VLAN_ID).unwrap_or(0) as u16;
        let message = match with_header(&told) {
            Some(frame) => Message::read(&frame).map(|message| (vid, message)),
            None => {
                let bytes = told.frame.bytes();
                let vid = packet::parse::Packet::of(bytes).vlan(0).map_or(0, |tag| tag.vid());
                Message::read(bytes).map(|message| (vid, message))
            }
        };
        match message {
            Some((vid, message)) => self.message_came(port, vid, &message, around),
            None => self.counters.not_read += 1,
        }
    }

    fn time_came(&mut self, around: &mut Around<'_>) {
        if std::mem::take(&mut self.is_fresh)
            && let Some(encap) = &self.encap
        {
            // Entries of a previous agent may be invalid.
            around.tables.clear_neighbours(encap);
        }
        while let Some((place, due)) = self.table.take_due(around.now) {
            match due {
                Due::Ask(to) => self.ask(place, to, around),
                Due::Gone(waiting) => {
                    self.tell(place, None, around);
                    around.event("NeighbourLost", self.about(place, None));
                    waiting.into_iter().for_each(|told| self.give_up(told, around));
                }
            }
        }
    }

    fn due(&self) -> Option<Nanos> {
        self.table.next_due()
    }

    fn facts(&self, _now: Nanos) -> StatusValue {
        let counts = &self.counters;
        let known = self.table.known().map(|(place, mac)| self.about(*place, Some(mac)));
        StatusValue::from([
            ("neighbours", known.collect::<Vec<_>>().into()),
            ("asked", self.table.asked().into()),
            ("questions", counts.questions.into()),
            ("answers", counts.answers.into()),
            ("resolved", counts.resolved.into()),
            ("unresolved", counts.unresolved.into()),
            ("waiting_lost", counts.waiting_lost.into()),
            ("not_read", counts.not_read.into()),
            ("no_interface", counts.no_interface.into()),
        ])
    }
}

#[cfg(test)]
mod tests;
