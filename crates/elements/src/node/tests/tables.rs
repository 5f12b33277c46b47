//! Tests of several tables from 1.1 on: goto, errors, statistics.

use openflow::model::multipart::{
    FlowStatsRequest, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::model::table::TABLE_ALL;
use openflow::model::{
    FieldMatch, FlowModCommand, FlowModFlags, Instruction, PacketInReason, reserved,
};
use openflow::version::Version;
use packet::field::Field;

use super::*;

/// Returns a flow-mod for a table.
fn entry(table: u8, matching: Match, instructions: Vec<Instruction>) -> FlowMod {
    FlowMod { table, matching, instructions, ..FlowMod::default() }
}

fn goto(table: u8) -> Instruction {
    Instruction::GotoTable(table)
}

fn apply(actions: Vec<Action>) -> Instruction {
    Instruction::ApplyActions(actions)
}

fn write(actions: Vec<Action>) -> Instruction {
    Instruction::WriteActions(actions)
}

fn ip() -> Match {
    Match::ANY.with(Field::EthType, 0x0800u16)
}

fn body(rig: &mut Rig, who: usize, request: MultipartRequestBody) -> MultipartReplyBody {
    let request = Message::MultipartRequest(MultipartRequest::from(request));
    match rig.ask(who, &request).as_slice() {
        [Message::MultipartReply(MultipartReply { more: false, body })] => body.clone(),
        other => panic!("{request} was answered with {other:?}"),
    }
}

#[test]
fn frames_pass_from_table_to_table_with_their_action_set() {
    for version in [Version::V1_1, Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5] {
        let mut rig = Rig::speaking(version, OpenFlowConfig::default());
        let ttl = vec![Action::DecNwTtl];
        rig.order(&Message::FlowMod(entry(0, ip(), vec![write(vec![Action::output(2)]), goto(3)])));
        rig.order(&Message::FlowMod(entry(3, ip(), vec![apply(ttl), goto(200)])));
        let metadata = Instruction::WriteMetadata { value: 7, mask: 0xff };
        let last = vec![apply(vec![Action::output(3)]), metadata];
        rig.order(&Message::FlowMod(entry(200, Match::ANY, last)));
        rig.arrive(1, &udp(0, 60));
        let (set, applied) = (rig.left(2), rig.left(3));
        assert_eq!((set.len(), applied.len()), (1, 1), "{version}");
        assert_eq!((set[0][22], applied[0][22]), (63, 63), "{version}: the TTL is one less");
    }
}

#[test]
fn unmatched_frames_are_dropped_from_1_3_on_unless_an_entry_exists() {
    let mut rig = Rig::speaking(Version::V1_3, OpenFlowConfig::default());
    rig.arrive(1, &udp(0, 60));
    assert!(rig.news(0).is_empty());
    let miss = FlowMod {
        priority: 0,
        cookie: 0xabc,
        ..FlowMod::add(Match::ANY, 0, vec![Action::output(reserved::CONTROLLER)])
    };
    rig.order(&Message::FlowMod(miss));
    rig.arrive(1, &udp(0, 60));
    let news = rig.news(0);
    let [Message::PacketIn(packet)] = news.as_slice() else { panic!("{news:?}") };
    assert_eq!((packet.reason, packet.table, packet.cookie), (PacketInReason::NoMatch, 0, 0xabc));
    assert_eq!(
        (packet.buffer_id, packet.data.len()),
        (None, 60),
        "the complete frame was requested"
    );
}

#[test]
fn a_1_0_controller_receives_misses_and_a_1_3_controller_does_not() {
    let mut rig = Rig::speaking(Version::V1_3, OpenFlowConfig::default());
    rig.connect_as(Version::V1_0, 1 << 20);
    rig.arrive(1, &udp(0, 60));
    assert_eq!((rig.news(0).len(), rig.news(1).len()), (0, 1));
}

#[test]
fn invalid_entries_are_rejected_and_not_installed() {
    use ErrorCode::*;
    let to = |port| vec![apply(vec![Action::output(port)])];
    let set = |field| vec![apply(vec![Action::SetField(FieldMatch::exact(field, 1u8))])];
    let one = |action: Action| vec![apply(vec![action])];
    let any = Match::ANY;
    let cases: Vec<(FlowMod, ErrorCode)> = vec![
        (entry(254, any.clone(), to(2)), FlowModBadTable),
        (entry(TABLE_ALL, any.clone(), to(2)), FlowModBadTable),
        (entry(0, any.clone(), to(9)), ActionBadOutPort),
        (entry(0, any.clone(), to(0)), ActionBadOutPort),
        (entry(0, any.clone(), to(reserved::TABLE)), ActionBadOutPort),
        (entry(0, any.clone(), one(Action::Group(5))), ActionBadOutGroup),
        (entry(0, any.clone(), one(Action::SetQueue(5))), ActionBadQueue),
        (entry(0, any.clone(), vec![Instruction::Meter(5)]), MeterModUnknownMeter),
        (entry(3, any.clone(), vec![goto(3)]), InstructionBadTable),
        (entry(3, any.clone(), vec![goto(2)]), InstructionBadTable),
        (entry(3, any.clone(), vec![goto(254)]), InstructionBadTable),
        (entry(0, any.clone(), set(Field::Ipv4Src)), ActionMatchInconsistent),
        (entry(0, ip(), set(Field::TcpDst)), ActionMatchInconsistent),
        (entry(0, any.clone(), one(Action::PopVlan)), ActionMatchInconsistent),
        (entry(0, any.clone(), vec![apply(vec![Action::output(1); 65])]), ActionTooMany),
        (FlowMod { buffer_id: Some(77), ..entry(0, any.clone(), to(2)) }, RequestBufferUnknown),
        (
            FlowMod { command: FlowModCommand::Delete, table: 254, ..FlowMod::default() },
            FlowModBadTable,
        ),
    ];
    let mut rig = Rig::speaking(Version::V1_3, OpenFlowConfig::default());
    for (change, code) in cases {
        let refused = rig.refused(&Message::FlowMod(change.clone()));
        assert_eq!(refused.0, code, "{change}");
        assert!(!refused.1.is_empty(), "{change}: the error quotes the message");
    }
    let all = MultipartRequestBody::Aggregate(FlowStatsRequest::default());
    let MultipartReplyBody::Aggregate(sum) = body(&mut rig, 0, all) else { panic!() };
    assert_eq!(sum.flows, 0);
}

#[test]
fn entries_round_trip_in_every_version() {
    let instructions = vec![
        apply(vec![Action::SetField(FieldMatch::exact(Field::Ipv4Dst, 0x0a09_0909u32))]),
        Instruction::ClearActions,
        write(vec![Action::output(2)]),
        Instruction::WriteMetadata { value: 0x12, mask: 0xff },
        goto(9),
    ];
    let matching =
        ip().with(Field::InPort, 1u8).with(Field::IpProto, 17u8).with(Field::UdpDst, 53u8);
    for version in [Version::V1_1, Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5] {
        let mut rig = Rig::speaking(version, OpenFlowConfig::default());
        let change = FlowMod {
            priority: 77,
            cookie: 0x1234,
            idle_timeout_s: 10,
            flags: FlowModFlags::SEND_FLOW_REMOVED,
            ..entry(4, matching.clone(), instructions.clone())
        };
        rig.order(&Message::FlowMod(change));
        let all = MultipartRequestBody::Flow(FlowStatsRequest::default());
        let MultipartReplyBody::Flow(rows) = body(&mut rig, 0, all) else { panic!() };
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.table, row.priority, row.cookie), (4, 77, 0x1234), "{version}");
        assert_eq!((&row.matching, &row.instructions), (&matching, &instructions), "{version}");
    }
}

#[test]
fn entries_that_1_0_cannot_express_are_reported_without_those_parts() {
    let mut rig = Rig::speaking(Version::V1_3, OpenFlowConfig::default());
    rig.connect_as(Version::V1_0, 1 << 20);
    let ipv6 = Match::ANY.with(Field::EthType, 0x86ddu16).with(Field::Ipv6Src, 1u8);
    let does = vec![apply(vec![Action::PushPbb(0x88e7), Action::output(2)]), goto(3)];
    rig.order(&Message::FlowMod(entry(0, ipv6, does)));
    let all = MultipartRequestBody::Flow(FlowStatsRequest::default());
    let MultipartReplyBody::Flow(rows) = body(&mut rig, 1, all) else { panic!() };
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!(row.matching, Match::ANY.with(Field::EthType, 0x86ddu16));
    assert_eq!(row.instructions, vec![apply(vec![Action::output(2)])]);
}

#[test]
fn modify_and_delete_filter_by_cookie_and_output() {
    let mut rig = Rig::speaking(Version::V1_3, OpenFlowConfig::default());
    for (port, cookie) in [(1u32, 0x10u64), (2, 0x11), (3, 0x20)] {
        let does = vec![apply(vec![Action::output(port)])];
        let matching = Match::ANY.with(Field::InPort, port);
        rig.order(&Message::FlowMod(FlowMod { cookie, ..entry(1, matching, does) }));
    }
    let count = |rig: &mut Rig| {
        let all = MultipartRequestBody::Aggregate(FlowStatsRequest::default());
        let MultipartReplyBody::Aggregate(sum) = body(rig, 0, all) else { panic!() };
        sum.flows
    };
    let modify = FlowMod { command: FlowModCommand::Modify, ..entry(2, Match::ANY, Vec::new()) };
    rig.order(&Message::FlowMod(modify));
    assert_eq!(count(&mut rig), 3, "modify does not add a missing entry");
    let delete = FlowMod::delete(TABLE_ALL, Match::ANY);
    rig.order(&Message::FlowMod(FlowMod { out_port: 3, ..delete.clone() }));
    assert_eq!(count(&mut rig), 2);
    rig.order(&Message::FlowMod(FlowMod { cookie: 0x11, cookie_mask: u64::MAX, ..delete.clone() }));
    assert_eq!(count(&mut rig), 1);
    rig.order(&Message::FlowMod(delete));
    assert_eq!(count(&mut rig), 0);
}

#[test]
fn a_full_table_rejects_entries_and_other_tables_accept_them() {
    let settings = OpenFlowConfig { tables: 3, flows_max: 2, ..OpenFlowConfig::default() };
    let mut rig = Rig::speaking(Version::V1_3, settings);
    let in_port = |table, port: u32| entry(table, Match::ANY.with(Field::InPort, port), Vec::new());
    rig.order(&Message::FlowMod(in_port(1, 1)));
    rig.order(&Message::FlowMod(in_port(1, 2)));
    rig.order(&Message::FlowMod(in_port(1, 2)));
    let refused = rig.refused(&Message::FlowMod(in_port(1, 3)));
    assert_eq!(refused.0, ErrorCode::FlowModTableFull);
    rig.order(&Message::FlowMod(in_port(2, 3)));
    let MultipartReplyBody::Table(rows) = body(&mut rig, 0, MultipartRequestBody::Table) else {
        panic!()
    };
    let entries: Vec<_> = rows.iter().map(|row| (row.table, row.entries)).collect();
    assert_eq!(entries, [(0, 0), (1, 2), (2, 1)]);
}

#[test]
fn an_icmp_type_of_1_1_matches_the_low_byte_and_returns_all_16_bits() {
    let mut rig = Rig::speaking(Version::V1_1, OpenFlowConfig::default());
    let unreachable = Match::ANY
        .with(Field::EthType, 0x0800u16)
        .with(Field::IpProto, 1u8)
        .with(Field::Icmpv4Type, 3u8)
        .with(Field::Icmpv4Code, 1u8)
        .with_icmp_upper([1, 2]);
    rig.order(&Message::FlowMod(add(unreachable.clone(), 2)));
    let mut frame = udp(0, 60);
    (frame[23], frame[34], frame[35]) = (1, 3, 1);
    rig.arrive(1, &frame);
    assert_eq!(rig.left(2).len(), 1);
    let flows = MultipartRequestBody::Flow(FlowStatsRequest::default());
    let replies = rig.ask(0, &Message::ask(flows));
    let [Message::MultipartReply(reply)] = &replies[..] else { panic!("{replies:?}") };
    let MultipartReplyBody::Flow(rows) = &reply.body else { panic!("{reply:?}") };
    assert_eq!(rows[0].matching, unreachable);
    assert_eq!(rows[0].packets, 1);
}
