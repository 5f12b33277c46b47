//! Flow tables of the hardware, which differ from the agent's tables.
//!
//! Ports, groups, meters and queues are common to both. Only the [writer](super::writer) changes
//! entries here. Invariant: the counters of an entry are added once to the agent's entry of the
//! same generation.

use std::collections::HashMap;

use dataplane::flow::{FlowFilter, FlowFlags, FlowRecord, FlowSpec, Source};
use dataplane::forwarder::{Forwarder, Outputs};
use dataplane::pipeline::{Pipeline, Settings};
use dataplane::table::{TableConfig, TableMiss};
use packet::frame::{Batch, PortNo};
use packet::time::Nanos;

use super::shadow_table::ShadowTable;
use super::tcam::FlowId;

/// Flow tables of the hardware.
#[derive(Debug)]
pub struct Hardware {
    pipeline: Pipeline,
    held: HashMap<FlowId, EntryCounters>,
    /// Number of table misses added to the agent's tables so far, for each table.
    missed: Vec<u64>,
    /// Whether table-miss frames go to the software.
    has_software: bool,
    has_counted: bool,
    /// Changes that the tables rejected.
    pub changes_failed: u64,
}

/// Counters of an entry at the last update.
#[derive(Debug, Clone, Copy, Default)]
struct EntryCounters {
    generation: u64,
    frames: u64,
    bytes: u64,
}

impl Hardware {
    /// Creates empty tables for the agent's tables.
    pub fn beside(believed: &Pipeline, settings: &Settings, has_software: bool) -> Hardware {
        let mut hardware = Hardware {
            pipeline: believed.twin(settings),
            held: HashMap::new(),
            missed: vec![0; settings.tables.len()],
            has_software,
            has_counted: false,
            changes_failed: 0,
        };
        hardware.follow(believed);
        hardware
    }

    /// Applies the configuration of the agent's tables.
    pub fn follow(&mut self, believed: &Pipeline) {
        let tables = believed.tables();
        for table in 0..tables.count_tables() as u8 {
            let Some(config) = tables.config(table) else { continue };
            let on_miss = if self.has_software { TableMiss::Controller } else { config.on_miss };
            let config = TableConfig { on_miss, eviction: false, vacancy: None };
            if self.pipeline.tables().config(table) != Some(&config) {
                self.pipeline.set_table(table, config);
            }
        }
        let first = tables.first_egress();
        if self.pipeline.tables().first_egress() != first {
            self.pipeline.set_first_egress(first);
        }
    }

    /// Whether frames were forwarded since the last counter update.
    pub fn has_counted(&self) -> bool {
        self.has_counted
    }

    /// Forwards frames by the active entries.
    pub fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        self.has_counted = true;
        self.pipeline.forward(port, batch, now, out);
    }

    /// Whether the last forwarded frame matched the table-miss entry.
    pub fn has_met_last(&self, now: Nanos) -> bool {
        let Some(place) = self.pipeline.found() else { return false };
        let mut from = self.pipeline.tables().records(&FlowFilter::ALL, place, now);
        from.next().is_some_and(|flow| flow.place == place && is_last(&flow))
    }

    /// Activates an entry of the agent, or a change of it.
    pub fn put(&mut self, spec: &FlowSpec, generation: u64, now: Nanos, out: &mut Outputs) {
        let id = FlowId::of_spec(spec);
        match self.pipeline.add(spec, now, out) {
            Ok(()) => self.held.entry(id).or_default().generation = generation,
            Err(_) => self.changes_failed += 1,
        }
    }

    /// Deactivates an entry.
    pub fn take(&mut self, id: &FlowId, now: Nanos, out: &mut Outputs) {
        let filter =
            FlowFilter { table: Some(id.table), ..FlowFilter::strictly(id.matching, id.rank) };
        self.pipeline.delete(&filter, now, out);
        self.held.remove(id);
    }

    /// Adds the counters of the hardware's entries to those of the agent.
    pub fn credit(&mut self, believed: &mut Pipeline, book: &ShadowTable, now: Nanos) {
        if !std::mem::take(&mut self.has_counted) {
            return;
        }
        if !self.has_software {
            self.credit_misses(believed, now);
        }
        for record in self.pipeline.tables().records(&FlowFilter::ALL, 0, now) {
            let id = FlowId::of(&record);
            let (Some(held), Some(booked)) = (self.held.get_mut(&id), book.get(&id)) else {
                continue;
            };
            let more = (record.frames - held.frames, record.bytes - held.bytes);
            if more.0 > 0 && held.generation == booked.generation {
                let last = Nanos(now.0.saturating_sub(record.idle.0));
                believed.credit((id.table, booked.place), more, last);
                (held.frames, held.bytes) = (record.frames, record.bytes);
            }
        }
    }
}

impl Hardware {
    fn credit_misses(&mut self, believed: &mut Pipeline, now: Nanos) {
        for (table, credited) in (0..).zip(&mut self.missed) {
            let account = self.pipeline.tables().account(table);
            let missed = account.lookups - account.matched;
            if missed > *credited {
                believed.credit_misses(table, missed - *credited, now);
                *credited = missed;
            }
        }
    }
}

/// Whether an entry is a table-miss entry: it matches everything with priority 0.
pub fn is_last(flow: &FlowRecord) -> bool {
    flow.matching.is_any() && flow.priority == 0
}

/// Converts an entry of the agent for the hardware. Timeouts and notifications stay with the agent.
pub fn spec_of(flow: &FlowRecord) -> FlowSpec {
    FlowSpec {
        table: flow.table,
        matching: flow.matching,
        named: flow.named,
        priority: flow.priority,
        rank: flow.rank,
        cookie: flow.cookie,
        idle_timeout: Nanos::ZERO,
        hard_timeout: Nanos::ZERO,
        importance: 0,
        flags: FlowFlags { miss: flow.flags.miss, ..FlowFlags::default() },
        instructions: flow.instructions.clone(),
        source: Source::default(),
    }
}
