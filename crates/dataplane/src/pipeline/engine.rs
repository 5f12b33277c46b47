//! What the workers share for frames that need more than a port: groups, meters, queues, the bridge.
//!
//! Invariant: frames of a stage are done in the order in which they came.

use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use super::spread::Spread;
use super::walk::Trail;
use super::worker::{REFUSED, Stage};
use super::{OnMiss, Settings};
use crate::action::Action;
use crate::action_set::ActionSet;
use crate::classifier::Verdict;
use crate::counter::DropReason;
use crate::egress::{Egress, Ran, Way};
use crate::forwarder::{Context, NO_COOKIE, Outputs, PacketInReason};
use crate::rewrite;
use crate::table::{Lookup, Program, TableMiss, verdict};

/// All of it.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) egress: Egress,
    /// What becomes of frames that match no entry.
    pub(super) on_miss: OnMiss,
    /// The action set of the frame at hand.
    pub(super) set: ActionSet,
    pub(super) trail: Trail,
    /// While a bundle is done: groups and meters that not everybody sees.
    pub(super) other: Option<Box<Spread>>,
    /// Whether an entry with a trigger matched since this was last looked at.
    pub(super) reached: bool,
}

/// What belongs to the frames at hand: how their worker looks entries up, its stage, and what all
/// entries do.
#[derive(Clone, Copy)]
pub(super) struct Flight<'a> {
    pub(super) lookup: &'a Lookup,
    pub(super) stage: &'a Stage,
    pub(super) programs: &'a [Program],
}

impl Engine {
    pub(super) fn new(ports: &[PortNo], settings: &Settings) -> Engine {
        let limits = (settings.groups, settings.meters);
        Engine {
            egress: Egress::new(ports, settings.normal.as_ref(), limits, settings.hash_seed),
            on_miss: settings.on_miss,
            set: ActionSet::default(),
            trail: Trail::default(),
            other: None,
            reached: false,
        }
    }

    /// Does with the frames of a stage what their entries say.
    pub(super) fn forward(
        &mut self,
        flight: &Flight,
        frames: &mut [Frame],
        now: Nanos,
        out: &mut Outputs,
    ) {
        let begins = flight.stage.begins;
        let mut way = Way { in_port: begins.in_port, now, out, context: start(begins) };
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

    /// Does with a frame what the entry for its key says.
    #[inline]
    fn act(&mut self, flight: &Flight, key: usize, frame: &mut Frame, way: &mut Way) {
        match flight.stage.verdicts[key] {
            Some(Verdict::Output(port)) => {
                if self.egress.defers {
                    // Egress tables see where the frame was, not where the one before it was.
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

    /// Does the list of actions of the entry for a key.
    #[inline(never)]
    fn do_list(&mut self, flight: &Flight, key: usize, frame: &mut Frame, way: &mut Way) {
        let found = flight.stage.found[key];
        way.context = start(flight.stage.begins);
        let instructions = &flight.programs[flight.lookup.program(found)];
        if verdict(instructions) != Verdict::List {
            // It was just changed.
            return self.follow(flight, key, frame, way);
        }
        enter(flight, 0, found, way);
        if self.egress.run(&instructions.apply, frame, false, way) == Ran::Nowhere {
            self.egress.drops.add(DropReason::NoDestination);
        }
    }

    /// What becomes of a frame that table 0 has no entry for.
    #[inline(never)]
    fn pass_over(&mut self, flight: &Flight, key: usize, frame: &mut Frame, way: &mut Way) {
        way.context = start(flight.stage.begins);
        match self.next_on_miss(flight, 0) {
            Some(next) => self.follow_from(flight, next, key, frame, way),
            None => self.miss(flight, frame, way),
        }
    }

    /// What becomes of a frame that the table in its context has no entry for.
    pub(super) fn miss(&mut self, flight: &Flight, frame: &mut Frame, way: &mut Way) {
        let quiet = self.egress.settings(way.in_port).no_packet_in;
        way.context.cookie = NO_COOKIE;
        match (self.on_miss, flight.lookup.config(way.context.table).map(|config| config.on_miss)) {
            (OnMiss::Normal, _) => {
                if self.egress.run(&[Action::Normal], frame, false, way) == Ran::Nowhere {
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

/// What whoever is told of the frame learns of the entry that it matched.
pub(super) fn enter(flight: &Flight, table: u8, found: u32, way: &mut Way) {
    let (cookie, miss) = flight.lookup.told(found);
    way.context.table = table;
    way.context.cookie = cookie;
    way.context.why = if miss { PacketInReason::NoMatch } else { PacketInReason::Action };
}

/// Where a frame begins that has these fields.
#[inline]
pub(super) fn start(fields: rewrite::Context) -> Context {
    Context { fields, ..Context::START }
}
