//! Distinct instruction lists of all entries, each with a number for lookup threads.
//!
//! Invariant: a number identifies the same instructions from its assignment until every thread has
//! released all entries with this number.

use std::hash::BuildHasher;
use std::sync::{Arc, PoisonError};

use super::lookup::Common;
use super::references::{References, Targets};
use crate::chains::Chains;
use crate::hash::Seeded;
use crate::instruction::Instructions;

/// Number of chains, which are indexed by the hashes of the instructions.
const HEADS: usize = 1 << 16;

/// Registry of program numbers, on the side of the writer.
#[derive(Debug)]
pub(super) struct InstructionTable {
    known: Chains,
    /// The instructions of each number that an entry uses.
    lists: Vec<Option<Arc<Instructions>>>,
    /// The groups and meters to which each number in use refers.
    targets: Vec<Targets>,
    /// Number of entries that use each number.
    users: Vec<usize>,
    references: References,
    free: Vec<u32>,
    /// The last shared list: entries that are added together mostly have equal instructions.
    last: Option<(Arc<Instructions>, u32)>,
    seed: Seeded,
}

impl InstructionTable {
    /// Creates an empty registry. `seed` is a secret for hashing.
    pub(super) fn new(seed: u64) -> InstructionTable {
        let (lists, targets, users, references, free, last) = Default::default();
        let (known, seed) = (Chains::new(HEADS), Seeded(seed));
        InstructionTable { known, lists, targets, users, references, free, last, seed }
    }

    /// Returns the shared instructions equal to `wanted` and their number, and counts one more
    /// user.
    pub(super) fn share(
        &mut self,
        wanted: &Arc<Instructions>,
        common: &Common,
    ) -> (Arc<Instructions>, u32) {
        let (list, number) = match &self.last {
            Some((list, number)) if Arc::ptr_eq(list, wanted) || list == wanted => {
                (Arc::clone(list), *number)
            }
            _ => self.find(wanted, common),
        };
        self.users[number as usize] += 1;
        self.references.add(&self.targets[number as usize]);
        (list, number)
    }

    fn find(&mut self, wanted: &Arc<Instructions>, common: &Common) -> (Arc<Instructions>, u32) {
        let hash = self.seed.hash_one(wanted);
        let known = self.known.chain(hash).find_map(|number| {
            let list = self.lists[number as usize].as_ref();
            list.filter(|list| *list == wanted).map(|list| (Arc::clone(list), number))
        });
        let found = known.unwrap_or_else(|| {
            let number = self.add(wanted, common);
            self.known.add(number, hash);
            (Arc::clone(wanted), number)
        });
        self.last = Some(found.clone());
        found
    }

    fn add(&mut self, list: &Arc<Instructions>, common: &Common) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.users.push(0);
            self.lists.push(None);
            self.targets.push(Targets::default());
            (self.users.len() - 1) as u32
        });
        self.lists[number as usize] = Some(Arc::clone(list));
        self.targets[number as usize] = Targets::of(list);
        let mut programs = common.programs.write().unwrap_or_else(PoisonError::into_inner);
        match programs.get_mut(number as usize) {
            Some(place) => *place = Arc::clone(list),
            None => programs.push(Arc::clone(list)),
        }
        number
    }

    /// Releases one use. Returns true if it was the last one: the caller then frees the number when
    /// no thread can read it any more.
    pub(super) fn release(&mut self, value: &Arc<Instructions>, number: u32) -> bool {
        let users = &mut self.users[number as usize];
        *users -= 1;
        self.references.remove(&self.targets[number as usize]);
        let unused = *users == 0;
        if unused {
            self.known.remove(number, self.seed.hash_one(value));
            self.lists[number as usize] = None;
            self.last = self.last.take().filter(|(_, last)| *last != number);
        }
        unused
    }

    /// Makes a released number available again.
    pub(super) fn free(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Returns the numbers of entries that refer to each group and meter.
    pub(super) fn references(&self) -> &References {
        &self.references
    }

    /// Iterates over the instruction lists in use.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Instructions> + '_ {
        self.lists.iter().filter_map(|list| list.as_deref())
    }

    /// Returns the number of distinct instruction lists in use.
    pub(super) fn count(&self) -> usize {
        self.known.len()
    }
}
