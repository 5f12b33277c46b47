//! Tests that commands and descriptions of a group with many buckets take several turns.

use openflow::model::group::{BUCKET_FIRST, BUCKET_LAST, GROUP_ALL, GroupDescription, GroupKind};

use super::*;

/// Maximum number of buckets of a group.
const BUCKETS: u32 = 1024;

/// Number of the group.
const GROUP: u32 = 9;

/// Maximum number of buckets that a turn with few steps may convert, create or describe. Converting
/// a bucket takes 12 steps, creating it 17, and describing it 17.
const STEPS: u64 = 1024;

/// Returns a group-mod with buckets of these numbers that output to a port.
fn group_mod(command: GroupModCommand, ids: impl Iterator<Item = u32>, port: u32) -> GroupMod {
    let bucket =
        |id| Bucket { id, weight: 1, actions: vec![Action::output(port)], ..Bucket::default() };
    let (kind, buckets) = (GroupKind::Select, ids.map(bucket).collect());
    GroupMod { command, kind, group: GROUP, buckets, ..GroupMod::default() }
}

/// Creates a switch with a controller of 1.5, whose group gets the frames from port 1.
fn with_group() -> (Rig, usize) {
    let mut rig = loaded(0);
    let who = rig.connect_as(Version::V1_5, 1 << 20);
    rig.send(0, &Message::GroupMod(group_mod(GroupModCommand::Add, 0..BUCKETS, 2)));
    let to_group = FlowMod::add(from_port(1), u16::MAX, vec![Action::Group(GROUP)]);
    rig.send(0, &Message::FlowMod(to_group));
    finish(&mut rig, 0);
    assert_eq!(way(&mut rig), 2);
    (rig, who)
}

/// Returns the number of turns until a request of a controller has a reply. Frames are forwarded
/// in each, and their output ports change once.
fn turns(rig: &mut Rig, who: usize, request: &Message) -> usize {
    let steps = std::mem::replace(&mut rig.steps, STEPS);
    rig.send(who, request);
    let barrier = rig.send(who, &Message::BarrierRequest);
    let mut ways = Vec::new();
    while !rig.controllers[who].replies.iter().any(|(of, _)| *of == barrier) {
        let echo = rig.send(1, &Message::EchoRequest(vec![7]));
        let waited = until(rig, 1, echo);
        assert!(waited <= ECHO_TURNS, "an echo waits {waited} turns");
        ways.resize(ways.len() + waited, way(rig));
        assert!(ways.len() < 10_000, "it is never done");
    }
    rig.steps = steps;
    let changes = ways.windows(2).filter(|two| two[0] != two[1]).count();
    assert!(changes <= 1, "frames are forwarded by the old or the new group: {ways:?}");
    ways.len()
}

/// Returns the description of the group.
fn description(rig: &mut Rig, who: usize) -> GroupDescription {
    let xid = rig.send(who, &Message::ask(MultipartRequestBody::GroupDesc(GROUP_ALL)));
    finish(rig, who);
    let reply = rig.controllers[who].replies.iter().find(|(of, _)| *of == xid);
    let Some((_, Message::MultipartReply(reply))) = reply else { panic!("{reply:?}") };
    let MultipartReplyBody::GroupDesc(rows) = &reply.body else { panic!("{reply:?}") };
    assert!(!reply.more);
    rows[0].clone()
}

#[test]
fn a_group_of_many_buckets_is_added_and_changed_over_turns() {
    let mut rig = loaded(0);
    let who = rig.connect_as(Version::V1_5, 1 << 20);
    let add = group_mod(GroupModCommand::Add, 0..BUCKETS - 2, 2);
    let count = turns(&mut rig, who, &Message::GroupMod(add.clone()));
    // 1,022 buckets of 29 steps each.
    assert!(count >= 15, "adding takes {count} turns");
    let to_group = FlowMod::add(from_port(1), u16::MAX, vec![Action::Group(GROUP)]);
    rig.order(&Message::FlowMod(to_group));
    let modify = group_mod(GroupModCommand::Modify, 0..BUCKETS - 2, 3);
    let count = turns(&mut rig, who, &Message::GroupMod(modify.clone()));
    assert!(count >= 15, "modifying takes {count} turns");
    assert_eq!((way(&mut rig), description(&mut rig, who).buckets), (3, modify.buckets.clone()));
    for (command_bucket, id) in [(BUCKET_FIRST, BUCKETS), (BUCKET_LAST, BUCKETS + 1)] {
        let insert = group_mod(GroupModCommand::InsertBucket, id..id + 1, 3);
        let insert = GroupMod { command_bucket, ..insert };
        let count = turns(&mut rig, who, &Message::GroupMod(insert));
        assert!(count >= 6, "inserting takes {count} turns");
    }
    let ids: Vec<u32> = description(&mut rig, who).buckets.iter().map(|it| it.id).collect();
    assert_eq!(ids, [&[BUCKETS], &*(0..BUCKETS - 2).collect::<Vec<_>>(), &[BUCKETS + 1]].concat());
    let remove = group_mod(GroupModCommand::RemoveBucket, 0..0, 3);
    let remove = GroupMod { command_bucket: 500, ..remove };
    let count = turns(&mut rig, who, &Message::GroupMod(remove));
    assert!(count >= 6, "removing takes {count} turns");
    assert_eq!(description(&mut rig, who).buckets.len(), BUCKETS as usize - 1);
}

#[test]
fn a_group_of_many_buckets_is_changed_in_a_bundle_over_turns() {
    let (mut rig, _) = with_group();
    for port in [3, 99] {
        rig.send(0, &put(Message::GroupMod(group_mod(GroupModCommand::Modify, 0..BUCKETS, port))));
        finish(&mut rig, 0);
        rig.controllers[0].replies.clear();
        let steps = std::mem::replace(&mut rig.steps, STEPS);
        let commit = rig.send(0, &control(BundleCommand::Commit));
        let ways = meanwhile(&mut rig, commit);
        rig.steps = steps;
        // An unknown port is found when the first bucket is converted.
        assert!(ways.len() >= 15 || port == 99, "{} turns", ways.len());
        assert_eq!(way(&mut rig), 3);
    }
}

#[test]
fn the_description_of_a_group_of_many_buckets_is_made_over_turns_in_every_version() {
    let (mut rig, _) = with_group();
    let wanted = group_mod(GroupModCommand::Add, 0..BUCKETS, 2).buckets;
    let request = Message::ask(MultipartRequestBody::GroupDesc(GROUP_ALL));
    for version in [Version::V1_1, Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5] {
        let who = rig.connect_as(version, 1 << 20);
        let count = turns(&mut rig, who, &request);
        assert!(count >= 6, "{version:?}: {count} turns");
        assert_eq!(description(&mut rig, who).buckets, wanted, "{version:?}");
    }
}

#[test]
fn a_description_shows_the_group_as_it_was_when_another_replaces_it_meanwhile() {
    let (mut rig, who) = with_group();
    rig.steps = STEPS;
    let asked = rig.send(who, &Message::ask(MultipartRequestBody::GroupDesc(GROUP_ALL)));
    rig.step();
    rig.step();
    rig.send(0, &Message::GroupMod(group_mod(GroupModCommand::Modify, 0..3, 3)));
    finish(&mut rig, 0);
    assert_eq!(way(&mut rig), 3);
    assert!(rig.controllers[who].replies.is_empty(), "the description takes longer");
    until(&mut rig, who, asked);
    let reply = rig.controllers[who].replies.iter().find(|(of, _)| *of == asked);
    let Some((_, Message::MultipartReply(reply))) = reply else { panic!("{reply:?}") };
    let MultipartReplyBody::GroupDesc(rows) = &reply.body else { panic!("{reply:?}") };
    assert_eq!(rows[0].buckets, group_mod(GroupModCommand::Add, 0..BUCKETS, 2).buckets);
    assert_eq!(description(&mut rig, who).buckets.len(), 3);
}

#[test]
fn a_description_has_as_many_buckets_as_fit_into_a_message() {
    let mut rig = loaded(0);
    let who = rig.connect_as(Version::V1_5, 1 << 20);
    // A bucket with eight outputs has 136 bytes in 1.5.
    let actions = vec![Action::output(3); 8];
    let bucket = |id| Bucket { id, weight: 1, actions: actions.clone(), ..Bucket::default() };
    for first in (0..BUCKETS).step_by(256) {
        let command = match first {
            0 => GroupModCommand::Add,
            _ => GroupModCommand::InsertBucket,
        };
        let mut change = group_mod(command, 0..0, 3);
        change.command_bucket = BUCKET_LAST;
        change.buckets = (first..first + 256).map(bucket).collect();
        rig.send(who, &Message::GroupMod(change));
        finish(&mut rig, who);
    }
    let buckets = description(&mut rig, who).buckets;
    assert!((400..1024).contains(&buckets.len()), "{} buckets", buckets.len());
    assert!((0..).zip(&buckets).all(|(id, it)| *it == bucket(id)));
}
