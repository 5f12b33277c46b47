//! One tuple: entries in a hash table of their values under one mask.
//!
//! Invariants:
//! - Of the entries with the same match, only the one with the highest precedence can be found. The
//!   others are hidden until it is removed.
//! - An entry may have a finer mask than the tuple. Its mask is then in its mask line, and at most
//!   [`CHAIN_MAX`] entries are equal under the tuple's mask.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::classifier::Overlap;
use crate::classifier::store::{ROOM_AT_FIRST, Store};
use crate::fast::buckets::Buckets;
use crate::fast::slab::{EntryLine, Slab};
use crate::hash::{Seeded, mix};
use crate::key::Key;
use crate::key::wide::Wide;
use crate::matching::{Match, differing_wide};

/// Maximum number of entries that are equal under a mask coarser than their own.
pub const CHAIN_MAX: usize = 12;

/// The entries of a tuple.
#[derive(Debug)]
pub struct Tuple {
    pub view: TupleView,
    /// By hash, the entries that another entry with the same match hides.
    hidden: HashMap<u64, Vec<u32>, Seeded>,
    /// Number of entries by rank.
    ranks: BTreeMap<u32, u32>,
    /// The entries that can be found. The view has the store's buckets.
    store: Store,
}

/// The entries that can be found.
#[derive(Debug, Clone)]
pub struct TupleView {
    pub mask: Key,
    pub rank_most: u32,
    /// Group in the sieve.
    pub group: u32,
    asks_wide: bool,
    /// Whether entries may have finer masks than the tuple.
    merges: bool,
    buckets: Arc<Buckets>,
    wide: Arc<WideMask>,
    seed: u64,
}

/// Mask of the wide fields.
#[derive(Debug)]
struct WideMask {
    mask: Wide,
    /// Number and mask of each word of the mask.
    words: Box<[(u8, u64)]>,
}

impl TupleView {
    /// Hashes a key and wide fields under the tuple's masks.
    #[inline]
    pub fn hash(&self, key: &Key, wide: &Wide) -> u64 {
        let hash = key.and(&self.mask).hash(self.seed);
        if !self.asks_wide {
            return hash;
        }
        let words = self.wide.words.iter();
        words.fold(hash, |hash, &(word, mask)| mix(wide.0[usize::from(word)] & mask, hash))
    }

    /// Prefetches the bucket of a hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.buckets.prefetch(hash);
    }

    /// Prefetches the entries that probably have a hash.
    #[inline]
    pub fn prefetch_entries(&self, slab: &Slab, hash: u64) {
        self.buckets.guesses(hash, |entry| {
            slab.prefetch(entry);
            if self.merges {
                slab.prefetch_mask(entry);
            }
        });
    }

    /// Returns the hash of an entry in this tuple.
    fn hash_of(&self, slab: &Slab, entry: u32) -> u64 {
        let wide = if self.asks_wide { slab.wide(entry) } else { Wide::ZERO };
        self.hash(&slab.line(entry).key(), &wide)
    }

    /// Whether a key and wide fields match an entry in this tuple.
    #[inline]
    fn fits(&self, slab: &Slab, entry: u32, key: &Key, wide: &Wide) -> bool {
        let line = slab.line(entry);
        let fits = if self.merges {
            line.fits(key, &slab.mask(entry))
        } else {
            line.fits(key, &self.mask)
        };
        fits && (!self.asks_wide || differing_wide(wide, &slab.wide(entry), &self.wide.mask) == 0)
    }

    /// Finds the entry of highest precedence that matches a key and wide fields with this hash.
    /// Calls `see` for each comparison.
    #[inline]
    pub fn find(
        &self,
        slab: &Slab,
        hash: u64,
        key: &Key,
        wide: &Wide,
        mut see: impl FnMut(),
    ) -> Option<u32> {
        if !self.merges {
            return self.buckets.find(hash, |entry| {
                see();
                self.fits(slab, entry, key, wide)
            });
        }
        let mut best: Option<(u32, &EntryLine)> = None;
        self.buckets.each(hash, |entry| {
            see();
            let line = slab.line(entry);
            if best.is_none_or(|(_, best)| line.goes_before(best))
                && self.fits(slab, entry, key, wide)
            {
                best = Some((entry, line));
            }
        });
        best.map(|(entry, _)| entry)
    }
}

impl Tuple {
    /// Creates a tuple for matches with this mask or, if `merges` is set, finer masks.
    pub fn new(matching: &Match, mask: &Key, merges: bool, group: u32, seed: u64) -> Tuple {
        let words = matching.wide_mask().0.iter().zip(0..).filter(|(mask, _)| **mask != 0);
        let words: Box<[_]> = words.map(|(mask, word)| (word, *mask)).collect();
        // Equal entries share a bucket, so merged tuples use half of the capacity.
        let store = Store::new(ROOM_AT_FIRST, if merges { 2 } else { 1 });
        Tuple {
            view: TupleView {
                mask: *mask,
                rank_most: 0,
                group,
                asks_wide: !words.is_empty(),
                merges,
                buckets: Arc::clone(store.shown()),
                wide: Arc::new(WideMask { mask: *matching.wide_mask(), words }),
                seed,
            },
            hidden: HashMap::with_hasher(Seeded(seed)),
            ranks: BTreeMap::new(),
            store,
        }
    }

    /// Sets whether changes are staged, so that readers keep their view.
    pub fn set_stays(&mut self, stays: bool) {
        self.store.set_stays(stays);
    }

    /// Prepares staged changes for publication (see [`Store::complete`]).
    pub fn complete(&mut self, slab: &Slab, budget: &mut usize) -> Option<bool> {
        let view = &self.view;
        let told = self.store.complete(&|entry| view.hash_of(slab, entry), budget)?;
        Some(self.take_buckets(told))
    }

    fn take_buckets(&mut self, told: bool) -> bool {
        if told {
            self.view.buckets = Arc::clone(self.store.shown());
        }
        told
    }

    /// Whether the tuple has these masks.
    pub fn is_for(&self, mask: &Key, wide: &Wide) -> bool {
        self.view.mask == *mask && self.view.wide.mask == *wide
    }

    /// Whether the tuple is empty.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Whether an entry has this rank.
    pub fn has_rank(&self, rank: u32) -> bool {
        self.ranks.contains_key(&rank)
    }

    /// Returns all entries, including hidden ones.
    pub fn places(&self) -> impl Iterator<Item = u32> + '_ {
        self.store.places().chain(self.hidden.values().flatten().copied())
    }

    /// Returns the match of an entry in this tuple.
    pub fn matching(&self, slab: &Slab, entry: u32) -> Match {
        let view = &self.view;
        let wide = view.asks_wide.then(|| (slab.wide(entry), view.wide.mask));
        Match::again(slab.line(entry).key(), self.mask_of(slab, entry), wide.as_ref())
    }

    fn mask_of(&self, slab: &Slab, entry: u32) -> Key {
        if self.view.merges { slab.mask(entry) } else { self.view.mask }
    }

    fn hash_of(&self, matching: &Match) -> u64 {
        self.view.hash(matching.value(), matching.wide_value())
    }

    fn is_same(&self, slab: &Slab, entry: u32, matching: &Match) -> bool {
        slab.line(entry).has_key(matching.value())
            && self.mask_of(slab, entry) == *matching.mask()
            && (!self.view.asks_wide || slab.wide(entry) == *matching.wide_value())
    }

    /// Returns the entry with this match that is not hidden.
    pub fn shown(&self, slab: &Slab, matching: &Match) -> Option<u32> {
        self.store.find(self.hash_of(matching), |it| self.is_same(slab, it, matching))
    }

    /// Finds the entry with this match and rank.
    pub fn find_same(&self, slab: &Slab, matching: &Match, rank: u32) -> Option<u32> {
        let hidden = self.hidden.get(&self.hash_of(matching)).into_iter().flatten().copied();
        let same =
            |entry: &u32| slab.line(*entry).rank() == rank && self.is_same(slab, *entry, matching);
        self.shown(slab, matching).into_iter().chain(hidden).find(same)
    }

    /// Checks whether an entry of this rank overlaps, as far as a few steps can decide. If the
    /// match includes the tuple's mask, an overlapping entry has the same hash.
    pub fn overlap(&self, slab: &Slab, matching: &Match, rank: u32) -> Overlap {
        let own = Match::again(Key::ZERO, self.view.mask, Some(&(Wide::ZERO, self.view.wide.mask)));
        if !matching.asks_all_of(&own) {
            let is_finer = own.asks_all_of(matching);
            return if is_finer { Overlap::Covered } else { Overlap::Unknown };
        }
        let meets = |entry: u32| {
            slab.line(entry).rank() == rank && self.matching(slab, entry).overlaps(matching)
        };
        let hash = self.hash_of(matching);
        let mut hidden = self.hidden.get(&hash).into_iter().flatten();
        let mut found = hidden.any(|&entry| meets(entry));
        self.store.each(hash, &mut |entry| found = found || meets(entry));
        found.into()
    }

    /// Whether one more entry may have the hash of this match.
    pub fn has_room(&self, slab: &Slab, matching: &Match) -> bool {
        if self.view.mask == *matching.mask() {
            return true;
        }
        let mut alike = Vec::with_capacity(CHAIN_MAX);
        self.store.each(self.hash_of(matching), &mut |entry| {
            if slab
                .line(entry)
                .key()
                .and(&self.view.mask)
                .is(&matching.value().and(&self.view.mask))
                && !alike.contains(&entry)
            {
                alike.push(entry);
            }
        });
        alike.len() < CHAIN_MAX
    }

    /// Makes an entry visible; returns whether readers need a new view.
    fn show(&mut self, slab: &Slab, entry: u32, hash: u64) -> bool {
        let view = &self.view;
        let told = self.store.insert(entry, hash, &|other| view.hash_of(slab, other));
        self.take_buckets(told)
    }

    /// Hides an entry; returns whether readers need a new view.
    fn conceal(&mut self, slab: &Slab, entry: u32, hash: u64) -> bool {
        let view = &self.view;
        let told = self.store.remove(entry, hash, &|other| view.hash_of(slab, other));
        self.take_buckets(told)
    }

    /// Adds an entry; returns whether readers need a new view.
    pub fn insert(&mut self, slab: &Slab, matching: &Match, entry: u32) -> bool {
        if self.view.merges {
            slab.set_mask(entry, matching.mask());
        }
        let hash = self.hash_of(matching);
        let rank = slab.line(entry).rank();
        *self.ranks.entry(rank).or_default() += 1;
        let higher = rank > self.view.rank_most;
        self.view.rank_most = self.view.rank_most.max(rank);
        let told = match self.shown(slab, matching) {
            Some(same) if slab.line(same).goes_before(slab.line(entry)) => {
                self.hide(hash, entry);
                false
            }
            Some(same) => {
                let told = self.show(slab, entry, hash) | self.conceal(slab, same, hash);
                self.hide(hash, same);
                told
            }
            None => self.show(slab, entry, hash),
        };
        higher || told
    }

    fn hide(&mut self, hash: u64, entry: u32) {
        self.hidden.entry(hash).or_default().push(entry);
    }

    /// Whether this entry with this match is in the tuple.
    pub fn holds(&self, slab: &Slab, matching: &Match, entry: u32) -> bool {
        let hidden = self.hidden.get(&self.hash_of(matching));
        self.shown(slab, matching) == Some(entry)
            || hidden.is_some_and(|hidden| hidden.contains(&entry))
    }

    /// Removes an entry; returns whether readers need a new view.
    pub fn remove(&mut self, slab: &Slab, matching: &Match, entry: u32) -> bool {
        let hash = self.hash_of(matching);
        let rank = slab.line(entry).rank();
        let rank_most = self.view.rank_most;
        if let Some(count) = self.ranks.get_mut(&rank) {
            *count -= 1;
            if *count == 0 {
                self.ranks.remove(&rank);
                let most = self.ranks.last_key_value().map_or(0, |(rank, _)| *rank);
                self.view.rank_most = most;
            }
        }
        let mut changed = rank_most != self.view.rank_most;
        if self.shown(slab, matching) == Some(entry) {
            if let Some(next) = self.next_hidden(slab, hash, matching) {
                self.unhide(hash, next);
                changed |= self.show(slab, next, hash);
            }
            changed |= self.conceal(slab, entry, hash);
        } else {
            self.unhide(hash, entry);
        }
        changed
    }

    /// Returns the hidden entry of highest precedence with this match.
    fn next_hidden(&self, slab: &Slab, hash: u64, matching: &Match) -> Option<u32> {
        let hidden = self.hidden.get(&hash)?.iter().copied();
        let first = |one: u32, other: u32| {
            if slab.line(other).goes_before(slab.line(one)) { other } else { one }
        };
        hidden.filter(|&entry| self.is_same(slab, entry, matching)).reduce(first)
    }

    fn unhide(&mut self, hash: u64, entry: u32) {
        if let Some(hidden) = self.hidden.get_mut(&hash) {
            hidden.retain(|&other| other != entry);
            if hidden.is_empty() {
                self.hidden.remove(&hash);
            }
        }
    }
}
