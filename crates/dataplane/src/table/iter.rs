//! Borrowed views of entries, for dumps of a million entries.
//!
//! A [`FlowRecord`] is a complete copy; a [`FlowRef`] borrows the entry and sums its counters. Most
//! entries of a large table share a [`EntryProperties`]: then only their numbers and field values differ.

use std::sync::Arc;

use packet::field::FieldSet;
use packet::time::Nanos;

use super::lookup::{CounterSums, Tallies};
use super::{Flow, SharedProperties, Tables};
use crate::fast::slab::EntryLine;
use crate::flow::{FlowFilter, FlowFlags, FlowRecord, NOT_COUNTED};
use crate::instruction::Instructions;
use crate::key::Key;
use crate::key::wide::{self, Family, Wide};

/// Properties that entries can share: all except the numbers and the field values.
#[derive(Debug, Clone)]
pub struct EntryProperties {
    shape: Arc<SharedProperties>,
    instructions: Arc<Instructions>,
    table: u8,
    importance: u16,
    flags: FlowFlags,
    family: Family,
}

/// An installed entry and its counters at one moment.
pub struct FlowRef<'a> {
    place: usize,
    tables: &'a Tables,
    flow: &'a Flow,
    line: &'a EntryLine,
    key: Key,
    sums: CounterSums,
    now: Nanos,
}

impl Tables {
    /// Returns the entries that pass the filter, from a slot on, in the order of the slots.
    pub fn glances<'a>(
        &'a self,
        filter: &'a FlowFilter,
        from: usize,
        now: Nanos,
    ) -> impl Iterator<Item = FlowRef<'a>> + 'a {
        self.slab().set_clock(now);
        let few = self.few(filter);
        let all = few.is_none().then(|| self.flows.since(from)).into_iter().flatten();
        let few = few.unwrap_or_default().into_iter().map(|place| place as usize);
        let tallies = self.common.tallies();
        few.filter(move |&place| place >= from)
            .chain(all)
            .filter(|&place| self.lets_through(filter, place))
            .filter_map(move |place| self.glance(place, &tallies, now))
    }

    /// Returns a view of the entry in a slot, or `None` if the slot is empty.
    pub(super) fn glance(
        &self,
        place: usize,
        tallies: &Tallies,
        now: Nanos,
    ) -> Option<FlowRef<'_>> {
        let flow = self.flows.get(place)?;
        let line = self.slab().line(place as u32);
        let sums =
            self.above_base(place as u32, tallies.sums(line, place as u32, self.slab().clock()));
        Some(FlowRef { place, tables: self, flow, line, key: line.key(), sums, now })
    }
}

impl FlowRef<'_> {
    /// Returns the entry's slot; an iteration continues with the next slot.
    pub fn place(&self) -> usize {
        self.place
    }

    /// Returns the properties that other entries may share.
    pub fn look(&self) -> EntryProperties {
        let Flow { table, importance, flags, .. } = *self.flow;
        let (shape, instructions) = (self.flow.shape.clone(), self.flow.instructions.clone());
        EntryProperties {
            shape,
            instructions,
            table,
            importance,
            flags,
            family: Family::of(&self.key),
        }
    }

    /// Whether the entry has these properties.
    #[inline]
    pub fn has(&self, look: &EntryProperties) -> bool {
        let flow = self.flow;
        Arc::ptr_eq(&flow.shape, &look.shape)
            && Arc::ptr_eq(&flow.instructions, &look.instructions)
            && (flow.table, flow.importance) == (look.table, look.importance)
            && flow.flags == look.flags
            && Family::of(&self.key) == look.family
    }

    /// Returns the fields that the match named in the request.
    pub fn named(&self) -> FieldSet {
        self.flow.shape.named.fields
    }

    /// Passes the values of those fields to `out`, in order.
    #[inline]
    pub fn values(&self, mut out: impl FnMut(packet::field::Field, u128)) {
        let family = Family::of(&self.key);
        let wide = match self.flow.shape.wide_mask == Wide::ZERO {
            true => Wide::ZERO,
            false => self.tables.slab().wide(self.place as u32),
        };
        for field in self.named().iter() {
            out(field, wide::get(field, family, &self.key, &wide));
        }
    }

    /// Returns the priority in the request.
    pub fn priority(&self) -> u16 {
        self.flow.priority
    }

    /// Returns the idle and the hard timeout; zero means none.
    pub fn timeouts(&self) -> (Nanos, Nanos) {
        (self.flow.idle_timeout, self.flow.hard_timeout)
    }

    /// Returns the cookie.
    pub fn cookie(&self) -> u64 {
        self.tables.cookie(self.place as u32)
    }

    /// Returns the time since the installation.
    pub fn age(&self) -> Nanos {
        self.now.since(self.flow.created)
    }

    /// Returns the number of matched frames, or [`NOT_COUNTED`].
    pub fn frames(&self) -> u64 {
        if self.flow.flags.no_frame_counts { NOT_COUNTED } else { self.sums.frames }
    }

    /// Returns the number of matched bytes without frame check sequence, or [`NOT_COUNTED`].
    pub fn bytes(&self) -> u64 {
        if self.flow.flags.no_byte_counts { NOT_COUNTED } else { self.sums.bytes }
    }

    /// Returns a complete copy.
    pub fn record(&self) -> FlowRecord {
        let flow = self.flow;
        FlowRecord {
            place: self.place,
            table: flow.table,
            part: self.line.part(),
            matching: self.tables.matching(self.place, flow),
            named: flow.shape.named,
            priority: flow.priority,
            rank: self.line.rank(),
            cookie: self.cookie(),
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            importance: flow.importance,
            flags: flow.flags,
            instructions: Arc::clone(&flow.instructions),
            frames: self.frames(),
            bytes: self.bytes(),
            age: self.age(),
            idle: self.now.since(self.sums.last_match),
        }
    }
}
