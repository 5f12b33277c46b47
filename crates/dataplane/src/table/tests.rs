//! Tests of commands, timeouts and dumps, and of the tables against a plain list.

use super::*;
use crate::classifier::exact::BATCH_MAX;
use crate::flow::{FlowError, FlowSpec, ModifyRules, rank_exact_first};
use crate::forwarder::Event;
use crate::key::Field;
use crate::rng::Rng;
use packet::field::{self, FieldSet};

const IPV4: (Field, u64) = (Field::EthType, 0x0800);

fn seconds(n: u64) -> Nanos {
    Nanos::from_secs(n)
}

fn output(port: u32) -> [Action; 1] {
    [Action::Output { port }]
}

fn exact(number: u64) -> Match {
    Match::exact(Key::ZERO.with(Field::EthSrc, number))
}

fn from_port(port: u64) -> Match {
    Match::of(&[(Field::InPort, port)])
}

fn table() -> Tables {
    Tables::new(&[TableSettings::of(4, 4)], 1)
}

fn outputs() -> Outputs {
    Outputs::new(&[1, 2, 3])
}

fn find(table: &mut Tables, key: Key) -> u32 {
    let mut found = [0; BATCH_MAX];
    table.look().lookup(0, &[key], &[], &mut found);
    found[0]
}

/// Looks up and counts one frame of 100 bytes with this key, and returns its verdict.
fn hit(table: &mut Tables, key: Key, now: Nanos) -> Option<Verdict> {
    let found = find(table, key);
    table.look().count(0, found, 1, 100, now)
}

fn add(table: &mut Tables, spec: &FlowSpec, now: Nanos) -> Result<(), FlowError> {
    let mut spec = spec.clone().exact_first();
    spec.flags.reset_counts = true;
    table.add(&spec, now, &mut outputs())
}

/// Modifies entries by the rules of OpenFlow 1.0.
fn modify(table: &mut Tables, spec: &FlowSpec, strict: bool, now: Nanos) -> Result<(), FlowError> {
    let spec = spec.clone().exact_first();
    let filter = FlowFilter {
        strict_rank: strict.then_some(spec.rank),
        ..FlowFilter::covered_by(spec.matching)
    };
    let rules = ModifyRules { add: true, cookie: true };
    table.modify(&spec, &filter, rules, now, &mut outputs())
}

fn delete(table: &mut Tables, filter: &FlowFilter, now: Nanos, out: &mut Outputs) -> usize {
    table.delete(filter, FlowRemovedReason::Deleted, now, out)
}

fn notified(spec: FlowSpec) -> FlowSpec {
    FlowSpec { flags: FlowFlags { notify_removed: true, ..FlowFlags::default() }, ..spec }
}

fn all(table: &Tables, now: Nanos) -> Vec<FlowRecord> {
    table.records(&FlowFilter::ALL, 0, now).collect()
}

fn removals(out: &mut Outputs) -> Vec<(FlowRecord, FlowRemovedReason)> {
    let removed = |event| match event {
        Event::FlowRemoved { flow, why } => (*flow, why),
        other => panic!("not a removal: {other:?}"),
    };
    out.events.drain(..).map(removed).collect()
}

#[test]
fn an_exact_match_wins_over_every_priority() {
    let mut table = table();
    add(&mut table, &FlowSpec::new(Match::ANY, 65_535, &output(1)), Nanos::ZERO).unwrap();
    add(&mut table, &FlowSpec::new(exact(7), 0, &output(2)), Nanos::ZERO).unwrap();
    assert_eq!(hit(&mut table, *exact(7).value(), Nanos::ZERO), Some(Verdict::Output(2)));
    assert_eq!(hit(&mut table, *exact(8).value(), Nanos::ZERO), Some(Verdict::Output(1)));
    let accounts = [table.part_account(0, Part::Exact), table.part_account(0, Part::Wildcard)];
    assert_eq!(accounts.map(|account| (account.lookups, account.matched)), [(2, 1), (1, 1)]);
}

#[test]
fn exact_matches_win_also_without_an_exact_table() {
    let mut table = Tables::new(&[TableSettings::of(0, 4)], 1);
    add(&mut table, &FlowSpec::new(Match::ANY, 65_535, &output(1)), Nanos::ZERO).unwrap();
    add(&mut table, &FlowSpec::new(exact(7), 0, &output(2)), Nanos::ZERO).unwrap();
    assert_eq!(hit(&mut table, *exact(7).value(), Nanos::ZERO), Some(Verdict::Output(2)));
    let gone = delete(&mut table, &FlowFilter::covered_by(exact(7)), Nanos::ZERO, &mut outputs());
    assert_eq!((gone, table.part_account(0, Part::Wildcard).entries), (1, 1));
}

#[test]
fn adding_the_same_match_and_priority_replaces_and_resets_the_entry() {
    let mut table = table();
    add(&mut table, &FlowSpec::new(from_port(1), 5, &output(2)), Nanos::ZERO).unwrap();
    hit(&mut table, Key::ZERO.with(Field::InPort, 1), seconds(1));
    add(&mut table, &FlowSpec::new(from_port(1), 5, &output(3)), seconds(2)).unwrap();
    add(&mut table, &FlowSpec::new(from_port(1), 6, &output(3)), seconds(2)).unwrap();
    let records = all(&table, seconds(3));
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record.frames == 0 && record.age == seconds(1)));
}

#[test]
fn a_full_table_rejects_new_entries_and_accepts_replacements() {
    let mut table = table();
    for number in 0..4 {
        add(&mut table, &FlowSpec::new(exact(number), 0, &output(1)), Nanos::ZERO).unwrap();
        add(&mut table, &FlowSpec::new(from_port(number), 0, &output(1)), Nanos::ZERO).unwrap();
    }
    for matching in [exact(9), from_port(9)] {
        let refused = add(&mut table, &FlowSpec::new(matching, 0, &output(1)), Nanos::ZERO);
        assert_eq!(refused, Err(FlowError::TableFull(0)));
    }
    add(&mut table, &FlowSpec::new(exact(3), 0, &output(2)), Nanos::ZERO).unwrap();
    add(&mut table, &FlowSpec::new(from_port(3), 0, &output(2)), Nanos::ZERO).unwrap();
    assert_eq!(all(&table, Nanos::ZERO).len(), 8);
}

#[test]
fn an_exact_match_covers_matches_with_additional_fields() {
    use packet::field::Field::{EthDst, EthSrc, EthType, InPort, IpProto, VlanVid};
    let mut table = table();
    let asked = [(InPort, 1), (EthDst, 2), (EthSrc, 3), (EthType, 0x86dd), (VlanVid, 0)];
    let mut asked: Vec<_> = asked.map(|(field, value)| (field, value, field.ones())).into();
    let less = Match::asking(&asked);
    asked.push((IpProto, 58, IpProto.ones()));
    let more = Match::asking(&asked);
    assert!(less.is_exact() && !more.is_exact());
    add(&mut table, &FlowSpec::new(more, 5, &output(1)), Nanos::ZERO).unwrap();
    let gone = delete(&mut table, &FlowFilter::covered_by(less), Nanos::ZERO, &mut outputs());
    assert_eq!(gone, 1);
}

#[test]
fn overlap_is_rejected_if_requested() {
    let mut table = table();
    let to = Match::of(&[(Field::EthDst, 9)]);
    add(&mut table, &FlowSpec::new(from_port(1), 5, &output(1)), Nanos::ZERO).unwrap();
    add(&mut table, &FlowSpec::new(exact(1), 5, &output(1)), Nanos::ZERO).unwrap();
    let asked = |matching, priority| FlowSpec {
        flags: FlowFlags { check_overlap: true, ..FlowFlags::default() },
        ..FlowSpec::new(matching, priority, &output(2))
    };
    let mut try_to = |spec: &FlowSpec| add(&mut table, spec, Nanos::ZERO);
    assert_eq!(try_to(&asked(to, 5)), Err(FlowError::Overlap));
    assert_eq!(try_to(&asked(from_port(1), 5)), Err(FlowError::Overlap));
    assert_eq!(try_to(&asked(exact(1), 5)), Err(FlowError::Overlap));
    assert_eq!(try_to(&asked(exact(2), 5)), Ok(()));
    assert_eq!(try_to(&asked(to, 6)), Ok(()));
    assert_eq!(try_to(&asked(from_port(2), 5)), Ok(()));
    // An exact match leaves fields outside of the key open.
    let more = Match::asking(&[(packet::field::Field::Metadata, 1, u128::from(u64::MAX))]);
    assert_eq!(try_to(&asked(more, 5)), Err(FlowError::Overlap));
    assert_eq!(try_to(&FlowSpec::new(to, 5, &output(2))), Ok(()));
}

#[test]
fn modify_changes_actions_and_keeps_counters() {
    let mut table = table();
    add(&mut table, &FlowSpec::new(from_port(1), 5, &output(1)), Nanos::ZERO).unwrap();
    add(&mut table, &FlowSpec::new(from_port(1), 6, &output(1)), Nanos::ZERO).unwrap();
    add(&mut table, &FlowSpec::new(exact(0), 6, &output(1)), Nanos::ZERO).unwrap();
    hit(&mut table, Key::ZERO.with(Field::InPort, 1), seconds(1));

    let strict = FlowSpec { cookie: 77, ..FlowSpec::new(from_port(1), 5, &output(2)) };
    modify(&mut table, &strict, true, seconds(2)).unwrap();
    let changed = |table: &Tables, port| {
        let filter = FlowFilter { destination: Some(output(port)[0]), ..FlowFilter::ALL };
        table.totals(&filter).entries
    };
    assert_eq!((changed(&table, 1), changed(&table, 2)), (2, 1));

    modify(&mut table, &FlowSpec::new(Match::ANY, 0, &output(3)), false, seconds(3)).unwrap();
    assert_eq!(changed(&table, 3), 3);
    let records = all(&table, seconds(4));
    assert_eq!(records.iter().map(|record| record.frames).sum::<u64>(), 1);
    assert!(records.iter().all(|record| record.age == seconds(4)));
    assert_eq!(table.instruction_lists(), 1);

    modify(&mut table, &FlowSpec::new(from_port(3), 1, &output(3)), true, seconds(5)).unwrap();
    assert_eq!(changed(&table, 3), 4, "a missing entry is added");
}

#[test]
fn delete_is_strict_or_not_and_filters_by_destination() {
    let ten = |bits: u32| {
        let mask = u64::from(u32::MAX << (32 - bits));
        let value = Key::ZERO.with(Field::EthType, 0x0800).with(Field::IpDst, 0x0a00_0000);
        Match::new(value, Key::ZERO.with(Field::EthType, 0xffff).with(Field::IpDst, mask))
    };
    let fill = || {
        let mut table = Tables::new(&[TableSettings::of(4, 10)], 1);
        for (bits, priority, port) in [(8, 1, 1), (16, 1, 2), (16, 2, 3)] {
            let spec = FlowSpec::new(ten(bits), priority, &output(port));
            add(&mut table, &spec, Nanos::ZERO).unwrap();
        }
        table
    };
    let count = |filter: &FlowFilter| delete(&mut fill(), filter, Nanos::ZERO, &mut outputs());
    assert_eq!(count(&FlowFilter::covered_by(ten(8))), 3);
    assert_eq!(count(&FlowFilter::covered_by(ten(16))), 2);
    assert_eq!(count(&FlowFilter::covered_by(Match::of(&[IPV4]))), 3);
    assert_eq!(count(&FlowFilter::strictly(ten(16), 2)), 1);
    assert_eq!(count(&FlowFilter::strictly(ten(16), 3)), 0);
    let to_two = Some(Action::Enqueue { port: 2, queue: 0 });
    let by_port = FlowFilter { destination: to_two, ..FlowFilter::ALL };
    assert_eq!(count(&by_port), 1);
    assert_eq!(count(&FlowFilter { part: Some(Part::Exact), ..FlowFilter::ALL }), 0);
}

#[test]
fn timeouts_remove_entries_and_report_the_last_counters() {
    let (mut table, mut out) = (table(), outputs());
    let idle = FlowSpec {
        idle_timeout: seconds(2),
        hard_timeout: seconds(10),
        cookie: 5,
        named: FieldSet::NONE.with(field::Field::EthSrc).into(),
        ..notified(FlowSpec::new(exact(1), 0, &output(1)))
    };
    let hard = FlowSpec { hard_timeout: seconds(3), ..FlowSpec::new(from_port(1), 0, &output(1)) };
    add(&mut table, &idle, seconds(1)).unwrap();
    add(&mut table, &hard, seconds(1)).unwrap();
    hit(&mut table, *exact(1).value(), seconds(2));
    assert!(table.expire(seconds(3), &mut out).is_some_and(|next| next > seconds(3)));
    assert_eq!(all(&table, seconds(3)).len(), 2, "a match at 2 s keeps it until 4 s");
    let next = table.expire(Nanos(3_999_999_999), &mut out);
    assert_eq!(next, Some(seconds(4)));
    assert_eq!(table.expire(seconds(4), &mut out), None);
    assert!(all(&table, seconds(4)).is_empty());
    let removed = removals(&mut out);
    let [(flow, FlowRemovedReason::IdleTimeout)] = &removed[..] else { panic!("{removed:?}") };
    assert_eq!((flow.frames, flow.bytes, flow.cookie, flow.named), (1, 100, 5, idle.named));
    assert_eq!((flow.age, flow.idle), (seconds(3), seconds(2)));

    add(&mut table, &idle, seconds(10)).unwrap();
    for second in 10..20 {
        hit(&mut table, *exact(1).value(), seconds(second));
        table.expire(seconds(second), &mut out);
    }
    table.expire(seconds(20), &mut out);
    assert!(matches!(removals(&mut out)[..], [(_, FlowRemovedReason::HardTimeout)]));
}

#[test]
fn a_reused_slot_does_not_inherit_a_timeout() {
    let (mut table, mut out) = (table(), outputs());
    let spec = FlowSpec { hard_timeout: seconds(1), ..FlowSpec::new(exact(1), 0, &output(1)) };
    add(&mut table, &spec, Nanos::ZERO).unwrap();
    delete(&mut table, &FlowFilter::ALL, Nanos::ZERO, &mut out);
    assert_eq!(table.expire(Nanos::ZERO, &mut out), None, "a deleted entry has no timeout");
    add(&mut table, &spec, Nanos::ZERO).unwrap();
    delete(&mut table, &FlowFilter::ALL, Nanos::ZERO, &mut out);
    add(&mut table, &FlowSpec::new(exact(2), 0, &output(1)), Nanos::ZERO).unwrap();
    assert_eq!(table.expire(seconds(5), &mut out), None);
    assert_eq!(all(&table, seconds(5)).len(), 1);
    assert!(out.events.is_empty(), "no notification was requested");
}

#[test]
fn all_removals_are_reported_if_more_than_the_event_limit_expire() {
    let count = 10_000;
    let mut table = Tables::new(&[TableSettings::of(count, 0)], 1);
    let mut out = outputs();
    let add_all = |table: &mut Tables, hard_timeout| {
        for number in 0..count as u64 {
            let spec = FlowSpec::new(exact(number), 0, &output(1));
            let spec = FlowSpec { hard_timeout, ..notified(spec) };
            add(table, &spec, Nanos::ZERO).unwrap();
        }
    };
    let drain = |table: &mut Tables, out: &mut Outputs| {
        let (mut reported, mut turns) = (removals(out).len(), 0);
        while let Some(next) = table.expire(seconds(1), out) {
            assert_eq!(next, seconds(1), "more entries expire now");
            reported += removals(out).len();
            turns += 1;
            assert!(turns < 100);
        }
        reported + removals(out).len()
    };
    add_all(&mut table, Nanos::ZERO);
    assert_eq!(delete(&mut table, &FlowFilter::ALL, Nanos::ZERO, &mut out), count);
    assert_eq!(drain(&mut table, &mut out), count);
    add_all(&mut table, seconds(1));
    assert_eq!(drain(&mut table, &mut out), count);
    assert_eq!((out.events_lost, table.part_account(0, Part::Exact).entries), (0, 0));
}

#[test]
fn undelivered_removals_are_limited_and_counted() {
    let (mut table, mut out) = (table(), outputs());
    let waiting = crate::forwarder::EVENTS_MAX + 8 * NEWS_OF_AN_ENTRY + 1;
    for number in 0..waiting as u64 + 5 {
        let spec = notified(FlowSpec::new(exact(number), 0, &output(1)));
        table.add(&spec, Nanos::ZERO, &mut out).unwrap();
        delete(&mut table, &FlowFilter::ALL, Nanos::ZERO, &mut out);
    }
    assert_eq!((out.events.len() + table.event_queue.len(), out.events_lost), (waiting, 5));
}

#[test]
fn a_dump_continues_where_it_stopped() {
    let mut table = Tables::new(&[TableSettings::of(100, 10)], 1);
    for number in 0..50 {
        add(&mut table, &FlowSpec::new(exact(number), 0, &output(1)), Nanos::ZERO).unwrap();
    }
    let (mut from, mut seen) = (0, 0);
    loop {
        let part: Vec<_> = table.records(&FlowFilter::ALL, from, seconds(1)).take(7).collect();
        let Some(last) = part.last() else { break };
        from = last.place + 1;
        seen += part.len();
    }
    assert_eq!(seen, 50);
    let one = FlowFilter::covered_by(exact(9));
    let found: Vec<_> = table.records(&one, 0, seconds(1)).collect();
    assert_eq!(found.len(), 1);
    assert_eq!(table.records(&one, found[0].place + 1, seconds(1)).count(), 0);
}

/// Reference model: a plain list of entries with the semantics of the specification.
#[derive(Default)]
struct Oracle(Vec<(Match, u32, u64)>);

impl Oracle {
    /// Adds an entry; one with the same match and rank keeps its position.
    fn add(&mut self, matching: Match, rank: u32, cookie: u64) {
        let same = |entry: &&mut (Match, u32, u64)| (entry.0, entry.1) == (matching, rank);
        match self.0.iter_mut().find(same) {
            Some(entry) => entry.2 = cookie,
            None => self.0.push((matching, rank, cookie)),
        }
    }

    /// Returns the cookie of the entry for a key: the highest rank first, then the oldest.
    fn find(&self, key: &Key) -> Option<u64> {
        let mut best: Option<(u32, u64)> = None;
        for (matching, rank, cookie) in &self.0 {
            if matching.matches(key, &Wide::ZERO) && best.is_none_or(|(other, _)| other < *rank) {
                best = Some((*rank, *cookie));
            }
        }
        best.map(|(_, cookie)| cookie)
    }
}

fn random_match(dice: &mut Rng) -> Match {
    let key = random_key(dice);
    if dice.roll(3) == 0 {
        return Match::exact(key);
    }
    let mut mask = Key::FULL;
    for field in Field::ALL {
        match dice.roll(3) {
            0 => mask.set(field, 0),
            1 if matches!(field, Field::IpSrc | Field::IpDst) => mask.set(field, !1),
            _ => {}
        }
    }
    Match::new(key, mask)
}

/// Draws a key of few values, so that matches overlap. Fields that such a frame does not have are
/// zero.
fn random_key(dice: &mut Rng) -> Key {
    let mut key = Key::ZERO
        .with(Field::InPort, 1 + dice.roll(2))
        .with(Field::EthDst, dice.roll(2))
        .with(Field::Vlan, dice.roll(2) * 0x1001);
    match dice.roll(3) {
        0 => key.set(Field::EthType, 0x86dd),
        1 => {
            key.set(Field::EthType, 0x0806);
            key.set(Field::IpDst, dice.roll(4));
        }
        _ => {
            key.set(Field::EthType, 0x0800);
            key.set(Field::IpDst, dice.roll(4));
            key.set(Field::IpProto, dice.pick(&[6, 47]));
            if key.get(Field::IpProto) == 6 {
                key.set(Field::L4Dst, dice.roll(2));
            }
        }
    }
    key
}

#[test]
fn lookups_agree_with_a_list_under_random_commands() {
    for seed in 0..40 {
        let mut dice = Rng::new(seed);
        let exact_max = dice.pick(&[0, 64]);
        let mut table = Tables::new(&[TableSettings::of(exact_max, 200)], seed);
        let mut oracle = Oracle::default();
        let mut out = outputs();
        for cookie in 0..400 {
            let (matching, priority) = (random_match(&mut dice), dice.roll(4) as u16);
            let rank = rank_exact_first(&matching, priority);
            if dice.roll(3) < 2 {
                let spec = FlowSpec { cookie, ..FlowSpec::new(matching, priority, &output(1)) };
                if add(&mut table, &spec, Nanos::ZERO).is_ok() {
                    oracle.add(matching, rank, cookie);
                }
            } else if dice.roll(2) == 0 {
                delete(&mut table, &FlowFilter::strictly(matching, rank), Nanos::ZERO, &mut out);
                oracle.0.retain(|(other, other_rank, _)| (other, *other_rank) != (&matching, rank));
            } else if dice.roll(4) == 0 {
                delete(&mut table, &FlowFilter::covered_by(matching), Nanos::ZERO, &mut out);
                oracle.0.retain(|(other, _, _)| !matching.covers(other));
            }
            let keys: Vec<Key> = (0..BATCH_MAX).map(|_| random_key(&mut dice)).collect();
            let mut found = [0; BATCH_MAX];
            table.look().lookup(0, &keys, &[], &mut found);
            for (key, found) in keys.iter().zip(found) {
                let got = table.flow(found).map(|_| table.cookie(found));
                assert_eq!(got, oracle.find(key), "seed {seed}, {key:?}");
            }
            let entries = [Part::Exact, Part::Wildcard].map(|id| table.part_account(0, id).entries);
            assert_eq!(entries.iter().sum::<usize>(), oracle.0.len(), "seed {seed}");
        }
        assert!(!oracle.0.is_empty());
    }
}

/// Creates a lookup handle that begins a batch.
impl Tables {
    pub(super) fn look(&mut self) -> Lookup {
        let mut lookup = self.reader();
        lookup.begin();
        lookup
    }
}

#[test]
fn an_entry_takes_less_than_192_bytes() {
    let bucket_share = 64usize.div_ceil(6);
    let link = 24;
    let bytes =
        size_of::<crate::fast::slab::EntryLine>() + size_of::<Option<Flow>>() + bucket_share + link;
    assert!(bytes < 192, "{bytes} bytes");
}
