//! Several controllers: roles, elections, and which news each of them gets.

use openflow::model::asynchronous::AsyncConfig;
use openflow::model::role::{GENERATION_UNKNOWN, Role, RoleRequest};
use openflow::model::{FlowModFlags, GroupMod, PortConfig, PortMod, reserved};
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
fn there_is_one_master_and_elections_go_forward() {
    for version in [Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5] {
        let mut rig = three(version);
        assert_eq!(role(&mut rig, 0, Role::NoChange, 0), Ok((Role::Equal, GENERATION_UNKNOWN)));
        assert_eq!(role(&mut rig, 0, Role::Master, 5), Ok((Role::Master, 5)));
        assert_eq!(role(&mut rig, 1, Role::Slave, 4), Err(ErrorCode::RoleRequestStale));
        assert_eq!(role(&mut rig, 1, Role::Master, 6), Ok((Role::Master, 6)), "{version}");
        assert_eq!(role(&mut rig, 0, Role::NoChange, 0), Ok((Role::Slave, 6)));
        let told = rig.news(0);
        let status = told.iter().find_map(|news| match news {
            Message::RoleStatus(status) => Some((status.role, status.generation)),
            _ => None,
        });
        assert_eq!(status, (version >= Version::V1_4).then_some((Role::Slave, 6)), "{version}");
        assert_eq!(role(&mut rig, 2, Role::NoChange, 0), Ok((Role::Equal, 6)), "as it was");
    }
}

#[test]
fn a_slave_looks_and_changes_nothing() {
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
fn news_go_to_those_whose_role_and_choice_want_them() {
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
    let [Message::GetAsyncReply(told)] = &rig.ask(2, &Message::GetAsyncRequest)[..] else {
        panic!()
    };
    assert_eq!(told.get(AsyncKind::FlowRemoved, false), Some(0b0100));
    assert_eq!(told.get(AsyncKind::PortStatus, true), Some(0b010));
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
fn group_changes_of_one_controller_are_forwarded_to_those_that_want_it() {
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
