//! Longest-prefix match for addresses of up to 128 bits.
//!
//! Arrays with strides of 16 bits and then 8 each: "DIR-24-8" (P. Gupta, S. Lin and N. McKeown,
//! "Routing lookups in hardware at memory access speeds", INFOCOM 1998). The first level is split
//! in two, so that few prefixes need little memory, and there are as many further levels as IPv6
//! needs. Each cell has the result itself (leaf pushing). One thread changes only the cells of a
//! prefix, in place; any number of others look up concurrently.
//!
//! To publish many changes together, they are made in a staged version of the trie
//! ([`Trie::part`]). It shares nodes with the previous version and copies those that it changes.
//! After J. Driscoll et al., "Making data structures persistent" (STOC 1986): path copying.
//!
//! Invariants:
//! - A cell without a lower level has the entry of the longest prefix that covers all its
//!   addresses.
//! - A level is written before a cell refers to it. It is never removed from a trie with readers:
//!   large removals create a new trie, or use a staged version.
//! - Neither of two versions changes shared nodes. Nodes that only a discarded version has are
//!   reused.

#![allow(unsafe_code)]

use std::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::memory::{Zero, ZeroedArray};
use super::prefetch;

/// Maximum number of entries: their numbers are below this.
pub const ENTRIES_MAX: u32 = BELOW - 1;

/// Maximum number of nodes of one version: 256 MiB. Memory is allocated in chunks of 4 MiB.
pub const NODES_MAX: usize = 1 << 18;

/// Maximum number of addresses in one batch.
const BATCH: usize = 32;

/// Maximum number of levels of an address.
const LEVELS_MAX: usize = 1 + ((Address::BITS - TOP_BITS) / NODE_BITS) as usize;

const TOP_BITS: u32 = 16;
const NODE_BITS: u32 = 8;
const NODE_CELLS: usize = 1 << NODE_BITS;
/// Nodes in a chunk of memory.
const CHUNK: usize = 1 << 12;
/// Bit of a cell that refers to a node. Otherwise, a cell has an entry's number plus one, or 0.
const BELOW: u32 = 1 << 31;

/// A cell.
#[derive(Debug, Default)]
#[repr(transparent)]
struct Cell(AtomicU32);

/// The cells of addresses that share all bits so far but the last eight.
#[derive(Debug)]
#[repr(C, align(64))]
struct Node([Cell; NODE_CELLS]);

// SAFETY: a number, for which zero is valid and which has nothing to drop.
unsafe impl Zero for Cell {}
// SAFETY: as above.
unsafe impl Zero for Node {}

/// A trie.
#[derive(Debug)]
pub struct Trie {
    top: ZeroedArray<Cell>,
    nodes: Arc<Nodes>,
    /// Number of nodes in use.
    count: AtomicUsize,
    writer: Mutex<Writer>,
}

/// The nodes of all versions of a trie. At most two versions are in use at the same time, so there
/// is space for twice [`NODES_MAX`].
#[derive(Debug)]
struct Nodes {
    chunks: Box<[OnceLock<ZeroedArray<Node>>]>,
    used: AtomicUsize,
    /// Nodes that no version uses.
    free: Mutex<Vec<u32>>,
    /// First level of a dropped version, for reuse without a new allocation.
    top: Mutex<Option<ZeroedArray<Cell>>>,
}

impl Nodes {
    fn free(&self) -> MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spare_top(&self) -> MutexGuard<'_, Option<ZeroedArray<Cell>>> {
        self.top.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State of the writer.
#[derive(Debug, Default)]
struct Writer {
    /// In a staged version, a bit for each node that is not shared with the previous version.
    own: Option<Vec<u64>>,
    /// Nodes that only the previous version uses.
    left: Vec<u32>,
}

impl Writer {
    fn has(&self, node: u32) -> bool {
        let has = |own: &Vec<u64>| {
            own.get(node as usize / 64).is_some_and(|word| word >> (node % 64) & 1 == 1)
        };
        self.own.as_ref().is_none_or(has)
    }

    fn add(&mut self, node: u32) {
        if let Some(own) = &mut self.own {
            let word = node as usize / 64;
            own.resize(own.len().max(word + 1), 0);
            own[word] |= 1 << (node % 64);
        }
    }

    fn forget(&mut self, node: u32) {
        if let Some(own) = &mut self.own {
            own[node as usize / 64] &= !(1 << (node % 64));
        }
    }
}

/// Address bits, left-aligned and padded with zeros.
pub type Address = u128;

impl Trie {
    /// Creates a trie without prefixes.
    pub fn new() -> Trie {
        let chunks = (0..2 * NODES_MAX / CHUNK).map(|_| OnceLock::new()).collect();
        let (used, free, top) = (AtomicUsize::new(0), Mutex::default(), Mutex::default());
        Trie {
            top: ZeroedArray::new(1 << TOP_BITS),
            nodes: Arc::new(Nodes { chunks, used, free, top }),
            count: AtomicUsize::new(0),
            writer: Mutex::default(),
        }
    }

    /// Creates a staged version with the same prefixes. From now on, only the new version may
    /// change, which does not affect this one. Until [`Trie::join`], each changed node is copied.
    /// Versions before this one must have no readers. If the new version is dropped, this one may
    /// change again.
    pub fn part(&self) -> Trie {
        let spare = self.nodes.spare_top().take();
        let top = spare.unwrap_or_else(|| ZeroedArray::new(1 << TOP_BITS));
        for (from, to) in self.top.iter().zip(top.iter()) {
            to.0.store(from.0.load(Relaxed), Relaxed);
        }
        self.join();
        let writer = Writer { own: Some(Vec::new()), left: Vec::new() };
        let count = AtomicUsize::new(self.count_nodes());
        Trie { top, nodes: Arc::clone(&self.nodes), count, writer: Mutex::new(writer) }
    }

    /// Ends sharing: the previous version has no readers any more.
    pub fn join(&self) {
        let mut writer = self.writer();
        let Writer { own, left } = &mut *writer;
        *own = None;
        self.nodes.free().append(left);
    }

    /// Frees 4 MiB of an unused trie. Returns false if nothing is left, or if another version
    /// shares the memory.
    pub fn free_some(&mut self) -> bool {
        let Some(nodes) = Arc::get_mut(&mut self.nodes) else { return false };
        nodes.chunks.iter_mut().rev().any(|chunk| chunk.take().is_some())
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of nodes in use.
    pub fn count_nodes(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Returns the number of bytes in use.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.top) + self.count_nodes() * size_of::<Node>()
    }

    /// Whether there certainly is space for a prefix of this length.
    pub fn has_room(&self, length: u32) -> bool {
        let nodes = length.saturating_sub(TOP_BITS).div_ceil(NODE_BITS) as usize;
        self.count_nodes() + nodes <= NODES_MAX
    }

    /// Prefetches the memory that a lookup of the address reads first.
    #[inline]
    pub fn prefetch(&self, address: Address) {
        prefetch::read(&self.top[top_of(address)]);
    }

    /// Returns the entry of the longest prefix that contains the address.
    #[inline]
    pub fn find(&self, address: Address) -> Option<u32> {
        let mut cell = self.top[top_of(address)].0.load(Acquire);
        let mut level = 0;
        while cell & BELOW != 0 {
            cell = self.node(cell).0[step_of(address, level)].0.load(Acquire);
            level += 1;
        }
        cell.checked_sub(1)
    }

    /// Looks up many addresses level by level, so that their cache misses overlap. Calls `met` with
    /// the index of each address that a prefix contains.
    #[inline]
    pub fn find_batch(&self, addresses: &[Address], mut met: impl FnMut(usize, u32)) {
        let mut cells = [0u32; BATCH];
        let mut open = 0u32;
        for (at, address) in addresses.iter().enumerate().take(BATCH) {
            cells[at] = self.top[top_of(*address)].0.load(Acquire);
            open |= 1 << at;
        }
        let mut level = 0;
        while open != 0 {
            let mut left = open;
            while left != 0 {
                let at = left.trailing_zeros() as usize;
                left &= left - 1;
                if cells[at] & BELOW != 0 {
                    prefetch::read(&self.node(cells[at]).0[step_of(addresses[at], level)]);
                } else {
                    open &= !(1 << at);
                    if let Some(entry) = cells[at].checked_sub(1) {
                        met(at, entry);
                    }
                }
            }
            left = open;
            while left != 0 {
                let at = left.trailing_zeros() as usize;
                left &= left - 1;
                cells[at] = self.node(cells[at]).0[step_of(addresses[at], level)].0.load(Acquire);
            }
            level += 1;
        }
    }

    /// Adds a new prefix: writes `entry` to its cells, except where `is_longer` returns true for
    /// the present entry. Only one thread may call this and [`Trie::remove`].
    ///
    /// # Panics
    /// If there is no [space](Trie::has_room) or `entry` is [`ENTRIES_MAX`] or more.
    pub fn insert(
        &self,
        address: Address,
        length: u32,
        entry: u32,
        is_longer: impl Fn(u32) -> bool,
    ) {
        assert!(entry < ENTRIES_MAX, "the number fits into a cell");
        let write = |cell: &Cell| {
            let had = cell.0.load(Relaxed);
            if !had.checked_sub(1).is_some_and(&is_longer) {
                cell.0.store(entry + 1, Release);
            }
        };
        self.change(address, length, &write);
    }

    /// Removes a prefix: cells with `entry` get that of the next shorter prefix, if there is one.
    pub fn remove(&self, address: Address, length: u32, entry: u32, shorter: Option<u32>) {
        let write = |cell: &Cell| {
            if cell.0.load(Relaxed) == entry + 1 {
                cell.0.store(shorter.map_or(0, |shorter| shorter + 1), Release);
            }
        };
        self.change(address, length, &write);
    }

    /// Like [`Trie::remove`], for a [staged](Trie::part) version without readers: unused levels are
    /// freed.
    pub fn remove_apart(&self, address: Address, length: u32, entry: u32, shorter: Option<u32>) {
        self.remove(address, length, entry, shorter);
        let mut writer = self.writer();
        let mut path = [&self.top[top_of(address)]; LEVELS_MAX];
        let mut depth = 0;
        while let cell = path[depth].0.load(Relaxed)
            && cell & BELOW != 0
            && TOP_BITS + NODE_BITS * (depth as u32) < length
        {
            depth += 1;
            path[depth] = &self.node(cell).0[step_of(address, depth as u32 - 1)];
        }
        for cell in path[..depth].iter().rev() {
            let number = cell.0.load(Relaxed);
            let cells = &self.node(number).0;
            let first = cells[0].0.load(Relaxed);
            let is_needed = first & BELOW != 0
                || !writer.has(number & !BELOW)
                || cells.iter().any(|it| it.0.load(Relaxed) != first);
            if is_needed {
                return;
            }
            cell.0.store(first, Release);
            self.count.store(self.count_nodes() - 1, Relaxed);
            writer.forget(number & !BELOW);
            self.nodes.free().push(number & !BELOW);
        }
    }

    /// Applies `write` to all cells of a prefix that have no lower level.
    fn change(&self, address: Address, length: u32, write: &impl Fn(&Cell)) {
        let mut writer = self.writer();
        let mut cells: &[Cell] = &self.top;
        let (mut from, mut bits, mut level) = (top_of(address), TOP_BITS, 0);
        while length > bits {
            cells = &self.below(&cells[from], &mut writer).0;
            from = step_of(address, level);
            level += 1;
            bits += NODE_BITS;
        }
        self.write_all(&cells[from..from + (1 << (bits - length))], &mut writer, write);
    }

    fn write_all(&self, cells: &[Cell], writer: &mut Writer, write: &impl Fn(&Cell)) {
        for cell in cells {
            if cell.0.load(Relaxed) & BELOW != 0 {
                self.write_all(&self.below(cell, writer).0, writer, write);
            } else {
                write(cell);
            }
        }
    }

    /// Returns the node of a cell, for writing. Creates it if there is none, with the cell's value
    /// in all its cells, or copies it if another version shares it.
    fn below(&self, cell: &Cell, writer: &mut Writer) -> &Node {
        let had = cell.0.load(Relaxed);
        let leads = had & BELOW != 0;
        if leads && writer.has(had & !BELOW) {
            return self.node(had);
        }
        let number = self.new_node(writer);
        let node = self.node(number);
        if leads {
            let before = self.node(had).0.iter();
            before.zip(&node.0).for_each(|(from, to)| to.0.store(from.0.load(Relaxed), Relaxed));
            writer.left.push(had & !BELOW);
        } else {
            self.count.store(self.count_nodes() + 1, Relaxed);
            node.0.iter().for_each(|below| below.0.store(had, Relaxed));
        }
        cell.0.store(BELOW | number, Release);
        node
    }

    /// Returns a node without readers.
    fn new_node(&self, writer: &mut Writer) -> u32 {
        let free = self.nodes.free().pop();
        let number = free.unwrap_or_else(|| {
            let number = self.nodes.used.load(Relaxed);
            assert!(number < 2 * NODES_MAX, "the caller reserved room");
            self.nodes.used.store(number + 1, Relaxed);
            self.nodes.chunks[number / CHUNK].get_or_init(|| ZeroedArray::new(CHUNK));
            number as u32
        });
        writer.add(number);
        number
    }

    #[inline]
    fn node(&self, cell: u32) -> &Node {
        let number = (cell & !BELOW) as usize;
        let chunk = self.nodes.chunks[number / CHUNK].get();
        &chunk.expect("a cell refers to an existing node")[number % CHUNK]
    }
}

impl Drop for Trie {
    fn drop(&mut self) {
        let top = std::mem::replace(&mut self.top, ZeroedArray::new(0));
        *self.nodes.spare_top() = Some(top);
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
        let words = (0..).zip(writer.own.take().unwrap_or_default());
        let own = words.flat_map(|(word, bits): (u32, u64)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
        });
        self.nodes.free().extend(own);
    }
}

impl Default for Trie {
    fn default() -> Trie {
        Trie::new()
    }
}

#[inline]
fn top_of(address: Address) -> usize {
    (address >> (Address::BITS - TOP_BITS)) as usize
}

/// Returns the eight bits that select a cell of a node on this level below the first.
#[inline]
fn step_of(address: Address, level: u32) -> usize {
    (address >> (Address::BITS - TOP_BITS - NODE_BITS * (level + 1))) as usize & (NODE_CELLS - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn a_new_version_leaves_the_old_one_unchanged_and_reuses_nodes() {
        let (mut dice, mut trie) = (Rng::new(5), Trie::new());
        let probes: Vec<Address> = (0..400).map(|_| address(&mut dice)).collect();
        let all = |trie: &Trie| -> Vec<_> { probes.iter().map(|it| trie.find(*it)).collect() };
        let mut known: Vec<(Address, u32, u32)> = Vec::new();
        for turn in 0..60 {
            let (before, first) = (all(&trie), known.len() as u32);
            let next = trie.part();
            for at in 0..20 {
                // Lengths decrease from round to round, so that no longer prefixes are present.
                let length = 120 - turn * 2;
                let entry = first + at;
                let (prefix, longer) = (address(&mut dice) & mask(length), |_| true);
                if known.iter().all(|it| it.0 != prefix) {
                    next.insert(prefix, length, entry, longer);
                    known.push((prefix, length, entry));
                }
            }
            if turn % 3 == 2 {
                let (prefix, length, entry) = known.swap_remove(0);
                next.remove(prefix, length, entry, None);
            }
            assert_eq!(all(&trie), before, "turn {turn}: the previous version has changed");
            next.join();
            trie = next;
        }
        let (used, free) = (trie.nodes.used.load(Relaxed), trie.nodes.free().len());
        assert_eq!(used - free, trie.count_nodes(), "every other node is free");
        assert!(free > 0 && used < 3 * trie.count_nodes(), "{free} of {used} nodes are free");
    }

    #[test]
    fn discarded_and_removed_versions_free_all_nodes() {
        let mut dice = Rng::new(6);
        let trie = Trie::new();
        trie.insert(0, 0, 0, |_| false);
        let known: Vec<Address> = (0..300).map(|_| address(&mut dice)).collect();
        let known: Vec<Address> =
            known.into_iter().collect::<std::collections::BTreeSet<_>>().into_iter().collect();
        let used = |trie: &Trie| trie.nodes.used.load(Relaxed) - trie.nodes.free().len();
        for (entry, prefix) in (1..).zip(&known) {
            trie.insert(*prefix, 128, entry, |_| false);
        }
        let before = (trie.count_nodes(), used(&trie));
        for keeps in [3, 2, 1] {
            let apart = trie.part();
            for (entry, prefix) in (1..).zip(&known).filter(|(entry, _)| entry % keeps == 0) {
                apart.remove_apart(*prefix, 128, entry, Some(0));
            }
            for (entry, prefix) in (1..).zip(&known) {
                let left = if entry % keeps == 0 { 0 } else { entry };
                assert_eq!((apart.find(*prefix), trie.find(*prefix)), (Some(left), Some(entry)));
            }
            if keeps == 1 {
                assert_eq!(apart.count_nodes(), 0, "no prefix needs a level");
            }
            drop(apart);
            assert_eq!((trie.count_nodes(), used(&trie)), before, "the version is discarded");
        }
        let apart = trie.part();
        (1..).zip(&known).for_each(|(entry, it)| apart.remove_apart(*it, 128, entry, Some(0)));
        drop(trie);
        apart.join();
        assert_eq!(used(&apart), 0);
    }

    fn mask(length: u32) -> Address {
        Address::MAX.checked_shl(128 - length).unwrap_or(0)
    }

    /// Draws addresses with few varying bits, so that prefixes nest and repeat.
    fn address(dice: &mut Rng) -> Address {
        let some = |dice: &mut Rng| Address::from(dice.roll(3));
        some(dice) << 126
            | some(dice) << 111
            | some(dice) << 103
            | some(dice) << 95
            | some(dice) << 64
            | some(dice)
    }

    #[test]
    fn the_longest_prefix_wins_under_random_changes() {
        for seed in 0..8 {
            let (mut dice, trie) = (Rng::new(seed), Trie::new());
            let mut known: HashMap<(Address, u32), u32> = HashMap::new();
            let mut lengths: HashMap<u32, u32> = HashMap::new();
            for entry in 0..400 {
                let length = dice.pick(&[0, 1, 3, 12, 15, 16, 17, 24, 25, 32, 48, 64, 127, 128]);
                let prefix = (address(&mut dice) & mask(length), length);
                let cover = |address: Address, below: u32| {
                    let shorter = (0..below).rev();
                    shorter.filter_map(|it| known.get(&(address & mask(it), it))).next().copied()
                };
                if let Some(&old) = known.get(&prefix) {
                    trie.remove(prefix.0, length, old, cover(prefix.0, length));
                    known.remove(&prefix);
                } else {
                    assert!(trie.has_room(length));
                    lengths.insert(entry, length);
                    trie.insert(prefix.0, length, entry, |other| lengths[&other] > length);
                    known.insert(prefix, entry);
                }
                let probes: Vec<Address> = (0..20).map(|_| address(&mut dice)).collect();
                let mut found = [None; 20];
                trie.find_batch(&probes, |at, entry| found[at] = Some(entry));
                for (probe, found) in probes.iter().zip(found) {
                    let longest = (0..129).rev().find_map(|it| known.get(&(probe & mask(it), it)));
                    assert_eq!(trie.find(*probe), longest.copied(), "seed {seed}");
                    assert_eq!(found, longest.copied(), "seed {seed}");
                }
            }
            assert!(trie.count_nodes() > 20);
        }
    }
}
