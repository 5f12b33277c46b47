//! The hash table against the standard library's map.

use std::collections::HashMap;

use super::*;
use crate::classifier::Verdict;
use crate::dice::Dice;
use crate::flow::Part;
use packet::time::Nanos;

fn entry(key: Key) -> Entry {
    Entry {
        key,
        frames: 0,
        bytes: 0,
        last_match: Nanos::ZERO,
        verdict: Verdict::Drop,
        part: Part::Exact,
    }
}

fn key(number: u64) -> Key {
    Key([number, number.rotate_left(17), 0, 7])
}

#[test]
fn a_bucket_and_an_entry_are_one_cache_line_each() {
    assert_eq!((size_of::<Bucket>(), align_of::<Bucket>()), (64, 64));
    assert_eq!((size_of::<Entry>(), align_of::<Entry>()), (64, 64));
}

#[test]
fn signatures_are_found_in_their_slots_and_nowhere_else() {
    let mut bucket = Bucket::EMPTY;
    for slot in 0..SLOTS {
        bucket.set(slot, 0x8000 + slot as u16, slot as u32);
    }
    assert_eq!(bucket.free_slot(), None);
    for slot in 0..SLOTS {
        assert_eq!(slot_of(bucket.slots_with(0x8000 + slot as u16)), Some(slot));
    }
    assert_eq!(bucket.slots_with(0x7fff), 0);
    bucket.set(5, 0x8003, 5);
    assert_eq!(bucket.slots_with(0x8003).count_ones(), 2);
    bucket.set(6, 0, NOWHERE);
    assert_eq!(bucket.free_slot(), Some(6));
}

/// Random insertions, removals and lookups of up to `keys` keys in a table for `entries_max`.
fn churn(entries_max: usize, keys: u64, seed: u64) {
    let mut table = ExactTable::new(entries_max, seed);
    let entries: Vec<Entry> = (0..keys).map(|number| entry(key(number * 7919 + seed))).collect();
    let mut oracle: HashMap<Key, u32> = HashMap::new();
    let mut dice = Dice::new(seed);
    for _ in 0..keys * 20 {
        let number = dice.roll(keys) as u32;
        let wanted = entries[number as usize].key;
        let present = oracle.contains_key(&wanted);
        // Mostly additions, until the table is as full as it may be.
        match dice.roll(5) {
            0..3 if !present && oracle.len() < entries_max => {
                table.insert(&entries, number);
                oracle.insert(wanted, number);
            }
            3 if present => {
                table.remove(&entries, number);
                oracle.remove(&wanted);
            }
            _ => {}
        }
        assert_eq!(table.find(&entries, &wanted), oracle.get(&wanted).copied());
        assert_eq!(table.len(), oracle.len());
    }
    let all: Vec<Key> = entries.iter().map(|entry| entry.key).collect();
    for keys in all.chunks(BATCH_MAX) {
        let mut found = [0; BATCH_MAX];
        table.find_batch(&entries, keys, &mut found);
        for (key, found) in keys.iter().zip(found) {
            assert_eq!(found, oracle.get(key).copied().unwrap_or(NOWHERE));
        }
    }
    for &number in oracle.values() {
        table.remove(&entries, number);
    }
    assert!(table.is_empty() && table.stash.is_empty());
    assert!(
        table
            .buckets
            .iter()
            .all(|bucket| bucket.overflow == 0 && bucket.entries == [NOWHERE; SLOTS])
    );
}

#[test]
fn it_agrees_with_a_map_while_full_and_while_not() {
    for seed in 1..6 {
        churn(1, 3, seed);
        churn(12, 20, seed);
        churn(100, 130, seed);
        churn(2000, 2300, seed);
    }
}

#[test]
fn more_entries_than_slots_go_to_the_stash_and_come_back() {
    // Two buckets of eight for more entries than sixteen: the promise of room holds anyway.
    let mut table = ExactTable::new(1, 5);
    let entries: Vec<Entry> = (0..40).map(|number| entry(key(number))).collect();
    for number in 0..40 {
        table.insert(&entries, number);
    }
    assert!(table.stash.len() >= 24);
    for number in 0..40 {
        assert_eq!(table.find(&entries, &key(u64::from(number))), Some(number));
    }
    assert_eq!(table.find(&entries, &key(99)), None);
    for number in 0..30 {
        table.remove(&entries, number);
    }
    assert!(table.stash.is_empty());
    assert!((30..40).all(|number| table.find(&entries, &key(u64::from(number))) == Some(number)));
}

#[test]
fn at_its_full_size_nearly_every_key_is_in_its_first_bucket() {
    let count = 131_072;
    let mut table = ExactTable::new(count, 99);
    let entries: Vec<Entry> = (0..count as u64).map(|number| entry(key(number))).collect();
    for number in 0..count as u32 {
        table.insert(&entries, number);
    }
    let elsewhere: u32 = table.buckets.iter().map(|bucket| bucket.overflow).sum();
    assert!(table.stash.is_empty());
    assert!((elsewhere as usize) < count / 10, "{elsewhere} of {count} are elsewhere");
}
