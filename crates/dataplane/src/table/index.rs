//! Indexes for non-strict selection, by the values under a mask or by cookie.
//!
//! An index is a hash table with chains of slots. It serves every filter that matches on at least
//! the bits of the index's mask. The second filter of a kind starts the construction of an index,
//! in steps of a few slots. An index that is unused for long is dropped. Memory is reserved in full
//! at creation and committed on first use, so no change waits for an index to grow.
//!
//! Invariant: a complete index holds every entry whose match has all bits of the index's mask.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::flows::Flows;
use super::{Flow, SharedProperties};
use crate::chains::Chains;
use crate::fast::slab::Slab;
use crate::flow::FlowFilter;
use crate::hash::mix;
use crate::key::Key;
use crate::key::wide::Wide;

/// Maximum number of indexes.
const INDEXES_MAX: usize = 4;

/// Number of filter kinds that are remembered until one occurs again.
const KINDS_REMEMBERED: usize = 16;

/// With fewer entries, a scan is fast enough.
const ENTRIES_MIN: usize = 512;

/// A filter for which an index returns more slots than this scans the entries in order instead.
const FEW_MAX: usize = 512;

/// Minimum number of chain heads.
const HEADS_MIN: usize = 1 << 12;

/// What an index hashes to find entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The values under these masks of key and wide fields.
    Match(Key, Wide),
    /// The bits of the cookie under this mask.
    Cookie(u64),
}

impl Kind {
    /// Returns the kind of index that serves a filter best, if any does.
    fn of(filter: &FlowFilter) -> Option<Kind> {
        let mask = filter.cookie.1;
        if mask == u64::MAX || mask != 0 && filter.matching.is_any() {
            return Some(Kind::Cookie(mask));
        }
        let matching = &filter.matching;
        let asks = !matching.is_any();
        asks.then(|| Kind::Match(*matching.mask(), *matching.wide_mask()))
    }

    /// Returns the common hash of all entries that pass a filter, if they have one.
    fn hash_of_filter(&self, filter: &FlowFilter, seed: u64) -> Option<u64> {
        match self {
            Kind::Match(mask, wide) => {
                let matching = &filter.matching;
                covers((mask, wide), (matching.mask(), matching.wide_mask()))
                    .then(|| hash((matching.value(), matching.wide_value()), (mask, wide), seed))
            }
            Kind::Cookie(mask) => {
                let (cookie, asked) = filter.cookie;
                (mask & !asked == 0).then(|| mix(cookie & mask, seed))
            }
        }
    }

    /// Returns the hash of an entry, if an index of this kind holds it.
    fn hash_of_entry(
        &self,
        slab: &Slab,
        place: u32,
        shape: &SharedProperties,
        seed: u64,
    ) -> Option<u64> {
        match self {
            Kind::Match(mask, wide) => {
                covers((mask, wide), (&shape.mask, &shape.wide_mask)).then(|| {
                    let asks_wide = *wide != Wide::ZERO;
                    let values = if asks_wide { slab.wide(place) } else { Wide::ZERO };
                    hash((&slab.line(place).key(), &values), (mask, wide), seed)
                })
            }
            Kind::Cookie(mask) => Some(mix(slab.cold(place).cookie() & mask, seed)),
        }
    }
}

/// Whether the second masks include all bits of the first ones.
fn covers((key, wide): (&Key, &Wide), (key_of, wide_of): (&Key, &Wide)) -> bool {
    key_of.and(key).is(key) && wide.0.iter().zip(wide_of.0).all(|(mask, of)| mask & !of == 0)
}

fn hash((key, wide): (&Key, &Wide), (mask, wide_mask): (&Key, &Wide), seed: u64) -> u64 {
    let hash = key.and(mask).hash(seed);
    let words = wide.0.iter().zip(wide_mask.0).filter(|(_, mask)| *mask != 0);
    words.fold(hash, |hash, (word, mask)| mix(word & mask, hash))
}

#[derive(Debug)]
struct Index {
    kind: Kind,
    chains: Chains,
    /// Slots below this one are indexed; `usize::MAX` once the index is complete.
    built: usize,
    /// Number of changes since the index last served a filter.
    unused: AtomicUsize,
}

impl Index {
    fn new(kind: Kind, places: usize) -> Index {
        let chains = Chains::new((2 * places).max(HEADS_MIN));
        Index { kind, chains, built: 0, unused: AtomicUsize::new(0) }
    }

    /// Whether the index has too few chains for its entries.
    fn is_crowded(&self) -> bool {
        self.chains.len() > 4 * self.chains.count_heads()
    }

    /// Whether the index has been unused for long.
    fn is_stale(&mut self) -> bool {
        *self.unused.get_mut() > 4 * self.chains.len().max(HEADS_MIN)
    }

    /// Returns the slots in the chain of a hash, unless there are too many.
    fn few(&self, hash: u64) -> Option<Vec<u32>> {
        let places: Vec<u32> = self.chains.chain(hash).take(FEW_MAX + 1).collect();
        (places.len() <= FEW_MAX).then_some(places)
    }

    fn is_complete(&self) -> bool {
        self.built == usize::MAX
    }
}

/// All indexes.
#[derive(Debug)]
pub(super) struct Indexes {
    all: Vec<Index>,
    /// Kinds of filters that occurred once.
    asked: VecDeque<Kind>,
    seed: u64,
}

impl Indexes {
    pub(super) fn new(seed: u64) -> Indexes {
        Indexes { all: Vec::new(), asked: VecDeque::new(), seed }
    }

    /// Returns the number of complete indexes.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.all.iter().filter(|index| index.is_complete()).count()
    }

    /// Registers the use of a filter. `entries` and `places` are the numbers of entries and slots
    /// of the tables.
    pub(super) fn want(&mut self, filter: &FlowFilter, entries: usize, places: usize) {
        let Some(kind) = Kind::of(filter) else { return };
        if entries < ENTRIES_MIN || self.all.iter().any(|index| index.kind == kind) {
            return;
        }
        if let Some(at) = self.asked.iter().position(|it| *it == kind) {
            self.asked.remove(at);
            let unused = |index: &Index| index.unused.load(Relaxed);
            if self.all.len() < INDEXES_MAX {
                self.all.push(Index::new(kind, places));
            } else if let Some(least) = self.all.iter_mut().max_by_key(|index| unused(index))
                && unused(least) > 0
            {
                *least = Index::new(kind, places);
            }
        } else {
            self.asked.truncate(KINDS_REMEMBERED - 1);
            self.asked.push_front(kind);
        }
    }

    /// Whether an index for this kind of filter is under construction.
    pub(super) fn is_building_for(&self, filter: &FlowFilter) -> bool {
        let kind = Kind::of(filter);
        self.all.iter().any(|index| Some(index.kind) == kind && !index.is_complete())
    }

    /// Continues construction, one step per slot. Returns false if the budget is exhausted before
    /// all indexes are complete.
    pub(super) fn build(&mut self, flows: &Flows, slab: &Slab, budget: &mut usize) -> bool {
        let seed = self.seed;
        let mut is_complete = true;
        for index in self.all.iter_mut().filter(|index| !index.is_complete()) {
            loop {
                match flows.next(index.built, budget) {
                    Ok(Some(_)) if *budget == 0 => is_complete = false,
                    Ok(Some(place)) => {
                        *budget -= 1;
                        index.built = place + 1;
                        let (at, flow) = (place as u32, flows.get(place));
                        let hash =
                            |flow: &Flow| index.kind.hash_of_entry(slab, at, &flow.shape, seed);
                        if let Some(hash) = flow.and_then(hash) {
                            index.chains.add(at, hash);
                        }
                        continue;
                    }
                    Ok(None) => index.built = usize::MAX,
                    Err(from) => (index.built, is_complete) = (from, false),
                }
                break;
            }
        }
        is_complete
    }

    /// Returns the slots of the entries that may pass a filter, if an index has few of them.
    pub(super) fn few(&self, filter: &FlowFilter) -> Option<Vec<u32>> {
        let complete = self.all.iter().filter(|index| index.is_complete());
        complete.into_iter().find_map(|index| {
            let few = index.few(index.kind.hash_of_filter(filter, self.seed)?);
            if few.is_some() {
                index.unused.store(0, Relaxed);
            }
            few
        })
    }

    /// Adds a new entry, or one whose cookie changed.
    pub(super) fn add(&mut self, flows: &Flows, slab: &Slab, place: u32) {
        if self.all.is_empty() {
            return;
        }
        let Some(flow) = flows.get(place as usize) else { return };
        for index in &mut self.all {
            let hash = index.kind.hash_of_entry(slab, place, &flow.shape, self.seed);
            if let Some(hash) = hash.filter(|_| (place as usize) < index.built) {
                index.chains.add(place, hash);
            }
            *index.unused.get_mut() += 1;
        }
        // Later filters start the construction of a larger index.
        if self.all.iter_mut().any(|index| index.is_stale() || index.is_crowded()) {
            self.all.retain_mut(|index| !index.is_stale() && !index.is_crowded());
        }
    }

    /// Removes an entry that is deleted or whose cookie changes.
    pub(super) fn remove(&mut self, flows: &Flows, slab: &Slab, place: u32) {
        let flow = if self.all.is_empty() { None } else { flows.get(place as usize) };
        let Some(flow) = flow else { return };
        for index in &mut self.all {
            let hash = index.kind.hash_of_entry(slab, place, &flow.shape, self.seed);
            if let Some(hash) = hash {
                index.chains.remove(place, hash);
            }
        }
    }
}
