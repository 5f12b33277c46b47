//! Longest-prefix match in memory that programs read and this process writes.
//!
//! The layout is that of [`dataplane::fast::trie`]: a cell for each value of the upper 16 bits, and
//! blocks of 256 cells for 8 further bits each. A cell has a block's number, or the length and next
//! hop of the longest prefix, or 0. One thread changes cells in place while programs read them. A
//! program reads the cell of its result again after it used the next hop, because a removed block
//! or next hop may be in use again.
//!
//! Invariant: if there are no more blocks, the addresses of the prefix escape until the trie is
//! cleared, so that no shorter prefix decides them.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use Register::{R0, R1, R2};
use ebpf::{Assembly, Condition, Label, MappedArray, Operation, Register, Width};

/// Number of next hops, a power of two. One of them is invalid: its frames escape.
pub(crate) const HOPS: usize = 1 << 16;

/// Number of the invalid next hop.
pub(crate) const HOP_OF_ESCAPE: u32 = HOPS as u32 - 2;

/// Binary logarithm of the lengths' unit in an entry.
const LENGTH_SHIFT: u32 = 23;

const TOP_CELLS: usize = 1 << 16;
const BLOCK_CELLS: usize = 1 << 8;
const CELL_BYTES: usize = 4;

/// Binary logarithm of the bytes of a block.
const BLOCK_SHIFT: i32 = 10;

/// Bit of a cell that refers to a block.
const BELOW: u32 = 1 << 31;

/// Cell whose addresses escape: longer than any prefix, with the invalid next hop.
const ESCAPE: u32 = BELOW - 1;

/// The cells.
#[derive(Debug)]
pub(crate) struct Cells {
    memory: MappedArray,
    blocks: usize,
}

/// The writer of the cells.
#[derive(Debug)]
pub(crate) struct Trie {
    cells: Arc<Cells>,
    used: usize,
    /// Blocks that are not in use, the longest unused first.
    free: VecDeque<usize>,
    /// Number of prefixes that found no block.
    pub(crate) without_room: u64,
}

/// Returns a cell for a prefix of this length with a next hop.
pub(crate) fn cell_of(length: u8, hop: u32) -> u32 {
    (u32::from(length) << LENGTH_SHIFT | hop.min(HOP_OF_ESCAPE)) + 1
}

/// Returns the length of a cell's prefix.
fn length_of(cell: u32) -> Option<u32> {
    cell.checked_sub(1).map(|entry| entry >> LENGTH_SHIFT)
}

impl Cells {
    /// Creates cells without prefixes, with this number of blocks rounded up to a power of two.
    pub(crate) fn new(blocks: usize) -> io::Result<Cells> {
        let blocks = blocks.next_power_of_two();
        let cells = TOP_CELLS + blocks * BLOCK_CELLS;
        Ok(Cells { memory: MappedArray::new(1, cells * CELL_BYTES)?, blocks })
    }

    fn read(&self, cell: usize) -> u32 {
        self.memory.word_at(cell * CELL_BYTES).load(Relaxed)
    }

    fn write(&self, cell: usize, value: u32) {
        self.memory.word_at(cell * CELL_BYTES).store(value, Release);
    }

    /// Appends a lookup of the address in R0: `at` becomes the address of the cell, and R2 its value.
    /// Frames without a prefix escape. Uses R1.
    pub(crate) fn emit_find(&self, at: Register, program: &mut Assembly, escape: Label) {
        let found = program.label("found");
        let blocks_at = TOP_CELLS * CELL_BYTES;
        program.copy(R1, R0);
        program.compute(R1, Operation::ShiftRight, 16);
        program.and_word(R1, TOP_CELLS as u32 - 1);
        program.shift_left(R1, 2);
        program.load_map_value(at, self.memory.descriptor(), 0);
        program.add_register(at, R1);
        program.load(Width::Word, R2, at, 0);
        for bits in [8, 0] {
            let below = program.label("below");
            program.jump_if_word(R2, Condition::CommonBit, BELOW, below);
            program.jump(found);
            program.place(below);
            program.and_word(R2, self.blocks as u32 - 1);
            program.shift_left(R2, BLOCK_SHIFT);
            program.copy(R1, R0);
            program.compute(R1, Operation::ShiftRight, bits);
            program.and_word(R1, BLOCK_CELLS as u32 - 1);
            program.shift_left(R1, 2);
            program.add_register(R2, R1);
            program.load_map_value(at, self.memory.descriptor(), blocks_at as i32);
            program.add_register(at, R2);
            program.load(Width::Word, R2, at, 0);
        }
        program.place(found);
        program.jump_if(R2, Condition::Equal, 0, escape);
    }
}

impl Trie {
    pub(crate) fn new(cells: Arc<Cells>) -> Trie {
        Trie { cells, used: 0, free: VecDeque::new(), without_room: 0 }
    }

    /// Adds a prefix, or replaces the one of the same address and length.
    pub(crate) fn insert(&mut self, address: u32, length: u8, hop: u32) {
        let new = cell_of(length, hop);
        let own = Some(u32::from(length));
        self.change(address, length, &|had| if length_of(had) > own { had } else { new });
    }

    /// Removes a prefix: its cells get those of the next shorter prefix, if there is one.
    pub(crate) fn remove(&mut self, address: u32, length: u8, shorter: Option<(u8, u32)>) {
        let new = shorter.map_or(0, |(length, hop)| cell_of(length, hop));
        let own = Some(u32::from(length));
        self.change(address, length, &|had| if length_of(had) == own { new } else { had });
        self.join(address, length);
    }

    /// Removes all prefixes.
    pub(crate) fn clear(&mut self) {
        (0..TOP_CELLS).for_each(|cell| self.cells.write(cell, 0));
        self.free.clear();
        self.used = 0;
        self.without_room = 0;
    }

    /// Applies `write` to all cells of a prefix that have no block.
    fn change(&mut self, address: u32, length: u8, write: &impl Fn(u32) -> u32) {
        let (mut cell, mut bits) = ((address >> 16) as usize, 16);
        while length > bits {
            let Some(block) = self.block_below(cell) else {
                self.cells.write(cell, ESCAPE);
                self.without_room += 1;
                return;
            };
            cell = cell_in(block, address, bits);
            bits += 8;
        }
        (cell..cell + (1 << (bits - length))).for_each(|cell| self.write_all(cell, write));
    }

    fn write_all(&self, cell: usize, write: &impl Fn(u32) -> u32) {
        match block_of(self.cells.read(cell)) {
            Some(block) => {
                let first = TOP_CELLS + block * BLOCK_CELLS;
                (first..first + BLOCK_CELLS).for_each(|cell| self.write_all(cell, write));
            }
            None => self.cells.write(cell, write(self.cells.read(cell))),
        }
    }

    /// Returns the block of a cell. Creates it if there is none, with the cell's value in all its
    /// cells.
    fn block_below(&mut self, cell: usize) -> Option<usize> {
        let had = self.cells.read(cell);
        if let Some(block) = block_of(had) {
            return Some(block);
        }
        if had == ESCAPE {
            return None;
        }
        let block = if self.used < self.cells.blocks {
            self.used += 1;
            self.used - 1
        } else {
            self.free.pop_front()?
        };
        let first = TOP_CELLS + block * BLOCK_CELLS;
        (first..first + BLOCK_CELLS).for_each(|below| self.cells.write(below, had));
        self.cells.write(cell, BELOW | block as u32);
        Some(block)
    }

    /// Frees the blocks of a prefix whose cells are equal.
    fn join(&mut self, address: u32, length: u8) {
        let mut path = vec![(address >> 16) as usize];
        let mut bits = 16;
        while length > bits
            && let Some(block) = block_of(self.cells.read(path[path.len() - 1]))
        {
            path.push(cell_in(block, address, bits));
            bits += 8;
        }
        for cell in path.into_iter().rev() {
            let Some(block) = block_of(self.cells.read(cell)) else { continue };
            let first = TOP_CELLS + block * BLOCK_CELLS;
            let value = self.cells.read(first);
            let mut others = first..first + BLOCK_CELLS;
            if block_of(value).is_some() || others.any(|other| self.cells.read(other) != value) {
                return;
            }
            self.cells.write(cell, value);
            self.free.push_back(block);
        }
    }
}

/// Returns the block to which a cell refers.
fn block_of(cell: u32) -> Option<usize> {
    (cell & BELOW != 0).then_some((cell & !BELOW) as usize)
}

/// Returns the cell of an address in a block after this many bits.
fn cell_in(block: usize, address: u32, bits: u8) -> usize {
    TOP_CELLS + block * BLOCK_CELLS + (address >> (24 - bits)) as usize % BLOCK_CELLS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the length and next hop of an address's cell, as a program finds it.
    fn find(cells: &Cells, address: u32) -> Option<(u32, u32)> {
        let mut cell = cells.read((address >> 16) as usize);
        let mut bits = 16;
        while let Some(block) = block_of(cell) {
            cell = cells.read(cell_in(block, address, bits));
            bits += 8;
        }
        let entry = cell.checked_sub(1)?;
        Some((entry >> LENGTH_SHIFT, entry & (HOPS as u32 - 1)))
    }

    fn cells(blocks: usize) -> Option<Arc<Cells>> {
        let cells = Cells::new(blocks);
        if let Err(error) = &cells {
            eprintln!("skipped: cannot create a map: {error}");
        }
        cells.ok().map(Arc::new)
    }

    #[test]
    fn the_longest_prefix_wins_and_removal_uncovers_the_next() {
        let Some(cells) = cells(64) else { return };
        let mut trie = Trie::new(Arc::clone(&cells));
        let prefixes = [(0, 0), (0x0a00_0000, 8), (0x0a01_0000, 16), (0x0a01_0200, 24)];
        let prefixes = prefixes.into_iter().chain([(0x0a01_0280, 25), (0x0a01_0281, 32)]);
        let prefixes: Vec<(u32, u8)> = prefixes.collect();
        for (hop, (address, length)) in prefixes.iter().enumerate() {
            trie.insert(*address, *length, hop as u32);
        }
        assert_eq!(find(&cells, 0x0a01_0281), Some((32, 5)));
        assert_eq!(find(&cells, 0x0a01_0282), Some((25, 4)));
        assert_eq!(find(&cells, 0x0a01_0201), Some((24, 3)));
        assert_eq!(find(&cells, 0x0a01_0301), Some((16, 2)));
        assert_eq!(find(&cells, 0x0aff_0001), Some((8, 1)));
        assert_eq!(find(&cells, 0xffff_ffff), Some((0, 0)));
        for (hop, (address, length)) in prefixes.iter().enumerate().rev() {
            let shorter = hop.checked_sub(1).map(|hop| (prefixes[hop].1, hop as u32));
            trie.remove(*address, *length, shorter);
            let expected = shorter.map(|(length, hop)| (u32::from(length), hop));
            assert_eq!(find(&cells, 0x0a01_0281), expected);
        }
        assert_eq!(trie.free.len(), trie.used, "all blocks are free");
    }

    #[test]
    fn a_prefix_without_room_escapes_and_is_not_decided_by_a_shorter_one() {
        let Some(cells) = cells(1) else { return };
        let mut trie = Trie::new(Arc::clone(&cells));
        trie.insert(0x0a00_0000, 8, 1);
        trie.insert(0x0a01_0200, 24, 2);
        trie.insert(0x0a02_0200, 24, 3);
        assert_eq!(find(&cells, 0x0a01_0201), Some((24, 2)));
        let escapes = find(&cells, 0x0a02_0201).map(|(_, hop)| hop);
        assert_eq!((escapes, trie.without_room), (Some(HOP_OF_ESCAPE), 1));
        trie.insert(0x0a00_0000, 8, 4);
        let escapes = find(&cells, 0x0a02_0201).map(|(_, hop)| hop);
        assert_eq!(escapes, Some(HOP_OF_ESCAPE));
        assert_eq!(find(&cells, 0x0a03_0000), Some((8, 4)));
    }
}
