//! Entries as they lie in the store, for who tells of a million of them.
//!
//! A [`FlowRecord`] is a copy of all there is to say; a [`Glance`] lends what is there and sums the
//! counters. Entries of a big table mostly look alike ([`Look`]): then only their numbers and the
//! values of their fields are worth reading.

use std::sync::Arc;

use packet::field::FieldSet;
use packet::time::Nanos;

use super::lookup::{Sums, Tallies};
use super::{Flow, Shape, Tables};
use crate::fast::slab::Line;
use crate::flow::{FlowFilter, FlowFlags, FlowRecord, NOT_COUNTED};
use crate::instruction::Instructions;
use crate::key::Key;
use crate::key::wide::{self, Family, Wide};

/// What entries may have in common: all but their numbers and the values of their fields.
#[derive(Debug, Clone)]
pub struct Look {
    shape: Arc<Shape>,
    instructions: Arc<Instructions>,
    table: u8,
    importance: u16,
    flags: FlowFlags,
    family: Family,
}

/// An installed entry and its counters at one moment.
pub struct Glance<'a> {
    place: usize,
    tables: &'a Tables,
    flow: &'a Flow,
    line: &'a Line,
    key: Key,
    sums: Sums,
    now: Nanos,
}

impl Tables {
    /// The entries that the filter lets through, from a place on, in the order of their places.
    pub fn glances<'a>(
        &'a self,
        filter: &'a FlowFilter,
        from: usize,
        now: Nanos,
    ) -> impl Iterator<Item = Glance<'a>> + 'a {
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

    /// One entry; none where there is none.
    pub(super) fn glance(&self, place: usize, tallies: &Tallies, now: Nanos) -> Option<Glance<'_>> {
        let flow = self.flows.get(place)?;
        let line = self.slab().line(place as u32);
        let sums =
            self.above_base(place as u32, tallies.sums(line, place as u32, self.slab().clock()));
        Some(Glance { place, tables: self, flow, line, key: line.key(), sums, now })
    }
}

impl Glance<'_> {
    /// Where a walk over the entries stands at this one; it goes on at the next place.
    pub fn place(&self) -> usize {
        self.place
    }

    /// What others may have in common with it.
    pub fn look(&self) -> Look {
        let Flow { table, importance, flags, .. } = *self.flow;
        let (shape, instructions) = (self.flow.shape.clone(), self.flow.instructions.clone());
        Look { shape, instructions, table, importance, flags, family: Family::of(&self.key) }
    }

    /// Whether it has this look.
    #[inline]
    pub fn has(&self, look: &Look) -> bool {
        let flow = self.flow;
        Arc::ptr_eq(&flow.shape, &look.shape)
            && Arc::ptr_eq(&flow.instructions, &look.instructions)
            && (flow.table, flow.importance) == (look.table, look.importance)
            && flow.flags == look.flags
            && Family::of(&self.key) == look.family
    }

    /// The fields of the match as they were said.
    pub fn named(&self) -> FieldSet {
        self.flow.shape.named.fields
    }

    /// The values of those fields, in order, into `out`.
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

    /// Its priority as it was given.
    pub fn priority(&self) -> u16 {
        self.flow.priority
    }

    /// Its idle and its hard time-out, zero for never.
    pub fn timeouts(&self) -> (Nanos, Nanos) {
        (self.flow.idle_timeout, self.flow.hard_timeout)
    }

    /// The control plane's number.
    pub fn cookie(&self) -> u64 {
        self.tables.cookie(self.place as u32)
    }

    /// Time since it was installed.
    pub fn age(&self) -> Nanos {
        self.now.since(self.flow.created)
    }

    /// Frames that matched it, or [`NOT_COUNTED`].
    pub fn frames(&self) -> u64 {
        if self.flow.flags.no_frame_counts { NOT_COUNTED } else { self.sums.frames }
    }

    /// Bytes of those, without frame check sequence, or [`NOT_COUNTED`].
    pub fn bytes(&self) -> u64 {
        if self.flow.flags.no_byte_counts { NOT_COUNTED } else { self.sums.bytes }
    }

    /// All of it, copied.
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
