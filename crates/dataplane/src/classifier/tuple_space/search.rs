//! Lookup in tuples: for a single key, or for many keys with overlapping cache misses.

use std::sync::Arc;

use super::overflow::OverflowView;
use super::tuple::TupleView;
use crate::classifier::NO_ENTRY;
use crate::classifier::exact::BATCH_MAX;
use crate::fast::prefilter::{GROUPS, Prefilter};
use crate::fast::slab::Slab;
use crate::key::Key;
use crate::key::wide::Wide;

/// The tuples, for readers, which see changes of the entries in these tuples.
#[derive(Debug, Clone)]
pub struct TupleViews {
    /// By descending highest rank.
    pub(super) tuples: Arc<[TupleView]>,
    /// Determines which tuples to search for a key.
    pub(super) sieve: Option<Arc<Prefilter>>,
    pub(super) crowd: OverflowView,
}

/// Work of a lookup; it depends only on the entries and the key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookupWork {
    /// Number of hash tables or lists searched.
    pub probes: usize,
    /// Number of entries compared with the key.
    pub compared: usize,
}

/// A key to look up in a tuple.
#[derive(Debug, Clone, Copy, Default)]
struct Probe {
    hash: u64,
    tuple: u32,
    key: u32,
}

/// Maximum number of concurrent probes.
const PROBES: usize = 2 * BATCH_MAX;

impl TupleViews {
    /// Whether there are no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tuples.is_empty() && self.crowd.is_empty()
    }

    fn groups(&self, key: &Key) -> u64 {
        self.sieve.as_ref().map_or(u64::MAX, |sieve| sieve.groups(key))
    }

    /// Returns the matching entry of highest precedence, and the work to find it. `best` is a
    /// matching entry that is already known.
    pub fn find(
        &self,
        slab: &Slab,
        key: &Key,
        wide: &Wide,
        mut best: Option<u32>,
    ) -> (Option<u32>, LookupWork) {
        let (groups, mut work) = (self.groups(key), LookupWork::default());
        let ends = |best: Option<u32>, most| best.is_some_and(|best| slab.line(best).rank() > most);
        for tuple in &*self.tuples {
            if ends(best, tuple.rank_most) {
                break;
            }
            if groups >> tuple.group & 1 == 1 {
                work.probes += 1;
                let hash = tuple.hash(key, wide);
                let found = tuple.find(slab, hash, key, wide, || work.compared += 1);
                best = better(slab, best, found);
            }
        }
        for (most, bits) in &*self.crowd {
            if ends(best, *most) {
                break;
            }
            work.probes += 1;
            best = better(slab, best, bits.find(key, wide));
        }
        (best, work)
    }

    /// Finds the entry for each of `keys` (at most [`BATCH_MAX`]) with a bit in `open`; `found` has
    /// matching entries that are already known. Processes many probes together, tuple by tuple, so
    /// that the cache misses of different keys overlap.
    pub fn improve(
        &self,
        slab: &Slab,
        keys: &[Key],
        wide: &[Wide],
        mut open: u32,
        found: &mut [u32],
    ) {
        // Minimum rank of an entry that improves the result.
        let mut least = [0u32; BATCH_MAX];
        for at in ones(open) {
            least[at] = slab.get(found[at]).map_or(0, |line| line.rank());
        }
        let wide_of = |at: usize| wide.get(at).unwrap_or(&Wide::ZERO);
        let (all, members) = (open, self.members(keys, open));
        let mut probes = [Probe::default(); PROBES];
        let mut tuples = self.tuples.iter().enumerate().peekable();
        while tuples.peek().is_some() && open != 0 {
            let mut count = 0;
            while count + BATCH_MAX <= PROBES
                && let Some((number, tuple)) = tuples.next()
            {
                for at in ones(open & members[tuple.group as usize]) {
                    if least[at] > tuple.rank_most {
                        open &= !(1 << at);
                        continue;
                    }
                    let hash = tuple.hash(&keys[at], wide_of(at));
                    tuple.prefetch(hash);
                    probes[count] = Probe { hash, tuple: number as u32, key: at as u32 };
                    count += 1;
                }
            }
            let probes = &probes[..count];
            for probe in probes {
                self.tuples[probe.tuple as usize].prefetch_entries(slab, probe.hash);
            }
            for probe in probes {
                let (tuple, at) = (&self.tuples[probe.tuple as usize], probe.key as usize);
                if least[at] > tuple.rank_most {
                    continue;
                }
                let entry = tuple.find(slab, probe.hash, &keys[at], wide_of(at), || {});
                if let Some(better) = better(slab, slab_entry(found[at]), entry) {
                    (found[at], least[at]) = (better, slab.line(better).rank());
                }
            }
        }
        for (most, bits) in &*self.crowd {
            for at in ones(all) {
                if least[at] > *most {
                    continue;
                }
                let entry = bits.find(&keys[at], wide_of(at));
                if let Some(better) = better(slab, slab_entry(found[at]), entry) {
                    (found[at], least[at]) = (better, slab.line(better).rank());
                }
            }
        }
    }

    /// Returns, for each group of tuples, a bit set of the keys that may match there.
    #[inline]
    fn members(&self, keys: &[Key], open: u32) -> [u32; GROUPS] {
        let Some(sieve) = &self.sieve else { return [open; GROUPS] };
        let mut members = [0; GROUPS];
        ones(open).for_each(|at| sieve.prefetch(&keys[at]));
        for at in ones(open) {
            let mut groups = sieve.groups(&keys[at]);
            while groups != 0 {
                members[groups.trailing_zeros() as usize] |= 1 << at;
                groups &= groups - 1;
            }
        }
        members
    }
}

/// Returns the entry with the higher precedence.
#[inline]
fn better(slab: &Slab, best: Option<u32>, other: Option<u32>) -> Option<u32> {
    match (best, other) {
        (Some(one), Some(two)) => {
            Some(if slab.line(two).goes_before(slab.line(one)) { two } else { one })
        }
        (one, two) => one.or(two),
    }
}

#[inline]
fn slab_entry(found: u32) -> Option<u32> {
    (found != NO_ENTRY).then_some(found)
}

/// Returns the indexes of the set bits.
#[inline]
pub fn ones(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        bit
    })
}
