//! Many wildcard matches: those that form a routing table by longest prefix, the others in tuples.
//!
//! The search for a routing table starts at [`ROUTES_MIN`] entries and is repeated each time their
//! number has doubled. The routing table is dissolved when few of its entries are left. A new
//! structure is [built](rebuild) next to the current one, a few entries with each change.
//!
//! Invariant: an entry is either in the routing table or in the tuples; lookup results do not
//! depend on which.

use super::routes::{Routes, RoutesView};
use super::tuple_space::{LookupWork, TupleSpace, TupleViews, ones};
use super::{NO_ENTRY, Overlap, exact::BATCH_MAX};
use crate::fast::slab::Slab;
use crate::key::Key;
use crate::key::wide::Wide;
use crate::matching::Match;

mod rebuild;

pub use rebuild::Entries;
use rebuild::{Rebuild, Step};

/// Minimum number of entries to search for a routing table.
pub const ROUTES_MIN: usize = 2048;

/// With fewer entries, the routing table is dissolved.
const ROUTES_FEW: usize = 512;

/// With fewer prefix lengths, one hash table per length is as fast.
const LENGTHS_MIN: usize = 3;

/// The entries, for the writer.
#[derive(Debug)]
pub struct LargeWildcardClassifier {
    routes: Option<Routes>,
    tuples: TupleSpace,
    /// Whether the structure may be selected automatically.
    may_choose: bool,
    /// Number of entries at which to search for a routing table.
    look_at: usize,
    rebuild: Option<Box<Rebuild>>,
    /// Whether changes are staged, so that readers keep their view.
    stays: bool,
    seed: u64,
    changed: bool,
}

/// The entries, for readers.
#[derive(Debug, Clone)]
pub struct ManyView {
    routes: Option<RoutesView>,
    tuples: TupleViews,
}

impl LargeWildcardClassifier {
    /// Creates an empty classifier. `seed` is a secret for hashing. If `may_choose` is false, there
    /// is a tuple for each mask.
    pub fn new(may_choose: bool, seed: u64) -> LargeWildcardClassifier {
        LargeWildcardClassifier {
            routes: None,
            tuples: TupleSpace::new(may_choose, seed),
            may_choose,
            look_at: ROUTES_MIN,
            rebuild: None,
            stays: false,
            seed,
            changed: false,
        }
    }

    /// Returns the view for readers.
    pub fn view(&self) -> ManyView {
        ManyView { routes: self.routes.as_ref().map(Routes::view), tuples: self.tuples.views() }
    }

    /// Whether the readers' view became out of date since the last call.
    pub fn take_changed(&mut self) -> bool {
        let routes = self.routes.as_mut().is_some_and(Routes::take_changed);
        self.tuples.take_changed() | std::mem::take(&mut self.changed) | routes
    }

    /// Sets whether changes are staged, so that readers keep their view.
    pub fn set_stays(&mut self, stays: bool) {
        self.stays = stays;
        self.tuples.set_stays(stays);
        if let Some(routes) = &mut self.routes {
            routes.set_stays(stays);
        }
    }

    /// Prepares staged changes for publication, within a budget. Returns false if the budget is
    /// exhausted first.
    pub fn complete(&mut self, slab: &Slab, budget: &mut usize) -> bool {
        self.tuples.complete(slab, budget)
    }

    /// Returns the number of entries.
    pub fn count(&self) -> usize {
        self.count_routes() + self.tuples.len()
    }

    /// Returns the number of entries in the routing table.
    pub fn count_routes(&self) -> usize {
        self.routes.as_ref().map_or(0, Routes::count)
    }

    /// Returns the number of hash tables and lists for the other entries.
    pub fn count_tables(&self) -> usize {
        self.tuples.count_tables()
    }

    /// Returns the highest rank of an entry; 0 if there is none.
    pub fn rank_most(&self) -> u32 {
        self.tuples.rank_most().max(self.routes.as_ref().map_or(0, Routes::rank_most))
    }

    /// Finds the entry with exactly this match and rank.
    pub fn find_same(&self, slab: &Slab, matching: &Match, rank: u32) -> Option<u32> {
        let route = self.routes.as_ref().and_then(|it| it.find_same(slab, matching, rank));
        route.or_else(|| self.tuples.find_same(slab, matching, rank))
    }

    /// Checks whether an entry of this rank overlaps, as far as a few steps can decide.
    pub fn overlap(&self, slab: &Slab, matching: &Match, rank: u32) -> Overlap {
        let routes = self.routes.as_ref().map(|it| it.overlap(slab, matching, rank));
        routes.unwrap_or(Overlap::No).max(self.tuples.overlap(slab, matching, rank))
    }

    /// Returns all entries with their matches.
    pub fn matches<'a>(&'a self, slab: &'a Slab) -> impl Iterator<Item = (Match, u32)> + 'a {
        self.routes.iter().flat_map(Routes::matches).chain(self.tuples.matches(slab))
    }

    /// Adds an entry whose line is written.
    pub fn insert(&mut self, slab: &Slab, matching: &Match, rank: u32, entry: u32) {
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.insert(slab, matching, rank, entry);
        }
        let routes = self.routes.as_mut();
        if !routes.is_some_and(|routes| routes.insert(matching, rank, entry)) {
            self.tuples.insert(slab, matching, entry);
        }
        self.consider();
    }

    /// Removes an entry with this match and rank.
    pub fn remove(&mut self, slab: &Slab, matching: &Match, rank: u32, entry: u32) {
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.remove(slab, matching, rank, entry);
        }
        let removed = self.routes.as_mut().and_then(|it| it.remove(matching, rank, entry));
        match removed {
            Some(()) => {}
            None => self.tuples.remove(slab, matching, entry),
        }
        if let Some(routes) = self.routes.take_if(|routes| routes.count() < ROUTES_FEW) {
            routes.matches().for_each(|(matching, entry)| {
                self.tuples.insert(slab, &matching, entry);
            });
            (self.look_at, self.rebuild) = (ROUTES_MIN, None);
            self.changed = true;
        }
        self.consider();
    }

    /// Starts the construction of another structure if it may be better.
    fn consider(&mut self) {
        if !self.may_choose || self.rebuild.is_some() {
            return;
        }
        let may_have_routes = self.routes.is_none() && self.tuples.len() >= self.look_at;
        let is_stale = self.routes.as_ref().is_some_and(Routes::is_stale);
        let is_needed = is_stale || self.tuples.wants_order();
        if may_have_routes || is_needed {
            self.rebuild = Some(Box::new(Rebuild::new(is_needed, self.seed)));
        }
        if may_have_routes {
            self.look_at = 2 * self.tuples.len();
        }
    }

    /// Continues the construction of another structure. `entries` are those of the table.
    pub fn advance(&mut self, slab: &Slab, entries: &dyn Entries) {
        // Readers keep the current structure until a bundle is committed or rolled back.
        let Some(rebuild) = self.rebuild.as_mut().filter(|_| !self.stays) else { return };
        let step = rebuild.advance(slab, entries);
        if step == Step::More {
            return;
        }
        let rebuilt = self.rebuild.take().filter(|_| step == Step::Complete);
        if let Some(rebuilt) = rebuilt {
            (self.routes, self.tuples) = (rebuilt.routes, rebuilt.tuples);
            self.look_at = self.look_at.max(2 * self.tuples.len()).max(ROUTES_MIN);
            self.changed = true;
        }
    }
}

impl ManyView {
    /// Whether there are no entries in this view.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.routes.is_none() && self.tuples.is_empty()
    }

    /// Returns the entry for a key and wide fields, and the work to find it.
    pub fn find(&self, slab: &Slab, key: &Key, wide: &Wide) -> (Option<u32>, LookupWork) {
        let route = self.routes.as_ref().and_then(|routes| routes.find(key, wide));
        let (found, mut work) = self.tuples.find(slab, key, wide, route);
        work.probes += usize::from(self.routes.is_some());
        (found, work)
    }

    /// Finds the entry for each of `keys` (at most [`BATCH_MAX`]) that has none yet.
    #[inline]
    pub fn find_missing(&self, slab: &Slab, keys: &[Key], wide: &[Wide], found: &mut [u32]) {
        debug_assert!(keys.len() <= BATCH_MAX);
        let missing = found.iter().take(keys.len()).enumerate();
        let open = missing.fold(0, |set, (at, it)| set | u32::from(*it == NO_ENTRY) << at);
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
