//! Tests that additions that check for overlap or evict do a bounded amount of work per call.

use super::*;
use crate::flow::FlowError;

/// Adds an entry in calls with a budget of `steps`. Returns the outcome and the number of calls.
fn add_in_steps(
    tables: &mut Tables,
    spec: &FlowSpec,
    now: Nanos,
    steps: usize,
) -> (Result<Progress, FlowError>, usize) {
    let (mut addition, mut calls) = (Addition::new(spec.clone()), 0);
    loop {
        calls += 1;
        let (mut budget, mut out) = (steps, Outputs::new(&[1]));
        let outcome = tables.add_some(&mut addition, now, &mut out, &mut budget);
        if !matches!(outcome, Ok(Progress::More)) {
            return (outcome, calls);
        }
        assert!(budget <= CHANGE_STEPS, "it goes on as far as it may: {budget} left");
    }
}

fn checked((matching, priority): (Match, u16)) -> FlowSpec {
    let flags = FlowFlags { check_overlap: true, ..FlowFlags::default() };
    FlowSpec { flags, ..spec((matching, priority)) }
}

#[test]
fn a_check_for_overlap_reads_few_entries_or_a_bounded_number_at_a_time() {
    let (done, overlap) = (Ok(Progress::Done), Err(FlowError::Overlap));
    let draws: [fn(u64) -> (Match, u16); 3] = [exact, of_one_mask, prefix];
    for draw in draws {
        let mut tables = filled_beside(draw, 20_000, 200);
        // Hashes find the entries that match on the same fields.
        for number in 20_000..20_100 {
            let (outcome, calls) = add_in_steps(&mut tables, &checked(draw(number)), Nanos(2), 1);
            assert!([&done, &overlap].contains(&&outcome) && calls == 1, "{outcome:?}, {calls}");
        }
        assert_eq!(add_in_steps(&mut tables, &checked(draw(7)), Nanos(2), 1), (overlap, 1));
    }
    let mut tables = filled_beside(of_one_mask, 20_000, 200);
    // A match that covers others first reads all of them, and later those that an index returns.
    let source = |number| (Match::of(&[IPV4, (Field::IpSrc, number)]), 1);
    let mut calls = Vec::new();
    for number in 30_000..30_003 {
        let (outcome, used) = add_in_steps(&mut tables, &checked(source(number)), Nanos(2), 1000);
        assert_eq!(outcome, done);
        calls.push(used);
    }
    assert!(calls[0] >= 20 && calls[1] >= 20 && calls[2] == 1, "{calls:?}");
    let (outcome, _) = add_in_steps(&mut tables, &checked(source(9)), Nanos(2), 1000);
    assert_eq!(outcome, overlap);
    // A match that shares a field with the others reads a bounded number of them per call.
    let other = Match::of(&[IPV4, (Field::IpSrc, 40_000), (Field::InPort, 3)]);
    let (outcome, calls) = add_in_steps(&mut tables, &checked((other, 1)), Nanos(2), 1000);
    assert!(outcome == done && calls >= 20, "{outcome:?} after {calls} calls");
    let other = Match::of(&[IPV4, (Field::IpSrc, 40_000), (Field::InPort, 3)]);
    let (outcome, calls) = add_in_steps(&mut tables, &checked((other, 2)), Nanos(2), 1000);
    assert_eq!((outcome, calls), (done, 1), "no other has this priority");
}

#[test]
fn checks_for_overlap_tell_what_reading_every_entry_tells() {
    for seed in 0..6 {
        let (mut dice, mut out) = (Rng::new(seed), Outputs::new(&[1]));
        let classifier = [Classifier::Automatic, Classifier::TupleSpace, Classifier::Linear];
        let settings = TableSettings {
            classifier: classifier[seed as usize % 3],
            ..TableSettings::of(3000, 6000)
        };
        let mut tables = Tables::new(&[settings], seed);
        let mut overlaps = 0;
        for turn in 0..2000 {
            let address = |dice: &mut Rng| {
                let bits = [8, 12, 16, 24, 32][dice.roll(5) as usize];
                let mask = u64::from(u32::MAX) << (32 - bits) & 0xffff_ffff;
                (dice.roll(1 << 32) & mask & 0xf00f_ffff, mask)
            };
            let (mut value, mut mask) = (Key::ZERO, Key::ZERO);
            let kind = dice.roll(8);
            if kind < 7 {
                value.set(Field::EthType, 0x0800);
                mask.set(Field::EthType, 0xffff);
            }
            for (field, wanted) in [(Field::IpDst, kind < 6), (Field::IpSrc, kind < 2)] {
                if wanted {
                    let (bits, of) = address(&mut dice);
                    value.set(field, bits);
                    mask.set(field, of);
                }
            }
            let matching = match dice.roll(5) {
                0 => exact(dice.roll(3000)).0,
                _ => Match::new(value, mask),
            };
            let priority = match dice.roll(2) {
                0 => dice.roll(60) as u16,
                _ => mask.get(Field::IpDst).count_ones() as u16,
            };
            let spec = checked((matching, priority));
            let wanted = tables.flows.iter().any(|(place, flow)| {
                tables.slab().line(place).rank() == spec.rank
                    && tables.matching(place as usize, flow).overlaps(&spec.matching)
            });
            overlaps += usize::from(wanted);
            let (outcome, _) = add_in_steps(&mut tables, &spec, Nanos(2), 200);
            let told = outcome == Err(FlowError::Overlap);
            assert_eq!(told, wanted, "seed {seed}, turn {turn}: {outcome:?}");
            if told && turn % 3 == 0 {
                let flags = FlowFlags::default();
                tables.add(&FlowSpec { flags, ..spec }, Nanos(2), &mut out).expect("it fits");
            }
        }
        assert!((200..1800).contains(&overlaps), "{overlaps} overlap");
    }
}

#[test]
fn a_full_table_finds_what_to_evict_a_bounded_number_of_steps_at_a_time() {
    let config = TableConfig { eviction: true, ..TableConfig::default() };
    let count = 20_000;
    let mut tables = filled(of_one_mask, count);
    assert!(tables.set_config(0, config));
    let (outcome, calls) = add_in_steps(&mut tables, &spec(of_one_mask(count)), Nanos(2), 500);
    assert_eq!((outcome, calls), (Ok(Progress::Done), 1));
    // The configuration enables eviction with a full table: this addition builds the order.
    let (outcome, calls) = add_in_steps(&mut tables, &spec(of_one_mask(count + 1)), Nanos(2), 500);
    assert!(outcome == Ok(Progress::Done) && calls >= 40, "{outcome:?} after {calls} calls");
    for number in count + 2..count + 500 {
        let (outcome, calls) = add_in_steps(&mut tables, &spec(of_one_mask(number)), Nanos(2), 1);
        assert_eq!((outcome, calls), (Ok(Progress::Done), 1));
    }
    // Every entry has an idle timeout and was used since: the order is corrected a few entries at a
    // time.
    let idle_timeout = Nanos::from_secs(90);
    let mut tables = Tables::new(&[TableSettings::of(0, 2000)], 1);
    tables.set_config(0, config);
    let mut out = Outputs::new(&[1]);
    for number in 0..2000 {
        let spec = FlowSpec { idle_timeout, ..spec(of_one_mask(number)) };
        tables.add(&spec, Nanos(number), &mut out).expect("there is room");
    }
    let mut lookup = tables.reader();
    for number in 0..2000 {
        lookup.begin();
        let found = lookup.find(0, draw_key(number), &Wide::ZERO);
        lookup.count(0, found, 1, 60, Nanos::from_millis(1000 + 20 * (2000 - number)));
        lookup.rest();
    }
    let now = Nanos::from_secs(50);
    let (outcome, calls) = add_in_steps(&mut tables, &spec(of_one_mask(2000)), now, 320);
    assert!(outcome == Ok(Progress::Done) && calls >= 90, "{outcome:?} after {calls} calls");
    lookup.begin();
    let is_there =
        |number| lookup.find(0, draw_key(number), &Wide::ZERO) != crate::classifier::NO_ENTRY;
    let gone: Vec<u64> = (0..2000).filter(|&number| !is_there(number)).collect();
    assert_eq!(gone, [1999], "the one that no frame matched for the longest time");
    lookup.rest();
}

#[test]
fn entries_are_evicted_as_if_all_of_them_were_compared() {
    for seed in 0..4 {
        let (mut dice, mut out) = (Rng::new(seed), Outputs::new(&[1]));
        let mut tables = Tables::new(&[TableSettings::of(20, 40); 2], seed);
        let (mut lookup, mut evictions) = (tables.reader(), 0);
        for turn in 1..2000 {
            let now = Nanos::from_millis(turn * 7);
            let table = dice.roll(2) as u8;
            let (matching, priority) = match dice.roll(3) {
                0 => exact(dice.roll(60)),
                _ => of_one_mask(dice.roll(120)),
            };
            let second = |dice: &mut Rng| Nanos::from_secs(dice.roll(4) * 3);
            let spec = FlowSpec {
                table,
                importance: dice.roll(3) as u16,
                idle_timeout: second(&mut dice),
                hard_timeout: second(&mut dice),
                ..spec((matching, priority))
            };
            match dice.roll(60) {
                0 => {
                    let eviction = dice.roll(4) > 0;
                    tables.set_config(table, TableConfig { eviction, ..TableConfig::default() });
                }
                1 if tables.undo.is_none() => tables.begin(),
                2 => tables.take_back(),
                3 => tables.keep(&mut out),
                4 => drop(tables.expire(now, &mut out)),
                5 => {
                    let filter = FlowFilter::strictly(matching, spec.rank);
                    tables.delete(&filter, FlowRemovedReason::Deleted, now, &mut out);
                }
                _ => {}
            }
            let used = tables.flows.since(dice.roll(60) as usize).next();
            if let Some(place) = used {
                lookup.begin();
                lookup.count(0, place as u32, 1, 60, now);
                lookup.rest();
            }
            let known = &tables.tables[usize::from(table)];
            let part = known.part_for(tables.slab(), &spec.matching);
            let is_new = known.find_same(tables.slab(), &spec.matching, spec.rank).is_none();
            let candidates = tables.flows.iter().filter_map(|(place, flow)| {
                let fits = flow.table == table
                    && tables.slab().line(place).part() == part
                    && flow.importance <= spec.importance;
                let end = tables.due(place).map_or(Nanos::MAX, |due| due.0);
                fits.then_some((flow.importance, end, flow.created, place))
            });
            let evicts = is_new && known.is_full(part);
            let least = candidates.min().filter(|_| evicts && known.config.eviction);
            let gone = least.map(|(.., place)| tables.cookie(place));
            let spec = FlowSpec { cookie: turn, ..spec };
            let (outcome, _) = add_in_steps(&mut tables, &spec, now, 20);
            let refused = evicts && gone.is_none();
            assert_eq!(outcome.is_err(), refused, "seed {seed}, turn {turn}: {outcome:?}");
            if let Some(cookie) = gone {
                evictions += 1;
                let mut left = tables.flows.since(0);
                assert!(left.all(|place| tables.cookie(place as u32) != cookie), "turn {turn}");
            }
        }
        assert!(evictions > 100, "{evictions} evictions");
    }
}
