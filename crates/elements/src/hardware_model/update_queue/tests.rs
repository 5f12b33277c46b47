//! Tests of activation times and barrier replies against the model, in virtual time.

use dataplane::key::Field;
use dataplane::matching::Match;

use super::*;
use crate::hardware_model::model::{Barrier, Hardware};

const MS: u64 = 1_000_000;

fn writer(hardware: Hardware, barrier: Barrier) -> Writer<u32> {
    Writer::new(&Arc::new(Model { hardware, barrier, ..Model::default() }), 1)
}

fn change(port: u64, rank: u16) -> Change {
    let matching = Match::of(&[(Field::InPort, port)]);
    let spec = FlowSpec::new(matching, rank, &[]);
    Change { id: FlowId::of_spec(&spec), generation: 1, spec: Some(Box::new(spec)) }
}

/// Activated changes and sent replies, each with its time.
type Happened = (Vec<(u64, u64)>, Vec<(u32, u64)>);

/// Runs the writer, calling it only when it has work.
fn run(writer: &mut Writer<u32>) -> Happened {
    let (mut acted, mut answered) = (Vec::new(), Vec::new());
    while let Some(now) = writer.next_event() {
        writer.advance(now);
        while let Some(change) = writer.acts(now) {
            acted.push((change.id.matching.field(Field::InPort).0, now.0));
        }
        while let Some(whose) = writer.answered(now) {
            answered.push((whose, now.0));
        }
    }
    (acted, answered)
}

#[test]
fn each_change_takes_its_time_and_moves_take_longer() {
    let costs = Hardware { insert_ns: 2 * MS, move_ns: 10, modify_ns: 600, ..Hardware::default() };
    let mut writer = writer(costs, Barrier::default());
    for rank in 0..4 {
        writer.accept(change(u64::from(rank), rank), Nanos(5));
    }
    writer.accept(change(0, 0), Nanos(5));
    writer.barrier(7, Nanos(6));
    let (acted, answered) = run(&mut writer);
    let at = |k: u64, moves: u64| 5 + k * 2 * MS + moves * 10;
    let wanted = [(0, at(1, 0)), (1, at(2, 1)), (2, at(3, 3)), (3, at(4, 6)), (0, at(4, 6) + 600)];
    assert_eq!((acted, answered), (wanted.to_vec(), vec![(7, at(4, 6) + 600)]));
}

#[test]
fn a_barrier_reply_is_early_by_the_declared_time() {
    for lead in [MS, 10 * MS, 400 * MS, 4_000 * MS] {
        let costs = Hardware { insert_ns: 3 * MS, activation_ns: lead, ..Hardware::default() };
        let mut writer = writer(costs, Barrier { answers: 1, delay_ns: 0 });
        (0..10).for_each(|port| writer.accept(change(port, 1), Nanos(port)));
        writer.barrier(1, Nanos(10));
        let (acted, answered) = run(&mut writer);
        assert_eq!(answered, [(1, 30 * MS)]);
        assert_eq!(acted[9].1 - answered[0].1, lead);
    }
}

#[test]
fn a_barrier_reply_is_correct_late_or_sent_on_acceptance() {
    let costs = Hardware { insert_ns: 3 * MS, activation_ns: MS, ..Hardware::default() };
    for (barrier, wanted) in [
        (Barrier { answers: 0, delay_ns: 0 }, 31 * MS),
        (Barrier { answers: 0, delay_ns: 50 * MS }, 81 * MS),
        (Barrier { answers: 2, delay_ns: 0 }, 10),
        (Barrier { answers: 2, delay_ns: 4 }, 14),
    ] {
        let mut writer = writer(costs.clone(), barrier);
        (0..10).for_each(|port| writer.accept(change(port, 1), Nanos(0)));
        writer.barrier(1, Nanos(10));
        let (acted, answered) = run(&mut writer);
        assert_eq!((acted.len(), answered), (10, vec![(1, wanted)]));
        writer.barrier(2, Nanos(500 * MS));
        let delay = writer.model.barrier.delay_ns;
        assert_eq!(run(&mut writer).1, [(2, 500 * MS + delay)], "no change is pending before it");
    }
}

#[test]
fn batches_begin_at_multiples_of_the_interval() {
    let costs = Hardware {
        insert_ns: 100,
        batch_rules: 50,
        batch_interval_ns: 100 * MS,
        ..Hardware::default()
    };
    let mut writer = writer(costs, Barrier::default());
    (0..120).for_each(|port| writer.accept(change(port, 1), Nanos(3)));
    let (acted, _) = run(&mut writer);
    let wanted = (0..120).map(|k| (k, (k / 50 + 1) * 100 * MS + (k % 50 + 1) * 100));
    assert_eq!(acted, wanted.collect::<Vec<_>>());
    writer.accept(change(200, 1), Nanos(300 * MS + 50 * MS));
    assert_eq!(run(&mut writer).0, [(200, 400 * MS + 100)]);
}

fn shuffled(seed: u64, answers: u64) -> Vec<u64> {
    let hardware =
        Hardware { batch_rules: 60, batch_interval_ns: MS, order: 1, ..Hardware::default() };
    let barrier = Barrier { answers, delay_ns: 0 };
    let model = Arc::new(Model { hardware, barrier, ..Model::default() });
    let mut writer = Writer::new(&model, seed);
    (0..30).for_each(|port| writer.accept(change(port, 1), Nanos(0)));
    writer.barrier(1, Nanos(0));
    (30..100).for_each(|port| writer.accept(change(port, 1), Nanos(0)));
    run(&mut writer).0.into_iter().map(|(port, _)| port).collect()
}

#[test]
fn the_order_within_a_batch_is_random_but_does_not_cross_a_correct_barrier() {
    let (early, honest) = (shuffled(1, 2), shuffled(1, 0));
    assert_eq!((early.clone(), honest.clone()), (shuffled(1, 2), shuffled(1, 0)));
    assert_ne!(early, shuffled(2, 2));
    let sorted = |ports: &[u64]| {
        let mut ports = ports.to_vec();
        ports.sort_unstable();
        ports
    };
    assert_eq!(sorted(&early[..60]), (0..60).collect::<Vec<_>>());
    assert_ne!(sorted(&early[..30]), (0..30).collect::<Vec<_>>(), "the order crosses the barrier");
    assert_eq!(sorted(&honest[..30]), (0..30).collect::<Vec<_>>());
    assert_eq!(sorted(&honest[60..]), (60..100).collect::<Vec<_>>());
}

#[test]
fn shuffling_keeps_the_order_of_changes_of_one_entry() {
    for seed in 0..50 {
        let hardware =
            Hardware { batch_rules: 40, batch_interval_ns: 1, order: 1, ..Hardware::default() };
        let mut writer: Writer<u32> =
            Writer::new(&Arc::new(Model { hardware, ..Model::default() }), seed);
        for number in 0..40 {
            let changed = Change { generation: number, ..change(number % 4, 1) };
            writer.accept(changed, Nanos(0));
        }
        let mut last = [0; 4];
        writer.advance(Nanos(10));
        while let Some(change) = writer.acts(Nanos(10)) {
            let port = change.id.matching.field(Field::InPort).0 as usize;
            assert!(last[port] <= change.generation, "seed {seed}");
            last[port] = change.generation;
        }
    }
}

#[test]
fn the_number_of_calls_does_not_change_the_result() {
    let costs = || Hardware {
        insert_ns: 777,
        move_ns: 3,
        activation_ns: 5_000,
        batch_rules: 7,
        batch_interval_ns: 9_001,
        order: 1,
        ..Hardware::default()
    };
    let make = || {
        let mut writer = writer(costs(), Barrier::default());
        (0..50).for_each(|port| {
            writer.accept(change(port, (port * 7 % 11) as u16), Nanos(port * 400))
        });
        writer.barrier(9, Nanos(30_000));
        writer
    };
    let (acted, answered) = run(&mut make());
    let mut often = make();
    let (mut seen, mut reported) = (Vec::new(), Vec::new());
    for now in (0..200_000).map(Nanos) {
        often.advance(now);
        while let Some(change) = often.acts(now) {
            seen.push((change.id.matching.field(Field::InPort).0, now.0));
        }
        reported.extend(often.answered(now).map(|whose| (whose, now.0)));
    }
    assert_eq!((acted, answered), (seen, reported));
}
