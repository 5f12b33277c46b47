//! The different instructions of all entries, each known by a number to those who look entries up.
//!
//! Invariant: a number means the same instructions from the time when an entry has it until every thread
//! has let go of all entries that had it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use super::lookup::Common;
use crate::instruction::Instructions;

/// The numbers, for who gives them out.
#[derive(Debug, Default)]
pub(super) struct ProgramBook {
    known: HashMap<Arc<Instructions>, u32>,
    /// How many entries have each number.
    users: Vec<usize>,
    free: Vec<u32>,
    /// What was shared last: entries that come together mostly do the same.
    last: Option<(Arc<Instructions>, u32)>,
}

impl ProgramBook {
    /// The instructions that equal these, and their number; the caller is one more user of them.
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
        (list, number)
    }

    fn find(&mut self, wanted: &Arc<Instructions>, common: &Common) -> (Arc<Instructions>, u32) {
        let known = self.known.get_key_value(wanted);
        let found = match known {
            Some((list, number)) => (Arc::clone(list), *number),
            None => (Arc::clone(wanted), self.add(wanted, common)),
        };
        self.last = Some(found.clone());
        found
    }

    fn add(&mut self, list: &Arc<Instructions>, common: &Common) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.users.push(0);
            (self.users.len() - 1) as u32
        });
        let mut programs = common.programs.write().unwrap_or_else(PoisonError::into_inner);
        match programs.get_mut(number as usize) {
            Some(place) => *place = Arc::clone(list),
            None => programs.push(Arc::clone(list)),
        }
        self.known.insert(Arc::clone(list), number);
        number
    }

    /// Gives back what was shared. True if nobody uses it any more: then the number is to be freed
    /// when nobody looks at it any more.
    pub(super) fn release(&mut self, value: &Arc<Instructions>, number: u32) -> bool {
        let users = &mut self.users[number as usize];
        *users -= 1;
        let unused = *users == 0;
        if unused {
            self.known.remove(value);
            self.last = self.last.take().filter(|(_, last)| *last != number);
        }
        unused
    }

    /// A number that came back may be given out again.
    pub(super) fn free(&mut self, number: u32) {
        self.free.push(number);
    }

    /// The ones in use, each with the number of its users.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Instructions, usize)> + '_ {
        self.known.iter().map(|(list, number)| (&**list, self.users[*number as usize]))
    }

    /// How many different ones are in use.
    pub(super) fn count(&self) -> usize {
        self.known.len()
    }
}
