//! Counters of an additional reader; the first reader counts in the entries' lines.
//!
//! Invariant: only one thread counts in a tally. Sums are read while it counts, and are at most one
//! batch old.

#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use packet::time::Nanos;

use super::memory::{Zero, ZeroedArray};
use super::slab;

/// Counters in a chunk.
const CHUNK: usize = 1 << 14;

/// Counters of all entries.
#[derive(Debug)]
pub struct ThreadCounters {
    chunks: Box<[OnceLock<ZeroedArray<CounterRecord>>]>,
}

#[derive(Debug, Default)]
#[repr(C, align(32))]
struct CounterRecord {
    frames: AtomicU64,
    bytes: AtomicU64,
    last_match: AtomicU32,
}

// SAFETY: it consists of numbers, for which zero is valid and which have nothing to drop.
unsafe impl Zero for CounterRecord {}

impl ThreadCounters {
    /// Creates counters for `entries_max` entries.
    pub fn new(entries_max: usize) -> ThreadCounters {
        ThreadCounters {
            chunks: (0..entries_max.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Counts frames that matched an entry at `now`.
    #[inline]
    pub fn count(&self, place: u32, frames: u64, bytes: u64, now: Nanos) {
        let chunk = self.chunks[place as usize / CHUNK].get_or_init(|| ZeroedArray::new(CHUNK));
        let count = &chunk[place as usize % CHUNK];
        count.last_match.store(slab::ticks(now), Relaxed);
        count.bytes.store(count.bytes.load(Relaxed) + bytes, Relaxed);
        count.frames.store(count.frames.load(Relaxed) + frames, Relaxed);
    }

    /// Returns the frames and bytes of an entry and the time of the last match, which is zero if
    /// there is none. `clock` is the present time (see [`Slab::clock`](slab::Slab::clock)).
    pub fn get(&self, place: u32, clock: Nanos) -> Option<(u64, u64, Nanos)> {
        let count = &self.chunks.get(place as usize / CHUNK)?.get()?[place as usize % CHUNK];
        let frames = count.frames.load(Relaxed);
        let last_match = match frames {
            0 => Nanos::ZERO,
            _ => slab::from_ticks(count.last_match.load(Relaxed), clock),
        };
        Some((frames, count.bytes.load(Relaxed), last_match))
    }

    /// Resets the counters of an entry that no reader can find yet.
    pub fn clear(&self, place: u32) {
        let chunk = self.chunks.get(place as usize / CHUNK).and_then(OnceLock::get);
        if let Some(chunk) = chunk {
            let count = &chunk[place as usize % CHUNK];
            count.frames.store(0, Relaxed);
            count.bytes.store(0, Relaxed);
            count.last_match.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel::TICK;

    #[test]
    fn each_entry_has_its_own_counters() {
        let (tally, now) = (ThreadCounters::new(CHUNK + 5), Nanos(TICK.0 * 4));
        assert_eq!(tally.get(3, now), None);
        tally.count(3, 2, 120, Nanos(TICK.0));
        tally.count(3, 1, 60, Nanos(TICK.0 * 4));
        tally.count(CHUNK as u32 + 4, 1, 70, Nanos(TICK.0));
        assert_eq!(tally.get(3, now), Some((3, 180, Nanos(TICK.0 * 4))));
        assert_eq!(tally.get(CHUNK as u32 + 4, now), Some((1, 70, Nanos(TICK.0))));
        tally.clear(3);
        assert_eq!(tally.get(3, now), Some((0, 0, Nanos::ZERO)));
    }

    #[test]
    fn match_times_after_497_days_are_not_too_early_or_too_late() {
        let tally = ThreadCounters::new(1);
        for now in [Nanos(TICK.0 << 32), Nanos::from_secs(43_000_000)] {
            tally.count(0, 1, 60, now);
            assert_eq!(tally.get(0, now).map(|counts| counts.2), Some(now));
            tally.clear(0);
            assert_eq!(tally.get(0, now), Some((0, 0, Nanos::ZERO)), "no frame matched");
        }
    }
}
