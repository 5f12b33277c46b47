//! Tests of bodies that Open vSwitch 3.1.0 sends.

use std::net::Ipv4Addr;

use super::*;
use crate::model::action::Action;
use crate::model::flow::{FlowModCommand, FlowRemovedReason};
use crate::model::instruction::Instruction;
use crate::model::packet_io::PacketInReason;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn vendor(hex: &str) -> Experimenter {
    Experimenter { experimenter: NICIRA, body: bytes(hex) }
}

fn ipv4() -> Match {
    Match::ANY.with(Field::EthType, 0x0800u16)
}

#[test]
fn dumped_entries_have_their_idle_age() {
    // dump-flows with its default format: one entry, idle for five seconds.
    let reply = vendor(
        "00000000 00000000 0060 01 00 00000007 066ff300 000a 0000 001e 0018 0006 0000
         0000000000000001 0000000000000002 0000000000000078
         00000002 0001 00000602 0800 00000f08 0a000000 ff000000
         0000 0008 0003 0000 ffff 0010 00002320 0012 000000000000",
    );
    let mut reply = reply;
    let length = (reply.body.len() - 8) as u16;
    reply.body[8..10].copy_from_slice(&length.to_be_bytes());
    let NiciraReply::Flow(rows) = read_reply(&reply).unwrap().unwrap() else { panic!() };
    let [row] = &rows[..] else { panic!("{rows:?}") };
    let matching =
        ipv4().with(Field::InPort, 1u8).with_ipv4(Field::Ipv4Src, Ipv4Addr::new(10, 0, 0, 0), 8);
    assert_eq!(row.matching, matching);
    assert_eq!(row.idle_age, Some(Nanos::from_secs(5)));
    assert_eq!((row.table, row.packets, row.bytes), (1, 2, 120));
    assert_eq!(Instruction::applied(&row.instructions), [Action::output(3), Action::DecNwTtl]);
    assert_eq!(put_reply(&NiciraReply::Flow(rows)), Ok(reply));
}

#[test]
fn a_flow_mod_matches_any_field_and_a_cookie() {
    let change = FlowMod {
        command: FlowModCommand::Delete,
        table: 3,
        cookie: 0x12,
        cookie_mask: 0xff,
        instructions: vec![],
        ..FlowMod::add(Match::ANY, 7, vec![])
    };
    for matching in [
        Match::ANY.with(Field::EthType, 0x86ddu16).with(Field::Ipv6Src, 1u8),
        ipv4().with(Field::IpDscp, 46u8).with(Field::IpProto, 132u8).with(Field::SctpDst, 9u8),
        ipv4().with(Field::IpProto, 6u8).with_masked(Field::TcpDst, 1024u16, 0xfc00u16),
        Match::ANY.untagged(),
        Match::ANY.with_vlan(7),
        Match::ANY.with_vlan(7).with(Field::VlanPcp, 5u8),
        Match::ANY.with_masked(Field::VlanVid, 0x1000u16, 0x1000u16).with(Field::VlanPcp, 0u8),
        Match::ANY.with_masked(Field::Metadata, 1u8, 3u8).with(Field::TunnelId, 8u8),
    ] {
        let message = NiciraMessage::FlowMod(FlowMod { matching, ..change.clone() });
        let body = put_message(&message).unwrap();
        assert_eq!(read_message(&body), Ok(Some(message)));
    }
}

#[test]
fn short_messages_are_decoded_by_subtype() {
    for (message, hex) in [
        (NiciraMessage::SetFlowFormat(Form::Nicira), "0000000c 00000002"),
        (NiciraMessage::FlowModTableId(true), "0000000f 01000000 00000000"),
        (NiciraMessage::SetPacketInFormat(Form::Nicira), "00000010 00000001"),
        (NiciraMessage::RoleRequest(Role::Slave), "0000000a 00000002"),
        (NiciraMessage::RoleReply(Role::Equal), "0000000b 00000000"),
        (NiciraMessage::FlowAge, "00000012"),
        (NiciraMessage::SetControllerId(258), "00000014 00000000 00000102"),
    ] {
        assert_eq!(put_message(&message), Ok(vendor(hex)));
        assert_eq!(read_message(&vendor(hex)), Ok(Some(message)));
    }
    assert_eq!(read_message(&vendor("0000004d")), Ok(None));
    assert_eq!(read_message(&vendor("0000000c")), Err(ErrorCode::RequestBadLength));
    let unknown = read_message(&vendor("0000000c 00000009"));
    assert_eq!(unknown, Err(ErrorCode::RequestBadExperimenterType));
    let other = Experimenter { experimenter: 1, body: vec![] };
    assert_eq!((read_message(&other), read_request(&other)), (Ok(None), Ok(None)));
}

#[test]
fn a_cookie_of_another_length_is_rejected() {
    let request = |length: &str, field: &str| {
        read_request(&vendor(&format!("00000000 00000000 ffff {length} ff 000000 {field}")))
    };
    let cookie = "00013c08 0000000000000007 00000000";
    let which = FlowStatsRequest { cookie: 7, cookie_mask: u64::MAX, ..Default::default() };
    assert_eq!(request("000c", cookie), Ok(Some(NiciraRequest::Flow(which))));
    for field in ["00013c07 00000000000007 0000000000", "00013c09 0000000000000007 00 000000"] {
        let length = if field.starts_with("00013c07") { "000b" } else { "000d" };
        assert_eq!(request(length, field), Err(ErrorCode::MatchBadLength), "{field}");
    }
}

#[test]
fn monitor_requests_and_updates_round_trip() {
    let removed = NiciraMessage::FlowRemoved(FlowRemoved {
        reason: FlowRemovedReason::HardTimeout,
        table: 9,
        matching: ipv4(),
        priority: 5,
        cookie: 6,
        age: Nanos(1_500_000_000),
        idle_timeout_s: 7,
        hard_timeout_s: 0,
        packets: 8,
        bytes: 9,
    });
    let frame = NiciraMessage::PacketIn(PacketIn {
        buffer_id: None,
        frame_bytes: 60,
        in_port: 4,
        fields: Match::ANY.with(Field::Metadata, 77u8),
        reason: PacketInReason::Action,
        table: 2,
        cookie: 3,
        data: vec![7; 60],
    });
    for message in [removed, frame] {
        assert_eq!(read_message(&put_message(&message).unwrap()), Ok(Some(message)));
    }
    let which = FlowStatsRequest { table: 2, cookie: 1, cookie_mask: 3, ..Default::default() };
    for request in [NiciraRequest::Flow(which.clone()), NiciraRequest::Aggregate(which)] {
        assert_eq!(read_request(&put_request(&request).unwrap()), Ok(Some(request)));
    }
}
