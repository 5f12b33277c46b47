//! Tests of bundles: atomicity, order, limits, and schedules.

use openflow::model::bundle::{
    BundleAddMessage, BundleCommand, BundleControl, BundleFeatureFlags, BundleFeatureProperty,
    BundleFeaturesRequest, BundleFlags, BundleProperty, WallTime,
};
use openflow::model::multipart::{
    FlowStatsRequest, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::model::{Bucket, GroupMod, PortConfig, PortMod, reserved};
use openflow::version::Version;

use super::*;
use crate::config::Limits;

fn control(id: u32, command: BundleCommand, flags: BundleFlags) -> Message {
    let (is_reply, properties) = (false, Vec::new());
    Message::BundleControl(BundleControl { id, command, is_reply, flags, properties })
}

fn put(id: u32, message: Message, flags: BundleFlags) -> Message {
    let (message, properties) = (Box::new(message), Vec::new());
    Message::BundleAddMessage(BundleAddMessage { id, flags, message, properties })
}

const BOTH: BundleFlags = BundleFlags::ATOMIC;

/// Sends a bundle request. Returns the errors if it fails.
fn done(rig: &mut Rig, command: BundleCommand) -> Result<(), Vec<ErrorCode>> {
    let replies = rig.ask(0, &control(1, command, BOTH));
    match replies.as_slice() {
        [Message::BundleControl(reply)] if reply.is_reply && reply.command == command => Ok(()),
        others => Err(others
            .iter()
            .map(|other| match other {
                Message::Error(error) => error.code,
                other => panic!("{other}"),
            })
            .collect()),
    }
}

fn flows(rig: &mut Rig) -> u32 {
    let all = MultipartRequestBody::Aggregate(FlowStatsRequest::default());
    let request = Message::MultipartRequest(MultipartRequest::from(all));
    match rig.ask(0, &request).as_slice() {
        [Message::MultipartReply(reply)] => match &reply.body {
            MultipartReplyBody::Aggregate(sum) => sum.flows,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bundle_has_no_effect_before_its_commit() {
    for version in [Version::V1_4, Version::V1_5] {
        let mut rig = Rig::speaking(version, OpenFlowConfig::default());
        done(&mut rig, BundleCommand::Open).unwrap();
        let bucket = Bucket { actions: vec![Action::output(3)], ..Bucket::default() };
        let group = GroupMod { group: 9, buckets: vec![bucket], ..GroupMod::default() };
        let to_group = FlowMod::add(from_port(1), 5, vec![Action::Group(9)]);
        let frame = model::PacketOut {
            in_port: reserved::CONTROLLER,
            actions: vec![Action::output(2)],
            data: udp(0, 60),
            ..model::PacketOut::default()
        };
        rig.order(&put(1, Message::GroupMod(group), BOTH));
        rig.order(&put(1, Message::FlowMod(to_group), BOTH));
        rig.order(&put(1, Message::PacketOut(frame), BOTH));
        assert_eq!((flows(&mut rig), rig.left(2).len()), (0, 0));
        done(&mut rig, BundleCommand::Close).unwrap();
        done(&mut rig, BundleCommand::Commit).unwrap();
        assert_eq!((flows(&mut rig), rig.left(2).len()), (1, 1), "{version}");
        rig.arrive(1, &udp(0, 60));
        assert_eq!(rig.left(3).len(), 1);
        assert_eq!(done(&mut rig, BundleCommand::Commit), Err(vec![ErrorCode::BundleBadId]));
    }
}

#[test]
fn one_failed_message_rolls_the_bundle_back() {
    let mut rig = Rig::speaking(Version::V1_4, OpenFlowConfig::default());
    rig.order(&Message::FlowMod(add(from_port(3), 1)));
    rig.arrive(3, &udp(0, 60));
    let port = PortMod {
        number: 2,
        mac: [2, 0, 0, 0, 0, 2],
        config: PortConfig::PORT_DOWN,
        mask: PortConfig::PORT_DOWN,
        ..PortMod::default()
    };
    let group = GroupMod { group: 9, ..GroupMod::default() };
    rig.order(&put(1, Message::GroupMod(group.clone()), BOTH));
    rig.order(&put(1, Message::FlowMod(FlowMod::delete(0, Match::ANY)), BOTH));
    rig.order(&put(1, Message::PortMod(port), BOTH));
    rig.order(&put(1, Message::FlowMod(add(from_port(1), 2)), BOTH));
    let wrong = rig.send(0, &put(1, Message::FlowMod(add(from_port(1), 99)), BOTH));
    let commit = rig.send(0, &control(1, BundleCommand::Commit, BOTH));
    rig.settle();
    let replies = std::mem::take(&mut rig.controllers[0].replies);
    let codes: Vec<_> = replies
        .iter()
        .map(|(xid, reply)| match reply {
            Message::Error(error) => (*xid, error.code),
            other => panic!("{other}"),
        })
        .collect();
    let failed = (commit, ErrorCode::BundleMessageFailed);
    assert_eq!(codes, [(wrong, ErrorCode::ActionBadOutPort), failed]);
    assert!(rig.news(0).is_empty(), "no event of the failed bundle is sent");
    assert_eq!(flows(&mut rig), 1);
    rig.order(&Message::GroupMod(group));
    rig.left(1);
    rig.arrive(3, &udp(1, 60));
    assert_eq!(rig.left(1).len(), 1, "the entry is unchanged");
}

#[test]
fn invalid_bundle_messages_have_specific_errors() {
    use BundleCommand::{Close, Commit, Discard, Open};
    let limits = Limits { bundles: 1, bundle_messages: 1, ..Limits::default() };
    let settings = OpenFlowConfig { limits, ..OpenFlowConfig::default() };
    let mut rig = Rig::speaking(Version::V1_4, settings);
    let refused = |rig: &mut Rig, message: Message| rig.refused(&message).0;
    assert_eq!(done(&mut rig, Discard), Err(vec![ErrorCode::BundleBadId]));
    assert_eq!(done(&mut rig, Close), Err(vec![ErrorCode::BundleBadId]));
    done(&mut rig, Open).unwrap();
    let second = control(2, Open, BOTH);
    assert_eq!(refused(&mut rig, second), ErrorCode::BundleOutOfBundles);
    let barrier = put(1, Message::BarrierRequest, BOTH);
    assert_eq!(refused(&mut rig, barrier), ErrorCode::BundleMessageUnsupported);
    rig.order(&put(1, Message::FlowMod(add(from_port(1), 2)), BOTH));
    let more = put(1, Message::FlowMod(add(from_port(2), 2)), BOTH);
    assert_eq!(refused(&mut rig, more), ErrorCode::BundleMessageTooMany);
    let other = control(1, Close, BundleFlags::ORDERED);
    assert_eq!(refused(&mut rig, other), ErrorCode::BundleBadFlags);
    assert_eq!(
        done(&mut rig, Commit),
        Err(vec![ErrorCode::BundleBadId]),
        "the bundle no longer exists"
    );
    done(&mut rig, Open).unwrap();
    done(&mut rig, Close).unwrap();
    let late = put(1, Message::FlowMod(add(from_port(1), 2)), BOTH);
    assert_eq!(refused(&mut rig, late), ErrorCode::BundleClosed);
    done(&mut rig, Open).unwrap();
    rig.pass(Nanos::from_secs(11));
    assert_eq!(done(&mut rig, Commit), Err(vec![ErrorCode::BundleBadId]), "the bundle timed out");
}

#[test]
fn a_scheduled_bundle_is_committed_at_its_time() {
    let mut rig = Rig::speaking(Version::V1_5, OpenFlowConfig::default());
    let flags = BundleFlags::ATOMIC | BundleFlags::TIME;
    let day = Nanos::from_secs(1_700_000_000);
    rig.node.set_wall_clock(day, rig.now);
    let request =
        BundleFeaturesRequest { flags: BundleFeatureFlags::TIMESTAMP, properties: vec![] };
    let request = MultipartRequest::from(MultipartRequestBody::BundleFeatures(request));
    let replies = rig.ask(0, &Message::MultipartRequest(request));
    let [Message::MultipartReply(reply)] = &replies[..] else { panic!("{replies:?}") };
    let MultipartReplyBody::BundleFeatures(features) = &reply.body else { panic!("{reply}") };
    let [BundleFeatureProperty::Time { timestamp, .. }] = features.properties[..] else { panic!() };
    assert_eq!(timestamp, WallTime { seconds: 1_700_000_000, nanoseconds: 0 });
    rig.ask(0, &control(1, BundleCommand::Open, flags));
    rig.order(&put(1, Message::FlowMod(add(from_port(1), 2)), flags));
    let commit = |seconds| {
        let time = WallTime { seconds: 1_700_000_000u64.wrapping_add(seconds), nanoseconds: 0 };
        Message::BundleControl(BundleControl {
            id: 1,
            command: BundleCommand::Commit,
            is_reply: false,
            flags,
            properties: vec![BundleProperty::Time(time)],
        })
    };
    assert_eq!(rig.refused(&commit(100_000)).0, ErrorCode::BundleScheduleFuture);
    assert_eq!(rig.refused(&commit(0u64.wrapping_sub(100))).0, ErrorCode::BundleSchedulePast);
    rig.order(&commit(5));
    rig.pass(Nanos::from_millis(4_900));
    assert_eq!(flows(&mut rig), 0);
    rig.pass(Nanos::from_millis(200));
    assert_eq!(flows(&mut rig), 1);
}
