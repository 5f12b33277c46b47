//! What the programs of one decision tree have in common: the tree, its tables, and the memory of
//! each CPU with the counters.

use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use ebpf::{MappedArray, possible_cores};
use progfe::compile::tree::{Fate, NodeId};
use progfe::executor::{CountedAt, MirrorCount};

use super::lowering::{JOINS_MAX, Lowering};
use crate::addresses::Addresses;
use crate::trie::Cells;
use crate::unsupported;

// Offsets in the memory of a CPU.
/// Not 0 while a program uses the tree.
pub(super) const RUNS_AT: i16 = 0;
/// Scratch: length of the frame as received, in bytes.
pub(super) const LENGTH_AT: i16 = 8;
/// Scratch: time in nanoseconds.
pub(super) const NOW_AT: i16 = 16;
/// Scratch: offsets of the counters of the joins that the frame passed, 8 bytes each.
pub(super) const JOINS_AT: i16 = 24;
/// The counters: those of each port, one after the other.
const COUNTS_AT: usize = JOINS_AT as usize + 8 * JOINS_MAX;

/// Bytes of a counter: frames, and bytes.
pub(super) const COUNT_BYTES: usize = 16;

/// Memory of a CPU is a multiple of a cache line.
const LINE_BYTES: usize = 64;

/// Maximum memory of all CPUs.
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// A tree in the kernel.
#[derive(Debug)]
pub(super) struct Generation {
    /// Number by which programs compare whether they may run.
    pub(super) number: u32,
    pub(super) lowering: Lowering,
    /// Map with the number of the current generation.
    pub(super) gate: RawFd,
    pub(super) memory: MappedArray,
    pub(super) cores: usize,
    pub(super) core_bytes: usize,
    /// Mirrors of bridge tables and routes, by the index of their block.
    pub(super) addresses: HashMap<u32, Arc<Addresses>>,
    pub(super) routes: HashMap<u32, Arc<Cells>>,
    ports: usize,
    places: HashMap<CountedAt, usize>,
    /// Counts that were taken, by port and counter.
    taken: Mutex<Vec<[u64; 2]>>,
}

/// Frames of a port that reached an end since the last call.
#[derive(Debug)]
pub(super) struct EndCount {
    /// Index of the ingress port.
    pub(super) from: usize,
    pub(super) fate: Fate,
    /// Bytes by which the frames became longer.
    pub(super) grown: i64,
    pub(super) frames: u64,
    pub(super) bytes: u64,
}

impl Generation {
    pub(super) fn new(
        number: u32,
        lowering: Lowering,
        gate: RawFd,
        ports: usize,
        tables: (HashMap<u32, Arc<Addresses>>, HashMap<u32, Arc<Cells>>),
    ) -> io::Result<Generation> {
        let places: HashMap<CountedAt, usize> =
            lowering.counted.iter().enumerate().map(|(place, at)| (*at, place)).collect();
        let counters = ports * (lowering.counted.len() + 1);
        let core_bytes = (COUNTS_AT + counters * COUNT_BYTES).next_multiple_of(LINE_BYTES);
        let cores = possible_cores()?;
        if core_bytes * cores > MEMORY_BYTES_MAX {
            return Err(unsupported("the program has too many paths for the fast path"));
        }
        let (addresses, routes) = tables;
        Ok(Generation {
            number,
            lowering,
            gate,
            memory: MappedArray::new(1, core_bytes * cores)?,
            cores,
            core_bytes,
            addresses,
            routes,
            ports,
            places,
            taken: Mutex::new(vec![[0; 2]; counters]),
        })
    }

    /// Returns the offset of the counter of a port at a node, in the memory of a CPU.
    pub(super) fn counter_at(&self, port: usize, node: NodeId) -> usize {
        let place = self.lowering.counts(node).and_then(|at| self.places.get(&at));
        let place = place.copied().unwrap_or(self.places.len());
        COUNTS_AT + (port * (self.places.len() + 1) + place) * COUNT_BYTES
    }

    /// Returns the offset of a counter that means nothing.
    pub(super) fn nothing_at(&self, port: usize) -> usize {
        COUNTS_AT + (port * (self.places.len() + 1) + self.places.len()) * COUNT_BYTES
    }

    /// Returns true if a program uses the tree.
    pub(super) fn runs(&self) -> bool {
        let runs = |core: usize| self.memory.double_at(core * self.core_bytes).load(Acquire) != 0;
        (0..self.cores).any(runs)
    }

    /// Returns the frames since the last call: by place, and those of each port by end.
    pub(super) fn take(&self) -> (Vec<MirrorCount>, Vec<EndCount>) {
        let (mut counts, mut ends) = (Vec::new(), Vec::new());
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, at) in self.lowering.counted.iter().enumerate() {
            let mut sum = MirrorCount { at: *at, frames: 0, bytes: 0 };
            for port in 0..self.ports {
                let counter = port * (self.places.len() + 1) + place;
                let now = [0, 8].map(|word| self.sum(COUNTS_AT + counter * COUNT_BYTES + word));
                let before = std::mem::replace(&mut taken[counter], now);
                let [frames, bytes] = [0, 1].map(|word| now[word].wrapping_sub(before[word]));
                sum.frames += frames;
                sum.bytes += bytes;
                if let (CountedAt::End(end), true) = (*at, frames > 0 || bytes > 0) {
                    let end = &self.lowering.ends[end as usize];
                    let grown = i64::from(end.change.grown) * frames as i64;
                    ends.push(EndCount { from: port, fate: end.fate, grown, frames, bytes });
                }
            }
            if sum.frames > 0 || sum.bytes > 0 {
                counts.push(sum);
            }
        }
        (counts, ends)
    }

    fn sum(&self, offset: usize) -> u64 {
        let of_core =
            |core: usize| self.memory.double_at(core * self.core_bytes + offset).load(Relaxed);
        (0..self.cores).map(of_core).fold(0, u64::wrapping_add)
    }
}
