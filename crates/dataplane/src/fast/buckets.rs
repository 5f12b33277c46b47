//! Which entry has a hash: buckets of one cache line, changed by one thread and read by others.
//!
//! A bucket keeps, for up to eight entries, 16 bits of the hash (the signature) and the entry's
//! number. A hash has two buckets; the second is looked at only if the first says that some of its
//! entries had to go elsewhere. So a lookup touches one bucket and one entry, nearly always: two
//! cache lines. Sources: partial-key cuckoo hashing (B. Fan et al., "Cuckoo filter", CoNEXT 2014;
//! D. Zhou et al., "CuckooSwitch", CoNEXT 2013, also for the versions by which readers see that
//! something moved) and the overflow counts of Meta's F14 tables. The study (bianco2010, section II)
//! says of its own table only that it hashes and holds 131,072.
//!
//! What the entries are is the caller's: it says which of the candidates it looks for, and what hash
//! an entry has.
//!
//! Invariant: an entry is in its first bucket, or in its second or the stash and counted as overflow
//! by its first; while it moves it is in both. An empty slot has signature 0, and no hash has. A
//! slot's number is written before its signature. Whoever moves an entry raises the versions of
//! both buckets after it is in the one and before it is gone from the other, so that a reader that
//! found nothing, though the entry was there all the time, sees that it has to look again.

#![allow(unsafe_code)]

#[cfg(not(loom))]
use super::memory::Zero;
use super::memory::{Row, row};
use super::prefetch;
use super::sync::{
    AtomicU32, AtomicU64, AtomicUsize, Mutex, MutexGuard,
    Ordering::{Acquire, Relaxed, Release},
};

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

/// The buckets.
#[derive(Debug)]
pub struct Buckets {
    rows: Row<Bucket>,
    entries: AtomicUsize,
    /// Entries for which neither bucket had room: practically never any, but a full bucket is no
    /// reason to refuse an entry.
    stash: Mutex<Vec<(u64, u32)>>,
    stashed: AtomicUsize,
}

#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Bucket {
    /// Eight signatures: lane `i / 2` of word `i % 2` is that of slot `i`.
    signatures: [AtomicU64; 2],
    entries: [AtomicU32; SLOTS],
    /// Entries whose first bucket this is and that are elsewhere.
    overflow: AtomicU32,
    /// How often an entry moved from or to here.
    version: AtomicU32,
}

// SAFETY: it consists of numbers, for which zero is valid and which have nothing to drop.
#[cfg(not(loom))]
unsafe impl Zero for Bucket {}

impl Bucket {
    /// One bit for each slot whose signature is `signature`, at `16 * (slot / 2) + slot % 2`.
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

    /// Whoever reads the number of an entry that took another's slot sees where the other went.
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

    /// The first entry with this signature that is the right one.
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

    /// Every entry with this signature.
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

/// The first slot in what [`Bucket::slots_with`] returned.
#[inline]
fn slot_of(bits: u64) -> Option<usize> {
    let bit = bits.trailing_zeros() as usize;
    (bits != 0).then_some(bit / 16 * 2 + bit % 16)
}

impl Buckets {
    /// Room for so many entries.
    pub fn new(entries_max: usize) -> Buckets {
        Buckets {
            rows: row(entries_max.div_ceil(FILL).max(2)),
            entries: AtomicUsize::new(0),
            stash: Mutex::new(Vec::new()),
            stashed: AtomicUsize::new(0),
        }
    }

    /// How many entries it holds.
    pub fn len(&self) -> usize {
        self.entries.load(Relaxed)
    }

    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries it has room for before lookups become slower.
    pub fn capacity(&self) -> usize {
        self.rows.len() * FILL
    }

    /// The numbers of all its entries, for the thread that changes it.
    pub fn places(&self) -> impl Iterator<Item = u32> + '_ {
        let rows = (0..self.count_rows()).flat_map(|row| self.places_in(row));
        rows.chain(self.stashed().into_iter().map(|(_, entry)| entry))
    }

    /// How many rows, that is buckets, there are.
    pub fn count_rows(&self) -> usize {
        self.rows.len()
    }

    /// The numbers of the entries in one row, for the thread that changes it.
    pub fn places_in(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        let bucket = &self.rows[row];
        (0..SLOTS).filter(|&slot| bucket.signature(slot) != 0).map(|slot| bucket.entry(slot))
    }

    /// The hashes and numbers of the entries for which no row had room.
    pub fn stashed(&self) -> Vec<(u64, u32)> {
        self.stash().clone()
    }

    /// The bucket that a hash is looked for first will be read soon.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch::read(&self.rows[self.first(hash)]);
    }

    /// An entry that may have this hash and probably is the one, from its first bucket alone.
    #[inline]
    pub fn guess(&self, hash: u64) -> Option<u32> {
        let bucket = &self.rows[self.first(hash)];
        slot_of(bucket.slots_with(signature(hash))).map(|slot| bucket.entry(slot))
    }

    /// The entry with this hash that is the right one.
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

    /// Every entry that may have this hash, some perhaps twice: those whose signature is the same.
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

    /// The entries of the first bucket that may have this hash.
    #[inline]
    pub fn guesses(&self, hash: u64, mut see: impl FnMut(u32)) {
        self.rows[self.first(hash)].each(signature(hash), &mut see);
    }

    /// Looks where entries are that had no room in their first bucket.
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

    /// Adds an entry. Only one thread may call this and [`Buckets::remove`]. `hash_of` says the hash
    /// of any entry that is in here.
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

    /// Removes an entry, which is in here. Readers may still find it until they are done with the
    /// lookup at hand.
    pub fn remove(&self, entry: u32, hash: u64, hash_of: impl Fn(u32) -> u64) {
        if !self.remove_still(entry, hash) {
            self.settle_stashed(hash_of);
        }
    }

    /// Removes an entry as [`Buckets::remove`] does, but moves no other. Returns whether it was stashed.
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

    /// Puts the entry that was stashed last into a row, if one has room.
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
                self.unstash(at.expect("it waited there"));
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

    /// Moves entries so that a full bucket has a free slot: a chain of entries that each have
    /// room where the one before was, found first and then moved from its end, so that every entry
    /// is somewhere all the time.
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

    /// Another bucket than the first: some steps further round the table.
    #[inline]
    fn second(&self, hash: u64) -> usize {
        let steps = 1 + scale(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15), self.rows.len() - 1);
        let bucket = self.first(hash) + steps;
        if bucket < self.rows.len() { bucket } else { bucket - self.rows.len() }
    }
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

#[cfg(not(loom))]
#[cfg(test)]
mod tests;

#[cfg(all(test, loom))]
mod model;
