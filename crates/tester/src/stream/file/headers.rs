//! Headers in a stream file: tags, labels, network and transport.

use std::net::Ipv4Addr;

use packet::header::{arp, ethernet, tcp};
use serde::Deserialize;

use super::entry::Entry;
use crate::stream::{Headers, Label, Network, Problem, Transport, Vlan};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VlanEntry {
    id: u16,
    #[serde(default)]
    priority: u8,
    #[serde(default)]
    kind: VlanKind,
}

impl VlanEntry {
    pub fn tag(&self) -> Vlan {
        let kind = match self.kind {
            VlanKind::Customer => ethernet::TYPE_VLAN,
            VlanKind::Service => ethernet::TYPE_SERVICE_VLAN,
        };
        Vlan { kind, id: self.id, priority: self.priority }
    }
}

#[derive(Deserialize, Default)]
enum VlanKind {
    #[default]
    #[serde(rename = "802.1q")]
    Customer,
    #[serde(rename = "802.1ad")]
    Service,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelEntry {
    label: u32,
    #[serde(default)]
    class: u8,
    ttl: Option<u8>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub enum ArpEntry {
    Request,
    Reply,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum TransportEntry {
    #[default]
    Udp,
    Tcp,
    Sctp,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub enum TcpFlag {
    Fin,
    Syn,
    Rst,
    Psh,
    Ack,
}

impl Entry {
    pub(super) fn headers(&self, problems: &mut Vec<Problem>) -> Headers {
        let network = self.network(problems);
        let transport = self.transport(problems);
        let nothing = Ipv4Addr::UNSPECIFIED;
        let (ip_source, ip_destination) =
            (self.ip_source.unwrap_or(nothing), self.ip_destination.unwrap_or(nothing));
        let label =
            |it: &LabelEntry| Label { label: it.label, class: it.class, ttl: it.ttl.unwrap_or(64) };
        Headers {
            mac_source: self.mac_source.0,
            mac_destination: self.mac_destination.0,
            vlans: self.tags(problems),
            backbone: None,
            labels: self.mpls.iter().map(label).collect(),
            network,
            ip_source,
            ip_destination,
            ttl: self.ttl.unwrap_or(64),
            tos: self.tos.unwrap_or(0),
            ip_protocol: self.ip_protocol.unwrap_or(transport.protocol()),
            transport,
            port_source: self.port_source.unwrap_or(49152),
            port_destination: self.port_destination.unwrap_or(9),
        }
    }

    fn tags(&self, problems: &mut Vec<Problem>) -> Vec<Vlan> {
        if self.vlan_id.is_none() && self.vlan_priority.is_some() {
            problems.push(Problem::MissingKey("vlan_id"));
        }
        if self.vlan_id.is_some() && self.vlans.is_some() {
            problems.push(Problem::Contradiction("vlan_id", "vlans"));
        }
        let one = |id| Vlan { priority: self.vlan_priority.unwrap_or(0), ..Vlan::new(id) };
        match &self.vlans {
            Some(tags) => tags.iter().map(VlanEntry::tag).collect(),
            None => self.vlan_id.map(one).into_iter().collect(),
        }
    }

    fn network(&self, problems: &mut Vec<Problem>) -> Network {
        let short = [("ip_source", self.ip_source), ("ip_destination", self.ip_destination)];
        let long = [("ipv6_source", self.ipv6_source), ("ipv6_destination", self.ipv6_destination)];
        let is_v6 = long.iter().any(|(_, address)| address.is_some());
        if let Some(level) = self.loopback_level {
            let keys = [("arp", self.arp.is_some()), ("ipv6_source", is_v6)];
            let keys = keys.into_iter().chain(short.map(|(key, address)| (key, address.is_some())));
            let said = keys.filter(|(_, is_said)| *is_said);
            problems.extend(said.map(|(key, _)| Problem::Contradiction("loopback_level", key)));
            return Network::Loopback { level, answers: false };
        }
        let mut need = |key: &'static str, is_there: bool| {
            if !is_there {
                problems.push(Problem::MissingKey(key));
            }
        };
        if is_v6 {
            long.iter().for_each(|(key, address)| need(key, address.is_some()));
        } else {
            short.iter().for_each(|(key, address)| need(key, address.is_some()));
        }
        let exclude = [
            (is_v6 && self.arp.is_some(), "arp", "ipv6_source"),
            (is_v6 && self.ip_source.is_some(), "ip_source", "ipv6_source"),
            (is_v6 && self.ip_destination.is_some(), "ip_destination", "ipv6_destination"),
            (!is_v6 && self.flow_label.is_some(), "flow_label", "ip_source"),
        ];
        let found = exclude.into_iter().filter(|(is_there, ..)| *is_there);
        problems.extend(found.map(|(_, one, other)| Problem::Contradiction(one, other)));
        match (self.ipv6_source, self.ipv6_destination, self.arp) {
            (Some(source), Some(destination), _) => {
                let flow_label = self.flow_label.unwrap_or(0);
                Network::Ipv6 { source, destination, flow_label }
            }
            (_, _, Some(ArpEntry::Request)) => Network::arp(arp::REQUEST),
            (_, _, Some(ArpEntry::Reply)) => Network::arp(arp::REPLY),
            (_, _, None) => Network::Ipv4,
        }
    }

    fn transport(&self, problems: &mut Vec<Problem>) -> Transport {
        let exclude = [
            (self.tcp_flags.is_some() && self.transport != TransportEntry::Tcp, "tcp_flags"),
            (self.sctp_tag.is_some() && self.transport != TransportEntry::Sctp, "sctp_tag"),
        ];
        let found = exclude.into_iter().filter(|(is_there, _)| *is_there);
        problems.extend(found.map(|(_, key)| Problem::Contradiction(key, "transport")));
        match self.transport {
            TransportEntry::Udp => Transport::Udp,
            TransportEntry::Sctp => {
                Transport::Sctp { verification_tag: self.sctp_tag.unwrap_or(1) }
            }
            TransportEntry::Tcp => {
                let flags = self.tcp_flags.as_deref().unwrap_or(&[TcpFlag::Ack]);
                Transport::Tcp { flags: flags.iter().fold(0, |all, flag| all | flag.bit()) }
            }
        }
    }
}

impl TcpFlag {
    fn bit(self) -> u8 {
        match self {
            TcpFlag::Fin => tcp::FIN,
            TcpFlag::Syn => tcp::SYN,
            TcpFlag::Rst => tcp::RST,
            TcpFlag::Psh => tcp::PSH,
            TcpFlag::Ack => tcp::ACK,
        }
    }
}
