//! Construction of a new structure next to the current one, a few entries with each change.
//!
//! A survey first checks whether most entries form a routing table. Then the entries are collected
//! and inserted by descending rank, so that high ranks are in the coarsest tuples. In the meantime,
//! every change applies to both structures. Readers see the new one when it is complete.
//!
//! Invariant: an entry added since the survey is in the new structure, and one removed since is
//! not.

use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

use super::{LENGTHS_MIN, ROUTES_MIN};
use crate::classifier::routes::{Routes, Shape};
use crate::classifier::store::count_moved;
use crate::classifier::tuple_space::{MASKS_PLAIN, TupleSpace};
use crate::fast::slab::Slab;
use crate::hash::Seeded;
use crate::matching::Match;

/// Number of slots that each change surveys or collects.
const COLLECTED_STEP: usize = 64;

/// Number of entries that each change inserts.
pub const INSERTED_STEP: usize = 32;

/// Maximum number of match shapes that a survey distinguishes, and of pairs of length and rank per
/// shape.
const SHAPES_MAX: usize = 32;
const KINDS_MAX: usize = 1024;

/// The entries of a table, by slot.
pub trait Entries {
    /// Returns the slot of the first entry from `from` on. If the budget is exhausted, returns the
    /// slot to continue with as an error.
    fn next(&self, from: usize, budget: &mut usize) -> Result<Option<usize>, usize>;

    /// Returns the match of the entry in a slot, if it is a wildcard match of this table.
    fn matching(&self, place: usize) -> Option<Match>;
}

/// Prefix length and rank.
type Kind = (u32, u32);

/// A structure under construction.
#[derive(Debug)]
pub struct Rebuild {
    phase: Phase,
    /// Next slot to survey or collect.
    from: usize,
    survey: MatchCounts,
    /// Rank, order of arrival and slot of entries to insert.
    waiting: BinaryHeap<(u32, u32, u32)>,
    /// Base of the arrival numbers in [`Rebuild::waiting`].
    first_arrival: Option<u32>,
    pub routes: Option<Routes>,
    pub tuples: TupleSpace,
    /// Shape and kinds of the entries for the routing table.
    accepted: Option<(Shape, HashSet<Kind, Seeded>)>,
    /// Whether the new structure is useful even without a routing table.
    is_needed: bool,
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Survey,
    Collect,
    Insert,
}

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Construction continues.
    More,
    /// The structure is complete.
    Complete,
    /// A new structure is not worthwhile.
    Useless,
}

/// Number of matches by shape, and by length and rank within each shape.
#[derive(Debug, Default)]
struct MatchCounts {
    shapes: Vec<ShapeCount>,
    entries: usize,
}

#[derive(Debug)]
struct ShapeCount {
    shape: Shape,
    count: usize,
    kinds: HashMap<Kind, usize, Seeded>,
}

impl MatchCounts {
    fn add(&mut self, matching: &Match, rank: u32, seed: u64) {
        self.entries += 1;
        let Some((shape, (_, length))) = Shape::of(matching) else { return };
        let at = self.shapes.iter().position(|it| it.shape == shape).unwrap_or_else(|| {
            let kinds = HashMap::with_hasher(Seeded(seed));
            if self.shapes.len() == SHAPES_MAX
                && let Some(least) = (0..SHAPES_MAX).min_by_key(|&at| self.shapes[at].count)
            {
                self.shapes.swap_remove(least);
            }
            self.shapes.push(ShapeCount { shape, count: 0, kinds });
            self.shapes.len() - 1
        });
        let shaped = &mut self.shapes[at];
        shaped.count += 1;
        if shaped.kinds.len() < KINDS_MAX || shaped.kinds.contains_key(&(length, rank)) {
            *shaped.kinds.entry((length, rank)).or_default() += 1;
        }
    }

    /// Returns the shape of most matches, and the lengths and ranks of its matches that form a
    /// routing table. It accepts the most frequent kinds first, because a single odd rank excludes
    /// all kinds that contradict it.
    fn accepted(&self, seed: u64) -> Option<(Shape, HashSet<Kind, Seeded>)> {
        let most = self.shapes.iter().max_by_key(|shaped| shaped.count)?;
        if 2 * most.count <= self.entries {
            return None;
        }
        let mut kinds: Vec<(usize, Kind)> =
            most.kinds.iter().map(|(kind, count)| (*count, *kind)).collect();
        kinds.sort_unstable_by_key(|(count, kind)| (std::cmp::Reverse(*count), *kind));
        let mut accepted = HashSet::with_hasher(Seeded(seed));
        let mut ranks: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        let mut total = 0;
        for (count, (length, rank)) in kinds {
            let fits = ranks.range(..length).all(|(_, (_, most))| *most < rank)
                && ranks.range(length + 1..).all(|(_, (least, _))| *least > rank);
            if fits {
                let range = ranks.entry(length).or_insert((rank, rank));
                *range = (range.0.min(rank), range.1.max(rank));
                accepted.insert((length, rank));
                total += count;
            }
        }
        let is_worth_it = total >= ROUTES_MIN / 2 && ranks.len() >= LENGTHS_MIN;
        is_worth_it.then_some((most.shape, accepted))
    }
}

impl Rebuild {
    /// Starts the construction. `is_needed`: the structure is useful even without a routing table.
    pub fn new(is_needed: bool, seed: u64) -> Rebuild {
        Rebuild {
            phase: Phase::Survey,
            from: 0,
            survey: MatchCounts::default(),
            waiting: BinaryHeap::new(),
            first_arrival: None,
            routes: None,
            tuples: TupleSpace::new(true, seed),
            accepted: None,
            is_needed,
            seed,
        }
    }

    /// Adds a new entry of the table.
    pub fn insert(&mut self, slab: &Slab, matching: &Match, rank: u32, entry: u32) {
        if self.phase == Phase::Survey {
            return;
        }
        let is_accepted = self.accepted.as_ref().is_some_and(|(wanted, kinds)| {
            let found = Shape::of(matching);
            found.is_some_and(|(shape, (_, it))| shape == *wanted && kinds.contains(&(it, rank)))
        });
        let is_route = is_accepted
            && self.routes.as_mut().is_some_and(|routes| routes.insert(matching, rank, entry));
        if !is_route {
            self.tuples.insert(slab, matching, entry);
        }
    }

    /// Removes an entry of the table.
    pub fn remove(&mut self, slab: &Slab, matching: &Match, rank: u32, entry: u32) {
        let route = self.routes.as_mut().and_then(|it| it.remove(matching, rank, entry));
        if route.is_none() && self.tuples.find_same(slab, matching, rank) == Some(entry) {
            self.tuples.remove(slab, matching, entry);
        }
    }

    /// Surveys, collects or inserts a bounded number of entries.
    pub fn advance(&mut self, slab: &Slab, entries: &dyn Entries) -> Step {
        if self.phase == Phase::Insert {
            return self.insert_waiting(slab, entries);
        }
        let mut budget = COLLECTED_STEP;
        while budget > 0 {
            match entries.next(self.from, &mut budget) {
                Ok(Some(place)) => {
                    budget = budget.saturating_sub(1);
                    self.from = place + 1;
                    self.take_note(slab, entries, place);
                }
                Err(from) => self.from = from,
                Ok(None) if self.phase == Phase::Survey => return self.decide(),
                Ok(None) => {
                    self.phase = Phase::Insert;
                    break;
                }
            }
        }
        Step::More
    }

    fn take_note(&mut self, slab: &Slab, entries: &dyn Entries, place: usize) {
        let Some(matching) = entries.matching(place) else { return };
        let line = slab.line(place as u32);
        if self.phase == Phase::Survey {
            self.survey.add(&matching, line.rank(), self.seed);
        } else {
            let middle = u32::MAX / 2;
            let first = *self.first_arrival.get_or_insert(line.arrival().wrapping_sub(middle));
            let earliest_first = !line.arrival().wrapping_sub(first);
            self.waiting.push((line.rank(), earliest_first, place as u32));
            count_moved(1);
        }
    }

    fn decide(&mut self) -> Step {
        self.accepted = self.survey.accepted(self.seed);
        if self.accepted.is_none() && !self.is_needed {
            return Step::Useless;
        }
        let entries = std::mem::take(&mut self.survey).entries;
        self.begin(TupleSpace::new(true, self.seed), entries);
        Step::More
    }

    /// Begins to collect entries for these tuples.
    fn begin(&mut self, tuples: TupleSpace, entries: usize) {
        let shape = self.accepted.as_ref().map(|(shape, _)| *shape);
        self.routes = shape.map(|shape| Routes::new(shape, self.seed));
        // The system commits this memory on first use.
        self.waiting = BinaryHeap::with_capacity(entries);
        (self.tuples, self.phase, self.from) = (tuples, Phase::Collect, 0);
    }

    fn insert_waiting(&mut self, slab: &Slab, entries: &dyn Entries) -> Step {
        for _ in 0..INSERTED_STEP {
            let Some((rank, _, place)) = self.waiting.pop() else { return self.finish() };
            let matching = entries.matching(place as usize);
            let Some(matching) = matching.filter(|_| slab.line(place).rank() == rank) else {
                continue;
            };
            let route = self.routes.as_ref().and_then(|it| it.find_same(slab, &matching, rank));
            if route.or_else(|| self.tuples.find_same(slab, &matching, rank)).is_none() {
                self.insert(slab, &matching, rank, place);
                count_moved(1);
            }
        }
        if !self.tuples.is_merged() && self.tuples.count_tables() > MASKS_PLAIN {
            let entries = self.waiting.capacity();
            self.begin(TupleSpace::merged(self.seed), entries);
        }
        Step::More
    }

    fn finish(&mut self) -> Step {
        if self.routes.as_ref().is_some_and(|routes| routes.count() < ROUTES_MIN / 2) {
            self.accepted = None;
            self.begin(TupleSpace::new(true, self.seed), self.waiting.capacity());
            return if self.is_needed { Step::More } else { Step::Useless };
        }
        self.tuples.set_ordered();
        Step::Complete
    }
}
