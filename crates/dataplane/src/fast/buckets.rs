//! Hash buckets of one cache line, with one writer and many readers.
//!
//! A bucket has, for up to eight entries, 16 bits of the hash (the signature) and the entry's
//! number. A hash has two buckets; the second is searched only if the first has overflow entries.
//! So a lookup nearly always reads one bucket and one entry, which are two cache lines.
//!
//! Sources: partial-key cuckoo hashing (B. Fan et al., "Cuckoo filter", CoNEXT 2014; D. Zhou et
//! al., "CuckooSwitch", CoNEXT 2013, also for the versions with which readers detect moves) and the
//! overflow counts of Meta's F14 tables. About its own table, bianco2010, section II, states only
//! that it hashes and has 131,072 entries.
//!
//! The caller interprets the entries: it selects among candidates and supplies the hash of an
//! entry.
//!
//! Invariants:
//! - An entry is in its first bucket, or in its second bucket or the stash and counted as overflow
//!   in its first. While it moves, it is in both buckets.
//! - An empty slot has signature 0, and no hash has this signature.
//! - A slot's number is written before its signature.
//! - To move an entry, the writer copies it to its new bucket, increments the versions of both
//!   buckets, and removes it from the old bucket. So a reader that misses a present entry sees a
//!   new version and retries.

#![allow(unsafe_code)]

#[cfg(not(loom))]
use super::memory::Zero;
use super::memory::{Array, row};
use super::prefetch;
use super::sync::{
    AtomicU32, AtomicU64, AtomicUsize, Mutex, MutexGuard,
    Ordering::{Acquire, Relaxed, Release},
};

/// Slots in a bucket.
const SLOTS: usize = 8;
/// Entries per bucket at capacity (three quarters of the slots).
const FILL: usize = 6;
/// Maximum number of entries to move for a new one before it goes to the stash.
const MOVES_MAX: usize = 128;
/// The lowest bit of each of four signatures in a word.
const LANES: u64 = 0x0001_0001_0001_0001;
/// The highest bit of each.
const HIGHS: u64 = LANES << 15;

/// The buckets.
#[derive(Debug)]
pub struct Buckets {
    rows: Array<Bucket>,
    entries: AtomicUsize,
    /// Entries that fit into neither bucket. This is extremely rare, but a full bucket is no reason
    /// to reject an entry.
    stash: Mutex<Vec<(u64, u32)>>,
    stashed: AtomicUsize,
}

#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Bucket {
    /// Eight signatures: lane `i / 2` of word `i % 2` is that of slot `i`.
    signatures: [AtomicU64; 2],
    entries: [AtomicU32; SLOTS],
    /// Number of entries whose first bucket this is and that are in another bucket or in the stash.
    overflow: AtomicU32,
    /// Number of moves from or to this bucket.
    version: AtomicU32,
}

// SAFETY: it consists of numbers, for which zero is valid and which have nothing to drop.
#[cfg(not(loom))]
unsafe impl Zero for Bucket {}

impl Bucket {
    /// Returns one bit for each slot with this signature, at `16 * (slot / 2) + slot % 2`.
    #[inline]
    fn slots_with(&self, signature: u16) -> u64 {
        let wanted = LANES * u64::from(signature);
        let equal = |word: u64| {
            let difference = word ^ wanted;
            // The highest bit of a lane stays clear only where all its bits are.
            !(((difference & !HIGHS) + !HIGHS) | difference) & HIGHS
        };
        let [even, odd] = &self.signatures;
        (equal(even.load(Acquire)) >> 15) | (equal(odd.load(Acquire)) >> 14)
    }

    /// Acquire: a reader that sees the number of an entry also sees where the slot's previous entry
    /// moved.
    #[inline]
    fn entry(&self, slot: usize) -> u32 {
        self.entries[slot].load(Acquire)
    }

    fn fill(&self, slot: usize, signature: u16, entry: u32) {
        self.entries[slot].store(entry, Release);
        self.sign(slot, signature);
    }

    /// Sets a slot's signature; 0 empties it.
    fn sign(&self, slot: usize, signature: u16) {
        let shift = 16 * (slot / 2);
        let word = &self.signatures[slot % 2];
        let others = word.load(Relaxed) & !(0xffff << shift);
        word.store(others | (u64::from(signature) << shift), Release);
    }

    fn signature(&self, slot: usize) -> u16 {
        (self.signatures[slot % 2].load(Relaxed) >> (16 * (slot / 2))) as u16
    }

    fn free_slot(&self) -> Option<usize> {
        slot_of(self.slots_with(0))
    }

    /// Finds the first entry with this signature for which `is_it` is true.
    #[inline]
    fn find(&self, signature: u16, is_it: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        let mut slots = self.slots_with(signature);
        while let Some(slot) = slot_of(slots) {
            let entry = self.entry(slot);
            if is_it(entry) {
                return Some(entry);
            }
            slots &= slots - 1;
        }
        None
    }

    /// Visits every entry with this signature.
    #[inline]
    fn each(&self, signature: u16, see: &mut impl FnMut(u32)) {
        let mut slots = self.slots_with(signature);
        while let Some(slot) = slot_of(slots) {
            see(self.entry(slot));
            slots &= slots - 1;
        }
    }

    fn moved(&self) {
        self.version.store(self.version.load(Relaxed).wrapping_add(1), Release);
    }

    fn more_overflow(&self, by: i32) {
        self.overflow.store(self.overflow.load(Relaxed).wrapping_add_signed(by), Release);
    }
}

/// Returns the first slot in a result of [`Bucket::slots_with`].
#[inline]
fn slot_of(bits: u64) -> Option<usize> {
    let bit = bits.trailing_zeros() as usize;
    (bits != 0).then_some(bit / 16 * 2 + bit % 16)
}

impl Buckets {
    /// Allocates buckets for `entries_max` entries.
    pub fn new(entries_max: usize) -> Buckets {
        Buckets {
            rows: row(entries_max.div_ceil(FILL).max(2)),
            entries: AtomicUsize::new(0),
            stash: Mutex::new(Vec::new()),
            stashed: AtomicUsize::new(0),
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.load(Relaxed)
    }

    /// Whether there are no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of entries that fit before lookups become slower.
    pub fn capacity(&self) -> usize {
        self.rows.len() * FILL
    }

    /// Returns the numbers of all entries, for the writer.
    pub fn places(&self) -> impl Iterator<Item = u32> + '_ {
        let rows = (0..self.count_rows()).flat_map(|row| self.places_in(row));
        rows.chain(self.stashed().into_iter().map(|(_, entry)| entry))
    }

    /// Returns the number of rows (buckets).
    pub fn count_rows(&self) -> usize {
        self.rows.len()
    }

    /// Returns the numbers of the entries in one row, for the writer.
    pub fn places_in(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        let bucket = &self.rows[row];
        (0..SLOTS).filter(|&slot| bucket.signature(slot) != 0).map(|slot| bucket.entry(slot))
    }

    /// Returns the hashes and numbers of the stashed entries.
    pub fn stashed(&self) -> Vec<(u64, u32)> {
        self.stash().clone()
    }

    /// Prefetches the first bucket of a hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch::read(&self.rows[self.first(hash)]);
    }

    /// Returns an entry that probably has this hash, from its first bucket alone.
    #[inline]
    pub fn guess(&self, hash: u64) -> Option<u32> {
        let bucket = &self.rows[self.first(hash)];
        slot_of(bucket.slots_with(signature(hash))).map(|slot| bucket.entry(slot))
    }

    /// Finds the entry with this hash for which `is_it` is true.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let first = &self.rows[self.first(hash)];
        loop {
            let version = first.version.load(Acquire);
            let found = first.find(signature(hash), &mut is_it);
            if found.is_some() {
                return found;
            }
            if first.overflow.load(Acquire) != 0 {
                let found = self.find_elsewhere(hash, &mut is_it);
                if found.is_some() {
                    return found;
                }
            }
            if first.version.load(Acquire) == version {
                return None;
            }
        }
    }

    /// Visits every entry with the signature of this hash, some perhaps twice.
    #[inline]
    pub fn each(&self, hash: u64, mut see: impl FnMut(u32)) {
        let first = &self.rows[self.first(hash)];
        loop {
            let version = first.version.load(Acquire);
            first.each(signature(hash), &mut see);
            if first.overflow.load(Acquire) != 0 {
                self.each_elsewhere(hash, &mut see);
            }
            if first.version.load(Acquire) == version {
                return;
            }
        }
    }

    #[cold]
    fn each_elsewhere(&self, hash: u64, see: &mut impl FnMut(u32)) {
        let second = &self.rows[self.second(hash)];
        loop {
            let version = second.version.load(Acquire);
            second.each(signature(hash), see);
            if self.stashed.load(Acquire) != 0 {
                let stash = self.stash();
                stash.iter().filter(|&&(other, _)| other == hash).for_each(|&(_, it)| see(it));
            }
            if second.version.load(Acquire) == version {
                return;
            }
        }
    }

    /// Visits the entries of the first bucket that may have this hash.
    #[inline]
    pub fn guesses(&self, hash: u64, mut see: impl FnMut(u32)) {
        self.rows[self.first(hash)].each(signature(hash), &mut see);
    }

    /// Searches for entries that did not fit into their first bucket.
    #[cold]
    fn find_elsewhere(&self, hash: u64, is_it: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        let second = &self.rows[self.second(hash)];
        loop {
            let version = second.version.load(Acquire);
            let found = second.find(signature(hash), is_it);
            if found.is_some() {
                return found;
            }
            if self.stashed.load(Acquire) != 0 {
                let stash = self.stash();
                let found = stash.iter().find(|&&(other, entry)| other == hash && is_it(entry));
                if let Some(&(_, entry)) = found {
                    return Some(entry);
                }
            }
            if second.version.load(Acquire) == version {
                return None;
            }
        }
    }

    /// Adds an entry. Only one thread may call this and [`Buckets::remove`]. `hash_of` returns the
    /// hash of any entry in the buckets.
    pub fn insert(&self, entry: u32, hash: u64, hash_of: impl Fn(u32) -> u64) {
        self.entries.store(self.len() + 1, Relaxed);
        let (first, second) = (self.first(hash), self.second(hash));
        let is_placed = self.place(first, hash, entry)
            || self.place(second, hash, entry)
            || self.make_room(second, &hash_of) && self.place(second, hash, entry);
        if !is_placed {
            self.insert_stashed(entry, hash);
        }
    }

    /// Adds an entry as [`Buckets::insert`] does, but moves no other.
    pub fn insert_still(&self, entry: u32, hash: u64) {
        self.entries.store(self.len() + 1, Relaxed);
        let (first, second) = (self.first(hash), self.second(hash));
        if !self.place(first, hash, entry) && !self.place(second, hash, entry) {
            self.insert_stashed(entry, hash);
        }
    }

    fn insert_stashed(&self, entry: u32, hash: u64) {
        let first = self.first(hash);
        self.rows[first].more_overflow(1);
        self.stash().push((hash, entry));
        self.stashed.store(self.stashed.load(Relaxed) + 1, Release);
        self.rows[first].moved();
    }

    /// Removes an entry. Readers may still find it until they finish their current lookup.
    pub fn remove(&self, entry: u32, hash: u64, hash_of: impl Fn(u32) -> u64) {
        if !self.remove_still(entry, hash) {
            self.settle_stashed(hash_of);
        }
    }

    /// Removes an entry as [`Buckets::remove`] does, but moves no other. Returns whether it was
    /// stashed.
    pub fn remove_still(&self, entry: u32, hash: u64) -> bool {
        self.entries.store(self.len() - 1, Relaxed);
        let (first, second) = (self.first(hash), self.second(hash));
        let stashed = self.stash().iter().position(|&(_, other)| other == entry);
        if let Some(at) = stashed {
            self.unstash(at);
            return true;
        }
        for at in [first, second] {
            let bucket = &self.rows[at];
            let is_it = |slot: &usize| bucket.signature(*slot) != 0 && bucket.entry(*slot) == entry;
            if let Some(slot) = (0..SLOTS).find(is_it) {
                bucket.sign(slot, 0);
                if at != first {
                    self.rows[first].more_overflow(-1);
                }
                break;
            }
        }
        false
    }

    /// Moves the last stashed entry to a row with space, if there is one.
    fn settle_stashed(&self, hash_of: impl Fn(u32) -> u64) {
        let waiting = self.stash().last().copied();
        if let Some((hash, entry)) = waiting {
            let (first, second) = (self.first(hash), self.second(hash));
            if self.place(first, hash, entry)
                || self.place(second, hash, entry)
                || self.make_room(second, &hash_of) && self.place(second, hash, entry)
            {
                self.rows[first].moved();
                self.rows[second].moved();
                let at = self.stash().iter().position(|&(_, other)| other == entry);
                self.unstash(at.expect("the entry was in the stash"));
            }
        }
    }

    fn unstash(&self, at: usize) {
        let (hash, _) = self.stash().swap_remove(at);
        self.stashed.store(self.stashed.load(Relaxed) - 1, Release);
        self.rows[self.first(hash)].more_overflow(-1);
    }

    /// Puts an entry into a free slot of the bucket, if there is one.
    fn place(&self, bucket: usize, hash: u64, entry: u32) -> bool {
        let Some(slot) = self.rows[bucket].free_slot() else { return false };
        let first = self.first(hash);
        if bucket != first {
            self.rows[first].more_overflow(1);
        }
        self.rows[bucket].fill(slot, signature(hash), entry);
        true
    }

    /// Frees a slot in a full bucket. Finds a chain of entries, each of which can take the slot of
    /// the next one. Moves them from the end of the chain, so that every entry can be found all the
    /// time.
    fn make_room(&self, bucket: usize, hash_of: &impl Fn(u32) -> u64) -> bool {
        let mut chain: Vec<(usize, usize)> = Vec::new();
        let mut at = bucket;
        for turn in 0..MOVES_MAX {
            if self.rows[at].free_slot().is_some() {
                break;
            }
            let slot = turn % SLOTS;
            if chain.contains(&(at, slot)) {
                return false;
            }
            let hash = hash_of(self.rows[at].entry(slot));
            let (first, second) = (self.first(hash), self.second(hash));
            chain.push((at, slot));
            at = if at == first { second } else { first };
        }
        if self.rows[at].free_slot().is_none() {
            return false;
        }
        for (from, slot) in chain.into_iter().rev() {
            let entry = self.rows[from].entry(slot);
            let hash = hash_of(entry);
            let (first, second) = (self.first(hash), self.second(hash));
            let to = if from == first { second } else { first };
            if !self.place(to, hash, entry) {
                return false;
            }
            self.rows[to].moved();
            self.rows[from].moved();
            self.rows[from].sign(slot, 0);
            if to == first {
                self.rows[first].more_overflow(-1);
            }
        }
        true
    }

    fn stash(&self) -> MutexGuard<'_, Vec<(u64, u32)>> {
        self.stash.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    #[inline]
    fn first(&self, hash: u64) -> usize {
        scale(hash, self.rows.len())
    }

    /// Returns the second bucket, some steps further around the table than the first.
    #[inline]
    fn second(&self, hash: u64) -> usize {
        let steps = 1 + scale(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15), self.rows.len() - 1);
        let bucket = self.first(hash) + steps;
        if bucket < self.rows.len() { bucket } else { bucket - self.rows.len() }
    }
}

/// Returns the low 16 bits of the hash; zero, which marks an empty slot, becomes one.
#[inline]
fn signature(hash: u64) -> u16 {
    (hash as u16).max(1)
}

/// Maps the upper half of a hash evenly onto `0..count`.
#[inline]
fn scale(hash: u64, count: usize) -> usize {
    (((hash >> 32) * count as u64) >> 32) as usize
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;

#[cfg(all(test, loom))]
mod model;
