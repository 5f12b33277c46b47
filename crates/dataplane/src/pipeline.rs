//! OpenFlow data plane that processes batches: key, tables, actions.
//!
//! [`Pipeline`] executes commands; a [`Worker`] forwards frames, one per thread. A batch is
//! processed in stages of a few dozen frames: all keys, all lookups, all counters, all actions.
//! Each step is a simple loop, so that cache misses of different frames overlap and a run of frames
//! with the same key is decided once. In a table, exact matches are looked up first (bianco2010,
//! section II).
//!
//! If every frame of a stage is dropped or leaves unchanged by one port, the worker does that
//! itself. Otherwise, the engine, which all workers share, processes the stage: it has the groups,
//! meters, queues and the bridge. Frames with more than a single output or action list are
//! processed table by table (`walk`). Actions and table misses follow the OpenFlow switch
//! specifications 1.0.0, sections 3.3 and 3.4, and 1.3.5, sections 5.1 to 5.4.
//!
//! Invariants:
//! - Frames of one worker leave in the order of their arrival.
//! - Every frame is queued, sent to the control plane, or counted as dropped with one reason.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::bridge::{self, AGE_PAUSE_MAX};
use crate::classifier::NO_ENTRY;
use crate::counter::{DropCounters, SharedDrops};
use crate::egress::{Egress, PortSettings};
use crate::flow::{FlowError, FlowFilter, FlowRemovedReason, FlowSpec, FlowTotals, ModifyRules};
use crate::forwarder::{
    BatchDecision, Decision, Event, Forwarder, FrameHead, Outputs, PendingBatch, SIGHTS_MAX,
};
use crate::group::GroupLimits;
use crate::meter::MeterLimits;
use crate::table::{
    Addition, Modification, Progress, Selection, TableConfig, TableSettings, Tables,
};

mod engine;
mod mirror;
mod port_flags;
mod inject;
mod versioned_groups;
mod resources;
mod walk;
mod worker;

use engine::Engine;
use port_flags::Gates;
pub use resources::Deletion;
use versioned_groups::SpareVersion;
pub use worker::Worker;

/// Settings of a pipeline.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The tables, at most [`TABLES_MAX`](crate::table::TABLES_MAX).
    pub tables: Vec<TableSettings>,
    /// Secret for hashing, so that an attacker cannot choose keys that collide. The default is a
    /// constant, which makes runs reproducible.
    pub hash_seed: u64,
    /// Action on a table miss.
    pub on_miss: OnMiss,
    /// Whether fragmented IPv4 datagrams are dropped before the tables.
    pub drop_fragments: bool,
    /// Settings of the bridge for [`Action::Normal`] and [`OnMiss::Normal`], if there is one.
    pub normal: Option<bridge::Settings>,
    /// Limits of the group table.
    pub groups: GroupLimits,
    /// Limits of the meter table.
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

/// Action on a table miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMiss {
    /// Send the frame to the controller.
    Controller,
    /// Drop the frame: the control channel is lost (fail-secure mode).
    Drop,
    /// Forward the frame with the bridge: the control channel is lost (fail-standalone mode).
    Normal,
}

/// Data plane of an OpenFlow switch.
#[derive(Debug)]
pub struct Pipeline {
    /// The entries, for reading; commands go through the pipeline.
    tables: Tables,
    shared: Arc<SharedState>,
    /// Worker that forwards on behalf of the pipeline.
    worker: Worker,
    /// Whether there are other workers.
    has_workers: bool,
    /// Groups and meters that a bundle replaced and that are being freed.
    gone: Option<Box<SpareVersion>>,
}

/// State that the pipeline and its workers share, apart from the tables.
#[derive(Debug)]
struct SharedState {
    engine: Mutex<Engine>,
    gates: Gates,
    /// Frames that workers dropped themselves; each worker has its own counters.
    drops: Mutex<Vec<Arc<SharedDrops>>>,
}

impl SharedState {
    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates drop counters for one more worker.
    fn account(&self) -> Arc<SharedDrops> {
        let drops = Arc::new(SharedDrops::default());
        self.drops.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&drops));
        drops
    }
}

/// A locked part of the engine; workers cannot use the engine while this guard exists.
pub struct EngineGuard<'a, T> {
    engine: MutexGuard<'a, Engine>,
    part: fn(&Engine) -> &T,
}

impl<T> Deref for EngineGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        (self.part)(&self.engine)
    }
}

impl Pipeline {
    /// Creates a pipeline without entries between these ports.
    pub fn new(ports: &[PortNo], settings: &Settings) -> Pipeline {
        let mut tables = Tables::new(&settings.tables, settings.hash_seed);
        let shared = Arc::new(SharedState {
            engine: Mutex::new(Engine::new(ports, settings)),
            gates: Gates::new(ports),
            drops: Mutex::default(),
        });
        shared.gates.set_drop_fragments(settings.drop_fragments);
        let worker = Worker::new(tables.reader(), Arc::clone(&shared));
        Pipeline { tables, shared, worker, has_workers: false, gone: None }
    }

    /// Creates a pipeline with its own empty tables from the same settings. It shares ports,
    /// groups, meters, queues, the bridge and the drop counters with this one.
    pub fn twin(&self, settings: &Settings) -> Pipeline {
        let mut tables = Tables::new(&settings.tables, settings.hash_seed);
        let shared = Arc::clone(&self.shared);
        let worker = Worker::new(tables.reader(), Arc::clone(&shared));
        Pipeline { tables, shared, worker, has_workers: false, gone: None }
    }

    /// Creates one more worker, which forwards frames in its own thread. The caller passes the
    /// worker's events to [`Pipeline::heard`].
    ///
    /// The first worker replaces the pipeline's own, which counts in the entries' lines. From then
    /// on, the pipeline itself forwards only packet-outs.
    pub fn worker(&mut self) -> Worker {
        let fresh = Worker::new(self.tables.reader(), Arc::clone(&self.shared));
        match std::mem::replace(&mut self.has_workers, true) {
            true => fresh,
            false => std::mem::replace(&mut self.worker, fresh),
        }
    }

    /// Returns the tables with entries and counters.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Publishes all changes: workers see them from their next batch on.
    pub fn publish(&mut self) {
        self.tables.publish();
    }

    /// Whether every worker uses all changes so far.
    pub fn is_settled(&mut self) -> bool {
        self.tables.is_settled()
    }

    /// Sets whether every change of an entry is reported (see [`Tables::watch`]).
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

    /// Changes a table's configuration. Returns false if the table does not exist.
    pub fn set_table(&mut self, table: u8, config: TableConfig) -> bool {
        self.tables.set_config(table, config)
    }

    /// Sets the action on a table miss.
    pub fn set_on_miss(&mut self, on_miss: OnMiss) {
        self.shared.engine().on_miss = on_miss;
    }

    /// Sets whether fragmented IPv4 datagrams are dropped.
    pub fn set_drop_fragments(&mut self, drop: bool) {
        self.shared.gates.set_drop_fragments(drop);
    }

    /// Returns the numbers of dropped frames, by reason.
    pub fn drops(&self) -> DropCounters {
        let mut sum = self.shared.engine().egress.drops.clone();
        let workers = self.shared.drops.lock().unwrap_or_else(PoisonError::into_inner);
        workers.iter().for_each(|worker| worker.add_to(&mut sum));
        if let Some(counters) = self.tables.counters_elsewhere() {
            counters.add_drops(&mut sum);
        }
        sum
    }

    /// Returns the port settings and queue counters.
    pub fn egress(&self) -> EngineGuard<'_, Egress> {
        EngineGuard { engine: self.shared.engine(), part: |engine| &engine.egress }
    }

    /// Changes a port's settings. Returns false if the port does not exist.
    pub fn set_port(&mut self, port: PortNo, settings: PortSettings) -> bool {
        self.change_ports(|egress| egress.set_settings(port, settings))
    }

    /// Changes ports, and updates the settings that workers read.
    fn change_ports<T>(&mut self, change: impl FnOnce(&mut Egress) -> T) -> T {
        let mut engine = self.shared.engine();
        let changed = change(&mut engine.egress);
        self.shared.gates.set(&engine.egress);
        changed
    }

    /// Installs an entry (see [`Tables::add`]). Afterwards, the next [`Forwarder::tick`] may be due
    /// earlier than the last one returned.
    pub fn add(&mut self, spec: &FlowSpec, now: Nanos, out: &mut Outputs) -> Result<(), FlowError> {
        self.check_references(&spec.instructions)?;
        self.tables.add(spec, now, out)
    }

    /// Modifies entries (see [`Tables::modify`]).
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

    /// Removes entries and returns their number (see [`Tables::delete`]).
    pub fn delete(&mut self, filter: &FlowFilter, now: Nanos, out: &mut Outputs) -> usize {
        self.tables.delete(filter, FlowRemovedReason::Deleted, now, out)
    }

    /// Begins to select entries (see [`Tables::select`]).
    pub fn select(&mut self, filter: FlowFilter) -> Selection {
        self.tables.select(filter)
    }

    /// Sums up counters within a budget (see [`Tables::totals_some`]).
    pub fn totals_some(
        &mut self,
        selection: &mut Selection,
        totals: &mut FlowTotals,
        budget: &mut usize,
    ) -> Progress {
        self.tables.totals_some(selection, totals, budget)
    }

    /// Adds an entry within a budget (see [`Tables::add_some`]). Also fails if a group or meter was
    /// deleted between two calls.
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

    /// Modifies selected entries within a budget (see [`Tables::modify_some`]). Also fails if a
    /// group or meter was deleted between two calls.
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

    /// Moves pending events to the outputs.
    pub fn tell(&mut self, out: &mut Outputs) {
        self.tables.tell(out);
    }

    /// Adds frames to the counters of the entry in a table's slot, as if this pipeline had
    /// forwarded them. `at` is the time of the last frame.
    pub fn credit(&mut self, (table, place): (u8, usize), (frames, bytes): (u64, u64), at: Nanos) {
        self.worker.lookup.count(table, place as u32, frames, bytes, at);
    }

    /// Adds frames to the misses of a table, as if this pipeline had looked them up.
    pub fn credit_misses(&mut self, table: u8, frames: u64, at: Nanos) {
        self.worker.lookup.count(table, NO_ENTRY, frames, 0, at);
    }

    /// Returns the slot of the entry of table 0 that the first frame of the last batch matched, if
    /// any.
    pub fn found(&self) -> Option<usize> {
        self.worker.found()
    }

    /// Processes an event of a worker. Events about triggers result in other events; all others
    /// pass unchanged.
    pub fn heard(&mut self, event: Event, now: Nanos, out: &mut Outputs) {
        match event {
            Event::FlowReached { place } => self.tables.look_at_trigger(place, now, out),
            other => drop(out.event(other)),
        }
    }

    /// Processes all events of the pipeline's own worker.
    fn hear_all(&mut self, now: Nanos, out: &mut Outputs) {
        if std::mem::take(&mut self.worker.reached) {
            for event in std::mem::take(&mut out.events) {
                self.heard(event, now, out);
            }
        }
    }
}

impl Forwarder for Pipeline {
    type Pending<'a> = PipelineBatch<'a>;

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
        sights: [&[FrameHead<'_>]; 2],
        now: Nanos,
        decisions: &mut [Decision; SIGHTS_MAX],
    ) -> BatchDecision<PipelineBatch<'_>> {
        self.tables.publish();
        let (count, needs_engine) = self.worker.decide_heads(port, sights, now, decisions);
        if needs_engine {
            return BatchDecision::Needs(count, PipelineBatch(self));
        }
        // No change occurs before the next call, even if the next frames are prefetched already.
        self.worker.rest();
        BatchDecision::Done(count)
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

/// A batch that needs the engine.
pub struct PipelineBatch<'a>(&'a mut Pipeline);

impl PendingBatch for PipelineBatch<'_> {
    fn resume(self, frames: &mut [Frame], now: Nanos, out: &mut Outputs) {
        self.0.worker.forward_slow_path(frames, now, out);
        self.0.worker.rest();
        self.0.hear_all(now, out);
    }
}

#[cfg(test)]
mod tests;
