//! Matches with open fields: a hash table for each mask that occurs, searched in order of rank.
//!
//! Source: V. Srinivasan, S. Suri, G. Varghese, "Packet classification using tuple space search"
//! (SIGCOMM 1999), with tuples sorted by the highest rank in them, so that the search ends at the
//! first one that cannot do better (as in B. Pfaff et al., "The design and implementation of Open
//! vSwitch", NSDI 2015). A lookup costs a hash for each mask, not a comparison for each entry.
//!
//! Invariant: the tuples are sorted by falling highest rank and none is empty. Of the entries with the
//! same match only the one that goes before the others can be found; they are kept aside until it
//! goes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::NOWHERE;
use crate::fast::buckets::Buckets;
use crate::fast::slab::{Line, Slab};
use crate::hash::{Seeded, mix};
use crate::key::Key;
use crate::key::wide::Wide;
use crate::matching::{Match, differing_wide};

use super::exact::BATCH_MAX;

/// Entries that a new tuple has room for.
const ROOM_AT_FIRST: usize = 24;

/// The tuples, for who changes them.
#[derive(Debug)]
pub struct TupleSpace {
    tuples: Vec<Tuple>,
    seed: u64,
    entries: usize,
    /// Whether what readers hold of it is out of date.
    changed: bool,
}

/// The tuples, for who looks entries up: they see entries come and go in the tuples that they hold.
#[derive(Debug, Clone)]
pub struct TupleViews {
    tuples: Arc<[TupleView]>,
    seed: u64,
}

/// The entries with one mask.
#[derive(Debug)]
struct Tuple {
    view: TupleView,
    /// By hash, entries that another with the same match goes before.
    hidden: HashMap<u64, Vec<u32>, Seeded>,
    /// How many entries have each rank.
    ranks: BTreeMap<u32, u32>,
}

/// Those of them that can be found.
#[derive(Debug, Clone)]
struct TupleView {
    mask: Key,
    rank_most: u32,
    asks_wide: bool,
    buckets: Arc<Buckets>,
    wide: Arc<WideMask>,
}

/// What is asked of the wide fields.
#[derive(Debug)]
struct WideMask {
    mask: Wide,
    /// Number and mask of each word that is asked for.
    words: Box<[(u8, u64)]>,
}

impl TupleView {
    #[inline]
    fn hash(&self, key: &Key, wide: &Wide, seed: u64) -> u64 {
        let hash = key.and(&self.mask).hash(seed);
        if !self.asks_wide {
            return hash;
        }
        let words = self.wide.words.iter();
        words.fold(hash, |hash, &(word, mask)| mix(wide.0[usize::from(word)] & mask, hash))
    }

    /// The hash of an entry in here.
    fn hash_of(&self, slab: &Slab, entry: u32, seed: u64) -> u64 {
        let wide = if self.asks_wide { slab.wide(entry) } else { Wide::ZERO };
        self.hash(&slab.line(entry).key(), &wide, seed)
    }

    /// Whether a key and wide fields meet an entry in here.
    #[inline]
    fn fits(&self, slab: &Slab, entry: u32, key: &Key, wide: &Wide) -> bool {
        slab.line(entry).fits(key, &self.mask)
            && (!self.asks_wide || differing_wide(wide, &slab.wide(entry), &self.wide.mask) == 0)
    }

    #[inline]
    fn find(&self, slab: &Slab, hash: u64, key: &Key, wide: &Wide) -> Option<u32> {
        self.buckets.find(hash, |entry| self.fits(slab, entry, key, wide))
    }
}

impl TupleViews {
    /// Whether there are no tuples.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tuples.is_empty()
    }

    /// The entry whose match the key and the wide fields meet and that goes before the others.
    pub fn find(&self, slab: &Slab, key: &Key, wide: &Wide) -> Option<u32> {
        let mut best: Option<(u32, &Line)> = None;
        for tuple in &*self.tuples {
            if best.is_some_and(|(_, line)| line.rank() > tuple.rank_most) {
                break;
            }
            let found = tuple.find(slab, tuple.hash(key, wide, self.seed), key, wide);
            let found = found.map(|entry| (entry, slab.line(entry)));
            let better =
                |found: &(u32, &Line)| best.is_none_or(|(_, line)| found.1.goes_before(line));
            best = found.filter(better).or(best);
        }
        best.map(|(entry, _)| entry)
    }

    /// The same for each of `keys` (at most [`BATCH_MAX`]) that has nothing in `found` yet: tuple by
    /// tuple, so that the cache misses of different keys overlap.
    pub fn find_missing(&self, slab: &Slab, keys: &[Key], wide: &[Wide], found: &mut [u32]) {
        let mut hashes = [0; BATCH_MAX];
        let mut open: u32 = 0;
        for (at, found) in found.iter().enumerate().take(keys.len()) {
            open |= u32::from(*found == NOWHERE) << at;
        }
        for tuple in &*self.tuples {
            if open == 0 {
                return;
            }
            for at in ones(open) {
                let wide = wide.get(at).unwrap_or(&Wide::ZERO);
                hashes[at] = tuple.hash(&keys[at], wide, self.seed);
                tuple.buckets.prefetch(hashes[at]);
            }
            for at in ones(open) {
                if let Some(entry) = tuple.buckets.guess(hashes[at]) {
                    slab.prefetch(entry);
                }
            }
            for at in ones(open) {
                let best = slab.get(found[at]);
                if best.is_some_and(|line| line.rank() > tuple.rank_most) {
                    open &= !(1 << at);
                    continue;
                }
                let wide = wide.get(at).unwrap_or(&Wide::ZERO);
                let entry = tuple.find(slab, hashes[at], &keys[at], wide);
                if let Some(entry) = entry
                    && best.is_none_or(|line| slab.line(entry).goes_before(line))
                {
                    found[at] = entry;
                }
            }
        }
    }
}

impl Tuple {
    fn new(matching: &Match, seed: u64) -> Tuple {
        let words = matching.wide_mask().0.iter().zip(0..).filter(|(mask, _)| **mask != 0);
        let words: Box<[_]> = words.map(|(mask, word)| (word, *mask)).collect();
        Tuple {
            view: TupleView {
                mask: *matching.mask(),
                rank_most: 0,
                asks_wide: !words.is_empty(),
                buckets: Arc::new(Buckets::new(ROOM_AT_FIRST)),
                wide: Arc::new(WideMask { mask: *matching.wide_mask(), words }),
            },
            hidden: HashMap::with_hasher(Seeded(seed)),
            ranks: BTreeMap::new(),
        }
    }

    /// All its entries, whether they can be found or not.
    fn places(&self) -> impl Iterator<Item = u32> + '_ {
        self.view.buckets.places().chain(self.hidden.values().flatten().copied())
    }

    fn matching(&self, slab: &Slab, entry: u32) -> Match {
        let view = &self.view;
        let wide = view.asks_wide.then(|| (slab.wide(entry), view.wide.mask));
        Match::again(slab.line(entry).key(), view.mask, wide.as_ref())
    }

    /// Lets an entry be found. Where there is no room, there are wider buckets from now on: readers go on
    /// with the old ones, where what was there is and stays, until they see the new ones.
    fn show(&mut self, slab: &Slab, entry: u32, hash: u64, seed: u64) -> bool {
        let view = &mut self.view;
        let full = view.buckets.len() >= view.buckets.capacity();
        if full {
            let wider = Buckets::new(view.buckets.capacity() * 2);
            for entry in view.buckets.places() {
                let hash = view.hash_of(slab, entry, seed);
                wider.insert(entry, hash, |other| view.hash_of(slab, other, seed));
            }
            view.buckets = Arc::new(wider);
        }
        view.buckets.insert(entry, hash, |other| view.hash_of(slab, other, seed));
        full
    }

    fn conceal(&self, slab: &Slab, entry: u32, hash: u64, seed: u64) {
        self.view.buckets.remove(entry, hash, |other| self.view.hash_of(slab, other, seed));
    }

    /// Adds an entry, and says whether readers have to be told.
    fn insert(&mut self, slab: &Slab, matching: &Match, entry: u32, seed: u64) -> bool {
        let (key, wide) = (matching.value(), matching.wide_value());
        let hash = self.view.hash(key, wide, seed);
        let rank = slab.line(entry).rank();
        *self.ranks.entry(rank).or_default() += 1;
        let higher = rank > self.view.rank_most;
        self.view.rank_most = self.view.rank_most.max(rank);
        let wider = match self.view.find(slab, hash, key, wide) {
            Some(same) if slab.line(same).goes_before(slab.line(entry)) => {
                self.hide(hash, entry);
                false
            }
            Some(same) => {
                let wider = self.show(slab, entry, hash, seed);
                self.conceal(slab, same, hash, seed);
                self.hide(hash, same);
                wider
            }
            None => self.show(slab, entry, hash, seed),
        };
        higher || wider
    }

    fn hide(&mut self, hash: u64, entry: u32) {
        self.hidden.entry(hash).or_default().push(entry);
    }

    /// Removes an entry, and says whether readers have to be told.
    fn remove(&mut self, slab: &Slab, matching: &Match, entry: u32, seed: u64) -> bool {
        let (key, wide) = (matching.value(), matching.wide_value());
        let hash = self.view.hash(key, wide, seed);
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
        if self.view.find(slab, hash, key, wide) == Some(entry) {
            if let Some(next) = self.next_hidden(slab, hash, key, wide) {
                self.unhide(hash, next);
                changed |= self.show(slab, next, hash, seed);
            }
            self.conceal(slab, entry, hash, seed);
        } else {
            self.unhide(hash, entry);
        }
        changed
    }

    /// Of the hidden entries with this match, the one that goes before the others.
    fn next_hidden(&self, slab: &Slab, hash: u64, key: &Key, wide: &Wide) -> Option<u32> {
        let hidden = self.hidden.get(&hash)?.iter().copied();
        let first = |one: u32, other: u32| {
            if slab.line(other).goes_before(slab.line(one)) { other } else { one }
        };
        hidden.filter(|&entry| self.view.fits(slab, entry, key, wide)).reduce(first)
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

impl TupleSpace {
    /// No entries. `seed` is a secret for hashing.
    pub fn new(seed: u64) -> TupleSpace {
        TupleSpace { tuples: Vec::new(), seed, entries: 0, changed: false }
    }

    /// How many entries it holds.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The highest rank of an entry; 0 if there is none.
    pub fn rank_most(&self) -> u32 {
        self.tuples.first().map_or(0, |tuple| tuple.view.rank_most)
    }

    /// What readers are to hold of it.
    pub fn views(&self) -> TupleViews {
        let tuples = self.tuples.iter().map(|tuple| tuple.view.clone()).collect();
        TupleViews { tuples, seed: self.seed }
    }

    /// Whether what readers hold became out of date since this was last asked.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// All its entries, each with its match.
    pub fn matches<'a>(&'a self, slab: &'a Slab) -> impl Iterator<Item = (Match, u32)> + 'a {
        let of = move |tuple: &'a Tuple| {
            tuple.places().map(move |entry| (tuple.matching(slab, entry), entry))
        };
        self.tuples.iter().flat_map(of)
    }

    /// The entry with this very match and rank.
    pub fn find_same(&self, slab: &Slab, matching: &Match, rank: u32) -> Option<u32> {
        let tuple = &self.tuples[self.tuple_of(matching)?];
        let (key, wide) = (matching.value(), matching.wide_value());
        let hash = tuple.view.hash(key, wide, self.seed);
        let hidden = tuple.hidden.get(&hash).into_iter().flatten().copied();
        let same = |entry: &u32| {
            slab.line(*entry).rank() == rank && tuple.view.fits(slab, *entry, key, wide)
        };
        tuple.view.find(slab, hash, key, wide).into_iter().chain(hidden).find(same)
    }

    /// Whether an entry of this rank could match the same frame.
    pub fn overlaps(&self, slab: &Slab, matching: &Match, rank: u32) -> bool {
        let mut with_rank = self.tuples.iter().filter(|tuple| tuple.ranks.contains_key(&rank));
        with_rank.any(|tuple| {
            let meets = |entry: u32| {
                slab.line(entry).rank() == rank && tuple.matching(slab, entry).overlaps(matching)
            };
            tuple.places().any(meets)
        })
    }

    /// Adds an entry whose line is written.
    pub fn insert(&mut self, slab: &Slab, matching: &Match, entry: u32) {
        let at = self.tuple_of(matching).unwrap_or_else(|| {
            self.changed = true;
            self.tuples.push(Tuple::new(matching, self.seed));
            self.tuples.len() - 1
        });
        self.changed |= self.tuples[at].insert(slab, matching, entry, self.seed);
        self.entries += 1;
        self.sort();
    }

    /// Removes an entry of this match, which is in here.
    pub fn remove(&mut self, slab: &Slab, matching: &Match, entry: u32) {
        let Some(at) = self.tuple_of(matching) else { return };
        self.changed |= self.tuples[at].remove(slab, matching, entry, self.seed);
        if self.tuples[at].ranks.is_empty() {
            self.tuples.remove(at);
            self.changed = true;
        }
        self.entries -= 1;
        self.sort();
    }

    fn tuple_of(&self, matching: &Match) -> Option<usize> {
        let same = |tuple: &Tuple| {
            let view = &tuple.view;
            view.mask == *matching.mask() && view.wide.mask == *matching.wide_mask()
        };
        self.tuples.iter().position(same)
    }

    fn sort(&mut self) {
        let falling = |tuple: &Tuple| std::cmp::Reverse(tuple.view.rank_most);
        if !self.tuples.is_sorted_by_key(falling) {
            self.tuples.sort_by_key(falling);
            self.changed = true;
        }
    }
}

/// The places of the bits that are set.
fn ones(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        bit
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::linear::LinearTable;
    use crate::classifier::rest::tests::{Installed, random_match};
    use crate::dice::Dice;

    #[test]
    fn it_finds_what_a_list_finds_whatever_comes_and_goes() {
        for seed in 0..60 {
            let mut dice = Dice::new(seed);
            let (mut tuples, mut list) = (TupleSpace::new(seed), LinearTable::default());
            let mut all = Installed::default();
            let mut views = tuples.views();
            for _ in 0..300 {
                let (matching, rank) = (random_match(&mut dice), dice.roll(4) as u32);
                let slab = &all.slab;
                assert_eq!(tuples.overlaps(slab, &matching, rank), list.overlaps(&matching, rank));
                let same = tuples.find_same(slab, &matching, rank);
                assert_eq!(same, list.find_same(&matching, rank), "seed {seed}");
                if dice.roll(3) == 0 && !all.is_empty() {
                    let (matching, rank, entry) = all.take(&mut dice);
                    tuples.remove(&all.slab, &matching, entry);
                    list.remove(rank, entry);
                } else if same.is_none() {
                    let entry = all.add(&matching, rank);
                    tuples.insert(&all.slab, &matching, entry);
                    list.insert(&matching, rank, entry);
                }
                assert_eq!((tuples.len(), tuples.rank_most()), (list.len(), list.rank_most()));
                let probe = random_match(&mut dice);
                let (key, wide) = (*probe.value(), *probe.wide_value());
                let wanted = list.find(&key, &wide);
                if tuples.take_changed() {
                    views = tuples.views();
                }
                assert_eq!(views.find(&all.slab, &key, &wide), wanted, "seed {seed}");
                let mut found = [NOWHERE; BATCH_MAX];
                views.find_missing(&all.slab, &[key], &[wide], &mut found);
                assert_eq!(found[0], wanted.unwrap_or(NOWHERE), "seed {seed}");
            }
            assert!(!tuples.is_empty());
            let mut places: Vec<u32> = tuples.matches(&all.slab).map(|(_, entry)| entry).collect();
            places.sort_unstable();
            assert_eq!(places, all.places());
        }
    }
}
