//! Buckets that are replaced a few rows at a time, for the thread that changes them.
//!
//! When the buckets are full, or while readers must go on with what they hold, larger or equal ones are
//! filled beside them: each change copies [`ROWS_STEP`] rows, so that no change takes long however many
//! entries there are. Readers see the new buckets when these are complete and were published; lookups
//! never consult more than one set of buckets.
//!
//! Invariant: while buckets are copied, no entry in them moves to another row. `skip` has the entries
//! in the old buckets that are not to be copied: the new ones have them already, or must not have them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::fast::buckets::Buckets;

/// Rows that each change copies: at most 32 entries.
pub const ROWS_STEP: usize = 4;

/// Entries for which new buckets have room at first.
pub const ROOM_AT_FIRST: usize = 24;

/// Buckets and, from time to time, those that replace them.
#[derive(Debug)]
pub struct Store {
    /// What readers hold.
    shown: Arc<Buckets>,
    next: Option<Box<Next>>,
    entries: usize,
    /// Entries count this many times against the capacity.
    share: usize,
    /// Whether `shown` must stay as it is.
    stays: bool,
    /// Whether changes were made to `next` alone.
    apart: bool,
}

/// What replaces the buckets.
#[derive(Debug)]
struct Next {
    store: Store,
    /// Rows below this were copied.
    row: usize,
    skip: BTreeSet<u32>,
}

#[cfg(test)]
thread_local! {
    /// Entries that were moved between structures in this thread.
    pub static MOVED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts entries that are moved, for tests.
#[inline]
pub fn count_moved(_entries: usize) {
    #[cfg(test)]
    MOVED.with(|moved| moved.set(moved.get() + _entries));
}

impl Store {
    /// Room for so many entries at first, each of which counts `share` times.
    pub fn new(entries_max: usize, share: usize) -> Store {
        let shown = Arc::new(Buckets::new(entries_max));
        Store { shown, next: None, entries: 0, share, stays: false, apart: false }
    }

    /// The buckets that readers are to hold.
    pub fn shown(&self) -> &Arc<Buckets> {
        &self.shown
    }

    /// How many entries it holds.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Whether readers are to go on with what they hold whatever is changed from now on. Before `false`,
    /// every change since must be [completed](Store::complete) or undone.
    pub fn set_stays(&mut self, stays: bool) {
        self.stays = stays;
        self.apart &= stays;
    }

    /// The entry with this hash that is the right one.
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

    /// Every entry that may have this hash, some perhaps more than once.
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

    /// The numbers of all its entries.
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

    /// Adds an entry. Returns true if readers have to be told of other buckets.
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

    /// Removes an entry, which is in here. Returns true if readers have to be told of other buckets.
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
        self.next = Some(Box::new(Next { store, row: 0, skip: BTreeSet::new() }));
    }

    /// Copies so many rows and, when all are copied and readers need not stay, goes over to the new
    /// buckets. Returns true then.
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

    /// Makes what was changed apart ready to be published, a step of the budget for each row. `None` if
    /// the budget was used up before; else whether readers have to be told of other buckets.
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
    use crate::dice::Dice;
    use crate::hash::mix;

    fn hash(entry: u32) -> u64 {
        mix(entry.into(), 7)
    }

    /// What the store holds, seen in each way there is.
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
    fn it_holds_what_a_set_holds_while_it_grows_and_bundles_come_and_go() {
        for seed in 0..6 {
            let (mut dice, mut set) = (Dice::new(seed), BTreeSet::new());
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
                    assert_eq!(held, before, "readers see nothing of it");
                    if dice.roll(2) == 0 {
                        while store.complete(&hash, &mut 3).is_none() {}
                        let shown: BTreeSet<u32> = store.shown().places().collect();
                        assert_eq!(shown, set, "readers see all of it");
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
    fn no_change_moves_more_than_a_few_rows() {
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
