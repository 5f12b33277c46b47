//! Tests of statistics and descriptions.

use std::collections::BTreeSet;

use openflow::model::{
    FlowStatsRequest, METER_CONTROLLER, METER_SLOWPATH, MeterBand, MeterBandKind, MeterFlags,
    MeterMod, MeterModCommand, MultipartReplyBody, MultipartRequestBody, PacketQueue, PortConfig,
    PortMod, PortState, PortStatusReason, QUEUE_ALL, QueueProperty, TABLE_ALL, TableStats,
    reserved,
};

use netio::wrap::rate::{Rate, RateOptions};

use super::*;
use crate::config::{PortRateConfig, QueueConfig};

fn entries_max(row: &TableStats) -> u32 {
    row.abilities.as_ref().unwrap().entries_max
}

fn body(rig: &mut Rig, request: MultipartRequestBody) -> MultipartReplyBody {
    match rig.ask(0, &Message::ask(request)).as_slice() {
        [Message::MultipartReply(reply)] if !reply.more => reply.body.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn features_describe_the_switch_and_its_ports() {
    let settings = OpenFlowConfig { datapath_id: Some(0xabc), ..OpenFlowConfig::default() };
    let mut rig = Rig::connected(settings);
    let reply = rig.ask(0, &Message::FeaturesRequest).remove(0);
    let Message::FeaturesReply(features) = reply else { panic!("{reply}") };
    assert_eq!((features.datapath_id, features.buffers, features.tables), (0xabc, 256, 2));
    let names: Vec<_> = features.ports.iter().map(|port| port.name.to_string()).collect();
    assert_eq!(names, ["p1.0", "p2.0", "p3.0"]);
    let macs: BTreeSet<_> = features.ports.iter().map(|port| port.mac).collect();
    assert_eq!(macs.len(), 3);
}

#[test]
fn flow_aggregate_and_table_statistics_agree_with_the_traffic() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    let wanted = FlowMod { cookie: 5, hard_timeout_s: 90, ..add(exact(0), 2) };
    rig.order(&Message::FlowMod(wanted.clone()));
    rig.order(&Message::FlowMod(FlowMod { priority: 7, ..add(from_port(2), 3) }));
    for _ in 0..3 {
        rig.arrive(1, &udp(0, 100));
    }
    rig.arrive(2, &udp(0, 60));
    rig.now += Nanos::from_millis(2_500);
    let request = FlowStatsRequest { matching: from_port(1), ..FlowStatsRequest::default() };
    let MultipartReplyBody::Flow(flows) = body(&mut rig, MultipartRequestBody::Flow(request))
    else {
        panic!()
    };
    let [flow] = flows.as_slice() else { panic!("{flows:?}") };
    assert_eq!((flow.packets, flow.bytes, flow.cookie, flow.table), (3, 300, 5, 0));
    assert_eq!((&flow.matching, flow.hard_timeout_s), (&exact(0), 90));
    assert_eq!((&flow.instructions, flow.age), (&wanted.instructions, Nanos::from_millis(2_500)));
    for (table, out_port, want) in [
        (TABLE_ALL, reserved::NONE, (4, 360, 2)),
        (0, reserved::NONE, (3, 300, 1)),
        (1, reserved::NONE, (1, 60, 1)),
        (TABLE_ALL, 3, (1, 60, 1)),
        (9, reserved::NONE, (0, 0, 0)),
    ] {
        let request = FlowStatsRequest { table, out_port, ..FlowStatsRequest::default() };
        let MultipartReplyBody::Aggregate(sum) =
            body(&mut rig, MultipartRequestBody::Aggregate(request))
        else {
            panic!()
        };
        assert_eq!((sum.packets, sum.bytes, sum.flows), want, "table {table} port {out_port:#x}");
    }
    let MultipartReplyBody::Table(tables) = body(&mut rig, MultipartRequestBody::Table) else {
        panic!()
    };
    let rows: Vec<_> = tables
        .iter()
        .map(|row| (entries_max(row), row.entries, row.lookups, row.matched))
        .collect();
    assert_eq!(rows, [(131_072, 1, 4, 3), (65_536, 1, 1, 1)]);
}

#[test]
fn ports_and_queues_have_counters() {
    let plain =
        QueueConfig { port: 2, queue: 4, rate_bps_min: None, rate_bps_max: None, frames_max: None };
    let shared = QueueConfig {
        port: 3,
        queue: 1,
        rate_bps_min: Some(250_000),
        rate_bps_max: Some(500_000),
        frames_max: None,
    };
    let settings = OpenFlowConfig {
        queues: vec![plain, shared],
        port_rates: vec![PortRateConfig { port: 3, rate_bps: 1_000_000 }],
        ..OpenFlowConfig::default()
    };
    let mut rig = Rig::connected(settings);
    let actions = vec![Action::Enqueue { port: 2, queue: 4 }];
    rig.order(&Message::FlowMod(FlowMod::add(exact(0), PRIORITY_DEFAULT, actions)));
    rig.arrive(1, &udp(0, 100));
    rig.arrive(1, &udp(0, 60));
    let MultipartReplyBody::Port(rows) = body(&mut rig, MultipartRequestBody::Port(reserved::NONE))
    else {
        panic!()
    };
    let counts: Vec<_> = rows
        .iter()
        .map(|row| (row.port, row.rx_packets, row.rx_bytes, row.tx_packets, row.tx_bytes))
        .collect();
    assert_eq!(counts, [(1, 2, 160, 0, 0), (2, 0, 0, 2, 160), (3, 0, 0, 0, 0)]);
    let MultipartReplyBody::Port(one) = body(&mut rig, MultipartRequestBody::Port(2)) else {
        panic!()
    };
    assert_eq!(one, rows[1..2]);
    let all = MultipartRequestBody::Queue { port: reserved::ALL, queue: QUEUE_ALL };
    let MultipartReplyBody::Queue(rows) = body(&mut rig, all) else { panic!() };
    let counts: Vec<_> = rows.iter().map(|row| (row.port, row.queue, row.tx_packets)).collect();
    assert_eq!(counts, [(2, 4, 2), (3, 1, 0)]);
    for (port, queue, code) in [
        (9, QUEUE_ALL, ErrorCode::QueueOpBadPort),
        (2, 5, ErrorCode::QueueOpBadQueue),
        (1, 4, ErrorCode::QueueOpBadQueue),
    ] {
        let request = MultipartRequestBody::Queue { port, queue };
        assert_eq!(rig.refused(&Message::ask(request)).0, code);
    }
    for (port, id, properties) in [(2, 4, vec![]), (3, 1, vec![QueueProperty::MinRate(250)])] {
        let reported = rig.ask(0, &Message::QueueGetConfigRequest(port));
        let queues = vec![PacketQueue { port, id, properties }];
        assert_eq!(reported, [Message::QueueGetConfigReply(model::QueueConfig { port, queues })]);
    }
    let unknown = Message::QueueGetConfigRequest(9);
    assert_eq!(rig.refused(&unknown).0, ErrorCode::QueueOpBadPort);
}

#[test]
fn description_and_experimenter_requests() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    let MultipartReplyBody::Desc(desc) = body(&mut rig, MultipartRequestBody::Desc) else {
        panic!()
    };
    assert!(desc.software.to_string().starts_with("planimeter "));
    let vendor = model::Experimenter { experimenter: 7, body: vec![0; 8] };
    let vendor = Message::ask(MultipartRequestBody::Experimenter(vendor));
    assert_eq!(rig.refused(&vendor).0, ErrorCode::RequestBadExperimenter);
}

#[test]
fn a_long_reply_waits_for_its_reader_and_delays_the_barrier_reply() {
    let mut rig = Rig::new(OpenFlowConfig::default());
    rig.connect(4096);
    for flow in 0..3_000 {
        rig.send(0, &Message::FlowMod(add(exact(flow), 2)));
        rig.step();
    }
    rig.settle();
    rig.controllers[0].reads = false;
    let request = Message::ask(MultipartRequestBody::Flow(FlowStatsRequest::default()));
    let xids: Vec<_> = (0..8).map(|_| rig.send(0, &request)).collect();
    let barrier = rig.send(0, &Message::BarrierRequest);
    rig.settle();
    rig.settle();
    rig.controllers[0].reads = true;
    while !rig.controllers[0].replies.iter().any(|(xid, _)| *xid == barrier) {
        rig.step();
    }
    let replies = std::mem::take(&mut rig.controllers[0].replies);
    assert_eq!(replies.last().unwrap().0, barrier, "the barrier reply is last");
    for xid in xids {
        let mut seen = BTreeSet::new();
        let parts: Vec<_> = replies.iter().filter(|(of, _)| *of == xid).collect();
        for (at, (_, part)) in parts.iter().enumerate() {
            let Message::MultipartReply(reply) = part else { panic!("{part}") };
            let MultipartReplyBody::Flow(flows) = &reply.body else { panic!("{part}") };
            assert_eq!(reply.more, at + 1 < parts.len());
            for flow in flows {
                assert!(seen.insert(flow.matching.value(Field::UdpSrc)), "reported twice");
            }
        }
        assert_eq!((seen.len(), parts.len() > 10), (3_000, true));
    }
}

#[test]
fn port_settings_change_and_every_controller_is_notified() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.connect(1 << 20);
    let change = PortMod {
        number: 3,
        mac: [2, 0, 0, 0, 0, 3],
        config: PortConfig::NO_FLOOD,
        mask: PortConfig::NO_FLOOD,
        ..PortMod::default()
    };
    rig.order(&Message::PortMod(change.clone()));
    for who in 0..2 {
        let news = rig.news(who).remove(0);
        let Message::PortStatus(status) = news else { panic!("{news}") };
        assert_eq!((status.reason, status.port.number), (PortStatusReason::Modify, 3));
        assert_eq!(status.port.config, PortConfig::NO_FLOOD);
    }
    rig.order(&Message::FlowMod(add(from_port(1), reserved::FLOOD)));
    rig.arrive(1, &udp(0, 60));
    assert_eq!([1, 2, 3].map(|port| rig.left(port).len()), [0, 1, 0]);
    rig.order(&Message::PortMod(change.clone()));
    assert!(rig.news(0).is_empty(), "nothing changed");
    let unknown = PortMod { number: 9, ..change.clone() };
    assert_eq!(rig.refused(&Message::PortMod(unknown)).0, ErrorCode::PortModBadPort);
    let wrong = PortMod { mac: [2, 0, 0, 0, 0, 4], ..change };
    let refused = rig.refused(&Message::PortMod(wrong)).0;
    assert_eq!(refused, ErrorCode::PortModBadHardwareAddress);
}

#[test]
fn a_lost_link_is_reported_to_controllers_and_log() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.wires[1] = None;
    rig.settle();
    let news = rig.news(0);
    let [Message::PortStatus(status)] = news.as_slice() else { panic!("{news:?}") };
    assert_eq!((status.port.number, status.port.state), (2, PortState::LINK_DOWN));
    assert!(rig.log.iter().any(|line| line.starts_with("port 2: down")), "{:?}", rig.log);
}

/// Returns the first port's current features, current speed and maximum speed, as reported by a
/// version.
fn link(version: Version, rig: &mut Rig) -> (String, u32, u32) {
    let ports = match version {
        Version::V1_0 | Version::V1_1 | Version::V1_2 => {
            let reply = rig.ask(0, &Message::FeaturesRequest).remove(0);
            let Message::FeaturesReply(features) = reply else { panic!("{reply}") };
            features.ports
        }
        _ => match body(rig, MultipartRequestBody::PortDesc(reserved::NONE)) {
            MultipartReplyBody::PortDesc(ports) => ports,
            other => panic!("{other:?}"),
        },
    };
    let port = &ports[0];
    (port.current.to_string(), port.current_speed_kbps, port.speed_max_kbps)
}

#[test]
fn every_version_reports_link_speeds_if_known() {
    for (bits_per_second, current, kbps) in [
        (100_000_000, "100m_full", 100_000),
        (10_000_000_000, "10g_full", 10_000_000),
        (2_500_000_000, "other_speed", 2_500_000),
    ] {
        for &version in Version::SUPPORTED {
            let of = RateOptions { bits_per_second, queue_frames_max: 8 };
            let wrap = |port| Box::new(Rate::new(port, of.clone())) as Box<dyn Port>;
            let mut rig = Rig::over(OpenFlowConfig::default(), wrap);
            rig.connect_as(version, 1 << 20);
            let want = match version {
                // Version 1.0 has no field for a speed, and no bit for later speeds.
                Version::V1_0 => (current.replace("other_speed", "none"), 0, 0),
                _ => (current.to_string(), kbps, kbps),
            };
            assert_eq!(link(version, &mut rig), want, "{version}");
        }
    }
    let mut rig = Rig::speaking(Version::V1_3, OpenFlowConfig::default());
    assert_eq!(
        link(Version::V1_3, &mut rig),
        ("none".to_string(), 0, 0),
        "memory ports have no speed"
    );
}

#[test]
fn the_slow_path_meter_is_stored_and_no_frame_uses_it() {
    let mut rig = Rig::speaking(Version::V1_3, OpenFlowConfig::default());
    let band = MeterBand { rate: 1, burst: 0, kind: MeterBandKind::Drop };
    let meter = |command, meter| {
        let (flags, bands) = (MeterFlags::PKTPS, vec![band.clone()]);
        Message::MeterMod(MeterMod { command, flags, meter, bands })
    };
    for number in [METER_SLOWPATH, METER_CONTROLLER] {
        rig.order(&meter(MeterModCommand::Add, number));
        rig.order(&Message::FlowMod(add(from_port(1), reserved::CONTROLLER)));
    }
    for _ in 0..3 {
        rig.arrive(1, &udp(0, 60));
    }
    let mut packets = |meter| match body(&mut rig, MultipartRequestBody::Meter(meter)) {
        MultipartReplyBody::Meter(rows) => {
            let bands = rows[0].bands.iter().map(|band| band.packets).sum::<u64>();
            (rows[0].packets, bands)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(packets(METER_SLOWPATH), (0, 0), "packet-ins do not use it");
    assert_eq!(packets(METER_CONTROLLER), (3, 2));
    rig.order(&meter(MeterModCommand::Delete, METER_SLOWPATH));
    let gone = body(&mut rig, MultipartRequestBody::Meter(METER_SLOWPATH));
    assert_eq!(gone, MultipartReplyBody::Meter(Vec::new()));
}
