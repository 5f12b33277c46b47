//! An OpenFlow switch in the kernel.
//!
//! - [`lower`] translates the entries of the first tables. An entry that a program cannot execute
//!   becomes one that escapes, so that no frame is decided by an entry of lower rank.
//! - [`projection`] writes them to memory that programs read. A batch of changes is seen whole.
//! - [`program`] reads the fields of a frame, searches its entry and executes it.
//!
//! The tables in user space add the counters of the programs to their own
//! ([`FlowCounters`]), so that statistics and idle timeouts include both.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dataplane::counter::{DropCounters, DropReason};
use dataplane::pipeline::{Pipeline, Settings};
use dataplane::table::{FlowCounters, FlowSource, TableSettings};
use ebpf::{Assembly, Label, Program, Register};
use packet::frame::PortNo;
use packet::time::Nanos;

use crate::ports::Ports;
use crate::unsupported;

mod layout;
mod lower;
mod memory;
mod program;
mod projection;
mod rewrites;
mod tuples;

pub use lower::Reason;

use layout::{TABLES, cpu};
use program::Programs;
use projection::Projection;

/// Maximum number of entries in the kernel.
const FLOWS_MAX: usize = 1 << 20;

/// Result for a frame that the network stack receives (`XDP_PASS`).
const PASS: i32 = 2;

/// Why frames that the program counts are dropped.
const DROPS: [(i32, DropReason); 4] = [
    (cpu::BY_FLOW, DropReason::ByFlow),
    (cpu::NO_MATCH, DropReason::NoMatch),
    (cpu::BACK, DropReason::BackToIngress),
    (cpu::BROKEN, DropReason::OutputQueueFull),
];

/// The entries of a switch, and the programs of its ports.
#[derive(Debug)]
pub(crate) struct SwitchPath {
    programs: Programs,
    state: Mutex<State>,
}

/// Checks whether this process and its kernel can have a fast path of a switch.
pub(crate) fn probe() -> io::Result<()> {
    const PORT: PortNo = 1;
    let settings = Settings { tables: vec![TableSettings::of(1, 1)], ..Settings::default() };
    let mut pipeline = Pipeline::new(&[PORT], &settings);
    let ports = Arc::new(Ports::new(&[PORT])?);
    let path = SwitchPath::new(&mut pipeline, &[PORT], ports, 0)?;
    let mut program = Assembly::new();
    let escape = program.label("escape");
    program.copy(Register::R6, Register::R1);
    path.emit(PORT, true, &mut program, escape);
    program.place(escape);
    program.set(Register::R0, PASS);
    program.exit();
    let program = program.finish().expect("labels are placed within a short program");
    Program::load(&program, c"Apache-2.0").map(drop)
}

/// Entries and settings in the kernel.
#[derive(Debug)]
struct State {
    projection: Projection,
    ports: Vec<PortState>,
}

/// State of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct PortState {
    /// All frames from the port go to the tables.
    receives: bool,
    /// Frames for it leave at once.
    sends: bool,
    /// Frames for it are redirected.
    is_connected: bool,
}

/// What the fast path of a switch does with entries and frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchReport {
    /// Number of entries that the programs execute.
    pub lowered: usize,
    /// Numbers of entries whose frames escape, by reason.
    pub escaping: Vec<(Reason, usize)>,
    /// Number of entries that have no place. Then every frame escapes.
    pub unplaced: usize,
    /// Number of masks.
    pub masks: usize,
    /// Number of frames that escaped.
    pub frames_escaped: u64,
}

/// Traffic of a port that ended in its program, or left changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortExtra {
    /// Frames from the port that the program dropped.
    pub frames_dropped: u64,
    /// Bytes of these frames.
    pub bytes_dropped: u64,
    /// Bytes by which VLAN tags made frames to the port longer; negative if shorter.
    pub bytes_grown: i64,
}

impl SwitchPath {
    /// Creates a fast path, which records the changes of the pipeline from now on.
    pub(crate) fn new(
        pipeline: &mut Pipeline,
        numbers: &[PortNo],
        ports: Arc<Ports>,
        seed: u64,
    ) -> io::Result<Arc<SwitchPath>> {
        if !cfg!(target_arch = "x86_64") {
            return Err(unsupported("the fast path of a switch requires an x86-64 processor"));
        }
        let tables = pipeline.tables();
        let entries_max = (0..TABLES as u8).map(|table| tables.account(table).entries_max);
        let flows_max = entries_max.fold(0, usize::saturating_add).min(FLOWS_MAX);
        let projection = Projection::new(flows_max, numbers, seed)?;
        let memory = Arc::clone(&projection.memory);
        let states = vec![PortState::default(); numbers.len()];
        let path = Arc::new(SwitchPath {
            programs: Programs { ports, memory, seed },
            state: Mutex::new(State { projection, ports: states }),
        });
        pipeline.record_changes();
        pipeline.add_counters(Arc::clone(&path) as Arc<dyn FlowCounters>);
        Ok(path)
    }

    /// Applies the changes of the pipeline since the last call, unless a bundle is open: all become
    /// visible together. Returns whether the next call should come soon, because memory waits to
    /// be reused.
    pub(crate) fn follow(&self, pipeline: &mut Pipeline, now: Nanos) -> bool {
        let mut state = self.state();
        state.follow_settings(pipeline);
        let Some(changes) = pipeline.take_changes() else { return false };
        let tables = pipeline.tables();
        let is_here = |source: &FlowSource| usize::from(source.table) < TABLES;
        let entry = |place| tables.source(place).filter(is_here);
        let changes = changes.into_iter().map(|place| (place, entry(place)));
        state.projection.apply(changes, now);
        state.projection.is_waiting()
    }

    /// Sets whether frames for a port are redirected; otherwise they escape.
    pub(crate) fn set_connected(&self, port: PortNo, is_connected: bool) {
        let Some(index) = self.programs.ports.index(port) else { return };
        let mut state = self.state();
        let port = PortState { is_connected, ..state.ports[index] };
        state.set_port(index, port);
    }

    /// Returns what a port's program dropped, and by how much frames to the port grew.
    pub(crate) fn extra(&self, port: PortNo) -> PortExtra {
        let state = self.state();
        let Some(index) = self.programs.ports.index(port) else { return PortExtra::default() };
        let count = |counter| state.projection.memory.port_count(index, counter);
        PortExtra {
            frames_dropped: DROPS.iter().map(|(counter, _)| count(*counter)).sum(),
            bytes_dropped: count(cpu::DROPPED_BYTES),
            bytes_grown: count(cpu::GROWTH) as i64,
        }
    }

    pub(crate) fn report(&self) -> SwitchReport {
        let state = self.state();
        let State { projection, ports, .. } = &*state;
        let (lowered, unplaced, masks) = projection.counts();
        let escaped = (0..ports.len()).map(|port| projection.memory.port_count(port, cpu::ESCAPED));
        SwitchReport {
            lowered,
            escaping: projection.escaping().collect(),
            unplaced,
            masks,
            frames_escaped: escaped.sum(),
        }
    }

    /// Appends the program of a port.
    pub(crate) fn emit(
        &self,
        port: PortNo,
        is_partial: bool,
        program: &mut Assembly,
        escape: Label,
    ) {
        self.programs.emit(port, is_partial, program, escape);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FlowCounters for SwitchPath {
    fn entry(&self, place: u32, arrival: u32) -> Option<(u64, u64, Nanos)> {
        let counts = self.state().projection.flow_counts(place, arrival)?;
        Some((counts.frames, counts.bytes, Nanos(counts.last_ns)))
    }

    fn table(&self, table: usize) -> ([u64; 2], u64) {
        if table < TABLES { self.programs.memory.table_counts(table) } else { ([0; 2], 0) }
    }

    fn add_drops(&self, sum: &mut DropCounters) {
        for port in 0..self.state().ports.len() {
            for (counter, why) in DROPS {
                sum.add_many(why, self.programs.memory.port_count(port, counter));
            }
        }
    }
}

impl State {
    /// Copies settings of ports and table misses, if they changed.
    fn follow_settings(&mut self, pipeline: &Pipeline) {
        self.projection.set_drops_misses(|table| pipeline.drops_misses(table));
        self.projection.set_suspended(pipeline.tables().first_egress().is_some());
        let numbers = std::mem::take(&mut self.projection.ports);
        pipeline.each_port_state(&numbers, |index, (receives, sends)| {
            self.set_port(index, PortState { receives, sends, ..self.ports[index] });
        });
        self.projection.ports = numbers;
    }

    fn set_port(&mut self, index: usize, port: PortState) {
        if std::mem::replace(&mut self.ports[index], port) != port {
            self.projection.set_port(index, port.receives, port.sends && port.is_connected);
        }
    }
}

#[cfg(test)]
mod tests;
