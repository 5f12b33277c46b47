//! The projection: lowered entries of flow tables in the memory that programs read.
//!
//! Programs read without locks, while one thread changes the entries. Each entry has the first
//! generation in which it exists, and the first in which it does not. A program reads the current
//! generation once and then sees exactly the entries of that generation, so a batch of changes is
//! seen whole or not at all. The batch is visible with one store of the next generation.
//!
//! A removed entry stays in its chain as long as a program may use an earlier generation. Then it
//! leaves the chain; its slot is reused when no program runs that may have found it. Each CPU
//! publishes what its program uses ([`cpu::RUNS`](super::layout::cpu::RUNS)). A program does not
//! wait until that store is visible, so this thread allows [`PAUSE`] for it.
//!
//! Invariants:
//! - In a chain, entries with the same mask and key are in descending order. So the first one that
//!   exists is the one of highest order.
//! - If an entry has no place, every frame escapes.
//! - Stores become visible in their order, as on x86-64. (Since Linux 6.16, programs could use
//!   acquire loads elsewhere.)

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use dataplane::flow::Part;
use dataplane::key::Key;
use dataplane::table::FlowSource;
use packet::frame::PortNo;
use packet::time::Nanos;

use super::layout::{TABLES, action, entry, hash, order, port, root};
use super::lower::{Deed, Lowered, Reason, Target, lower};
use super::memory::{Counts, Memory};
use super::rewrites::Rewrites;
use super::tuples::{Numbers, Replaced, Tuples};

/// How long after a store every CPU sees it.
const PAUSE: Nanos = Nanos::from_millis(1);

/// Part of the slots that is reserved for entries which replace others, beyond free ones.
const SPARE_PART: usize = 8;

/// Minimum of that reserve.
const SPARE_MIN: usize = 1024;

/// Maximum number of slots that one call reclaims.
const RECLAIMED_MAX: usize = 4096;

/// Lowered entries, and their owner's state.
#[derive(Debug)]
pub(super) struct Projection {
    pub(super) memory: Arc<Memory>,
    /// Ports by index.
    pub(super) ports: Vec<PortNo>,
    seed: u64,
    generation: u64,
    /// Flags of the tables that drop frames which match no entry.
    drops_misses: u64,
    /// Whether every frame escapes.
    is_suspended: bool,
    /// Flows by number.
    flows: Vec<Flow>,
    /// Entries by slot, as far as slots were ever used.
    entries: Vec<Entry>,
    /// Slots that were used before.
    free: Vec<u32>,
    /// Tuples by table.
    tuples: Vec<Tuples>,
    numbers: Numbers,
    rewrites: Rewrites,
    /// Flows without a slot.
    unplaced: HashMap<u32, Wanted>,
    /// Slots of removed entries that are in their chains.
    dying: VecDeque<Retired<u32>>,
    /// What no program can find any more, but may still read.
    leaving: VecDeque<Retired<Left>>,
    /// Number of entries that act here, then of entries that escape by reason.
    lowered: usize,
    escaping: Vec<usize>,
}

/// An entry that has a slot.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    flow: u32,
    table: u8,
    chain: u32,
    order: u64,
    action: u32,
    /// Why it escapes.
    reason: Option<Reason>,
    /// Which of the successive flows with this number it belongs to.
    life: u32,
    /// Slot of the entry that it replaced and that programs may still use, or 0.
    previous: u32,
}

/// The flow with a number: its entries, which replaced each other.
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    /// Slot of the current entry; 0 without one.
    slot: u32,
    /// Slot of the latest entry, current or replaced; 0 if there is none any more.
    latest: u32,
    /// Order of arrival, which identifies the flow among those that had the number.
    arrival: u32,
    /// How many flows had this number before.
    life: u32,
    /// Counters of entries whose slots are reused.
    before: Counts,
}

/// An entry to install.
#[derive(Debug, Clone)]
struct Wanted {
    table: u8,
    value: Key,
    mask: Key,
    order: u64,
    deed: Deed,
}

/// Something in use until no program uses an earlier generation than this.
#[derive(Debug)]
struct Retired<T> {
    what: T,
    generation: u64,
    at: Nanos,
}

/// What no program can find any more.
#[derive(Debug)]
enum Left {
    Slot(u32),
    /// Of the table with this index.
    Tuples(usize, Replaced),
}

impl Projection {
    /// Creates a projection for this many flows between these ports. `seed` is a secret for
    /// hashing.
    pub(super) fn new(flows_max: usize, ports: &[PortNo], seed: u64) -> io::Result<Projection> {
        let spare = (flows_max / SPARE_PART).max(SPARE_MIN);
        let chains = flows_max.next_power_of_two().max(1024);
        let memory = Arc::new(Memory::new(flows_max + spare, chains)?);
        let projection = Projection {
            ports: ports.to_vec(),
            seed,
            generation: 0,
            drops_misses: 0,
            is_suspended: false,
            flows: Vec::new(),
            entries: vec![Entry::default()],
            free: Vec::new(),
            tuples: (0..TABLES).map(|table| Tuples::new(&memory, table)).collect(),
            numbers: Numbers::new(),
            rewrites: Rewrites::new(),
            unplaced: HashMap::new(),
            dying: VecDeque::new(),
            leaving: VecDeque::new(),
            lowered: 0,
            escaping: vec![0; Reason::ALL.len()],
            memory,
        };
        projection.publish();
        Ok(projection)
    }

    /// Returns the number of entries that act in programs, of those without a place, and of masks.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        (self.lowered, self.unplaced.len(), self.tuples.iter().map(Tuples::count).sum())
    }

    /// Returns the numbers of entries that escape, by reason.
    pub(super) fn escaping(&self) -> impl Iterator<Item = (Reason, usize)> + '_ {
        let reasons = Reason::ALL.iter().copied().zip(self.escaping.iter().copied());
        reasons.filter(|(_, count)| *count > 0)
    }

    /// Sets for each table whether frames that match no entry are dropped.
    pub(super) fn set_drops_misses(&mut self, drops: impl Fn(u8) -> bool) {
        let flag = |table: usize| u64::from(drops(table as u8)) << table;
        let flags = (0..TABLES).map(flag).sum::<u64>() << root::DROPS_MISSES_AT;
        if std::mem::replace(&mut self.drops_misses, flags) != flags {
            self.publish();
        }
    }

    /// Sets whether every frame escapes.
    pub(super) fn set_suspended(&mut self, is_suspended: bool) {
        if std::mem::replace(&mut self.is_suspended, is_suspended) != is_suspended {
            self.publish();
        }
    }

    /// Sets what the port with an index does with frames: see [`port`].
    pub(super) fn set_port(&self, index: usize, receives: bool, sends: bool) {
        let receives = if receives { port::RECEIVES } else { 0 };
        self.memory.set_port(index, receives | if sends { port::SENDS } else { 0 });
    }

    fn index_of(&self, port: PortNo) -> Option<usize> {
        self.ports.iter().position(|other| *other == port)
    }

    /// Applies changes together. Each names a flow, and its entry if it exists now.
    pub(super) fn apply(
        &mut self,
        changes: impl IntoIterator<Item = (u32, Option<FlowSource>)>,
        now: Nanos,
    ) {
        self.reclaim(now);
        let next = self.generation + 1;
        let mut is_changed = false;
        for (flow, source) in changes {
            is_changed = true;
            self.unplaced.remove(&flow);
            if self.flows.len() <= flow as usize {
                self.flows.resize((flow as usize + 1).next_power_of_two(), Flow::default());
            }
            self.retire(flow, next, now);
            let known = &mut self.flows[flow as usize];
            let arrival = source.as_ref().map_or(0, |source| source.arrival);
            if source.is_none() || arrival != known.arrival {
                *known = Flow { arrival, life: known.life.wrapping_add(1), ..Flow::default() };
            }
            if let Some(source) = source {
                self.install(flow, wanted(&source), next);
            }
        }
        if is_changed || !self.unplaced.is_empty() {
            for (flow, wanted) in std::mem::take(&mut self.unplaced) {
                self.install(flow, wanted, next);
            }
            self.commit(next);
        }
    }

    /// Makes the changes of a generation visible.
    fn commit(&mut self, generation: u64) {
        self.generation = generation;
        self.publish();
    }

    fn publish(&self) {
        let is_whole = self.unplaced.is_empty() && !self.is_suspended;
        let escapes = if is_whole { 0 } else { root::ESCAPE_ALL };
        let flags = escapes | self.drops_misses;
        self.memory.set_state(self.generation << root::FLAG_BITS | flags);
    }

    /// Adds an entry that exists from a generation on. Without a place, it becomes an unplaced one.
    fn install(&mut self, flow: u32, wanted: Wanted, generation: u64) {
        let Wanted { table, value, mask, order, deed } = &wanted;
        let table = *table;
        let Some(slot) = self.free_slot() else {
            self.unplaced.insert(flow, wanted);
            return;
        };
        let (action, reason) = self.action(deed);
        // An entry may escape for another reason than its instructions.
        let order = if reason.is_some() { order | order::ESCAPES } else { *order };
        let tuples = &mut self.tuples[usize::from(table)];
        let Some(tuple) = tuples.add(&self.memory, &mut self.numbers, mask, order) else {
            self.rewrites.release(action);
            self.free.push(slot);
            self.unplaced.insert(flow, wanted);
            return;
        };
        let order = order | u64::from(tuple);
        let chain = hash::of(&value.0, self.seed) as usize & (self.memory.chains - 1);
        let memory = &self.memory;
        for (word, offset) in value.0.iter().zip((entry::KEY..).step_by(8)) {
            memory.entry_word(slot, offset).store(*word, Relaxed);
        }
        memory.entry_word(slot, entry::ORDER).store(order, Relaxed);
        memory.entry_word(slot, entry::BORN).store(generation, Relaxed);
        memory.entry_word(slot, entry::DIED).store(u64::MAX, Relaxed);
        memory.set_action(slot, action);
        memory.clear_counts(slot);
        self.link(slot, chain, value, order);
        match reason {
            Some(reason) => self.escaping[reason as usize] += 1,
            None => self.lowered += 1,
        }
        self.entries[slot as usize] = Entry {
            flow,
            table,
            chain: chain as u32,
            order,
            action,
            reason,
            life: self.flows[flow as usize].life,
            previous: self.flows[flow as usize].latest,
        };
        let flow = &mut self.flows[flow as usize];
        (flow.slot, flow.latest) = (slot, slot);
    }

    fn free_slot(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let slot = self.entries.len();
            (slot < self.memory.slots).then(|| {
                self.entries.push(Entry::default());
                slot as u32
            })
        })
    }

    /// Returns the action of an entry, or that of an escape with its reason.
    fn action(&mut self, deed: &Deed) -> (u32, Option<Reason>) {
        let kind = |kind: u32, index: usize| kind << action::KIND_SHIFT | index as u32;
        let escape = |reason| (kind(action::ESCAPE, 0), Some(reason));
        let (target, change) = match deed {
            Deed::Escape(reason) => return escape(*reason),
            Deed::Drop => return (kind(action::DROP, 0), None),
            Deed::Goto(table) if usize::from(*table) < TABLES => {
                return (kind(action::GOTO, (*table).into()), None);
            }
            Deed::Goto(_) => return escape(Reason::Goto),
            Deed::Output(target, change) => (target, change),
        };
        let then = match target {
            Target::InPort => kind(action::IN_PORT, 0),
            Target::Port(port) => match self.index_of(*port) {
                Some(index) => kind(action::OUTPUT, index),
                None => return escape(Reason::Port),
            },
        };
        let Some(change) = change else { return (then, None) };
        match self.rewrites.share(&self.memory, change, then) {
            Some(action) => (action, None),
            None => escape(Reason::Rewrites),
        }
    }

    /// Puts an entry into its chain: before entries of the same mask and key with a lower order.
    fn link(&self, slot: u32, chain: usize, value: &Key, order: u64) {
        let memory = &self.memory;
        let (mut before, mut at) = (0, memory.head(chain));
        let mut after_last = None;
        while at != 0 {
            let other = self.entries[at as usize].order;
            if self.has_key(at, value) && (other ^ order) & order::TUPLE_MASK == 0 {
                if other < order {
                    break;
                }
                after_last = Some((at, memory.next(at)));
            }
            (before, at) = (at, memory.next(at));
        }
        // Without an entry of the same key, it becomes the first.
        if at == 0 {
            (before, at) = after_last.unwrap_or((0, memory.head(chain)));
        }
        memory.set_next(slot, at);
        match before {
            0 => memory.set_head(chain, slot),
            before => memory.set_next(before, slot),
        }
    }

    fn has_key(&self, slot: u32, value: &Key) -> bool {
        let words = (entry::KEY..).step_by(8).zip(value.0);
        let same =
            |(offset, word): (i16, u64)| self.memory.entry_word(slot, offset).load(Relaxed) == word;
        words.into_iter().all(same)
    }

    /// Ends the entry of a flow, if it has one, with a generation.
    fn retire(&mut self, flow: u32, generation: u64, now: Nanos) {
        let slot = std::mem::take(&mut self.flows[flow as usize].slot);
        if slot == 0 {
            return;
        }
        self.memory.entry_word(slot, entry::DIED).store(generation, Release);
        match self.entries[slot as usize].reason {
            Some(reason) => self.escaping[reason as usize] -= 1,
            None => self.lowered -= 1,
        }
        self.dying.push_back(Retired { what: slot, generation, at: now });
    }

    /// Returns the counters of the flow with a number and an order of arrival.
    pub(super) fn flow_counts(&self, flow: u32, arrival: u32) -> Option<Counts> {
        let flow = self.flows.get(flow as usize).filter(|flow| flow.arrival == arrival)?;
        let (mut counts, mut slot) = (flow.before, flow.latest);
        while slot != 0 {
            counts.add(&self.memory.counts(slot));
            slot = self.entries[slot as usize].previous;
        }
        Some(counts)
    }

    /// Keeps the counters of an entry whose slot is about to be reused.
    fn keep_counts(&mut self, slot: u32) {
        let Entry { flow, life, .. } = self.entries[slot as usize];
        let flow = &mut self.flows[flow as usize];
        if flow.life != life {
            return;
        }
        flow.before.add(&self.memory.counts(slot));
        // It is the oldest entry of its flow.
        if flow.latest == slot {
            flow.latest = 0;
            return;
        }
        let mut at = flow.latest;
        while at != 0 && self.entries[at as usize].previous != slot {
            at = self.entries[at as usize].previous;
        }
        self.entries[at as usize].previous = 0;
    }

    /// Reclaims what programs do not use any more, up to a limit.
    fn reclaim(&mut self, now: Nanos) {
        let is_stale = self.tuples.iter().any(Tuples::is_stale);
        if self.dying.is_empty() && self.leaving.is_empty() && !is_stale {
            return;
        }
        let oldest = self.memory.oldest_in_use();
        let is_over =
            |generation: u64, at: Nanos| generation <= oldest && now >= at.saturating_add(PAUSE);
        for _ in 0..RECLAIMED_MAX {
            match self.leaving.front() {
                Some(left) if is_over(left.generation, left.at) => {}
                _ => break,
            }
            match self.leaving.pop_front().map(|left| left.what) {
                Some(Left::Slot(slot)) => {
                    self.keep_counts(slot);
                    self.rewrites.release(self.entries[slot as usize].action);
                    self.free.push(slot);
                }
                Some(Left::Tuples(table, replaced)) => {
                    self.tuples[table].reuse(replaced, &mut self.numbers);
                }
                None => {}
            }
        }
        // Programs that start from here on do not find what is unlinked now.
        let next = self.generation + 1;
        let mut is_unlinked = false;
        for _ in 0..RECLAIMED_MAX {
            match self.dying.front() {
                Some(dead) if is_over(dead.generation, dead.at) => {}
                _ => break,
            }
            let Some(Retired { what: slot, .. }) = self.dying.pop_front() else { break };
            self.unlink(slot);
            let Entry { table, order, .. } = self.entries[slot as usize];
            let tuple = (order & order::TUPLE_MASK) as u8;
            self.tuples[usize::from(table)].remove(&self.memory, tuple, order);
            let left = Left::Slot(slot);
            self.leaving.push_back(Retired { what: left, generation: next, at: now });
            is_unlinked = true;
        }
        for (table, tuples) in self.tuples.iter_mut().enumerate() {
            if let Some(replaced) = tuples.tidy(&self.memory) {
                let left = Left::Tuples(table, replaced);
                self.leaving.push_back(Retired { what: left, generation: next, at: now });
                is_unlinked = true;
            }
        }
        if is_unlinked {
            self.commit(next);
        }
    }

    /// Whether something waits to be reclaimed.
    pub(super) fn is_waiting(&self) -> bool {
        !(self.dying.is_empty() && self.leaving.is_empty() && self.unplaced.is_empty())
    }

    fn unlink(&self, slot: u32) {
        let memory = &self.memory;
        let chain = self.entries[slot as usize].chain as usize;
        let (mut before, mut at) = (0, memory.head(chain));
        while at != slot {
            assert!(at != 0, "an entry is in its chain until it is unlinked");
            (before, at) = (at, memory.next(at));
        }
        match before {
            0 => memory.set_head(chain, memory.next(slot)),
            before => memory.set_next(before, memory.next(slot)),
        }
    }
}

fn wanted(source: &FlowSource) -> Wanted {
    let lowered = lower(&source.matching, &source.instructions);
    let (escapes, is_exact) = (matches!(lowered.deed, Deed::Escape(_)), source.part == Part::Exact);
    let order = order::of(source.rank, escapes, is_exact, source.arrival);
    let Lowered { value, mask, deed } = lowered;
    Wanted { table: source.table, value, mask, order, deed }
}
