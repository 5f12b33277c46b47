//! Tests of limits that a controller reaches, and of the errors and counters that report them.

use openflow::model::group::BUCKET_LAST;
use openflow::model::{
    Bucket, GROUP_ALL, GroupMod, GroupModCommand, MultipartReply, MultipartReplyBody,
    MultipartRequestBody, reserved,
};

use super::*;
use crate::control::request::Resource;

/// Creates a switch with a connected controller, and turns of this number of messages.
fn connected(messages: u64) -> Rig {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.steps = messages * u64::from(MESSAGE_STEPS);
    rig
}

fn counters(rig: &mut Rig) -> Value {
    rig.node.answer(Request::Get(Resource::Counters), rig.now).unwrap()
}

fn entries(rig: &mut Rig) -> u64 {
    counters(rig)["tables"][0]["entries"].as_u64().unwrap()
}

#[test]
fn flow_mods_per_turn_are_limited_and_frames_pass_between_turns() {
    let mut rig = connected(10);
    for flow in 0..95 {
        rig.send(0, &Message::FlowMod(add(exact(flow), 2)));
    }
    let barrier = rig.send(0, &Message::BarrierRequest);
    rig.step();
    assert_eq!(entries(&mut rig), 0, "the flow-mods have only just been sent");
    for turn in 1..=10 {
        assert!(rig.controllers[0].replies.is_empty(), "the barrier waits for earlier messages");
        let mut frame = Batch::new(1);
        frame.push_bytes(&udp(0, 60));
        rig.wires[0].as_mut().unwrap().transmit(&mut frame, rig.now).unwrap();
        rig.step();
        assert_eq!(entries(&mut rig), (10 * turn).min(95));
        assert_eq!(rig.left(2).len(), usize::from(turn > 1), "turn {turn}");
    }
    assert_eq!(rig.controllers[0].replies, [(barrier, Message::BarrierReply)]);
    assert_eq!(counters(&mut rig)["controllers"]["turns_cut"], 9);
}

#[test]
fn a_turn_with_enough_budget_processes_all_messages() {
    let mut rig = connected(30);
    for flow in 0..20 {
        rig.send(0, &Message::FlowMod(add(exact(flow), 2)));
        rig.send(0, &Message::EchoRequest(vec![7]));
    }
    rig.step();
    rig.step();
    assert_eq!((entries(&mut rig), rig.controllers[0].replies.len()), (20, 20));
    assert_eq!(counters(&mut rig)["controllers"]["turns_cut"], 0);
}

#[test]
fn packet_outs_count_toward_the_limit_and_none_is_lost() {
    let mut rig = connected(3);
    let out = Message::PacketOut(model::PacketOut {
        in_port: reserved::NONE,
        actions: vec![Action::output(3)],
        data: udp(0, 60),
        ..model::PacketOut::default()
    });
    for _ in 0..7 {
        rig.send(0, &out);
    }
    rig.step();
    let mut turn = || {
        rig.step();
        let goes_on = rig.node.next_event(rig.now).is_some_and(|due| due <= rig.now);
        (rig.left(3).len(), goes_on)
    };
    assert_eq!([turn(), turn(), turn(), turn()], [(3, true), (3, true), (1, false), (0, false)]);
}

#[test]
fn a_controller_that_does_not_read_is_disconnected_with_pending_messages() {
    let mut rig = connected(1);
    rig.controllers[0].reads = false;
    for flow in 0..2 {
        rig.send(0, &Message::FlowMod(add(exact(flow), 2)));
    }
    rig.pass(Nanos::from_secs(1));
    assert_eq!(entries(&mut rig), 2);
    rig.pass(Nanos::from_secs(11));
    assert!(rig.controllers[0].down || rig.log.iter().any(|line| line.contains("echo")));
}

/// Returns the numbers of parts and rows of a reply.
fn group_rows(rig: &mut Rig, who: usize, request: MultipartRequestBody) -> (usize, usize) {
    let parts = rig.ask(who, &Message::ask(request));
    let rows = parts.iter().map(|part| match part {
        Message::MultipartReply(MultipartReply {
            body: MultipartReplyBody::Group(rows), ..
        }) => rows.len(),
        Message::MultipartReply(MultipartReply {
            body: MultipartReplyBody::GroupDesc(rows),
            ..
        }) => rows.len(),
        other => panic!("{other:?}"),
    });
    (parts.len(), rows.sum())
}

#[test]
fn groups_with_many_buckets_are_reported_in_several_parts() {
    let mut rig = Rig::speaking(Version::V1_5, OpenFlowConfig::default());
    let earlier = rig.connect_as(Version::V1_3, 1 << 20);
    let buckets = |from: u32, count: u32| -> Vec<Bucket> {
        let dscp = Action::set(Field::IpDscp, 1u8);
        let actions = vec![Action::PopVlan, Action::set_vlan(3), dscp, Action::output(2)];
        let bucket = |id| Bucket { id, actions: actions.clone(), ..Bucket::default() };
        (from..from + count).map(bucket).collect()
    };
    for group in 1..=5 {
        let first = GroupMod { group, buckets: buckets(0, 512), ..GroupMod::default() };
        rig.order(&Message::GroupMod(first));
        let more = GroupMod {
            command: GroupModCommand::InsertBucket,
            command_bucket: BUCKET_LAST,
            group,
            buckets: buckets(512, 512),
            ..GroupMod::default()
        };
        rig.order(&Message::GroupMod(more));
    }
    for who in [0, earlier] {
        // 40 bytes for each group and 16 for each of its buckets: three groups fit into a message.
        assert_eq!(group_rows(&mut rig, who, MultipartRequestBody::Group(GROUP_ALL)), (2, 5));
        // No message can hold a whole group: buckets that do not fit are omitted.
        let reported = group_rows(&mut rig, who, MultipartRequestBody::GroupDesc(GROUP_ALL));
        assert_eq!(reported, (5, 5));
    }
}
