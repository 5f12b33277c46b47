//! Random messages of every type that OpenFlow 1.0 can express.

#![allow(clippy::unwrap_used, reason = "a test")]

use openflow::model::matching::mac_bits;
use openflow::model::multipart::FlowStatsRequest;
use openflow::model::*;
use openflow::version::{ErrorCode, Version};
use packet::time::Nanos;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

fn port() -> impl Strategy<Value = PortNo> {
    prop_oneof![0..0xff00u32, reserved::IN_PORT..=reserved::NONE, reserved::MAX..=u32::MAX]
}

fn mac() -> impl Strategy<Value = MacAddress> {
    any::<[u8; 6]>()
}

fn span() -> impl Strategy<Value = Nanos> {
    (0..u64::from(u32::MAX) * 1_000_000_000).prop_map(Nanos)
}

fn text(bytes_max: usize) -> impl Strategy<Value = Text> {
    vec(any::<u8>(), 0..=bytes_max).prop_map(|bytes| Text::from_bytes(&bytes))
}

fn data(bytes_max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..=bytes_max)
}

/// A strategy for a set of bits from those that 1.0 has.
macro_rules! bits {
    ($set:ident: $($bit:ident)*) => {
        vec(select(vec![$( $set::$bit, )*]), 0..6)
            .prop_map(|bits| bits.into_iter().fold($set::NONE, |all, bit| all | bit))
    };
}

fn config() -> impl Strategy<Value = PortConfig> {
    bits!(PortConfig: PORT_DOWN NO_STP NO_RECEIVE NO_RECEIVE_STP NO_FLOOD NO_FORWARD NO_PACKET_IN)
}

fn state() -> impl Strategy<Value = PortState> {
    bits!(PortState: LINK_DOWN STP_LOW STP_HIGH)
}

fn features() -> impl Strategy<Value = PortFeatures> {
    bits!(PortFeatures: SPEED_10M_HALF SPEED_10M_FULL SPEED_100M_HALF SPEED_100M_FULL
        SPEED_1G_HALF SPEED_1G_FULL SPEED_10G_FULL COPPER FIBER AUTONEGOTIATION PAUSE
        PAUSE_ASYMMETRIC)
}

/// Fields that 1.0 can wildcard, in groups that share a position of its match.
fn fields() -> impl Strategy<Value = FieldSet> {
    use Field::*;
    let places: Vec<&[Field]> = vec![
        &[InPort],
        &[VlanVid],
        &[EthSrc],
        &[EthDst],
        &[EthType],
        &[IpProto, ArpOp],
        &[TcpSrc, UdpSrc, Icmpv4Type],
        &[TcpDst, UdpDst, Icmpv4Code],
        &[Ipv4Src, ArpSpa],
        &[Ipv4Dst, ArpTpa],
        &[VlanPcp],
        &[IpDscp],
    ];
    vec(select(places), 0..6).prop_map(|places| places.into_iter().flatten().copied().collect())
}

fn capabilities() -> impl Strategy<Value = Capabilities> {
    bits!(Capabilities: FLOW_STATS TABLE_STATS PORT_STATS STP IP_REASSEMBLY QUEUE_STATS
        ARP_MATCH_IP)
}

fn action_kinds() -> impl Strategy<Value = ActionKinds> {
    let kinds = ActionKinds::of(Version::V1_0).iter().collect::<Vec<_>>();
    vec(select(kinds), 0..6).prop_map(|kinds| kinds.into_iter().collect())
}

/// An address and a prefix length; length zero is the same as no field.
fn prefix() -> impl Strategy<Value = ([u8; 4], u8)> {
    (any::<[u8; 4]>(), 0..=32u8)
}

/// Matches on network and transport fields of one Ethernet type, in 1.0.
fn upper() -> impl Strategy<Value = Match> {
    let kind = select(vec![0x0800u16, 0x0800, 0x0806, 0x86dd, 0x05ff]);
    let proto = option::of(prop_oneof![select(vec![1u8, 6, 17, 132]), any::<u8>()]);
    let ports = (option::of(any::<u16>()), option::of(any::<u16>()));
    (kind, option::of(0..64u8), proto, ports, prefix(), prefix()).prop_map(
        |(kind, dscp, proto, ports, src, dst)| {
            let mut matching = Match::ANY.with(Field::EthType, kind);
            let (proto_field, src_field, dst_field) = match kind {
                0x0800 => (Field::IpProto, Field::Ipv4Src, Field::Ipv4Dst),
                0x0806 => (Field::ArpOp, Field::ArpSpa, Field::ArpTpa),
                _ => return matching,
            };
            let mut put = |field, value: Option<u16>| {
                if let Some(value) = value {
                    matching.set(FieldMatch::exact(field, value));
                }
            };
            put(proto_field, proto.map(u16::from));
            if kind == 0x0800 {
                put(Field::IpDscp, dscp.map(u16::from));
                let fields = match proto {
                    Some(1) => Some((Field::Icmpv4Type, Field::Icmpv4Code)),
                    Some(6) => Some((Field::TcpSrc, Field::TcpDst)),
                    Some(17) => Some((Field::UdpSrc, Field::UdpDst)),
                    Some(132) => Some((Field::SctpSrc, Field::SctpDst)),
                    _ => None,
                };
                if let Some((from, to)) = fields {
                    put(from, ports.0);
                    put(to, ports.1);
                }
            }
            let matching = matching.with_ipv4(src_field, src.0.into(), src.1);
            matching.with_ipv4(dst_field, dst.0.into(), dst.1)
        },
    )
}

/// Matches on a VLAN tag, on untagged frames, or on a priority with any tag.
fn tag() -> impl Strategy<Value = Match> {
    prop_oneof![
        Just(Match::ANY),
        Just(Match::ANY.untagged()),
        (0..0x1000u16).prop_map(|id| Match::ANY.with_vlan(id)),
        (0..0x1000u16, 0..8u8)
            .prop_map(|(id, pcp)| { Match::ANY.with_vlan(id).with(Field::VlanPcp, pcp) }),
        (0..8u8).prop_map(|pcp| {
            let any_tag = Match::ANY.with_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT);
            any_tag.with(Field::VlanPcp, pcp)
        }),
    ]
}

pub fn matching() -> impl Strategy<Value = Match> {
    let upper = prop_oneof![Just(Match::ANY), upper()];
    (option::of(port()), option::of(mac()), option::of(mac()), tag(), upper).prop_map(
        |(in_port, src, dst, tag, upper)| {
            let rows = tag.fields().iter().chain(upper.fields()).copied();
            let mut matching: Match = rows.collect();
            let exact = |field, value: u128| FieldMatch::exact(field, value);
            if let Some(port) = in_port {
                matching.set(exact(Field::InPort, port.into()));
            }
            for (field, mac) in [(Field::EthSrc, src), (Field::EthDst, dst)] {
                if let Some(mac) = mac {
                    matching.set(exact(field, mac_bits(mac)));
                }
            }
            matching
        },
    )
}

fn experimenter() -> impl Strategy<Value = Experimenter> {
    (any::<u32>(), data(40)).prop_map(|(experimenter, body)| Experimenter { experimenter, body })
}

fn action() -> impl Strategy<Value = Action> {
    let vendor = (any::<u32>(), 0..4usize, any::<u8>()).prop_map(|(experimenter, words, byte)| {
        Action::Experimenter(Experimenter { experimenter, body: vec![byte; 8 * words] })
    });
    prop_oneof![
        (port(), any::<u16>()).prop_map(|(port, bytes_max)| Action::Output { port, bytes_max }),
        (0..0x1000u16).prop_map(Action::SetVlanVid),
        (0..8u8).prop_map(Action::SetVlanPcp),
        Just(Action::PopVlan),
        mac().prop_map(|mac| Action::set_mac(Field::EthSrc, mac)),
        mac().prop_map(|mac| Action::set_mac(Field::EthDst, mac)),
        any::<u32>().prop_map(|ip| Action::set(Field::Ipv4Src, ip)),
        any::<u32>().prop_map(|ip| Action::set(Field::Ipv4Dst, ip)),
        (0..64u8).prop_map(|dscp| Action::set(Field::IpDscp, dscp)),
        any::<u16>().prop_map(Action::SetTransportSrc),
        any::<u16>().prop_map(Action::SetTransportDst),
        (port(), any::<u32>()).prop_map(|(port, queue)| Action::Enqueue { port, queue }),
        vendor,
    ]
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    vec(action(), 0..6)
}

fn buffer() -> impl Strategy<Value = Option<BufferId>> {
    option::of(0..u32::MAX)
}

fn description() -> impl Strategy<Value = PortDescription> {
    (port(), mac(), text(15), config(), state(), [features(), features(), features(), features()])
        .prop_map(|(number, mac, name, config, state, features)| {
            let [current, advertised, supported, peer] = features;
            PortDescription {
                number,
                mac,
                name,
                config,
                state,
                current,
                advertised,
                supported,
                peer,
                ..PortDescription::default()
            }
        })
}

fn flow_mod() -> impl Strategy<Value = FlowMod> {
    let command = select(vec![
        FlowModCommand::Add,
        FlowModCommand::Modify,
        FlowModCommand::ModifyStrict,
        FlowModCommand::Delete,
        FlowModCommand::DeleteStrict,
    ]);
    let flags = bits!(FlowModFlags: SEND_FLOW_REMOVED CHECK_OVERLAP EMERGENCY);
    (
        (command, matching(), any::<u16>(), any::<u64>(), buffer()),
        (any::<u16>(), any::<u16>(), port(), flags, actions()),
    )
        .prop_map(|((command, matching, priority, cookie, buffer_id), rest)| FlowMod {
            command,
            matching,
            priority,
            cookie,
            buffer_id,
            idle_timeout_s: rest.0,
            hard_timeout_s: rest.1,
            out_port: rest.2,
            flags: rest.3,
            instructions: Instruction::apply(rest.4),
            ..FlowMod::default()
        })
}

fn flow_removed() -> impl Strategy<Value = FlowRemoved> {
    let reason = select(vec![
        FlowRemovedReason::IdleTimeout,
        FlowRemovedReason::HardTimeout,
        FlowRemovedReason::Delete,
    ]);
    (reason, matching(), any::<(u16, u64)>(), span(), any::<(u16, u64, u64)>()).prop_map(
        |(reason, matching, (priority, cookie), age, (idle_timeout_s, packets, bytes))| {
            FlowRemoved {
                reason,
                table: 0,
                matching,
                priority,
                cookie,
                age,
                idle_timeout_s,
                hard_timeout_s: 0,
                packets,
                bytes,
            }
        },
    )
}

fn packet_io() -> BoxedStrategy<Message> {
    let reason = select(vec![PacketInReason::NoMatch, PacketInReason::Action]);
    prop_oneof![
        (buffer(), any::<u16>(), port(), reason, data(200)).prop_map(
            |(buffer_id, frame_bytes, in_port, reason, data)| {
                let rest = PacketIn::default();
                Message::PacketIn(PacketIn {
                    buffer_id,
                    frame_bytes,
                    in_port,
                    reason,
                    data,
                    ..rest
                })
            }
        ),
        (buffer(), port(), actions(), data(200)).prop_map(|(buffer_id, in_port, actions, data)| {
            let rest = PacketOut::default();
            Message::PacketOut(PacketOut { buffer_id, in_port, actions, data, ..rest })
        }),
    ]
    .boxed()
}

fn flow_stats() -> impl Strategy<Value = FlowStats> {
    (any::<u8>(), matching(), any::<(u16, u64)>(), span(), any::<(u16, u16, u64, u64)>(), actions())
        .prop_map(|(table, matching, (priority, cookie), age, numbers, actions)| FlowStats {
            table,
            matching,
            priority,
            cookie,
            age,
            idle_timeout_s: numbers.0,
            hard_timeout_s: numbers.1,
            packets: numbers.2,
            bytes: numbers.3,
            instructions: Instruction::apply(actions),
            ..FlowStats::default()
        })
}

fn table_stats() -> impl Strategy<Value = TableStats> {
    (any::<u8>(), text(31), fields(), any::<(u32, u32, u64, u64)>()).prop_map(
        |(table, name, wildcards, (entries_max, entries, lookups, matched))| TableStats {
            table,
            entries,
            lookups,
            matched,
            abilities: Some(TableAbilities {
                name,
                wildcards,
                entries_max,
                ..TableAbilities::default()
            }),
        },
    )
}

fn port_stats() -> impl Strategy<Value = PortStats> {
    (port(), any::<[u64; 12]>()).prop_map(|(port, n)| PortStats {
        port,
        rx_packets: n[0],
        tx_packets: n[1],
        rx_bytes: n[2],
        tx_bytes: n[3],
        rx_dropped: n[4],
        tx_dropped: n[5],
        rx_errors: n[6],
        tx_errors: n[7],
        rx_frame_errors: n[8],
        rx_overruns: n[9],
        rx_crc_errors: n[10],
        collisions: n[11],
        ..PortStats::default()
    })
}

fn queue_stats() -> impl Strategy<Value = QueueStats> {
    (port(), any::<(u32, u64, u64, u64)>()).prop_map(
        |(port, (queue, tx_bytes, tx_packets, tx_errors))| QueueStats {
            port,
            queue,
            tx_bytes,
            tx_packets,
            tx_errors,
            ..QueueStats::default()
        },
    )
}

fn request() -> BoxedStrategy<Message> {
    let which =
        || {
            (matching(), any::<u8>(), port()).prop_map(|(matching, table, out_port)| {
                FlowStatsRequest { matching, table, out_port, ..FlowStatsRequest::default() }
            })
        };
    prop_oneof![
        Just(MultipartRequestBody::Desc),
        Just(MultipartRequestBody::Table),
        which().prop_map(MultipartRequestBody::Flow),
        which().prop_map(MultipartRequestBody::Aggregate),
        port().prop_map(MultipartRequestBody::Port),
        (port(), any::<u32>())
            .prop_map(|(port, queue)| MultipartRequestBody::Queue { port, queue }),
        experimenter().prop_map(MultipartRequestBody::Experimenter),
    ]
    .prop_map(Message::ask)
    .boxed()
}

fn reply() -> BoxedStrategy<Message> {
    let desc = (text(255), text(255), text(255), text(31), text(255)).prop_map(
        |(manufacturer, hardware, software, serial_number, datapath)| {
            MultipartReplyBody::Desc(SwitchDescription {
                manufacturer,
                hardware,
                software,
                serial_number,
                datapath,
            })
        },
    );
    let sum = any::<(u64, u64, u32)>().prop_map(|(packets, bytes, flows)| {
        MultipartReplyBody::Aggregate(AggregateStats { packets, bytes, flows })
    });
    let body = prop_oneof![
        desc,
        sum,
        vec(flow_stats(), 0..5).prop_map(MultipartReplyBody::Flow),
        vec(table_stats(), 0..5).prop_map(MultipartReplyBody::Table),
        vec(port_stats(), 0..5).prop_map(MultipartReplyBody::Port),
        vec(queue_stats(), 0..5).prop_map(MultipartReplyBody::Queue),
        experimenter().prop_map(MultipartReplyBody::Experimenter),
    ];
    (any::<bool>(), body)
        .prop_map(|(more, body)| Message::MultipartReply(MultipartReply { more, body }))
        .boxed()
}

fn queue_config() -> impl Strategy<Value = QueueConfig> {
    let property = prop_oneof![
        Just(QueueProperty::None),
        any::<u16>().prop_map(QueueProperty::MinRate),
        (2..=u16::MAX, data(16)).prop_map(|(kind, body)| QueueProperty::Other { kind, body }),
    ];
    let queue = (any::<u32>(), vec(property, 0..4)).prop_map(|(id, properties)| PacketQueue {
        port: 0,
        id,
        properties,
    });
    (port(), vec(queue, 0..4)).prop_map(|(port, mut queues)| {
        queues.iter_mut().for_each(|queue| queue.port = port);
        QueueConfig { port, queues }
    })
}

fn about_ports() -> BoxedStrategy<Message> {
    let reason =
        select(vec![PortStatusReason::Add, PortStatusReason::Delete, PortStatusReason::Modify]);
    prop_oneof![
        (reason, description())
            .prop_map(|(reason, port)| Message::PortStatus(PortStatus { reason, port })),
        (port(), mac(), config(), config(), features()).prop_map(
            |(number, mac, config, mask, advertise)| {
                let properties = Vec::new();
                Message::PortMod(PortMod { number, mac, config, mask, advertise, properties })
            }
        ),
        port().prop_map(Message::QueueGetConfigRequest),
        queue_config().prop_map(Message::QueueGetConfigReply),
    ]
    .boxed()
}

fn about_the_switch() -> BoxedStrategy<Message> {
    let fragments = select(vec![
        FragmentHandling::Normal,
        FragmentHandling::Drop,
        FragmentHandling::Reassemble,
    ]);
    let config = (fragments, any::<u16>()).prop_map(|(fragments, miss_send_bytes)| SwitchConfig {
        fragments,
        miss_send_bytes,
        ..SwitchConfig::default()
    });
    let numbers = any::<(u64, u32, u8)>();
    prop_oneof![
        config.clone().prop_map(Message::SetConfig),
        config.prop_map(Message::GetConfigReply),
        (numbers, capabilities(), action_kinds(), vec(description(), 0..5)).prop_map(
            |((datapath_id, buffers, tables), capabilities, actions, ports)| {
                Message::FeaturesReply(Features {
                    datapath_id,
                    buffers,
                    tables,
                    capabilities,
                    actions,
                    ports,
                    ..Features::default()
                })
            }
        ),
    ]
    .boxed()
}

fn symmetric() -> BoxedStrategy<Message> {
    let sayable = |code: &ErrorCode| code.to_wire(Version::V1_0).is_some();
    let code = select(ErrorCode::ALL.iter().copied().filter(sayable).collect::<Vec<_>>());
    prop_oneof![
        option::of(any::<u32>())
            .prop_map(|versions| Message::Hello(Hello { versions, others: Vec::new() })),
        data(100).prop_map(Message::EchoRequest),
        data(100).prop_map(Message::EchoReply),
        experimenter().prop_map(Message::Experimenter),
        (code, data(100)).prop_map(|(code, data)| Message::Error(ErrorMessage { code, data })),
        select(vec![
            Message::FeaturesRequest,
            Message::GetConfigRequest,
            Message::BarrierRequest,
            Message::BarrierReply,
        ]),
    ]
    .boxed()
}

/// Any message.
pub fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        symmetric(),
        about_the_switch(),
        about_ports(),
        packet_io(),
        flow_mod().prop_map(Message::FlowMod),
        flow_removed().prop_map(Message::FlowRemoved),
        request(),
        reply(),
    ]
}
