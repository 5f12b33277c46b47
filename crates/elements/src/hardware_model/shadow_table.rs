//! Flow entries that the agent has accepted: their kinds, and the state of their counters in
//! hardware.
//!
//! Invariant: it holds exactly the entries of the agent's tables, as of the last processed event.

use std::collections::HashMap;

use dataplane::flow::FlowRecord;
use packet::field::{Field, FieldSet};
use packet::time::Nanos;

use super::model::Capacity;
use super::tcam::FlowId;

/// Kind of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// Matches every field of OpenFlow 1.0.
    Exact,
    /// Matches some fields, none above layer 2.
    Layer2,
    /// Matches some fields.
    Other,
}

/// Fields up to layer 2.
const LAYER_2: [Field; 6] =
    [Field::InPort, Field::EthDst, Field::EthSrc, Field::EthType, Field::VlanVid, Field::VlanPcp];

impl MatchKind {
    /// Returns the kind of a match. `fields` are the fields that it matches.
    pub fn of(is_exact: bool, fields: FieldSet) -> MatchKind {
        match is_exact {
            true => MatchKind::Exact,
            false if fields.iter().all(|field| LAYER_2.contains(&field)) => MatchKind::Layer2,
            false => MatchKind::Other,
        }
    }
}

/// An entry that the agent has accepted.
#[derive(Debug, Clone, Copy)]
pub struct ShadowEntry {
    /// Its position in the agent's tables.
    pub place: usize,
    /// Distinguishes it from earlier entries with the same identity.
    pub generation: u64,
    /// Whether it is in hardware or scheduled for it.
    pub is_for_hardware: bool,
    kind: MatchKind,
    is_timed: bool,
}

/// All accepted entries.
#[derive(Debug, Default)]
pub struct ShadowTable {
    entries: HashMap<FlowId, ShadowEntry>,
    generations: u64,
    /// Number of entries of each kind.
    kinds: [u64; 3],
    /// Number of entries with a timeout.
    timed: usize,
    in_hardware: usize,
    /// Reserved room for entries of each kind that a bundle will add.
    promised: [u64; 3],
}

impl ShadowTable {
    /// Returns the entry with this match and rank.
    pub fn get(&self, id: &FlowId) -> Option<&ShadowEntry> {
        self.entries.get(id)
    }

    /// Returns the number of entries.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of entries that are in hardware or scheduled for it.
    pub fn count_in_hardware(&self) -> usize {
        self.in_hardware
    }

    /// Whether any entry has a timeout, so that the agent needs its hardware counters.
    pub fn has_timed(&self) -> bool {
        self.timed > 0
    }

    /// Whether one more entry of this kind fits.
    pub fn has_room(&self, kind: MatchKind, capacity: &Capacity) -> bool {
        let kinds = std::array::from_fn(|kind| self.kinds[kind] + self.promised[kind]);
        let [exact, layer_2, other]: [u64; 3] = kinds;
        let limits = [
            (true, exact + layer_2 + other, capacity.rules),
            (kind == MatchKind::Exact, exact, capacity.exact_rules),
            (kind != MatchKind::Exact, layer_2 + other, capacity.wildcard_rules),
            (kind == MatchKind::Layer2, layer_2, capacity.l2_rules),
        ];
        limits.into_iter().all(|(concerns, have, max)| !concerns || max == 0 || have < max)
    }

    /// Reserves room for one entry of this kind.
    pub fn promise(&mut self, kind: MatchKind) {
        self.promised[kind as usize] += 1;
    }

    /// Clears all reservations.
    pub fn forget_promises(&mut self) {
        self.promised = [0; 3];
    }

    /// Adds an entry, or replaces one.
    pub fn add(&mut self, id: FlowId, flow: &FlowRecord) -> ShadowEntry {
        let before = self.remove(&id);
        self.generations += u64::from(before.is_none());
        let kind = MatchKind::of(flow.matching.names_every_field(), flow.matching.fields_asked());
        let is_timed = flow.idle_timeout.max(flow.hard_timeout) > Nanos::ZERO;
        let booked = ShadowEntry {
            place: flow.place,
            generation: before.map_or(self.generations, |before| before.generation),
            is_for_hardware: before.is_some_and(|before| before.is_for_hardware),
            kind,
            is_timed,
        };
        self.kinds[kind as usize] += 1;
        self.timed += usize::from(is_timed);
        self.in_hardware += usize::from(booked.is_for_hardware);
        self.entries.insert(id, booked);
        booked
    }

    /// Marks an entry as scheduled for the hardware.
    pub fn send_to_hardware(&mut self, id: &FlowId) {
        if let Some(booked) = self.entries.get_mut(id) {
            self.in_hardware += usize::from(!booked.is_for_hardware);
            booked.is_for_hardware = true;
        }
    }

    /// Removes an entry.
    pub fn remove(&mut self, id: &FlowId) -> Option<ShadowEntry> {
        let booked = self.entries.remove(id)?;
        self.kinds[booked.kind as usize] -= 1;
        self.timed -= usize::from(booked.is_timed);
        self.in_hardware -= usize::from(booked.is_for_hardware);
        Some(booked)
    }
}
