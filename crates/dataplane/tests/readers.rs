//! Tests of lookup threads while another thread changes the tables.
//!
//! Entries that are present all the time are always found with their latest actions, and every
//! frame is counted once. Other entries are added and removed in the meantime. This makes buckets
//! fill up and move entries, creates and removes tuples, and recompiles bit sets.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use dataplane::action::Action;
use dataplane::classifier::NO_ENTRY;
use dataplane::classifier::exact::BATCH_MAX;
use dataplane::fast::verdict::Verdict;
use dataplane::flow::{FlowFilter, FlowRemovedReason, FlowSpec};
use dataplane::forwarder::Outputs;
use dataplane::key::wide::Wide;
use dataplane::key::{Field, Key};
use dataplane::matching::Match;
use dataplane::table::{Lookup, TableSettings, Tables};
use packet::time::Nanos;

/// Returns the key of frames for entry `number` of those that stay.
fn key(number: u64) -> Key {
    *Match::exact(Key::ZERO.with(Field::EthSrc, number).with(Field::EthType, 0x88b5)).value()
}

fn to(port: u32) -> [Action; 1] {
    [Action::Output { port }]
}

/// Looks up the entries that stay, batch after batch, until `done`. Returns the number of frames by
/// entry.
fn read(
    mut lookup: Lookup,
    stays: u64,
    key: &(dyn Fn(u64) -> Key + Sync),
    port_of: &(dyn Fn(u64) -> std::ops::Range<u16> + Sync),
    done: &AtomicBool,
) -> Vec<u64> {
    let mut frames = vec![0; stays as usize];
    let mut from = 0;
    while !done.load(Relaxed) || frames.contains(&0) {
        lookup.begin();
        let numbers: Vec<u64> = (from..from + BATCH_MAX as u64).map(|at| at % stays).collect();
        let keys: Vec<Key> = numbers.iter().map(|&number| key(number)).collect();
        let mut found = [NO_ENTRY; BATCH_MAX];
        lookup.lookup(0, &keys, &[], &mut found);
        for (number, found) in numbers.iter().zip(found) {
            assert_ne!(found, NO_ENTRY, "entry {number} was not found");
            match lookup.count(0, found, 1, 60, Nanos(1)) {
                Some(Verdict::Output(port)) => {
                    assert!(port_of(*number).contains(&port), "entry {number} sends to {port}");
                }
                other => panic!("entry {number} has the verdict {other:?}"),
            }
            frames[*number as usize] += 1;
        }
        from += BATCH_MAX as u64;
        if from % 7 == 0 {
            lookup.rest();
        }
    }
    frames
}

/// Adds the entries that stay with `stay`, and then changes the table `turns` times with `change`.
fn under_readers(
    settings: TableSettings,
    (stays, key): (u64, &(dyn Fn(u64) -> Key + Sync)),
    stay: impl Fn(u64) -> FlowSpec,
    turns: u64,
    mut change: impl FnMut(&mut Tables, &mut Outputs, u64),
    port_of: &(dyn Fn(u64) -> std::ops::Range<u16> + Sync),
) {
    let mut tables = Tables::new(&[settings], 7);
    let mut out = Outputs::new(&[1]);
    for number in 0..stays {
        tables.add(&stay(number), Nanos(1), &mut out).expect("there is room");
    }
    let done = AtomicBool::new(false);
    let readers = [tables.reader(), tables.reader()];
    let seen: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let done = &done;
        let readers =
            readers.map(|lookup| scope.spawn(move || read(lookup, stays, key, port_of, done)));
        for turn in 0..turns {
            change(&mut tables, &mut out, turn);
            if turn % 3 == 0 {
                tables.publish();
            }
            out.events.clear();
        }
        done.store(true, Relaxed);
        let frames = readers.map(|reader| reader.join().expect("every lookup succeeded"));
        frames.to_vec()
    });
    for number in 0..stays {
        let records = tables.records(&FlowFilter::ALL, 0, Nanos(9));
        let frames: u64 = seen.iter().map(|frames| frames[number as usize]).sum();
        let counted = records
            .filter(|record| record.cookie == 1000 + number)
            .map(|record| record.frames)
            .sum::<u64>();
        assert_eq!(counted, frames, "of entry {number}");
    }
    assert!(tables.is_settled(), "readers that left block nothing");
}

#[test]
fn exact_entries_are_found_while_others_move_them() {
    let stay = |number: u64| FlowSpec {
        cookie: 1000 + number,
        ..FlowSpec::new(Match::exact(key(number)), 5, &to(1 + number as u32))
    };
    let other = |turn: u64| Match::exact(key(10_000 + turn % 150));
    let change = |tables: &mut Tables, out: &mut Outputs, turn: u64| {
        if turn % 300 < 150 {
            let spec = FlowSpec::new(other(turn), 5, &to(99));
            tables.add(&spec, Nanos(1), out).expect("there is room");
        } else {
            let filter = FlowFilter::strictly(other(turn), 5);
            tables.delete(&filter, FlowRemovedReason::Deleted, Nanos(1), out);
        }
    };
    let port_of = |number: u64| 1 + number as u16..2 + number as u16;
    under_readers(TableSettings::of(400, 10), (250, &key), stay, 30_000, change, &port_of);
}

#[test]
fn wildcard_entries_are_found_while_structures_change() {
    let stay = |number: u64| {
        let matching = Match::of(&[(Field::EthSrc, number), (Field::EthType, 0x88b5)]);
        FlowSpec { cookie: 1000 + number, ..FlowSpec::new(matching, 500, &to(1 + number as u32)) }
    };
    // Other entries with many masks, of lower and higher rank, which never match: first few, then
    // many.
    let other = |turn: u64| {
        let bits = turn % 40;
        let mask = Key::ZERO.with(Field::EthDst, u64::MAX << bits).with(Field::EthSrc, u64::MAX);
        let value =
            Key::ZERO.with(Field::EthDst, u64::MAX).with(Field::EthSrc, 70_000 + turn % 290);
        (Match::new(value, mask), (turn * 37 % 1000) as u16)
    };
    let change = |tables: &mut Tables, out: &mut Outputs, turn: u64| {
        let (at, adds) = (turn % 290, turn % 580 < 290);
        let (matching, priority) = other(at);
        if adds {
            let spec = FlowSpec::new(matching, priority, &to(99));
            tables.add(&spec, Nanos(1), out).expect("there is room");
        } else {
            let filter = FlowFilter::strictly(matching, priority.into());
            tables.delete(&filter, FlowRemovedReason::Deleted, Nanos(1), out);
        }
    };
    let port_of = |number: u64| 1 + number as u16..2 + number as u16;
    under_readers(TableSettings::of(0, 1000), (100, &key), stay, 6_000, change, &port_of);
}

/// Returns the match of a destination prefix, and of a source prefix if one is given.
fn route(network: u64, length: u32, source_bits: u32) -> Match {
    let prefix = |length: u32| u64::from(u32::MAX) << (32 - length) & 0xffff_ffff;
    let mask = Key::ZERO.with(Field::EthType, 0xffff).with(Field::IpDst, prefix(length));
    let value = Key::ZERO.with(Field::EthType, 0x0800).with(Field::IpDst, network);
    Match::new(value, mask.with(Field::IpSrc, prefix(source_bits)))
}

/// Returns the key of a frame for network `number` of those that stay: 10.0.number.1.
fn routed(number: u64) -> Key {
    Key::ZERO.with(Field::EthType, 0x0800).with(Field::IpDst, 0x0a00_0001 | number << 8)
}

/// Adds one entry per turn, and removes them in the same order.
fn come_and_go(
    tables: &mut Tables,
    out: &mut Outputs,
    turn: u64,
    count: u64,
    other: &impl Fn(u64) -> (Match, u16),
) {
    let (matching, priority) = other(turn % count);
    if turn % (2 * count) < count {
        let spec = FlowSpec::new(matching, priority, &to(99));
        tables.add(&spec, Nanos(1), out).expect("there is room");
    } else {
        let filter = FlowFilter::strictly(matching, priority.into());
        tables.delete(&filter, FlowRemovedReason::Deleted, Nanos(1), out);
    }
}

#[test]
fn routes_are_found_while_a_routing_table_grows_and_shrinks() {
    let stay = |number: u64| {
        let matching = route(0x0a00_0000 | number << 8, 24, 0);
        FlowSpec { cookie: 1000 + number, ..FlowSpec::new(matching, 124, &to(1 + number as u32)) }
    };
    // Shorter prefixes that cover those that stay, and unrelated ones; enough of them for a routing
    // table.
    let other = |at: u64| match at % 8 {
        0 => (route(0x0a00_0000 | at << 5, 20, 0), 120),
        1 => (route(0x0b00_0000 | at << 4, 28, 0), 128),
        _ => (route(0x0b00_0000 | at << 8, 24, 0), 124),
    };
    let change = |tables: &mut Tables, out: &mut Outputs, turn: u64| {
        come_and_go(tables, out, turn, 2600, &other);
    };
    let port_of = |number: u64| 1 + number as u16..2 + number as u16;
    under_readers(TableSettings::of(0, 4000), (16, &routed), stay, 10_400, change, &port_of);
}

#[test]
fn entries_with_many_masks_are_found_while_tuples_are_merged_and_sorted() {
    let stay = |number: u64| {
        let matching = route(0x0a00_0000 | number << 8, 24 + number as u32 % 9, 0);
        let matching =
            if number % 9 == 8 { route(0x0a00_0001 | number << 8, 32, 0) } else { matching };
        FlowSpec { cookie: 1000 + number, ..FlowSpec::new(matching, 900, &to(1 + number as u32)) }
    };
    // Other entries with many masks; some match too, with a lower rank.
    let other = |at: u64| {
        let (length, source) = (1 + at as u32 * 7 % 32, at as u32 % 33);
        (route(0x0a00_0000 ^ at << 9, length, source), (at % 800) as u16)
    };
    let change = |tables: &mut Tables, out: &mut Outputs, turn: u64| {
        come_and_go(tables, out, turn, 1500, &other);
    };
    let port_of = |number: u64| 1 + number as u16..2 + number as u16;
    under_readers(TableSettings::of(0, 4000), (60, &routed), stay, 6_000, change, &port_of);
}

#[test]
fn a_reader_sees_the_old_or_the_new_actions_of_a_changed_entry() {
    let stay = |number: u64| FlowSpec {
        cookie: 1000 + number,
        ..FlowSpec::new(Match::exact(key(number)), 5, &to(10))
    };
    let change = |tables: &mut Tables, out: &mut Outputs, turn: u64| {
        let spec = FlowSpec::new(Match::exact(key(turn % 8)), 5, &to(10 + (turn % 50) as u32));
        let filter = FlowFilter::covered_by(spec.matching);
        let rules = dataplane::flow::ModifyRules::default();
        tables.modify(&spec, &filter, rules, Nanos(1), out).expect("it can be changed");
    };
    under_readers(TableSettings::of(20, 10), (8, &key), stay, 30_000, change, &|_| 10..60);
}

#[test]
fn a_change_is_settled_when_every_reader_began_a_later_batch() {
    let mut tables = Tables::new(&[TableSettings::of(10, 10)], 7);
    let mut out = Outputs::new(&[1]);
    let mut lookup = tables.reader();
    lookup.begin();
    let spec = FlowSpec::new(Match::ANY, 1, &to(1));
    tables.add(&spec, Nanos(1), &mut out).expect("there is room");
    assert!(!tables.is_settled());
    assert_eq!(lookup.find(0, &key(1), &Wide::ZERO), NO_ENTRY);
    lookup.begin();
    assert_ne!(lookup.find(0, &key(1), &Wide::ZERO), NO_ENTRY);
    assert!(tables.is_settled());
    tables.delete(&FlowFilter::ALL, FlowRemovedReason::Deleted, Nanos(1), &mut out);
    assert!(!tables.is_settled());
    lookup.rest();
    assert!(tables.is_settled(), "an idle reader does not block");
}
