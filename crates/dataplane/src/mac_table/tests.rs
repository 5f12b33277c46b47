//! The table against a hash map that does the same slowly, and at its limits.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn mac(number: u64) -> Mac {
    let [_, _, mac @ ..] = number.to_be_bytes();
    mac
}

fn key(number: u64) -> MacKey {
    MacKey::new(mac(number), 0)
}

const SECOND: Nanos = Nanos::from_secs(1);

#[test]
fn a_key_is_read_back() {
    let key = MacKey::new([2, 1, 0x80, 0xff, 0, 9], 4094);
    assert_eq!((key.mac(), key.vid()), ([2, 1, 0x80, 0xff, 0, 9], 4094));
}

#[test]
fn an_address_is_forgotten_after_it_was_silent_for_the_ageing_time() {
    let mut table = MacTable::new(100, Some(Nanos::from_secs(10)), 1);
    assert_eq!(table.learn(key(5), 3, SECOND), Learned::New);
    let nearly = Nanos::from_secs(11) - Nanos::from_millis(1);
    assert_eq!(table.lookup(key(5), nearly), Some(3));
    assert_eq!(table.lookup(key(5), Nanos::from_secs(11)), None);
    assert_eq!(table.learn(key(5), 3, nearly), Learned::Known);
    assert_eq!(table.lookup(key(5), Nanos::from_secs(20)), Some(3));
    assert_eq!(table.iter(Nanos::from_secs(30)).count(), 0);
    assert_eq!(table.len(), 1, "not yet swept");
    table.sweep(table.slots(), Nanos::from_secs(30));
    assert_eq!((table.len(), table.counters.aged), (0, 1));
}

#[test]
fn ageing_can_be_switched_off_and_changed() {
    let mut table = MacTable::new(100, None, 1);
    table.learn(key(5), 3, Nanos::ZERO);
    let late = Nanos::from_secs(1_000_000);
    assert_eq!(table.lookup(key(5), late), Some(3));
    table.set_ageing(Some(Nanos::from_secs(3600)));
    assert_eq!(table.lookup(key(5), late), None);
    assert_eq!(table.lookup(key(5), Nanos::from_secs(3599)), Some(3));
}

#[test]
fn what_is_set_is_neither_learned_over_nor_forgotten_nor_flushed() {
    let mut table = MacTable::new(100, Some(SECOND), 1);
    assert!(table.set_static(key(5), 3));
    assert_eq!(table.learn(key(5), 4, SECOND), Learned::Static);
    table.learn(key(6), 4, SECOND);
    let late = Nanos::from_secs(1000);
    table.sweep(table.slots(), late);
    assert_eq!(table.flush(None), 0);
    let entries: Vec<MacEntry> = table.iter(late).collect();
    assert_eq!(entries, [MacEntry { mac: mac(5), vid: 0, port: 3, age: None }]);
    assert!(table.remove(key(5)));
    assert!(!table.remove(key(5)));
}

#[test]
fn flushing_a_port_keeps_the_others() {
    let mut table = MacTable::new(1000, None, 1);
    for number in 0..600 {
        table.learn(key(number + 1), (number % 3) as PortNo, SECOND);
    }
    assert_eq!((table.flush(Some(1)), table.len()), (200, 400));
    assert!(table.iter(SECOND).all(|entry| entry.port != 1));
    assert_eq!((table.flush(None), table.len()), (400, 0));
}

#[test]
fn a_full_table_learns_nothing_new_and_counts_it() {
    let mut table = MacTable::new(131_072, None, 7);
    for number in 1..=131_072 {
        assert_eq!(table.learn(key(number), 1, SECOND), Learned::New, "{number}");
    }
    assert_eq!(table.learn(key(1 << 40), 1, SECOND), Learned::Full);
    assert!(!table.set_static(key(1 << 40), 1));
    assert_eq!(table.learn(key(77), 2, SECOND), Learned::Moved);
    assert_eq!((table.counters.full, table.counters.moved, table.len()), (1, 1, 131_072));
    assert!(table.remove(key(78)));
    assert_eq!(table.learn(key(1 << 40), 1, SECOND), Learned::New);
}

#[derive(Debug, Clone)]
enum Step {
    Learn(u64, PortNo),
    Set(u64, PortNo),
    Remove(u64),
    Flush(Option<PortNo>),
    Sweep,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let (address, port) = (1u64..60, 1u32..4);
    prop_oneof![
        12 => (address.clone(), port.clone()).prop_map(|(a, p)| Step::Learn(a, p)),
        1 => (address.clone(), port.clone()).prop_map(|(a, p)| Step::Set(a, p)),
        4 => address.prop_map(Step::Remove),
        1 => proptest::option::of(port).prop_map(Step::Flush),
        1 => Just(Step::Sweep),
        3 => (0u64..8).prop_map(Step::Wait),
    ]
}

/// What the table should know: port and when it was seen, `None` if it was set.
type Oracle = HashMap<u64, (PortNo, Option<Nanos>)>;

const AGEING: Nanos = Nanos::from_secs(10);

fn fresh(seen: Option<Nanos>, now: Nanos) -> bool {
    seen.is_none_or(|seen| now.since(seen) < AGEING)
}

fn play(step: &Step, table: &mut MacTable, oracle: &mut Oracle, now: &mut Nanos) {
    match *step {
        Step::Learn(address, port) => {
            table.learn(key(address), port, *now);
            let known = oracle.entry(address).or_insert((port, Some(*now)));
            if known.1.is_some() {
                *known = (port, Some(*now));
            }
        }
        Step::Set(address, port) => {
            table.set_static(key(address), port);
            oracle.insert(address, (port, None));
        }
        Step::Remove(address) => {
            table.remove(key(address));
            oracle.remove(&address);
        }
        Step::Flush(port) => {
            table.flush(port);
            oracle.retain(|_, (place, seen)| {
                seen.is_none() || port.is_some_and(|port| *place != port)
            });
        }
        Step::Sweep => table.sweep(table.slots() / 2, *now),
        // Whole units of the table's moments, so that both round alike.
        Step::Wait(seconds) => *now += Nanos(seconds * ((1_000_000_000 >> 16) << 16)),
    }
}

proptest! {
    #[test]
    fn the_table_knows_what_a_map_knows(
        steps in proptest::collection::vec(step(), 0..400),
        seed in any::<u64>(),
    ) {
        // So small that runs form and wrap round the end.
        let mut table = MacTable::new(64, Some(AGEING), seed);
        let (mut oracle, mut now) = (Oracle::new(), SECOND);
        for step in &steps {
            play(step, &mut table, &mut oracle, &mut now);
            for address in 1..60 {
                let known = oracle.get(&address).filter(|known| fresh(known.1, now));
                prop_assert_eq!(table.lookup(key(address), now), known.map(|known| known.0));
            }
            let known = oracle.values().filter(|known| fresh(known.1, now)).count();
            prop_assert_eq!(table.iter(now).count(), known);
            prop_assert!(table.len() <= 64);
        }
    }
}
