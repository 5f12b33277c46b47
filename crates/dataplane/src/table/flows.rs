//! Control plane data of entries, by slot.
//!
//! A table that once had many entries keeps their slots. Iterations use the set of slots in use.

use super::Flow;
use super::bitset::SlotSet;

/// Control plane data of each entry, in its slot.
#[derive(Debug)]
pub(super) struct Flows {
    /// `None` if the slot is free.
    rows: Vec<Option<Flow>>,
    taken: SlotSet,
    entries: usize,
}

impl Flows {
    /// Creates an empty store and reserves memory for `places` slots.
    pub(super) fn with_capacity(places: usize) -> Flows {
        Flows { rows: Vec::with_capacity(places), taken: SlotSet::default(), entries: 0 }
    }

    /// Returns the number of slots, including free ones.
    pub(super) fn places(&self) -> usize {
        self.rows.len()
    }

    /// Adds a free slot.
    pub(super) fn add_place(&mut self) -> u32 {
        self.rows.push(None);
        (self.rows.len() - 1) as u32
    }

    /// Returns the entry in a slot.
    pub(super) fn get(&self, place: usize) -> Option<&Flow> {
        self.rows.get(place)?.as_ref()
    }

    /// Returns the entry in a slot.
    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut Flow> {
        self.rows[place as usize].as_mut()
    }

    /// Stores an entry in a slot and returns the previous one.
    pub(super) fn put(&mut self, place: u32, flow: Flow) -> Option<Flow> {
        self.entries += usize::from(self.taken.insert(place));
        self.rows[place as usize].replace(flow)
    }

    /// Removes the entry from a slot.
    pub(super) fn take(&mut self, place: u32) -> Option<Flow> {
        self.entries -= usize::from(self.taken.remove(place));
        self.rows[place as usize].take()
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries
    }

    /// Returns the first used slot from `from` on (see [`SlotSet::next`]).
    pub(super) fn next(&self, from: usize, budget: &mut usize) -> Result<Option<usize>, usize> {
        self.taken.next(from, budget)
    }

    /// Returns the used slots from `from` on, in order.
    pub(super) fn since(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        self.taken.since(from)
    }

    /// Returns all entries with their slots.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Flow)> {
        self.since(0).filter_map(|place| Some((place as u32, self.get(place)?)))
    }
}
