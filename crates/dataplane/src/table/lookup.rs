//! How a thread looks entries up while another one changes them.
//!
//! What both sides touch is [`Common`]. A thread that looks up has a [`Lookup`]: what it holds of the
//! tables, renewed when a batch begins, and counters that nobody else writes. Entries of hash tables
//! are seen when they come; what is compiled (sets of bits, lists, which tuples there are) is seen with
//! the next batch after [`Tables::publish`](super::Tables::publish), of all tables at once. A bundle is
//! seen like that as a whole: its changes are made apart (see [`super::undo`]).
//!
//! Invariant: a place is not used again before every thread has begun a batch, or rests, after the
//! entry there could last be found. What a thread holds is all of one state that was published.

use std::sync::atomic::{
    AtomicU16, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use packet::time::Nanos;

use super::one::TableConfig;
use crate::classifier::exact::{BATCH_MAX, ExactView};
use crate::classifier::rest::RestView;
pub use crate::classifier::tuple_space::Work;
use crate::classifier::{NOWHERE, Verdict};
use crate::fast::aside::Edition;
use crate::fast::epoch::{Epochs, Reader};
use crate::fast::published::{Held, Published};
use crate::fast::slab::{Line, Slab};
use crate::fast::tally::Tally;
use crate::instruction::Instructions;
use crate::key::Key;
use crate::key::wide::{Wide, WordSet};

/// What an entry does.
pub type Program = Arc<Instructions>;

/// Instructions by number, those of entries that there are.
pub type Programs = Vec<Program>;

/// What the threads that look entries up share with the one that changes them.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) slab: Slab,
    pub(super) programs: RwLock<Programs>,
    pub(super) epochs: Epochs,
    views: Published<Views>,
    /// [`NO_EGRESS`], or the first of the tables for frames that are about to leave.
    first_egress: AtomicU16,
    counts: Mutex<Vec<Arc<Counts>>>,
}

const NO_EGRESS: u16 = u16::MAX;

/// All tables as they were published together.
#[derive(Debug)]
pub(super) struct Views {
    tables: Box<[Arc<View>]>,
    edition: Edition,
}

/// One table as it was published last.
#[derive(Debug)]
pub(super) struct View {
    pub(super) exact: ExactView,
    pub(super) rest: RestView,
    /// Whether an exact match may rank below one of the rest.
    pub(super) ranks_mixed: bool,
    pub(super) config: TableConfig,
    /// What entries of this table and of those after it ask of a key, and which wide words.
    pub(super) asked: (Key, WordSet),
}

/// What one thread counts.
#[derive(Debug)]
struct Counts {
    tables: Box<[TableCounts]>,
    /// Where it counts entries; the first thread does so in their lines.
    tally: Option<Tally>,
}

#[derive(Debug, Default)]
struct TableCounts {
    matched: [AtomicU64; 2],
    missed: AtomicU64,
}

/// An entry's counters, summed over all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    pub(super) last_match: Nanos,
}

/// What the threads count that do not count in the entries' lines.
pub(super) struct Tallies(Vec<Arc<Counts>>);

impl Tallies {
    /// The counters of the entry at this place, whose line this is.
    #[inline]
    pub(super) fn sums(&self, line: &Line, place: u32, clock: Nanos) -> Sums {
        sums(line, place, clock, &self.0)
    }
}

/// The counters of the entry at this place, whose line this is.
#[inline]
fn sums(line: &Line, place: u32, clock: Nanos, counts: &[Arc<Counts>]) -> Sums {
    let (frames, bytes) = (line.frames(), line.bytes());
    let mut sums = Sums { frames, bytes, last_match: line.last_match(clock) };
    let tallies = counts.iter().filter_map(|counts| counts.tally.as_ref()?.get(place, clock));
    for (frames, bytes, last_match) in tallies {
        sums.frames += frames;
        sums.bytes += bytes;
        sums.last_match = sums.last_match.max(last_match);
    }
    sums
}

impl Common {
    /// Room for so many entries, and for as many that they take the place of.
    pub(super) fn new(entries_max: usize, tables: &[Arc<View>]) -> Common {
        let views = Views { tables: tables.into(), edition: Edition::default() };
        Common {
            slab: Slab::new(entries_max.saturating_mul(2)),
            programs: RwLock::default(),
            epochs: Epochs::default(),
            views: Published::new(views),
            first_egress: AtomicU16::new(NO_EGRESS),
            counts: Mutex::default(),
        }
    }

    pub(super) fn set_first_egress(&self, first: Option<u8>) {
        self.first_egress.store(first.map_or(NO_EGRESS, u16::from), Release);
    }

    pub(super) fn first_egress(&self) -> Option<u8> {
        u8::try_from(self.first_egress.load(Acquire)).ok()
    }

    /// Lets readers have tables as they are now, all by one store.
    pub(super) fn replace(&self, tables: &[Arc<View>], edition: Edition) {
        self.views.replace(Views { tables: tables.into(), edition });
    }

    /// Lets go of what readers had before.
    pub(super) fn forget(&self) {
        self.views.forget();
    }

    /// Instructions by number.
    pub(super) fn programs(&self) -> RwLockReadGuard<'_, Programs> {
        self.programs.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frames that matched in each part of a table, and frames that did not.
    pub(super) fn table_sums(&self, table: usize) -> ([u64; 2], u64) {
        let counts = self.counts();
        let tables = counts.iter().map(|counts| &counts.tables[table]);
        tables.fold(([0; 2], 0), |([exact, wildcard], missed), table| {
            let [more_exact, more_wildcard] = [0, 1].map(|at| table.matched[at].load(Relaxed));
            ([exact + more_exact, wildcard + more_wildcard], missed + table.missed.load(Relaxed))
        })
    }

    /// An entry's counters.
    pub(super) fn sums(&self, place: u32) -> Sums {
        sums(self.slab.line(place), place, self.slab.clock(), &self.counts())
    }

    /// What threads count beside the entries' lines, for reading many entries' counters.
    pub(super) fn tallies(&self) -> Tallies {
        let counts = self.counts();
        Tallies(counts.iter().filter(|counts| counts.tally.is_some()).cloned().collect())
    }

    /// Lets all threads but the first count from nothing for a new entry.
    pub(super) fn clear_tallies(&self, place: u32) {
        self.counts().iter().filter_map(|counts| counts.tally.as_ref()).for_each(|tally| {
            tally.clear(place);
        });
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Counts>>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A way to look entries up, for one more thread.
    pub(super) fn join(self: &Arc<Self>) -> Lookup {
        let mut all = self.counts();
        let tally = (!all.is_empty()).then(|| Tally::new(self.slab.capacity()));
        let reader = self.epochs.join();
        let views = self.views.hold();
        let (tables, edition) = (views.tables.clone(), views.edition);
        let counts = tables.iter().map(|_| TableCounts::default()).collect();
        let counts = Arc::new(Counts { tables: counts, tally });
        all.push(Arc::clone(&counts));
        Lookup { common: Arc::clone(self), reader, views, tables, edition, counts }
    }
}

/// For each key of a lookup its entry, or [`NOWHERE`].
pub type Found = [u32; BATCH_MAX];

/// What the first step of a lookup leaves to the others.
#[derive(Debug, Default)]
pub struct Foreseen {
    hashes: [u64; BATCH_MAX],
    /// Whether there are any.
    hashed: bool,
}

/// Where the instructions of all entries are kept.
#[derive(Debug)]
pub struct Library(Arc<Common>);

impl Library {
    /// The instructions by number; to be held for a batch at most, since entries with new ones wait for
    /// it.
    #[inline]
    pub fn open(&self) -> RwLockReadGuard<'_, Programs> {
        self.0.programs()
    }
}

/// How one thread looks entries up.
#[derive(Debug)]
pub struct Lookup {
    common: Arc<Common>,
    reader: Reader,
    views: Held<Views>,
    /// Those of what is held.
    tables: Box<[Arc<View>]>,
    edition: Edition,
    counts: Arc<Counts>,
}

impl Lookup {
    /// To be called before frames are looked up, again and again as long as more come: what was found
    /// before must not be used any more. Takes up what was published.
    #[inline]
    pub fn begin(&mut self) {
        // First the turn: what is published before the epoch that it tells is taken up below.
        self.reader.turn(&self.common.epochs);
        if self.views.renew(&self.common.views) {
            self.take_up();
        }
    }

    /// To be called when no more frames are looked up for now: what was found must not be used any
    /// more.
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

    /// Which of two successive states of the tables it sees.
    #[inline]
    pub(crate) fn edition(&self) -> Edition {
        self.edition
    }

    /// How many tables there are.
    #[inline]
    pub fn count_tables(&self) -> usize {
        self.tables.len()
    }

    /// What a table is set to do.
    #[inline]
    pub fn config(&self, table: u8) -> Option<&TableConfig> {
        self.tables.get(usize::from(table)).map(|table| &table.config)
    }

    /// The first of the tables through which frames go that are about to leave by a port.
    #[inline]
    pub fn first_egress(&self) -> Option<u8> {
        self.common.first_egress()
    }

    /// What entries of this table and of those after it ask of a key, and which wide words.
    #[inline]
    pub fn asked(&self, from: u8) -> (&Key, WordSet) {
        let (key, words) = &self.tables[usize::from(from)].asked;
        (key, *words)
    }

    /// The entry of a table for one key, or [`NOWHERE`].
    pub fn find(&self, table: u8, key: &Key, wide: &Wide) -> u32 {
        let (table, slab) = (&self.tables[usize::from(table)], &self.common.slab);
        match if table.exact.is_empty() { None } else { table.exact.find(slab, key) } {
            None => table.rest.find(slab, key, wide).unwrap_or(NOWHERE),
            Some(found) if table.ranks_mixed => table.outrank(slab, found, key, wide),
            Some(found) => found,
        }
    }

    /// What finding the entry for a key among matches with open fields takes: the same on every machine.
    pub fn work(&self, table: u8, key: &Key, wide: &Wide) -> Work {
        self.tables[usize::from(table)].rest.work(&self.common.slab, key, wide)
    }

    /// First step of a lookup of at most [`BATCH_MAX`] keys: asks for what will be read first.
    #[inline]
    pub fn foresee(&self, table: u8, keys: &[Key], foreseen: &mut Foreseen) {
        let table = &self.tables[usize::from(table)];
        foreseen.hashed = !table.exact.is_empty();
        if foreseen.hashed {
            table.exact.foresee(keys, &mut foreseen.hashes);
        }
    }

    /// Second step: asks for what will be read then.
    #[inline]
    pub fn guess(&self, table: u8, keys: &[Key], foreseen: &Foreseen, found: &mut Found) {
        let (table, slab) = (&self.tables[usize::from(table)], &self.common.slab);
        if foreseen.hashed {
            table.exact.guess(slab, &foreseen.hashes[..keys.len()], found);
        }
    }

    /// Last step: for each of the keys the entry of a table to use, or [`NOWHERE`]. `wide` holds as
    /// many, or none if no entry asks for any. Whatever happened to the table since the first
    /// step, what is found is in it now.
    #[inline]
    pub fn conclude(
        &self,
        table: u8,
        (keys, wide): (&[Key], &[Wide]),
        foreseen: &mut Foreseen,
        found: &mut Found,
    ) {
        if !foreseen.hashed {
            self.foresee(table, keys, foreseen);
        }
        let (table, slab) = (&self.tables[usize::from(table)], &self.common.slab);
        if table.exact.is_empty() {
            found.fill(NOWHERE);
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

    /// All steps at once.
    #[inline]
    pub fn lookup(&self, table: u8, keys: &[Key], wide: &[Wide], found: &mut Found) {
        let mut foreseen = Foreseen::default();
        self.foresee(table, keys, &mut foreseen);
        self.guess(table, keys, &foreseen, found);
        self.conclude(table, (keys, wide), &mut foreseen, found);
    }

    /// Counts frames that a lookup found this entry for, and says what to do with them: `None` where
    /// it found none.
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

    /// Where instructions are kept, for [`Lookup::program`].
    #[inline]
    pub fn library(&self) -> Library {
        Library(Arc::clone(&self.common))
    }

    /// The number of the instructions of an entry that a lookup found.
    #[inline]
    pub fn program(&self, found: u32) -> usize {
        self.common.slab.deed(found, self.edition).program as usize
    }

    /// The cookie of an entry that a lookup found, and whether it is a table-miss entry.
    #[inline]
    pub fn told(&self, found: u32) -> (u64, bool) {
        let deed = self.common.slab.deed(found, self.edition);
        (deed.cookie, deed.miss)
    }
}

impl View {
    /// What to use instead of an exact match, if something of the rest ranks higher.
    fn outrank(&self, slab: &Slab, found: u32, key: &Key, wide: &Wide) -> u32 {
        let Some(exact) = slab.get(found) else { return found };
        let higher = |other: &u32| slab.line(*other).rank() > exact.rank();
        self.rest.find(slab, key, wide).filter(higher).unwrap_or(found)
    }
}
