//! Flow tables: lookup by key, flow-mods and timeouts.
//!
//! Up to [`TABLES_MAX`] tables share one store of entries. Commands follow the OpenFlow switch
//! specifications 1.0.0, section 4.6, and 1.4.1, section 6.4. Where these differ, the command
//! selects the behavior. Each table (see [`table`](self::one)) has its own classifiers.
//!
//! Invariants:
//! - An entry is in exactly one classifier of its table.
//! - No two entries of a table have the same match and rank.
//! - The table sizes at creation bound the memory.

use std::collections::HashMap;
use std::sync::Arc;

use packet::time::Nanos;

use crate::action::Action;
use crate::classifier::wildcard_large::Entries;
use crate::counter::TableAccount;
use crate::fast::slab::Slab;
use crate::fast::verdict::Verdict;
use crate::fast::versioned::TableVersion;
use crate::flow::{FlowFilter, FlowFlags, FlowRecord, FlowRemovedReason, MatchDetails, Part};
use crate::forwarder::Outputs;
use crate::instruction::Instructions;
use crate::key::Key;
use crate::key::wide::{Wide, WordSet};
use crate::matching::Match;
use crate::shared::Interner;
use crate::wheel::{TICK, Wheel};

mod addition;
mod change;
mod changes;
mod eviction;
mod flows;
mod iter;
mod index;
mod reclaim;
mod lookup;
mod events;
mod flow_table;
mod transaction;
mod programs;
mod bitset;
mod references;
mod select;
mod trigger;

pub use crate::classifier::Classifier;
pub use crate::classifier::wildcard::ClassifierKind;

pub use addition::Addition;
pub use change::Modification;
pub use changes::{FlowCounters, FlowSource};
use events::EventQueue;
use eviction::Evictions;
use flow_table::Table;
pub use flow_table::{TableConfig, TableMiss, TableSettings, Vacancy};
use flows::Flows;
use index::Indexes;
pub use iter::{EntryProperties, FlowRef};
use lookup::{Common, CounterSums, View};
pub use lookup::{FoundEntries, Library, Lookup, LookupWork, PrefetchedLookup, Program, Programs};
use programs::InstructionTable;
use reclaim::RetireList;
pub use references::References;
pub use select::{CHANGE_STEPS, Progress, Selection};
use transaction::{PendingEnd, Transaction};

/// Maximum number of tables.
pub const TABLES_MAX: usize = 254;

/// Default maximum of exact matches, as in bianco2010.
pub const EXACT_ENTRIES_MAX: usize = 131_072;

/// Default maximum of wildcard matches, as in bianco2010.
pub const WILDCARD_ENTRIES_MAX: usize = 100;

/// Maximum number of timeouts that one call of [`Tables::expire`] examines.
pub const EXPIRE_STEPS_MAX: usize = 256;

/// Maximum number of pending events per entry: added, removed, and both again for a requester that
/// is notified of that entry only.
const NEWS_OF_AN_ENTRY: usize = 3;

/// Maximum number of entries for which memory is reserved initially. Filling these slots never
/// moves the table, and the system commits the memory on first use. Larger tables grow by doubling.
const RESERVED_MAX: usize = 1 << 18;

/// All installed entries.
#[derive(Debug)]
pub struct Tables {
    /// State that lookup threads share.
    common: Arc<Common>,
    /// Control plane data of the entry in the same slot.
    flows: Flows,
    free: Vec<u32>,
    /// Slots and program numbers that are reused when no thread can read them.
    leaving: RetireList,
    /// Last published view of each table, and its edition.
    views: Vec<Arc<View>>,
    edition: TableVersion,
    /// Tables whose published view is out of date.
    changed: Vec<u8>,
    /// Whether changes are staged, to be published together.
    apart: bool,
    /// Counter values at the last reset of an entry's counters.
    bases: HashMap<u32, CounterSums>,
    /// Number of entries ever added, modulo the capacity.
    arrivals: u32,
    tables: Vec<Table>,
    programs: InstructionTable,
    shapes: Interner<SharedProperties>,
    wheel: Wheel,
    event_queue: EventQueue,
    /// Undo log since [`Tables::begin`].
    undo: Option<Transaction>,
    /// Remaining work of the last [`Tables::keep`] or [`Tables::take_back`].
    closing: Option<PendingEnd>,
    indexes: Indexes,
    evictions: Evictions,
    /// For each table, the fields that entries of it and of later tables match on.
    asked: Vec<(Key, WordSet)>,
    /// Whether every change of an entry is reported as
    /// [`Event::FlowChanged`](crate::forwarder::Event::FlowChanged).
    pub watch: bool,
    /// Slots whose entry changed, if these are recorded.
    changes: Option<Vec<u32>>,
}

/// Data of an entry that only the control plane needs.
#[derive(Debug, Clone)]
struct Flow {
    shape: Arc<SharedProperties>,
    instructions: Arc<Instructions>,
    created: Nanos,
    idle_timeout: Nanos,
    hard_timeout: Nanos,
    priority: u16,
    importance: u16,
    flags: FlowFlags,
    table: u8,
    /// Trigger state of an entry that has reached a limit.
    told: Option<Box<trigger::ReportedTriggers>>,
    /// Expiry time that determines the entry's position in the eviction order, if it is in the
    /// order.
    stands_until: Option<Nanos>,
}

impl Flow {
    /// Whether the entry has neither a timeout nor a trigger.
    fn is_timeless(&self) -> bool {
        (self.idle_timeout, self.hard_timeout) == (Nanos::ZERO, Nanos::ZERO)
            && self.instructions.trigger.is_none()
    }
}

/// Properties that many entries share, apart from their instructions.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SharedProperties {
    mask: Key,
    wide_mask: Wide,
    named: MatchDetails,
}

impl Tables {
    /// Creates empty tables, one for each of `settings`. `seed` is a secret for hashing.
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
            leaving: RetireList::default(),
            views,
            edition: TableVersion::default(),
            changed: Vec::new(),
            apart: false,
            bases: HashMap::new(),
            arrivals: 0,
            tables,
            programs: InstructionTable::new(seed),
            shapes: Interner::default(),
            wheel: Wheel::default(),
            event_queue: EventQueue::new(
                fit.saturating_mul(NEWS_OF_AN_ENTRY).saturating_add(settings.len()),
            ),
            undo: None,
            closing: None,
            indexes: Indexes::new(seed),
            evictions: Evictions::new(settings.len()),
            asked: vec![(Key::ZERO, 0); settings.len()],
            watch: false,
            changes: None,
        }
    }

    /// Returns the number of tables.
    pub fn count_tables(&self) -> usize {
        self.tables.len()
    }

    /// Returns a table's configuration, or `None` if the table does not exist.
    pub fn config(&self, table: u8) -> Option<&TableConfig> {
        self.tables.get(usize::from(table)).map(|table| &table.config)
    }

    /// Changes a table's configuration. Returns false if the table does not exist.
    pub fn set_config(&mut self, table: u8, config: TableConfig) -> bool {
        self.close();
        self.note_config(table);
        let Some(known) = self.tables.get_mut(usize::from(table)) else { return false };
        known.set_config(config);
        self.note_changed(table);
        true
    }

    /// Returns the first egress table.
    pub fn first_egress(&self) -> Option<u8> {
        self.common.first_egress()
    }

    /// Sets the first egress table (OpenFlow 1.5); all later tables are egress tables too. Returns
    /// false if the table does not exist or is table 0. Entries of earlier tables must not have a
    /// goto-table to an egress table.
    pub fn set_first_egress(&mut self, first: Option<u8>) -> bool {
        let fits = first.is_none_or(|at| at > 0 && usize::from(at) < self.tables.len());
        if fits {
            self.common.set_first_egress(first);
        }
        fits
    }

    /// Updates the fields that the entries of a table match on.
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

    /// Creates a lookup handle for one more thread.
    pub fn reader(&mut self) -> Lookup {
        self.publish();
        self.common.join()
    }

    /// Publishes all changes: lookup threads see them from their next batch on.
    ///
    /// Threads may see entries of hash tables earlier. Changes between [`Tables::begin`] and
    /// [`Tables::keep`] stay invisible.
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

    /// Whether every lookup thread uses all changes so far.
    pub fn is_settled(&mut self) -> bool {
        self.publish();
        self.common.epochs.settled() >= self.common.epochs.now()
    }

    /// Continues a structural change of a table, and marks the table if its published view is out
    /// of date.
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

    /// Moves pending events to the outputs.
    pub(crate) fn tell(&mut self, out: &mut Outputs) {
        self.event_queue.tell(out);
    }

    /// Removes and reports expired entries, and returns the time of the next call. Examines at most
    /// [`EXPIRE_STEPS_MAX`] timeouts; if more are left, the next call is due immediately.
    pub fn expire(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        self.expire_some(now, out, EXPIRE_STEPS_MAX)
    }

    /// Like [`Tables::expire`], but examines at most `budget` timeouts. No entry expires while a
    /// bundle is open.
    pub fn expire_some(
        &mut self,
        now: Nanos,
        out: &mut Outputs,
        mut budget: usize,
    ) -> Option<Nanos> {
        self.slab().set_clock(now);
        self.event_queue.tell(out);
        if self.undo.is_some() || self.closing.is_some() {
            return Some(now.saturating_add(TICK));
        }
        // Stops removing entries while the control plane does not keep up.
        while self.event_queue.is_empty() {
            let Some(place) = self.wheel.pop(now, &mut budget) else { break };
            self.reach_trigger(place, now);
            match self.due(place) {
                Some((due, why)) if due <= now => self.say_farewell(place, why, None, now),
                _ => self.schedule(place),
            }
            self.event_queue.tell(out);
        }
        if self.event_queue.is_empty() { self.wheel.next() } else { Some(now) }
    }

    /// Returns the entries that pass the filter, from slot `from` on (see [`FlowRecord::place`]).
    pub fn records<'a>(
        &'a self,
        filter: &'a FlowFilter,
        from: usize,
        now: Nanos,
    ) -> impl Iterator<Item = FlowRecord> + 'a {
        self.glances(filter, from, now).map(|entry| entry.record())
    }

    /// Returns a table's statistics; all zero for a table that does not exist.
    pub fn account(&self, table: u8) -> TableAccount {
        let at = usize::from(table);
        let table = self.tables.get(at);
        table.map(|table| table.account(self.common.table_sums(at))).unwrap_or_default()
    }

    /// Returns the statistics of one part of a table. A frame is looked up in the second part only
    /// if the first part has no match.
    pub fn part_account(&self, table: u8, part: Part) -> TableAccount {
        let at = usize::from(table);
        let table = self.tables.get(at);
        table.map(|table| table.part_account(part, self.common.table_sums(at))).unwrap_or_default()
    }

    /// Describes how a table finds wildcard matches. Returns `None` if the table does not exist.
    pub fn describe(&self, table: u8) -> Option<ClassifierKind> {
        self.tables.get(usize::from(table)).map(Table::describe)
    }

    /// Returns the number of distinct instruction lists in use.
    pub fn instruction_lists(&self) -> usize {
        self.programs.count()
    }

    fn slab(&self) -> &Slab {
        &self.common.slab
    }

    /// Returns an entry's counters since their last reset.
    fn sums(&self, place: u32) -> CounterSums {
        self.above_base(place, self.common.sums(place))
    }

    /// Subtracts the counter values at the last reset.
    fn above_base(&self, place: u32, mut sums: CounterSums) -> CounterSums {
        if let Some(base) = self.bases.get(&place) {
            sums.frames = sums.frames.saturating_sub(base.frames);
            sums.bytes = sums.bytes.saturating_sub(base.bytes);
        }
        sums
    }

    /// Resets an entry's counters.
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

    /// Returns when and why the entry expires if no more frames match.
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

/// Returns the match of the entry in a slot.
fn matching(slab: &Slab, place: usize, flow: &Flow) -> Match {
    let asked = flow.shape.wide_mask != Wide::ZERO;
    let wide = asked.then(|| (slab.wide(place as u32), flow.shape.wide_mask));
    Match::again(slab.line(place as u32).key(), flow.shape.mask, wide.as_ref())
}

/// The wildcard entries of one table.
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

/// Returns the precomputed verdict for instructions.
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
        // Egress tables can match on written metadata.
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
