//! Exact matches: a hash table in which one cache line holds eight candidates.
//!
//! A bucket keeps, for up to eight entries, 16 bits of the hash (the signature) and the entry's
//! number. A key has two buckets; the second is looked at only if the first says that some of its
//! keys had to go elsewhere. So a lookup touches one bucket and one entry, nearly always: two
//! cache lines. Sources: partial-key cuckoo hashing (B. Fan et al., "Cuckoo filter", CoNEXT 2014;
//! D. Zhou et al., "CuckooSwitch", CoNEXT 2013) and the overflow counts of Meta's F14 tables. The
//! study (bianco2010, section II) says of its own table only that it hashes and holds 131,072.
//!
//! Invariant: an entry is in its first bucket, or in its second or the stash and counted as
//! overflow by its first. An empty slot has signature 0, and no key has.

use super::{Entry, NOWHERE};
use crate::key::Key;

/// Slots in a bucket.
const SLOTS: usize = 8;
/// Entries for each bucket when the table is as full as it may be (three quarters of the slots).
const FILL: usize = 6;
/// Entries moved to make room for one, before it goes to the stash.
const MOVES_MAX: usize = 128;
/// The lowest bit of each of four signatures in a word.
const LANES: u64 = 0x0001_0001_0001_0001;
/// The highest bit of each.
const HIGHS: u64 = LANES << 15;

/// Which entry has a key.
#[derive(Debug)]
pub struct ExactTable {
    buckets: Vec<Bucket>,
    /// Entries for which neither bucket had room: practically never any, but a full bucket is no
    /// reason to refuse an entry.
    stash: Vec<u32>,
    seed: u64,
    entries: usize,
}

#[derive(Debug, Clone)]
#[repr(align(64))]
struct Bucket {
    /// Eight signatures: lane `i / 2` of word `i % 2` is that of slot `i`.
    signatures: [u64; 2],
    entries: [u32; SLOTS],
    /// Entries whose first bucket this is and that are elsewhere.
    overflow: u32,
}

impl Bucket {
    const EMPTY: Bucket = Bucket { signatures: [0; 2], entries: [NOWHERE; SLOTS], overflow: 0 };

    /// One bit for each slot whose signature is `signature`, at `16 * (slot / 2) + slot % 2`.
    #[inline]
    fn slots_with(&self, signature: u16) -> u64 {
        let wanted = LANES * u64::from(signature);
        let equal = |word: u64| {
            let difference = word ^ wanted;
            // The highest bit of a lane stays clear only where all its bits are.
            !(((difference & !HIGHS) + !HIGHS) | difference) & HIGHS
        };
        (equal(self.signatures[0]) >> 15) | (equal(self.signatures[1]) >> 14)
    }

    fn set(&mut self, slot: usize, signature: u16, entry: u32) {
        let shift = 16 * (slot / 2);
        let word = &mut self.signatures[slot % 2];
        *word = (*word & !(0xffff << shift)) | (u64::from(signature) << shift);
        self.entries[slot] = entry;
    }

    fn free_slot(&self) -> Option<usize> {
        slot_of(self.slots_with(0))
    }
}

/// The first slot in what [`Bucket::slots_with`] returned.
#[inline]
fn slot_of(bits: u64) -> Option<usize> {
    let bit = bits.trailing_zeros() as usize;
    (bits != 0).then_some(bit / 16 * 2 + bit % 16)
}

/// A key's two buckets and its signature.
#[derive(Debug, Clone, Copy)]
struct Home {
    first: usize,
    second: usize,
    signature: u16,
}

impl ExactTable {
    /// An empty table in which `entries_max` entries have room. The seed makes it impossible to
    /// choose keys that collide without knowing it.
    pub fn new(entries_max: usize, seed: u64) -> ExactTable {
        let buckets = vec![Bucket::EMPTY; entries_max.div_ceil(FILL).max(2)];
        ExactTable { buckets, stash: Vec::new(), seed, entries: 0 }
    }

    /// How many entries it holds.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The numbers of all its entries.
    pub fn places(&self) -> impl Iterator<Item = u32> + '_ {
        let slots = self.buckets.iter().flat_map(|bucket| bucket.entries);
        slots.filter(|&place| place != NOWHERE).chain(self.stash.iter().copied())
    }

    /// The entry with this key.
    #[inline]
    pub fn find(&self, entries: &[Entry], key: &Key) -> Option<u32> {
        self.find_hashed(entries, key, key.hash(self.seed))
    }

    /// For each of `keys` its entry or [`NOWHERE`]. The stages are separate loops so that the cache
    /// misses of different keys overlap. At most [`BATCH_MAX`] keys.
    #[inline]
    pub fn find_batch(&self, entries: &[Entry], keys: &[Key], found: &mut [u32]) {
        let mut hashes = [0; BATCH_MAX];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = key.hash(self.seed);
        }
        for (found, hash) in found.iter_mut().zip(&hashes).take(keys.len()) {
            let bucket = &self.buckets[self.first(*hash)];
            let slot = slot_of(bucket.slots_with(signature(*hash)));
            *found = slot.map_or(NOWHERE, |slot| bucket.entries[slot]);
        }
        for ((found, key), hash) in found.iter_mut().zip(keys).zip(&hashes) {
            let hit = entries.get(*found as usize).is_some_and(|entry| entry.key == *key);
            if !hit {
                *found = self.find_hashed(entries, key, *hash).unwrap_or(NOWHERE);
            }
        }
    }

    fn find_hashed(&self, entries: &[Entry], key: &Key, hash: u64) -> Option<u32> {
        let first = &self.buckets[self.first(hash)];
        let found = find_in(first, entries, key, signature(hash));
        if found.is_some() || first.overflow == 0 {
            return found;
        }
        let second = &self.buckets[self.second(hash)];
        let same = |entry: &&u32| entries[**entry as usize].key == *key;
        find_in(second, entries, key, signature(hash))
            .or_else(|| self.stash.iter().find(same).copied())
    }

    /// Adds `entry`, whose key no other entry in the table has.
    pub fn insert(&mut self, entries: &[Entry], entry: u32) {
        self.entries += 1;
        let mut homeless = entry;
        let mut home = self.home(entries, homeless);
        if self.place(home.first, home, homeless) || self.place(home.second, home, homeless) {
            return;
        }
        let mut bucket = home.second;
        for turn in 0..MOVES_MAX {
            let victim = self.take(bucket, turn % SLOTS, entries);
            self.place(bucket, home, homeless);
            homeless = victim;
            home = self.home(entries, homeless);
            bucket = if bucket == home.first { home.second } else { home.first };
            if self.place(bucket, home, homeless) {
                return;
            }
        }
        self.buckets[home.first].overflow += 1;
        self.stash.push(homeless);
    }

    /// Removes `entry`, which is in the table.
    pub fn remove(&mut self, entries: &[Entry], entry: u32) {
        self.entries -= 1;
        let home = self.home(entries, entry);
        if let Some(at) = self.stash.iter().position(|&stashed| stashed == entry) {
            self.stash.swap_remove(at);
            self.buckets[home.first].overflow -= 1;
            return;
        }
        for bucket in [home.first, home.second] {
            let slot = self.buckets[bucket].entries.iter().position(|&other| other == entry);
            if let Some(slot) = slot {
                self.take(bucket, slot, entries);
                break;
            }
        }
        if let Some(stashed) = self.stash.pop() {
            let first = self.home(entries, stashed).first;
            self.buckets[first].overflow -= 1;
            self.entries -= 1;
            self.insert(entries, stashed);
        }
    }

    /// Puts `entry` into a free slot of the bucket, if there is one.
    fn place(&mut self, bucket: usize, home: Home, entry: u32) -> bool {
        let Some(slot) = self.buckets[bucket].free_slot() else { return false };
        self.buckets[bucket].set(slot, home.signature, entry);
        if bucket != home.first {
            self.buckets[home.first].overflow += 1;
        }
        true
    }

    /// Empties a slot and returns the entry that was in it.
    fn take(&mut self, bucket: usize, slot: usize, entries: &[Entry]) -> u32 {
        let entry = self.buckets[bucket].entries[slot];
        self.buckets[bucket].set(slot, 0, NOWHERE);
        let first = self.home(entries, entry).first;
        if bucket != first {
            self.buckets[first].overflow -= 1;
        }
        entry
    }

    fn home(&self, entries: &[Entry], entry: u32) -> Home {
        let hash = entries[entry as usize].key.hash(self.seed);
        Home { first: self.first(hash), second: self.second(hash), signature: signature(hash) }
    }

    #[inline]
    fn first(&self, hash: u64) -> usize {
        scale(hash, self.buckets.len())
    }

    /// Another bucket than the first: some steps further round the table.
    #[inline]
    fn second(&self, hash: u64) -> usize {
        let steps = 1 + scale(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15), self.buckets.len() - 1);
        let bucket = self.first(hash) + steps;
        if bucket < self.buckets.len() { bucket } else { bucket - self.buckets.len() }
    }
}

/// Most keys that [`ExactTable::find_batch`] takes at once.
pub const BATCH_MAX: usize = 32;

#[inline]
fn find_in(bucket: &Bucket, entries: &[Entry], key: &Key, signature: u16) -> Option<u32> {
    let mut slots = bucket.slots_with(signature);
    while let Some(slot) = slot_of(slots) {
        let entry = bucket.entries[slot];
        if entries[entry as usize].key == *key {
            return Some(entry);
        }
        slots &= slots - 1;
    }
    None
}

/// The low 16 bits of the hash; zero, which says that a slot is empty, becomes one.
#[inline]
fn signature(hash: u64) -> u16 {
    (hash as u16).max(1)
}

/// Maps the upper half of a hash evenly onto `0..count`.
#[inline]
fn scale(hash: u64, count: usize) -> usize {
    (((hash >> 32) * count as u64) >> 32) as usize
}

#[cfg(test)]
mod tests;
