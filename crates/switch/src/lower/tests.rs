//! There and back again, and what is refused on the way.

use std::net::Ipv4Addr;

use dataplane::action::Action;
use dataplane::key::{self, wide::Wide};
use openflow::model::{self, MacAddress, Masked, Match, VlanMatch};
use openflow::version::ErrorCode;

use super::*;

fn mac(last: u8) -> Option<Masked<MacAddress>> {
    Some(Masked::<MacAddress>::exact([2, 0, 0, 0, 0x80, last]))
}

fn full() -> Match {
    Match {
        in_port: Some(3),
        eth_src: mac(1),
        eth_dst: mac(2),
        vlan: Some(VlanMatch::id(77)),
        vlan_pcp: Some(5),
        eth_type: Some(0x0800),
        ip_dscp: Some(46),
        ip_proto: Some(17),
        ip_src: Some(Masked::prefix(Ipv4Addr::new(10, 200, 3, 4), 32)),
        ip_dst: Some(Masked::prefix(Ipv4Addr::new(10, 200, 3, 4), 9)),
        transport_src: Some(1000),
        transport_dst: Some(2000),
    }
}

fn there_and_back(matching: Match) -> Match {
    let (down, named) = match_down(&matching);
    match_up(&down, named)
}

#[test]
fn every_field_comes_back_as_it_was() {
    assert_eq!(there_and_back(full()), full());
    assert_eq!(there_and_back(Match::ANY), Match::ANY);
    for drop in 0..12 {
        let mut matching = full();
        match drop {
            0 => matching.in_port = None,
            1 => matching.eth_src = None,
            2 => matching.eth_dst = None,
            3 => matching.vlan = None,
            4 => matching.vlan_pcp = None,
            5 => matching.ip_dscp = None,
            6 => matching.transport_src = None,
            7 => matching.transport_dst = None,
            8 => matching.ip_src = None,
            9 => matching.ip_dst = None,
            10 => matching.in_port = Some(reserved::LOCAL),
            _ => matching.ip_src = Some(Masked::prefix(Ipv4Addr::new(128, 0, 0, 0), 1)),
        }
        assert_eq!(there_and_back(matching), matching, "{drop}");
    }
}

#[test]
fn untagged_and_fields_of_other_types_come_back() {
    let untagged = Match { vlan: Some(VlanMatch::Untagged), vlan_pcp: None, ..full() };
    assert_eq!(there_and_back(untagged), untagged);
    let arp = Match {
        eth_type: Some(0x0806),
        ip_proto: Some(2),
        ip_src: full().ip_src,
        ip_dst: full().ip_dst,
        ..Match::ANY
    };
    assert_eq!(there_and_back(arp), arp);
    // A whole key that names zeros for what the frame cannot have stays a whole key.
    let zero = Some(Masked::prefix(Ipv4Addr::UNSPECIFIED, 32));
    let exact = Match {
        vlan: Some(VlanMatch::Untagged),
        vlan_pcp: Some(0),
        eth_type: Some(0x86dd),
        ip_dscp: Some(0),
        ip_proto: Some(0),
        ip_src: zero,
        ip_dst: zero,
        transport_src: Some(0),
        transport_dst: Some(0),
        ..full()
    };
    assert!(match_down(&exact).0.is_exact());
    assert_eq!(there_and_back(exact), exact);
}

#[test]
fn what_cannot_matter_is_not_told() {
    let matching = Match { transport_dst: Some(80), ip_src: full().ip_src, ..Match::ANY };
    assert_eq!(there_and_back(matching), Match::ANY);
}

#[test]
fn a_match_chooses_the_frames_that_it_names() {
    // UDP from 10.0.0.1:1000 to 10.0.0.2:2000, DSCP 46, in VLAN 77 with priority 5.
    let mut frame = vec![2, 0, 0, 0, 0x80, 2, 2, 0, 0, 0, 0x80, 1, 0x81, 0, 0xa0, 77, 8, 0];
    frame.extend([0x45, 0xb8, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 200, 3, 4, 10, 129, 0, 1]);
    frame.extend([0x03, 0xe8, 0x07, 0xd0, 0, 8, 0, 0]);
    let key = key::extract(3, &frame);
    assert!(match_down(&full()).0.matches(&key, &Wide::ZERO));
    for other in [
        Match { in_port: Some(4), ..full() },
        Match { eth_src: mac(2), ..full() },
        Match { eth_dst: mac(1), ..full() },
        Match { vlan: Some(VlanMatch::Untagged), vlan_pcp: None, ..full() },
        Match { vlan_pcp: Some(4), ..full() },
        Match { ip_dscp: Some(45), ..full() },
        Match { ip_dst: Some(Masked::prefix(Ipv4Addr::new(10, 0, 0, 0), 9)), ..full() },
        Match { transport_src: Some(1001), ..full() },
        Match { transport_dst: Some(1001), ..full() },
    ] {
        assert!(!match_down(&other).0.matches(&key, &Wide::ZERO), "{other}");
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
fn actions_come_back_as_they_were() {
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
        model::Action::StripVlan,
        model::Action::SetEthSrc([1, 2, 3, 4, 5, 6]),
        model::Action::SetEthDst([6, 5, 4, 3, 2, 1]),
        model::Action::SetIpSrc(Ipv4Addr::new(1, 2, 3, 4)),
        model::Action::SetIpDst(Ipv4Addr::new(4, 3, 2, 1)),
        model::Action::SetIpDscp(63),
        model::Action::SetTransportSrc(1),
        model::Action::SetTransportDst(2),
    ];
    let down = actions_down(&all, &[1, 2], true).unwrap();
    assert_eq!(actions_up(&down), all);
    assert_eq!(down[16], Action::set(packet::field::Field::IpDscp, 0x3f));
}

#[test]
fn actions_that_cannot_be_done_are_refused_with_their_error() {
    let refused = |action| actions_down(&[action], &[1, 2], false).unwrap_err();
    let output = |port| model::Action::Output { port, bytes_max: 0 };
    for port in [0, 3, 0xff00, reserved::NONE, reserved::TABLE, reserved::MAX] {
        assert_eq!(refused(output(port)), ErrorCode::ActionBadOutPort, "{port:#x}");
    }
    let enqueue = model::Action::Enqueue { port: 9, queue: 0 };
    assert_eq!(refused(enqueue), ErrorCode::ActionBadOutPort);
    assert_eq!(refused(model::Action::SetVlanVid(4096)), ErrorCode::ActionBadArgument);
    assert_eq!(refused(model::Action::SetVlanPcp(8)), ErrorCode::ActionBadArgument);
    assert_eq!(refused(model::Action::SetIpDscp(64)), ErrorCode::ActionBadArgument);
    let vendor = model::Experimenter { experimenter: 1, body: vec![0; 4] };
    let vendor = refused(model::Action::Experimenter(vendor));
    assert_eq!(vendor, ErrorCode::ActionBadExperimenter);
    let many = vec![model::Action::StripVlan; action::ACTIONS_MAX + 1];
    assert_eq!(actions_down(&many, &[1], false).unwrap_err(), ErrorCode::ActionTooMany);
}
