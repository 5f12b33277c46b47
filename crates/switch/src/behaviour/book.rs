//! What the agent believes is installed: the kind of each entry, and how its counters stand to the hardware's.
//!
//! Invariant: it holds an entry if and only if the agent's tables do, as far as their news has been heard.

use std::collections::HashMap;

use dataplane::flow::FlowRecord;
use packet::field::{Field, FieldSet};
use packet::time::Nanos;

use super::model::Capacity;
use super::tcam::FlowId;

/// What an entry looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// Every field of OpenFlow 1.0.
    Exact,
    /// Some fields, none of them above layer 2.
    Layer2,
    /// Some fields.
    Other,
}

/// Fields up to layer 2.
const LAYER_2: [Field; 6] =
    [Field::InPort, Field::EthDst, Field::EthSrc, Field::EthType, Field::VlanVid, Field::VlanPcp];

impl MatchKind {
    /// The kind of a match: whether it is exact, and the fields that it asks for.
    pub fn of(is_exact: bool, fields: FieldSet) -> MatchKind {
        match is_exact {
            true => MatchKind::Exact,
            false if fields.iter().all(|field| LAYER_2.contains(&field)) => MatchKind::Layer2,
            false => MatchKind::Other,
        }
    }
}

/// An entry that the agent believes is installed.
#[derive(Debug, Clone, Copy)]
pub struct Booked {
    /// Its place in the agent's tables.
    pub place: usize,
    /// Tells it from others that were there before it.
    pub generation: u64,
    /// Whether the hardware has it or is to get it.
    pub is_for_hardware: bool,
    kind: MatchKind,
    is_timed: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Book {
    entries: HashMap<FlowId, Booked>,
    generations: u64,
    /// How many there are of each kind.
    kinds: [u64; 3],
    /// Those of them that go some time by themselves.
    timed: usize,
    in_hardware: usize,
    /// Entries of each kind that are promised room and have not been heard of: a bundle's.
    promised: [u64; 3],
}

impl Book {
    /// The entry of this match and rank.
    pub fn get(&self, id: &FlowId) -> Option<&Booked> {
        self.entries.get(id)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Those of them that the hardware has or is to get.
    pub fn count_in_hardware(&self) -> usize {
        self.in_hardware
    }

    /// Whether the agent has to know when frames last came, and how many have when an entry goes.
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

    /// One more entry of this kind will come.
    pub fn promise(&mut self, kind: MatchKind) {
        self.promised[kind as usize] += 1;
    }

    /// Whatever was promised has come or will not.
    pub fn forget_promises(&mut self) {
        self.promised = [0; 3];
    }

    /// An entry was installed, or another took its place.
    pub fn add(&mut self, id: FlowId, flow: &FlowRecord) -> Booked {
        let before = self.remove(&id);
        self.generations += u64::from(before.is_none());
        let kind = MatchKind::of(flow.matching.names_every_field(), flow.matching.fields_asked());
        let is_timed = flow.idle_timeout.max(flow.hard_timeout) > Nanos::ZERO;
        let booked = Booked {
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

    /// The hardware is to get an entry.
    pub fn send_to_hardware(&mut self, id: &FlowId) {
        if let Some(booked) = self.entries.get_mut(id) {
            self.in_hardware += usize::from(!booked.is_for_hardware);
            booked.is_for_hardware = true;
        }
    }

    /// An entry is gone.
    pub fn remove(&mut self, id: &FlowId) -> Option<Booked> {
        let booked = self.entries.remove(id)?;
        self.kinds[booked.kind as usize] -= 1;
        self.timed -= usize::from(booked.is_timed);
        self.in_hardware -= usize::from(booked.is_for_hardware);
        Some(booked)
    }
}
