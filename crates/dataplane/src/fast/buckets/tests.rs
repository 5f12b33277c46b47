//! Tests of the buckets against the standard library's map, and with concurrent readers.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::hash::mix;
use crate::rng::Rng;

/// Buckets whose entries are numbers, each with the hash of its number.
struct Set {
    buckets: Buckets,
    seed: u64,
}

impl Set {
    fn new(entries_max: usize, seed: u64) -> Set {
        Set { buckets: Buckets::new(entries_max), seed }
    }

    fn hash(&self, entry: u32) -> u64 {
        mix(u64::from(entry), self.seed)
    }

    fn insert(&self, entry: u32) {
        self.buckets.insert(entry, self.hash(entry), |other| self.hash(other));
    }

    fn remove(&self, entry: u32) {
        self.buckets.remove(entry, self.hash(entry), |other| self.hash(other));
    }

    fn find(&self, entry: u32) -> Option<u32> {
        self.buckets.find(self.hash(entry), |other| other == entry)
    }

    fn stashed(&self) -> usize {
        self.buckets.stashed.load(Relaxed)
    }
}

#[test]
fn signatures_are_found_only_in_their_slots() {
    assert_eq!((size_of::<Bucket>(), align_of::<Bucket>()), (64, 64));
    let bucket = Bucket::default();
    for slot in 0..SLOTS {
        assert_eq!(bucket.free_slot(), Some(slot));
        bucket.fill(slot, 0x8000 + slot as u16, slot as u32);
    }
    assert_eq!(bucket.free_slot(), None);
    for slot in 0..SLOTS {
        assert_eq!(slot_of(bucket.slots_with(0x8000 + slot as u16)), Some(slot));
        assert_eq!(bucket.signature(slot), 0x8000 + slot as u16);
    }
    assert_eq!(bucket.slots_with(0x7fff), 0);
    bucket.fill(5, 0x8003, 5);
    assert_eq!(bucket.slots_with(0x8003).count_ones(), 2);
    bucket.sign(6, 0);
    assert_eq!(bucket.free_slot(), Some(6));
}

/// Executes random insertions, removals and lookups of up to `count` entries with a capacity of
/// `entries_max`.
fn churn(entries_max: usize, count: u64, seed: u64) {
    let set = Set::new(entries_max, seed);
    let mut oracle: HashMap<u32, ()> = HashMap::new();
    let mut dice = Rng::new(seed);
    for _ in 0..count * 20 {
        let entry = dice.roll(count) as u32;
        let present = oracle.contains_key(&entry);
        // Mostly additions, until the table is at capacity.
        match dice.roll(5) {
            0..3 if !present && oracle.len() < entries_max => {
                set.insert(entry);
                oracle.insert(entry, ());
            }
            3 if present => {
                set.remove(entry);
                oracle.remove(&entry);
            }
            _ => {}
        }
        assert_eq!(set.find(entry).is_some(), oracle.contains_key(&entry));
        assert_eq!(set.buckets.len(), oracle.len());
    }
    for entry in 0..count as u32 {
        assert_eq!(set.find(entry).is_some(), oracle.contains_key(&entry), "seed {seed}");
    }
    let mut places: Vec<u32> = set.buckets.places().collect();
    let mut wanted: Vec<u32> = oracle.keys().copied().collect();
    places.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(places, wanted);
    wanted.into_iter().for_each(|entry| set.remove(entry));
    assert!(set.buckets.is_empty() && set.stashed() == 0);
    let empty = |bucket: &Bucket| {
        bucket.overflow.load(Relaxed) == 0 && (0..SLOTS).all(|slot| bucket.signature(slot) == 0)
    };
    assert!(set.buckets.rows.iter().all(empty));
}

#[test]
fn buckets_equal_a_map_when_full_and_when_not() {
    for seed in 1..6 {
        churn(1, 3, seed);
        churn(12, 20, seed);
        churn(100, 130, seed);
        churn(2000, 2300, seed);
    }
}

#[test]
fn entries_without_a_slot_use_the_stash_and_return() {
    // Two buckets of eight for more than sixteen entries: every entry still fits.
    let set = Set::new(1, 5);
    (0..40).for_each(|entry| set.insert(entry));
    assert!(set.stashed() >= 24);
    assert!((0..40).all(|entry| set.find(entry) == Some(entry)));
    assert_eq!(set.find(99), None);
    (0..30).for_each(|entry| set.remove(entry));
    assert_eq!(set.stashed(), 0);
    assert!((30..40).all(|entry| set.find(entry) == Some(entry)));
}

#[test]
fn at_capacity_nearly_all_entries_are_in_their_first_bucket() {
    let count = if cfg!(miri) { 200 } else { 131_072 };
    let set = Set::new(count, 99);
    (0..count as u32).for_each(|entry| set.insert(entry));
    let overflow = |bucket: &Bucket| bucket.overflow.load(Relaxed) as usize;
    let elsewhere: usize = set.buckets.rows.iter().map(overflow).sum();
    assert_eq!(set.stashed(), 0);
    assert!(elsewhere < count / 10, "{elsewhere} of {count} are in another bucket");
}

#[test]
fn readers_always_find_entries_that_are_being_moved() {
    // So full that every insertion moves others, which readers must still find.
    let (lasting, passing, turns) = if cfg!(miri) { (9, 6, 40) } else { (700, 250, 20_000) };
    let set = Set::new(lasting as usize, 3);
    (0..lasting).for_each(|entry| set.insert(entry));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = || {
            let mut looked = 0u64;
            while !done.load(Relaxed) || looked == 0 {
                for entry in 0..lasting {
                    assert_eq!(set.find(entry), Some(entry), "after {looked} lookups");
                    looked += 1;
                }
            }
        };
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        let mut dice = Rng::new(4);
        let mut inside = vec![false; passing as usize];
        for _ in 0..turns {
            let at = dice.roll(passing) as usize;
            let entry = lasting + at as u32;
            if inside[at] {
                set.remove(entry)
            } else {
                set.insert(entry)
            }
            inside[at] = !inside[at];
        }
        done.store(true, Relaxed);
        readers.into_iter().for_each(|reader| reader.join().expect("every lookup found its entry"));
    });
}
