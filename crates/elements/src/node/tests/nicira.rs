//! Tests of the Nicira extensions of 1.0: each message, and errors.

use openflow::codec::nicira::{put_message, put_request, read_message, read_reply};
use openflow::model::matching::ExperimenterField;
use openflow::model::multipart::{
    AggregateStats, FlowStats, FlowStatsRequest, MultipartReplyBody, MultipartRequestBody,
};
use openflow::model::nicira::{Form, NICIRA, NiciraMessage, NiciraReply, NiciraRequest};
use openflow::model::role::Role;
use openflow::model::{
    Experimenter, FlowModCommand, FlowModFlags, FlowRemovedReason, PacketInReason, reserved,
};

use super::*;

fn say(message: &NiciraMessage) -> Message {
    Message::Experimenter(put_message(message).unwrap())
}

fn change(change: FlowMod) -> Message {
    say(&NiciraMessage::FlowMod(change))
}

/// Returns Nicira's type and code of the error for a message.
fn refused(rig: &mut Rig, request: &Message) -> (u16, u16) {
    let (code, data) = rig.refused(request);
    assert_eq!(code, ErrorCode::Other { family: 0xb0c2, code: 0 });
    assert_eq!((&data[..4], data[8]), (&[0, 0, 0x23, 0x20][..], 1), "then the message, of 1.0");
    let number = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
    (number(4), number(6))
}

fn ask(rig: &mut Rig, request: &NiciraRequest) -> Vec<NiciraReply> {
    let body = MultipartRequestBody::Experimenter(put_request(request).unwrap());
    let parts = rig.ask(0, &Message::ask(body));
    let part = |part: &Message| match part {
        Message::MultipartReply(part) => match &part.body {
            MultipartReplyBody::Experimenter(body) => read_reply(body).unwrap().unwrap(),
            other => panic!("answered with {other:?}"),
        },
        other => panic!("answered with {other:?}"),
    };
    parts.iter().map(part).collect()
}

/// Returns the flow entries of a request, and the number of parts of the reply.
fn flows(rig: &mut Rig, which: FlowStatsRequest) -> (Vec<FlowStats>, usize) {
    let parts = ask(rig, &NiciraRequest::Flow(which));
    let count = parts.len();
    let rows = parts.into_iter().flat_map(|part| match part {
        NiciraReply::Flow(rows) => rows,
        other => panic!("answered with {other:?}"),
    });
    (rows.collect(), count)
}

fn sum(rig: &mut Rig, which: FlowStatsRequest) -> AggregateStats {
    match ask(rig, &NiciraRequest::Aggregate(which)).as_slice() {
        [NiciraReply::Aggregate(sum)] => *sum,
        other => panic!("answered with {other:?}"),
    }
}

/// Returns the only asynchronous message, which must be one of Nicira's.
fn only_nicira_message(rig: &mut Rig, who: usize) -> NiciraMessage {
    match rig.news(who).as_slice() {
        [Message::Experimenter(body)] => read_message(body).unwrap().unwrap(),
        other => panic!("{other:?}"),
    }
}

fn ipv6() -> Match {
    Match::ANY.with(Field::EthType, 0x86ddu16).with_masked(
        Field::Ipv6Src,
        1u128 << 64,
        u128::MAX << 64,
    )
}

fn with_tables() -> Rig {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.order(&say(&NiciraMessage::FlowModTableId(true)));
    rig
}

#[test]
fn a_flow_mod_matches_fields_that_1_0_lacks() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.order(&change(add(ipv6(), 2)));
    let ports = from_port(1).with_masked(Field::EthDst, 2u128, 3u128);
    rig.order(&change(add(ports.clone(), 3)));
    rig.arrive(1, &udp(0, 60));
    assert_eq!(rig.left(3), [udp(0, 60)], "two bits of the address match");
    let (rows, _) = flows(&mut rig, FlowStatsRequest::default());
    let mut found: Vec<_> = rows.iter().map(|row| row.matching.clone()).collect();
    found.sort_by_key(|matching| matching.value(Field::InPort));
    assert_eq!(found, [ipv6(), ports.clone()]);
    let modify = FlowMod { command: FlowModCommand::ModifyStrict, ..add(ports.clone(), 2) };
    rig.order(&change(modify));
    rig.arrive(1, &udp(0, 60));
    assert_eq!((rig.left(2).len(), rig.left(3).len()), (1, 0));
    rig.order(&change(FlowMod { command: FlowModCommand::DeleteStrict, ..add(ports, 2) }));
    assert_eq!(flows(&mut rig, FlowStatsRequest::default()).0.len(), 1);
}

#[test]
fn cookie_filters_match_by_mask() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    for cookie in [0x11, 0x12, 0x21] {
        let matching = from_port(cookie as u32 & 3).with(Field::EthType, cookie as u16);
        rig.order(&change(FlowMod { cookie, ..add(matching, 3) }));
    }
    let which = FlowStatsRequest { cookie: 0x10, cookie_mask: 0xf0, ..Default::default() };
    assert_eq!(sum(&mut rig, which).flows, 2);
    let delete = FlowMod { cookie: 0x10, cookie_mask: 0xf0, ..FlowMod::delete(0, Match::ANY) };
    rig.order(&change(delete));
    let (rows, _) = flows(&mut rig, FlowStatsRequest::default());
    assert_eq!(rows.iter().map(|row| row.cookie).collect::<Vec<_>>(), [0x21]);
    // A modify with a cookie filter changes existing entries and adds none.
    let modify = FlowMod {
        command: FlowModCommand::Modify,
        cookie: 0x77,
        cookie_mask: u64::MAX,
        ..add(Match::ANY, 2)
    };
    rig.order(&change(modify));
    assert_eq!(flows(&mut rig, FlowStatsRequest::default()).0, rows);
}

#[test]
fn tables_have_numbers_once_requested() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    let third = FlowMod { table: 3, ..add(from_port(1), 2) };
    for order in [Message::FlowMod(third.clone()), change(third.clone())] {
        assert_eq!(rig.refused(&order).0, ErrorCode::FlowModBadCommand);
    }
    rig.order(&say(&NiciraMessage::FlowModTableId(true)));
    rig.order(&Message::FlowMod(third.clone()));
    rig.order(&change(FlowMod { table: 5, ..third.clone() }));
    rig.order(&change(FlowMod { table: 255, ..third.clone() }));
    let tables = |rig: &mut Rig, table| {
        let (rows, _) = flows(rig, FlowStatsRequest { table, ..Default::default() });
        let mut tables: Vec<_> = rows.iter().map(|row| row.table).collect();
        tables.sort_unstable();
        tables
    };
    assert_eq!(tables(&mut rig, 255), [0, 3, 5], "a flow-mod without a table is for the first one");
    assert_eq!(tables(&mut rig, 5), [5]);
    rig.order(&change(FlowMod::delete(3, Match::ANY)));
    assert_eq!(tables(&mut rig, 255), [0, 5]);
    let code = rig.refused(&Message::FlowMod(FlowMod { table: 254, ..third.clone() })).0;
    assert_eq!(code, ErrorCode::FlowModUnsupported);
    rig.order(&Message::FlowMod(FlowMod::delete(255, Match::ANY)));
    assert!(tables(&mut rig, 255).is_empty());
    rig.order(&say(&NiciraMessage::FlowModTableId(false)));
    assert_eq!(rig.refused(&change(third)).0, ErrorCode::FlowModBadCommand);
}

#[test]
fn statistics_report_tables_and_idle_ages_in_several_parts() {
    let mut rig = with_tables();
    rig.order(&say(&NiciraMessage::FlowAge));
    for flow in 0..500 {
        let matching = ipv6().with(Field::Ipv6Flabel, flow as u32);
        rig.order(&change(FlowMod { table: (flow & 1) as u8, ..add(matching, 2) }));
    }
    rig.order(&change(add(from_port(1), 2)));
    rig.pass(Nanos::from_secs(5));
    rig.arrive(1, &udp(0, 60));
    rig.pass(Nanos::from_secs(2));
    let (rows, parts) = flows(&mut rig, FlowStatsRequest::default());
    assert_eq!(rows.len(), 501);
    assert!(parts > 3, "{parts} parts");
    let used = rows.iter().find(|row| row.matching == from_port(1)).unwrap();
    assert_eq!((used.packets, used.bytes), (1, 60));
    let seconds = |span: Nanos| span.0 / 1_000_000_000;
    assert_eq!((used.idle_age.map(seconds), seconds(used.age)), (Some(2), 7));
    let unused = rows.iter().find(|row| row.table == 1).unwrap();
    assert_eq!(unused.idle_age.map(seconds), Some(7));
    let odd = FlowStatsRequest { table: 1, ..Default::default() };
    assert_eq!(sum(&mut rig, odd), AggregateStats { packets: 0, bytes: 0, flows: 250 });
    let all = FlowStatsRequest::default();
    assert_eq!(sum(&mut rig, all), AggregateStats { packets: 1, bytes: 60, flows: 501 });
    let nowhere = NiciraRequest::Flow(FlowStatsRequest { table: 254, ..Default::default() });
    let body = MultipartRequestBody::Experimenter(put_request(&nowhere).unwrap());
    assert_eq!(refused(&mut rig, &Message::ask(body)), (1, 512));
}

#[test]
fn entries_of_later_versions_are_reported_as_far_as_possible() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.connect_as(Version::V1_3, 1 << 20);
    let goto = model::Instruction::GotoTable(4);
    let apply = model::Instruction::ApplyActions(vec![Action::output(2)]);
    let flow = FlowMod { instructions: vec![apply.clone(), goto], ..add(ipv6(), 2) };
    rig.ask(1, &Message::FlowMod(flow));
    let (rows, _) = flows(&mut rig, FlowStatsRequest::default());
    assert_eq!(rows[0].matching, ipv6());
    assert_eq!(rows[0].instructions, [apply]);
}

#[test]
fn flow_removed_messages_use_the_chosen_format() {
    let mut rig = with_tables();
    rig.connect(1 << 20);
    rig.order(&say(&NiciraMessage::SetFlowFormat(Form::Nicira)));
    let flags = FlowModFlags::SEND_FLOW_REMOVED;
    let flow = FlowMod { table: 4, hard_timeout_s: 1, flags, cookie: 9, ..add(ipv6(), 2) };
    rig.order(&change(flow));
    rig.pass(Nanos::from_secs(2));
    let NiciraMessage::FlowRemoved(gone) = only_nicira_message(&mut rig, 0) else { panic!() };
    assert_eq!((gone.table, gone.cookie, gone.reason), (4, 9, FlowRemovedReason::HardTimeout));
    assert_eq!(gone.matching, ipv6());
    assert!(
        matches!(rig.news(1)[..], [Message::FlowRemoved(_)]),
        "the other controller chose no format"
    );
    rig.order(&say(&NiciraMessage::SetFlowFormat(Form::Standard)));
    rig.order(&change(FlowMod { flags, ..add(from_port(1), 2) }));
    rig.order(&change(FlowMod::delete(0, Match::ANY)));
    assert!(matches!(rig.news(0)[..], [Message::FlowRemoved(_)]));
}

#[test]
fn packet_ins_use_the_chosen_format() {
    let mut rig = with_tables();
    rig.order(&say(&NiciraMessage::SetPacketInFormat(Form::Nicira)));
    rig.order(&change(FlowMod { cookie: 5, ..add(from_port(2), reserved::CONTROLLER) }));
    rig.arrive(2, &udp(0, 60));
    let NiciraMessage::PacketIn(frame) = only_nicira_message(&mut rig, 0) else { panic!() };
    assert_eq!((frame.in_port, frame.cookie, frame.table), (2, 5, 0));
    assert_eq!((frame.reason, frame.data), (PacketInReason::Action, udp(0, 60)));
    rig.order(&say(&NiciraMessage::SetPacketInFormat(Form::Standard)));
    rig.arrive(2, &udp(0, 60));
    assert!(matches!(rig.news(0)[..], [Message::PacketIn(_)]));
}

#[test]
fn the_last_role_request_makes_the_master_and_a_slave_changes_nothing() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.connect(1 << 20);
    for who in [0, 1] {
        let replies = rig.ask(who, &say(&NiciraMessage::RoleRequest(Role::Master)));
        assert_eq!(replies, [say(&NiciraMessage::RoleReply(Role::Master))]);
    }
    let code = rig.refused(&change(add(ipv6(), 2))).0;
    assert_eq!(code, ErrorCode::RequestPermission);
    assert!(rig.ask(1, &change(add(ipv6(), 2))).is_empty());
    assert_eq!(flows(&mut rig, FlowStatsRequest::default()).0.len(), 1, "a slave looks");
}

#[test]
fn asynchronous_messages_are_selected_by_role_and_reason() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    let chosen = |packet_in, flow_removed| {
        say(&NiciraMessage::SetAsyncConfig { packet_in, port_status: [0, 0], flow_removed })
    };
    let flags = FlowModFlags::SEND_FLOW_REMOVED;
    let flow = FlowMod { flags, ..add(from_port(2), reserved::CONTROLLER) };
    rig.order(&chosen([0b01, 0b10], [0, 0b100]));
    for (role, frames, removals) in [(Role::Equal, 0, 0), (Role::Slave, 1, 1)] {
        let equal = say(&NiciraMessage::RoleRequest(Role::Equal));
        rig.ask(0, &equal);
        rig.order(&change(flow.clone()));
        rig.ask(0, &say(&NiciraMessage::RoleRequest(role)));
        rig.arrive(2, &udp(0, 60));
        assert_eq!(rig.news(0).len(), frames, "{role:?}");
        let other = rig.connect(1 << 20);
        rig.ask(other, &change(FlowMod::delete(0, Match::ANY)));
        assert_eq!(rig.news(0).len(), removals, "{role:?}");
    }
}

#[test]
fn unknown_requests_are_rejected() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    let body = |experimenter, subtype: u32| Experimenter {
        experimenter,
        body: [subtype.to_be_bytes(), [0; 4]].concat(),
    };
    for (from, code) in [
        (body(NICIRA, 77), ErrorCode::RequestBadExperimenterType),
        (body(7, 12), ErrorCode::RequestBadExperimenter),
    ] {
        assert_eq!(rig.refused(&Message::Experimenter(from.clone())).0, code);
        let statistics = Message::ask(MultipartRequestBody::Experimenter(from));
        assert_eq!(rig.refused(&statistics).0, code);
    }
    for only_told in [
        NiciraMessage::SetControllerId(1),
        NiciraMessage::RoleReply(Role::Master),
        NiciraMessage::PacketIn(model::PacketIn::default()),
    ] {
        assert_eq!(rig.refused(&say(&only_told)).0, ErrorCode::RequestBadExperimenterType);
    }
    let mut later = Rig::speaking(Version::V1_3, OpenFlowConfig::default());
    let message = Message::Experimenter(body(NICIRA, 10));
    assert_eq!(later.refused(&message).0, ErrorCode::RequestBadExperimenter);
}

#[test]
fn fields_of_other_vendors_are_rejected_in_every_version() {
    // A register of Open vSwitch.
    let field =
        || ExperimenterField { class: 1, number: 0, has_mask: false, body: vec![0, 0, 0, 1] };
    let flow = || add(Match::ANY.with_experimenter(field()), 2);
    let mut rig = Rig::connected(OpenFlowConfig::default());
    assert_eq!(refused(&mut rig, &change(flow())), (0, 263));
    let which = || FlowStatsRequest { matching: flow().matching, ..Default::default() };
    let body = put_request(&NiciraRequest::Flow(which())).unwrap();
    let request = Message::ask(MultipartRequestBody::Experimenter(body));
    assert_eq!(refused(&mut rig, &request), (0, 263));
    for version in [Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5] {
        let mut rig = Rig::speaking(version, OpenFlowConfig::default());
        for request in [
            Message::FlowMod(flow()),
            Message::FlowMod(FlowMod { command: FlowModCommand::Delete, ..flow() }),
            Message::ask(MultipartRequestBody::Flow(which())),
            Message::ask(MultipartRequestBody::Aggregate(which())),
        ] {
            assert_eq!(rig.refused(&request).0, ErrorCode::MatchBadField, "{version}: {request}");
        }
    }
}

#[test]
fn errors_that_1_0_lacks_use_nicira_codes() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.order(&say(&NiciraMessage::FlowModTableId(true)));
    let far = FlowMod { table: 254, ..add(ipv6(), 2) };
    assert_eq!(refused(&mut rig, &change(far)), (5, 257));
    // A match with a duplicate field, and one with a missing prerequisite.
    let Message::Experimenter(whole) = change(add(ipv6(), 2)) else { unreachable!() };
    let eth_type = [0, 0, 6, 2, 0x86, 0xdd];
    let at = whole.body.windows(6).position(|bytes| bytes == eth_type).expect("the entry exists");
    let mut twice = whole.clone();
    twice.body.splice(at..at, eth_type);
    // The length of the match follows 24 bytes and the subtype; it was 42 bytes, padded.
    assert_eq!(twice.body[28..30], [0, 42]);
    twice.body[29] = 48;
    twice.body.drain(36 + 48..36 + 48 + 6);
    assert_eq!(refused(&mut rig, &Message::Experimenter(twice)), (1, 261));
    let mut other_type = whole;
    other_type.body[at + 5] = 0xdc;
    assert_eq!(refused(&mut rig, &Message::Experimenter(other_type)), (1, 260));
}
