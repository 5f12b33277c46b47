//! The installed entries: found by key, changed by command, removed in time.
//!
//! Two classifiers share one store of entries and are looked up in a chain, exact matches first,
//! as the study describes its software switch (bianco2010, sections II and IV.C). What commands do
//! follows the OpenFlow switch specification 1.0.0, section 4.6; a modification also takes over
//! the cookie, and, being asked for by rank, the entries of the exact table all have the same:
//! above every priority.
//!
//! Invariant: an entry is in exactly one classifier; no two entries have the same match and rank;
//! memory is bounded by the sizes that the table was made with.

use std::collections::VecDeque;

use packet::time::Nanos;

use crate::action::{Action, ActionLists, Actions};
use crate::classifier::exact::{BATCH_MAX, ExactTable};
use crate::classifier::linear::LinearTable;
use crate::classifier::{Entry, NOWHERE, Verdict};
use crate::counter::TableAccount;
use crate::flow::{
    FlowError, FlowFilter, FlowRecord, FlowRemovedReason, FlowSpec, FlowTotals, TableId,
};
use crate::forwarder::{Event, Outputs};
use crate::key::Key;
use crate::matching::Match;
use crate::wheel::Wheel;

/// Exact matches that fit unless told otherwise, as in the study.
pub const EXACT_ENTRIES_MAX: usize = 131_072;

/// Matches with open fields that fit unless told otherwise, as in the study.
pub const WILDCARD_ENTRIES_MAX: usize = 100;

/// Time-outs looked at in one call of [`FlowTable::expire`].
pub const EXPIRE_STEPS_MAX: usize = 4096;

/// Entries for which memory is set aside at first, so that filling the table never moves it (it is
/// not touched before it is used). Larger tables grow by doubling.
const RESERVED_MAX: usize = 1 << 20;

/// The rank of an exact match: above all priorities.
const RANK_EXACT: u32 = 1 << 16;

/// All installed entries.
#[derive(Debug)]
pub struct FlowTable {
    /// What the path of a frame touches.
    entries: Vec<Entry>,
    /// The rest of the entry at the same place, or `None` where the place is free.
    flows: Vec<Option<Flow>>,
    free: Vec<u32>,
    exact: ExactTable,
    wildcard: LinearTable,
    entries_max: [usize; 2],
    matched: [u64; 2],
    missed: u64,
    lists: ActionLists,
    wheel: Wheel,
    /// Removals that the control plane has yet to be told, at most one for each entry that fits.
    farewells: VecDeque<Event>,
    farewells_lost: u64,
}

/// What only the control plane needs to know of an entry.
#[derive(Debug)]
struct Flow {
    mask: Key,
    actions: Actions,
    cookie: u64,
    created: Nanos,
    idle_timeout: Nanos,
    hard_timeout: Nanos,
    note: u32,
    priority: u16,
    notify_removed: bool,
    table: TableId,
}

impl FlowTable {
    /// An empty table with room for so many entries of each kind. Where exact matches have no
    /// table of their own (0), they are kept among the others, above all priorities.
    pub fn new(exact_entries_max: usize, wildcard_entries_max: usize, seed: u64) -> FlowTable {
        let reserved = exact_entries_max.saturating_add(wildcard_entries_max).min(RESERVED_MAX);
        FlowTable {
            entries: Vec::with_capacity(reserved),
            flows: Vec::with_capacity(reserved),
            free: Vec::new(),
            exact: ExactTable::new(exact_entries_max, seed),
            wildcard: LinearTable::default(),
            entries_max: [exact_entries_max, wildcard_entries_max],
            matched: [0; 2],
            missed: 0,
            lists: ActionLists::default(),
            wheel: Wheel::default(),
            farewells: VecDeque::new(),
            farewells_lost: 0,
        }
    }

    /// For each of `keys` (at most [`BATCH_MAX`]) the entry to use, or [`NOWHERE`].
    #[inline]
    pub fn lookup(&self, keys: &[Key], found: &mut [u32; BATCH_MAX]) {
        if self.exact.is_empty() {
            found.fill(NOWHERE);
        } else {
            self.exact.find_batch(&self.entries, keys, found);
        }
        if !self.wildcard.is_empty() {
            for (found, key) in found.iter_mut().zip(keys) {
                if *found == NOWHERE {
                    *found = self.wildcard.find(key).unwrap_or(NOWHERE);
                }
            }
        }
    }

    /// Counts frames that [`FlowTable::lookup`] found this entry for, and says what to do with
    /// them: `None` where it found none.
    #[inline]
    pub fn count(&mut self, found: u32, frames: u64, bytes: u64, now: Nanos) -> Option<Verdict> {
        let Some(entry) = self.entries.get_mut(found as usize) else {
            self.missed += frames;
            return None;
        };
        entry.frames += frames;
        entry.bytes += bytes;
        entry.last_match = now;
        self.matched[entry.table as usize] += frames;
        Some(entry.verdict)
    }

    /// The actions of an entry that [`FlowTable::lookup`] found.
    pub fn actions(&self, found: u32) -> &[Action] {
        self.flows[found as usize].as_ref().map_or(&[], |flow| &flow.actions)
    }

    /// Installs an entry. One with the same match and rank is replaced, counters and all.
    pub fn add(&mut self, spec: &FlowSpec, now: Nanos) -> Result<(), FlowError> {
        let rank = rank(&spec.matching, spec.priority);
        if spec.check_overlap && self.overlaps(&spec.matching, rank) {
            return Err(FlowError::Overlap);
        }
        if let Some(same) = self.find_same(&spec.matching, rank) {
            self.remove(same);
        }
        let table = self.table_for(&spec.matching);
        if self.count_in(table) >= self.entries_max[table as usize] {
            return Err(FlowError::TableFull(table));
        }
        let place = self.store(spec, table, now);
        match table {
            TableId::Exact => self.exact.insert(&self.entries, place),
            TableId::Wildcard => self.wildcard.insert(spec.matching, rank, place),
        }
        self.schedule(place);
        Ok(())
    }

    /// Gives every entry that the match covers (or, strictly, the one with this match and
    /// priority) the actions and the cookie of `spec`, and keeps the rest of it. Installs `spec`
    /// if there is none.
    pub fn modify(&mut self, spec: &FlowSpec, strict: bool, now: Nanos) -> Result<(), FlowError> {
        let filter = FlowFilter {
            strict_priority: strict.then_some(spec.priority),
            ..FlowFilter::covered_by(spec.matching)
        };
        let places = self.select(&filter);
        if places.is_empty() {
            return self.add(spec, now);
        }
        for place in places {
            let list = self.lists.share(&spec.actions);
            self.entries[place as usize].verdict = verdict(&list);
            if let Some(flow) = &mut self.flows[place as usize] {
                flow.cookie = spec.cookie;
                let old = std::mem::replace(&mut flow.actions, list);
                self.lists.release(&old);
            }
        }
        Ok(())
    }

    /// Removes the entries that the filter lets through and returns how many.
    pub fn delete(&mut self, filter: &FlowFilter, now: Nanos, out: &mut Outputs) -> usize {
        let places = self.select(filter);
        for &place in &places {
            self.say_farewell(place, FlowRemovedReason::Deleted, now);
        }
        self.tell(out);
        places.len()
    }

    /// Removes entries whose time is over, tells who wanted to know, and says when to come back.
    /// Bounded: what is left over is due at once.
    pub fn expire(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        self.tell(out);
        let mut steps = EXPIRE_STEPS_MAX;
        // While the control plane does not keep up, nothing more is removed.
        while self.farewells.is_empty() {
            let Some(place) = self.wheel.pop(now, &mut steps) else { break };
            match self.due(place) {
                Some((due, why)) if due <= now => self.say_farewell(place, why, now),
                _ => self.schedule(place),
            }
            self.tell(out);
        }
        if self.farewells.is_empty() { self.wheel.next() } else { Some(now) }
    }

    /// The entries that the filter lets through, from a place onwards (see [`FlowRecord::place`]).
    pub fn records<'a>(
        &'a self,
        filter: &'a FlowFilter,
        from: usize,
        now: Nanos,
    ) -> impl Iterator<Item = FlowRecord> + 'a {
        let one = self.only(filter);
        let range = match one {
            Some(Some(place)) => (place as usize).max(from)..place as usize + 1,
            Some(None) => 0..0,
            None => from..self.flows.len(),
        };
        range
            .filter(|&place| self.lets_through(filter, place))
            .filter_map(move |place| self.record(place, now))
    }

    /// Sums over the entries that the filter lets through.
    pub fn totals(&self, filter: &FlowFilter) -> FlowTotals {
        let mut totals = FlowTotals::default();
        for place in self.select(filter) {
            let entry = &self.entries[place as usize];
            totals.frames += entry.frames;
            totals.bytes += entry.bytes;
            totals.entries += 1;
        }
        totals
    }

    /// A table's account. A frame is looked up in the second one only if the first had no entry.
    pub fn account(&self, table: TableId) -> TableAccount {
        let [exact, wildcard] = self.matched;
        let asked_second = wildcard + self.missed;
        TableAccount {
            entries: self.count_in(table),
            entries_max: self.entries_max[table as usize],
            lookups: if table == TableId::Exact { exact + asked_second } else { asked_second },
            matched: self.matched[table as usize],
        }
    }

    /// Different lists of actions in use.
    pub fn action_lists(&self) -> usize {
        self.lists.count()
    }

    fn table_for(&self, matching: &Match) -> TableId {
        let exact = matching.is_exact() && self.entries_max[TableId::Exact as usize] > 0;
        if exact { TableId::Exact } else { TableId::Wildcard }
    }

    fn count_in(&self, table: TableId) -> usize {
        match table {
            TableId::Exact => self.exact.len(),
            TableId::Wildcard => self.wildcard.len(),
        }
    }

    fn overlaps(&self, matching: &Match, rank: u32) -> bool {
        match self.table_for(matching) {
            TableId::Exact => self.find_same(matching, rank).is_some(),
            TableId::Wildcard => self.wildcard.overlaps(matching, rank),
        }
    }

    /// The entry with this very match and rank.
    fn find_same(&self, matching: &Match, rank: u32) -> Option<u32> {
        match self.table_for(matching) {
            TableId::Exact => self.exact.find(&self.entries, matching.value()),
            TableId::Wildcard => self.wildcard.find_same(matching, rank),
        }
    }

    /// Where at most one entry can pass the filter's match: which, if any.
    fn only(&self, filter: &FlowFilter) -> Option<Option<u32>> {
        let matching = &filter.matching;
        if filter.strict_priority.is_none() && !matching.is_exact() {
            return None;
        }
        let priority = filter.strict_priority.unwrap_or_default();
        Some(self.find_same(matching, rank(matching, priority)))
    }

    /// The places of the entries that the filter lets through.
    fn select(&self, filter: &FlowFilter) -> Vec<u32> {
        let passes = |place: &u32| self.lets_through(filter, *place as usize);
        match self.only(filter) {
            Some(one) => one.into_iter().filter(passes).collect(),
            None => (0..self.flows.len() as u32).filter(passes).collect(),
        }
    }

    fn lets_through(&self, filter: &FlowFilter, place: usize) -> bool {
        let Some(flow) = &self.flows[place] else { return false };
        let to =
            |wanted: &Action| flow.actions.iter().any(|action| action.same_destination(wanted));
        filter.table.is_none_or(|table| table == flow.table)
            && filter.destination.as_ref().is_none_or(to)
            && filter.matching.covers(&self.matching(place, flow))
    }

    fn matching(&self, place: usize, flow: &Flow) -> Match {
        Match::new(self.entries[place].key, flow.mask)
    }

    /// Puts an entry into the store, in no classifier yet.
    fn store(&mut self, spec: &FlowSpec, table: TableId, now: Nanos) -> u32 {
        let actions = self.lists.share(&spec.actions);
        let entry = Entry {
            key: *spec.matching.value(),
            frames: 0,
            bytes: 0,
            last_match: now,
            verdict: verdict(&actions),
            table,
        };
        let flow = Flow {
            mask: *spec.matching.mask(),
            actions,
            cookie: spec.cookie,
            created: now,
            idle_timeout: spec.idle_timeout,
            hard_timeout: spec.hard_timeout,
            note: spec.note,
            priority: spec.priority,
            notify_removed: spec.notify_removed,
            table,
        };
        if let Some(place) = self.free.pop() {
            self.entries[place as usize] = entry;
            self.flows[place as usize] = Some(flow);
            return place;
        }
        self.entries.push(entry);
        self.flows.push(Some(flow));
        (self.entries.len() - 1) as u32
    }

    /// Takes an entry out of everything.
    fn remove(&mut self, place: u32) {
        let Some(flow) = self.flows[place as usize].take() else { return };
        match flow.table {
            TableId::Exact => self.exact.remove(&self.entries, place),
            TableId::Wildcard => {
                let matching = self.matching(place as usize, &flow);
                self.wildcard.remove(rank(&matching, flow.priority), place);
            }
        }
        self.wheel.cancel(place);
        self.lists.release(&flow.actions);
        self.free.push(place);
    }

    fn record(&self, place: usize, now: Nanos) -> Option<FlowRecord> {
        let (entry, flow) = (&self.entries[place], self.flows[place].as_ref()?);
        Some(FlowRecord {
            place,
            table: flow.table,
            matching: self.matching(place, flow),
            priority: flow.priority,
            cookie: flow.cookie,
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            notify_removed: flow.notify_removed,
            note: flow.note,
            actions: flow.actions.clone(),
            frames: entry.frames,
            bytes: entry.bytes,
            age: now.since(flow.created),
            idle: now.since(entry.last_match),
        })
    }

    /// When the entry's time is over as things stand, and why.
    fn due(&self, place: u32) -> Option<(Nanos, FlowRemovedReason)> {
        let flow = self.flows[place as usize].as_ref()?;
        let last_match = self.entries[place as usize].last_match;
        let after = |start: Nanos, span: Nanos, why| {
            (span != Nanos::ZERO).then(|| (start.saturating_add(span), why))
        };
        let idle = after(last_match, flow.idle_timeout, FlowRemovedReason::IdleTimeout);
        let hard = after(flow.created, flow.hard_timeout, FlowRemovedReason::HardTimeout);
        idle.into_iter().chain(hard).min_by_key(|due| due.0)
    }

    fn schedule(&mut self, place: u32) {
        if let Some((due, _)) = self.due(place) {
            self.wheel.schedule(place, due);
        }
    }

    /// Removes an entry and remembers to tell it, if that was asked for.
    fn say_farewell(&mut self, place: u32, why: FlowRemovedReason, now: Nanos) {
        let wanted = self.flows[place as usize].as_ref().is_some_and(|flow| flow.notify_removed);
        if wanted && self.farewells.len() >= self.entries_max.iter().sum() {
            self.farewells_lost += 1;
        } else if wanted {
            let flow = self.record(place as usize, now);
            self.farewells
                .extend(flow.map(|flow| Event::FlowRemoved { flow: Box::new(flow), why }));
        }
        self.remove(place);
    }

    /// Moves to the outputs what fits there of what the control plane has yet to be told.
    fn tell(&mut self, out: &mut Outputs) {
        let count = self.farewells.len().min(out.events_room());
        out.events.extend(self.farewells.drain(..count));
        out.events_lost += std::mem::take(&mut self.farewells_lost);
    }
}

fn rank(matching: &Match, priority: u16) -> u32 {
    if matching.is_exact() { RANK_EXACT } else { u32::from(priority) }
}

fn verdict(actions: &[Action]) -> Verdict {
    match actions {
        [] => Verdict::Drop,
        [Action::Output { port }] => u16::try_from(*port).map_or(Verdict::List, Verdict::Output),
        _ => Verdict::List,
    }
}

#[cfg(test)]
mod tests;
