//! Concurrent lookup while one thread changes the tables.
//!
//! Both sides share [`Common`]. Each lookup thread has a [`Lookup`]: a snapshot of the tables,
//! renewed at the beginning of a batch, and counters that only this thread writes. Entries of hash
//! tables are visible when they are added. Compiled structures (bit sets, lists, the set of tuples)
//! become visible for all tables together with the first batch after
//! [`Tables::publish`](super::Tables::publish). A bundle becomes visible in the same way: its
//! changes are staged (see [`super::transaction`]).
//!
//! Invariants:
//! - A slot is reused only after every thread has begun a batch or is idle since the entry there
//!   could last be found.
//! - A thread's snapshot is always one published state.

use std::sync::atomic::{
    AtomicU16, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use packet::time::Nanos;

use super::changes::FlowCounters;
use super::flow_table::TableConfig;
use crate::classifier::NO_ENTRY;
use crate::classifier::exact::{BATCH_MAX, ExactView};
pub use crate::classifier::tuple_space::LookupWork;
use crate::classifier::wildcard::RestView;
use crate::fast::epoch::{Epochs, Reader};
use crate::fast::rcu_cell::{Published, RcuGuard};
use crate::fast::slab::{EntryLine, Slab};
use crate::fast::thread_counters::ThreadCounters;
use crate::fast::verdict::Verdict;
use crate::fast::versioned::TableVersion;
use crate::instruction::Instructions;
use crate::key::Key;
use crate::key::wide::{Wide, WordSet};

/// Instructions of an entry.
pub type Program = Arc<Instructions>;

/// Instructions by number, for all installed entries.
pub type Programs = Vec<Program>;

/// State shared by lookup threads and the thread that changes the tables.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) slab: Slab,
    pub(super) programs: RwLock<Programs>,
    pub(super) epochs: Epochs,
    views: Published<Views>,
    /// [`NO_EGRESS`], or the first egress table.
    first_egress: AtomicU16,
    counts: Mutex<Vec<Arc<Counts>>>,
    /// Counters of another data plane.
    pub(super) elsewhere: OnceLock<Arc<dyn FlowCounters>>,
}

const NO_EGRESS: u16 = u16::MAX;

/// All tables as published together.
#[derive(Debug)]
pub(super) struct Views {
    tables: Box<[Arc<View>]>,
    edition: TableVersion,
}

/// One table as last published.
#[derive(Debug)]
pub(super) struct View {
    pub(super) exact: ExactView,
    pub(super) rest: RestView,
    /// Whether an exact match may rank below a wildcard match.
    pub(super) ranks_mixed: bool,
    pub(super) config: TableConfig,
    /// Bits of the key and wide words that entries of this and later tables match on.
    pub(super) asked: (Key, WordSet),
}

/// Counters of one thread.
#[derive(Debug)]
struct Counts {
    tables: Box<[TableCounts]>,
    /// Entry counters of this thread; the first thread counts in the entries' lines.
    tally: Option<ThreadCounters>,
}

#[derive(Debug, Default)]
struct TableCounts {
    matched: [AtomicU64; 2],
    missed: AtomicU64,
}

/// Counters of an entry, summed over all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CounterSums {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    pub(super) last_match: Nanos,
}

/// Counters that are not in the entries' lines: of other threads, and of another data plane.
pub(super) struct Tallies(Vec<Arc<Counts>>, Option<Arc<dyn FlowCounters>>);

impl Tallies {
    /// Returns the counters of the entry in this slot, whose line is `line`.
    #[inline]
    pub(super) fn sums(&self, line: &EntryLine, place: u32, clock: Nanos) -> CounterSums {
        sums(line, place, clock, (&self.0, self.1.as_deref()))
    }
}

/// Returns the counters of the entry in this slot, whose line is `line`.
#[inline]
fn sums(
    line: &EntryLine,
    place: u32,
    clock: Nanos,
    (counts, elsewhere): (&[Arc<Counts>], Option<&dyn FlowCounters>),
) -> CounterSums {
    let (frames, bytes) = (line.frames(), line.bytes());
    let mut sums = CounterSums { frames, bytes, last_match: line.last_match(clock) };
    let tallies = counts.iter().filter_map(|counts| counts.tally.as_ref()?.get(place, clock));
    let elsewhere = elsewhere.and_then(|counters| counters.entry(place, line.arrival()));
    for (frames, bytes, last_match) in tallies.chain(elsewhere) {
        sums.frames += frames;
        sums.bytes += bytes;
        sums.last_match = sums.last_match.max(last_match);
    }
    sums
}

impl Common {
    /// Allocates slots for `entries_max` entries and for as many that replace them.
    pub(super) fn new(entries_max: usize, tables: &[Arc<View>]) -> Common {
        let views = Views { tables: tables.into(), edition: TableVersion::default() };
        Common {
            slab: Slab::new(entries_max.saturating_mul(2)),
            programs: RwLock::default(),
            epochs: Epochs::default(),
            views: Published::new(views),
            first_egress: AtomicU16::new(NO_EGRESS),
            counts: Mutex::default(),
            elsewhere: OnceLock::new(),
        }
    }

    pub(super) fn set_first_egress(&self, first: Option<u8>) {
        self.first_egress.store(first.map_or(NO_EGRESS, u16::from), Release);
    }

    pub(super) fn first_egress(&self) -> Option<u8> {
        u8::try_from(self.first_egress.load(Acquire)).ok()
    }

    /// Publishes all tables with one store.
    pub(super) fn replace(&self, tables: &[Arc<View>], edition: TableVersion) {
        self.views.replace(Views { tables: tables.into(), edition });
    }

    /// Drops the previously published state.
    pub(super) fn forget(&self) {
        self.views.forget();
    }

    /// Returns the instructions by number.
    pub(super) fn programs(&self) -> RwLockReadGuard<'_, Programs> {
        self.programs.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the frames that matched in each part of a table, and the frames that missed.
    pub(super) fn table_sums(&self, table: usize) -> ([u64; 2], u64) {
        let counts = self.counts();
        let tables = counts.iter().map(|counts| &counts.tables[table]);
        let elsewhere = self.elsewhere.get().map(|counters| counters.table(table));
        tables.fold(elsewhere.unwrap_or_default(), |([exact, wildcard], missed), table| {
            let [more_exact, more_wildcard] = [0, 1].map(|at| table.matched[at].load(Relaxed));
            ([exact + more_exact, wildcard + more_wildcard], missed + table.missed.load(Relaxed))
        })
    }

    /// Returns an entry's counters.
    pub(super) fn sums(&self, place: u32) -> CounterSums {
        let elsewhere = self.elsewhere.get().map(|counters| &**counters);
        sums(self.slab.line(place), place, self.slab.clock(), (&self.counts(), elsewhere))
    }

    /// Returns the counters outside of the entries' lines, for reading the counters of many
    /// entries.
    pub(super) fn tallies(&self) -> Tallies {
        let counts = self.counts();
        let tallies = counts.iter().filter(|counts| counts.tally.is_some()).cloned().collect();
        Tallies(tallies, self.elsewhere.get().cloned())
    }

    /// Resets the counters of a new entry in all threads but the first.
    pub(super) fn clear_tallies(&self, place: u32) {
        self.counts().iter().filter_map(|counts| counts.tally.as_ref()).for_each(|tally| {
            tally.clear(place);
        });
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Counts>>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a lookup handle for one more thread.
    pub(super) fn join(self: &Arc<Self>) -> Lookup {
        let mut all = self.counts();
        let tally = (!all.is_empty()).then(|| ThreadCounters::new(self.slab.capacity()));
        let reader = self.epochs.join();
        let views = self.views.hold();
        let (tables, edition) = (views.tables.clone(), views.edition);
        let counts = tables.iter().map(|_| TableCounts::default()).collect();
        let counts = Arc::new(Counts { tables: counts, tally });
        all.push(Arc::clone(&counts));
        Lookup { common: Arc::clone(self), reader, views, tables, edition, counts }
    }
}

/// For each key of a lookup, its entry or [`NO_ENTRY`].
pub type FoundEntries = [u32; BATCH_MAX];

/// State that the first step of a lookup passes to the later steps.
#[derive(Debug, Default)]
pub struct PrefetchedLookup {
    hashes: [u64; BATCH_MAX],
    /// Whether `hashes` is valid.
    hashed: bool,
}

/// Store of the instructions of all entries.
#[derive(Debug)]
pub struct Library(Arc<Common>);

impl Library {
    /// Returns the instructions by number. Hold the guard for one batch at most: it blocks the
    /// installation of entries with new instructions.
    #[inline]
    pub fn open(&self) -> RwLockReadGuard<'_, Programs> {
        self.0.programs()
    }
}

/// Lookup handle of one thread.
#[derive(Debug)]
pub struct Lookup {
    common: Arc<Common>,
    reader: Reader,
    views: RcuGuard<Views>,
    /// Tables of the current snapshot.
    tables: Box<[Arc<View>]>,
    edition: TableVersion,
    counts: Arc<Counts>,
}

impl Lookup {
    /// Begins a batch and renews the snapshot. Call this before each batch of lookups. Results of
    /// earlier lookups become invalid.
    #[inline]
    pub fn begin(&mut self) {
        // Announces the epoch first: everything published before that epoch is in the snapshot
        // taken below.
        self.reader.turn(&self.common.epochs);
        if self.views.renew(&self.common.views) {
            self.take_up();
        }
    }

    /// Marks the thread as idle. Call this when no more frames are looked up for now. Results of
    /// earlier lookups become invalid.
    #[inline]
    pub fn rest(&self) {
        self.reader.leave();
    }

    #[cold]
    fn take_up(&mut self) {
        for (mine, now) in self.tables.iter_mut().zip(&self.views.tables) {
            if !Arc::ptr_eq(mine, now) {
                *mine = Arc::clone(now);
            }
        }
        self.edition = self.views.edition;
    }

    /// Returns which of two successive states of the tables this thread sees.
    #[inline]
    pub(crate) fn edition(&self) -> TableVersion {
        self.edition
    }

    /// Returns the number of tables.
    #[inline]
    pub fn count_tables(&self) -> usize {
        self.tables.len()
    }

    /// Returns a table's configuration.
    #[inline]
    pub fn config(&self, table: u8) -> Option<&TableConfig> {
        self.tables.get(usize::from(table)).map(|table| &table.config)
    }

    /// Returns the first egress table.
    #[inline]
    pub fn first_egress(&self) -> Option<u8> {
        self.common.first_egress()
    }

    /// Returns the bits of the key and the wide words that entries of this and later tables match
    /// on.
    #[inline]
    pub fn asked(&self, from: u8) -> (&Key, WordSet) {
        let (key, words) = &self.tables[usize::from(from)].asked;
        (key, *words)
    }

    /// Returns the entry of a table for one key, or [`NO_ENTRY`].
    pub fn find(&self, table: u8, key: &Key, wide: &Wide) -> u32 {
        let (table, slab) = (&self.tables[usize::from(table)], &self.common.slab);
        match if table.exact.is_empty() { None } else { table.exact.find(slab, key) } {
            None => table.rest.find(slab, key, wide).unwrap_or(NO_ENTRY),
            Some(found) if table.ranks_mixed => table.outrank(slab, found, key, wide),
            Some(found) => found,
        }
    }

    /// Returns the work of finding a key among wildcard matches; it is the same on every machine.
    pub fn work(&self, table: u8, key: &Key, wide: &Wide) -> LookupWork {
        self.tables[usize::from(table)].rest.work(&self.common.slab, key, wide)
    }

    /// First step of a lookup of at most [`BATCH_MAX`] keys: prefetches the memory that step two
    /// reads.
    #[inline]
    pub fn foresee(&self, table: u8, keys: &[Key], foreseen: &mut PrefetchedLookup) {
        let table = &self.tables[usize::from(table)];
        foreseen.hashed = !table.exact.is_empty();
        if foreseen.hashed {
            table.exact.foresee(keys, &mut foreseen.hashes);
        }
    }

    /// Second step: prefetches the memory that the last step reads.
    #[inline]
    pub fn guess(
        &self,
        table: u8,
        keys: &[Key],
        foreseen: &PrefetchedLookup,
        found: &mut FoundEntries,
    ) {
        let (table, slab) = (&self.tables[usize::from(table)], &self.common.slab);
        if foreseen.hashed {
            table.exact.guess(slab, &foreseen.hashes[..keys.len()], found);
        }
    }

    /// Last step: finds the entry of each key, or [`NO_ENTRY`]. `wide` has one element per key, or
    /// none if no entry matches on wide fields. Each entry found is in the table now, even if the
    /// table changed since the first step.
    #[inline]
    pub fn conclude(
        &self,
        table: u8,
        (keys, wide): (&[Key], &[Wide]),
        foreseen: &mut PrefetchedLookup,
        found: &mut FoundEntries,
    ) {
        if !foreseen.hashed {
            self.foresee(table, keys, foreseen);
        }
        let (table, slab) = (&self.tables[usize::from(table)], &self.common.slab);
        if table.exact.is_empty() {
            found.fill(NO_ENTRY);
        } else {
            table.exact.confirm(slab, keys, &foreseen.hashes, found);
            if table.ranks_mixed {
                for ((found, key), at) in found.iter_mut().zip(keys).zip(0..) {
                    let wide = wide.get(at).unwrap_or(&Wide::ZERO);
                    *found = table.outrank(slab, *found, key, wide);
                }
            }
        }
        if !table.rest.is_empty() {
            table.rest.find_missing(slab, keys, wide, found);
        }
    }

    /// Executes all steps of a lookup.
    #[inline]
    pub fn lookup(&self, table: u8, keys: &[Key], wide: &[Wide], found: &mut FoundEntries) {
        let mut foreseen = PrefetchedLookup::default();
        self.foresee(table, keys, &mut foreseen);
        self.guess(table, keys, &foreseen, found);
        self.conclude(table, (keys, wide), &mut foreseen, found);
    }

    /// Counts frames that matched this entry and returns its verdict. Returns `None` for a miss.
    #[inline]
    pub fn count(
        &self,
        table: u8,
        found: u32,
        frames: u64,
        bytes: u64,
        now: Nanos,
    ) -> Option<Verdict> {
        let counts = &self.counts.tables[usize::from(table)];
        let Some(line) = self.common.slab.get(found) else {
            counts.missed.store(counts.missed.load(Relaxed) + frames, Relaxed);
            return None;
        };
        match &self.counts.tally {
            None => line.count(frames, bytes, now),
            Some(tally) => tally.count(found, frames, bytes, now),
        }
        let matched = &counts.matched[line.part() as usize];
        matched.store(matched.load(Relaxed) + frames, Relaxed);
        Some(self.common.slab.verdict(line, found, self.edition))
    }

    /// Returns the store of instructions, for [`Lookup::program`].
    #[inline]
    pub fn library(&self) -> Library {
        Library(Arc::clone(&self.common))
    }

    /// Returns the program number of an entry that a lookup found.
    #[inline]
    pub fn program(&self, found: u32) -> usize {
        self.common.slab.deed(found, self.edition).program as usize
    }

    /// Returns the cookie of an entry that a lookup found, and whether it is a table-miss entry.
    #[inline]
    pub fn told(&self, found: u32) -> (u64, bool) {
        let deed = self.common.slab.deed(found, self.edition);
        (deed.cookie, deed.miss)
    }
}

impl View {
    /// Returns the wildcard match that ranks above the exact match `found`, or else `found`.
    fn outrank(&self, slab: &Slab, found: u32, key: &Key, wide: &Wide) -> u32 {
        let Some(exact) = slab.get(found) else { return found };
        let higher = |other: &u32| slab.line(*other).rank() > exact.rank();
        self.rest.find(slab, key, wide).filter(higher).unwrap_or(found)
    }
}
