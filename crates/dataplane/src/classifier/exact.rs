//! Exact matches: whole keys in buckets of one cache line, with batch lookup.
//!
//! Uses [`crate::fast::buckets`]; an entry's key is in its line.

use std::sync::Arc;

use super::NO_ENTRY;
use super::store::Store;
use crate::fast::buckets::Buckets;
use crate::fast::slab::Slab;
use crate::key::Key;

/// Maximum number of keys in one lookup.
pub const BATCH_MAX: usize = crate::forwarder::SIGHTS_MAX;

/// Hash table of exact matches, for the writer.
#[derive(Debug)]
pub struct ExactTable {
    store: Store,
    seed: u64,
}

/// Hash table of exact matches, for readers.
#[derive(Debug, Clone)]
pub struct ExactView {
    buckets: Arc<Buckets>,
    seed: u64,
}

impl ExactTable {
    /// Creates an empty table for `entries_max` entries. The secret seed protects against chosen
    /// keys that collide.
    pub fn new(entries_max: usize, seed: u64) -> ExactTable {
        ExactTable { store: Store::new(entries_max, 1), seed }
    }

    /// Returns the view for readers.
    pub fn view(&self) -> ExactView {
        ExactView { buckets: Arc::clone(self.store.shown()), seed: self.seed }
    }

    /// Sets whether changes are staged, so that readers keep their view.
    pub fn set_stays(&mut self, stays: bool) {
        self.store.set_stays(stays);
    }

    /// Prepares staged changes for publication (see [`Store::complete`]).
    pub fn complete(&mut self, slab: &Slab, budget: &mut usize) -> Option<bool> {
        let seed = self.seed;
        self.store.complete(&|entry| slab.line(entry).key().hash(seed), budget)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// Returns the numbers of all entries.
    pub fn places(&self) -> impl Iterator<Item = u32> + '_ {
        self.store.places()
    }

    /// Finds the entry with this key.
    pub fn find(&self, slab: &Slab, key: &Key) -> Option<u32> {
        self.store.find(key.hash(self.seed), |entry| slab.line(entry).has_key(key))
    }

    /// Adds `entry`, whose line is written and whose key is not in the table. Returns true if
    /// readers need a new view.
    pub fn insert(&mut self, slab: &Slab, entry: u32) -> bool {
        let seed = self.seed;
        let hash_of = |other: u32| slab.line(other).key().hash(seed);
        self.store.insert(entry, hash_of(entry), &hash_of)
    }

    /// Removes `entry`, which is in the table. Returns true if readers need a new view.
    pub fn remove(&mut self, slab: &Slab, entry: u32) -> bool {
        let seed = self.seed;
        let hash_of = |other: u32| slab.line(other).key().hash(seed);
        self.store.remove(entry, hash_of(entry), &hash_of)
    }
}

impl ExactView {
    /// Whether the table is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Finds the entry with this key.
    #[inline]
    pub fn find(&self, slab: &Slab, key: &Key) -> Option<u32> {
        self.buckets.find(key.hash(self.seed), |entry| slab.line(entry).has_key(key))
    }

    /// First step of a lookup: hashes the keys and prefetches their buckets. The steps are separate
    /// so that the cache misses of different keys overlap.
    #[inline]
    pub fn foresee(&self, keys: &[Key], hashes: &mut [u64]) {
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = key.hash(self.seed);
            self.buckets.prefetch(*hash);
        }
    }

    /// Second step: guesses each key's entry from its hash and prefetches the entry's line.
    #[inline]
    pub fn guess(&self, slab: &Slab, hashes: &[u64], found: &mut [u32]) {
        for (found, hash) in found.iter_mut().zip(hashes) {
            *found = self.buckets.guess(*hash).unwrap_or(NO_ENTRY);
            slab.prefetch(*found);
        }
    }

    /// Last step: finds the entry of each key, or [`NO_ENTRY`]. The guesses may be out of date.
    #[inline]
    pub fn confirm(&self, slab: &Slab, keys: &[Key], hashes: &[u64], found: &mut [u32]) {
        for ((found, key), hash) in found.iter_mut().zip(keys).zip(hashes) {
            let hit = slab.get(*found).is_some_and(|line| line.has_key(key));
            if !hit {
                let found_late = self.buckets.find(*hash, |entry| slab.line(entry).has_key(key));
                *found = found_late.unwrap_or(NO_ENTRY);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::wildcard::tests::Installed;
    use crate::matching::Match;

    fn key(number: u64) -> Key {
        *Match::exact(Key([number, number.rotate_left(17), 0, 7])).value()
    }

    #[test]
    fn batch_lookups_equal_single_lookups() {
        let mut table = ExactTable::new(100, 3);
        let mut all = Installed::default();
        for number in 0..100 {
            let entry = all.add(&Match::exact(key(number)), 1);
            table.insert(&all.slab, entry);
        }
        for number in 0..100 {
            if number % 3 == 0 {
                table.remove(&all.slab, number);
            }
        }
        let keys: Vec<Key> = (0..150).map(key).collect();
        let view = table.view();
        for (round, keys) in keys.chunks(BATCH_MAX).enumerate() {
            let mut found = [0; BATCH_MAX];
            let mut hashes = [0; BATCH_MAX];
            view.foresee(keys, &mut hashes);
            view.guess(&all.slab, &hashes[..keys.len()], &mut found);
            if round == 1 {
                // Makes the guesses wrong.
                found.rotate_left(1);
            }
            view.confirm(&all.slab, keys, &hashes, &mut found);
            for (at, (key, found)) in keys.iter().zip(found).enumerate() {
                let number = (round * BATCH_MAX + at) as u32;
                let there = number < 100 && !number.is_multiple_of(3);
                assert_eq!(found, if there { number } else { NO_ENTRY });
                assert_eq!(table.find(&all.slab, key), there.then_some(number));
                assert_eq!(view.find(&all.slab, key), there.then_some(number));
            }
        }
        assert_eq!(table.len(), 66);
        assert_eq!(table.places().count(), 66);
    }
}
