//! Tests that every call does a bounded amount of work, regardless of the number of entries.

use std::cell::Cell;
use std::collections::BTreeSet;

use packet::time::Nanos;

use super::*;
use crate::classifier::store::MOVED;
use crate::flow::{FlowSpec, ModifyRules, Source};
use crate::forwarder::Event;
use crate::key::Field;
use crate::rng::Rng;

mod adds;

/// Maximum number of entries that one change may move between structures.
const MOVED_MAX: usize = 1500;

const IPV4: (Field, u64) = (Field::EthType, 0x0800);

fn moved(change: impl FnOnce()) -> usize {
    let before = MOVED.with(Cell::get);
    change();
    MOVED.with(Cell::get) - before
}

fn prefix(number: u64) -> (Match, u16) {
    let length = [32u16, 24, 20, 16][number as usize % 4];
    let mask = u64::from(u32::MAX) << (32 - length) & 0xffff_ffff;
    let address = number.wrapping_mul(0x9e37_79b9) & mask;
    let value = Key::ZERO.with(Field::EthType, 0x0800).with(Field::IpDst, address);
    let mask = Key::ZERO.with(Field::EthType, 0xffff).with(Field::IpDst, mask);
    (Match::new(value, mask), length)
}

fn exact(number: u64) -> (Match, u16) {
    (Match::exact(Key::ZERO.with(Field::EthSrc, number)), 1)
}

fn of_one_mask(number: u64) -> (Match, u16) {
    (Match::of(&[IPV4, (Field::IpSrc, number & 0xffff), (Field::IpDst, number >> 16)]), 1)
}

fn of_many_masks(number: u64) -> (Match, u16) {
    let bits = 0xffff << (number % 40);
    let value = Key::ZERO.with(Field::EthSrc, number.wrapping_mul(0x9e37_79b9) & bits);
    let value = value.with(Field::EthDst, number);
    let mask = Key::ZERO.with(Field::EthSrc, bits).with(Field::EthDst, u64::MAX);
    (Match::new(value, mask), (number % 50) as u16)
}

fn spec((matching, priority): (Match, u16)) -> FlowSpec {
    FlowSpec::new(matching, priority, &[Action::Output { port: 1 }])
}

/// Adds `count` entries and checks that no addition moves many others.
fn filled(draw: fn(u64) -> (Match, u16), count: u64) -> Tables {
    filled_beside(draw, count, 1)
}

/// Like `filled`, with space for `room` more entries.
fn filled_beside(draw: fn(u64) -> (Match, u16), count: u64, room: usize) -> Tables {
    let (entries, mut out) = (count as usize + room, Outputs::new(&[1]));
    let mut tables = Tables::new(&[TableSettings::of(entries, entries)], 5);
    for number in 0..count {
        let moved = moved(|| {
            tables.add(&spec(draw(number)), Nanos(1), &mut out).expect("there is room");
            tables.publish();
        });
        assert!(moved <= MOVED_MAX, "entry {number} moved {moved} others");
    }
    tables
}

#[test]
fn no_add_moves_many_entries() {
    assert_eq!(filled(exact, 200_000).account(0).entries, 200_000);
    assert_eq!(filled(of_one_mask, 200_000).account(0).entries, 200_000);
    let routes = filled(prefix, 70_000);
    let described = routes.describe(0).expect("there is a table");
    assert!(matches!(described, ClassifierKind::Hashed { routes: 20_000.., .. }), "{described:?}");
    let merged = filled(of_many_masks, 30_000);
    let described = merged.describe(0).expect("there is a table");
    let is_merged = |it| matches!(it, ClassifierKind::Hashed { tables: ..73, .. });
    assert!(is_merged(described), "{described:?}");
}

#[test]
fn a_bundle_begins_changes_and_ends_in_small_steps() {
    let mut out = Outputs::new(&[1]);
    let draws: [fn(u64) -> (Match, u16); 2] = [exact, of_one_mask];
    for (draw, is_kept) in draws.into_iter().flat_map(|draw| [(draw, true), (draw, false)]) {
        let count = 50_000;
        let mut tables = filled(draw, count);
        let mut lookup = tables.reader();
        let mut find = |number: u64| {
            lookup.begin();
            let key = *draw(number).0.value();
            let found = lookup.find(0, &key, &Wide::ZERO);
            lookup.rest();
            found != crate::classifier::NO_ENTRY
        };
        let (gone, new) = (7, count);
        tables.begin();
        let filter = FlowFilter::strictly(draw(gone).0, 1);
        let deleted = moved(|| {
            tables.delete(&filter, FlowRemovedReason::Deleted, Nanos(2), &mut out);
        });
        let added = moved(|| tables.add(&spec(draw(new)), Nanos(2), &mut out).expect("it fits"));
        assert!(deleted.max(added) <= MOVED_MAX, "{deleted} and {added} moved");
        assert_eq!(tables.account(0).entries as u64, count);
        let mut calls = 0;
        loop {
            let (before, mut budget) = (find(gone), 100);
            let mut progress = Progress::More;
            let moved = moved(|| {
                progress = match is_kept {
                    true => tables.keep_some(&mut out, &mut budget),
                    false => tables.take_back_some(&mut budget),
                };
            });
            assert!(moved <= MOVED_MAX, "{moved} moved in one call");
            assert_eq!(find(gone), !find(new), "frames see all of the bundle or nothing");
            assert!(before || !find(gone), "what was published stays");
            calls += 1;
            if progress.is_done() {
                break;
            }
        }
        assert_eq!((find(gone), find(new)), (!is_kept, is_kept));
        assert!(!is_kept || calls > 10, "{calls} calls");
        let places: Vec<_> = tables.records(&FlowFilter::ALL, 0, Nanos(3)).collect();
        assert_eq!(places.len() as u64, count);
    }
}

#[test]
fn frames_see_a_bundle_of_many_changes_whole_between_its_steps() {
    let (mut out, count) = (Outputs::new(&[1, 2]), 300);
    let mut tables = filled(of_one_mask, count);
    let mut lookup = tables.reader();
    for is_kept in [false, true] {
        tables.begin();
        let mut seen = |number: u64| {
            lookup.begin();
            let found = lookup.find(0, draw_key(number), &Wide::ZERO);
            let verdict = lookup.count(0, found, 1, 60, Nanos(3));
            lookup.rest();
            verdict
        };
        let to = FlowSpec::new(Match::ANY, 1, &[Action::Output { port: 2 }]);
        let all = tables.select(FlowFilter::ALL);
        let mut modification = Modification::new(to, all, ModifyRules::default());
        let (old, new) = (Some(Verdict::Output(1)), Some(Verdict::Output(2)));
        loop {
            let progress = tables.modify_some(&mut modification, Nanos(2), &mut out, &mut 40);
            assert!((0..count).all(|number| seen(number) == old));
            assert_eq!(tables.expire(Nanos::from_secs(9), &mut out), {
                Some(Nanos::from_secs(9).saturating_add(TICK))
            });
            if progress.expect("the table is there").is_done() {
                break;
            }
        }
        loop {
            let progress = match is_kept {
                true => tables.keep_some(&mut out, &mut 20),
                false => tables.take_back_some(&mut 20),
            };
            let first = seen(0);
            assert!((1..count).all(|number| seen(number) == first));
            if progress.is_done() {
                assert_eq!(first, if is_kept { new } else { old });
                break;
            }
        }
    }
    // A new change completes the previous commit first.
    tables.begin();
    tables.add(&spec(of_one_mask(count)), Nanos(4), &mut out).expect("there is room");
    assert_eq!(tables.keep_some(&mut out, &mut 1), Progress::More);
    tables.delete(&FlowFilter::ALL, FlowRemovedReason::Deleted, Nanos(4), &mut out);
    assert_eq!(tables.keep_some(&mut out, &mut 1), Progress::Done);
    assert_eq!(tables.account(0).entries, 0);
}

fn draw_key(number: u64) -> &'static Key {
    Box::leak(Box::new(*of_one_mask(number).0.value()))
}

/// Returns the steps to sum up the entries that pass a filter, and the number of these entries.
fn cost(tables: &mut Tables, filter: &FlowFilter) -> (usize, usize) {
    let (mut selection, mut totals) = (tables.select(filter.clone()), Default::default());
    let mut budget = 1 << 30;
    assert!(tables.totals_some(&mut selection, &mut totals, &mut budget).is_done());
    ((1 << 30) - budget, totals.entries)
}

#[test]
fn a_filter_that_comes_again_examines_only_what_it_may_let_through() {
    let mut tables = filled(of_one_mask, 20_000);
    let by_source = |source| FlowFilter::covered_by(Match::of(&[IPV4, (Field::IpSrc, source)]));
    let by_cookie = |cookie| FlowFilter { cookie: (cookie, u64::MAX), ..FlowFilter::ALL };
    for (none, some) in [(by_source(60_000), by_source(9)), (by_cookie(77), by_cookie(5))] {
        let changed = FlowSpec { cookie: 5, ..spec(of_one_mask(9)) };
        tables.add(&changed, Nanos(2), &mut Outputs::new(&[1])).expect("there is room");
        assert!(cost(&mut tables, &none).0 >= 20_000, "the first reads all entries");
        assert!(cost(&mut tables, &none).0 >= 20_000, "the second builds an index");
        assert_eq!(cost(&mut tables, &none), (0, 0));
        assert_eq!(cost(&mut tables, &some), (1, 1));
    }
    let to_nowhere = FlowFilter { destination: Some(Action::Group(3)), ..FlowFilter::ALL };
    assert_eq!(cost(&mut tables, &to_nowhere), (0, 0));
    // The budget ends a call even if entries are left to examine.
    let filter = FlowFilter { cookie: (8, 8), ..FlowFilter::ALL };
    let (mut selection, mut calls) = (tables.select(filter), 0);
    while !selection.is_done() {
        let mut budget = 100;
        assert_eq!(selection.next(&tables, &mut budget), None);
        calls += 1;
    }
    assert!(calls >= 200, "{calls} calls");
}

#[test]
fn selections_with_indexes_find_what_reading_every_entry_finds() {
    for seed in 0..4 {
        let (mut dice, mut out) = (Rng::new(seed), Outputs::new(&[1]));
        let mut tables = Tables::new(&[TableSettings::of(2000, 2000); 2], seed);
        let random = |dice: &mut Rng| {
            let source = (Field::IpSrc, dice.roll(40));
            let (destination, port) =
                ((Field::IpDst, dice.roll(30)), (Field::InPort, dice.roll(4)));
            match dice.roll(3) {
                0 => Match::of(&[IPV4, source]),
                1 => Match::of(&[IPV4, source, destination]),
                _ => Match::of(&[port, IPV4, source, destination]),
            }
        };
        for turn in 0..6000 {
            let matching = random(&mut dice);
            let cookie = dice.roll(9);
            let table = dice.roll(2) as u8;
            let change = FlowSpec { cookie, table, ..spec((matching, dice.roll(3) as u16)) };
            let filter = match dice.roll(4) {
                0 => FlowFilter { cookie: (cookie, u64::MAX), ..FlowFilter::ALL },
                _ => FlowFilter::covered_by(random(&mut dice)),
            };
            let filter = match dice.roll(2) {
                0 => FlowFilter { table: Some(table), ..filter },
                _ => filter,
            };
            match dice.roll(40) {
                0 => drop(tables.delete(&filter, FlowRemovedReason::Deleted, Nanos(2), &mut out)),
                1 => {
                    let rules = ModifyRules { add: false, cookie: true };
                    tables
                        .modify(&change, &filter, rules, Nanos(2), &mut out)
                        .expect("it is there");
                }
                2 if tables.undo.is_none() => tables.begin(),
                3 => tables.take_back(),
                4 => tables.keep(&mut out),
                _ => drop(tables.add(&change, Nanos(2), &mut out)),
            }
            let mut selection = tables.select(filter.clone());
            let mut budget = 50;
            tables.wait_for_index(&selection, &mut budget);
            let mut found = Vec::new();
            while let Some(place) = selection.next(&tables, &mut usize::MAX.clone()) {
                found.push(place as usize);
            }
            let wanted: Vec<usize> = tables.flows.since(0).collect();
            let wanted = wanted.into_iter().filter(|&place| tables.lets_through(&filter, place));
            let wanted: Vec<usize> = wanted.collect();
            assert_eq!(found, wanted, "seed {seed}, turn {turn}, {filter:?}");
        }
        assert!(tables.indexes.count() > 0, "there are indexes");
    }
}

#[test]
fn idle_timeouts_hold_beyond_497_days() {
    let start = Nanos::from_secs(43_000_000);
    let at = |seconds| start.saturating_add(Nanos::from_secs(seconds));
    let mut tables = Tables::new(&[TableSettings::of(4, 4)], 1);
    let mut out = Outputs::new(&[1]);
    let mut lookups = [tables.reader(), tables.reader()];
    for (place, number) in [(0, 1), (1, 2), (2, 3)] {
        let spec = FlowSpec { idle_timeout: Nanos::from_secs(10), ..spec(of_one_mask(number)) };
        let notify_removed = true;
        let flags = FlowFlags { notify_removed, ..FlowFlags::default() };
        tables.add(&FlowSpec { flags, ..spec }, start, &mut out).expect("there is room");
        assert_eq!(tables.flows.since(place).count(), 1);
    }
    tables.publish();
    // The first thread counts in the entry's line, the second one in its own counters.
    for (lookup, number) in lookups.iter_mut().zip([1, 2]) {
        lookup.begin();
        let found = lookup.find(0, draw_key(number), &Wide::ZERO);
        lookup.count(0, found, 1, 60, at(5));
        lookup.rest();
    }
    let mut left = |now| {
        tables.expire(now, &mut out);
        tables.records(&FlowFilter::ALL, 0, now).map(|it| it.idle.0 / 1_000_000_000).collect()
    };
    let seconds: [(u64, &[u64]); 4] = [(1, &[0, 0, 1]), (9, &[3, 3, 9]), (11, &[5, 5]), (16, &[])];
    for (now, wanted) in seconds {
        let idle: Vec<u64> = left(at(now));
        assert_eq!(idle.len(), wanted.len(), "after {now} s: {idle:?}");
    }
    let reasons = out.events.iter().filter(|event| {
        matches!(event, Event::FlowRemoved { why: FlowRemovedReason::IdleTimeout, .. })
    });
    assert_eq!(reasons.count(), 3);
}

#[test]
fn timeouts_and_users_of_a_group_go_a_bounded_number_at_a_time() {
    let mut tables = Tables::new(&[TableSettings::of(0, 4000)], 1);
    let mut out = Outputs::new(&[1]);
    for number in 0..2000 {
        let (matching, _) = of_one_mask(number);
        let hard_timeout = Nanos::from_secs(number % 2);
        let spec = FlowSpec::new(matching, 1, &[Action::Group(number as u32 % 2)]);
        tables.add(&FlowSpec { hard_timeout, ..spec }, Nanos(1), &mut out).expect("it fits");
    }
    let now = Nanos::from_secs(3);
    let mut before = 2000;
    while before > 1000 {
        tables.expire(now, &mut out);
        let left = tables.account(0).entries;
        assert!(before - left <= EXPIRE_STEPS_MAX, "{before} became {left}");
        before = left;
        if tables.wheel.next().is_none() {
            break;
        }
    }
    assert_eq!(before, 1000);
    let (mut from, mut calls) = (0, 0);
    loop {
        let uses = |instructions: &Instructions| instructions.groups().any(|group| group == 0);
        let why = (FlowRemovedReason::GroupDelete, Source::default(), now);
        let progress = tables.delete_users(uses, &mut from, why, &mut out, &mut 500);
        let left = tables.account(0).entries;
        assert!(before - left <= 500 / CHANGE_STEPS + 1, "{before} became {left}");
        (before, calls) = (left, calls + 1);
        if progress.is_done() {
            break;
        }
    }
    assert_eq!((before, tables.account(0).entries), (0, 0));
    assert!(calls > 30, "{calls} calls");
    let places: BTreeSet<usize> = tables.flows.since(0).collect();
    assert!(places.is_empty());
}
