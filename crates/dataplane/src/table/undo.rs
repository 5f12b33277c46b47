//! Several commands done together: seen at once, or taken back.
//!
//! From [`Tables::begin`] on every change is written down with what was before; [`Tables::take_back`]
//! undoes the changes in the reverse order, counters, time-outs and all, and nobody hears of them.
//! This is how a control plane finds out whether several commands can be done together.
//!
//! Until then readers go on with what they hold. From the first change on, a hash table is changed in
//! a copy that is filled a few rows at a time, and a trie in a copy of what changes. Entries that are
//! added get places of their own, and what entries did that are changed is put aside. [`Tables::keep`]
//! completes the copies, publishes all of it by one store, and waits until every thread has taken it
//! up. [`Tables::keep_some`] and [`Tables::take_back_some`] do the same within a budget, so that frames
//! are forwarded between two calls.
//!
//! Nothing expires in between.
//!
//! Invariant: after `take_back` every table holds what it held at `begin`. However often entries are
//! changed in between, there are at most as many steps as entries at the beginning, entries that
//! came and went, and tables that were set; and at most twice as many places as entries that fit.

use crate::fast::aside::Edition;
use crate::fast::slab::Picture;
use crate::forwarder::Outputs;
use crate::key::wide::Wide;

use super::lookup::Sums;
use super::places::Places;
use super::select::{CHANGE_STEPS, Progress};
use super::{Flow, TableConfig, Tables};

/// What was changed since the beginning.
#[derive(Debug)]
pub(super) struct Undo {
    steps: Vec<Step>,
    /// Places whose entry came or was changed since the beginning and has not gone since: what it
    /// was is written down, or it was not there.
    noted: Places,
    /// Places whose entry came since the beginning: nobody has seen it.
    born: Places,
    /// Places of entries of which something is aside.
    aside: Vec<u32>,
    /// News that waited at the beginning.
    news: usize,
    /// For each table, which limit of its room is told next.
    vacancy_down_next: Vec<bool>,
}

/// A bundle that ends: what is left to do.
#[derive(Debug)]
pub(super) struct Closing {
    undo: Undo,
    stage: Stage,
    is_kept: bool,
}

/// What is done next when a bundle ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The steps are undone, the last one first.
    Undo,
    /// Hash tables of which a part is left to copy are completed.
    Complete,
    /// The tables are published.
    Publish,
    /// Every thread takes up what was published.
    Wait,
    /// What was kept for threads and for taking back is freed.
    Forget,
    /// Events are reported, or forgotten.
    News,
}

/// One change.
#[derive(Debug)]
enum Step {
    /// An entry was installed at this place.
    Installed(u32),
    /// The entry at this place was like this, with the same match and rank.
    Changed(u32, Box<Before>),
    /// An entry like this was taken out from this place.
    Removed(u32, Box<Before>),
    /// A table was set to do this.
    Configured(u8, TableConfig),
}

/// What an entry was.
#[derive(Debug)]
struct Before {
    line: Picture,
    wide: Wide,
    flow: Flow,
    cookie: u64,
    base: Option<Sums>,
    /// Whether another entry may have been written over it.
    may_be_gone: bool,
}

impl Tables {
    /// Begins to write changes down, and to keep them from those who look entries up.
    pub fn begin(&mut self) {
        debug_assert!(self.undo.is_none(), "a bundle is open");
        self.close();
        self.publish();
        self.set_apart(true);
        let vacancy_down_next = self.tables.iter().map(|table| table.vacancy_down_next).collect();
        let (steps, news) = (Vec::new(), self.news.hold());
        let (noted, born, aside) = Default::default();
        self.undo = Some(Undo { steps, noted, born, aside, news, vacancy_down_next });
    }

    /// While changes are kept from those who look entries up, the edition in which they will be seen.
    pub(crate) fn next_edition(&self) -> Option<Edition> {
        self.undo.is_some().then(|| self.edition.next())
    }

    fn set_apart(&mut self, apart: bool) {
        if self.apart != apart {
            self.apart = apart;
            self.tables.iter_mut().for_each(|table| table.set_stays(apart));
        }
    }

    /// Undoes every change since the beginning: those who look entries up see none of them.
    pub fn take_back(&mut self) {
        while !self.take_back_some(&mut usize::MAX.clone()).is_done() {
            std::hint::spin_loop();
        }
    }

    /// The same as far as the budget goes. To be called until it is done.
    pub fn take_back_some(&mut self, budget: &mut usize) -> Progress {
        if let Some(undo) = self.undo.take() {
            self.closing = Some(Closing { undo, stage: Stage::Undo, is_kept: false });
        }
        self.close_some(budget)
    }

    /// Keeps what was changed since the beginning, and tells what happened. When this returns, everybody
    /// who looks entries up does so by all of it.
    pub fn keep(&mut self, out: &mut Outputs) {
        while !self.keep_some(out, &mut usize::MAX.clone()).is_done() {
            std::hint::spin_loop();
        }
    }

    /// The same as far as the budget goes. To be called until it is done; it is not done, too, while
    /// a thread looks entries up as they were before.
    pub fn keep_some(&mut self, out: &mut Outputs, budget: &mut usize) -> Progress {
        if let Some(undo) = self.undo.take() {
            self.closing = Some(Closing { undo, stage: Stage::Complete, is_kept: true });
        }
        let progress = self.close_some(budget);
        self.news.tell(out);
        progress
    }

    /// Does at once what is left of the last `keep` or `take_back`.
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

    fn advance(&mut self, closing: &mut Closing, budget: &mut usize) -> Progress {
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
                        // It is published even if no table but only what entries do has changed.
                        self.mark_changed(0);
                        self.put_out();
                        closing.stage = Stage::Wait;
                    }
                }
                // A batch at most: the tables do not wait for a thread that looks at nothing.
                Stage::Wait if self.common.epochs.settled() < self.common.epochs.now() => break,
                Stage::Wait => closing.stage = Stage::Forget,
                Stage::Forget => {
                    *budget -= 1;
                    if let Some(place) = undo.aside.pop() {
                        self.slab().forget_aside(place);
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
                        true => self.news.release(),
                        false => self.news.forget_since(undo.news, budget),
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

    /// Frees what was kept for taking a step back.
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

    /// Writes down what the entry at a place is before it changes, unless an earlier step has it as
    /// it was before or takes it away.
    pub(super) fn note_change(&mut self, place: u32) {
        let is_new = self.undo.as_mut().is_some_and(|undo| undo.noted.insert(place));
        if is_new && let Some(before) = self.before(place) {
            self.note(Step::Changed(place, before));
            self.slab().put_aside(place, self.edition);
            self.undo.iter_mut().for_each(|undo| undo.aside.push(place));
        }
    }

    /// Writes down what the entry at a place is before it goes, and says whether it came since the
    /// beginning, so that nobody has seen it.
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

    fn before(&self, place: u32) -> Option<Box<Before>> {
        self.undo.as_ref()?;
        let flow = self.flow(place)?.clone();
        let slab = self.slab();
        let line = slab.line(place).picture(slab.clock());
        let (wide, cookie) = (slab.wide(place), self.cookie(place));
        let base = self.bases.get(&place).copied();
        let may_be_gone = false;
        Some(Box::new(Before { line, wide, flow, cookie, base, may_be_gone }))
    }

    fn change_back(&mut self, place: u32, before: Before) {
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

    fn put_back(&mut self, place: u32, before: Before) {
        // What came after it is undone, so that its place is free, or waits to be.
        if before.may_be_gone {
            let free = self.free.iter().rposition(|&free| free == place);
            self.free.remove(free.expect("the place of an entry that went is free"));
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

    /// Writes what those see who look entries up, and counts the entry as one more user of what it
    /// shares.
    fn write_back(&mut self, place: u32, before: Before) -> Flow {
        let Before { line: picture, wide, mut flow, cookie, base, may_be_gone } = before;
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
            // Frames are counted there all the time.
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

    /// Everything that can be told of the entries, in an order that does not depend on their places.
    fn told(tables: &Tables, now: Nanos) -> Vec<String> {
        let show = |record: FlowRecord| format!("{:?}", FlowRecord { place: 0, ..record });
        let mut rows: Vec<_> = tables.records(&FlowFilter::ALL, 0, now).map(show).collect();
        rows.sort();
        rows
    }

    #[test]
    fn what_changes_often_is_written_down_once() {
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
            // It goes as it has become, comes anew in its place, and is changed there.
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
    fn what_was_added_changed_replaced_and_deleted_is_as_before() {
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
        assert!(tables.add(&spec(8, 6), now, &mut out).is_err(), "it is full");
        tables.take_back();
        assert_eq!(told(&tables, Nanos(99)), before);
        assert_eq!((tables.instruction_lists(), out.events.len()), (lists, 0));
        tables.take_back();
        let mut found = [0; crate::classifier::exact::BATCH_MAX];
        tables.look().lookup(0, &[matched], &[crate::key::wide::Wide::ZERO], &mut found);
        assert_eq!(found[0], place, "it is found again");
        let due = tables.expire(Nanos::from_millis(1900), &mut out);
        assert_eq!((out.events.len(), due.is_some()), (1, true), "the first one is over");
        tables.add(&spec(4, 6), now, &mut out).unwrap();
        tables.delete(&FlowFilter::ALL, FlowRemovedReason::Deleted, now, &mut out);
        assert_eq!(out.events.len(), 1 + 3, "and news are told again");
    }

    #[test]
    fn what_is_kept_stays_and_is_told_then() {
        let settings = TableSettings { wildcard_entries_max: 4, ..TableSettings::default() };
        let mut tables = Tables::new(&[settings], 1);
        let (mut out, now) = (Outputs::new(&[]), Nanos(50));
        tables.add(&spec(1, 9), now, &mut out).unwrap();
        tables.begin();
        tables.delete(&FlowFilter::ALL, FlowRemovedReason::Deleted, now, &mut out);
        tables.add(&spec(2, 9), now, &mut out).unwrap();
        assert!(out.events.is_empty(), "nobody hears before all is done");
        tables.keep(&mut out);
        assert_eq!((out.events.len(), told(&tables, now).len()), (1, 1));
        tables.take_back();
        assert_eq!(told(&tables, now).len(), 1, "there is nothing to take back");
        tables.delete(&FlowFilter::ALL, FlowRemovedReason::Deleted, now, &mut out);
        assert_eq!(out.events.len(), 2, "news are told at once again");
    }
}
