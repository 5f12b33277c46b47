//! Tests of cases that captures do not have.

use super::*;
use crate::header::MESSAGE_BYTES_MAX;
use crate::model::{
    Action, ErrorMessage, Experimenter, Field, FlowMod, FlowStats, Instruction, Match,
    MultipartReplyBody, PRIORITY_DEFAULT, PacketOut, PortDescription, PortFeatures, PortStatus,
    PortStatusReason, SwitchDescription, Text, VLAN_PRESENT, reserved,
};

fn bytes_of(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(Version::V1_0, 7, message, &mut bytes).unwrap();
    bytes
}

/// Encodes a message, corrupts it with `change`, and returns offset and error of the failed
/// decoding.
fn refused(message: &Message, change: impl Fn(&mut Vec<u8>)) -> (usize, ErrorCode) {
    let mut bytes = bytes_of(message);
    change(&mut bytes);
    let error = decode(&bytes).unwrap_err();
    assert_eq!(error.offending.as_bytes(), &bytes[..bytes.len().min(64)]);
    (error.malformed.at, error.answer.unwrap())
}

fn not_expressible(message: Message) -> MessagePart {
    let mut bytes = vec![1, 2, 3];
    let error = encode(Version::V1_0, 7, &message, &mut bytes).unwrap_err();
    assert_eq!((error.version, &bytes[..]), (Version::V1_0, &[1, 2, 3][..]));
    error.what
}

fn set_length(bytes: &mut [u8]) {
    let length = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
}

fn flow_with(actions: Vec<Action>) -> Message {
    Message::FlowMod(FlowMod::add(Match::ANY, PRIORITY_DEFAULT, actions))
}

fn flow_for(matching: Match) -> Message {
    Message::FlowMod(FlowMod { matching, ..FlowMod::default() })
}

#[test]
fn invalid_actions_have_bad_action_errors() {
    let flow = flow_with(vec![Action::output(1), Action::set_mac(Field::EthSrc, [2; 6])]);
    let set = |at: usize, value: u8| move |bytes: &mut Vec<u8>| bytes[at] = value;
    assert_eq!(refused(&flow, set(73, 12)), (72, ErrorCode::ActionBadType));
    assert_eq!(refused(&flow, set(75, 0)), (74, ErrorCode::ActionBadLength));
    assert_eq!(refused(&flow, set(75, 12)), (74, ErrorCode::ActionBadLength));
    assert_eq!(refused(&flow, set(75, 16)), (80, ErrorCode::ActionBadLength));
    assert_eq!(refused(&flow, set(83, 8)), (84, ErrorCode::ActionBadLength));
    assert_eq!(refused(&flow, set(83, 24)), (84, ErrorCode::ActionBadLength));
    for (action, at, value) in [
        (Action::SetVlanVid(1), 76, 0x10),
        (Action::SetVlanPcp(1), 76, 8),
        (Action::set(Field::IpDscp, 1u8), 76, 5),
    ] {
        let answer = refused(&flow_with(vec![action]), set(at, value));
        assert_eq!(answer, (76, ErrorCode::ActionBadArgument));
    }
    let half = refused(&flow, |bytes| {
        bytes.truncate(78);
        set_length(bytes);
    });
    assert_eq!(half, (76, ErrorCode::ActionBadLength));
}

#[test]
fn invalid_requests_have_matching_errors() {
    let change = flow_with(vec![]);
    assert_eq!(refused(&change, |bytes| bytes[0] = 7), (0, ErrorCode::RequestBadVersion));
    assert_eq!(refused(&change, |bytes| bytes[1] = 22), (1, ErrorCode::RequestBadType));
    assert_eq!(refused(&change, |bytes| bytes[57] = 5), (56, ErrorCode::FlowModBadCommand));
    assert_eq!(refused(&change, |bytes| bytes[71] = 8), (70, ErrorCode::FlowModUnsupported));
    let short = |bytes: &mut Vec<u8>| {
        bytes.truncate(bytes.len() - 1);
        set_length(bytes);
    };
    assert_eq!(refused(&change, short), (70, ErrorCode::RequestBadLength));
    let long = |bytes: &mut Vec<u8>| {
        bytes.push(0);
        set_length(bytes);
    };
    assert_eq!(refused(&Message::BarrierRequest, long), (8, ErrorCode::RequestBadLength));
    let frame = PacketOut { data: vec![0; 60], ..PacketOut::default() };
    let longer_actions = |bytes: &mut Vec<u8>| bytes[15] = 61;
    let answer = refused(&Message::PacketOut(frame), longer_actions);
    assert_eq!(answer, (14, ErrorCode::RequestBadLength));
}

#[test]
fn error_messages_cause_no_error_reply() {
    let error = decode(&[1, 1, 0, 9, 0, 0, 0, 0, 0]).unwrap_err();
    assert_eq!((error.answer, error.answer()), (None, None));
}

#[test]
fn an_error_quotes_64_bytes_of_the_rejected_message() {
    let mut bytes = bytes_of(&flow_with(vec![Action::output(1); 20]));
    bytes[57] = 9;
    let Some(Message::Error(answer)) = decode(&bytes).unwrap_err().answer() else { panic!() };
    assert_eq!(
        answer,
        ErrorMessage { code: ErrorCode::FlowModBadCommand, data: bytes[..64].to_vec() }
    );
}

#[test]
fn padding_is_ignored_and_written_as_zero() {
    let flow = flow_with(vec![Action::PopVlan, Action::SetVlanPcp(3)]);
    let clean = bytes_of(&flow);
    let mut dirty = clean.clone();
    for at in [29, 34, 35, 76, 77, 78, 79, 85, 86, 87] {
        assert_eq!(dirty[at], 0);
        dirty[at] = 0xaa;
    }
    assert_eq!(decode(&dirty).unwrap().1, flow);
}

#[test]
fn wildcard_counts_above_32_equal_32() {
    let mut bytes = bytes_of(&flow_for(Match::ANY));
    for bits in 32..64u32 {
        let wildcards = 0x30_00ff | bits << 8 | bits << 14;
        bytes[8..12].copy_from_slice(&wildcards.to_be_bytes());
        assert_eq!(decode(&bytes).unwrap().1, flow_for(Match::ANY));
    }
}

#[test]
fn parts_that_1_0_cannot_express_are_named() {
    let matching = Match::ANY.with_masked(Field::EthSrc, 2u8, 0xffu8);
    assert_eq!(not_expressible(flow_for(matching)), MessagePart::Mask(Field::EthSrc));
    let ipv4 = Match::ANY.with(Field::EthType, 0x0800u16);
    let matching = ipv4.clone().with_masked(Field::Ipv4Dst, 0x0a00_0100u32, 0xff00_ff00u32);
    assert_eq!(not_expressible(flow_for(matching)), MessagePart::Mask(Field::Ipv4Dst));
    let any_tag = Match::ANY.with_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT);
    assert_eq!(not_expressible(flow_for(any_tag)), MessagePart::Mask(Field::VlanVid));
    let matching = Match::ANY.with(Field::InPort, 0x1_0000u32);
    assert_eq!(not_expressible(flow_for(matching)), MessagePart::Port(0x1_0000));
    let matching = ipv4.with(Field::IpEcn, 1u8);
    assert_eq!(not_expressible(flow_for(matching)), MessagePart::Field(Field::IpEcn));
    let matching = Match::ANY.with(Field::TcpDst, 80u8);
    assert_eq!(not_expressible(flow_for(matching)), MessagePart::Prerequisite(Field::TcpDst));
    let what = MessagePart::Action(ActionKind::Group);
    assert_eq!(not_expressible(flow_with(vec![Action::Group(1)])), what);
    let goto = FlowMod { instructions: vec![Instruction::GotoTable(1)], ..FlowMod::default() };
    let what = MessagePart::Instruction(InstructionKind::GotoTable);
    assert_eq!(not_expressible(Message::FlowMod(goto)), what);
    let value = MessagePart::Value { field: "vlan id", value: 4096 };
    assert_eq!(not_expressible(flow_with(vec![Action::SetVlanVid(4096)])), value);
    let change = FlowMod { buffer_id: Some(u32::MAX), ..FlowMod::default() };
    assert!(matches!(not_expressible(Message::FlowMod(change)), MessagePart::Value { .. }));
    let odd = Experimenter { experimenter: 1, body: vec![0; 5] };
    assert!(matches!(
        not_expressible(flow_with(vec![Action::Experimenter(odd)])),
        MessagePart::Value { value: 13, .. }
    ));
    let port = PortDescription { current: PortFeatures::SPEED_40G_FULL, ..Default::default() };
    let status = PortStatus { reason: PortStatusReason::Add, port };
    assert_eq!(not_expressible(Message::PortStatus(status)), MessagePart::Bit("40g_full"));
    let port = PortDescription { name: Text::from("sixteen-letters!"), ..Default::default() };
    let status = PortStatus { reason: PortStatusReason::Add, port };
    let long = MessagePart::TooLong { field: "port name", bytes: 16, bytes_max: 15 };
    assert_eq!(not_expressible(Message::PortStatus(status)), long);
    let long = MessagePart::TooLong { field: "message", bytes: 65_536, bytes_max: 65_535 };
    assert_eq!(not_expressible(Message::EchoRequest(vec![0; 65_528])), long);
}

#[test]
fn hello_and_error_are_decoded_in_unknown_versions() {
    let hello = decode(&[9, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    assert!(matches!(hello.1, Message::Hello(_)));
    let error = decode(&[9, 1, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0]).unwrap();
    assert_eq!(error.1, Message::error(ErrorCode::HelloIncompatible, &[]));
    let barrier = decode(&[9, 18, 0, 8, 0, 0, 0, 1]).unwrap_err();
    assert_eq!(barrier.answer, Some(ErrorCode::RequestBadVersion));
}

#[test]
fn reserved_ports_keep_their_meaning_in_16_bits() {
    for (port, wire) in [(1, [0, 1]), (0xfeff, [0xfe, 0xff]), (reserved::LOCAL, [0xff, 0xfe])] {
        let message = Message::QueueGetConfigRequest(port);
        let bytes = bytes_of(&message);
        assert_eq!(bytes[8..10], wire);
        assert_eq!(decode(&bytes).unwrap().1, message);
    }
    let unexpressible = not_expressible(Message::QueueGetConfigRequest(0xff00));
    assert_eq!(unexpressible, MessagePart::Port(0xff00));
}

#[test]
fn long_replies_are_split_into_full_messages() {
    let rows: Vec<FlowStats> = (0..2000)
        .map(|n| FlowStats {
            cookie: n,
            instructions: Instruction::apply(vec![Action::output(1); n as usize % 5]),
            ..FlowStats::default()
        })
        .collect();
    let parts = split(Version::V1_0, MultipartReplyBody::Flow(rows.clone())).unwrap();
    let mut back = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        assert_eq!(part.more, place + 1 < parts.len());
        let bytes = bytes_of(&Message::MultipartReply(part.clone()));
        assert!(!part.more || bytes.len() > MESSAGE_BYTES_MAX - 128, "{}", bytes.len());
        let (_, Message::MultipartReply(reply)) = decode(&bytes).unwrap() else { panic!() };
        let MultipartReplyBody::Flow(rows) = reply.body else { panic!() };
        back.extend(rows);
    }
    assert_eq!(back, rows);
    assert_eq!(parts.len(), 4);
}

#[test]
fn a_short_or_single_reply_has_one_part() {
    let empty = split(Version::V1_0, MultipartReplyBody::Port(Vec::new())).unwrap();
    assert_eq!((empty.len(), empty[0].more), (1, false));
    let body = MultipartReplyBody::Desc(SwitchDescription::default());
    let single = split(Version::V1_0, body.clone()).unwrap();
    assert_eq!((single.len(), &single[0].body), (1, &body));
}
