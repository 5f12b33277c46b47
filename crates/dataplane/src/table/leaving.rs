//! What is to be used again when nobody looks at it any more: places and numbers of instructions.

use std::collections::VecDeque;

/// Things that are given up before readers are told for their sake.
const MUCH: usize = 256;

/// Something that can be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thing {
    /// An entry's place.
    Place(u32),
    /// The number of instructions.
    Program(u32),
}

/// What waits, in the order in which it was given up.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// Places given up since readers were last told.
    places: Vec<u32>,
    /// The same for numbers of instructions.
    programs: Vec<u32>,
    /// Each with the epoch that every reader has to have seen.
    out: VecDeque<(u64, Thing)>,
}

impl Leaving {
    /// Whether everything that was given up has set out.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.programs.is_empty()
    }

    /// Whether so much was given up that it is worth to tell readers for its sake.
    pub(super) fn is_much(&self) -> bool {
        self.places.len() + self.programs.len() >= MUCH
    }

    pub(super) fn add(&mut self, thing: Thing) {
        match thing {
            Thing::Place(place) => self.places.push(place),
            Thing::Program(number) => self.programs.push(number),
        }
    }

    /// An epoch began after readers were told.
    pub(super) fn set_out(&mut self, epoch: u64) {
        self.out.extend(self.programs.drain(..).map(|number| (epoch, Thing::Program(number))));
        self.out.extend(self.places.drain(..).map(|place| (epoch, Thing::Place(place))));
    }

    /// Something that nobody can look at any more, all readers having seen an epoch.
    pub(super) fn pop(&mut self, settled: u64) -> Option<Thing> {
        let first = self.out.front().is_some_and(|(epoch, _)| *epoch <= settled);
        if first { self.out.pop_front().map(|(_, thing)| thing) } else { None }
    }

    /// Keeps a place after all that was given up since readers were last told, as a rule the last one.
    pub(super) fn keep(&mut self, place: u32) {
        let at = self.places.iter().rposition(|&other| other == place);
        self.places.remove(at.expect("a place that was given up in a bundle waits"));
    }

    /// Whether anything waits for readers.
    pub(super) fn waits(&self) -> bool {
        !self.out.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_back_in_order_when_their_epoch_is_seen() {
        let mut leaving = Leaving::default();
        leaving.add(Thing::Place(1));
        leaving.add(Thing::Program(1));
        assert_eq!(leaving.pop(9), None, "readers have not been told");
        leaving.set_out(3);
        leaving.add(Thing::Place(2));
        leaving.add(Thing::Place(3));
        leaving.keep(3);
        leaving.set_out(4);
        assert_eq!(leaving.pop(2), None);
        assert_eq!(leaving.pop(3), Some(Thing::Program(1)));
        assert_eq!(leaving.pop(3), Some(Thing::Place(1)));
        assert_eq!((leaving.pop(4), leaving.pop(4)), (Some(Thing::Place(2)), None));
        assert!(!leaving.waits());
    }
}
