//! Fast path data of each entry: one cache line, in a slot that never changes.
//!
//! Lines are allocated in chunks on demand, so that a line never moves and a small table needs
//! little memory. The thread that changes tables writes a line before anything refers to it. Lookup
//! threads read it and count in it.
//!
//! Ranks are below 2^29.
//!
//! Invariant: only one thread counts in a line; while a line can be found, its key and its part do
//! not change.

#![allow(unsafe_code)]

use std::sync::OnceLock;

use packet::time::Nanos;

#[cfg(not(loom))]
use super::memory::Zero;
use super::memory::{Array, row};
use super::prefetch;
use super::sync::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use super::versioned::{EntryOutcome, PreviousVersion, TableVersion};
use crate::fast::verdict::Verdict;
use crate::flow::Part;
use crate::key::wide::{self, Wide};
use crate::key::{Key, WORDS};
use crate::wheel::TICK;

/// Lines in a chunk: 4 MiB.
const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = if cfg!(loom) { 1 } else { 16 };

/// Entries in a chunk of the wide fields.
const WIDE_CHUNK: usize = if cfg!(loom) { 2 } else { 1 << 12 };

/// Bit in the rank of a wildcard match.
const WILDCARD: u32 = 1 << 31;

/// The lines.
#[derive(Debug)]
pub struct Slab {
    chunks: Box<[OnceLock<Array<EntryLine>>]>,
    cold: Box<[OnceLock<Array<EntryColdData>>]>,
    /// Values of wide fields. Few entries have them, so these chunks are smaller and allocated on
    /// demand.
    wide: Box<[OnceLock<Array<WideLine>>]>,
    /// Masks of entries in merged tuples.
    masks: Box<[OnceLock<Array<MaskLine>>]>,
    /// Previous actions of entries that are being changed.
    aside: Box<[OnceLock<Array<PreviousVersion>>]>,
    /// The latest time from the control plane, in nanoseconds. Lines store the low 32 bits of a
    /// time; this value supplies the others.
    clock: AtomicU64,
}

/// One entry.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct EntryLine {
    key: [AtomicU64; WORDS],
    frames: AtomicU64,
    bytes: AtomicU64,
    /// Time of the last match in ticks, rounded up.
    last_match: AtomicU32,
    verdict: AtomicU32,
    /// Rank, part, and edition marks.
    rank: AtomicU32,
    /// Order of arrival, for entries of the same rank.
    arrival: AtomicU32,
}

/// Data of an entry that only some frames need.
#[derive(Debug, Default)]
#[repr(C, align(16))]
pub struct EntryColdData {
    cookie: AtomicU64,
    program: AtomicU32,
    miss: AtomicU32,
}

/// The values of the wide fields of one entry.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct WideLine([AtomicU64; wide::WORDS]);

/// The key mask of one entry.
#[derive(Debug, Default)]
#[repr(C, align(32))]
struct MaskLine([AtomicU64; WORDS]);

// SAFETY: it consists of numbers, for which zero is valid and which have nothing to drop.
#[cfg(not(loom))]
unsafe impl Zero for EntryLine {}
// SAFETY: as above.
#[cfg(not(loom))]
unsafe impl Zero for EntryColdData {}
// SAFETY: as above.
#[cfg(not(loom))]
unsafe impl Zero for WideLine {}
// SAFETY: as above.
#[cfg(not(loom))]
unsafe impl Zero for MaskLine {}

/// Maximum number of ticks (31 days) that a match may be later than the slab's clock.
const AHEAD: u64 = 1 << 28;

/// Converts a time to ticks, rounded up. Only the low 32 bits are stored.
#[inline]
pub(super) fn ticks(now: Nanos) -> u32 {
    now.0.div_ceil(TICK.0) as u32
}

/// Returns the latest time with these low 32 bits that is at most [`AHEAD`] after the clock.
pub(super) fn from_ticks(ticks: u32, clock: Nanos) -> Nanos {
    let latest = clock.0 / TICK.0 + AHEAD;
    let age = (latest as u32).wrapping_sub(ticks);
    Nanos(latest.saturating_sub(age.into()).saturating_mul(TICK.0))
}

impl Slab {
    /// Creates a slab for `lines_max` lines.
    pub fn new(lines_max: usize) -> Slab {
        let lines_max = lines_max.min(1 << u32::BITS);
        Slab {
            chunks: (0..lines_max.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect(),
            cold: (0..lines_max.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect(),
            wide: (0..lines_max.div_ceil(WIDE_CHUNK)).map(|_| OnceLock::new()).collect(),
            masks: (0..lines_max.div_ceil(WIDE_CHUNK)).map(|_| OnceLock::new()).collect(),
            aside: (0..lines_max.div_ceil(WIDE_CHUNK)).map(|_| OnceLock::new()).collect(),
            clock: AtomicU64::new(0),
        }
    }

    /// Sets the clock for reading the times in lines. It never goes back.
    pub fn set_clock(&self, now: Nanos) {
        if now > self.clock() {
            self.clock.store(now.0, Relaxed);
        }
    }

    /// Returns the latest time that was passed to [`Slab::set_clock`].
    pub fn clock(&self) -> Nanos {
        Nanos(self.clock.load(Relaxed))
    }

    /// Allocates the line in slot `place`, which is below the capacity.
    pub fn reserve(&self, place: u32) {
        let chunk = place as usize >> CHUNK_BITS;
        self.chunks[chunk].get_or_init(|| row(CHUNK));
        self.cold[chunk].get_or_init(|| row(CHUNK));
    }

    /// Returns the line in a slot, if the slot is or was in use.
    #[inline]
    pub fn get(&self, place: u32) -> Option<&EntryLine> {
        let chunk = self.chunks.get(place as usize >> CHUNK_BITS)?.get()?;
        chunk.get(place as usize & (CHUNK - 1))
    }

    /// Returns the line in a slot that is or was in use.
    #[inline]
    pub fn line(&self, place: u32) -> &EntryLine {
        self.get(place).expect("an allocated slot has a line")
    }

    /// Returns the cold data of the entry in a slot that is or was in use.
    #[inline]
    pub fn cold(&self, place: u32) -> &EntryColdData {
        let chunk = self.cold[place as usize >> CHUNK_BITS].get();
        &chunk.expect("an allocated slot has cold data")[place as usize & (CHUNK - 1)]
    }

    /// Returns the number of slots.
    pub fn capacity(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// Writes the values of the wide fields of the entry in a slot.
    pub fn set_wide(&self, place: u32, values: &Wide) {
        let chunk = self.wide[place as usize / WIDE_CHUNK].get_or_init(|| row(WIDE_CHUNK));
        for (word, value) in chunk[place as usize % WIDE_CHUNK].0.iter().zip(values.0) {
            word.store(value, Relaxed);
        }
    }

    /// Returns the last written values of the wide fields in a slot, or zero.
    pub fn wide(&self, place: u32) -> Wide {
        let chunk = self.wide.get(place as usize / WIDE_CHUNK).and_then(OnceLock::get);
        chunk.map_or(Wide::ZERO, |chunk| {
            let line = &chunk[place as usize % WIDE_CHUNK];
            Wide(std::array::from_fn(|word| line.0[word].load(Relaxed)))
        })
    }

    /// Writes the mask of the entry in a slot.
    pub fn set_mask(&self, place: u32, mask: &Key) {
        let chunk = self.masks[place as usize / WIDE_CHUNK].get_or_init(|| row(WIDE_CHUNK));
        for (word, bits) in chunk[place as usize % WIDE_CHUNK].0.iter().zip(mask.0) {
            word.store(bits, Relaxed);
        }
    }

    /// Returns the last written mask in a slot, or zero.
    #[inline]
    pub fn mask(&self, place: u32) -> Key {
        let line = self.mask_line(place);
        line.map_or(Key::ZERO, |line| Key(std::array::from_fn(|word| line.0[word].load(Relaxed))))
    }

    /// Prefetches the mask in a slot.
    #[inline]
    pub fn prefetch_mask(&self, place: u32) {
        if let Some(line) = self.mask_line(place) {
            prefetch::read(line);
        }
    }

    #[inline]
    fn mask_line(&self, place: u32) -> Option<&MaskLine> {
        let chunk = self.masks.get(place as usize / WIDE_CHUNK)?.get()?;
        chunk.get(place as usize % WIDE_CHUNK)
    }

    /// Stores the actions of an entry for readers of this edition, so that it may be changed.
    pub fn save_previous_version(&self, place: u32, edition: TableVersion) {
        let chunk = self.aside[place as usize / WIDE_CHUNK].get_or_init(|| row(WIDE_CHUNK));
        let (line, cold) = (self.line(place), self.cold(place));
        let deed = EntryOutcome { verdict: line.verdict(), ..cold.deed() };
        chunk[place as usize % WIDE_CHUNK].keep(deed, &line.rank, edition);
    }

    /// Removes the mark of an entry: no reader uses an earlier edition any more.
    pub fn drop_previous_version(&self, place: u32) {
        let rank = &self.line(place).rank;
        rank.store(rank.load(Relaxed) & !TableVersion::MARKS, Relaxed);
    }

    /// Returns the verdict of the entry in a slot in an edition.
    #[inline]
    pub fn verdict(&self, line: &EntryLine, place: u32, edition: TableVersion) -> Verdict {
        let mut verdict = line.verdict.load(Acquire);
        if line.is_marked(edition) {
            verdict = self.verdict_aside(place);
        }
        Verdict::unpack(verdict)
    }

    /// Returns the actions of the entry in a slot in an edition, without a valid verdict.
    #[inline]
    pub fn deed(&self, place: u32, edition: TableVersion) -> EntryOutcome {
        let deed = self.cold(place).deed();
        fence(Acquire);
        match self.line(place).is_marked(edition) {
            false => deed,
            true => self.aside(place).get(),
        }
    }

    #[cold]
    #[inline(never)]
    fn verdict_aside(&self, place: u32) -> u32 {
        self.aside(place).verdict()
    }

    fn aside(&self, place: u32) -> &PreviousVersion {
        let chunk = self.aside[place as usize / WIDE_CHUNK].get();
        &chunk.expect("a marked entry has data aside")[place as usize % WIDE_CHUNK]
    }

    /// Prefetches the line in a slot.
    #[inline]
    pub fn prefetch(&self, place: u32) {
        if let Some(line) = self.get(place) {
            prefetch::read(line);
        }
    }
}

/// Contents of an entry's line at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntrySnapshot {
    /// The values of the match.
    pub key: Key,
    /// Number of matched frames.
    pub frames: u64,
    /// Number of matched bytes without frame check sequence.
    pub bytes: u64,
    /// Time of the last match, or of the installation; up to one [`TICK`] too late.
    pub last_match: Nanos,
    /// Precomputed verdict of the instructions.
    pub verdict: Verdict,
    /// The rank.
    pub rank: u32,
    /// The part of the table.
    pub part: Part,
    /// Order of arrival: among equal ranks, the earlier entry wins.
    pub arrival: u32,
}

impl EntryLine {
    /// Writes all fields.
    pub fn set(&self, picture: &EntrySnapshot) {
        for (word, value) in self.key.iter().zip(picture.key.0) {
            word.store(value, Relaxed);
        }
        self.set_counts(picture.frames, picture.bytes);
        self.touch(picture.last_match);
        self.set_verdict(picture.verdict);
        let part = if picture.part == Part::Wildcard { WILDCARD } else { 0 };
        self.rank.store(picture.rank | part, Relaxed);
        self.arrival.store(picture.arrival, Relaxed);
    }

    /// Reads all fields. `clock` is the present time (see [`Slab::clock`]).
    pub fn picture(&self, clock: Nanos) -> EntrySnapshot {
        EntrySnapshot {
            key: self.key(),
            frames: self.frames(),
            bytes: self.bytes(),
            last_match: self.last_match(clock),
            verdict: self.verdict(),
            rank: self.rank(),
            part: self.part(),
            arrival: self.arrival(),
        }
    }

    /// Returns the values of the match.
    #[inline]
    pub fn key(&self) -> Key {
        Key(std::array::from_fn(|word| self.key[word].load(Relaxed)))
    }

    /// Whether this is the entry's key.
    #[inline]
    pub fn has_key(&self, key: &Key) -> bool {
        let differ = |word: usize| self.key[word].load(Relaxed) ^ key.0[word];
        (differ(0) | differ(1)) | (differ(2) | differ(3)) == 0
    }

    /// Returns the number of matched frames.
    pub fn frames(&self) -> u64 {
        self.frames.load(Relaxed)
    }

    /// Returns the number of matched bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Sets both counters.
    pub fn set_counts(&self, frames: u64, bytes: u64) {
        self.frames.store(frames, Relaxed);
        self.bytes.store(bytes, Relaxed);
    }

    /// Counts frames that matched at `now`.
    #[inline]
    pub fn count(&self, frames: u64, bytes: u64, now: Nanos) {
        self.frames.store(self.frames.load(Relaxed) + frames, Relaxed);
        self.bytes.store(self.bytes.load(Relaxed) + bytes, Relaxed);
        self.touch(now);
    }

    /// Returns the time of the last match.
    pub fn last_match(&self, clock: Nanos) -> Nanos {
        from_ticks(self.last_match.load(Relaxed), clock)
    }

    /// Sets the time of the last match.
    #[inline]
    pub fn touch(&self, now: Nanos) {
        self.last_match.store(ticks(now), Relaxed);
    }

    /// Returns the verdict.
    #[inline]
    pub fn verdict(&self) -> Verdict {
        Verdict::unpack(self.verdict.load(Relaxed))
    }

    /// Sets the verdict.
    pub fn set_verdict(&self, verdict: Verdict) {
        self.verdict.store(verdict.pack(), Release);
    }

    /// Whether the key under `mask` is the entry's key, which is zero outside of the mask.
    #[inline]
    pub fn fits(&self, key: &Key, mask: &Key) -> bool {
        let differ = |word: usize| self.key[word].load(Relaxed) ^ (key.0[word] & mask.0[word]);
        (differ(0) | differ(1)) | (differ(2) | differ(3)) == 0
    }

    /// Returns the order of arrival.
    #[inline]
    pub fn arrival(&self) -> u32 {
        self.arrival.load(Relaxed)
    }

    /// Whether this entry has precedence over another one: a higher rank, or an earlier arrival.
    #[inline]
    pub fn goes_before(&self, other: &EntryLine) -> bool {
        let (rank, theirs) = (self.rank(), other.rank());
        rank > theirs || rank == theirs && (self.arrival().wrapping_sub(other.arrival()) as i32) < 0
    }

    /// Returns the rank.
    #[inline]
    pub fn rank(&self) -> u32 {
        self.rank.load(Relaxed) & !(WILDCARD | TableVersion::MARKS)
    }

    /// Whether the actions in this edition are stored separately.
    #[inline]
    fn is_marked(&self, edition: TableVersion) -> bool {
        self.rank.load(Relaxed) & edition.mark != 0
    }

    /// Returns the part of the table.
    #[inline]
    pub fn part(&self) -> Part {
        if self.rank.load(Relaxed) & WILDCARD == 0 { Part::Exact } else { Part::Wildcard }
    }
}

impl EntryColdData {
    fn deed(&self) -> EntryOutcome {
        let (cookie, program, miss) = (self.cookie(), self.program(), self.is_miss());
        EntryOutcome { verdict: Verdict::Program, program, cookie, miss }
    }

    /// Returns the cookie.
    pub fn cookie(&self) -> u64 {
        self.cookie.load(Relaxed)
    }

    /// Sets the cookie.
    pub fn set_cookie(&self, cookie: u64) {
        self.cookie.store(cookie, Relaxed);
    }

    /// Returns the program number.
    #[inline]
    pub fn program(&self) -> u32 {
        self.program.load(Acquire)
    }

    /// Sets the program number.
    pub fn set_program(&self, number: u32) {
        self.program.store(number, Release);
    }

    /// Whether this is a table-miss entry.
    #[inline]
    pub fn is_miss(&self) -> bool {
        self.miss.load(Relaxed) != 0
    }

    /// Sets whether this is a table-miss entry.
    pub fn set_miss(&self, miss: bool) {
        self.miss.store(miss.into(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_fills_a_cache_line_and_round_trips() {
        assert_eq!((size_of::<EntryLine>(), align_of::<EntryLine>()), (64, 64));
        let slab = Slab::new(CHUNK + 1);
        assert!(slab.get(0).is_none());
        for (place, part) in [(0, Part::Exact), (CHUNK as u32, Part::Wildcard)] {
            slab.reserve(place);
            for verdict in [Verdict::Drop, Verdict::Output(65_535), Verdict::List, Verdict::Program]
            {
                let picture = EntrySnapshot {
                    key: Key([1, 2, 3, u64::MAX]),
                    frames: 5,
                    bytes: 6,
                    last_match: Nanos(TICK.0 * 7),
                    verdict,
                    rank: 1 << 16,
                    part,
                    arrival: 9,
                };
                slab.line(place).set(&picture);
                assert_eq!(slab.line(place).picture(Nanos::ZERO), picture);
                assert!(slab.line(place).has_key(&picture.key));
                assert!(!slab.line(place).has_key(&Key([1, 2, 3, 4])));
            }
        }
        assert!(slab.get(2 * CHUNK as u32).is_none());
        let values = Wide(std::array::from_fn(|word| word as u64 + 1));
        assert_eq!(slab.wide(CHUNK as u32), Wide::ZERO);
        slab.set_wide(CHUNK as u32, &values);
        assert_eq!((slab.wide(CHUNK as u32), slab.wide(0)), (values, Wide::ZERO));
        assert_eq!(slab.mask(CHUNK as u32), Key::ZERO);
        slab.set_mask(CHUNK as u32, &Key([1, 2, 3, 4]));
        assert_eq!((slab.mask(CHUNK as u32), slab.mask(0)), (Key([1, 2, 3, 4]), Key::ZERO));
    }

    #[test]
    fn of_equal_ranks_the_earlier_entry_wins_also_when_numbers_wrap() {
        let line = |rank, arrival| {
            let line = EntryLine::default();
            line.rank.store(rank | WILDCARD, Relaxed);
            line.arrival.store(arrival, Relaxed);
            line
        };
        assert!(line(2, 9).goes_before(&line(1, 3)));
        assert!(!line(1, 3).goes_before(&line(2, 9)));
        assert!(line(1, 3).goes_before(&line(1, 4)));
        assert!(line(1, u32::MAX).goes_before(&line(1, 0)));
        assert!(!line(1, 3).goes_before(&line(1, 3)));
    }

    #[test]
    fn the_time_of_the_last_match_is_never_too_early() {
        let line = EntryLine::default();
        // The last ones are at least 497 days after the start: 2^32 ticks.
        let (wrap, late) = (TICK.0 << 32, Nanos::from_secs(43_000_000).0);
        let early = [0, 1, TICK.0 - 1, TICK.0, TICK.0 + 1, 123_456_789_012];
        for now in early.into_iter().chain([wrap - 1, wrap, wrap + 1, late]) {
            line.count(1, 60, Nanos(now));
            let reported = line.last_match(Nanos(now)).0;
            assert!(reported >= now && reported < now + TICK.0, "{now} is reported as {reported}");
        }
        assert_eq!((line.frames(), line.bytes()), (10, 600));
    }
}
