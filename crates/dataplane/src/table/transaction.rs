//! Transactions: several commands that are committed or rolled back together.
//!
//! From [`Tables::begin`] on, an undo log records every change with the previous state.
//! [`Tables::take_back`] undoes the changes in reverse order, including counters and timeouts, and
//! discards their events. OpenFlow bundles use this to test whether several commands succeed
//! together.
//!
//! Until the commit, lookup threads use the published state. The first change of a hash table
//! starts a copy that is filled a few rows per change; a trie copies only what changes. Added
//! entries get new slots. The previous actions of changed entries are stored separately.
//! [`Tables::keep`] completes the copies, publishes everything with one store, and waits until
//! every thread uses it. [`Tables::keep_some`] and [`Tables::take_back_some`] work within a budget,
//! so that frames are forwarded between two calls.
//!
//! No entry expires during a transaction.
//!
//! Invariants:
//! - After `take_back`, every table has the contents that it had at `begin`.
//! - The length of the undo log does not depend on how many times entries change. It is at most the
//!   sum of entries at `begin`, entries both added and removed since, and configured tables.
//! - At most twice as many slots are in use as the tables have capacity for.

use crate::fast::slab::EntrySnapshot;
use crate::fast::versioned::TableVersion;
use crate::forwarder::Outputs;
use crate::key::wide::Wide;

use super::bitset::SlotSet;
use super::lookup::CounterSums;
use super::select::{CHANGE_STEPS, Progress};
use super::{Flow, TableConfig, Tables};

/// Undo log of a transaction.
#[derive(Debug)]
pub(super) struct Transaction {
    steps: Vec<Step>,
    /// Slots whose entry was added or changed since the beginning and not removed since. The log
    /// holds its previous state, or the entry is new.
    noted: SlotSet,
    /// Slots whose entry was added since the beginning: no lookup thread has read it.
    born: SlotSet,
    /// Slots of entries whose previous state is stored separately.
    aside: Vec<u32>,
    /// Number of pending events at the beginning.
    event_queue: usize,
    /// For each table, whether the next vacancy event is "vacancy down".
    vacancy_down_next: Vec<bool>,
}

/// A transaction that is being committed or rolled back.
#[derive(Debug)]
pub(super) struct PendingEnd {
    undo: Transaction,
    stage: Stage,
    is_kept: bool,
}

/// Next stage of a commit or rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Undo the steps, last one first.
    Undo,
    /// Complete the copies of hash tables.
    Complete,
    /// Publish the tables.
    Publish,
    /// Wait until every thread uses the published state.
    Wait,
    /// Free the state that threads and the rollback needed.
    Forget,
    /// Report or discard events.
    News,
}

/// One change.
#[derive(Debug)]
enum Step {
    /// An entry was installed in this slot.
    Installed(u32),
    /// The entry in this slot was changed; match and rank are the same.
    Changed(u32, Box<PreviousState>),
    /// An entry was removed from this slot.
    Removed(u32, Box<PreviousState>),
    /// A table's configuration was changed; this is the previous one.
    Configured(u8, TableConfig),
}

/// Previous state of an entry.
#[derive(Debug)]
struct PreviousState {
    line: EntrySnapshot,
    wide: Wide,
    flow: Flow,
    cookie: u64,
    base: Option<CounterSums>,
    /// Whether another entry may have overwritten the slot.
    may_be_gone: bool,
}

impl Tables {
    /// Begins a transaction: records changes and hides them from lookup threads.
    pub fn begin(&mut self) {
        debug_assert!(self.undo.is_none(), "a bundle is open");
        self.close();
        self.publish();
        self.set_apart(true);
        let vacancy_down_next = self.tables.iter().map(|table| table.vacancy_down_next).collect();
        let (steps, event_queue) = (Vec::new(), self.event_queue.hold());
        let (noted, born, aside) = Default::default();
        self.undo = Some(Transaction { steps, noted, born, aside, event_queue, vacancy_down_next });
    }

    /// Returns the edition that will publish the open transaction, if one is open.
    pub(crate) fn next_edition(&self) -> Option<TableVersion> {
        self.undo.is_some().then(|| self.edition.next())
    }

    fn set_apart(&mut self, apart: bool) {
        if self.apart != apart {
            self.apart = apart;
            self.tables.iter_mut().for_each(|table| table.set_stays(apart));
        }
    }

    /// Rolls back every change since the beginning. Lookup threads see none of them.
    pub fn take_back(&mut self) {
        while !self.take_back_some(&mut usize::MAX.clone()).is_done() {
            std::hint::spin_loop();
        }
    }

    /// Like [`Tables::take_back`], within a budget. Call it until it returns done.
    pub fn take_back_some(&mut self, budget: &mut usize) -> Progress {
        if let Some(undo) = self.undo.take() {
            self.closing = Some(PendingEnd { undo, stage: Stage::Undo, is_kept: false });
        }
        self.close_some(budget)
    }

    /// Commits the changes since the beginning and reports their events. When this returns, every
    /// lookup thread uses all of them.
    pub fn keep(&mut self, out: &mut Outputs) {
        while !self.keep_some(out, &mut usize::MAX.clone()).is_done() {
            std::hint::spin_loop();
        }
    }

    /// Like [`Tables::keep`], within a budget. Call it until it returns done. It is not done while
    /// a thread still uses the previous state.
    pub fn keep_some(&mut self, out: &mut Outputs, budget: &mut usize) -> Progress {
        if let Some(undo) = self.undo.take() {
            self.closing = Some(PendingEnd { undo, stage: Stage::Complete, is_kept: true });
        }
        let progress = self.close_some(budget);
        self.event_queue.tell(out);
        progress
    }

    /// Completes the last `keep` or `take_back` without a budget.
    #[inline]
    pub(super) fn close(&mut self) {
        while self.closing.is_some() && !self.close_some(&mut usize::MAX.clone()).is_done() {
            std::hint::spin_loop();
        }
    }

    fn close_some(&mut self, budget: &mut usize) -> Progress {
        let Some(mut closing) = self.closing.take() else { return Progress::Done };
        let progress = self.advance(&mut closing, budget);
        if !progress.is_done() {
            self.closing = Some(closing);
        }
        progress
    }

    fn advance(&mut self, closing: &mut PendingEnd, budget: &mut usize) -> Progress {
        let undo = &mut closing.undo;
        while *budget > 0 {
            match closing.stage {
                Stage::Undo => match undo.steps.pop() {
                    Some(step) => {
                        self.undo_step(step);
                        *budget = budget.saturating_sub(CHANGE_STEPS);
                    }
                    None => {
                        let before = undo.vacancy_down_next.drain(..);
                        for (table, down_next) in self.tables.iter_mut().zip(before) {
                            table.vacancy_down_next = down_next;
                        }
                        closing.stage = Stage::Publish;
                    }
                },
                Stage::Complete => {
                    let slab = &self.common.slab;
                    if !self.tables.iter_mut().all(|table| table.complete(slab, budget)) {
                        break;
                    }
                    (0..self.tables.len()).for_each(|table| self.note_changed(table as u8));
                    closing.stage = Stage::Publish;
                }
                Stage::Publish => {
                    let is_seen = undo.aside.is_empty() && self.leaving.is_empty();
                    closing.stage = Stage::Forget;
                    if !(is_seen && self.changed.is_empty()) {
                        self.edition = self.edition.next();
                        // Publishes even if only instructions of entries changed, but no table.
                        self.mark_changed(0);
                        self.put_out();
                        closing.stage = Stage::Wait;
                    }
                }
                // Waits for one batch at most: idle threads do not delay the tables.
                Stage::Wait if self.common.epochs.settled() < self.common.epochs.now() => break,
                Stage::Wait => closing.stage = Stage::Forget,
                Stage::Forget => {
                    *budget -= 1;
                    if let Some(place) = undo.aside.pop() {
                        self.slab().drop_previous_version(place);
                    } else if let Some(step) = undo.steps.pop() {
                        self.forget_step(step);
                    } else {
                        self.common.forget();
                        self.set_apart(false);
                        closing.stage = Stage::News;
                    }
                }
                Stage::News => {
                    let is_done = match closing.is_kept {
                        true => self.event_queue.release(),
                        false => self.event_queue.forget_since(undo.event_queue, budget),
                    };
                    if is_done {
                        self.shapes.tidy();
                        return Progress::Done;
                    }
                }
            }
        }
        Progress::More
    }

    fn undo_step(&mut self, step: Step) {
        match step {
            Step::Installed(place) => self.take_out(place, false),
            Step::Changed(place, before) => self.change_back(place, *before),
            Step::Removed(place, before) => self.put_back(place, *before),
            Step::Configured(table, config) => drop(self.set_config(table, config)),
        }
    }

    /// Frees the state that undoing a step would need.
    fn forget_step(&mut self, step: Step) {
        if let Step::Changed(_, before) | Step::Removed(_, before) = step {
            self.shapes.release(before.flow.shape);
        }
    }

    pub(super) fn note_installed(&mut self, place: u32) {
        if let Some(undo) = &mut self.undo {
            undo.steps.push(Step::Installed(place));
            undo.noted.insert(place);
            undo.born.insert(place);
        }
    }

    /// Records the entry in a slot before it changes, unless an earlier step has its previous state
    /// or removes it.
    pub(super) fn note_change(&mut self, place: u32) {
        let is_new = self.undo.as_mut().is_some_and(|undo| undo.noted.insert(place));
        if is_new && let Some(before) = self.before(place) {
            self.note(Step::Changed(place, before));
            self.slab().save_previous_version(place, self.edition);
            self.undo.iter_mut().for_each(|undo| undo.aside.push(place));
        }
    }

    /// Records the entry in a slot before it is removed. Returns whether it was added since the
    /// beginning, so that no thread has read it.
    pub(super) fn note_removal(&mut self, place: u32) -> bool {
        let before = self.before(place);
        let Some(undo) = &mut self.undo else { return false };
        undo.noted.remove(place);
        let was_born = undo.born.remove(place);
        if let Some(mut before) = before {
            before.may_be_gone = was_born;
            self.note(Step::Removed(place, before));
        }
        was_born
    }

    pub(super) fn note_config(&mut self, table: u8) {
        if let Some(before) = self.config(table).copied() {
            self.note(Step::Configured(table, before));
        }
    }

    fn note(&mut self, step: Step) {
        if let Some(undo) = &mut self.undo {
            undo.steps.push(step);
        }
    }

    fn before(&self, place: u32) -> Option<Box<PreviousState>> {
        self.undo.as_ref()?;
        let flow = self.flow(place)?.clone();
        let slab = self.slab();
        let line = slab.line(place).picture(slab.clock());
        let (wide, cookie) = (slab.wide(place), self.cookie(place));
        let base = self.bases.get(&place).copied();
        let may_be_gone = false;
        Some(Box::new(PreviousState { line, wide, flow, cookie, base, may_be_gone }))
    }

    fn change_back(&mut self, place: u32, before: PreviousState) {
        self.leave_indexes(place);
        let program = self.slab().cold(place).program();
        let flow = self.write_back(place, before);
        if let Some(now) = self.flows.put(place, flow) {
            self.release(&now.instructions, program);
            self.shapes.release(now.shape);
        }
        self.enter_indexes(place);
        self.wheel.cancel(place);
        self.schedule(place);
    }

    fn put_back(&mut self, place: u32, before: PreviousState) {
        // Later steps are undone already, so the slot is free or waits for reuse.
        if before.may_be_gone {
            let free = self.free.iter().rposition(|&free| free == place);
            self.free.remove(free.expect("the slot of a removed entry is free"));
        } else {
            self.leaving.keep(place);
        }
        let rank = before.line.rank;
        let flow = self.write_back(place, before);
        let table = flow.table;
        let matching = self.matching(place as usize, &flow);
        self.flows.put(place, flow);
        self.enter_indexes(place);
        self.tables[usize::from(table)].insert(&self.common.slab, &matching, rank, place);
        self.note_changed(table);
        self.settle_asked(table);
        self.schedule(place);
    }

    /// Writes the state that lookup threads read, and increments the reference counts of the
    /// entry's shared data.
    fn write_back(&mut self, place: u32, before: PreviousState) -> Flow {
        let PreviousState { line: picture, wide, mut flow, cookie, base, may_be_gone } = before;
        let (instructions, program) = self.programs.share(&flow.instructions, &self.common);
        (flow.instructions, flow.stands_until) = (instructions, None);
        flow.shape = self.shapes.take_in(flow.shape);
        let slab = self.slab();
        let line = slab.line(place);
        if may_be_gone {
            line.set(&picture);
            if flow.shape.wide_mask != Wide::ZERO {
                slab.set_wide(place, &wide);
            }
        } else {
            // Threads keep counting frames there.
            line.set_verdict(picture.verdict);
            if line.frames() == picture.frames {
                line.touch(picture.last_match);
            }
        }
        let cold = slab.cold(place);
        cold.set_cookie(cookie);
        cold.set_miss(flow.flags.miss);
        cold.set_program(program);
        match base {
            Some(base) => self.bases.insert(place, base),
            None => self.bases.remove(&place),
        };
        flow
    }
}

#[cfg(test)]
mod tests {
    use packet::time::Nanos;

    use crate::action::Action;
    use crate::flow::{
        FlowFilter, FlowFlags, FlowRecord, FlowRemovedReason, FlowSpec, ModifyRules,
    };
    use crate::forwarder::Outputs;
    use crate::key::{Field, Key};
    use crate::matching::Match;
    use crate::table::{TableSettings, Tables};

    fn spec(in_port: u64, to: u32) -> FlowSpec {
        let notify_removed = true;
        FlowSpec {
            flags: FlowFlags { notify_removed, ..FlowFlags::default() },
            idle_timeout: Nanos::from_secs(in_port),
            ..FlowSpec::new(
                Match::of(&[(Field::InPort, in_port)]),
                5,
                &[Action::Output { port: to }],
            )
        }
    }

    /// Returns all observable state of the entries, in an order that does not depend on slots.
    fn told(tables: &Tables, now: Nanos) -> Vec<String> {
        let show = |record: FlowRecord| format!("{:?}", FlowRecord { place: 0, ..record });
        let mut rows: Vec<_> = tables.records(&FlowFilter::ALL, 0, now).map(show).collect();
        rows.sort();
        rows
    }

    #[test]
    fn repeated_changes_of_an_entry_are_recorded_once() {
        let mut tables = Tables::new(&[TableSettings::holding(8)], 1);
        let (mut out, now) = (Outputs::new(&[]), Nanos(50));
        for port in 1..=3 {
            tables.add(&spec(port, 9), now, &mut out).unwrap();
        }
        let before = told(&tables, now);
        tables.begin();
        let steps = |tables: &Tables| tables.undo.as_ref().unwrap().steps.len();
        let rules = ModifyRules { add: false, cookie: true };
        for to in 0..100 {
            tables.modify(&spec(1, to), &FlowFilter::ALL, rules, now, &mut out).unwrap();
        }
        assert_eq!(steps(&tables), 3);
        let first = FlowFilter::covered_by(Match::of(&[(Field::InPort, 1)]));
        for to in 0..10 {
            // The changed entry is deleted, added again in its slot, and changed there.
            tables.delete(&first, FlowRemovedReason::Deleted, now, &mut out);
            tables.add(&spec(1, to), now, &mut out).unwrap();
            tables.add(&spec(1, to + 1), now, &mut out).unwrap();
            tables.modify(&spec(1, 7), &FlowFilter::ALL, rules, now, &mut out).unwrap();
        }
        assert_eq!(steps(&tables), 3 + 2 * 10);
        tables.take_back();
        assert_eq!(told(&tables, now), before);
    }

    #[test]
    fn rolling_back_restores_all_changed_entries() {
        let settings = TableSettings { wildcard_entries_max: 4, ..TableSettings::default() };
        let mut tables = Tables::new(&[settings], 1);
        let (mut out, now) = (Outputs::new(&[]), Nanos(50));
        for port in 1..=3 {
            tables.add(&spec(port, 9), now, &mut out).unwrap();
        }
        let matched = Key::ZERO.with(Field::InPort, 2);
        let second = FlowFilter::covered_by(Match::of(&[(Field::InPort, 2)]));
        let place = tables.records(&second, 0, now).map(|it| it.place as u32).next().unwrap();
        tables.look().count(0, place, 7, 700, Nanos(60));
        let before = told(&tables, Nanos(99));
        let lists = tables.instruction_lists();
        tables.begin();
        let now = Nanos(80);
        tables.add(&spec(2, 8), now, &mut out).unwrap();
        let rules = ModifyRules { add: true, cookie: true };
        let one = FlowFilter::covered_by(Match::of(&[(Field::InPort, 1)]));
        tables.modify(&spec(1, 7), &one, rules, now, &mut out).unwrap();
        tables.delete(&FlowFilter::ALL, FlowRemovedReason::Deleted, now, &mut out);
        for port in 4..=7 {
            tables.add(&spec(port, 6), now, &mut out).unwrap();
        }
        assert!(tables.add(&spec(8, 6), now, &mut out).is_err(), "the table is full");
        tables.take_back();
        assert_eq!(told(&tables, Nanos(99)), before);
        assert_eq!((tables.instruction_lists(), out.events.len()), (lists, 0));
        tables.take_back();
        let mut found = [0; crate::classifier::exact::BATCH_MAX];
        tables.look().lookup(0, &[matched], &[crate::key::wide::Wide::ZERO], &mut found);
        assert_eq!(found[0], place, "the entry is found again");
        let due = tables.expire(Nanos::from_millis(1900), &mut out);
        assert_eq!((out.events.len(), due.is_some()), (1, true), "the first entry timed out");
        tables.add(&spec(4, 6), now, &mut out).unwrap();
        tables.delete(&FlowFilter::ALL, FlowRemovedReason::Deleted, now, &mut out);
        assert_eq!(out.events.len(), 1 + 3, "events are reported again");
    }

    #[test]
    fn committed_changes_stay_and_are_then_reported() {
        let settings = TableSettings { wildcard_entries_max: 4, ..TableSettings::default() };
        let mut tables = Tables::new(&[settings], 1);
        let (mut out, now) = (Outputs::new(&[]), Nanos(50));
        tables.add(&spec(1, 9), now, &mut out).unwrap();
        tables.begin();
        tables.delete(&FlowFilter::ALL, FlowRemovedReason::Deleted, now, &mut out);
        tables.add(&spec(2, 9), now, &mut out).unwrap();
        assert!(out.events.is_empty(), "no event before the commit");
        tables.keep(&mut out);
        assert_eq!((out.events.len(), told(&tables, now).len()), (1, 1));
        tables.take_back();
        assert_eq!(told(&tables, now).len(), 1, "there is nothing to roll back");
        tables.delete(&FlowFilter::ALL, FlowRemovedReason::Deleted, now, &mut out);
        assert_eq!(out.events.len(), 2, "events are reported immediately again");
    }
}
