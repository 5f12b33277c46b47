//! Tests of conversions in both directions, and of rejected values.

use std::net::Ipv4Addr;
use std::sync::Arc;

use dataplane::action::Action;
use dataplane::flow::{RANK_EXACT, Source};
use dataplane::key::{self, wide::Wide};
use dataplane::pipeline::{Pipeline, Settings};
use dataplane::queue::{PortQueues, QueueSpec};
use openflow::model::{self, Field, FieldMatch, Match, VLAN_PRESENT};
use openflow::version::{ErrorCode, Version};

use super::action::{ActionContext, output_bytes_max};
use super::*;

/// A pipeline of two ports; the second has a queue.
fn pipeline() -> Pipeline {
    let mut pipeline = Pipeline::new(&[1, 2], &Settings::default());
    let queues = PortQueues { port: 2, rate: None, queues: vec![QueueSpec::new(7)] };
    pipeline.set_queues(&queues, Nanos::ZERO).unwrap();
    pipeline
}

fn world(pipeline: &Pipeline) -> ActionLimits<'_> {
    ActionLimits { ports: &[1, 2], pipeline, version: Version::V1_0 }
}

fn full() -> Match {
    Match::ANY
        .with(Field::InPort, 3u8)
        .with_mac(Field::EthSrc, [2, 0, 0, 0, 0x80, 1])
        .with_mac(Field::EthDst, [2, 0, 0, 0, 0x80, 2])
        .with_vlan(77)
        .with(Field::VlanPcp, 5u8)
        .with(Field::EthType, 0x0800u16)
        .with(Field::IpDscp, 46u8)
        .with(Field::IpProto, 17u8)
        .with_ipv4(Field::Ipv4Src, Ipv4Addr::new(10, 200, 3, 4), 32)
        .with_ipv4(Field::Ipv4Dst, Ipv4Addr::new(10, 200, 3, 4), 9)
        .with(Field::UdpSrc, 1000u16)
        .with(Field::UdpDst, 2000u16)
}

fn there_and_back(matching: &Match) -> Match {
    let [first, later] = [Version::V1_0, Version::V1_3].map(|version| {
        let (down, named) = match_down(matching, version).unwrap();
        match_up(&down, named)
    });
    assert_eq!(first, later);
    first
}

#[test]
fn every_field_round_trips() {
    assert_eq!(there_and_back(&full()), full());
    assert_eq!(there_and_back(&Match::ANY), Match::ANY);
    for open in [
        Field::InPort,
        Field::EthSrc,
        Field::EthDst,
        Field::VlanPcp,
        Field::IpDscp,
        Field::UdpSrc,
        Field::UdpDst,
        Field::Ipv4Src,
        Field::Ipv4Dst,
    ] {
        let matching = full().without(open);
        assert_eq!(there_and_back(&matching), matching, "{open}");
    }
    let no_tag = full().without(Field::VlanPcp).without(Field::VlanVid);
    let local = full().with(Field::InPort, reserved::LOCAL);
    let half = full().with_ipv4(Field::Ipv4Src, Ipv4Addr::new(128, 0, 0, 0), 1);
    for matching in [no_tag, local, half] {
        assert_eq!(there_and_back(&matching), matching);
    }
}

#[test]
fn untagged_matches_and_fields_of_other_types_round_trip() {
    let untagged = full().without(Field::VlanPcp).untagged();
    assert_eq!(there_and_back(&untagged), untagged);
    let any_tag = Match::ANY
        .with_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT)
        .with(Field::VlanPcp, 0u8);
    assert_eq!(there_and_back(&any_tag), any_tag);
    let arp = Match::ANY
        .with(Field::EthType, 0x0806u16)
        .with(Field::ArpOp, 2u8)
        .with_ipv4(Field::ArpSpa, Ipv4Addr::new(10, 200, 3, 4), 32)
        .with_ipv4(Field::ArpTpa, Ipv4Addr::new(10, 200, 3, 4), 9);
    assert_eq!(there_and_back(&arp), arp);
    // An exact match has all fields that a frame of another type can have.
    let exact = Match::ANY
        .with(Field::InPort, 3u8)
        .with_mac(Field::EthSrc, [2, 0, 0, 0, 0x80, 1])
        .with_mac(Field::EthDst, [2, 0, 0, 0, 0x80, 2])
        .untagged()
        .with(Field::EthType, 0x86ddu16);
    assert!(match_down(&exact, Version::V1_0).unwrap().0.is_exact());
    assert_eq!(there_and_back(&exact), exact);
}

#[test]
fn an_ipv6_match_of_1_0_is_exact_only_with_the_ip_fields() {
    let speaker =
        flow::VersionContext { version: Version::V1_0, parts: true, source: Source::default() };
    let rank = |matching: &Match| {
        let change = model::FlowMod { matching: matching.clone(), ..model::FlowMod::default() };
        let spec = spec_down(
            &change,
            match_down(matching, Version::V1_0).unwrap(),
            Arc::default(),
            speaker,
        );
        spec.rank
    };
    let layer2 = Match::ANY
        .with(Field::InPort, 3u8)
        .with_mac(Field::EthSrc, [2, 0, 0, 0, 0x80, 1])
        .with_mac(Field::EthDst, [2, 0, 0, 0, 0x80, 2])
        .untagged();
    assert_eq!(rank(&layer2.clone().with(Field::EthType, 0x88ccu16)), RANK_EXACT);
    let ipv6 = layer2.with(Field::EthType, 0x86ddu16);
    let open = u32::from(model::PRIORITY_DEFAULT);
    assert_eq!(rank(&ipv6), open);
    let tcp = ipv6.with(Field::IpDscp, 0u8).with(Field::IpProto, 6u8);
    assert_eq!(rank(&tcp), open);
    let whole = tcp.clone().with(Field::TcpSrc, 7u8).with(Field::TcpDst, 8u8);
    assert_eq!(rank(&whole), RANK_EXACT);
    assert_eq!(rank(&tcp.with(Field::IpProto, 59u8)), RANK_EXACT);
}

#[test]
fn the_type_after_a_second_tag_round_trips_and_is_the_ethernet_type_in_1_0() {
    let layer2 = full().without(Field::EthType);
    for fields in [Field::IpDscp, Field::IpProto, Field::UdpSrc, Field::UdpDst] {
        assert!(there_and_back(&layer2).get(fields).is_none(), "{fields}");
    }
    for tag_type in [0x8100u16, 0x88a8, 0x9100] {
        let matching = there_and_back(&layer2).with(Field::EthType, tag_type);
        assert_eq!(there_and_back(&matching), matching);
        let speaker =
            flow::VersionContext { version: Version::V1_0, parts: true, source: Source::default() };
        let rank = |matching: &Match| {
            let down = match_down(matching, Version::V1_0).unwrap();
            let change = model::FlowMod { matching: matching.clone(), ..Default::default() };
            spec_down(&change, down, Arc::default(), speaker).rank
        };
        assert_eq!(rank(&matching), RANK_EXACT);
        assert_ne!(rank(&matching.without(Field::VlanPcp)), RANK_EXACT);
    }
}

#[test]
fn the_upper_bytes_of_an_icmp_type_round_trip() {
    let matching = Match::ANY
        .with(Field::EthType, 0x0800u16)
        .with(Field::IpProto, 1u8)
        .with(Field::Icmpv4Type, 8u8)
        .with_icmp_upper([1, 0]);
    assert_eq!(there_and_back(&matching), matching);
}

#[test]
fn fields_without_their_prerequisites_are_omitted() {
    let matching = Match::ANY.with(Field::TcpDst, 80u8).with(Field::Ipv4Src, 7u8);
    assert_eq!(there_and_back(&matching), Match::ANY);
}

#[test]
fn a_match_selects_the_frames_with_its_values() {
    // UDP from 10.0.0.1:1000 to 10.0.0.2:2000, DSCP 46, in VLAN 77 with priority 5.
    let mut frame = vec![2, 0, 0, 0, 0x80, 2, 2, 0, 0, 0, 0x80, 1, 0x81, 0, 0xa0, 77, 8, 0];
    frame.extend([0x45, 0xb8, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 200, 3, 4, 10, 129, 0, 1]);
    frame.extend([0x03, 0xe8, 0x07, 0xd0, 0, 8, 0, 0]);
    let key = key::extract(3, &frame);
    assert!(match_down(&full(), Version::V1_3).unwrap().0.matches(&key, &Wide::ZERO));
    for other in [
        full().with(Field::InPort, 4u8),
        full().with(Field::EthSrc, 2u8),
        full().with(Field::EthDst, 1u8),
        full().untagged().without(Field::VlanPcp),
        full().with(Field::VlanPcp, 4u8),
        full().with(Field::IpDscp, 45u8),
        full().with_ipv4(Field::Ipv4Dst, Ipv4Addr::new(10, 0, 0, 0), 9),
        full().with(Field::UdpSrc, 1001u16),
        full().with(Field::UdpDst, 1001u16),
    ] {
        assert!(
            !match_down(&other, Version::V1_3).unwrap().0.matches(&key, &Wide::ZERO),
            "{other}"
        );
    }
}

#[test]
fn port_numbers_keep_their_meaning() {
    for port in [1, 0xfeff, reserved::LOCAL, reserved::NONE, reserved::IN_PORT] {
        assert_eq!(port_up(port_down(port)), port);
        assert!(port_down(port) <= 0xffff);
    }
    assert_eq!(port_down(reserved::LOCAL), dataplane::action::LOCAL);
}

#[test]
fn actions_round_trip() {
    let output = |port| model::Action::Output { port, bytes_max: 0 };
    let all = [
        output(1),
        output(reserved::IN_PORT),
        output(reserved::NORMAL),
        output(reserved::FLOOD),
        output(reserved::ALL),
        model::Action::Output { port: reserved::CONTROLLER, bytes_max: 99 },
        output(reserved::LOCAL),
        output(reserved::TABLE),
        model::Action::Enqueue { port: 2, queue: 7 },
        model::Action::SetVlanVid(4095),
        model::Action::SetVlanPcp(7),
        model::Action::PopVlan,
        model::Action::set_mac(Field::EthSrc, [1, 2, 3, 4, 5, 6]),
        model::Action::set_mac(Field::EthDst, [6, 5, 4, 3, 2, 1]),
        model::Action::set(Field::Ipv4Src, 0x0102_0304u32),
        model::Action::set(Field::Ipv4Dst, 0x0403_0201u32),
        model::Action::set(Field::IpDscp, 63u8),
        model::Action::SetTransportSrc(1),
        model::Action::SetTransportDst(2),
    ];
    let pipeline = pipeline();
    let down = actions_down(&all, ActionContext::PacketOut, &world(&pipeline)).unwrap();
    assert_eq!(actions_up(&down, &mut output_bytes_max(all.iter()).iter().copied()), all);
    assert_eq!(down[16], Action::set(packet::field::Field::IpDscp, 0x3f));
}

#[test]
fn unsupported_actions_are_rejected_with_specific_errors() {
    let pipeline = pipeline();
    let world = world(&pipeline);
    let refused = |action| actions_down(&[action], ActionContext::Flow, &world).unwrap_err();
    let output = |port| model::Action::Output { port, bytes_max: 0 };
    for port in [0, 3, 0xff00, reserved::NONE, reserved::TABLE, reserved::MAX] {
        assert_eq!(refused(output(port)), ErrorCode::ActionBadOutPort, "{port:#x}");
    }
    let enqueue = model::Action::Enqueue { port: 9, queue: 0 };
    assert_eq!(refused(enqueue), ErrorCode::ActionBadOutPort);
    assert_eq!(refused(model::Action::SetVlanVid(4096)), ErrorCode::ActionBadArgument);
    assert_eq!(refused(model::Action::SetVlanPcp(8)), ErrorCode::ActionBadArgument);
    let unknown = model::Action::Enqueue { port: 1, queue: 7 };
    assert_eq!(refused(unknown), ErrorCode::ActionBadQueue);
    assert_eq!(refused(model::Action::SetQueue(9)), ErrorCode::ActionBadQueue);
    assert_eq!(refused(model::Action::Group(9)), ErrorCode::ActionBadOutGroup);
    assert_eq!(refused(model::Action::SetNwTtl(0)), ErrorCode::ActionBadArgument);
    assert_eq!(refused(model::Action::PushVlan(0x0800)), ErrorCode::ActionBadArgument);
    let metadata = model::Action::SetField(FieldMatch::exact(Field::Metadata, 2u8));
    assert_eq!(refused(metadata), ErrorCode::ActionBadSetType);
    let vendor = model::Experimenter { experimenter: 1, body: vec![0; 4] };
    let vendor = refused(model::Action::Experimenter(vendor));
    assert_eq!(vendor, ErrorCode::ActionBadExperimenter);
    let many = vec![model::Action::PopVlan; action::ACTIONS_MAX + 1];
    let many = actions_down(&many, ActionContext::Flow, &world);
    assert_eq!(many.unwrap_err(), ErrorCode::ActionTooMany);
}
