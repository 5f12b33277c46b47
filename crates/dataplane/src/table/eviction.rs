//! Eviction order of the entries in a full table.
//!
//! Source: OpenFlow switch specification 1.4.1, section 7.3.4.1. The least important entry is
//! evicted first. Among equally important entries the one whose lifetime ends soonest goes first;
//! among these, this implementation evicts the oldest. A table with eviction has a set of its
//! entries in this order, which is built in steps of a few entries.
//!
//! A matching frame postpones an idle timeout without a change of the set. So the set has expiry
//! times that are not later than the actual ones. Before an eviction, the first entry is moved to
//! its actual position until its expiry time is current.
//!
//! The order stays when eviction is disabled for its table, because freeing it would take long.
//!
//! Invariant: a complete order holds every entry of its table.

use std::collections::BTreeSet;

use packet::time::Nanos;

use super::flows::Flows;
use super::select::CHANGE_STEPS;
use super::{Flow, Tables};
use crate::fast::slab::Slab;
use crate::flow::{FlowError, FlowSpec, Part};

/// Importance, expiry time, time of addition and slot of an entry.
type Rank = (u16, Nanos, Nanos, u32);

/// The order of each table that has one.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    orders: Vec<Option<Order>>,
}

/// The entries of a table in eviction order.
#[derive(Debug, Default)]
struct Order {
    /// By part of the table.
    parts: [BTreeSet<Rank>; 2],
    /// Slots below this one are included; `usize::MAX` once the order is complete.
    built: usize,
}

impl Order {
    fn insert(&mut self, part: Part, end: Nanos, place: u32, flow: &mut Flow) {
        flow.stands_until = Some(end);
        self.parts[part as usize].insert((flow.importance, end, flow.created, place));
    }
}

impl Evictions {
    /// Creates storage for `tables` tables, without orders.
    pub(super) fn new(tables: usize) -> Evictions {
        Evictions { orders: (0..tables).map(|_| None).collect() }
    }

    /// Removes an entry from its eviction order.
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
    /// Adds an entry to the order of its table, if the construction has passed its slot.
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

    /// Returns when the entry expires if no more frames match.
    fn end(&self, place: u32) -> Nanos {
        self.due(place).map_or(Nanos::MAX, |due| due.0)
    }

    /// Continues the construction of the order of a table with eviction. Returns false if the
    /// budget is exhausted first.
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

    /// Finds the entry to evict, within a budget. Returns `None` if the budget is exhausted first.
    /// Fails if no entry may be evicted.
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
