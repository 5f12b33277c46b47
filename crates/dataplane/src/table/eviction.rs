//! The order in which entries make room for others in a full table.
//!
//! Source: OpenFlow switch specification 1.4.1, section 7.3.4.1: the least important entry goes first, and among those
//! the one whose lifetime ends soonest; here, then the oldest one. A table that evicts has a set of its entries in this
//! order, which is built a few entries at a time.
//!
//! A frame puts the end of an idle time-out off without the set being changed. So the set has ends that are not later
//! than the real ones: the first entry of the set is put in its place until its end is the real one.
//!
//! An order stays when its table is set not to evict any more: freeing it would take long.
//!
//! Invariant: an order that is complete holds every entry of its table.

use std::collections::BTreeSet;

use packet::time::Nanos;

use super::flows::Flows;
use super::select::CHANGE_STEPS;
use super::{Flow, Tables};
use crate::fast::slab::Slab;
use crate::flow::{FlowError, FlowSpec, Part};

/// Importance, end, time of addition and place of an entry.
type Rank = (u16, Nanos, Nanos, u32);

/// The orders, for each table that has one.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    orders: Vec<Option<Order>>,
}

/// The entries of a table.
#[derive(Debug, Default)]
struct Order {
    /// By part.
    parts: [BTreeSet<Rank>; 2],
    /// Entries at places below this are in; `usize::MAX` once it is complete.
    built: usize,
}

impl Order {
    fn insert(&mut self, part: Part, end: Nanos, place: u32, flow: &mut Flow) {
        flow.stands_until = Some(end);
        self.parts[part as usize].insert((flow.importance, end, flow.created, place));
    }
}

impl Evictions {
    /// Without orders, for so many tables.
    pub(super) fn new(tables: usize) -> Evictions {
        Evictions { orders: (0..tables).map(|_| None).collect() }
    }

    /// Takes an entry out of the order that it stands in.
    pub(super) fn remove(&mut self, flows: &mut Flows, slab: &Slab, place: u32) {
        let Some(flow) = flows.get_mut(place) else { return };
        let order = self.orders[usize::from(flow.table)].as_mut();
        if let (Some(order), Some(end)) = (order, flow.stands_until.take()) {
            let part = slab.line(place).part() as usize;
            order.parts[part].remove(&(flow.importance, end, flow.created, place));
        }
    }
}

impl Tables {
    /// Puts an entry into the order of its table, if that is built so far.
    pub(super) fn put_in_order_of_eviction(&mut self, place: u32) {
        let Some(table) = self.flow(place).map(|flow| usize::from(flow.table)) else { return };
        let is_built = |order: &Order| (place as usize) < order.built;
        if self.evictions.orders[table].as_ref().is_some_and(is_built) {
            let (end, part) = (self.end(place), self.slab().line(place).part());
            let order = self.evictions.orders[table].as_mut();
            if let (Some(order), Some(flow)) = (order, self.flows.get_mut(place)) {
                order.insert(part, end, place, flow);
            }
        }
    }

    /// When an entry's lifetime ends as things stand.
    fn end(&self, place: u32) -> Nanos {
        self.due(place).map_or(Nanos::MAX, |due| due.0)
    }

    /// Goes on building the order of a table that evicts. False if the budget was used up before it was complete.
    pub(super) fn build_order(&mut self, table: u8, budget: &mut usize) -> bool {
        let at = usize::from(table);
        let mut built = self.evictions.orders[at].get_or_insert_default().built;
        let is_complete = loop {
            if built == usize::MAX {
                break true;
            }
            if *budget == 0 {
                break false;
            }
            match self.flows.next(built, budget) {
                Ok(None) => built = usize::MAX,
                Err(from) => built = from,
                Ok(Some(place)) => {
                    *budget = budget.saturating_sub(1);
                    built = place + 1;
                    if self.flows.get(place).is_some_and(|flow| flow.table == table) {
                        self.set_built(at, built);
                        self.put_in_order_of_eviction(place as u32);
                    }
                }
            }
        };
        self.set_built(at, built);
        is_complete
    }

    fn set_built(&mut self, table: usize, built: usize) {
        self.evictions.orders[table].iter_mut().for_each(|order| order.built = built);
    }

    /// Finds the entry that makes room for another, as far as the budget goes: none if that is used up before. Fails if
    /// no entry may go.
    pub(super) fn find_victim(
        &mut self,
        (spec, part): (&FlowSpec, Part),
        budget: &mut usize,
    ) -> Result<Option<u32>, FlowError> {
        let full = FlowError::TableFull(spec.table);
        if !self.tables[usize::from(spec.table)].config.eviction {
            return Err(full);
        }
        if !self.build_order(spec.table, budget) {
            return Ok(None);
        }
        loop {
            let order = self.evictions.orders[usize::from(spec.table)].as_ref();
            let first = order.and_then(|order| order.parts[part as usize].first().copied());
            let first = first.filter(|(importance, ..)| *importance <= spec.importance);
            let Some((_, end, _, place)) = first else { return Err(full) };
            if end == self.end(place) {
                return Ok(Some(place));
            }
            if *budget == 0 {
                return Ok(None);
            }
            *budget = budget.saturating_sub(CHANGE_STEPS);
            self.evictions.remove(&mut self.flows, &self.common.slab, place);
            self.put_in_order_of_eviction(place);
        }
    }
}
