//! The installed entries: found by key, changed by command, removed in time.
//!
//! Up to [`TABLES_MAX`] tables share one store of entries. What commands do follows the OpenFlow
//! switch specifications 1.0.0, section 4.6, and 1.4.1, section 6.4; where they differ, the command
//! says which way it wants. Each table (see [`table`](self::one)) is searched by its own classifiers.
//!
//! Invariant: an entry is in exactly one classifier of its table; no two entries of a table have the
//! same match and rank; memory is bounded by the sizes that the tables were made with.

use std::collections::HashMap;
use std::sync::Arc;

use packet::time::Nanos;

use crate::action::Action;
use crate::classifier::Verdict;
use crate::classifier::many::Entries;
use crate::counter::TableAccount;
use crate::fast::aside::Edition;
use crate::fast::slab::Slab;
use crate::flow::{FlowFilter, FlowFlags, FlowRecord, FlowRemovedReason, Named, Part};
use crate::forwarder::Outputs;
use crate::instruction::Instructions;
use crate::key::Key;
use crate::key::wide::{Wide, WordSet};
use crate::matching::Match;
use crate::shared::Shared;
use crate::wheel::{TICK, Wheel};

/// Adding an entry.
mod addition;
/// Changing and removing entries by command, and what all of that takes.
mod change;
/// The order in which entries make room for others.
mod eviction;
/// What is known of entries besides what is looked up.
mod flows;
/// Entries, lent.
mod glance;
/// Indexes for non-strict selection.
mod index;
/// What is to be used again.
mod leaving;
/// How a thread looks entries up while another one changes them.
mod lookup;
/// What the control plane has yet to be told.
mod news;
/// One table.
mod one;
/// Taking back what commands have changed.
mod undo;
/// The different instructions of all entries.
mod programs;
/// Sets of places.
mod places;
/// How many entries refer to what.
mod references;
/// Which entries a command or a request is about.
mod select;
/// Statistics that are told without being asked for.
mod trigger;

pub use crate::classifier::Classifier;
pub use crate::classifier::rest::Described;

pub use addition::Addition;
pub use change::Modification;
use eviction::Evictions;
use flows::Flows;
pub use glance::{Glance, Look};
use index::Indexes;
use leaving::Leaving;
use lookup::{Common, Sums, View};
pub use lookup::{Foreseen, Found, Library, Lookup, Program, Programs, Work};
use news::News;
use one::Table;
pub use one::{TableConfig, TableMiss, TableSettings, Vacancy};
use programs::ProgramBook;
pub use references::References;
pub use select::{CHANGE_STEPS, Progress, Selection};
use undo::{Closing, Undo};

/// Tables that there can be.
pub const TABLES_MAX: usize = 254;

/// Exact matches that fit unless told otherwise, as in the study.
pub const EXACT_ENTRIES_MAX: usize = 131_072;

/// Matches with open fields that fit unless told otherwise, as in the study.
pub const WILDCARD_ENTRIES_MAX: usize = 100;

/// Time-outs looked at in one call of [`Tables::expire`].
pub const EXPIRE_STEPS_MAX: usize = 256;

/// Pieces of news that may wait for each entry that fits: that it came, that it went, and the same
/// for who asked to be told of that one alone.
const NEWS_OF_AN_ENTRY: usize = 3;

/// Entries for which memory is set aside at first, so that filling the table never moves it (it is
/// not touched before it is used). Larger tables grow by doubling.
const RESERVED_MAX: usize = 1 << 18;

/// All installed entries.
#[derive(Debug)]
pub struct Tables {
    /// What threads that look entries up see.
    common: Arc<Common>,
    /// The rest of the entry at the same place.
    flows: Flows,
    free: Vec<u32>,
    /// What is to be used again when nobody looks at it any more.
    leaving: Leaving,
    /// What readers were last given of each table, and in which edition.
    views: Vec<Arc<View>>,
    edition: Edition,
    /// Tables of which readers hold something that is out of date.
    changed: Vec<u8>,
    /// Whether changes are made apart from what readers hold, to be seen together.
    apart: bool,
    /// What entries had counted when they were last set to begin anew.
    bases: HashMap<u32, Sums>,
    /// Entries that ever came, modulo what fits.
    arrivals: u32,
    tables: Vec<Table>,
    programs: ProgramBook,
    shapes: Shared<Shape>,
    wheel: Wheel,
    news: News,
    /// What was changed since [`Tables::begin`].
    undo: Option<Undo>,
    /// What is left to do of the last [`Tables::keep`] or [`Tables::take_back`].
    closing: Option<Closing>,
    indexes: Indexes,
    evictions: Evictions,
    /// For each table, what the entries of it and of those after it ask for.
    asked: Vec<(Key, WordSet)>,
    /// Whether every change of an entry is told, as
    /// [`Event::FlowChanged`](crate::forwarder::Event::FlowChanged).
    pub watch: bool,
}

/// What only the control plane needs to know of an entry.
#[derive(Debug, Clone)]
struct Flow {
    shape: Arc<Shape>,
    instructions: Arc<Instructions>,
    created: Nanos,
    idle_timeout: Nanos,
    hard_timeout: Nanos,
    priority: u16,
    importance: u16,
    flags: FlowFlags,
    table: u8,
    /// Of an entry with a trigger that reached a limit.
    told: Option<Box<trigger::Told>>,
    /// The end of its lifetime by which it stands in the order of eviction, if it does.
    stands_until: Option<Nanos>,
}

impl Flow {
    /// Whether nothing happens to it as time goes by.
    fn is_timeless(&self) -> bool {
        (self.idle_timeout, self.hard_timeout) == (Nanos::ZERO, Nanos::ZERO)
            && self.instructions.trigger.is_none()
    }
}

/// What many entries have in common besides their instructions.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shape {
    mask: Key,
    wide_mask: Wide,
    named: Named,
}

impl Tables {
    /// Empty tables, one for each of `settings`. `seed` is a secret for hashing.
    pub fn new(settings: &[TableSettings], seed: u64) -> Tables {
        assert!(settings.len() <= TABLES_MAX, "there are at most {TABLES_MAX} tables");
        let fit = settings.iter().map(TableSettings::entries_max);
        let fit = fit.fold(0, usize::saturating_add);
        let tables: Vec<Table> =
            settings.iter().map(|settings| Table::new(settings, seed)).collect();
        let views = tables.iter().map(|table| table.view((Key::ZERO, 0))).map(Arc::new);
        let views: Vec<_> = views.collect();
        Tables {
            common: Arc::new(Common::new(fit, &views)),
            flows: Flows::with_capacity(fit.min(RESERVED_MAX)),
            free: Vec::new(),
            leaving: Leaving::default(),
            views,
            edition: Edition::default(),
            changed: Vec::new(),
            apart: false,
            bases: HashMap::new(),
            arrivals: 0,
            tables,
            programs: ProgramBook::new(seed),
            shapes: Shared::default(),
            wheel: Wheel::default(),
            news: News::new(fit.saturating_mul(NEWS_OF_AN_ENTRY).saturating_add(settings.len())),
            undo: None,
            closing: None,
            indexes: Indexes::new(seed),
            evictions: Evictions::new(settings.len()),
            asked: vec![(Key::ZERO, 0); settings.len()],
            watch: false,
        }
    }

    /// How many tables there are.
    pub fn count_tables(&self) -> usize {
        self.tables.len()
    }

    /// A table's configuration, if there is such a table.
    pub fn config(&self, table: u8) -> Option<&TableConfig> {
        self.tables.get(usize::from(table)).map(|table| &table.config)
    }

    /// Changes a table's configuration. False if there is no such table.
    pub fn set_config(&mut self, table: u8, config: TableConfig) -> bool {
        self.close();
        self.note_config(table);
        let Some(known) = self.tables.get_mut(usize::from(table)) else { return false };
        known.set_config(config);
        self.note_changed(table);
        true
    }

    /// The first of the tables through which frames go that are about to leave by a port.
    pub fn first_egress(&self) -> Option<u8> {
        self.common.first_egress()
    }

    /// Sets which tables frames go through that are about to leave by a port: this one and those
    /// after it (OpenFlow 1.5). False if there is no such table or it is the first of all. Entries
    /// of earlier tables must not go on there.
    pub fn set_first_egress(&mut self, first: Option<u8>) -> bool {
        let fits = first.is_none_or(|at| at > 0 && usize::from(at) < self.tables.len());
        if fits {
            self.common.set_first_egress(first);
        }
        fits
    }

    /// Takes note of what a table's entries ask for now.
    fn settle_asked(&mut self, table: u8) {
        for at in (0..=usize::from(table)).rev() {
            let (key, words) = self.asked.get(at + 1).copied().unwrap_or_default();
            let table = &self.tables[at];
            let settled = (key.or(table.asked()), words | table.wide_words());
            if self.asked[at] == settled {
                break;
            }
            self.asked[at] = settled;
            self.mark_changed(at as u8);
        }
    }

    /// A way to look entries up, for one more thread.
    pub fn reader(&mut self) -> Lookup {
        self.publish();
        self.common.join()
    }

    /// Lets those who look entries up see every change so far, from their next batch on. What is found
    /// by a hash they may see before; but what is changed between [`Tables::begin`] and
    /// [`Tables::keep`] they see neither before nor now.
    #[inline]
    pub fn publish(&mut self) {
        let nothing = self.changed.is_empty() && self.leaving.is_empty();
        if !nothing && !self.apart {
            self.put_out();
        }
    }

    fn put_out(&mut self) {
        if !self.changed.is_empty() {
            for table in self.changed.drain(..) {
                let at = usize::from(table);
                self.views[at] = Arc::new(self.tables[at].view(self.asked[at]));
            }
            self.common.replace(&self.views, self.edition);
        }
        self.leaving.set_out(self.common.epochs.advance());
    }

    /// Whether everybody who looks entries up has seen every change so far.
    pub fn is_settled(&mut self) -> bool {
        self.publish();
        self.common.epochs.settled() >= self.common.epochs.now()
    }

    /// Goes on with a change of structure of a table, and takes note of what became out of date for its
    /// readers.
    fn note_changed(&mut self, table: u8) {
        let (flows, slab) = (&self.flows, &self.common.slab);
        self.tables[usize::from(table)].advance(slab, &EntriesOf { flows, slab, table });
        if self.tables[usize::from(table)].take_changed() {
            self.mark_changed(table);
        }
    }

    fn mark_changed(&mut self, table: u8) {
        if !self.changed.contains(&table) {
            self.changed.push(table);
        }
    }

    /// Tells what waited for room in the outputs.
    pub(crate) fn tell(&mut self, out: &mut Outputs) {
        self.news.tell(out);
    }

    /// Removes entries whose time is over, reports them, and returns when to come back. Looks at
    /// [`EXPIRE_STEPS_MAX`] time-outs at most: what is left over is due at once.
    pub fn expire(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        self.expire_some(now, out, EXPIRE_STEPS_MAX)
    }

    /// The same within a budget of time-outs to look at. Nothing expires while a bundle is open.
    pub fn expire_some(
        &mut self,
        now: Nanos,
        out: &mut Outputs,
        mut budget: usize,
    ) -> Option<Nanos> {
        self.slab().set_clock(now);
        self.news.tell(out);
        if self.undo.is_some() || self.closing.is_some() {
            return Some(now.saturating_add(TICK));
        }
        // While the control plane does not keep up, nothing more is removed.
        while self.news.is_empty() {
            let Some(place) = self.wheel.pop(now, &mut budget) else { break };
            self.reach_trigger(place, now);
            match self.due(place) {
                Some((due, why)) if due <= now => self.say_farewell(place, why, None, now),
                _ => self.schedule(place),
            }
            self.news.tell(out);
        }
        if self.news.is_empty() { self.wheel.next() } else { Some(now) }
    }

    /// The entries that the filter lets through, from a place onwards (see [`FlowRecord::place`]).
    pub fn records<'a>(
        &'a self,
        filter: &'a FlowFilter,
        from: usize,
        now: Nanos,
    ) -> impl Iterator<Item = FlowRecord> + 'a {
        self.glances(filter, from, now).map(|entry| entry.record())
    }

    /// A table's account; nothing for a table that does not exist.
    pub fn account(&self, table: u8) -> TableAccount {
        let at = usize::from(table);
        let table = self.tables.get(at);
        table.map(|table| table.account(self.common.table_sums(at))).unwrap_or_default()
    }

    /// The account of one part of a table, as if it were a table of its own. A frame is looked up
    /// in the second part only if the first had no entry.
    pub fn part_account(&self, table: u8, part: Part) -> TableAccount {
        let at = usize::from(table);
        let table = self.tables.get(at);
        table.map(|table| table.part_account(part, self.common.table_sums(at))).unwrap_or_default()
    }

    /// How a table finds matches with open fields; nothing for a table that does not exist.
    pub fn describe(&self, table: u8) -> Option<Described> {
        self.tables.get(usize::from(table)).map(Table::describe)
    }

    /// Different lists of instructions in use.
    pub fn instruction_lists(&self) -> usize {
        self.programs.count()
    }

    fn slab(&self) -> &Slab {
        &self.common.slab
    }

    /// What an entry has counted, since it was last set to begin anew.
    fn sums(&self, place: u32) -> Sums {
        self.above_base(place, self.common.sums(place))
    }

    /// What an entry has counted since it was last told to count anew.
    fn above_base(&self, place: u32, mut sums: Sums) -> Sums {
        if let Some(base) = self.bases.get(&place) {
            sums.frames = sums.frames.saturating_sub(base.frames);
            sums.bytes = sums.bytes.saturating_sub(base.bytes);
        }
        sums
    }

    /// Lets an entry count anew.
    fn reset_counts(&mut self, place: u32) {
        let sums = self.common.sums(place);
        self.bases.insert(place, sums);
    }

    fn cookie(&self, place: u32) -> u64 {
        self.slab().cold(place).cookie()
    }

    fn flow(&self, place: u32) -> Option<&Flow> {
        self.flows.get(place as usize)
    }

    fn lets_through(&self, filter: &FlowFilter, place: usize) -> bool {
        let Some(flow) = self.flows.get(place) else { return false };
        let line = self.slab().line(place as u32);
        let (cookie, cookie_mask) = filter.cookie;
        let to = |wanted: &Action| {
            flow.instructions.actions().any(|action| action.same_destination(wanted))
        };
        filter.table.is_none_or(|table| table == flow.table)
            && filter.part.is_none_or(|part| part == line.part())
            && filter.strict_rank.is_none_or(|rank| rank == line.rank())
            && (self.cookie(place as u32) ^ cookie) & cookie_mask == 0
            && filter.destination.as_ref().is_none_or(to)
            && filter.group.is_none_or(|group| to(&Action::Group(group)))
            && (filter.matching.is_any() || filter.matching.covers(&self.matching(place, flow)))
    }

    fn matching(&self, place: usize, flow: &Flow) -> Match {
        matching(self.slab(), place, flow)
    }

    fn record(&self, place: usize, now: Nanos) -> Option<FlowRecord> {
        Some(self.glance(place, &self.common.tallies(), now)?.record())
    }

    /// When the entry's time is over as things stand, and why.
    fn due(&self, place: u32) -> Option<(Nanos, FlowRemovedReason)> {
        let flow = self.flow(place)?;
        let last_match = self.common.sums(place).last_match;
        let after = |start: Nanos, span: Nanos, why| {
            (span != Nanos::ZERO).then(|| (start.saturating_add(span), why))
        };
        let idle = after(last_match, flow.idle_timeout, FlowRemovedReason::IdleTimeout);
        let hard = after(flow.created, flow.hard_timeout, FlowRemovedReason::HardTimeout);
        idle.into_iter().chain(hard).min_by_key(|due| due.0)
    }

    fn schedule(&mut self, place: u32) {
        if self.flow(place).is_none_or(Flow::is_timeless) {
            return;
        }
        let gone = self.due(place).map(|due| due.0);
        let last_match = self.common.sums(place).last_match;
        let trigger = self.flow(place).and_then(|flow| flow.trigger_due(last_match));
        if let Some(due) = gone.into_iter().chain(trigger).min() {
            self.wheel.schedule(place, due);
        }
    }
}

/// The match of the entry at a place.
fn matching(slab: &Slab, place: usize, flow: &Flow) -> Match {
    let asked = flow.shape.wide_mask != Wide::ZERO;
    let wide = asked.then(|| (slab.wide(place as u32), flow.shape.wide_mask));
    Match::again(slab.line(place as u32).key(), flow.shape.mask, wide.as_ref())
}

/// The entries with open fields of one table.
struct EntriesOf<'a> {
    flows: &'a Flows,
    slab: &'a Slab,
    table: u8,
}

impl Entries for EntriesOf<'_> {
    fn next(&self, from: usize, budget: &mut usize) -> Result<Option<usize>, usize> {
        self.flows.next(from, budget)
    }

    fn matching(&self, place: usize) -> Option<Match> {
        let flow = self.flows.get(place).filter(|flow| flow.table == self.table)?;
        let is_open = self.slab.line(place as u32).part() == Part::Wildcard;
        is_open.then(|| matching(self.slab, place, flow))
    }
}

/// What instructions come to.
pub(crate) fn verdict(instructions: &Instructions) -> Verdict {
    let Instructions { trigger: None, meter: None, apply, write, metadata, goto: None, .. } =
        instructions
    else {
        return Verdict::Program;
    };
    match (&**apply, &**write) {
        ([], []) => Verdict::Drop,
        ([Action::Output { port }], []) => {
            u16::try_from(*port).map_or(Verdict::Program, Verdict::Output)
        }
        // Metadata that is written goes along to the egress tables.
        ([], [Action::Output { port }]) if metadata.is_none() => {
            u16::try_from(*port).map_or(Verdict::Program, Verdict::Output)
        }
        (_, []) => Verdict::List,
        _ => Verdict::Program,
    }
}

#[cfg(test)]
mod bounded;
#[cfg(test)]
mod tests;
