//! Many matches with open fields: those that make up a routing table by the longest prefix, the others in
//! tuples.
//!
//! Whether there is a routing table is looked into when there are [`ROUTES_MIN`] entries, and again each
//! time there are twice as many; it goes when few are left of it.
//!
//! Invariant: an entry is in the routing table or in the tuples; which, does not change what is found.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::routes::{Routes, RoutesView, Shape};
use super::tuple_space::{TupleSpace, TupleViews, Work, ones};
use super::{NOWHERE, exact::BATCH_MAX};
use crate::fast::slab::Slab;
use crate::hash::Seeded;
use crate::key::Key;
use crate::key::wide::Wide;
use crate::matching::Match;

/// Least entries of a routing table when it begins.
pub const ROUTES_MIN: usize = 2048;

/// With fewer it ends.
const ROUTES_FEW: usize = 512;

/// With fewer lengths of prefixes, hashing for each is as quick.
const LENGTHS_MIN: usize = 3;

/// The entries, for who changes them.
#[derive(Debug)]
pub struct Many {
    routes: Option<Routes>,
    tuples: TupleSpace,
    /// Whether structures may be chosen.
    may_choose: bool,
    /// With so many entries it is looked into whether they are a routing table.
    look_at: usize,
    seed: u64,
    changed: bool,
}

/// The entries, for who looks them up.
#[derive(Debug, Clone)]
pub struct ManyView {
    routes: Option<RoutesView>,
    tuples: TupleViews,
}

impl Many {
    /// No entries. `seed` is a secret for hashing. With `may_choose` false there is a tuple for each
    /// mask.
    pub fn new(may_choose: bool, seed: u64) -> Many {
        let tuples = TupleSpace::new(may_choose, seed);
        Many { routes: None, tuples, may_choose, look_at: ROUTES_MIN, seed, changed: false }
    }

    /// What readers are to hold of it.
    pub fn view(&self) -> ManyView {
        ManyView { routes: self.routes.as_ref().map(Routes::view), tuples: self.tuples.views() }
    }

    /// Whether what readers hold became out of date since this was last asked.
    pub fn take_changed(&mut self) -> bool {
        let routes = self.routes.as_mut().is_some_and(Routes::take_changed);
        self.tuples.take_changed() | std::mem::take(&mut self.changed) | routes
    }

    /// Whether readers are to go on with what they hold whatever is changed from now on.
    pub fn set_stays(&mut self, stays: bool) {
        self.tuples.set_stays(stays);
        if let Some(routes) = &mut self.routes {
            routes.set_stays(stays);
        }
    }

    /// How many entries it holds.
    pub fn count(&self) -> usize {
        self.count_routes() + self.tuples.len()
    }

    /// How many of them are in a routing table.
    pub fn count_routes(&self) -> usize {
        self.routes.as_ref().map_or(0, Routes::count)
    }

    /// How many hash tables and lists the others are in.
    pub fn count_tables(&self) -> usize {
        self.tuples.count_tables()
    }

    /// The highest rank of an entry; 0 if there is none.
    pub fn rank_most(&self) -> u32 {
        self.tuples.rank_most().max(self.routes.as_ref().map_or(0, Routes::rank_most))
    }

    /// The entry with this very match and rank.
    pub fn find_same(&self, slab: &Slab, matching: &Match, rank: u32) -> Option<u32> {
        let route = self.routes.as_ref().and_then(|it| it.find_same(slab, matching, rank));
        route.or_else(|| self.tuples.find_same(slab, matching, rank))
    }

    /// Whether an entry of this rank could match the same frame.
    pub fn overlaps(&self, slab: &Slab, matching: &Match, rank: u32) -> bool {
        self.routes.as_ref().is_some_and(|it| it.overlaps(slab, matching, rank))
            || self.tuples.overlaps(slab, matching, rank)
    }

    /// All its entries, each with its match.
    pub fn matches<'a>(&'a self, slab: &'a Slab) -> impl Iterator<Item = (Match, u32)> + 'a {
        self.routes.iter().flat_map(Routes::matches).chain(self.tuples.matches(slab))
    }

    /// Adds an entry whose line is written.
    pub fn insert(&mut self, slab: &Slab, matching: &Match, rank: u32, entry: u32) {
        if let Some(routes) = &mut self.routes
            && routes.insert(matching, rank, entry)
        {
            return;
        }
        self.tuples.insert(slab, matching, entry);
        if self.may_choose && self.routes.is_none() && self.tuples.len() >= self.look_at {
            self.look_at = 2 * self.tuples.len();
            self.find_routes(slab);
        }
    }

    /// Removes an entry of this match and rank, which is in here.
    pub fn remove(&mut self, slab: &Slab, matching: &Match, rank: u32, entry: u32) {
        let removed = self.routes.as_mut().and_then(|it| it.remove(matching, rank, entry));
        match removed {
            Some(()) => {}
            None => self.tuples.remove(slab, matching, entry),
        }
        if let Some(routes) = self.routes.take_if(|routes| routes.count() < ROUTES_FEW) {
            routes.matches().for_each(|(matching, entry)| {
                self.tuples.insert(slab, &matching, entry);
            });
            self.look_at = ROUTES_MIN;
            self.changed = true;
        }
    }

    /// Makes a routing table of the entries of the most frequent shape, if they are one.
    fn find_routes(&mut self, slab: &Slab) {
        let mut shapes: HashMap<Shape, usize, Seeded> = HashMap::with_hasher(Seeded(self.seed));
        for (matching, _) in self.tuples.matches(slab) {
            if let Some((shape, _)) = Shape::of(&matching) {
                *shapes.entry(shape).or_default() += 1;
            }
        }
        let most = shapes.iter().find(|(_, count)| 2 * **count > self.tuples.len());
        let Some((shape, _)) = most else { return };
        let mut routes = Routes::new(*shape, self.seed);
        let mut others = Vec::new();
        let mut all: Vec<(Match, u32)> = self.tuples.matches(slab).collect();
        // Those of the ranks that most have first: one odd rank keeps all out that it contradicts.
        let kind = |(matching, entry): &(Match, u32)| {
            (Shape::of(matching).map_or(0, |(_, (_, length))| length), slab.line(*entry).rank())
        };
        let mut kinds: HashMap<(u32, u32), usize, Seeded> = HashMap::with_hasher(Seeded(self.seed));
        all.iter().for_each(|it| *kinds.entry(kind(it)).or_default() += 1);
        all.sort_by_cached_key(|it| (Reverse(kinds[&kind(it)]), it.1));
        for (matching, entry) in all {
            if !routes.insert(&matching, slab.line(entry).rank(), entry) {
                others.push((matching, entry));
            }
        }
        if routes.count() < ROUTES_MIN / 2 || routes.count_lengths() < LENGTHS_MIN {
            return;
        }
        let mut tuples = TupleSpace::new(true, self.seed);
        others.iter().for_each(|(matching, entry)| tuples.insert(slab, matching, *entry));
        (self.routes, self.tuples, self.changed) = (Some(routes), tuples, true);
    }
}

impl ManyView {
    /// Whether there are no entries, as far as the view tells.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.routes.is_none() && self.tuples.is_empty()
    }

    /// The entry to use for a key and wide fields, and what it took to find it.
    pub fn find(&self, slab: &Slab, key: &Key, wide: &Wide) -> (Option<u32>, Work) {
        let route = self.routes.as_ref().and_then(|routes| routes.find(key, wide));
        let (found, mut work) = self.tuples.find(slab, key, wide, route);
        work.probes += usize::from(self.routes.is_some());
        (found, work)
    }

    /// For each of `keys` (at most [`BATCH_MAX`]) without an entry, the entry to use.
    #[inline]
    pub fn find_missing(&self, slab: &Slab, keys: &[Key], wide: &[Wide], found: &mut [u32]) {
        debug_assert!(keys.len() <= BATCH_MAX);
        let missing = found.iter().take(keys.len()).enumerate();
        let open = missing.fold(0, |set, (at, it)| set | u32::from(*it == NOWHERE) << at);
        if let Some(routes) = &self.routes {
            routes.find_batch(slab, keys, wide, open, found);
        }
        if !self.tuples.is_empty() {
            self.tuples.improve(slab, keys, wide, open, found);
        }
        debug_assert!(ones(open).all(|at| at < keys.len()));
    }
}

#[cfg(test)]
mod tests;
