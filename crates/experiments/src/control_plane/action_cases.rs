//! All actions that change or output a frame, the frames that they apply to, and their expected effect.
//!
//! Source: OpenFlow 1.0.0 section 3.3 and 1.3.5 sections 5.12 and 7.2.5. The expected frame is given as headers;
//! the generator makes every byte from them, including checksums. Some fields are left out: the Ethernet type,
//! which would change the kind of frame, and the bottom-of-stack bit and IPv6 extension headers, which follow from
//! the frame format.
//!
//! Invariant: the names of the actions are unique.

use std::net::Ipv6Addr;

use openflow::model::group::{Bucket, GROUP_ANY, GroupKind, GroupMod, GroupModCommand};
use openflow::model::message::Message;
use openflow::model::{Action, Field, Match, reserved};
use tester::stream::{
    Field as Varied, FieldVariation, Headers, IndexOrder, Label, Network, Rate, Stream, Transport,
    Values, Vlan,
};

use super::rules::{FAR, NEAR};
use targets::flow_setup::PORT_OUT;

/// Group of the group action.
const GROUP: u32 = 1;

/// Queue of the queue actions.
const QUEUE: u32 = 1;

/// Tag of VLAN frames.
const VLAN: Vlan = Vlan { kind: 0x8100, id: 5, priority: 3 };

/// Label stack entry of MPLS frames.
const LABEL: Label = Label { label: 100, class: 2, ttl: 50 };

/// MAC address that actions set.
pub const MAC: [u8; 6] = [2, 0x5e, 1, 2, 3, 4];
/// IPv4 address that actions set.
pub const IPV4: [u8; 4] = [10, 200, 1, 2];
/// Port that actions set.
pub const PORT: u16 = 7777;
const IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 7, 7, 7, 7);

/// Service instance id (I-SID) of PBB frames.
const ISID: u32 = 0x01_0203;

/// Returns an IPv6 address in the network of the IPv6 frames.
fn address(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last)
}

fn ipv6() -> Network {
    Network::Ipv6 { source: address(1), destination: address(2), flow_label: 5 }
}

/// Types of frames, by headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UDP in IPv4, untagged.
    Plain,
    /// UDP in IPv4 with a VLAN tag.
    Tagged,
    /// UDP in IPv4 with an MPLS label stack entry.
    Labelled,
    /// TCP in IPv4.
    Tcp,
    /// SCTP in IPv4.
    Sctp,
    /// UDP in IPv6.
    Ipv6,
    /// ARP.
    Arp,
    /// ICMP in IPv4.
    Icmp,
    /// ICMP in IPv6.
    Icmpv6,
    /// Neighbour solicitation with the sender's link-layer address.
    Asking,
    /// Neighbour advertisement with the target's link-layer address.
    Answering,
    /// UDP in IPv4 in a PBB service instance.
    Backbone,
}

/// An action or an action list, and its expected effect on frames.
#[derive(Clone)]
pub struct ActionCase {
    /// Name, in lower-case words.
    pub name: &'static str,
    /// Type of frames that it applies to.
    pub kind: Kind,
    /// Actions before the frame is output.
    pub actions: Vec<Action>,
    /// Whether these actions already output the frame.
    pub sends: bool,
    /// Message that must be sent before, such as a group-mod.
    pub first: Option<Message>,
    /// Change of the headers by the actions.
    pub changes: fn(&mut Headers),
    /// Whether the action sets a field that the frame has.
    pub is_rewrite: bool,
}

impl Kind {
    /// All types of frames.
    pub const ALL: [Kind; 12] = [
        Kind::Plain,
        Kind::Tagged,
        Kind::Labelled,
        Kind::Tcp,
        Kind::Sctp,
        Kind::Ipv6,
        Kind::Arp,
        Kind::Icmp,
        Kind::Icmpv6,
        Kind::Asking,
        Kind::Answering,
        Kind::Backbone,
    ];

    /// Returns the name of the case without actions.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Plain => "none",
            Kind::Tagged => "tagged_none",
            Kind::Labelled => "labelled_none",
            Kind::Tcp => "tcp_none",
            Kind::Sctp => "sctp_none",
            Kind::Ipv6 => "ipv6_none",
            Kind::Arp => "arp_none",
            Kind::Icmp => "icmp_none",
            Kind::Icmpv6 => "icmpv6_none",
            Kind::Asking => "nd_asking_none",
            Kind::Answering => "nd_answering_none",
            Kind::Backbone => "pbb_none",
        }
    }

    /// Returns the id of its stream.
    pub fn stream_id(self) -> u16 {
        self as u16 + 1
    }

    /// Returns the headers of this type, from plain headers.
    fn headers(self, plain: &Headers) -> Headers {
        let mut headers = plain.clone();
        match self {
            Kind::Plain => {}
            Kind::Tagged => headers.vlans = vec![VLAN],
            Kind::Labelled => headers.labels = vec![LABEL],
            Kind::Tcp => headers.transport = Transport::Tcp { flags: 0x10 },
            Kind::Sctp => headers.transport = Transport::Sctp { verification_tag: 1 },
            Kind::Ipv6 => headers.network = ipv6(),
            Kind::Arp => headers.network = Network::arp(1),
            Kind::Icmp => headers.transport = Transport::Icmp { kind: 8, code: 0 },
            Kind::Icmpv6 => {
                headers.network = ipv6();
                headers.transport = Transport::Icmpv6 { kind: 128, code: 0 };
            }
            Kind::Asking | Kind::Answering => {
                let answers = self == Kind::Answering;
                headers.network = ipv6();
                // Receivers discard neighbour discovery messages with another hop limit (RFC 4861, 7.1).
                headers.ttl = 255;
                headers.transport =
                    Transport::Neighbour { answers, target: address(7), link: plain.mac_source };
            }
            Kind::Backbone => headers.backbone = Some(ISID),
        }
        headers.ip_protocol = headers.transport.protocol();
        headers
    }

    /// Returns the field that distinguishes its flows, and the first value of that field.
    fn varied(self) -> (Varied, u64) {
        match self {
            Kind::Labelled => (Varied::MplsLabel, 1000),
            Kind::Ipv6 | Kind::Icmpv6 | Kind::Asking | Kind::Answering => {
                (Varied::Ipv6Destination, 0x100 + 0x1_0000 * self as u64)
            }
            Kind::Backbone => (Varied::MacDestination, 0x0253_0000_0000),
            other => {
                (Varied::IpDestination, u64::from(u32::from_be_bytes([10, 64 + other as u8, 0, 0])))
            }
        }
    }

    /// Creates a stream that visits this number of flows in turn.
    pub fn stream(self, plain: &Headers, frame_bytes: usize, flows: u64, pps: f64) -> Stream {
        let rate = Rate::FramesPerSecond(pps);
        let mut stream = Stream::plain(self.stream_id(), frame_bytes, self.headers(plain), rate);
        (stream.from, stream.to) = (NEAR, FAR);
        let (field, first) = self.varied();
        let fields = vec![(field, Values::Range { first, step: 1 })];
        stream.vary = vec![FieldVariation { count: flows, order: IndexOrder::Sequential, fields }];
        stream
    }

    /// Returns the match of a flow, with the prerequisites of actions on these frames.
    pub fn matching(self, place: u64) -> Match {
        let value = self.varied().1 + place;
        let ipv4 = |protocol: u8| {
            Match::ANY
                .with(Field::EthType, 0x0800u16)
                .with(Field::IpProto, protocol)
                .with(Field::Ipv4Dst, value as u32)
        };
        let ipv6 = |protocol: u8| {
            let network = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0).to_bits();
            Match::ANY
                .with(Field::EthType, 0x86ddu16)
                .with(Field::IpProto, protocol)
                .with(Field::Ipv6Dst, network | u128::from(value))
        };
        match self {
            Kind::Plain => ipv4(17),
            Kind::Tagged => ipv4(17).with_vlan(VLAN.id),
            Kind::Tcp => ipv4(6),
            Kind::Sctp => ipv4(132),
            Kind::Labelled => {
                Match::ANY.with(Field::EthType, 0x8847u16).with(Field::MplsLabel, value as u32)
            }
            Kind::Icmp => ipv4(1).with(Field::Icmpv4Type, 8u8),
            Kind::Ipv6 => ipv6(17),
            Kind::Icmpv6 => ipv6(58).with(Field::Icmpv6Type, 128u8),
            Kind::Asking => ipv6(58).with(Field::Icmpv6Type, 135u8),
            Kind::Answering => ipv6(58).with(Field::Icmpv6Type, 136u8),
            Kind::Backbone => {
                let mac: [u8; 6] = value.to_be_bytes()[2..].try_into().expect("six bytes");
                Match::ANY.with(Field::EthType, 0x88e7u16).with_mac(Field::EthDst, mac)
            }
            Kind::Arp => {
                Match::ANY.with(Field::EthType, 0x0806u16).with(Field::ArpTpa, value as u32)
            }
        }
    }
}

/// Creates a case with these actions, without a known change of the frame.
pub fn plain(kind: Kind, actions: Vec<Action>) -> ActionCase {
    let (sends, first, is_rewrite) = (false, None, false);
    ActionCase { name: kind.name(), kind, actions, sends, first, changes: unchanged, is_rewrite }
}

/// Creates a case with one action.
fn deed(name: &'static str, kind: Kind, action: Action, changes: fn(&mut Headers)) -> ActionCase {
    ActionCase { name, changes, ..plain(kind, vec![action]) }
}

/// Creates a case with a set-field action.
fn set(
    name: &'static str,
    kind: Kind,
    field: Field,
    value: impl Into<u128>,
    changes: fn(&mut Headers),
) -> ActionCase {
    ActionCase { is_rewrite: true, ..deed(name, kind, Action::set(field, value), changes) }
}

fn unchanged(_: &mut Headers) {}

fn bits(mac: [u8; 6]) -> u128 {
    openflow::model::matching::mac_bits(mac)
}

/// Returns the cases with other outputs, with tags and labels added or removed, and with TTL changes.
fn shapes() -> Vec<ActionCase> {
    use Kind::{Labelled, Plain, Tagged};
    let port = PORT_OUT.into();
    let bucket = Bucket {
        id: 0,
        weight: 0,
        watch_port: reserved::NONE,
        watch_group: GROUP_ANY,
        actions: vec![Action::output(port)],
        experimenter: Vec::new(),
    };
    let group = GroupMod {
        command: GroupModCommand::Add,
        kind: GroupKind::Indirect,
        group: GROUP,
        command_bucket: openflow::model::group::BUCKET_ALL,
        buckets: vec![bucket],
        experimenter: Vec::new(),
    };
    vec![
        ActionCase {
            sends: true,
            first: Some(Message::GroupMod(group)),
            ..deed("group", Plain, Action::Group(GROUP), unchanged)
        },
        ActionCase {
            sends: true,
            ..deed("enqueue", Plain, Action::Enqueue { port, queue: QUEUE }, unchanged)
        },
        deed("set_queue", Plain, Action::SetQueue(QUEUE), unchanged),
        deed("add_vlan_vid", Plain, Action::SetVlanVid(7), |it| it.vlans.push(Vlan::new(7))),
        deed("add_vlan_pcp", Plain, Action::SetVlanPcp(6), |it| {
            it.vlans.push(Vlan { priority: 6, ..Vlan::new(0) });
        }),
        deed("pop_vlan", Tagged, Action::PopVlan, |it| it.vlans.clear()),
        deed("push_vlan", Plain, Action::PushVlan(0x8100), |it| it.vlans.push(Vlan::new(0))),
        deed("push_service_vlan", Plain, Action::PushVlan(0x88a8), |it| {
            it.vlans.push(Vlan { kind: 0x88a8, ..Vlan::new(0) });
        }),
        deed("push_mpls", Plain, Action::PushMpls(0x8847), |it| {
            it.labels.push(Label { label: 0, class: 0, ttl: it.ttl });
        }),
        deed("pop_mpls", Labelled, Action::PopMpls(0x0800), |it| it.labels.clear()),
        deed("set_mpls_ttl", Labelled, Action::SetMplsTtl(9), |it| it.labels[0].ttl = 9),
        deed("dec_mpls_ttl", Labelled, Action::DecMplsTtl, |it| it.labels[0].ttl -= 1),
        deed("copy_ttl_out", Labelled, Action::CopyTtlOut, |it| it.labels[0].ttl = it.ttl),
        deed("copy_ttl_in", Labelled, Action::CopyTtlIn, |it| it.ttl = it.labels[0].ttl),
        deed("set_nw_ttl", Plain, Action::SetNwTtl(9), |it| it.ttl = 9),
        deed("dec_nw_ttl", Plain, Action::DecNwTtl, |it| it.ttl -= 1),
        deed("ipv6_dec_nw_ttl", Kind::Ipv6, Action::DecNwTtl, |it| it.ttl -= 1),
    ]
}

/// Returns the cases that set a field.
fn rewrites() -> Vec<ActionCase> {
    use Kind::{
        Answering, Arp, Asking, Backbone, Icmp, Icmpv6, Ipv6, Labelled, Plain, Sctp, Tagged, Tcp,
    };
    fn icmp(it: &mut Headers) -> [&mut u8; 2] {
        match &mut it.transport {
            Transport::Icmp { kind, code } | Transport::Icmpv6 { kind, code } => [kind, code],
            _ => unreachable!("these frames contain ICMP"),
        }
    }
    fn hardware(it: &mut Headers) -> [&mut Option<[u8; 6]>; 2] {
        match &mut it.network {
            Network::Arp { sender, target, .. } => [sender, target],
            _ => unreachable!("these frames contain ARP"),
        }
    }
    fn neighbour(it: &mut Headers) -> (&mut Ipv6Addr, &mut [u8; 6]) {
        match &mut it.transport {
            Transport::Neighbour { target, link, .. } => (target, link),
            _ => unreachable!("these frames contain neighbour discovery"),
        }
    }
    fn addresses(it: &mut Headers) -> [&mut Ipv6Addr; 2] {
        match &mut it.network {
            Network::Ipv6 { source, destination, .. } => [source, destination],
            _ => unreachable!("these frames contain IPv6"),
        }
    }
    let transport = |name, action, changes| ActionCase {
        is_rewrite: true,
        ..deed(name, Plain, action, changes)
    };
    vec![
        set("eth_src", Plain, Field::EthSrc, bits(MAC), |it| it.mac_source = MAC),
        set("eth_dst", Plain, Field::EthDst, bits(MAC), |it| it.mac_destination = MAC),
        set("vlan_vid", Tagged, Field::VlanVid, 0x1000u16 | 9, |it| it.vlans[0].id = 9),
        set("vlan_pcp", Tagged, Field::VlanPcp, 6u8, |it| it.vlans[0].priority = 6),
        set("ip_dscp", Plain, Field::IpDscp, 10u8, |it| it.tos = 40),
        set("ip_ecn", Plain, Field::IpEcn, 2u8, |it| it.tos = 2),
        set("ipv4_src", Plain, Field::Ipv4Src, u32::from_be_bytes(IPV4), |it| {
            it.ip_source = IPV4.into();
        }),
        set("ipv4_dst", Plain, Field::Ipv4Dst, u32::from_be_bytes(IPV4), |it| {
            it.ip_destination = IPV4.into();
        }),
        transport("transport_src", Action::SetTransportSrc(PORT), |it| it.port_source = PORT),
        transport("transport_dst", Action::SetTransportDst(PORT), |it| {
            it.port_destination = PORT;
        }),
        set("udp_src", Plain, Field::UdpSrc, PORT, |it| it.port_source = PORT),
        set("udp_dst", Plain, Field::UdpDst, PORT, |it| it.port_destination = PORT),
        set("tcp_src", Tcp, Field::TcpSrc, PORT, |it| it.port_source = PORT),
        set("tcp_dst", Tcp, Field::TcpDst, PORT, |it| it.port_destination = PORT),
        set("sctp_src", Sctp, Field::SctpSrc, PORT, |it| it.port_source = PORT),
        set("sctp_dst", Sctp, Field::SctpDst, PORT, |it| it.port_destination = PORT),
        set("arp_op", Arp, Field::ArpOp, 3u16, |it| it.network = Network::arp(3)),
        set("arp_sha", Arp, Field::ArpSha, bits(MAC), |it| *hardware(it)[0] = Some(MAC)),
        set("arp_tha", Arp, Field::ArpTha, bits(MAC), |it| *hardware(it)[1] = Some(MAC)),
        set("icmpv4_type", Icmp, Field::Icmpv4Type, 13u8, |it| *icmp(it)[0] = 13),
        set("icmpv4_code", Icmp, Field::Icmpv4Code, 5u8, |it| *icmp(it)[1] = 5),
        set("icmpv6_type", Icmpv6, Field::Icmpv6Type, 129u8, |it| *icmp(it)[0] = 129),
        set("icmpv6_code", Icmpv6, Field::Icmpv6Code, 5u8, |it| *icmp(it)[1] = 5),
        set("ipv6_nd_target", Asking, Field::Ipv6NdTarget, IPV6.to_bits(), |it| {
            *neighbour(it).0 = IPV6;
        }),
        set("ipv6_nd_sll", Asking, Field::Ipv6NdSll, bits(MAC), |it| *neighbour(it).1 = MAC),
        set("ipv6_nd_tll", Answering, Field::Ipv6NdTll, bits(MAC), |it| *neighbour(it).1 = MAC),
        // The ICMP checksum does not cover the protocol. The UDP checksum does, and the specification leaves open
        // whether a switch corrects it.
        set("ip_proto", Icmp, Field::IpProto, 253u8, |it| it.ip_protocol = 253),
        // No port is a tunnel here, so no byte of the frame changes.
        set("tunnel_id", Plain, Field::TunnelId, 5u64, unchanged),
        set("pbb_isid", Backbone, Field::PbbIsid, 0x0a_0b0cu32, |it| it.backbone = Some(0x0a_0b0c)),
        set("arp_spa", Arp, Field::ArpSpa, u32::from_be_bytes(IPV4), |it| {
            it.ip_source = IPV4.into();
        }),
        set("arp_tpa", Arp, Field::ArpTpa, u32::from_be_bytes(IPV4), |it| {
            it.ip_destination = IPV4.into();
        }),
        set("ipv6_src", Ipv6, Field::Ipv6Src, IPV6.to_bits(), |it| *addresses(it)[0] = IPV6),
        set("ipv6_dst", Ipv6, Field::Ipv6Dst, IPV6.to_bits(), |it| *addresses(it)[1] = IPV6),
        set("ipv6_flabel", Ipv6, Field::Ipv6Flabel, 0x12345u32, |it| {
            if let Network::Ipv6 { flow_label, .. } = &mut it.network {
                *flow_label = 0x12345;
            }
        }),
        set("mpls_label", Labelled, Field::MplsLabel, 77u32, |it| it.labels[0].label = 77),
        set("mpls_tc", Labelled, Field::MplsTc, 5u8, |it| it.labels[0].class = 5),
    ]
}

/// Returns all cases.
pub fn all() -> Vec<ActionCase> {
    let mut deeds = shapes();
    deeds.extend(rewrites());
    deeds
}

/// Returns a list of `count` rewrites that every version can express, and their effect on plain frames.
///
/// If the list repeats a field, the last value applies.
pub fn list(count: u32) -> (Vec<Action>, impl Fn(&mut Headers)) {
    let mac = |nth: u32| [2, 0x5e, 0, 0, (nth >> 8) as u8, nth as u8];
    let action = move |nth: u32| match nth % 4 {
        0 => Action::set(Field::EthSrc, bits(mac(nth))),
        1 => Action::set(Field::EthDst, bits(mac(nth))),
        2 => Action::set(Field::Ipv4Src, u32::from_be_bytes([10, 200, 0, nth as u8])),
        _ => Action::set(Field::IpDscp, (nth % 64) as u8),
    };
    let changes = move |it: &mut Headers| {
        for nth in 0..count {
            match nth % 4 {
                0 => it.mac_source = mac(nth),
                1 => it.mac_destination = mac(nth),
                2 => it.ip_source = [10, 200, 0, nth as u8].into(),
                _ => it.tos = (nth % 64) as u8 * 4,
            }
        }
    };
    ((0..count).map(action).collect(), changes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn action_names_are_unique_and_valid_in_a_record() {
        let deeds = all();
        let names: BTreeSet<&str> = deeds.iter().map(|deed| deed.name).collect();
        assert_eq!(names.len(), deeds.len());
        let kinds = Kind::ALL.map(Kind::name);
        for name in names.into_iter().chain(kinds) {
            let metric = format!("{name}_extra_ns_p50");
            assert!(record::Name::read(&metric).is_ok(), "{metric}");
        }
    }
}
