//! Limits that a controller reaches, and what tells of it.

use openflow::model::reserved;

use super::*;
use crate::config::Limits;
use crate::control::request::What;

fn settings(flow_mods_per_turn: usize) -> OpenFlowConfig {
    let limits = Limits { flow_mods_per_turn, ..Limits::default() };
    OpenFlowConfig { limits, ..OpenFlowConfig::default() }
}

fn counters(rig: &mut Rig) -> Value {
    rig.node.answer(Request::Get(What::Counters), rig.now).unwrap()
}

fn entries(rig: &mut Rig) -> u64 {
    counters(rig)["tables"][0]["entries"].as_u64().unwrap()
}

#[test]
fn a_turn_does_so_many_flow_mods_and_frames_go_on_between_turns() {
    let mut rig = Rig::connected(settings(10));
    for flow in 0..95 {
        rig.send(0, &Message::FlowMod(add(exact(flow), 2)));
    }
    let barrier = rig.send(0, &Message::BarrierRequest);
    rig.step();
    assert_eq!(entries(&mut rig), 0, "they have only just been sent");
    for turn in 1..=10 {
        assert!(rig.controllers[0].replies.is_empty(), "the barrier waits for what came before it");
        let mut frame = Batch::new(1);
        frame.push_bytes(&udp(0, 60));
        rig.wires[0].as_mut().unwrap().transmit(&mut frame, rig.now).unwrap();
        rig.step();
        assert_eq!(entries(&mut rig), (10 * turn).min(95));
        assert_eq!(rig.left(2).len(), usize::from(turn > 1), "turn {turn}");
    }
    assert_eq!(rig.controllers[0].replies, [(barrier, Message::BarrierReply)]);
    assert_eq!(counters(&mut rig)["controllers"]["turns_cut"], 9);
}

#[test]
fn a_turn_that_has_room_for_all_is_not_cut_and_questions_do_not_count() {
    let mut rig = Rig::connected(settings(20));
    for flow in 0..20 {
        rig.send(0, &Message::FlowMod(add(exact(flow), 2)));
        rig.send(0, &Message::EchoRequest(vec![7]));
    }
    rig.step();
    rig.step();
    assert_eq!((entries(&mut rig), rig.controllers[0].replies.len()), (20, 20));
    assert_eq!(counters(&mut rig)["controllers"]["turns_cut"], 0);
}

#[test]
fn frames_that_a_controller_sends_count_as_well_and_none_is_lost() {
    let mut rig = Rig::connected(settings(3));
    let out = Message::PacketOut(model::PacketOut {
        in_port: reserved::NONE,
        actions: vec![Action::output(3)],
        data: udp(0, 60),
        ..model::PacketOut::default()
    });
    for _ in 0..7 {
        rig.send(0, &out);
    }
    rig.step();
    let mut turn = || {
        rig.step();
        let goes_on = rig.node.next_event(rig.now).is_some_and(|due| due <= rig.now);
        (rig.left(3).len(), goes_on)
    };
    assert_eq!([turn(), turn(), turn(), turn()], [(3, true), (3, true), (1, false), (0, false)]);
}

#[test]
fn a_controller_that_reads_nothing_is_given_up_even_while_an_order_of_it_waits() {
    let mut rig = Rig::connected(settings(1));
    rig.controllers[0].reads = false;
    for flow in 0..2 {
        rig.send(0, &Message::FlowMod(add(exact(flow), 2)));
    }
    rig.pass(Nanos::from_secs(1));
    assert_eq!(entries(&mut rig), 2);
    rig.pass(Nanos::from_secs(11));
    assert!(rig.controllers[0].down || rig.log.iter().any(|line| line.contains("echo")));
}
