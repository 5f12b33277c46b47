//! Tests of additions to large tables, large bundles, and forwarding threads that do not see a
//! change yet.

use dataplane::action::Action as CoreAction;
use dataplane::flow::FlowSpec;
use dataplane::forwarder::{Forwarder, Outputs};
use dataplane::key;
use dataplane::matching;
use openflow::model::table::{TableConfig, TableMod};

use super::*;

#[test]
fn an_add_with_overlap_check_reads_many_entries_over_turns() {
    let mut rig = loaded(16_384);
    let arp = Match::ANY.with(Field::EthType, 0x0806u16).with(Field::InPort, 3u8);
    let flags = FlowModFlags::CHECK_OVERLAP;
    rig.send(0, &Message::FlowMod(FlowMod { flags, ..add(arp, 2) }));
    let barrier = rig.send(0, &Message::BarrierRequest);
    rig.steps /= 8;
    let ways = meanwhile(&mut rig, barrier);
    assert!(ways.len() >= 16, "{} turns", ways.len());
    let asked = rig.send(0, &aggregate());
    until(&mut rig, 0, asked);
    assert_eq!(flows_told(&rig, 0, asked), 16_386);
    let overlapping = Match::ANY.with(Field::EthType, 0x0800u16).with(Field::InPort, 3u8);
    let refused = FlowMod { flags, ..add(overlapping, 2) };
    assert_eq!(rig.refused(&Message::FlowMod(refused)).0, ErrorCode::FlowModOverlap);
}

#[test]
fn eviction_from_a_full_table_finds_entries_over_turns() {
    let entries = 16_384;
    let settings =
        OpenFlowConfig { wildcard_flows_max: entries as usize, ..OpenFlowConfig::default() };
    let mut rig = loaded_with(entries - 1, settings);
    let full = Message::FlowMod(add(numbered(entries), 2));
    assert_eq!(rig.refused(&full).0, ErrorCode::FlowModTableFull);
    let config = TableConfig { eviction: true, ..TableConfig::default() };
    rig.order(&Message::FlowMod(FlowMod { importance: 9, ..add(from_port(1), 2) }));
    rig.order(&Message::TableMod(TableMod { table: 0, config, properties: Vec::new() }));
    rig.send(0, &full);
    let barrier = rig.send(0, &Message::BarrierRequest);
    rig.steps /= 8;
    let ways = meanwhile(&mut rig, barrier);
    assert!(ways.len() >= 16, "{} turns", ways.len());
    let asked = rig.send(0, &aggregate());
    until(&mut rig, 0, asked);
    assert_eq!(flows_told(&rig, 0, asked), entries);
}

#[test]
fn echoes_are_answered_while_a_forwarding_thread_delays_a_change() {
    let mut rig = loaded(0);
    let third = rig.connect_as(Version::V1_3, 1 << 20);
    let pipeline = rig.node.forward.forwarder.openflow().expect("it is a switch");
    let mut worker = pipeline.worker();
    // A thread that was preempted in the middle of a batch.
    let mut out = Outputs::new(&[1, 2, 3]);
    worker.forward(1, &mut Batch::new(1), rig.now, &mut out);
    rig.send(0, &Message::FlowMod(add(numbered(1), 2)));
    let barrier = rig.send(0, &Message::BarrierRequest);
    rig.step();
    rig.step();
    // Changes wait; everything else continues.
    rig.send(third, &Message::FlowMod(add(numbered(2), 2)));
    let other = rig.send(third, &Message::BarrierRequest);
    let is_answered = |rig: &Rig, who: usize, xid: Xid| {
        rig.controllers[who].replies.iter().any(|(of, _)| *of == xid)
    };
    for _ in 0..20 {
        let echo = rig.send(1, &Message::EchoRequest(vec![1]));
        assert!(until(&mut rig, 1, echo) <= ECHO_TURNS);
        let flows = rig.send(1, &aggregate());
        assert!(until(&mut rig, 1, flows) <= ECHO_TURNS);
        assert_eq!(flows_told(&rig, 1, flows), 2, "the entry of the other controller is not added");
        assert!(!is_answered(&rig, 0, barrier) && !is_answered(&rig, third, other));
    }
    worker.rest();
    assert!(
        until(&mut rig, 0, barrier) <= ECHO_TURNS && until(&mut rig, third, other) <= ECHO_TURNS
    );
    let flows = rig.send(1, &aggregate());
    until(&mut rig, 1, flows);
    assert_eq!(flows_told(&rig, 1, flows), 3);
}

/// Commits a bundle of `modifies` non-strict modifies. Each concerns one of `entries` entries.
fn check_modifies(entries: u32, modifies: u32) {
    let settings = OpenFlowConfig { wildcard_flows_max: 200_000, ..OpenFlowConfig::default() };
    let mut rig = loaded_with(0, settings);
    let pipeline = rig.node.forward.forwarder.openflow().expect("it is a switch");
    let mut out = Outputs::new(&[1, 2, 3]);
    for entry in 0..entries {
        let ipv4 = (key::Field::EthType, 0x0800);
        let address = (key::Field::IpDst, u64::from(0x0b00_0000 + entry));
        let matching = matching::Match::of(&[ipv4, address]);
        let spec = FlowSpec::new(matching, PRIORITY_DEFAULT, &[CoreAction::Output { port: 2 }]);
        pipeline.add(&spec, rig.now, &mut out).expect("there is room");
    }
    for entry in 0..modifies - 1 {
        rig.send(0, &put(Message::FlowMod(modify(numbered(entry), 3))));
        if entry % 1024 == 1023 {
            rig.settle();
        }
    }
    rig.send(0, &put(Message::FlowMod(modify(from_port(1), 3))));
    finish(&mut rig, 0);
    rig.controllers[0].replies.clear();
    let commit = rig.send(0, &control(BundleCommand::Commit));
    let ways = meanwhile(&mut rig, commit);
    let old = ways.iter().take_while(|way| **way == 2).count();
    assert!(ways[old..].iter().all(|way| *way == 3), "old, then new");
    // Two modifies read all entries, and one builds an index. After that each takes 32 steps, and
    // 16 for its change.
    let steps = u64::from(3 * entries) + 64 * u64::from(modifies);
    let turns = 4 * (steps / STEPS_A_TURN + 1);
    assert!(old > 5 && (ways.len() as u64) < turns, "{} turns, below {turns} wanted", ways.len());
    assert!(matches!(&rig.controllers[0].replies[..], [(_, Message::BundleControl(_))]));
}

#[test]
fn a_bundle_of_2000_modifies_over_131072_entries_takes_turns() {
    check_modifies(131_072, 2_000);
}

#[test]
fn a_bundle_of_65536_modifies_over_131072_entries_takes_turns() {
    check_modifies(131_072, 65_536);
}
