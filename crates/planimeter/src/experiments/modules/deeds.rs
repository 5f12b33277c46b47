//! Every action that changes or sends a frame, the frames it is for, and what it is to make of them.
//!
//! Source: OpenFlow 1.0.0 section 3.3 and 1.3.5 sections 5.12 and 7.2.5. What a frame is to be afterwards is
//! said as headers, from which the generator makes every byte, checksums included. Actions on backbone
//! tags, ICMP's type and code and ARP's hardware addresses are left out: the generator has no headers
//! that differ in these alone. Invariant: no two deeds have one name.

use std::net::Ipv6Addr;

use instrument::stream::{
    Field as Varied, Headers, Label, Network, Order, Rate, Stream, Transport, Values, Vary, Vlan,
};
use openflow::model::group::{Bucket, GROUP_ANY, GroupKind, GroupMod, GroupModCommand};
use openflow::model::message::Message;
use openflow::model::{Action, Field, Match, reserved};

use super::rules::{FAR, NEAR};
use crate::target::program::PORT_OUT;

/// The group that the action group names.
const GROUP: u32 = 1;

/// The queue that actions name.
const QUEUE: u32 = 1;

/// The VLAN of tagged frames, and their priority.
const VLAN: Vlan = Vlan { kind: 0x8100, id: 5, priority: 3 };

/// The entry of labelled frames.
const LABEL: Label = Label { label: 100, class: 2, ttl: 50 };

/// The MAC address that is set.
pub const MAC: [u8; 6] = [2, 0x5e, 1, 2, 3, 4];
/// The IPv4 address.
pub const IPV4: [u8; 4] = [10, 200, 1, 2];
/// The port.
pub const PORT: u16 = 7777;
const IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 7, 7, 7, 7);

/// The headers that frames have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UDP in IPv4, untagged.
    Plain,
    /// The same with a VLAN tag.
    Tagged,
    /// The same with an MPLS entry.
    Labelled,
    /// TCP in IPv4.
    Tcp,
    /// SCTP in IPv4.
    Sctp,
    /// UDP in IPv6.
    Ipv6,
    /// ARP.
    Arp,
}

/// An action, alone or in a list, and what it is to make of frames.
#[derive(Clone)]
pub struct Deed {
    /// Its name, in lower-case words.
    pub name: &'static str,
    /// For which frames.
    pub kind: Kind,
    /// What is done before the frame is sent.
    pub actions: Vec<Action>,
    /// Whether that sends it already.
    pub sends: bool,
    /// What is to be there before.
    pub first: Option<Message>,
    /// What frames are to be afterwards.
    pub changes: fn(&mut Headers),
    /// Whether it sets a field that the frame has.
    pub is_rewrite: bool,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 7] =
        [Kind::Plain, Kind::Tagged, Kind::Labelled, Kind::Tcp, Kind::Sctp, Kind::Ipv6, Kind::Arp];

    /// The name of frames that nothing is done to.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Plain => "none",
            Kind::Tagged => "tagged_none",
            Kind::Labelled => "labelled_none",
            Kind::Tcp => "tcp_none",
            Kind::Sctp => "sctp_none",
            Kind::Ipv6 => "ipv6_none",
            Kind::Arp => "arp_none",
        }
    }

    /// The number of its stream.
    pub fn stream_id(self) -> u16 {
        self as u16 + 1
    }

    /// Plain headers made those of the kind.
    fn headers(self, plain: &Headers) -> Headers {
        let mut headers = plain.clone();
        match self {
            Kind::Plain => {}
            Kind::Tagged => headers.vlans = vec![VLAN],
            Kind::Labelled => headers.labels = vec![LABEL],
            Kind::Tcp => headers.transport = Transport::Tcp { flags: 0x10 },
            Kind::Sctp => headers.transport = Transport::Sctp { verification_tag: 1 },
            Kind::Ipv6 => {
                let address = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
                let (source, destination) = (address(1), address(2));
                headers.network = Network::Ipv6 { source, destination, flow_label: 5 };
            }
            Kind::Arp => headers.network = Network::Arp { operation: 1 },
        }
        headers.ip_protocol = headers.transport.protocol();
        headers
    }

    /// What tells its flows apart, and the first value of that.
    fn varied(self) -> (Varied, u64) {
        match self {
            Kind::Labelled => (Varied::MplsLabel, 1000),
            Kind::Ipv6 => (Varied::Ipv6Destination, 0x100),
            other => {
                (Varied::IpDestination, u64::from(u32::from_be_bytes([10, 64 + other as u8, 0, 0])))
            }
        }
    }

    /// A stream that visits so many flows in turn.
    pub fn stream(self, plain: &Headers, frame_bytes: usize, flows: u64, pps: f64) -> Stream {
        let rate = Rate::FramesPerSecond(pps);
        let mut stream = Stream::plain(self.stream_id(), frame_bytes, self.headers(plain), rate);
        (stream.from, stream.to) = (NEAR, FAR);
        let (field, first) = self.varied();
        let fields = vec![(field, Values::Range { first, step: 1 })];
        stream.vary = vec![Vary { count: flows, order: Order::Sequential, fields }];
        stream
    }

    /// The match of a flow. It names what actions on these frames need named.
    pub fn matching(self, place: u64) -> Match {
        let value = self.varied().1 + place;
        let ipv4 = |protocol: u8| {
            Match::ANY
                .with(Field::EthType, 0x0800u16)
                .with(Field::IpProto, protocol)
                .with(Field::Ipv4Dst, value as u32)
        };
        match self {
            Kind::Plain => ipv4(17),
            Kind::Tagged => ipv4(17).with_vlan(VLAN.id),
            Kind::Tcp => ipv4(6),
            Kind::Sctp => ipv4(132),
            Kind::Labelled => {
                Match::ANY.with(Field::EthType, 0x8847u16).with(Field::MplsLabel, value as u32)
            }
            Kind::Ipv6 => {
                let network = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0).to_bits();
                Match::ANY
                    .with(Field::EthType, 0x86ddu16)
                    .with(Field::IpProto, 17u8)
                    .with(Field::Ipv6Dst, network | u128::from(value))
            }
            Kind::Arp => {
                Match::ANY.with(Field::EthType, 0x0806u16).with(Field::ArpTpa, value as u32)
            }
        }
    }
}

/// A deed of these actions, which change nothing that is known.
pub fn plain(kind: Kind, actions: Vec<Action>) -> Deed {
    let (sends, first, is_rewrite) = (false, None, false);
    Deed { name: kind.name(), kind, actions, sends, first, changes: unchanged, is_rewrite }
}

/// A deed of one action.
fn deed(name: &'static str, kind: Kind, action: Action, changes: fn(&mut Headers)) -> Deed {
    Deed { name, changes, ..plain(kind, vec![action]) }
}

/// A deed that sets a field.
fn set(
    name: &'static str,
    kind: Kind,
    field: Field,
    value: impl Into<u128>,
    changes: fn(&mut Headers),
) -> Deed {
    Deed { is_rewrite: true, ..deed(name, kind, Action::set(field, value), changes) }
}

fn unchanged(_: &mut Headers) {}

fn bits(mac: [u8; 6]) -> u128 {
    openflow::model::matching::mac_bits(mac)
}

/// Deeds that send in other ways, add and remove tags and labels, and deal with TTLs.
fn shapes() -> Vec<Deed> {
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
        Deed {
            sends: true,
            first: Some(Message::GroupMod(group)),
            ..deed("group", Plain, Action::Group(GROUP), unchanged)
        },
        Deed {
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

/// Deeds that set a field.
fn rewrites() -> Vec<Deed> {
    use Kind::{Arp, Ipv6, Labelled, Plain, Sctp, Tagged, Tcp};
    fn addresses(it: &mut Headers) -> [&mut Ipv6Addr; 2] {
        match &mut it.network {
            Network::Ipv6 { source, destination, .. } => [source, destination],
            _ => unreachable!("these frames have IPv6"),
        }
    }
    let transport =
        |name, action, changes| Deed { is_rewrite: true, ..deed(name, Plain, action, changes) };
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
        set("arp_op", Arp, Field::ArpOp, 3u16, |it| it.network = Network::Arp { operation: 3 }),
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

/// Every deed.
pub fn all() -> Vec<Deed> {
    let mut deeds = shapes();
    deeds.extend(rewrites());
    deeds
}

/// So many rewrites that every version can say, one after the other, and what they are to make of plain frames. Where there are more
/// than fields, the last of a field counts.
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
    fn every_deed_has_a_name_of_its_own_that_a_record_can_keep() {
        let deeds = all();
        let names: BTreeSet<&str> = deeds.iter().map(|deed| deed.name).collect();
        assert_eq!(names.len(), deeds.len());
        let kinds = Kind::ALL.map(Kind::name);
        for name in names.into_iter().chain(kinds) {
            let metric = format!("{name}_extra_ns_p50");
            assert!(results::record::Name::read(&metric).is_ok(), "{metric}");
        }
    }
}
