//! Tests of the table against a hash map, and at its limits.

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
fn keys_round_trip() {
    let key = MacKey::new([2, 1, 0x80, 0xff, 0, 9], 4094);
    assert_eq!((key.mac(), key.vid()), ([2, 1, 0x80, 0xff, 0, 9], 4094));
}

#[test]
fn an_address_ages_out_after_the_ageing_time() {
    let mut table = MacTable::new(100, Some(Nanos::from_secs(10)), 1);
    assert_eq!(table.learn(key(5), 3, SECOND), Learned::New);
    let nearly = Nanos::from_secs(11) - Nanos::from_millis(1);
    assert_eq!(table.lookup(key(5), nearly), Some(3));
    assert_eq!(table.lookup(key(5), Nanos::from_secs(11)), None);
    assert_eq!(table.learn(key(5), 3, nearly), Learned::Known);
    assert_eq!(table.lookup(key(5), Nanos::from_secs(20)), Some(3));
    assert_eq!(table.iter(Nanos::from_secs(30)).count(), 0);
    assert_eq!(table.len(), 1, "not yet swept");
    assert_eq!(table.age(Nanos::from_secs(30), 10), None);
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
fn static_addresses_are_not_relearned_aged_or_flushed() {
    let mut table = MacTable::new(100, Some(SECOND), 1);
    assert!(table.set_static(key(5), 3));
    assert_eq!(table.learn(key(5), 4, SECOND), Learned::Static);
    table.learn(key(6), 4, SECOND);
    let late = Nanos::from_secs(1000);
    table.age(late, 10);
    assert_eq!(table.flush(late), 0);
    let entries: Vec<MacEntry> = table.iter(late).collect();
    assert_eq!(
        entries,
        [MacEntry { mac: mac(5), vid: 0, port: 3, age: None, place: entries[0].place }]
    );
    assert!(table.remove(key(5)));
    assert!(!table.remove(key(5)));
}

#[test]
fn a_flush_takes_effect_immediately_and_frees_space_in_steps() {
    let mut table = MacTable::new(1000, Some(Nanos::from_secs(10)), 1);
    (1..=600).for_each(|number| _ = table.learn(key(number), 1, SECOND));
    table.set_static(key(601), 2);
    table.age(SECOND, 10_000);
    assert_eq!((table.flush(SECOND), table.len(), table.buckets.len()), (600, 1, 601));
    assert!((1..=600).all(|number| table.lookup(key(number), SECOND).is_none()));
    assert_eq!((table.lookup(key(601), SECOND), table.iter(SECOND).count()), (Some(2), 1));
    // Addresses learned at the time of the flush stay, also in place of a flushed entry.
    assert_eq!(table.learn(key(600), 3, SECOND), Learned::New);
    assert_eq!(table.learn(key(700), 3, SECOND), Learned::New);
    for done in 1..=5 {
        assert_eq!(table.age(SECOND, 100), Some(SECOND), "there is more to do");
        assert_eq!(table.buckets.len(), 602 - 100 * done);
    }
    assert!(table.age(SECOND, 300).is_some_and(|next| next > SECOND));
    assert_eq!((table.buckets.len(), table.len(), table.dead), (3, 3, 0));
    assert_eq!((table.counters.learned, table.counters.aged), (602, 0));
    assert_eq!(table.lookup(key(600), SECOND), Some(3));
    // A flush begins before the sweep of the previous one is complete.
    assert_eq!((table.flush(SECOND), table.learn(key(5), 1, SECOND)), (2, Learned::New));
    assert_eq!((table.flush(SECOND), table.flush(SECOND)), (1, 0));
    assert_eq!((table.lookup(key(5), SECOND), table.remove(key(5)), table.len()), (None, false, 1));
    table.age(SECOND, 10_000);
    assert_eq!((table.buckets.len(), table.dead, table.statics), (1, 0, 1));
}

#[test]
fn a_full_table_learns_after_a_flush_before_the_sweep() {
    let mut table = MacTable::new(1000, None, 1);
    (1..=1000).for_each(|number| _ = table.learn(key(number), 1, SECOND));
    assert_eq!(table.flush(SECOND), 1000);
    (2001..=3000).for_each(|number| assert_eq!(table.learn(key(number), 2, SECOND), Learned::New));
    assert_eq!(table.learn(key(3001), 2, SECOND), Learned::Full);
    assert_eq!((table.len(), table.dead), (1000, 0));
}

#[test]
fn a_new_ageing_time_applies_immediately_and_reschedules_in_steps() {
    let mut table = MacTable::new(1000, Some(Nanos::from_secs(3600)), 1);
    (1..=1000).for_each(|number| _ = table.learn(key(number), 1, SECOND));
    table.age(SECOND, 10_000);
    let late = Nanos::from_secs(20);
    table.set_ageing(Some(Nanos::from_secs(10)));
    assert_eq!((table.lookup(key(1), late), table.iter(late).count()), (None, 0));
    for _ in 0..9 {
        assert_eq!(table.age(late, 100), Some(late));
    }
    assert_eq!(
        (table.len(), table.counters.aged),
        (1000, 0),
        "100 steps do not look at the others"
    );
    table.age(late, 100);
    while table.age(late, 100).is_some_and(|next| next <= late) {}
    assert_eq!((table.len(), table.counters.aged), (0, 1000));
}

#[test]
fn a_full_table_learns_nothing_and_counts_it() {
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

#[test]
fn forged_addresses_do_not_increase_memory() {
    let ageing = Some(Nanos::from_secs(10));
    let mut table = MacTable::new(1000, ageing, 3);
    let mut now = SECOND;
    for address in 1..200_000u64 {
        table.learn(key(address), 1, now);
        assert!(table.len() <= 1000 && table.given <= 1000 && table.free.len() <= 1000);
        now += Nanos::from_millis(1);
        table.age(now, 2);
    }
    let counters = table.counters;
    assert!(counters.full > 100_000 && counters.aged > 10_000, "{counters:?}");
    assert_eq!(counters.learned - counters.aged, table.len() as u64);
}

#[test]
fn ageing_finds_expired_addresses_in_steps_and_returns_the_next_time() {
    let mut table = MacTable::new(1000, Some(Nanos::from_secs(10)), 1);
    (1..=1000).for_each(|address| _ = table.learn(key(address), 1, SECOND));
    let early = Nanos::from_secs(10);
    let next = table.age(early, 10_000).expect("addresses expire later");
    assert!(next > early && table.len() == 1000, "{next:?}");
    // Half of the addresses are refreshed.
    (1..=500).for_each(|address| _ = table.learn(key(address), 1, early));
    let late = Nanos::from_secs(12);
    assert!(table.age(late, 100).expect("more are due") <= late);
    assert!(table.len() > 800);
    while table.age(late, 100).is_some_and(|next| next <= late) {}
    assert_eq!((table.len(), table.counters.aged), (500, 500));
}

#[derive(Debug, Clone)]
enum Step {
    Learn(u64, PortNo),
    Set(u64, PortNo),
    Remove(u64),
    Flush,
    Age(usize),
    Ageing(u64),
    Hint(u64),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let (address, port) = (1u64..60, 1u32..4);
    prop_oneof![
        12 => (address.clone(), port.clone()).prop_map(|(a, p)| Step::Learn(a, p)),
        1 => (address.clone(), port.clone()).prop_map(|(a, p)| Step::Set(a, p)),
        4 => address.prop_map(Step::Remove),
        1 => Just(Step::Flush),
        2 => prop_oneof![0usize..5, Just(1000)].prop_map(Step::Age),
        1 => (0u64..4).prop_map(Step::Ageing),
        4 => (1u64..60).prop_map(Step::Hint),
        3 => (0u64..8).prop_map(Step::Wait),
    ]
}

/// A table, and a model of its contents: port and time last seen, `None` for a static address.
struct World {
    table: MacTable,
    known: HashMap<u64, (PortNo, Option<Nanos>)>,
    ageing: Option<Nanos>,
    now: Nanos,
    /// Learned addresses have at least this time, because each flush needs a distinct time.
    flushed: Nanos,
    /// First steps of lookups, taken earlier.
    hints: Vec<Hint>,
}

impl World {
    fn is_fresh(&self, seen: Option<Nanos>) -> bool {
        let within = |seen| self.ageing.is_none_or(|ageing| self.now.since(seen) < ageing);
        seen.is_none_or(within)
    }

    fn count_fresh(&self) -> usize {
        self.known.values().filter(|known| self.is_fresh(known.1)).count()
    }

    /// Removes all expired addresses.
    fn forget(&mut self) {
        self.table.age(self.now, usize::MAX);
        assert_eq!(self.table.len(), self.count_fresh(), "no expired entry remains");
        let mut known = std::mem::take(&mut self.known);
        known.retain(|_, known| self.is_fresh(known.1));
        self.known = known;
    }

    fn play(&mut self, step: &Step) {
        match *step {
            Step::Learn(address, port) => {
                let hint = self.hints[address as usize];
                self.table.learn_at(key(address), hint, port, self.now);
                let seen = Some(self.now.max(self.flushed));
                let known = self.known.entry(address).or_insert((port, seen));
                if known.1.is_some() {
                    *known = (port, seen);
                }
            }
            Step::Set(address, port) => {
                self.table.set_static(key(address), port);
                self.known.insert(address, (port, None));
            }
            Step::Remove(address) => {
                self.table.remove(key(address));
                self.known.remove(&address);
            }
            Step::Flush => {
                let learned = self.known.values().filter(|known| known.1.is_some()).count();
                assert!(self.table.flush(self.now) <= learned);
                self.known.retain(|_, (_, seen)| seen.is_none());
                self.flushed = self.flushed.max(self.now) + Nanos(1 << MOMENT_SHIFT);
            }
            Step::Age(steps) => {
                self.table.age(self.now, steps);
            }
            Step::Ageing(tens) => {
                // Whether an expired address reappears with a longer ageing time depends on whether
                // its entry was removed.
                self.forget();
                self.ageing = (tens > 0).then(|| Nanos::from_secs(10 * tens));
                self.table.set_ageing(self.ageing);
                self.forget();
            }
            Step::Hint(address) => {
                let mut hint = self.table.hint(key(address));
                self.table.guess(&mut hint);
                self.hints[address as usize] = hint;
            }
            // Whole units of the table's times, so that both round equally.
            Step::Wait(seconds) => self.now += Nanos(seconds * ((1_000_000_000 >> 16) << 16)),
        }
    }
}

proptest! {
    #[test]
    fn random_operations_agree_with_a_map(
        steps in proptest::collection::vec(step(), 0..400),
        seed in any::<u64>(),
        hash_buckets in 0..4usize,
    ) {
        let ageing = Some(Nanos::from_secs(10));
        // So small that entries are moved, and hardly larger than the number of learned addresses.
        let mut table = MacTable::new(60, ageing, seed);
        if hash_buckets > 0 {
            table = table.with_hash_buckets(hash_buckets);
        }
        let hints = (0..60).map(|address| table.hint(key(address))).collect();
        let mut world = World { table, known: HashMap::new(), ageing, now: SECOND, flushed: Nanos::ZERO, hints };
        for step in &steps {
            world.play(step);
            let World { table, known, now, hints, .. } = &world;
            for address in 1..60 {
                let wanted = known.get(&address).filter(|known| world.is_fresh(known.1));
                let wanted = wanted.map(|known| known.0);
                prop_assert_eq!(table.lookup(key(address), *now), wanted);
                let late = table.lookup_at(key(address), hints[address as usize], *now);
                prop_assert_eq!(late, wanted);
            }
            prop_assert_eq!(table.iter(*now).count(), world.count_fresh());
            prop_assert!(table.len() <= 60 && table.given <= 60);
        }
    }
}
