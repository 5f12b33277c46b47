//! Memory that the programs and this process share, mapped here: changes take no system call.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use ebpf::{MappedArray, possible_cores};

use super::layout::{REWRITES_MAX, TABLES, count, cpu, entry, list, rewrite, root};
use crate::ports::PORTS_MAX;

/// The maps of a switch.
#[derive(Debug)]
pub(super) struct Memory {
    root: MappedArray,
    lists: MappedArray,
    heads: MappedArray,
    entries: MappedArray,
    counts: MappedArray,
    rewrites: MappedArray,
    ports: MappedArray,
    cpus: MappedArray,
    /// Number of chains, a power of two.
    pub(super) chains: usize,
    /// Number of slots for entries, with the unused slot 0.
    pub(super) slots: usize,
    /// Number of CPUs.
    cpu_count: usize,
}

/// Descriptors of the maps, for programs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptors {
    pub(super) root: RawFd,
    pub(super) lists: RawFd,
    pub(super) heads: RawFd,
    pub(super) entries: RawFd,
    pub(super) counts: RawFd,
    pub(super) rewrites: RawFd,
    pub(super) ports: RawFd,
    pub(super) cpus: RawFd,
}

/// Counters of an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    /// Monotonic time of the last frame in nanoseconds.
    pub(super) last_ns: u64,
}

impl Counts {
    /// Adds counters of the same flow.
    pub(super) fn add(&mut self, other: &Counts) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.last_ns = self.last_ns.max(other.last_ns);
    }
}

impl Memory {
    /// Creates the maps for this many entries.
    pub(super) fn new(entries: usize, chains: usize) -> io::Result<Memory> {
        assert!(chains.is_power_of_two() && chains >= 2, "chains are a power of two");
        let (slots, cpu_count) = (entries + 1, possible_cores()?);
        Ok(Memory {
            root: MappedArray::new(1, root::BYTES)?,
            lists: MappedArray::new(TABLES * list::LISTS, list::BYTES)?,
            heads: MappedArray::new(1, chains * 4)?,
            entries: MappedArray::new(slots, entry::BYTES)?,
            counts: MappedArray::new(slots, count::BYTES)?,
            rewrites: MappedArray::new(REWRITES_MAX, rewrite::BYTES)?,
            ports: MappedArray::new(1, PORTS_MAX * 8)?,
            cpus: MappedArray::new(cpu_count, cpu::BYTES)?,
            chains,
            slots,
            cpu_count,
        })
    }

    pub(super) fn descriptors(&self) -> Descriptors {
        Descriptors {
            root: self.root.descriptor(),
            lists: self.lists.descriptor(),
            heads: self.heads.descriptor(),
            entries: self.entries.descriptor(),
            counts: self.counts.descriptor(),
            rewrites: self.rewrites.descriptor(),
            ports: self.ports.descriptor(),
            cpus: self.cpus.descriptor(),
        }
    }

    /// Makes a state visible, and with it everything written before.
    pub(super) fn set_state(&self, state: u64) {
        self.root.double_at(root::STATE as usize).store(state, Release);
    }

    /// Makes a list of tuples the current one of a table.
    pub(super) fn set_list(&self, table: usize, number: usize) {
        self.root.double_at(root::LISTS as usize + 8 * table).store(number as u64, Release);
    }

    /// Returns a field of a list.
    pub(super) fn list_word(&self, number: usize, offset: i16) -> &AtomicU64 {
        self.lists.double_at(number * list::BYTES + offset as usize)
    }

    /// Returns the first entry of a chain, or 0.
    pub(super) fn head(&self, chain: usize) -> u32 {
        self.heads.word_at(chain * 4).load(Relaxed)
    }

    /// Sets the first entry of a chain, which is written before.
    pub(super) fn set_head(&self, chain: usize, first: u32) {
        self.heads.word_at(chain * 4).store(first, Release);
    }

    /// Returns an 8-byte field of an entry.
    pub(super) fn entry_word(&self, slot: u32, offset: i16) -> &AtomicU64 {
        self.entries.double_at(slot as usize * entry::BYTES + offset as usize)
    }

    /// Returns the next entry of a chain, or 0.
    pub(super) fn next(&self, slot: u32) -> u32 {
        self.entry_half(slot, entry::NEXT).load(Relaxed)
    }

    /// Sets the next entry of a chain, which is written before.
    pub(super) fn set_next(&self, slot: u32, next: u32) {
        self.entry_half(slot, entry::NEXT).store(next, Release);
    }

    /// Sets the action of an entry that no program can find yet.
    pub(super) fn set_action(&self, slot: u32, action: u32) {
        self.entry_half(slot, entry::ACTION).store(action, Relaxed);
    }

    fn entry_half(&self, slot: u32, offset: i16) -> &AtomicU32 {
        self.entries.word_at(slot as usize * entry::BYTES + offset as usize)
    }

    /// Returns the counters of an entry.
    pub(super) fn counts(&self, slot: u32) -> Counts {
        let read = |offset| self.count_word(slot, offset).load(Relaxed);
        Counts {
            frames: read(count::FRAMES),
            bytes: read(count::BYTES_SUM),
            last_ns: read(count::LAST),
        }
    }

    /// Resets the counters of an entry that no program can find yet.
    pub(super) fn clear_counts(&self, slot: u32) {
        for offset in [count::FRAMES, count::BYTES_SUM, count::LAST] {
            self.count_word(slot, offset).store(0, Relaxed);
        }
    }

    fn count_word(&self, slot: u32, offset: i16) -> &AtomicU64 {
        self.counts.double_at(slot as usize * count::BYTES + offset as usize)
    }

    /// Sets a rewrite that no entry uses yet.
    pub(super) fn set_rewrite(&self, number: usize, words: &[u64; rewrite::BYTES / 8]) {
        for (at, word) in words.iter().enumerate() {
            self.rewrites.double_at(number * rewrite::BYTES + at * 8).store(*word, Relaxed);
        }
    }

    /// Sets the state of a port.
    pub(super) fn set_port(&self, index: usize, state: u64) {
        self.ports.double_at(index * 8).store(state, Release);
    }

    /// Returns the oldest generation that a program may use.
    pub(super) fn oldest_in_use(&self) -> u64 {
        let used = (0..self.cpu_count).map(|at| {
            let runs = self.cpus.double_at(at * cpu::BYTES + cpu::RUNS as usize).load(Acquire);
            match runs {
                0 => u64::MAX,
                starting if starting == cpu::STARTING as u64 => 0,
                runs => runs - cpu::FIRST as u64,
            }
        });
        used.min().unwrap_or(u64::MAX)
    }

    /// Returns a counter of a port, summed over all CPUs.
    pub(super) fn port_count(&self, index: usize, counter: i32) -> u64 {
        self.cpu_count_at(cpu::PORTS as usize + index * cpu::PORT_BYTES + counter as usize)
    }

    /// Returns the numbers of frames that matched in the exact part of a table and in the other
    /// one, and of those that matched none, summed over all CPUs.
    pub(super) fn table_counts(&self, table: usize) -> ([u64; 2], u64) {
        let at = cpu::TABLES as usize + (table << cpu::TABLE_SHIFT);
        let matched = [at + 8, at].map(|at| self.cpu_count_at(at));
        (matched, self.cpu_count_at(at + cpu::MISSED as usize))
    }

    fn cpu_count_at(&self, offset: usize) -> u64 {
        let of_cpu = |at: usize| self.cpus.double_at(at * cpu::BYTES + offset).load(Relaxed);
        (0..self.cpu_count).map(of_cpu).fold(0, u64::wrapping_add)
    }
}
