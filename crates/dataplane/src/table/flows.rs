//! What is known of entries besides what who looks them up sees, by their places.
//!
//! A table that held many entries and holds few keeps the places of the many; walks go by a set of those that are taken.

use super::Flow;
use super::places::Places;

/// The rest of each entry, at its place.
#[derive(Debug)]
pub(super) struct Flows {
    /// `None` where the place is free.
    rows: Vec<Option<Flow>>,
    taken: Places,
    entries: usize,
}

impl Flows {
    /// Without places, and with memory for so many.
    pub(super) fn with_capacity(places: usize) -> Flows {
        Flows { rows: Vec::with_capacity(places), taken: Places::default(), entries: 0 }
    }

    /// How many places there are, free ones included.
    pub(super) fn places(&self) -> usize {
        self.rows.len()
    }

    /// One more place, which is free.
    pub(super) fn add_place(&mut self) -> u32 {
        self.rows.push(None);
        (self.rows.len() - 1) as u32
    }

    /// The entry at a place.
    pub(super) fn get(&self, place: usize) -> Option<&Flow> {
        self.rows.get(place)?.as_ref()
    }

    /// The entry at a place.
    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut Flow> {
        self.rows[place as usize].as_mut()
    }

    /// Puts an entry at a place; what stood there.
    pub(super) fn put(&mut self, place: u32, flow: Flow) -> Option<Flow> {
        self.entries += usize::from(self.taken.insert(place));
        self.rows[place as usize].replace(flow)
    }

    /// Takes an entry from its place.
    pub(super) fn take(&mut self, place: u32) -> Option<Flow> {
        self.entries -= usize::from(self.taken.remove(place));
        self.rows[place as usize].take()
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries
    }

    /// The first place not below `from` where an entry is (see [`Places::next`]).
    pub(super) fn next(&self, from: usize, budget: &mut usize) -> Result<Option<usize>, usize> {
        self.taken.next(from, budget)
    }

    /// The places not below `from` where entries are, in their order.
    pub(super) fn since(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        self.taken.since(from)
    }

    /// All entries with their places.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Flow)> {
        self.since(0).filter_map(|place| Some((place as u32, self.get(place)?)))
    }
}
