//! Tests of flow monitors: initial entries, changes, and controllers that do not read.

use openflow::model::flow::monitor::{
    FlowEvent, FlowMonitorCommand, FlowMonitorFlags, FlowMonitorRequest, FlowUpdate,
};
use openflow::model::multipart::{MultipartReplyBody, MultipartRequest, MultipartRequestBody};
use openflow::model::{FlowModCommand, FlowRemovedReason, MultipartReply};
use openflow::version::Version;

use super::*;

fn watch(rig: &mut Rig, who: usize, request: FlowMonitorRequest) -> Vec<FlowUpdate> {
    let request = MultipartRequestBody::FlowMonitor(vec![request]);
    let request = Message::MultipartRequest(MultipartRequest::from(request));
    updates(rig.ask(who, &request))
}

fn updates(messages: Vec<Message>) -> Vec<FlowUpdate> {
    let part = |message| match message {
        Message::MultipartReply(MultipartReply { body, .. }) => match body {
            MultipartReplyBody::FlowMonitor(updates) => updates,
            other => panic!("{other:?}"),
        },
        other => panic!("{other}"),
    };
    messages.into_iter().flat_map(part).collect()
}

/// Returns the event and the priority of each update.
fn events(updates: &[FlowUpdate]) -> Vec<(FlowEvent, u16)> {
    let event = |update: &FlowUpdate| match update {
        FlowUpdate::Full(update) => (update.event, update.priority),
        other => panic!("{other}"),
    };
    updates.iter().map(event).collect()
}

fn all() -> FlowMonitorFlags {
    FlowMonitorFlags::INITIAL
        | FlowMonitorFlags::ADD
        | FlowMonitorFlags::REMOVED
        | FlowMonitorFlags::MODIFY
        | FlowMonitorFlags::INSTRUCTIONS
}

fn entry(priority: u16, port: u32) -> Message {
    Message::FlowMod(FlowMod { priority, ..add(from_port(1), port) })
}

#[test]
fn a_monitor_reports_initial_added_changed_and_removed_entries() {
    for version in [Version::V1_4, Version::V1_5] {
        let mut rig = Rig::speaking(version, OpenFlowConfig::default());
        rig.connect_as(version, 1 << 20);
        rig.order(&entry(1, 2));
        let request = FlowMonitorRequest { id: 7, flags: all(), ..Default::default() };
        let there = watch(&mut rig, 1, request);
        assert_eq!(events(&there), [(FlowEvent::Initial, 1)], "{version}");
        rig.order(&entry(2, 3));
        let change =
            FlowMod { command: FlowModCommand::Modify, ..FlowMod::add(from_port(1), 0, vec![]) };
        rig.order(&Message::FlowMod(change));
        rig.order(&Message::FlowMod(FlowMod::delete(0, Match::ANY)));
        let reported = updates(rig.news(1));
        let gone = FlowEvent::Removed(FlowRemovedReason::Delete);
        let want = [
            (FlowEvent::Added, 2),
            (FlowEvent::Modified, 1),
            (FlowEvent::Modified, 2),
            (gone, 1),
            (gone, 2),
        ];
        assert_eq!(events(&reported), want, "{version}");
        assert!(rig.news(0).is_empty(), "a controller without monitors receives nothing");
    }
}

#[test]
fn own_changes_are_abbreviated_unless_requested_otherwise() {
    let mut rig = Rig::speaking(Version::V1_4, OpenFlowConfig::default());
    let request = FlowMonitorRequest { id: 1, flags: all(), ..Default::default() };
    assert!(watch(&mut rig, 0, request.clone()).is_empty());
    let xid = rig.send(0, &entry(1, 2));
    rig.settle();
    assert_eq!(updates(rig.news(0)), [FlowUpdate::Abbreviated { xid }]);
    let in_full = FlowMonitorRequest {
        command: FlowMonitorCommand::Modify,
        flags: FlowMonitorFlags::ADD | FlowMonitorFlags::NO_ABBREVIATION,
        ..request
    };
    watch(&mut rig, 0, in_full.clone());
    rig.order(&entry(2, 2));
    assert_eq!(events(&updates(rig.news(0))), [(FlowEvent::Added, 2)]);
    let end = FlowMonitorRequest { command: FlowMonitorCommand::Delete, ..in_full };
    watch(&mut rig, 0, end);
    rig.order(&entry(3, 2));
    assert!(rig.news(0).is_empty());
}

#[test]
fn invalid_monitors_have_specific_errors() {
    let mut rig = Rig::speaking(Version::V1_4, OpenFlowConfig::default());
    let request = FlowMonitorRequest { id: 1, flags: all(), ..Default::default() };
    watch(&mut rig, 0, request.clone());
    let refused = |rig: &mut Rig, request: FlowMonitorRequest| {
        let request = MultipartRequestBody::FlowMonitor(vec![request]);
        rig.refused(&Message::MultipartRequest(MultipartRequest::from(request))).0
    };
    assert_eq!(refused(&mut rig, request.clone()), ErrorCode::FlowMonitorExists);
    let modify =
        FlowMonitorRequest { command: FlowMonitorCommand::Modify, id: 2, ..request.clone() };
    assert_eq!(refused(&mut rig, modify), ErrorCode::FlowMonitorUnknownMonitor);
    let table = FlowMonitorRequest { id: 3, table: 254, ..request };
    assert_eq!(refused(&mut rig, table), ErrorCode::FlowMonitorBadTable);
}

#[test]
fn a_slow_reader_is_notified_of_a_pause_and_then_of_the_differences() {
    let mut rig = Rig::new(OpenFlowConfig::default());
    rig.connect_as(Version::V1_4, 1 << 20);
    rig.connect_as(Version::V1_4, 1000);
    let flags = all();
    watch(&mut rig, 1, FlowMonitorRequest { id: 1, flags, ..Default::default() });
    rig.controllers[1].reads = false;
    let mut sent = 0;
    // Enough to fill the send queue, and some more that is then missed.
    while sent < 24_000 {
        let port = 2 + sent % 2;
        rig.send(0, &entry((sent % 1_000) as u16 + 1, port));
        if sent % 100 == 0 {
            rig.settle_quickly();
        }
        sent += 1;
    }
    rig.settle();
    rig.order(&Message::FlowMod(FlowMod::delete(0, Match::ANY)));
    rig.controllers[1].reads = true;
    let mut reported = Vec::new();
    for _ in 0..4_000 {
        rig.step();
        reported.extend(updates(rig.news(1)));
    }
    let paused = reported.iter().position(|it| *it == FlowUpdate::Paused).expect("it was too much");
    let resumed =
        reported.iter().position(|it| *it == FlowUpdate::Resumed).expect("monitoring resumes");
    assert!(paused < resumed);
    let mut known = std::collections::BTreeSet::new();
    for update in reported {
        let FlowUpdate::Full(update) = update else { continue };
        match update.event {
            FlowEvent::Removed(_) => drop(known.remove(&update.priority)),
            _ => drop(known.insert(update.priority)),
        }
    }
    assert!(known.is_empty(), "the updates show that no entry is left: {known:?}");
}
