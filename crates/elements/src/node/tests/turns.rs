//! Tests that control work of any kind takes turns of bounded length, so that frames and other
//! controllers wait for at most one turn.

use openflow::model::bundle::{BundleAddMessage, BundleCommand, BundleControl, BundleFlags};
use openflow::model::multipart::{FlowStatsRequest, MultipartReplyBody, MultipartRequestBody};
use openflow::model::{Bucket, FlowModCommand, FlowModFlags, GroupMod, GroupModCommand};

use super::*;

mod groups;
mod large;
mod resources;

const ATOMIC: BundleFlags = BundleFlags::ATOMIC;

/// Maximum number of turns until another controller's echo reply: one to receive the request, some
/// for the shares of other connections.
const ECHO_TURNS: usize = 4;

/// Creates a switch with this number of entries, a controller of 1.4 that installed them, and a
/// second controller.
fn loaded(entries: u32) -> Rig {
    loaded_with(entries, OpenFlowConfig::default())
}

/// Creates such a switch with these settings.
fn loaded_with(entries: u32, settings: OpenFlowConfig) -> Rig {
    loaded_wide(3, entries, settings)
}

/// Creates such a switch with this number of ports.
fn loaded_wide(ports: u32, entries: u32, settings: OpenFlowConfig) -> Rig {
    let mut rig = Rig::made(ports, Kind::OpenFlow(settings), |_| {}, |port| Box::new(port));
    rig.connect_as(Version::V1_4, 1 << 20);
    rig.connect_as(Version::V1_3, 1 << 20);
    rig.order(&Message::FlowMod(add(from_port(1), 2)));
    for entry in 0..entries {
        rig.send(0, &Message::FlowMod(add(numbered(entry), 2)));
        if entry % 1024 == 1023 {
            rig.settle();
        }
    }
    finish(&mut rig, 0);
    rig
}

/// Returns a match that no frame of the tests fulfils: one of many destination addresses.
fn numbered(entry: u32) -> Match {
    let address = Ipv4Addr::from(0x0b00_0000 + entry);
    Match::ANY.with(Field::EthType, 0x0800u16).with_ipv4(Field::Ipv4Dst, address, 32)
}

fn put(message: Message) -> Message {
    let (message, properties) = (Box::new(message), Vec::new());
    Message::BundleAddMessage(BundleAddMessage { id: 1, flags: ATOMIC, message, properties })
}

fn control(command: BundleCommand) -> Message {
    let (id, flags, is_reply, properties) = (1, ATOMIC, false, Vec::new());
    Message::BundleControl(BundleControl { id, command, is_reply, flags, properties })
}

/// Returns a non-strict modify that changes matching entries to output to this port.
fn modify(matching: Match, port: u32) -> FlowMod {
    FlowMod { command: FlowModCommand::Modify, ..add(matching, port) }
}

fn aggregate() -> Message {
    Message::ask(MultipartRequestBody::Aggregate(FlowStatsRequest::default()))
}

/// Waits until a controller's requests so far are processed.
fn finish(rig: &mut Rig, who: usize) -> usize {
    let barrier = rig.send(who, &Message::BarrierRequest);
    until(rig, who, barrier)
}

/// Runs turns until a request has a reply, without other work. Returns their number.
fn until(rig: &mut Rig, who: usize, xid: Xid) -> usize {
    for turn in 1..200_000 {
        rig.step();
        if rig.controllers[who].replies.iter().any(|(of, _)| *of == xid) {
            return turn;
        }
    }
    panic!("request {xid} has no reply");
}

/// Returns the port through which a frame from port 1 leaves now.
fn way(rig: &mut Rig) -> usize {
    let mut batch = Batch::new(1);
    batch.push_bytes(&udp(0, 60));
    rig.wires[0].as_mut().unwrap().transmit(&mut batch, rig.now).unwrap();
    rig.node.turn(rig.now);
    let left: Vec<usize> = (1..=3).filter(|&port| !rig.left(port).is_empty()).collect();
    assert_eq!(left.len(), 1, "the frame leaves by one port: {left:?}");
    left[0]
}

/// Runs turns until the first controller's request has a reply. In each turn a frame is forwarded,
/// and the second controller's echo reply arrives within [`ECHO_TURNS`]. Returns the output ports
/// of the frames.
fn meanwhile(rig: &mut Rig, xid: Xid) -> Vec<usize> {
    let mut ways = Vec::new();
    let mut echo: Option<(Xid, usize)> = None;
    for turn in 0..200_000 {
        let (sent, since) = match echo {
            Some(waiting) => waiting,
            None => (rig.send(1, &Message::EchoRequest(vec![turn as u8])), turn),
        };
        rig.step();
        ways.push(way(rig));
        let is_answered = rig.controllers[1].replies.iter().any(|(of, _)| *of == sent);
        echo = (!is_answered).then_some((sent, since));
        assert!(is_answered || turn - since < ECHO_TURNS, "the echo of turn {since} waits");
        if rig.controllers[0].replies.iter().any(|(of, _)| *of == xid) {
            return ways;
        }
    }
    panic!("request {xid} has no reply");
}

#[test]
fn a_bundle_of_many_modifies_is_committed_over_turns_and_visible_atomically() {
    let mut rig = loaded(4096);
    for entry in 0..499 {
        rig.send(0, &put(Message::FlowMod(modify(numbered(entry), 3))));
    }
    rig.send(0, &put(Message::FlowMod(modify(Match::ANY, 3))));
    finish(&mut rig, 0);
    rig.controllers[0].replies.clear();
    let commit = rig.send(0, &control(BundleCommand::Commit));
    let ways = meanwhile(&mut rig, commit);
    // 500 messages and 4,596 changes of 16 steps each.
    assert!(ways.len() > 10, "the commit took {} turns", ways.len());
    let old = ways.iter().take_while(|way| **way == 2).count();
    assert!(old > 10 && ways[old..].iter().all(|way| *way == 3), "old, then new: {ways:?}");
    assert_eq!(way(&mut rig), 3);
    let [(_, Message::BundleControl(reply))] = &rig.controllers[0].replies[..] else {
        panic!("{:?}", rig.controllers[0].replies)
    };
    assert!(reply.is_reply);
}

#[test]
fn a_bundle_that_fails_late_is_rolled_back_over_turns_and_never_visible() {
    let mut rig = loaded(4096);
    let third = rig.connect_as(Version::V1_3, 1 << 20);
    rig.send(0, &put(Message::FlowMod(modify(Match::ANY, 3))));
    rig.send(0, &put(Message::FlowMod(FlowMod::delete(0, Match::ANY))));
    rig.send(0, &put(Message::FlowMod(add(from_port(1), 99))));
    finish(&mut rig, 0);
    let commit = rig.send(0, &control(BundleCommand::Commit));
    // A request of another controller during the commit gets its reply after the end.
    let asked = rig.send(third, &aggregate());
    let ways = meanwhile(&mut rig, commit);
    assert!(ways.len() > 10 && ways.iter().all(|way| *way == 2), "{ways:?}");
    until(&mut rig, third, asked);
    assert_eq!(flows_told(&rig, third, asked), 4097);
}

/// Returns the number of entries in the reply to an aggregate request.
fn flows_told(rig: &Rig, who: usize, xid: Xid) -> u32 {
    let reply = rig.controllers[who].replies.iter().find(|(of, _)| *of == xid);
    let Some((_, Message::MultipartReply(reply))) = reply else { panic!("{reply:?}") };
    let MultipartReplyBody::Aggregate(sum) = &reply.body else { panic!("{reply:?}") };
    sum.flows
}

#[test]
fn a_commit_is_completed_when_its_connection_closes() {
    let mut rig = loaded(4096);
    rig.send(0, &put(Message::FlowMod(modify(Match::ANY, 3))));
    finish(&mut rig, 0);
    rig.send(0, &control(BundleCommand::Commit));
    rig.step();
    rig.step();
    let before = rig.log.len();
    // A channel whose peer is gone: the switch detects it when it reads or sends.
    let (_, gone) = channel::memory::pair(1, "gone");
    rig.controllers[0].channel = Box::new(gone);
    let mut ways = Vec::new();
    while way(&mut rig) == 2 {
        ways.push(2);
        rig.step();
        assert!(ways.len() < 10_000, "the commit is never completed");
    }
    assert!(ways.len() > 5, "{} turns", ways.len());
    rig.settle();
    assert!(rig.log.len() > before, "the closed connection is logged: {:?}", rig.log);
    let asked = rig.send(1, &aggregate());
    until(&mut rig, 1, asked);
    assert_eq!(flows_told(&rig, 1, asked), 4097);
}

#[test]
fn other_changes_and_timeouts_wait_for_a_commit() {
    let mut rig = loaded(4096);
    let brief = FlowMod { hard_timeout_s: 1, ..add(from_port(2), 1) };
    rig.order(&Message::FlowMod(FlowMod { flags: FlowModFlags::SEND_FLOW_REMOVED, ..brief }));
    rig.send(0, &put(Message::FlowMod(modify(Match::ANY, 3))));
    finish(&mut rig, 0);
    let commit = rig.send(0, &control(BundleCommand::Commit));
    rig.step();
    rig.step();
    rig.now += Nanos::from_secs(2);
    rig.send(1, &Message::FlowMod(modify(from_port(1), 2)));
    let barrier = rig.send(1, &Message::BarrierRequest);
    let mut ways = Vec::new();
    while !rig.controllers[1].replies.iter().any(|(of, _)| *of == barrier) {
        rig.step();
        ways.push(way(&mut rig));
        let is_committed = rig.controllers[0].replies.iter().any(|(of, _)| *of == commit);
        let removed = rig.news(0).iter().any(|it| matches!(it, Message::FlowRemoved(_)));
        assert!(is_committed || !removed, "the entry expired during the commit");
        assert!(ways.len() < 10_000, "the other controller waits forever");
    }
    let (old, new) = (
        ways.iter().take_while(|way| **way == 2).count(),
        ways.iter().filter(|way| **way == 3).count(),
    );
    assert!(old > 5 && new >= 1, "{ways:?}");
    assert_eq!(
        ways.last(),
        Some(&2),
        "the change of the other controller follows the bundle: {ways:?}"
    );
}

#[test]
fn a_controller_with_many_bundles_does_not_block_other_controllers() {
    let mut rig = loaded(4096);
    let mut commits = Vec::new();
    for _ in 0..5 {
        rig.send(0, &put(Message::FlowMod(modify(Match::ANY, 3))));
        commits.push(rig.send(0, &control(BundleCommand::Commit)));
    }
    rig.step();
    rig.step();
    for _ in 0..3 {
        rig.send(1, &Message::FlowMod(add(numbered(5000), 3)));
        let barrier = rig.send(1, &Message::BarrierRequest);
        until(&mut rig, 1, barrier);
    }
    let is_done = |xid: &&Xid| rig.controllers[0].replies.iter().any(|(of, _)| of == *xid);
    let done = commits.iter().filter(is_done).count();
    assert!(done <= 3, "{done} bundles were committed before three flow-mods of another");
}

#[test]
fn pipelined_aggregate_requests_are_answered_over_turns() {
    let mut rig = loaded(8192);
    let mut last = 0;
    for _ in 0..100 {
        last = rig.send(0, &aggregate());
    }
    let ways = meanwhile(&mut rig, last);
    // Each reads 8,193 entries; a turn reads 8,192.
    assert!(ways.len() > 50, "{} turns", ways.len());
    assert_eq!(flows_told(&rig, 0, last), 8193);
}

#[test]
fn a_connection_with_slow_requests_is_not_closed() {
    let mut rig = loaded(8192);
    let mut last = 0;
    for _ in 0..100 {
        last = rig.send(0, &aggregate());
    }
    while !rig.controllers[0].replies.iter().any(|(of, _)| *of == last) {
        rig.now += Nanos::from_millis(500);
        rig.step();
        assert!(!rig.controllers[0].down, "{:?}", rig.log);
    }
}

#[test]
fn many_adds_are_processed_over_turns() {
    let mut rig = loaded(0);
    let mut barrier = 0;
    for entry in 0..8192 {
        rig.send(0, &Message::FlowMod(add(numbered(entry), 2)));
        if entry % 2048 == 2047 {
            barrier = rig.send(0, &Message::BarrierRequest);
            let ways = meanwhile(&mut rig, barrier);
            assert!(ways.len() >= 8, "{} turns", ways.len());
        }
    }
    assert!(barrier > 0);
}

#[test]
fn a_dump_of_many_entries_is_sent_over_turns() {
    let mut rig = loaded(16_384);
    let all = MultipartRequestBody::Flow(FlowStatsRequest::default());
    let request = rig.send(0, &Message::ask(all));
    let barrier = rig.send(0, &Message::BarrierRequest);
    let ways = meanwhile(&mut rig, barrier);
    assert!(ways.len() >= 4, "{} turns", ways.len());
    let parts = rig.controllers[0].replies.iter().filter(|(of, _)| *of == request);
    let rows = parts.map(|(_, part)| match part {
        Message::MultipartReply(reply) => match &reply.body {
            MultipartReplyBody::Flow(rows) => rows.len(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    assert_eq!(rows.sum::<usize>(), 16_385);
}

#[test]
fn a_group_with_many_entries_is_deleted_over_turns() {
    let mut rig = loaded(0);
    let bucket = Bucket { actions: vec![Action::output(3)], ..Bucket::default() };
    let group = GroupMod { group: 9, buckets: vec![bucket], ..GroupMod::default() };
    rig.order(&Message::GroupMod(group.clone()));
    for entry in 0..4096 {
        let to_group = FlowMod::add(numbered(entry), 5, vec![Action::Group(9)]);
        rig.send(0, &Message::FlowMod(to_group));
        if entry % 1024 == 1023 {
            rig.settle();
        }
    }
    finish(&mut rig, 0);
    rig.send(0, &Message::GroupMod(GroupMod { command: GroupModCommand::Delete, ..group }));
    let barrier = rig.send(0, &Message::BarrierRequest);
    let ways = meanwhile(&mut rig, barrier);
    // Each change has 16 steps; a turn has 8,192.
    assert!(ways.len() >= 8, "{} turns", ways.len());
    let asked = rig.send(0, &aggregate());
    until(&mut rig, 0, asked);
    assert_eq!(flows_told(&rig, 0, asked), 1);
}

#[test]
fn a_non_strict_modify_and_a_delete_are_processed_over_turns() {
    let mut rig = loaded(8192);
    for change in [modify(Match::ANY, 3), FlowMod::delete(0, numbered(0).with(Field::IpProto, 6u8))]
    {
        rig.send(0, &Message::FlowMod(change));
    }
    rig.send(0, &Message::FlowMod(FlowMod::delete(0, Match::ANY.with(Field::EthType, 0x0800u16))));
    let barrier = rig.send(0, &Message::BarrierRequest);
    let ways = meanwhile(&mut rig, barrier);
    assert!(ways.len() >= 16, "{} turns", ways.len());
    let asked = rig.send(0, &aggregate());
    until(&mut rig, 0, asked);
    assert_eq!((flows_told(&rig, 0, asked), way(&mut rig)), (1, 3));
}

#[test]
fn a_barrier_reply_follows_all_earlier_flow_removed_messages() {
    let mut rig = Rig::speaking(Version::V1_4, OpenFlowConfig::default());
    for entry in 0..2000 {
        let flags = FlowModFlags::SEND_FLOW_REMOVED;
        rig.send(0, &Message::FlowMod(FlowMod { flags, ..add(numbered(entry), 2) }));
    }
    finish(&mut rig, 0);
    rig.steps /= 8;
    rig.send(0, &Message::FlowMod(FlowMod::delete(0, Match::ANY)));
    let turns = finish(&mut rig, 0);
    // 2,000 removals of 16 steps, and 32 to report each of them.
    assert!(turns > 40, "{turns} turns");
    assert_eq!(rig.news(0).len(), 2000);
}

#[test]
fn a_thousand_connections_are_served_in_turn() {
    let limits = crate::config::Limits { connections: 1002, ..Default::default() };
    let settings = OpenFlowConfig { limits, ..OpenFlowConfig::default() };
    let mut rig = Rig::speaking(Version::V1_4, settings);
    rig.connect_as(Version::V1_3, 1 << 20);
    rig.order(&Message::FlowMod(add(from_port(1), 2)));
    for _ in 0..1000 {
        let (ours, theirs) = channel::memory::pair(1 << 16, "many");
        rig.node.adopt(Box::new(ours), rig.now);
        let versions = vec![Version::V1_3];
        let settings = Settings { echo_idle: None, versions, ..Settings::new(End::Controller) };
        rig.controllers.push(Controller {
            session: Session::new(settings, rig.now),
            channel: Box::new(theirs),
            replies: Vec::new(),
            news: Vec::new(),
            reads: true,
            down: false,
        });
    }
    rig.settle();
    let mut last = 0;
    for who in 2..1002 {
        for entry in 0..10 {
            let matching = numbered(who as u32 * 10 + entry);
            rig.send(who, &Message::FlowMod(add(matching, 2)));
        }
        last = rig.send(who, &Message::BarrierRequest);
    }
    let mut turns = 0;
    let echo = rig.send(1, &Message::EchoRequest(vec![1]));
    let mut echo_after = None;
    while !rig.controllers[1001].replies.iter().any(|(of, _)| *of == last) {
        rig.step();
        assert_eq!(way(&mut rig), 2);
        turns += 1;
        let is_answered = rig.controllers[1].replies.iter().any(|(of, _)| *of == echo);
        if is_answered {
            echo_after.get_or_insert(turns);
        }
        assert!(turns < 1000, "the last connection is never served");
    }
    // 10,000 entries of 32 steps, and a share of each connection in each cycle.
    assert!(turns >= 40, "{turns} turns");
    assert!(echo_after.is_some_and(|turns| turns <= 60), "{echo_after:?}");
}
