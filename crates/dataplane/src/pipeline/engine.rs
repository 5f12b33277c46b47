//! State that workers share for frames that need more than one plain output: groups, meters, queues
//! and the bridge.
//!
//! Invariant: frames of a stage are processed in the order of their arrival.

use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use super::versioned_groups::SpareVersion;
use super::walk::PipelineWalk;
use super::worker::{LookupBatch, REFUSED};
use super::{OnMiss, Settings};
use crate::action::Action;
use crate::action_set::ActionSet;
use crate::counter::DropReason;
use crate::egress::{ActionOutcome, Egress, EgressContext};
use crate::fast::verdict::Verdict;
use crate::forwarder::{Context, NO_COOKIE, Outputs, PacketInReason};
use crate::rewrite;
use crate::table::{Lookup, Program, TableMiss, verdict};

/// The shared state.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) egress: Egress,
    /// Action on a table miss.
    pub(super) on_miss: OnMiss,
    /// Action set of the current frame.
    pub(super) set: ActionSet,
    pub(super) trail: PipelineWalk,
    /// Other version of groups and meters while a bundle is open or being committed.
    pub(super) other: Option<Box<SpareVersion>>,
    /// Whether an entry with a trigger matched since the last check.
    pub(super) reached: bool,
}

/// Context of the current frames: their worker's lookup handle, their stage and all instruction
/// lists.
#[derive(Clone, Copy)]
pub(super) struct PacketContext<'a> {
    pub(super) lookup: &'a Lookup,
    pub(super) stage: &'a LookupBatch,
    pub(super) programs: &'a [Program],
}

impl Engine {
    pub(super) fn new(ports: &[PortNo], settings: &Settings) -> Engine {
        let limits = (settings.groups, settings.meters);
        Engine {
            egress: Egress::new(ports, settings.normal.as_ref(), limits, settings.hash_seed),
            on_miss: settings.on_miss,
            set: ActionSet::default(),
            trail: PipelineWalk::default(),
            other: None,
            reached: false,
        }
    }

    /// Executes the entries of a stage's frames.
    pub(super) fn forward(
        &mut self,
        flight: &PacketContext,
        frames: &mut [Frame],
        now: Nanos,
        out: &mut Outputs,
    ) {
        let begins = flight.stage.begins;
        let mut way = EgressContext { in_port: begins.in_port, now, out, context: start(begins) };
        self.trail.key = None;
        for (place, frame) in frames.iter_mut().enumerate() {
            let key = flight.stage.key_of[place];
            if key != REFUSED {
                self.act(flight, usize::from(key), frame, &mut way);
            }
            if self.egress.defers {
                self.leave(flight, &mut way);
            }
        }
    }

    /// Executes the entry of a key for a frame.
    #[inline]
    fn act(
        &mut self,
        flight: &PacketContext,
        key: usize,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) {
        match flight.stage.verdicts[key] {
            Some(Verdict::Output(port)) => {
                if self.egress.defers {
                    // Egress tables need this frame's context, not that of the previous frame.
                    way.context = start(flight.stage.begins);
                }
                self.egress.output(port.into(), frame, way);
            }
            Some(Verdict::Drop) => self.egress.drops.add(DropReason::ByFlow),
            Some(Verdict::List) => self.do_list(flight, key, frame, way),
            Some(Verdict::Program) => {
                way.context = start(flight.stage.begins);
                self.follow(flight, key, frame, way);
            }
            None => self.pass_over(flight, key, frame, way),
        }
    }

    /// Executes the action list of the entry for a key.
    #[inline(never)]
    fn do_list(
        &mut self,
        flight: &PacketContext,
        key: usize,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) {
        let found = flight.stage.found[key];
        way.context = start(flight.stage.begins);
        let instructions = &flight.programs[flight.lookup.program(found)];
        if verdict(instructions) != Verdict::List {
            // The entry was just changed.
            return self.follow(flight, key, frame, way);
        }
        enter(flight, 0, found, way);
        if self.egress.run(&instructions.apply, frame, false, way) == ActionOutcome::Nowhere {
            self.egress.drops.add(DropReason::NoDestination);
        }
    }

    /// Processes a frame that missed in table 0.
    #[inline(never)]
    fn pass_over(
        &mut self,
        flight: &PacketContext,
        key: usize,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) {
        way.context = start(flight.stage.begins);
        match self.next_on_miss(flight, 0) {
            Some(next) => self.follow_from(flight, next, key, frame, way),
            None => self.miss(flight, frame, way),
        }
    }

    /// Processes a frame that missed in the table of its context.
    pub(super) fn miss(
        &mut self,
        flight: &PacketContext,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) {
        let quiet = self.egress.settings(way.in_port).no_packet_in;
        way.context.cookie = NO_COOKIE;
        match (self.on_miss, flight.lookup.config(way.context.table).map(|config| config.on_miss)) {
            (OnMiss::Normal, _) => {
                if self.egress.run(&[Action::Normal], frame, false, way) == ActionOutcome::Nowhere {
                    self.egress.drops.add(DropReason::NoDestination);
                }
            }
            (_, Some(TableMiss::Controller)) | (OnMiss::Controller, Some(TableMiss::Pipeline))
                if !quiet =>
            {
                self.egress.miss(frame, way);
            }
            _ => self.egress.drops.add(DropReason::NoMatch),
        }
    }
}

/// Copies table, cookie and packet-in reason of the matched entry to the context.
pub(super) fn enter(flight: &PacketContext, table: u8, found: u32, way: &mut EgressContext) {
    let (cookie, miss) = flight.lookup.told(found);
    way.context.table = table;
    way.context.cookie = cookie;
    way.context.why = if miss { PacketInReason::NoMatch } else { PacketInReason::Action };
}

/// Returns the initial context of a frame with these fields.
#[inline]
pub(super) fn start(fields: rewrite::Context) -> Context {
    Context { fields, ..Context::START }
}
