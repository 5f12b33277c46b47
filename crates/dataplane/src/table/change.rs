//! Modifying and deleting entries, and installing them in the store.
//!
//! Source: OpenFlow switch specification 1.0.0, section 4.6; 1.4.1, sections 6.4 and 6.5. A command
//! takes effect completely or not at all.

use std::sync::Arc;

use packet::time::Nanos;

use super::addition::Addition;
use super::reclaim::Retired;
use super::select::{CHANGE_STEPS, Progress, Selection};
use super::{Flow, SharedProperties, Tables, verdict};
use crate::fast::slab::EntrySnapshot;
use crate::flow::{
    FlowChange, FlowError, FlowFilter, FlowRemovedReason, FlowSpec, ModifyRules, Part, Source,
};
use crate::forwarder::{Event, Outputs};
use crate::instruction::Instructions;
use crate::key::wide::Wide;

/// Maximum number of slots and program numbers that one call reclaims.
const RECLAIMED_MAX: usize = 64;

/// Progress of a command that modifies entries, or adds one if there is none.
#[derive(Debug, Clone)]
pub struct Modification {
    addition: Addition,
    selection: Selection,
    rules: ModifyRules,
}

impl Modification {
    /// Begins to apply `spec` to the entries of a selection, as far as the rules permit.
    pub fn new(spec: FlowSpec, selection: Selection, rules: ModifyRules) -> Modification {
        Modification { addition: Addition::new(spec), selection, rules }
    }

    /// Returns the requested entry.
    pub fn spec(&self) -> &FlowSpec {
        self.addition.spec()
    }
}

impl Tables {
    /// Gives every entry that passes the filter the instructions of `spec` and, if the rules say
    /// so, its cookie. Other properties stay. If no entry passes, the rules may require to add
    /// `spec`.
    pub fn modify(
        &mut self,
        spec: &FlowSpec,
        filter: &FlowFilter,
        rules: ModifyRules,
        now: Nanos,
        out: &mut Outputs,
    ) -> Result<(), FlowError> {
        let selection = self.select(filter.clone());
        let mut modification = Modification::new(spec.clone(), selection, rules);
        while !self.modify_some(&mut modification, now, out, &mut usize::MAX.clone())?.is_done() {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Like [`Tables::modify`], within a budget. Call it until it is done or fails.
    pub fn modify_some(
        &mut self,
        modification: &mut Modification,
        now: Nanos,
        out: &mut Outputs,
        budget: &mut usize,
    ) -> Result<Progress, FlowError> {
        let Modification { addition, selection, rules } = modification;
        let spec = addition.spec();
        self.check(spec)?;
        self.close();
        self.slab().set_clock(now);
        if self.wait_for_index(selection, budget) {
            while let Some(place) = selection.next(self, budget) {
                self.change(place, spec, *rules, now);
                *budget = budget.saturating_sub(CHANGE_STEPS);
            }
        }
        self.event_queue.tell(out);
        if !selection.is_done() {
            return Ok(Progress::More);
        }
        if !selection.is_used && rules.add {
            return self.add_some(addition, now, out, budget);
        }
        Ok(Progress::Done)
    }

    /// Removes the entries that pass the filter and returns their number.
    pub fn delete(
        &mut self,
        filter: &FlowFilter,
        why: FlowRemovedReason,
        now: Nanos,
        out: &mut Outputs,
    ) -> usize {
        let (mut selection, before) = (self.select(filter.clone()), self.flows.len());
        self.delete_some(&mut selection, why, now, out, &mut usize::MAX.clone());
        before - self.flows.len()
    }

    /// Removes the entries of a selection, within a budget.
    pub fn delete_some(
        &mut self,
        selection: &mut Selection,
        why: FlowRemovedReason,
        now: Nanos,
        out: &mut Outputs,
        budget: &mut usize,
    ) -> Progress {
        self.close();
        self.slab().set_clock(now);
        let source = Some(selection.filter().source);
        if self.wait_for_index(selection, budget) {
            while let Some(place) = selection.next(self, budget) {
                self.say_farewell(place, why, source, now);
                *budget = budget.saturating_sub(CHANGE_STEPS);
            }
        }
        self.event_queue.tell(out);
        if selection.is_done() { Progress::Done } else { Progress::More }
    }

    /// Removes the entries whose instructions satisfy `uses`, from slot `from` on and within a
    /// budget. This deletes the users of a deleted group or meter.
    pub fn delete_users(
        &mut self,
        uses: impl Fn(&Instructions) -> bool,
        from: &mut usize,
        (why, source, now): (FlowRemovedReason, Source, Nanos),
        out: &mut Outputs,
        budget: &mut usize,
    ) -> Progress {
        self.close();
        self.slab().set_clock(now);
        let progress = loop {
            if *budget == 0 {
                break Progress::More;
            }
            match self.flows.next(*from, budget) {
                Ok(Some(place)) => {
                    *from = place + 1;
                    *budget = budget.saturating_sub(1);
                    let flow = self.flows.get(place);
                    if flow.is_some_and(|flow| uses(&flow.instructions)) {
                        self.say_farewell(place as u32, why, Some(source), now);
                        *budget = budget.saturating_sub(CHANGE_STEPS);
                    }
                }
                Ok(None) => break Progress::Done,
                Err(next) => *from = next,
            }
        };
        self.event_queue.tell(out);
        progress
    }

    /// Checks that the tables in the request exist.
    pub(super) fn check(&self, spec: &FlowSpec) -> Result<(), FlowError> {
        if usize::from(spec.table) >= self.tables.len() {
            return Err(FlowError::NoSuchTable(spec.table));
        }
        let leaves = |table: u8| self.first_egress().is_some_and(|first| table >= first);
        let there = |to: u8| {
            to > spec.table
                && usize::from(to) < self.tables.len()
                && leaves(to) == leaves(spec.table)
        };
        match spec.instructions.goto {
            Some(to) if !there(to) => Err(FlowError::BadGoto(to)),
            _ => Ok(()),
        }
    }

    /// Installs an entry in the store and in its table.
    pub(super) fn install(&mut self, spec: &FlowSpec, part: Part, now: Nanos) {
        let picture = EntrySnapshot {
            key: *spec.matching.value(),
            frames: 0,
            bytes: 0,
            last_match: now,
            verdict: verdict(&spec.instructions),
            rank: spec.rank,
            part,
            arrival: self.arrivals,
        };
        self.arrivals = self.arrivals.wrapping_add(1);
        let (flow, program) = self.flow_of(spec, now);
        let place = self.store(&picture, spec.matching.wide_value(), flow);
        self.set_cold(place, spec, program);
        self.enter_indexes(place);
        self.note_installed(place);
        let table = &mut self.tables[usize::from(spec.table)];
        table.insert(&self.common.slab, &spec.matching, spec.rank, place);
        self.note_changed(spec.table);
        self.settle_asked(spec.table);
        self.schedule(place);
        self.tell_change(place, FlowChange::Added, Some(spec.source), now);
    }

    /// Returns the entry and its program number.
    fn flow_of(&mut self, spec: &FlowSpec, now: Nanos) -> (Flow, u32) {
        let matching = &spec.matching;
        let shape = SharedProperties {
            mask: *matching.mask(),
            wide_mask: *matching.wide_mask(),
            named: spec.named,
        };
        let (instructions, program) = self.programs.share(&spec.instructions, &self.common);
        let flow = Flow {
            shape: self.shapes.share(shape),
            instructions,
            created: now,
            idle_timeout: spec.idle_timeout,
            hard_timeout: spec.hard_timeout,
            priority: spec.priority,
            importance: spec.importance,
            flags: spec.flags,
            table: spec.table,
            told: None,
            stands_until: None,
        };
        (flow, program)
    }

    fn set_cold(&self, place: u32, spec: &FlowSpec, program: u32) {
        let cold = self.slab().cold(place);
        cold.set_cookie(spec.cookie);
        cold.set_miss(spec.flags.miss);
        cold.set_program(program);
    }

    /// Releases the instructions of an entry, which have this number.
    pub(super) fn release(&mut self, instructions: &Arc<Instructions>, number: u32) {
        if self.programs.release(instructions, number) {
            self.leaving.add(Retired::Program(number));
        }
    }

    /// Whether a slot is available that no thread reads.
    pub(super) fn has_place(&mut self) -> bool {
        if self.leaving.is_much() {
            self.publish();
        }
        self.reclaim();
        if self.free.is_empty() && self.flows.places() >= self.places_max() {
            // Threads that wait for frames use the published state by now.
            self.publish();
            self.reclaim();
        }
        !self.free.is_empty() || self.flows.places() < self.places_max()
    }

    /// Returns an available slot.
    fn free_place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| self.flows.add_place())
    }

    /// Adds an entry to the indexes and to the eviction order.
    pub(super) fn enter_indexes(&mut self, place: u32) {
        self.record_change(place);
        self.indexes.add(&self.flows, &self.common.slab, place);
        self.put_in_order_of_eviction(place);
    }

    /// Removes an entry from the indexes and from the eviction order.
    pub(super) fn leave_indexes(&mut self, place: u32) {
        self.record_change(place);
        self.indexes.remove(&self.flows, &self.common.slab, place);
        self.evictions.remove(&mut self.flows, &self.common.slab, place);
    }

    /// Returns the number of usable slots. A transaction needs twice as many, since the previous
    /// entries stay.
    fn places_max(&self) -> usize {
        let all = self.slab().capacity();
        if self.apart { all } else { all / 2 }
    }

    /// Reclaims slots and numbers that no thread reads any more, up to a limit.
    fn reclaim(&mut self) {
        if !self.leaving.waits() {
            return;
        }
        let settled = self.common.epochs.settled();
        for _ in 0..RECLAIMED_MAX {
            match self.leaving.pop(settled) {
                Some(Retired::Place(place)) => self.free.push(place),
                Some(Retired::Program(number)) => self.programs.free(number),
                None => break,
            }
        }
    }

    fn store(&mut self, picture: &EntrySnapshot, wide: &Wide, flow: Flow) -> u32 {
        let place = self.free_place();
        let slab = &self.common.slab;
        slab.reserve(place);
        slab.line(place).set(picture);
        if flow.shape.wide_mask != Wide::ZERO {
            slab.set_wide(place, wide);
        }
        self.common.clear_tallies(place);
        self.bases.remove(&place);
        self.flows.put(place, flow);
        place
    }

    /// Replaces the entry in a slot by `spec`, which has the same match and rank.
    pub(super) fn replace(&mut self, place: u32, spec: &FlowSpec, now: Nanos) {
        self.note_change(place);
        self.leave_indexes(place);
        let (flow, program) = self.flow_of(spec, now);
        let before = self.slab().cold(place).program();
        self.set_cold(place, spec, program);
        let line = self.slab().line(place);
        line.set_verdict(verdict(&spec.instructions));
        line.touch(now);
        if spec.flags.reset_counts {
            self.reset_counts(place);
        }
        if let Some(old) = self.flows.put(place, flow) {
            self.release(&old.instructions, before);
            self.shapes.release(old.shape);
        }
        self.enter_indexes(place);
        self.wheel.cancel(place);
        self.schedule(place);
        self.tell_change(place, FlowChange::Added, Some(spec.source), now);
    }

    /// Changes the instructions of an entry.
    fn change(&mut self, place: u32, spec: &FlowSpec, rules: ModifyRules, now: Nanos) {
        self.note_change(place);
        self.record_change(place);
        let (list, program) = self.programs.share(&spec.instructions, &self.common);
        if rules.cookie && self.cookie(place) != spec.cookie {
            self.indexes.remove(&self.flows, &self.common.slab, place);
            self.slab().cold(place).set_cookie(spec.cookie);
            self.indexes.add(&self.flows, &self.common.slab, place);
        }
        let cold = self.slab().cold(place);
        let before = cold.program();
        // A thread that reads the new verdict also finds the new instructions.
        cold.set_program(program);
        self.slab().line(place).set_verdict(verdict(&list));
        if spec.flags.reset_counts {
            self.reset_counts(place);
        }
        if let Some(flow) = self.flows.get_mut(place) {
            let old = std::mem::replace(&mut flow.instructions, list);
            flow.told = None;
            self.release(&old, before);
        }
        self.wheel.cancel(place);
        self.schedule(place);
        self.tell_change(place, FlowChange::Modified, Some(spec.source), now);
    }

    /// Removes an entry and queues the flow-removed event if requested.
    pub(super) fn say_farewell(
        &mut self,
        place: u32,
        why: FlowRemovedReason,
        source: Option<Source>,
        now: Nanos,
    ) {
        let Some(flow) = self.flow(place) else { return };
        let (wanted, table) = (flow.flags.notify_removed, flow.table);
        self.tell_change(place, FlowChange::Removed(why), source, now);
        let record = if wanted { self.record(place as usize, now) } else { None };
        if let Some(flow) = record {
            self.event_queue.add(Event::FlowRemoved { flow: Box::new(flow), why });
        }
        self.remove(place);
        self.tell_vacancy(table);
    }

    /// Removes an entry from all structures, and records it if a bundle is open.
    pub(super) fn remove(&mut self, place: u32) {
        let was_seen = !self.note_removal(place);
        self.take_out(place, was_seen);
    }

    /// Removes an entry from all structures. Frees its slot immediately if no thread can have read
    /// it.
    pub(super) fn take_out(&mut self, place: u32, was_seen: bool) {
        self.leave_indexes(place);
        let Some(flow) = self.flows.take(place) else { return };
        let matching = self.matching(place as usize, &flow);
        let rank = self.slab().line(place).rank();
        let table = &mut self.tables[usize::from(flow.table)];
        table.remove(&self.common.slab, &matching, rank, place);
        self.note_changed(flow.table);
        self.settle_asked(flow.table);
        self.wheel.cancel(place);
        self.release(&flow.instructions, self.slab().cold(place).program());
        self.shapes.release(flow.shape);
        match was_seen {
            true => self.leaving.add(Retired::Place(place)),
            false => self.free.push(place),
        }
    }

    fn tell_change(&mut self, place: u32, change: FlowChange, source: Option<Source>, now: Nanos) {
        let flow = if self.watch { self.record(place as usize, now) } else { None };
        if let Some(flow) = flow {
            self.event_queue.add(Event::FlowChanged { flow: Box::new(flow), change, source });
        }
    }

    pub(super) fn tell_vacancy(&mut self, table: u8) {
        if let Some(down) = self.tables[usize::from(table)].vacancy_news() {
            self.event_queue.add(Event::Vacancy { table, down });
        }
    }
}
