//! Matches with open fields: hash tables for the masks that occur, searched in order of rank.
//!
//! Source: V. Srinivasan, S. Suri, G. Varghese, "Packet classification using tuple space search"
//! (SIGCOMM 1999), with tuples sorted by the highest rank in them, so that the search ends at the
//! first one that cannot do better (as in B. Pfaff et al., "The design and implementation of Open
//! vSwitch", NSDI 2015). A lookup costs a hash for each mask, not a comparison for each entry.
//!
//! Where there are more than [`MASKS_PLAIN`] masks, and the table may choose, entries of several masks
//! share a [coarser one](coarse), a [sieve](crate::fast::sieve) tells from parts of a key which tuples
//! need be searched at all, and there are at most [`TUPLES_MAX`]: entries for which there is no tuple then
//! are [in lists](crowd). So a lookup is bounded whatever the masks are, and nothing of this depends on
//! traffic.
//!
//! Invariant: the tuples are sorted by falling highest rank and none is empty; an entry is in one tuple
//! or in the crowd.

use std::sync::Arc;

use super::Overlap;
use crate::fast::sieve::{GROUPS, Sieve};
use crate::fast::slab::Slab;
use crate::key::Key;
use crate::matching::Match;

/// Coarser masks.
mod coarse;
/// Matches for which there is no tuple.
mod crowd;
/// How an entry is found.
mod search;
/// One hash table.
mod tuple;

pub use search::{TupleViews, Work, ones};

use coarse::levels;
use crowd::Crowd;
use tuple::Tuple;

/// Masks that have a tuple each before some are merged.
pub const MASKS_PLAIN: usize = 12;

/// Most tuples when masks are merged: one for each group of a sieve.
pub const TUPLES_MAX: usize = GROUPS;

/// With more entries, merging them and putting them in order anew is left to the owner, who does it a few
/// entries at a time.
const ENTRIES_FEW: usize = 256;

/// Entries that come or go before what became of merging is put in order anew, if they are as many as
/// there are.
const STALE_MIN: usize = 1024;

/// The tuples, for who changes them.
#[derive(Debug)]
pub struct TupleSpace {
    tuples: Vec<Tuple>,
    crowd: Crowd,
    sieve: Option<Arc<Sieve>>,
    /// Whether masks may be merged.
    may_merge: bool,
    seed: u64,
    entries: usize,
    /// Entries when it was last put in order, and how many came or went since.
    ordered: (usize, usize),
    /// Whether what readers hold of it is out of date.
    changed: bool,
}

impl TupleSpace {
    /// No entries. `seed` is a secret for hashing.
    pub fn new(may_merge: bool, seed: u64) -> TupleSpace {
        TupleSpace {
            tuples: Vec::new(),
            crowd: Crowd::default(),
            sieve: None,
            may_merge,
            seed,
            entries: 0,
            ordered: (0, 0),
            changed: false,
        }
    }

    /// No entries, and masks are merged from the beginning.
    pub fn merged(seed: u64) -> TupleSpace {
        TupleSpace { sieve: Some(Arc::new(Sieve::new())), ..TupleSpace::new(true, seed) }
    }

    /// Whether masks are merged.
    pub fn is_merged(&self) -> bool {
        self.sieve.is_some()
    }

    /// How many entries it holds.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// How many hash tables and lists there are.
    pub fn count_tables(&self) -> usize {
        self.tuples.len() + self.crowd.view().len()
    }

    /// The highest rank of an entry; 0 if there is none.
    pub fn rank_most(&self) -> u32 {
        let most = self.tuples.first().map_or(0, |tuple| tuple.view.rank_most);
        most.max(self.crowd.rank_most())
    }

    /// What readers are to hold of it.
    pub fn views(&self) -> TupleViews {
        TupleViews {
            tuples: self.tuples.iter().map(|tuple| tuple.view.clone()).collect(),
            sieve: self.sieve.clone(),
            crowd: self.crowd.view(),
        }
    }

    /// Whether readers are to go on with what they hold whatever is changed from now on.
    pub fn set_stays(&mut self, stays: bool) {
        self.tuples.iter_mut().for_each(|tuple| tuple.set_stays(stays));
    }

    /// Makes what was changed while readers go on with what they hold ready to be published, as far as
    /// the budget goes. False if it was used up before.
    pub fn complete(&mut self, slab: &Slab, budget: &mut usize) -> bool {
        self.tuples.iter_mut().all(|tuple| {
            let told = tuple.complete(slab, budget);
            self.changed |= told.unwrap_or(false);
            told.is_some()
        })
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
        let crowd = self.crowd.iter().map(|(matching, _, entry)| (matching, entry));
        self.tuples.iter().flat_map(of).chain(crowd)
    }

    /// The entry with this very match and rank.
    pub fn find_same(&self, slab: &Slab, matching: &Match, rank: u32) -> Option<u32> {
        let mut tuples =
            self.levels(matching).into_iter().filter_map(|level| self.at(level, matching));
        let found = tuples.find_map(|at| self.tuples[at].find_same(slab, matching, rank));
        found.or_else(|| self.crowd.find_same(matching, rank))
    }

    /// Whether an entry of this rank could match the same frame, as far as a few steps tell.
    pub fn overlap(&self, slab: &Slab, matching: &Match, rank: u32) -> Overlap {
        let with_rank = self.tuples.iter().filter(|tuple| tuple.has_rank(rank));
        let in_tuples = with_rank.map(|tuple| tuple.overlap(slab, matching, rank));
        in_tuples.max().unwrap_or(Overlap::No).max(self.crowd.overlap(matching, rank))
    }

    /// Adds an entry whose line is written.
    pub fn insert(&mut self, slab: &Slab, matching: &Match, entry: u32) {
        self.put(slab, matching, entry);
        self.entries += 1;
        self.put_few_in_order(slab);
        self.sort();
    }

    /// Puts an entry where it belongs.
    fn put(&mut self, slab: &Slab, matching: &Match, entry: u32) {
        self.ordered.1 += 1;
        let levels = self.levels(matching);
        let known = levels.map(|level| self.at(level, matching));
        let same = known.iter().flatten().copied();
        let mut same = same.filter(|&at| self.tuples[at].shown(slab, matching).is_some());
        // A tuple with this match, else the first with room, else a new one as coarse as may be.
        let at = same.next().or_else(|| {
            let (mut free, own) = (None, levels[levels.len() - 1]);
            for (level, known) in levels.iter().zip(known) {
                match known {
                    Some(at) if self.tuples[at].has_room(slab, matching) => return Some(at),
                    // With one level for all, the coarser one is full of others like this.
                    None if free.is_none() => free = Some(*level),
                    _ => {}
                }
            }
            self.add_tuple(matching, &free.unwrap_or(own))
        });
        match at {
            Some(at) => {
                if let Some(sieve) = &self.sieve {
                    let group = self.tuples[at].view.group;
                    sieve.add(group, matching.value(), matching.mask());
                }
                self.changed |= self.tuples[at].insert(slab, matching, entry);
            }
            None => {
                self.crowd.insert(matching, slab.line(entry).rank(), entry);
                self.changed = true;
            }
        }
    }

    /// Removes an entry of this match, which is in here.
    pub fn remove(&mut self, slab: &Slab, matching: &Match, entry: u32) {
        let tuples = self.levels(matching).into_iter().filter_map(|level| self.at(level, matching));
        let holder = tuples.into_iter().find(|&at| self.tuples[at].holds(slab, matching, entry));
        match holder {
            Some(at) => {
                self.changed |= self.tuples[at].remove(slab, matching, entry);
                if self.tuples[at].is_empty() {
                    self.tuples.remove(at);
                    self.changed = true;
                }
            }
            None => {
                self.changed |= self.crowd.remove(matching, slab.line(entry).rank(), entry);
            }
        }
        self.entries -= 1;
        self.ordered.1 += 1;
        self.put_few_in_order(slab);
        self.sort();
    }

    /// Whether masks should be merged, or entries put in order anew.
    pub fn wants_order(&self) -> bool {
        let many_masks = self.may_merge && self.sieve.is_none() && self.tuples.len() > MASKS_PLAIN;
        many_masks || self.is_stale()
    }

    /// The entries are as if they were just put in order.
    pub fn set_ordered(&mut self) {
        self.ordered = (self.entries, 0);
    }

    fn put_few_in_order(&mut self, slab: &Slab) {
        if self.wants_order() && self.entries <= ENTRIES_FEW {
            self.put_in_order(slab);
        }
    }

    /// Whether so much came and went that the sieve lets too much through, or that coarse tuples hold
    /// what happened to come first.
    fn is_stale(&self) -> bool {
        let (then, since) = self.ordered;
        self.sieve.is_some() && since >= then.max(STALE_MIN)
    }

    /// Begins anew with all entries: merged, the highest ranks first, so that they are in the coarsest
    /// tuples. Readers go on with what there was, which is not changed any more.
    fn put_in_order(&mut self, slab: &Slab) {
        let mut all: Vec<(Match, u32)> = self.matches(slab).collect();
        sort_by_rank(slab, &mut all);
        self.tuples.clear();
        self.crowd = Crowd::default();
        self.sieve = Some(Arc::new(Sieve::new()));
        all.iter().for_each(|(matching, entry)| self.put(slab, matching, *entry));
        self.set_ordered();
        self.changed = true;
    }

    /// The masks under which a match may be found.
    fn levels(&self, matching: &Match) -> [Key; coarse::LEVELS] {
        match self.sieve {
            Some(_) => levels(matching.mask()),
            None => [*matching.mask(); coarse::LEVELS],
        }
    }

    fn at(&self, mask: Key, matching: &Match) -> Option<usize> {
        self.tuples.iter().position(|tuple| tuple.is_for(&mask, matching.wide_mask()))
    }

    /// Adds a tuple, if there may be one more.
    fn add_tuple(&mut self, matching: &Match, mask: &Key) -> Option<usize> {
        let merges = self.sieve.is_some();
        if self.may_merge && self.tuples.len() >= TUPLES_MAX {
            return None;
        }
        let mut users = [0; GROUPS];
        self.tuples.iter().for_each(|tuple| users[tuple.view.group as usize] += 1);
        let group = (0..GROUPS).min_by_key(|&group| users[group]).unwrap_or(0);
        self.tuples.push(Tuple::new(matching, mask, merges, group as u32, self.seed));
        self.changed = true;
        Some(self.tuples.len() - 1)
    }

    fn sort(&mut self) {
        let falling = |tuple: &Tuple| std::cmp::Reverse(tuple.view.rank_most);
        if !self.tuples.is_sorted_by_key(falling) {
            self.tuples.sort_by_key(falling);
            self.changed = true;
        }
    }
}

/// Puts entries into the order in which they are looked at.
pub fn sort_by_rank(slab: &Slab, all: &mut [(Match, u32)]) {
    all.sort_by(|(_, one), (_, other)| {
        let (one, other) = (slab.line(*one), slab.line(*other));
        if one.goes_before(other) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
    });
}

#[cfg(test)]
mod tests;
