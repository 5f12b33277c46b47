//! Deferred reuse of slots and program numbers, until no lookup thread can read them.

use std::collections::VecDeque;

/// Number of released items that justifies a separate publication.
const MUCH: usize = 256;

/// An item that can be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retired {
    /// Slot of an entry.
    Place(u32),
    /// Program number.
    Program(u32),
}

/// Released items, in order of release.
#[derive(Debug, Default)]
pub(super) struct RetireList {
    /// Slots released since the last publication.
    places: Vec<u32>,
    /// Program numbers released since the last publication.
    programs: Vec<u32>,
    /// Published items, each with the epoch that every reader must reach first.
    out: VecDeque<(u64, Retired)>,
}

impl RetireList {
    /// Whether no released item waits for a publication.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.programs.is_empty()
    }

    /// Whether enough items were released to justify a publication.
    pub(super) fn is_much(&self) -> bool {
        self.places.len() + self.programs.len() >= MUCH
    }

    pub(super) fn add(&mut self, thing: Retired) {
        match thing {
            Retired::Place(place) => self.places.push(place),
            Retired::Program(number) => self.programs.push(number),
        }
    }

    /// Assigns an epoch to the items released since the last publication.
    pub(super) fn set_out(&mut self, epoch: u64) {
        self.out.extend(self.programs.drain(..).map(|number| (epoch, Retired::Program(number))));
        self.out.extend(self.places.drain(..).map(|place| (epoch, Retired::Place(place))));
    }

    /// Returns the first item that no thread can read, given the epoch that all readers have
    /// reached.
    pub(super) fn pop(&mut self, settled: u64) -> Option<Retired> {
        let first = self.out.front().is_some_and(|(epoch, _)| *epoch <= settled);
        if first { self.out.pop_front().map(|(_, thing)| thing) } else { None }
    }

    /// Takes back a slot released since the last publication, usually the last one.
    pub(super) fn keep(&mut self, place: u32) {
        let at = self.places.iter().rposition(|&other| other == place);
        self.places.remove(at.expect("a slot released in a bundle waits"));
    }

    /// Whether any item waits for readers.
    pub(super) fn waits(&self) -> bool {
        !self.out.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_returned_in_order_when_their_epoch_is_settled() {
        let mut leaving = RetireList::default();
        leaving.add(Retired::Place(1));
        leaving.add(Retired::Program(1));
        assert_eq!(leaving.pop(9), None, "readers have not been notified");
        leaving.set_out(3);
        leaving.add(Retired::Place(2));
        leaving.add(Retired::Place(3));
        leaving.keep(3);
        leaving.set_out(4);
        assert_eq!(leaving.pop(2), None);
        assert_eq!(leaving.pop(3), Some(Retired::Program(1)));
        assert_eq!(leaving.pop(3), Some(Retired::Place(1)));
        assert_eq!((leaving.pop(4), leaving.pop(4)), (Some(Retired::Place(2)), None));
        assert!(!leaving.waits());
    }
}
