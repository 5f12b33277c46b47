//! Tests of several controllers: roles, master elections, and asynchronous messages of each.

use openflow::model::asynchronous::AsyncConfig;
use openflow::model::role::{
    ControllerProperty, ControllerStatus, ControllerStatusReason, GENERATION_UNKNOWN, Role,
    RoleRequest,
};
use openflow::model::{
    FlowModFlags, GroupMod, MultipartReplyBody, MultipartRequestBody, PortConfig, PortMod, reserved,
};
use openflow::version::{AsyncKind, Version};

use super::*;

fn role(rig: &mut Rig, who: usize, role: Role, generation: u64) -> Result<(Role, u64), ErrorCode> {
    let request = RoleRequest { role, generation, ..RoleRequest::default() };
    match rig.ask(who, &Message::RoleRequest(request)).as_slice() {
        [Message::RoleReply(reply)] => Ok((reply.role, reply.generation)),
        [Message::Error(error)] => Err(error.code),
        other => panic!("answered with {other:?}"),
    }
}

fn three(version: Version) -> Rig {
    let mut rig = Rig::speaking(version, OpenFlowConfig::default());
    rig.connect_as(version, 1 << 20);
    rig.connect_as(version, 1 << 20);
    rig
}

#[test]
fn there_is_one_master_and_generations_increase() {
    for version in [Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5] {
        let mut rig = three(version);
        assert_eq!(role(&mut rig, 0, Role::NoChange, 0), Ok((Role::Equal, GENERATION_UNKNOWN)));
        assert_eq!(role(&mut rig, 0, Role::Master, 5), Ok((Role::Master, 5)));
        assert_eq!(role(&mut rig, 1, Role::Slave, 4), Err(ErrorCode::RoleRequestStale));
        assert_eq!(role(&mut rig, 1, Role::Master, 6), Ok((Role::Master, 6)), "{version}");
        assert_eq!(role(&mut rig, 0, Role::NoChange, 0), Ok((Role::Slave, 6)));
        let reported = rig.news(0);
        let status = reported.iter().find_map(|news| match news {
            Message::RoleStatus(status) => Some((status.role, status.generation)),
            _ => None,
        });
        assert_eq!(status, (version >= Version::V1_4).then_some((Role::Slave, 6)), "{version}");
        assert_eq!(
            role(&mut rig, 2, Role::NoChange, 0),
            Ok((Role::Equal, 6)),
            "the role is unchanged"
        );
    }
}

#[test]
fn a_slave_reads_but_does_not_change() {
    let mut rig = three(Version::V1_3);
    role(&mut rig, 0, Role::Slave, 1).unwrap();
    let orders = [
        Message::FlowMod(add(from_port(1), 2)),
        Message::GroupMod(GroupMod::default()),
        Message::MeterMod(Default::default()),
        Message::PortMod(PortMod { number: 1, mac: [2, 0, 0, 0, 0, 1], ..PortMod::default() }),
        Message::TableMod(Default::default()),
        Message::PacketOut(model::PacketOut {
            in_port: reserved::CONTROLLER,
            data: udp(0, 60),
            ..model::PacketOut::default()
        }),
    ];
    for order in orders {
        assert_eq!(rig.refused(&order).0, ErrorCode::RequestIsSlave, "{order}");
    }
    assert_eq!(rig.ask(0, &Message::BarrierRequest), [Message::BarrierReply]);
    assert!(matches!(rig.ask(0, &Message::FeaturesRequest)[..], [Message::FeaturesReply(_)]));
}

#[test]
fn asynchronous_messages_follow_role_and_configuration() {
    let mut rig = three(Version::V1_3);
    role(&mut rig, 1, Role::Slave, 1).unwrap();
    let mut chosen = AsyncConfig::default();
    for kind in [AsyncKind::PacketIn, AsyncKind::PortStatus, AsyncKind::FlowRemoved] {
        chosen.set(kind, true, 0b010);
    }
    chosen.set(AsyncKind::PacketIn, false, 0);
    chosen.set(AsyncKind::PortStatus, false, 0b111);
    chosen.set(AsyncKind::FlowRemoved, false, 0b0100);
    let set = Message::SetAsync(chosen);
    assert!(rig.ask(2, &set).is_empty());
    let [Message::GetAsyncReply(config)] = &rig.ask(2, &Message::GetAsyncRequest)[..] else {
        panic!()
    };
    assert_eq!(config.get(AsyncKind::FlowRemoved, false), Some(0b0100));
    assert_eq!(config.get(AsyncKind::PortStatus, true), Some(0b010));
    rig.order(&Message::FlowMod(FlowMod {
        flags: FlowModFlags::SEND_FLOW_REMOVED,
        idle_timeout_s: 1,
        ..add(from_port(1), reserved::CONTROLLER)
    }));
    rig.arrive(1, &udp(0, 60));
    let kinds = |rig: &mut Rig, who| -> Vec<String> {
        rig.news(who).iter().map(|news| news.kind().to_string()).collect()
    };
    assert_eq!(kinds(&mut rig, 0), ["packet_in"]);
    assert_eq!([1, 2].map(|who| kinds(&mut rig, who).len()), [0, 0]);
    rig.pass(Nanos::from_secs(3));
    assert_eq!(kinds(&mut rig, 0), ["flow_removed"]);
    assert_eq!([1, 2].map(|who| kinds(&mut rig, who).len()), [0, 0], "not for that reason");
    let change = PortMod {
        number: 3,
        mac: [2, 0, 0, 0, 0, 3],
        config: PortConfig::NO_FORWARD,
        mask: PortConfig::NO_FORWARD,
        ..PortMod::default()
    };
    rig.order(&Message::PortMod(change));
    for who in 0..3 {
        assert_eq!(kinds(&mut rig, who), ["port_status"]);
    }
}

#[test]
fn group_changes_are_forwarded_to_other_subscribed_controllers() {
    let mut rig = three(Version::V1_4);
    let mut chosen = AsyncConfig::default();
    chosen.set(AsyncKind::RequestForward, false, 0b01);
    rig.ask(1, &Message::SetAsync(chosen));
    let change = GroupMod { group: 7, ..GroupMod::default() };
    rig.order(&Message::GroupMod(change.clone()));
    let news = rig.news(1);
    let [Message::RequestForward(forwarded)] = &news[..] else { panic!("{news:?}") };
    assert_eq!(*forwarded.request, Message::GroupMod(change));
    assert!(rig.news(0).is_empty() && rig.news(2).is_empty());
}

/// Returns the received controller statuses: name, whether it is up, role, short ID, reason.
fn statuses(rig: &mut Rig, who: usize) -> Vec<(String, bool, Role, u16, ControllerStatusReason)> {
    let news = rig.news(who).into_iter().map(|news| match news {
        Message::ControllerStatus(status) => summary(&status),
        other => panic!("unexpected {other}"),
    });
    news.collect()
}

fn summary(of: &ControllerStatus) -> (String, bool, Role, u16, ControllerStatusReason) {
    (uri(of), of.is_up, of.role, of.short_id, of.reason)
}

fn uri(of: &ControllerStatus) -> String {
    match &of.properties[..] {
        [ControllerProperty::Uri(uri)] => uri.to_string(),
        other => panic!("{other:?}"),
    }
}

fn listen(rig: &mut Rig, who: usize, reasons: u32) {
    let mut chosen = AsyncConfig::default();
    chosen.set(AsyncKind::ControllerStatus, false, reasons);
    chosen.set(AsyncKind::ControllerStatus, true, reasons);
    // Role-status messages about their own roles are excluded.
    chosen.set(AsyncKind::RoleStatus, false, 0);
    chosen.set(AsyncKind::RoleStatus, true, 0);
    assert!(rig.ask(who, &Message::SetAsync(chosen)).is_empty());
}

#[test]
fn controllers_receive_the_status_of_other_controllers() {
    use ControllerStatusReason::{ChannelStatus, Request, Role as RoleChange, ShortId};
    let mut rig = three(Version::V1_5);
    listen(&mut rig, 0, 0b111_1110);
    listen(&mut rig, 1, 1 << RoleChange as u32);
    let name = |of: usize| format!("c{of}.1");
    // A controller connects.
    rig.connect_as(Version::V1_5, 1 << 20);
    let come = (name(3), true, Role::Equal, 0, ChannelStatus);
    assert_eq!(statuses(&mut rig, 0), [come]);
    // A controller replaces another one as master, and sets a short ID.
    role(&mut rig, 1, Role::Master, 1).unwrap();
    let request = RoleRequest { role: Role::Master, generation: 2, short_id: 40 };
    rig.ask(3, &Message::RoleRequest(request));
    let deposed = (name(1), true, Role::Slave, 0, RoleChange);
    let new = (name(3), true, Role::Master, 40, RoleChange);
    assert_eq!(
        statuses(&mut rig, 0),
        [
            (name(1), true, Role::Master, 0, RoleChange),
            (name(3), true, Role::Equal, 40, ShortId),
            deposed,
            new.clone(),
        ]
    );
    assert_eq!(statuses(&mut rig, 1), [new], "its own status and short IDs are not reported");
    role(&mut rig, 3, Role::Master, 3).unwrap();
    assert!(statuses(&mut rig, 0).is_empty(), "nothing changed");
    // A controller disconnects.
    rig.controllers[3].channel = Box::new(channel::memory::pair(1, "cut").0);
    rig.settle();
    let gone = (name(3), false, Role::Master, 40, ChannelStatus);
    assert_eq!(statuses(&mut rig, 0), [gone], "reported once");
    assert!(statuses(&mut rig, 1).is_empty() && statuses(&mut rig, 2).is_empty());
    let all = rig.ask(2, &Message::ask(MultipartRequestBody::ControllerStatus)).remove(0);
    let Message::MultipartReply(reply) = all else { panic!("{all}") };
    let MultipartReplyBody::ControllerStatus(rows) = reply.body else { panic!() };
    let rows: Vec<_> = rows.iter().map(summary).collect();
    let row = |of: usize, role| (name(of), true, role, 0, Request);
    assert_eq!(rows, [row(0, Role::Equal), row(1, Role::Slave), row(2, Role::Equal)]);
}

#[test]
fn an_unreachable_controller_is_reported_as_down() {
    let controllers = vec!["unix:/nonexistent/planimeter.sock".to_string()];
    let settings = OpenFlowConfig { controllers, ..OpenFlowConfig::default() };
    let mut rig = Rig::speaking(Version::V1_5, settings);
    let all = rig.ask(0, &Message::ask(MultipartRequestBody::ControllerStatus)).remove(0);
    let Message::MultipartReply(reply) = all else { panic!("{all}") };
    let MultipartReplyBody::ControllerStatus(rows) = reply.body else { panic!() };
    let reported: Vec<_> = rows.iter().map(|row| (uri(row), row.is_up)).collect();
    let missing = "unix:/nonexistent/planimeter.sock".to_string();
    assert_eq!(reported, [("c0.1".to_string(), true), (missing, false)]);
}
