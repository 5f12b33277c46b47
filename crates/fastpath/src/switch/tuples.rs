//! The list of tuples of a table, one for each mask, in the order of a search.
//!
//! Invariants:
//! - The bound of a tuple is not below the order of any entry in it or in later tuples that a
//!   program can find. So a search that ends at a bound finds the entry of highest order.
//! - Programs may read any list that was current since they started.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Relaxed, Release};

use dataplane::key::Key;

use super::layout::{TUPLES_MAX, list, order};
use super::memory::Memory;

/// The numbers of tuples that are free, for all tables.
#[derive(Debug)]
pub(super) struct Numbers(Vec<u8>);

impl Numbers {
    pub(super) fn new() -> Numbers {
        Numbers((0..TUPLES_MAX as u8).rev().collect())
    }
}

/// The tuples of a table.
#[derive(Debug)]
pub(super) struct Tuples {
    table: usize,
    /// In the order of the current list.
    tuples: Vec<Tuple>,
    /// The current list.
    list: usize,
    free_lists: Vec<usize>,
    /// Whether another order, or fewer tuples, would be better.
    is_stale: bool,
}

/// The entries of one mask.
#[derive(Debug)]
struct Tuple {
    mask: Key,
    number: u8,
    /// Numbers of entries by rank and escape, those that programs may still find included.
    orders: BTreeMap<u64, usize>,
}

impl Tuple {
    fn highest(&self) -> u64 {
        self.orders.last_key_value().map_or(0, |(order, _)| *order)
    }
}

/// What programs may read for a while after a new list is current.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replaced {
    list: usize,
    numbers: Vec<u8>,
}

impl Tuples {
    /// Creates the tuples of a table without entries.
    pub(super) fn new(memory: &Memory, table: usize) -> Tuples {
        let list = table * list::LISTS;
        memory.set_list(table, list);
        let free_lists = (list + 1..list + list::LISTS).rev().collect();
        Tuples { table, tuples: Vec::new(), list, free_lists, is_stale: false }
    }

    /// Returns the number of masks.
    pub(super) fn count(&self) -> usize {
        self.tuples.len()
    }

    /// Whether another order, or fewer tuples, might be better.
    pub(super) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Adds an entry, before any program can find it. Returns the number of its tuple, or `None` if
    /// there are too many masks.
    pub(super) fn add(
        &mut self,
        memory: &Memory,
        numbers: &mut Numbers,
        mask: &Key,
        order: u64,
    ) -> Option<u8> {
        let found = self.tuples.iter().position(|tuple| tuple.mask == *mask);
        let at = match found {
            Some(at) => at,
            None => self.append(memory, numbers.0.pop()?, mask),
        };
        let before = self.tuples[at].highest();
        *self.tuples[at].orders.entry(bound(order)).or_default() += 1;
        if self.tuples[at].highest() != before {
            self.is_stale |= at > 0 && self.tuples[at - 1].highest() < self.tuples[at].highest();
            self.write_bounds(memory);
        }
        if found.is_none() {
            memory.list_word(self.list, list::COUNT).store(self.tuples.len() as u64, Release);
        }
        Some(self.tuples[at].number)
    }

    /// Removes an entry that no program can find any more.
    pub(super) fn remove(&mut self, memory: &Memory, number: u8, order: u64) {
        let at = self.tuples.iter().position(|tuple| tuple.number == number);
        let at = at.expect("a tuple stays while it has entries");
        let (before, order) = (self.tuples[at].highest(), bound(order));
        let orders = &mut self.tuples[at].orders;
        match orders.get_mut(&order) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(orders.remove(&order)),
        }
        if self.tuples[at].highest() != before {
            self.is_stale = true;
            self.write_bounds(memory);
        }
    }

    /// Sorts the tuples and drops empty ones, if that changes the list and there is space for
    /// another one. Returns what programs may still read.
    pub(super) fn tidy(&mut self, memory: &Memory) -> Option<Replaced> {
        if !std::mem::take(&mut self.is_stale) {
            return None;
        }
        let is_sorted = self.tuples.is_sorted_by_key(|tuple| std::cmp::Reverse(tuple.highest()));
        if is_sorted && self.tuples.iter().all(|tuple| !tuple.orders.is_empty()) {
            return None;
        }
        let Some(next) = self.free_lists.pop() else {
            self.is_stale = true;
            return None;
        };
        let empty = |tuple: &Tuple| tuple.orders.is_empty();
        let numbers = self.tuples.iter().filter(|it| empty(it)).map(|it| it.number).collect();
        self.tuples.retain(|tuple| !empty(tuple));
        self.tuples.sort_by_key(|tuple| std::cmp::Reverse(tuple.highest()));
        let before = std::mem::replace(&mut self.list, next);
        (0..self.tuples.len()).for_each(|at| self.write(memory, at));
        self.write_bounds(memory);
        memory.list_word(next, list::COUNT).store(self.tuples.len() as u64, Release);
        memory.set_list(self.table, next);
        Some(Replaced { list: before, numbers })
    }

    /// Reuses what no program reads any more.
    pub(super) fn reuse(&mut self, replaced: Replaced, numbers: &mut Numbers) {
        self.free_lists.push(replaced.list);
        numbers.0.extend(replaced.numbers);
    }

    /// Appends a tuple, which programs do not see before the number of tuples changes.
    fn append(&mut self, memory: &Memory, number: u8, mask: &Key) -> usize {
        self.tuples.push(Tuple { mask: *mask, number, orders: BTreeMap::new() });
        let at = self.tuples.len() - 1;
        self.write(memory, at);
        at
    }

    fn write(&self, memory: &Memory, at: usize) {
        let tuple = &self.tuples[at];
        for (word, offset) in tuple.mask.0.iter().zip((place(at) + list::MASK..).step_by(8)) {
            memory.list_word(self.list, offset).store(*word, Relaxed);
        }
        memory
            .list_word(self.list, place(at) + list::NUMBER)
            .store(u64::from(tuple.number), Relaxed);
    }

    fn write_bounds(&self, memory: &Memory) {
        let mut bound = 0;
        for (at, tuple) in self.tuples.iter().enumerate().rev() {
            bound = bound.max(tuple.highest());
            memory.list_word(self.list, place(at) + list::BOUND).store(bound, Release);
        }
    }
}

/// Returns the highest order of entries that differ only in arrival and tuple.
fn bound(order: u64) -> u64 {
    order | ((1 << order::ESCAPES_AT) - 1)
}

/// Returns the offset of a tuple in a list.
fn place(at: usize) -> i16 {
    list::TUPLES + (at << list::TUPLE_SHIFT) as i16
}
