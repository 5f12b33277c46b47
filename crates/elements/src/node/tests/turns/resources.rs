//! Tests that replies about groups, meters, tables, ports and queues, and changes of table features,
//! take several turns.

use openflow::model::group::GROUP_ALL;
use openflow::model::meter::{METER_ALL, MeterBand, MeterBandKind, MeterMod};
use openflow::model::{QUEUE_ALL, reserved};

use super::*;

/// Number of queues of a port.
const QUEUES_A_PORT: u32 = 64;

/// Returns the numbers in the rows of a reply, in order. Queues count over all ports.
fn numbers_told(rig: &Rig, who: usize, xid: Xid) -> Vec<u32> {
    let parts = rig.controllers[who].replies.iter().filter(|(of, _)| *of == xid);
    let numbers = parts.map(|(_, part)| match part {
        Message::MultipartReply(reply) => match &reply.body {
            MultipartReplyBody::Group(rows) => rows.iter().map(|row| row.group).collect(),
            MultipartReplyBody::GroupDesc(rows) => rows.iter().map(|row| row.group).collect(),
            MultipartReplyBody::Meter(rows) => rows.iter().map(|row| row.meter).collect(),
            MultipartReplyBody::MeterConfig(rows) => rows.iter().map(|row| row.meter).collect(),
            MultipartReplyBody::TableFeatures(rows) => {
                rows.iter().map(|row| u32::from(row.table)).collect()
            }
            MultipartReplyBody::Table(rows) => {
                rows.iter().map(|row| u32::from(row.table)).collect()
            }
            MultipartReplyBody::TableDesc(rows) => {
                rows.iter().map(|row| u32::from(row.table)).collect()
            }
            MultipartReplyBody::Port(rows) => rows.iter().map(|row| row.port).collect(),
            MultipartReplyBody::PortDesc(rows) => rows.iter().map(|row| row.number).collect(),
            MultipartReplyBody::Queue(rows) => {
                rows.iter().map(|row| row.port * QUEUES_A_PORT + row.queue).collect()
            }
            MultipartReplyBody::QueueDesc(rows) => {
                rows.iter().map(|row| row.port * QUEUES_A_PORT + row.id).collect()
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    numbers.collect::<Vec<Vec<u32>>>().concat()
}

/// Sends a request while turns have few steps. The reply has the numbers in `wanted`, and takes
/// several turns.
fn check_rows(rig: &mut Rig, who: usize, request: MultipartRequestBody, wanted: &[u32]) {
    let steps = std::mem::replace(&mut rig.steps, 1024);
    let asked = rig.send(who, &Message::ask(request.clone()));
    let mut turns = 0;
    let barrier = rig.send(who, &Message::BarrierRequest);
    while !rig.controllers[who].replies.iter().any(|(of, _)| *of == barrier) {
        let echo = rig.send(1, &Message::EchoRequest(vec![7]));
        let waited = until(rig, 1, echo);
        assert!(waited <= ECHO_TURNS, "an echo waits {waited} turns");
        assert_eq!(way(rig), 2);
        turns += waited;
        assert!(turns < 10_000, "{request:?} has no reply");
    }
    rig.steps = steps;
    assert!(turns >= 6, "{request:?} takes {turns} turns");
    assert_eq!(numbers_told(rig, who, asked), wanted, "{request:?}");
}

#[test]
fn replies_about_groups_meters_and_tables_take_turns_in_every_version() {
    let mut rig = loaded_with(0, OpenFlowConfig { tables: 60, ..OpenFlowConfig::default() });
    let numbers: Vec<u32> = (1..=1000).map(|number| number * 3).collect();
    for &group in &numbers {
        let bucket = Bucket { actions: vec![Action::output(3)], ..Bucket::default() };
        rig.send(
            0,
            &Message::GroupMod(GroupMod { group, buckets: vec![bucket], ..GroupMod::default() }),
        );
        let bands = vec![MeterBand { rate: 5, burst: 0, kind: MeterBandKind::Drop }];
        rig.send(0, &Message::MeterMod(MeterMod { meter: group, bands, ..MeterMod::default() }));
    }
    finish(&mut rig, 0);
    use MultipartRequestBody as Ask;
    for version in [Version::V1_1, Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5] {
        let who = rig.connect_as(version, 1 << 20);
        for request in [Ask::Group(GROUP_ALL), Ask::GroupDesc(GROUP_ALL)] {
            check_rows(&mut rig, who, request, &numbers);
        }
        if version >= Version::V1_3 {
            for request in [Ask::Meter(METER_ALL), Ask::MeterConfig(METER_ALL)] {
                check_rows(&mut rig, who, request, &numbers);
            }
            let tables: Vec<u32> = (0..60).collect();
            check_rows(&mut rig, who, Ask::TableFeatures(Vec::new()), &tables);
        }
    }
}

#[test]
fn replies_about_many_tables_ports_and_queues_are_made_over_turns_in_every_version() {
    const PORTS: u32 = 200;
    let queue = |port: u32, queue: u32| crate::config::QueueConfig {
        port,
        // Not in the order of numbers.
        queue: queue ^ 1,
        rate_bps_min: None,
        rate_bps_max: None,
        frames_max: None,
    };
    // Every second port has queues.
    let ports = (1..=PORTS).filter(|port| port % 2 == 0);
    let queues: Vec<u32> = ports
        .flat_map(|port| (0..QUEUES_A_PORT).map(move |it| port * QUEUES_A_PORT + it))
        .collect();
    let configured =
        queues.iter().map(|number| queue(number / QUEUES_A_PORT, number % QUEUES_A_PORT)).collect();
    let settings = OpenFlowConfig { tables: 254, queues: configured, ..OpenFlowConfig::default() };
    let mut rig = loaded_wide(PORTS, 0, settings);
    let (tables, ports): (Vec<u32>, Vec<u32>) = ((0..254).collect(), (1..=PORTS).collect());
    use MultipartRequestBody as Ask;
    for version in Version::ALL {
        let who = rig.connect_as(version, 1 << 20);
        check_rows(&mut rig, who, Ask::Port(reserved::NONE), &ports);
        let all = Ask::Queue { port: reserved::ALL, queue: QUEUE_ALL };
        check_rows(&mut rig, who, all, &queues);
        if version >= Version::V1_1 {
            check_rows(&mut rig, who, Ask::Table, &tables);
        }
        if version >= Version::V1_4 {
            check_rows(&mut rig, who, Ask::TableDesc, &tables);
            let all = Ask::QueueDesc { port: reserved::NONE, queue: QUEUE_ALL };
            check_rows(&mut rig, who, all, &queues);
        }
        let mut numbers = |request| {
            let xid = rig.send(who, &Message::ask(request));
            until(&mut rig, who, xid);
            numbers_told(&rig, who, xid)
        };
        let of_port = |port: u32| queues[(port as usize / 2 - 1) * 64..][..64].to_vec();
        assert_eq!(numbers(Ask::Queue { port: 6, queue: QUEUE_ALL }), of_port(6));
        let third: Vec<u32> = queues.iter().copied().filter(|it| it % QUEUES_A_PORT == 3).collect();
        assert_eq!(numbers(Ask::Queue { port: reserved::ALL, queue: 3 }), third);
        assert_eq!(numbers(Ask::Queue { port: 4, queue: 3 }), third[1..2]);
        assert_eq!(numbers(Ask::Queue { port: 5, queue: QUEUE_ALL }), Vec::<u32>::new());
        assert_eq!(numbers(Ask::Port(9)), [9]);
        if version >= Version::V1_3 {
            assert_eq!(numbers(Ask::PortDesc(reserved::NONE)), ports);
        }
    }
}

#[test]
fn features_of_many_tables_are_set_over_turns() {
    let mut rig = loaded_with(0, OpenFlowConfig { tables: 60, ..OpenFlowConfig::default() });
    let xid = rig.send(0, &Message::ask(MultipartRequestBody::TableFeatures(Vec::new())));
    finish(&mut rig, 0);
    let parts = rig.controllers[0].replies.iter().filter(|(of, _)| *of == xid);
    let rows = parts.flat_map(|(_, part)| match part {
        Message::MultipartReply(reply) => match &reply.body {
            MultipartReplyBody::TableFeatures(rows) => rows.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    let mut rows: Vec<_> = rows.take(20).collect();
    rows[19].entries_max = 7;
    let set = rig.send(0, &Message::ask(MultipartRequestBody::TableFeatures(rows)));
    // A change of another controller follows after it.
    let ways = meanwhile(&mut rig, set);
    // The check of each takes 2,048 steps; a turn has 8,192.
    assert!(ways.len() >= 5, "{} turns", ways.len());
    finish(&mut rig, 0);
    assert_eq!(numbers_told(&rig, 0, set), (0..20).collect::<Vec<u32>>());
}
