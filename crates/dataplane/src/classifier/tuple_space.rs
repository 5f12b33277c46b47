//! Wildcard matches in a hash table per mask, searched by descending rank (tuple space search).
//!
//! Source: V. Srinivasan, S. Suri, G. Varghese, "Packet classification using tuple space search"
//! (SIGCOMM 1999). Tuples are sorted by their highest rank, so that the search ends at the first
//! one that cannot improve the result (as in B. Pfaff et al., "The design and implementation of
//! Open vSwitch", NSDI 2015). A lookup costs a hash per mask, not a comparison per entry.
//!
//! If there are more than [`MASKS_PLAIN`] masks and merging is permitted:
//! - entries of several masks share a [coarser mask](coarse);
//! - a [sieve](crate::fast::sieve) determines from parts of a key which tuples to search;
//! - there are at most [`TUPLES_MAX`] tuples; further entries are [in lists](crowd).
//!
//! So the cost of a lookup is bounded for all masks, and does not depend on traffic.
//!
//! Invariant: the tuples are sorted by descending highest rank and none is empty; an entry is in
//! one tuple or in the crowd.

use std::sync::Arc;

use super::Overlap;
use crate::fast::prefilter::{GROUPS, Prefilter};
use crate::fast::slab::Slab;
use crate::key::Key;
use crate::matching::Match;

mod merged;
mod overflow;
mod search;
mod tuple;

pub use search::{LookupWork, TupleViews, ones};

use merged::levels;
use overflow::OverflowList;
use tuple::Tuple;

/// Maximum number of masks with separate tuples; with more, masks are merged.
pub const MASKS_PLAIN: usize = 12;

/// Maximum number of tuples when masks are merged: one for each group of a sieve.
pub const TUPLES_MAX: usize = GROUPS;

/// With more entries, the owner merges and reorders them in steps of a few entries.
const ENTRIES_FEW: usize = 256;

/// Minimum number of additions and removals before merged entries are reordered, if there are as
/// many as entries.
const STALE_MIN: usize = 1024;

/// The tuples, for the writer.
#[derive(Debug)]
pub struct TupleSpace {
    tuples: Vec<Tuple>,
    crowd: OverflowList,
    sieve: Option<Arc<Prefilter>>,
    /// Whether masks may be merged.
    may_merge: bool,
    seed: u64,
    entries: usize,
    /// Number of entries at the last reordering, and of additions and removals since.
    ordered: (usize, usize),
    /// Whether the readers' view is out of date.
    changed: bool,
}

impl TupleSpace {
    /// Creates an empty classifier. `seed` is a secret for hashing.
    pub fn new(may_merge: bool, seed: u64) -> TupleSpace {
        TupleSpace {
            tuples: Vec::new(),
            crowd: OverflowList::default(),
            sieve: None,
            may_merge,
            seed,
            entries: 0,
            ordered: (0, 0),
            changed: false,
        }
    }

    /// Creates an empty classifier that merges masks from the beginning.
    pub fn merged(seed: u64) -> TupleSpace {
        TupleSpace { sieve: Some(Arc::new(Prefilter::new())), ..TupleSpace::new(true, seed) }
    }

    /// Whether masks are merged.
    pub fn is_merged(&self) -> bool {
        self.sieve.is_some()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Returns the number of hash tables and lists.
    pub fn count_tables(&self) -> usize {
        self.tuples.len() + self.crowd.view().len()
    }

    /// Returns the highest rank of an entry; 0 if there is none.
    pub fn rank_most(&self) -> u32 {
        let most = self.tuples.first().map_or(0, |tuple| tuple.view.rank_most);
        most.max(self.crowd.rank_most())
    }

    /// Returns the view for readers.
    pub fn views(&self) -> TupleViews {
        TupleViews {
            tuples: self.tuples.iter().map(|tuple| tuple.view.clone()).collect(),
            sieve: self.sieve.clone(),
            crowd: self.crowd.view(),
        }
    }

    /// Sets whether changes are staged, so that readers keep their view.
    pub fn set_stays(&mut self, stays: bool) {
        self.tuples.iter_mut().for_each(|tuple| tuple.set_stays(stays));
    }

    /// Prepares staged changes for publication, within a budget. Returns false if the budget is
    /// exhausted first.
    pub fn complete(&mut self, slab: &Slab, budget: &mut usize) -> bool {
        self.tuples.iter_mut().all(|tuple| {
            let told = tuple.complete(slab, budget);
            self.changed |= told.unwrap_or(false);
            told.is_some()
        })
    }

    /// Whether the readers' view became out of date since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Returns all entries with their matches.
    pub fn matches<'a>(&'a self, slab: &'a Slab) -> impl Iterator<Item = (Match, u32)> + 'a {
        let of = move |tuple: &'a Tuple| {
            tuple.places().map(move |entry| (tuple.matching(slab, entry), entry))
        };
        let crowd = self.crowd.iter().map(|(matching, _, entry)| (matching, entry));
        self.tuples.iter().flat_map(of).chain(crowd)
    }

    /// Finds the entry with exactly this match and rank.
    pub fn find_same(&self, slab: &Slab, matching: &Match, rank: u32) -> Option<u32> {
        let mut tuples =
            self.levels(matching).into_iter().filter_map(|level| self.at(level, matching));
        let found = tuples.find_map(|at| self.tuples[at].find_same(slab, matching, rank));
        found.or_else(|| self.crowd.find_same(matching, rank))
    }

    /// Checks whether an entry of this rank overlaps, as far as a few steps can decide.
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

    /// Adds an entry to the right tuple or list.
    fn put(&mut self, slab: &Slab, matching: &Match, entry: u32) {
        self.ordered.1 += 1;
        let levels = self.levels(matching);
        let known = levels.map(|level| self.at(level, matching));
        let same = known.iter().flatten().copied();
        let mut same = same.filter(|&at| self.tuples[at].shown(slab, matching).is_some());
        // Prefer a tuple with this match, then the first with space, then a new one with the
        // coarsest free mask.
        let at = same.next().or_else(|| {
            let (mut free, own) = (None, levels[levels.len() - 1]);
            for (level, known) in levels.iter().zip(known) {
                match known {
                    Some(at) if self.tuples[at].has_room(slab, matching) => return Some(at),
                    // If all levels have one mask, the existing tuple is full of similar entries.
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

    /// Removes an entry with this match.
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

    /// Whether to merge masks or to reorder entries.
    pub fn wants_order(&self) -> bool {
        let many_masks = self.may_merge && self.sieve.is_none() && self.tuples.len() > MASKS_PLAIN;
        many_masks || self.is_stale()
    }

    /// Marks the entries as just reordered.
    pub fn set_ordered(&mut self) {
        self.ordered = (self.entries, 0);
    }

    fn put_few_in_order(&mut self, slab: &Slab) {
        if self.wants_order() && self.entries <= ENTRIES_FEW {
            self.put_in_order(slab);
        }
    }

    /// Whether so many entries changed that the sieve passes too much, or that coarse tuples have
    /// the wrong entries.
    fn is_stale(&self) -> bool {
        let (then, since) = self.ordered;
        self.sieve.is_some() && since >= then.max(STALE_MIN)
    }

    /// Rebuilds the structure from all entries: merged, with the highest ranks first, so that they
    /// are in the coarsest tuples. Readers keep the previous structure, which does not change any
    /// more.
    fn put_in_order(&mut self, slab: &Slab) {
        let mut all: Vec<(Match, u32)> = self.matches(slab).collect();
        sort_by_rank(slab, &mut all);
        self.tuples.clear();
        self.crowd = OverflowList::default();
        self.sieve = Some(Arc::new(Prefilter::new()));
        all.iter().for_each(|(matching, entry)| self.put(slab, matching, *entry));
        self.set_ordered();
        self.changed = true;
    }

    /// Returns the masks under which a match may be found.
    fn levels(&self, matching: &Match) -> [Key; merged::LEVELS] {
        match self.sieve {
            Some(_) => levels(matching.mask()),
            None => [*matching.mask(); merged::LEVELS],
        }
    }

    fn at(&self, mask: Key, matching: &Match) -> Option<usize> {
        self.tuples.iter().position(|tuple| tuple.is_for(&mask, matching.wide_mask()))
    }

    /// Adds a tuple, if the limit permits.
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

/// Sorts entries by precedence.
pub fn sort_by_rank(slab: &Slab, all: &mut [(Match, u32)]) {
    all.sort_by(|(_, one), (_, other)| {
        let (one, other) = (slab.line(*one), slab.line(*other));
        if one.goes_before(other) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
    });
}

#[cfg(test)]
mod tests;
