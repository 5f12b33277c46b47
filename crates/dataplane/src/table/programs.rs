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
    known: HashMap<Arc<Instructions>, Program>,
    free: Vec<u32>,
    numbers: u32,
}

#[derive(Debug)]
struct Program {
    users: usize,
    number: u32,
}

impl ProgramBook {
    /// The instructions that equal these, and their number; the caller is one more user of them.
    pub(super) fn share(
        &mut self,
        wanted: &Arc<Instructions>,
        common: &Common,
    ) -> (Arc<Instructions>, u32) {
        if let Some((list, _)) = self.known.get_key_value(wanted) {
            let list = Arc::clone(list);
            let program = self.known.get_mut(&list).expect("it was just found");
            program.users += 1;
            return (list, program.number);
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.numbers += 1;
            self.numbers - 1
        });
        let mut programs = common.programs.write().unwrap_or_else(PoisonError::into_inner);
        match programs.get_mut(number as usize) {
            Some(place) => *place = Arc::clone(wanted),
            None => programs.push(Arc::clone(wanted)),
        }
        self.known.insert(Arc::clone(wanted), Program { users: 1, number });
        (Arc::clone(wanted), number)
    }

    /// Gives back what was shared. The number comes back when nobody uses it any more, to be freed
    /// when nobody looks at it any more.
    pub(super) fn release(&mut self, value: &Arc<Instructions>) -> Option<u32> {
        let program = self.known.get_mut(value)?;
        program.users -= 1;
        let unused = program.users == 0;
        unused.then(|| self.known.remove(value).map(|program| program.number)).flatten()
    }

    /// A number that came back may be given out again.
    pub(super) fn free(&mut self, number: u32) {
        self.free.push(number);
    }

    /// The ones in use, each with the number of its users.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Instructions, usize)> + '_ {
        self.known.iter().map(|(list, program)| (&**list, program.users))
    }

    /// How many different ones are in use.
    pub(super) fn count(&self) -> usize {
        self.known.len()
    }
}
