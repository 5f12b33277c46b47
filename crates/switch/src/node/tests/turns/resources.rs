//! Tests that replies about groups, meters and tables, and changes of table features, take several
//! turns.

use openflow::model::group::GROUP_ALL;
use openflow::model::meter::{METER_ALL, MeterBand, MeterBandKind, MeterMod};

use super::*;

/// Returns the numbers in the rows of a reply, in order.
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
