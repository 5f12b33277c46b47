//! Tests of flow entries: add, modify, delete, timeouts, errors.

use openflow::model::{FlowModCommand, FlowModFlags, FlowRemovedReason, reserved};

use super::*;

fn removals(rig: &mut Rig) -> Vec<(FlowRemovedReason, u64, u64)> {
    let news = rig.news(0);
    let removed = news.iter().map(|message| match message {
        Message::FlowRemoved(gone) => (gone.reason, gone.cookie, gone.packets),
        other => panic!("unexpected {other}"),
    });
    removed.collect()
}

#[test]
fn an_entry_forwards_only_frames_that_match() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.order(&Message::FlowMod(add(exact(0), 2)));
    assert_eq!(rig.ask(0, &Message::BarrierRequest), [Message::BarrierReply]);
    rig.arrive(1, &udp(0, 60));
    rig.arrive(1, &udp(1, 60));
    assert_eq!(rig.left(2), [udp(0, 60)]);
    assert!(rig.left(3).is_empty() && rig.left(1).is_empty());
    assert_eq!(rig.news(0).len(), 1, "the other frame goes to the controller");
}

#[test]
fn exact_entries_have_precedence_over_wildcards() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.order(&Message::FlowMod(FlowMod { priority: 65535, ..add(from_port(1), 3) }));
    rig.order(&Message::FlowMod(FlowMod { priority: 1, ..add(exact(0), 2) }));
    rig.arrive(1, &udp(0, 60));
    rig.arrive(1, &udp(1, 60));
    assert_eq!((rig.left(2), rig.left(3)), (vec![udp(0, 60)], vec![udp(1, 60)]));
}

#[test]
fn modify_changes_actions_and_delete_removes_entries() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.order(&Message::FlowMod(add(exact(0), 2)));
    let modify = FlowMod { command: FlowModCommand::Modify, ..add(from_port(1), 3) };
    rig.order(&Message::FlowMod(modify.clone()));
    rig.arrive(1, &udp(0, 60));
    assert_eq!((rig.left(2).len(), rig.left(3).len()), (0, 1));
    let strict = FlowMod { command: FlowModCommand::ModifyStrict, ..add(exact(0), 2) };
    rig.order(&Message::FlowMod(strict));
    rig.arrive(1, &udp(0, 60));
    assert_eq!((rig.left(2).len(), rig.left(3).len()), (1, 0));
    let elsewhere = FlowMod { command: FlowModCommand::Delete, out_port: 3, ..add(Match::ANY, 1) };
    rig.order(&Message::FlowMod(elsewhere.clone()));
    rig.arrive(1, &udp(0, 60));
    assert_eq!(rig.left(2).len(), 1, "the flow outputs to 2, so it stays");
    rig.order(&Message::FlowMod(FlowMod { out_port: 2, ..elsewhere }));
    rig.arrive(1, &udp(0, 60));
    assert_eq!(rig.left(2).len(), 0);
    // Modifying a missing entry adds it.
    rig.order(&Message::FlowMod(modify));
    rig.arrive(1, &udp(9, 60));
    assert_eq!(rig.left(3).len(), 1);
}

#[test]
fn entries_time_out_with_a_flow_removed_message_if_requested() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    let flags = FlowModFlags::SEND_FLOW_REMOVED;
    let flow = |at, cookie, flags| FlowMod { cookie, flags, ..add(exact(at), 2) };
    let idle = FlowMod { idle_timeout_s: 2, ..flow(0, 10, flags) };
    let hard = FlowMod { hard_timeout_s: 3, ..flow(1, 11, flags) };
    let quiet = FlowMod { hard_timeout_s: 1, ..flow(2, 12, FlowModFlags::NONE) };
    for change in [idle, hard, quiet, flow(3, 13, flags)] {
        rig.order(&Message::FlowMod(change));
    }
    rig.pass(Nanos::from_millis(1_500));
    rig.arrive(1, &udp(0, 60));
    rig.pass(Nanos::from_millis(1_300));
    assert_eq!(removals(&mut rig), []);
    rig.pass(Nanos::from_millis(500));
    assert_eq!(removals(&mut rig), [(FlowRemovedReason::HardTimeout, 11, 0)]);
    rig.pass(Nanos::from_millis(500));
    assert_eq!(removals(&mut rig), [(FlowRemovedReason::IdleTimeout, 10, 1)]);
    let all = FlowMod { command: FlowModCommand::Delete, ..FlowMod::default() };
    rig.order(&Message::FlowMod(all));
    assert_eq!(removals(&mut rig), [(FlowRemovedReason::Delete, 13, 0)]);
}

#[test]
fn a_flow_removed_message_precedes_the_following_barrier_reply() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    let flags = FlowModFlags::SEND_FLOW_REMOVED;
    rig.order(&Message::FlowMod(FlowMod { flags, ..add(exact(0), 2) }));
    let delete = FlowMod { command: FlowModCommand::Delete, ..FlowMod::default() };
    rig.send(0, &Message::FlowMod(delete));
    rig.send(0, &Message::BarrierRequest);
    while rig.controllers[0].replies.is_empty() {
        rig.step();
    }
    assert_eq!(rig.news(0).len(), 1);
}

#[test]
fn full_tables_and_overlaps_are_rejected_with_the_offending_bytes() {
    let settings =
        OpenFlowConfig { exact_flows_max: 2, wildcard_flows_max: 1, ..OpenFlowConfig::default() };
    let mut rig = Rig::connected(settings);
    rig.order(&Message::FlowMod(add(from_port(1), 2)));
    let flags = FlowModFlags::CHECK_OVERLAP;
    let overlap = FlowMod { flags, ..add(Match::ANY.with(Field::EthType, 0x806u16), 3) };
    let (code, data) = rig.refused(&Message::FlowMod(overlap.clone()));
    assert_eq!(code, ErrorCode::FlowModOverlap);
    assert_eq!((data.len(), &data[..4]), (64, &[1, 14, 0, 80][..]));
    let full = FlowMod { flags: FlowModFlags::NONE, ..overlap };
    assert_eq!(rig.refused(&Message::FlowMod(full)).0, ErrorCode::FlowModTableFull);
    for flow in 0..2 {
        rig.order(&Message::FlowMod(add(exact(flow), 2)));
    }
    let full = Message::FlowMod(add(exact(2), 2));
    assert_eq!(rig.refused(&full).0, ErrorCode::FlowModTableFull);
    // Adding the same flow entry again replaces it.
    rig.order(&Message::FlowMod(add(exact(1), 3)));
}

#[test]
fn unsupported_flow_mods_are_rejected_with_specific_errors() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    let with = |action| Message::FlowMod(FlowMod::add(Match::ANY, 1, vec![action]));
    for (request, code) in [
        (with(Action::output(4)), ErrorCode::ActionBadOutPort),
        (with(Action::output(reserved::NONE)), ErrorCode::ActionBadOutPort),
        (with(Action::output(reserved::TABLE)), ErrorCode::ActionBadOutPort),
        (with(Action::Enqueue { port: 4, queue: 1 }), ErrorCode::ActionBadOutPort),
    ] {
        assert_eq!(rig.refused(&request).0, code, "{request}");
    }
    let flags = FlowModFlags::EMERGENCY;
    let emergency = FlowMod { flags, ..add(exact(0), 2) };
    let timed = FlowMod { idle_timeout_s: 1, ..emergency.clone() };
    assert_eq!(rig.refused(&Message::FlowMod(emergency)).0, ErrorCode::FlowModTableFull);
    assert_eq!(rig.refused(&Message::FlowMod(timed)).0, ErrorCode::FlowModBadTimeout);
    let vendor = model::Experimenter { experimenter: 7, body: vec![0; 8] };
    let vendor = rig.refused(&Message::Experimenter(vendor));
    assert_eq!(vendor.0, ErrorCode::RequestBadExperimenter);
    rig.arrive(1, &udp(0, 60));
    assert_eq!(rig.left(2).len(), 0, "no rejected entry was installed");
}

#[test]
fn rewritten_frames_have_correct_checksums() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    let actions = vec![
        Action::set(Field::Ipv4Dst, Ipv4Addr::new(192, 0, 2, 9).to_bits()),
        Action::SetVlanVid(5),
        Action::output(2),
        Action::PopVlan,
        Action::output(3),
    ];
    rig.order(&Message::FlowMod(FlowMod::add(exact(0), 1, actions)));
    rig.arrive(1, &udp(0, 60));
    let (tagged, plain) = (rig.left(2).remove(0), rig.left(3).remove(0));
    assert_eq!((&tagged[12..16], tagged.len()), (&[0x81, 0, 0, 5][..], 64));
    assert_eq!((&plain[12..14], plain.len()), (&[8, 0][..], 60));
    assert_eq!((&tagged[34..38], &plain[30..34]), (&[192, 0, 2, 9][..], &[192, 0, 2, 9][..]));
}
