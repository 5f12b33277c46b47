//! The OpenFlow data plane: key, tables, actions, for a batch at a time.
//!
//! [`Pipeline`] is what is commanded; a [`Worker`] is what forwards, one for each thread. A batch goes
//! through in stages of a few dozen frames: all keys, then all lookups, then all counters, then all
//! actions, each a simple loop, so that cache misses of different frames overlap and a run of frames
//! with the same key is decided once. In a table exact matches are looked up first (bianco2010, section
//! II). Where every frame of a stage is dropped or leaves unchanged by one port, the worker does that by
//! itself; all else is done by the engine, which the workers share: groups, meters, queues and the
//! bridge are there. What comes to more than one output or one list of actions is followed frame by
//! frame from table to table (`walk`). Actions and misses follow the OpenFlow switch specifications
//! 1.0.0, sections 3.3 and 3.4, and 1.3.5, sections 5.1 to 5.4.
//!
//! Invariant: frames of one worker leave in the order in which they came, and every frame is queued,
//! handed to the control plane or counted as dropped for one reason.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::bridge::{self, AGE_PAUSE_MAX};
use crate::classifier::NOWHERE;
use crate::counter::{DropCounters, SharedDrops};
use crate::egress::{Egress, PortSettings};
use crate::flow::{FlowError, FlowFilter, FlowRemovedReason, FlowSpec, FlowTotals, ModifyRules};
use crate::forwarder::{Decided, Decision, Event, Forwarder, Outputs, SIGHTS_MAX, Sight};
use crate::group::GroupLimits;
use crate::meter::MeterLimits;
use crate::table::{
    Addition, Modification, Progress, Selection, TableConfig, TableSettings, Tables,
};

/// What the workers share for frames that need more than a port.
mod engine;
/// What workers ask of a port without asking the engine.
mod gates;
/// Frames that the control plane sends.
mod inject;
/// Groups and meters as they are, and as a bundle makes them.
mod spread;
/// Commands about groups, meters, queues and ports.
mod resources;
/// One frame on its way through the tables.
mod walk;
/// What forwards, one for each thread.
mod worker;

use engine::Engine;
use gates::Gates;
pub use resources::Deletion;
use spread::Spread;
pub use worker::Worker;

/// How a pipeline is made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The tables, at most [`TABLES_MAX`](crate::table::TABLES_MAX).
    pub tables: Vec<TableSettings>,
    /// A secret for hashing, so that nobody outside can choose keys that collide. The default is
    /// no secret: it makes runs repeat.
    pub hash_seed: u64,
    /// What becomes of frames that match no entry.
    pub on_miss: OnMiss,
    /// Whether fragmented IPv4 datagrams are dropped before the tables.
    pub drop_fragments: bool,
    /// The bridge that [`Action::Normal`] and [`OnMiss::Normal`] go by, if there is to be one.
    pub normal: Option<bridge::Settings>,
    /// How many groups fit.
    pub groups: GroupLimits,
    /// How many meters fit.
    pub meters: MeterLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            tables: vec![TableSettings::default()],
            hash_seed: 0x5eed_0f1a_57f1_0335,
            on_miss: OnMiss::Controller,
            drop_fragments: false,
            normal: Some(bridge::Settings::default()),
            groups: GroupLimits::default(),
            meters: MeterLimits::default(),
        }
    }
}

/// What becomes of frames that match no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMiss {
    /// The control plane is asked.
    Controller,
    /// They are dropped: the control plane is lost and entries are all there is.
    Drop,
    /// They are bridged: the control plane is lost and the switch gets along without.
    Normal,
}

/// The data plane of an OpenFlow switch.
#[derive(Debug)]
pub struct Pipeline {
    /// The entries, to be read; commands go through the pipeline.
    tables: Tables,
    shared: Arc<Shared>,
    /// What forwards where the pipeline itself is asked to.
    worker: Worker,
    /// Whether there are other workers.
    has_workers: bool,
    /// Groups and meters that a bundle left to nobody.
    gone: Option<Box<Spread>>,
}

/// What the pipeline and its workers share beside the tables.
#[derive(Debug)]
struct Shared {
    engine: Mutex<Engine>,
    gates: Gates,
    /// Frames that workers dropped by themselves, each in an account of its own.
    drops: Mutex<Vec<Arc<SharedDrops>>>,
}

impl Shared {
    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An account for one more worker.
    fn account(&self) -> Arc<SharedDrops> {
        let drops = Arc::new(SharedDrops::default());
        self.drops.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&drops));
        drops
    }
}

/// A part of what workers share, which they do without as long as this is held.
pub struct Held<'a, T> {
    engine: MutexGuard<'a, Engine>,
    part: fn(&Engine) -> &T,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        (self.part)(&self.engine)
    }
}

impl Pipeline {
    /// A pipeline without entries between these ports.
    pub fn new(ports: &[PortNo], settings: &Settings) -> Pipeline {
        let mut tables = Tables::new(&settings.tables, settings.hash_seed);
        let shared = Arc::new(Shared {
            engine: Mutex::new(Engine::new(ports, settings)),
            gates: Gates::new(ports),
            drops: Mutex::default(),
        });
        shared.gates.set_drop_fragments(settings.drop_fragments);
        let worker = Worker::new(tables.reader(), Arc::clone(&shared));
        Pipeline { tables, shared, worker, has_workers: false, gone: None }
    }

    /// Further tables beside these, empty, made by the same settings: frames that go by them meet the same ports,
    /// groups, meters, queues and bridge, and what is dropped is counted with the rest.
    pub fn twin(&self, settings: &Settings) -> Pipeline {
        let mut tables = Tables::new(&settings.tables, settings.hash_seed);
        let shared = Arc::clone(&self.shared);
        let worker = Worker::new(tables.reader(), Arc::clone(&shared));
        Pipeline { tables, shared, worker, has_workers: false, gone: None }
    }

    /// One more worker, to forward frames in a thread of its own. Whoever runs it hands the events
    /// that it has to [`Pipeline::heard`].
    ///
    /// The first one takes the place of the pipeline's own, which counts where entries are found; from
    /// then on the pipeline itself forwards the few frames that the control plane sends.
    pub fn worker(&mut self) -> Worker {
        let fresh = Worker::new(self.tables.reader(), Arc::clone(&self.shared));
        match std::mem::replace(&mut self.has_workers, true) {
            true => fresh,
            false => std::mem::replace(&mut self.worker, fresh),
        }
    }

    /// The entries, their counters and the tables' accounts.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Lets workers see every change so far, from their next batch on.
    pub fn publish(&mut self) {
        self.tables.publish();
    }

    /// Whether every worker forwards by every change so far.
    pub fn is_settled(&mut self) -> bool {
        self.tables.is_settled()
    }

    /// Whether every change of an entry is told (see [`Tables::watch`]).
    pub fn watch(&mut self, watched: bool) {
        self.tables.watch = watched;
    }

    /// Sets the egress tables (see [`Tables::set_first_egress`]).
    pub fn set_first_egress(&mut self, first: Option<u8>) -> bool {
        let set = self.tables.set_first_egress(first);
        let defers = self.tables.first_egress().is_some();
        let mut engine = self.shared.engine();
        engine.egress.defers = defers;
        self.shared.gates.set_defers(defers);
        set
    }

    /// Changes what a table is set to do. False if there is no such table.
    pub fn set_table(&mut self, table: u8, config: TableConfig) -> bool {
        self.tables.set_config(table, config)
    }

    /// Sets what becomes of frames that match no entry.
    pub fn set_on_miss(&mut self, on_miss: OnMiss) {
        self.shared.engine().on_miss = on_miss;
    }

    /// Sets whether fragmented IPv4 datagrams are dropped.
    pub fn set_drop_fragments(&mut self, drop: bool) {
        self.shared.gates.set_drop_fragments(drop);
    }

    /// Frames lost, by reason.
    pub fn drops(&self) -> DropCounters {
        let mut sum = self.shared.engine().egress.drops.clone();
        let workers = self.shared.drops.lock().unwrap_or_else(PoisonError::into_inner);
        workers.iter().for_each(|worker| worker.add_to(&mut sum));
        sum
    }

    /// The ports' settings and the queues' account.
    pub fn egress(&self) -> Held<'_, Egress> {
        Held { engine: self.shared.engine(), part: |engine| &engine.egress }
    }

    /// Sets what a port does. False if there is no such port.
    pub fn set_port(&mut self, port: PortNo, settings: PortSettings) -> bool {
        self.change_ports(|egress| egress.set_settings(port, settings))
    }

    /// Changes something about ports, and lets workers know.
    fn change_ports<T>(&mut self, change: impl FnOnce(&mut Egress) -> T) -> T {
        let mut engine = self.shared.engine();
        let changed = change(&mut engine.egress);
        self.shared.gates.set(&engine.egress);
        changed
    }

    /// Installs an entry (see [`Tables::add`]). The next [`Forwarder::tick`] may then be due
    /// earlier than the last one said.
    pub fn add(&mut self, spec: &FlowSpec, now: Nanos, out: &mut Outputs) -> Result<(), FlowError> {
        self.check_references(&spec.instructions)?;
        self.tables.add(spec, now, out)
    }

    /// Changes entries (see [`Tables::modify`]).
    pub fn modify(
        &mut self,
        spec: &FlowSpec,
        filter: &FlowFilter,
        rules: ModifyRules,
        now: Nanos,
        out: &mut Outputs,
    ) -> Result<(), FlowError> {
        self.check_references(&spec.instructions)?;
        self.tables.modify(spec, filter, rules, now, out)
    }

    /// Removes entries and returns how many (see [`Tables::delete`]).
    pub fn delete(&mut self, filter: &FlowFilter, now: Nanos, out: &mut Outputs) -> usize {
        self.tables.delete(filter, FlowRemovedReason::Deleted, now, out)
    }

    /// Begins to select entries (see [`Tables::select`]).
    pub fn select(&mut self, filter: FlowFilter) -> Selection {
        self.tables.select(filter)
    }

    /// Adds up counters within a budget (see [`Tables::totals_some`]).
    pub fn totals_some(
        &mut self,
        selection: &mut Selection,
        totals: &mut FlowTotals,
        budget: &mut usize,
    ) -> Progress {
        self.tables.totals_some(selection, totals, budget)
    }

    /// Adds an entry within a budget (see [`Tables::add_some`]). Fails too if a group or meter went between two calls.
    pub fn add_some(
        &mut self,
        addition: &mut Addition,
        now: Nanos,
        out: &mut Outputs,
        budget: &mut usize,
    ) -> Result<Progress, FlowError> {
        self.check_references(&addition.spec().instructions)?;
        self.tables.add_some(addition, now, out, budget)
    }

    /// Changes selected entries within a budget (see [`Tables::modify_some`]). Fails too if a group or
    /// meter went between two calls.
    pub fn modify_some(
        &mut self,
        modification: &mut Modification,
        now: Nanos,
        out: &mut Outputs,
        budget: &mut usize,
    ) -> Result<Progress, FlowError> {
        self.check_references(&modification.spec().instructions)?;
        self.tables.modify_some(modification, now, out, budget)
    }

    /// Removes selected entries within a budget (see [`Tables::delete_some`]).
    pub fn delete_some(
        &mut self,
        selection: &mut Selection,
        now: Nanos,
        out: &mut Outputs,
        budget: &mut usize,
    ) -> Progress {
        self.tables.delete_some(selection, FlowRemovedReason::Deleted, now, out, budget)
    }

    /// Moves to the outputs the news that waits for room there.
    pub fn tell(&mut self, out: &mut Outputs) {
        self.tables.tell(out);
    }

    /// Counts frames for the entry at a place of a table, as if they had been forwarded by it here, the last of
    /// them at this moment.
    pub fn credit(&mut self, (table, place): (u8, usize), (frames, bytes): (u64, u64), at: Nanos) {
        self.worker.lookup.count(table, place as u32, frames, bytes, at);
    }

    /// Counts frames for which a table had no entry, as if they had been looked up here.
    pub fn credit_misses(&mut self, table: u8, frames: u64, at: Nanos) {
        self.worker.lookup.count(table, NOWHERE, frames, 0, at);
    }

    /// The place of the entry of table 0 that the first frame of the last batch met, if it met any.
    pub fn found(&self) -> Option<usize> {
        self.worker.found()
    }

    /// Takes in an event of a worker: what it has to do with entries comes out as others, all else as
    /// it was.
    pub fn heard(&mut self, event: Event, now: Nanos, out: &mut Outputs) {
        match event {
            Event::FlowReached { place } => self.tables.look_at_trigger(place, now, out),
            other => drop(out.event(other)),
        }
    }

    /// The same for all events of the pipeline's own worker.
    fn hear_all(&mut self, now: Nanos, out: &mut Outputs) {
        if std::mem::take(&mut self.worker.reached) {
            for event in std::mem::take(&mut out.events) {
                self.heard(event, now, out);
            }
        }
    }
}

impl Forwarder for Pipeline {
    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        self.tables.publish();
        self.worker.forward(port, batch, now, out);
        self.worker.rest();
        self.hear_all(now, out);
    }

    fn decides(&self) -> bool {
        true
    }

    fn decide(
        &mut self,
        port: PortNo,
        sights: [&[Sight<'_>]; 2],
        now: Nanos,
        decisions: &mut [Decision; SIGHTS_MAX],
    ) -> Decided {
        self.tables.publish();
        let decided = self.worker.decide(port, sights, now, decisions);
        // Nobody changes anything before the next call, even if more is foreseen by now.
        if matches!(decided, Decided::Done(_)) {
            self.worker.rest();
        }
        decided
    }

    fn resume(&mut self, frames: &mut [Frame], now: Nanos, out: &mut Outputs) {
        self.worker.resume(frames, now, out);
        self.worker.rest();
        self.hear_all(now, out);
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        let expiry = self.tables.expire(now, out);
        let mut engine = self.shared.engine();
        let ageing =
            engine.egress.normal.as_mut().and_then(|bridge| match bridge.table.is_empty() {
                true => Some(now.saturating_add(AGE_PAUSE_MAX)),
                false => bridge.tick(now, out),
            });
        let shaped = engine.egress.release(now, out);
        expiry.into_iter().chain(ageing).chain(shaped).min()
    }
}

#[cfg(test)]
mod tests;
