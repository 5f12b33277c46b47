//! Hash buckets that are replaced in steps of a few rows, for the writer.
//!
//! If the buckets are full, or if readers must keep their view, new buckets of larger or equal size
//! are filled in parallel. Each change copies [`ROWS_STEP`] rows, so that no change takes long,
//! regardless of the number of entries. Readers use the new buckets when these are complete and
//! published; a lookup never needs more than one set of buckets.
//!
//! Invariant: during copying, no entry moves to another row. `skip` has the entries of the old
//! buckets that must not be copied: the new buckets have them already, or must not have them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::fast::buckets::Buckets;

/// Number of rows that each change copies: at most 32 entries.
pub const ROWS_STEP: usize = 4;

/// Initial capacity of new buckets.
pub const ROOM_AT_FIRST: usize = 24;

/// Buckets and, temporarily, their replacement.
#[derive(Debug)]
pub struct Store {
    /// The readers' buckets.
    shown: Arc<Buckets>,
    next: Option<Box<Replacement>>,
    entries: usize,
    /// Number of times that each entry counts against the capacity.
    share: usize,
    /// Whether the readers' buckets must not change.
    stays: bool,
    /// Whether only `next` has the latest changes.
    apart: bool,
}

/// The replacement of the buckets.
#[derive(Debug)]
struct Replacement {
    store: Store,
    /// Rows below this one are copied.
    row: usize,
    skip: BTreeSet<u32>,
}

#[cfg(test)]
thread_local! {
    /// Number of entries that this thread moved between structures.
    pub static MOVED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts moved entries, for tests.
#[inline]
pub fn count_moved(_entries: usize) {
    #[cfg(test)]
    MOVED.with(|moved| moved.set(moved.get() + _entries));
}

impl Store {
    /// Creates buckets with an initial capacity; each entry counts `share` times.
    pub fn new(entries_max: usize, share: usize) -> Store {
        let shown = Arc::new(Buckets::new(entries_max));
        Store { shown, next: None, entries: 0, share, stays: false, apart: false }
    }

    /// Returns the buckets for readers.
    pub fn shown(&self) -> &Arc<Buckets> {
        &self.shown
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Sets whether changes are staged, so that readers keep their buckets. Before `false`, every
    /// change since must be [completed](Store::complete) or undone.
    pub fn set_stays(&mut self, stays: bool) {
        self.stays = stays;
        self.apart &= stays;
    }

    /// Finds the entry with this hash for which `is_it` is true.
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.find_with(hash, &mut is_it)
    }

    fn find_with(&self, hash: u64, is_it: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        match self.next.as_ref().filter(|_| self.apart) {
            None => self.shown.find(hash, is_it),
            Some(next) => next.store.find_with(hash, is_it).or_else(|| {
                self.shown.find(hash, |entry| !next.skip.contains(&entry) && is_it(entry))
            }),
        }
    }

    /// Visits every entry that may have this hash, some perhaps more than once.
    pub fn each(&self, hash: u64, see: &mut dyn FnMut(u32)) {
        match self.next.as_ref().filter(|_| self.apart) {
            None => self.shown.each(hash, see),
            Some(next) => {
                next.store.each(hash, see);
                let mut kept = |entry| {
                    if !next.skip.contains(&entry) {
                        see(entry)
                    }
                };
                self.shown.each(hash, &mut kept);
            }
        }
    }

    /// Returns the numbers of all entries.
    pub fn places(&self) -> impl Iterator<Item = u32> + '_ {
        let apart = self.next.as_ref().filter(|_| self.apart);
        let shown = apart.is_none().then(|| self.shown.places()).into_iter().flatten();
        let next = apart.into_iter().flat_map(|next| {
            let rows = next.row..self.shown.count_rows();
            let left = rows.flat_map(|row| self.shown.places_in(row));
            let left = left.filter(|entry| !next.skip.contains(entry));
            let copied: Box<dyn Iterator<Item = u32> + '_> = Box::new(next.store.places());
            copied.chain(left)
        });
        shown.chain(next)
    }

    /// Adds an entry. Returns true if readers need the new buckets.
    pub fn insert<F: Fn(u32) -> u64>(&mut self, entry: u32, hash: u64, hash_of: &F) -> bool {
        let is_full = self.entries * self.share >= self.shown.capacity();
        self.entries += 1;
        if self.next.is_none() && (is_full || self.stays) {
            self.begin_next(hash_of);
        }
        let Some(next) = &mut self.next else {
            self.shown.insert(entry, hash, hash_of);
            return false;
        };
        next.skip.insert(entry);
        next.store.insert(entry, hash, hash_of);
        match self.stays {
            true => self.apart = true,
            false => self.shown.insert_still(entry, hash),
        }
        self.copy_rows(ROWS_STEP, hash_of)
    }

    /// Removes an entry. Returns true if readers need the new buckets.
    pub fn remove<F: Fn(u32) -> u64>(&mut self, entry: u32, hash: u64, hash_of: &F) -> bool {
        self.entries -= 1;
        if self.next.is_none() && self.stays {
            self.begin_next(hash_of);
        }
        let Some(next) = &mut self.next else {
            self.shown.remove(entry, hash, hash_of);
            return false;
        };
        if next.store.find(hash, |other| other == entry).is_some() {
            next.store.remove(entry, hash, hash_of);
        }
        if self.stays {
            next.skip.insert(entry);
            self.apart = true;
        } else {
            next.skip.remove(&entry);
            self.shown.remove_still(entry, hash);
        }
        self.copy_rows(ROWS_STEP, hash_of)
    }

    fn begin_next<F: Fn(u32) -> u64>(&mut self, hash_of: &F) {
        // The new buckets must not be full before the old ones are copied.
        let is_nearly_full = 8 * self.entries * self.share >= 7 * self.shown.capacity();
        let times = if is_nearly_full { 2 } else { 1 };
        let mut store = Store::new(self.shown.capacity() * times, self.share);
        for (hash, entry) in self.shown.stashed() {
            store.insert(entry, hash, hash_of);
        }
        self.next = Some(Box::new(Replacement { store, row: 0, skip: BTreeSet::new() }));
    }

    /// Copies rows and switches to the new buckets when all are copied, unless changes are staged.
    /// Returns true if it switched.
    fn copy_rows<F: Fn(u32) -> u64>(&mut self, rows: usize, hash_of: &F) -> bool {
        let Some(next) = &mut self.next else { return false };
        for _ in 0..rows.min(self.shown.count_rows() - next.row) {
            for entry in self.shown.places_in(next.row) {
                if !next.skip.contains(&entry) {
                    next.store.insert(entry, hash_of(entry), hash_of);
                    count_moved(1);
                }
            }
            next.row += 1;
        }
        let is_complete = next.row == self.shown.count_rows() && !self.stays;
        if is_complete {
            self.turn_over();
        }
        is_complete
    }

    fn turn_over(&mut self) {
        if let Some(next) = self.next.take() {
            (self.shown, self.next) = (next.store.shown, next.store.next);
            self.apart = false;
        }
    }

    /// Prepares staged changes for publication; each row costs one step. Returns `None` if the
    /// budget is exhausted first, else whether readers need the new buckets.
    pub fn complete<F: Fn(u32) -> u64>(&mut self, hash_of: &F, budget: &mut usize) -> Option<bool> {
        if !self.apart {
            return Some(false);
        }
        while let Some(next) = &self.next
            && next.row < self.shown.count_rows()
        {
            if *budget == 0 {
                return None;
            }
            *budget -= 1;
            self.copy_rows(1, hash_of);
        }
        self.turn_over();
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::hash::mix;
    use crate::rng::Rng;

    fn hash(entry: u32) -> u64 {
        mix(entry.into(), 7)
    }

    /// Checks the contents of the store with every access method.
    fn check(store: &Store, wanted: &BTreeSet<u32>) {
        let mut places: Vec<u32> = store.places().collect();
        places.sort_unstable();
        assert!(places.iter().eq(wanted), "{} places, {} wanted", places.len(), wanted.len());
        assert_eq!(store.len(), wanted.len());
        for entry in 0..3000 {
            let found = store.find(hash(entry), |other| other == entry);
            assert_eq!(found.is_some(), wanted.contains(&entry), "entry {entry}");
            let mut seen = false;
            store.each(hash(entry), &mut |other| seen |= other == entry);
            assert_eq!(seen, wanted.contains(&entry), "entry {entry}");
        }
    }

    #[test]
    fn a_growing_store_equals_a_set_and_bundles_commit_or_roll_back() {
        for seed in 0..6 {
            let (mut dice, mut set) = (Rng::new(seed), BTreeSet::new());
            let mut store = Store::new(ROOM_AT_FIRST, 1 + seed as usize % 2);
            for round in 0..60 {
                let before = set.clone();
                let (shown, bundle) = (Arc::clone(store.shown()), dice.roll(2) == 0);
                let mut steps = Vec::new();
                store.set_stays(bundle);
                for _ in 0..dice.roll(200) {
                    let entry = dice.roll(if round < 30 { 3000 } else { 500 }) as u32;
                    let comes = set.insert(entry);
                    match comes {
                        true => store.insert(entry, hash(entry), &hash),
                        false => {
                            set.remove(&entry);
                            store.remove(entry, hash(entry), &hash)
                        }
                    };
                    steps.push((entry, comes));
                }
                check(&store, &set);
                if bundle {
                    let held: BTreeSet<u32> = shown.places().collect();
                    assert_eq!(held, before, "readers see nothing of the bundle");
                    if dice.roll(2) == 0 {
                        while store.complete(&hash, &mut 3).is_none() {}
                        let shown: BTreeSet<u32> = store.shown().places().collect();
                        assert_eq!(shown, set, "readers see the complete bundle");
                    } else {
                        for (entry, came) in steps.into_iter().rev() {
                            match came {
                                true => store.remove(entry, hash(entry), &hash),
                                false => store.insert(entry, hash(entry), &hash),
                            };
                        }
                        set = before;
                        assert!(Arc::ptr_eq(&shown, store.shown()));
                    }
                    store.set_stays(false);
                }
                check(&store, &set);
            }
        }
    }

    #[test]
    fn a_change_moves_few_rows() {
        let mut store = Store::new(ROOM_AT_FIRST, 1);
        for entry in 0..200_000 {
            let before = MOVED.with(std::cell::Cell::get);
            store.insert(entry, hash(entry), &hash);
            let moved = MOVED.with(std::cell::Cell::get) - before;
            assert!(moved <= 2 * 8 * ROWS_STEP, "entry {entry} moved {moved}");
        }
        store.set_stays(true);
        let before = MOVED.with(std::cell::Cell::get);
        store.remove(5, hash(5), &hash);
        assert!(MOVED.with(std::cell::Cell::get) - before <= 2 * 8 * ROWS_STEP);
        assert_eq!(store.places().count(), 199_999);
    }
}
