//! Processing of one frame in the tables, entry by entry.
//!
//! Source: OpenFlow switch specification 1.3.5, sections 5.1 (pipeline), 5.4 (table miss), 5.9
//! (instructions) and 5.10 (action set). Frames of a run with the same key share lookups, up to the
//! first entry that changes fields of later lookups.
//!
//! Invariant: a walk only goes to later tables, so it ends.

use packet::frame::{Frame, PortNo};

use super::OnMiss;
use super::engine::{Engine, PacketContext, enter};
use crate::action::Action;
use crate::classifier::NO_ENTRY;
use crate::counter::DropReason;
use crate::egress::{ActionOutcome, Deferred, EgressContext};
use crate::forwarder::{Context, Event, NO_COOKIE, PacketInReason};
use crate::instruction::Instructions;
use crate::key::wide::{self, EVERYTHING, OUTSIDE, Wide, WordSet};
use crate::key::{self, Key};
use crate::table::TableMiss;

/// Lookup results of the previous frame, if it has the same key in the same stage.
#[derive(Debug, Default)]
pub(super) struct PipelineWalk {
    /// Index of that key in its stage.
    pub(super) key: Option<usize>,
    found: Vec<u32>,
}

/// State of a frame in the tables.
struct Walk {
    table: u8,
    found: u32,
    key: Key,
    wide: Wide,
    /// Whether the frame was sent anywhere.
    sent: bool,
    /// Number of lookups so far while they depend on the initial key only, else `None`.
    trodden: Option<usize>,
    /// Bits of the key and wide words that are out of date.
    stale: (Key, WordSet),
}

impl Engine {
    /// Processes a frame whose key has index `place` in the stage, beginning with its entry of
    /// table 0.
    #[inline(never)]
    pub(super) fn follow(
        &mut self,
        flight: &PacketContext,
        place: usize,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) {
        if self.trail.key != Some(place) {
            self.trail.key = Some(place);
            self.trail.found.clear();
        }
        let walk = Walk {
            table: 0,
            found: flight.stage.found[place],
            key: flight.stage.keys[place],
            wide: flight.stage.wide[place],
            sent: false,
            trodden: Some(0),
            stale: (Key::ZERO, 0),
        };
        self.set.clear();
        self.go_on(flight, walk, frame, way);
    }

    fn go_on(
        &mut self,
        flight: &PacketContext,
        mut walk: Walk,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) {
        loop {
            if walk.found == NO_ENTRY {
                if !self.missed(flight, &mut walk, frame, way) {
                    return;
                }
            } else {
                match self.step(flight, &mut walk, frame, way) {
                    Step::Goto(table) => walk.table = table,
                    Step::End => return self.finish(&walk, frame, way),
                    Step::Over => return,
                }
            }
            self.look_up(flight, &mut walk, frame, way);
        }
    }

    /// Executes the instructions of the matched entry.
    fn step(
        &mut self,
        flight: &PacketContext,
        walk: &mut Walk,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) -> Step {
        enter(flight, walk.table, walk.found, way);
        let instructions = &flight.programs[flight.lookup.program(walk.found)];
        if instructions.trigger.is_some() {
            way.out.event(Event::FlowReached { place: walk.found });
            self.reached = true;
        }
        if let Some(meter) = instructions.meter {
            if !self.egress.meter(meter, frame, way.now) {
                return Step::Over;
            }
            walk.touch(&[Action::Meter(meter)]);
        }
        let Instructions { apply, write, metadata, goto, .. } = &**instructions;
        if instructions.clear {
            // Apply-actions do not read the action set, so it can be cleared first.
            self.set.clear();
        }
        self.set.write(write);
        if !apply.is_empty() {
            let leaves = way.context.actset_output.is_some();
            let keep = goto.is_some() || !self.set.is_empty() || leaves;
            match self.egress.run(apply, frame, keep, way) {
                ActionOutcome::Over => return Step::Over,
                ran => walk.sent |= ran == ActionOutcome::Sent,
            }
        }
        if let Some((value, mask)) = *metadata {
            let fields = &mut way.context.fields;
            fields.metadata = fields.metadata & !mask | value & mask;
        }
        match *goto {
            Some(table) => {
                walk.touch(apply);
                Step::Goto(table)
            }
            None => Step::End,
        }
    }

    /// Finds the entry of the next table and counts the frame there.
    fn look_up(
        &mut self,
        flight: &PacketContext,
        walk: &mut Walk,
        frame: &Frame,
        way: &EgressContext,
    ) {
        let (asked, words) = flight.lookup.asked(walk.table);
        if walk.stale.0.and(asked) != Key::ZERO || walk.stale.1 & words & !OUTSIDE != 0 {
            walk.read(frame, way, words);
        }
        self.fill_outside(&mut walk.wide, words, way);
        let known = walk.trodden.and_then(|at| self.trail.found.get(at).copied());
        walk.found = known.unwrap_or_else(|| flight.lookup.find(walk.table, &walk.key, &walk.wide));
        if let Some(at) = &mut walk.trodden {
            if known.is_none() {
                self.trail.found.push(walk.found);
            }
            *at += 1;
        }
        flight.lookup.count(walk.table, walk.found, 1, frame.len() as u64, way.now);
    }

    /// Sets the fields that are not in the frame's bytes, if entries match on them.
    #[inline]
    pub(super) fn fill_outside(&self, wide: &mut Wide, words: WordSet, way: &EgressContext) {
        if words & OUTSIDE != 0 {
            let output = way.context.actset_output.unwrap_or_else(|| self.set.output());
            wide.0[0] = way.context.fields.metadata;
            wide.0[1] = way.context.fields.tunnel_id;
            wide.0[2] = u64::from(way.in_port) << 32 | u64::from(output);
        }
    }

    /// Processes a table miss; returns whether the next table continues.
    fn missed(
        &mut self,
        flight: &PacketContext,
        walk: &mut Walk,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) -> bool {
        way.context.table = walk.table;
        match self.next_on_miss(flight, walk.table) {
            Some(next) => {
                walk.table = next;
                true
            }
            None => {
                self.miss(flight, frame, way);
                false
            }
        }
    }

    /// Returns the next table for frames that miss in this one.
    pub(super) fn next_on_miss(&self, flight: &PacketContext, table: u8) -> Option<u8> {
        let goes_on = self.on_miss != OnMiss::Normal
            && flight.lookup.config(table)?.on_miss == TableMiss::Continue
            && usize::from(table) + 1 < flight.lookup.count_tables()
            && flight.lookup.first_egress() != Some(table + 1);
        goes_on.then_some(table + 1)
    }

    /// Processes a frame that missed in table 0 and continues in another table.
    pub(super) fn follow_from(
        &mut self,
        flight: &PacketContext,
        table: u8,
        place: usize,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) {
        self.trail.key = None;
        let mut walk = Walk {
            table,
            found: NO_ENTRY,
            key: flight.stage.keys[place],
            wide: flight.stage.wide[place],
            sent: false,
            trodden: None,
            stale: (Key::ZERO, 0),
        };
        self.set.clear();
        self.look_up(flight, &mut walk, frame, way);
        self.go_on(flight, walk, frame, way);
    }

    /// Processes frames that are about to leave by a port in the egress tables.
    #[inline(never)]
    pub(super) fn leave(&mut self, flight: &PacketContext, way: &mut EgressContext) {
        let Some(table) = flight.lookup.first_egress() else { return };
        while let Some(Deferred { mut frame, context }) = self.egress.next_deferred() {
            way.context = Context { cookie: NO_COOKIE, ..context };
            self.trail.key = None;
            self.set.clear();
            let mut walk = Walk {
                table,
                found: NO_ENTRY,
                key: Key::ZERO,
                wide: Wide::ZERO,
                sent: false,
                trodden: None,
                stale: EVERYTHING,
            };
            walk.read(&frame, way, flight.lookup.asked(table).1);
            self.look_up(flight, &mut walk, &frame, way);
            self.go_on(flight, walk, &mut frame, way);
        }
    }

    /// Executes the action set of the egress tables and sends the frame to its output port. Egress
    /// tables cannot change this port.
    fn finish_egress(&mut self, port: PortNo, frame: &mut Frame, way: &mut EgressContext) {
        let actions = self.set.actions();
        let changes = actions.iter().position(Action::is_output).unwrap_or(actions.len());
        if self.egress.run(&actions[..changes], frame, true, way) != ActionOutcome::Over {
            self.egress.leave(port, frame, way);
        }
    }

    /// Executes the action set.
    fn finish(&mut self, walk: &Walk, frame: &mut Frame, way: &mut EgressContext) {
        if let Some(port) = way.context.actset_output {
            return self.finish_egress(port, frame, way);
        }
        let mut ran = ActionOutcome::Nowhere;
        if !self.set.is_empty() {
            if way.context.why == PacketInReason::Action {
                way.context.why = PacketInReason::ActionSet;
            }
            ran = self.egress.run(self.set.actions(), frame, false, way);
        }
        if ran == ActionOutcome::Nowhere && !walk.sent {
            let nothing = self.set.is_empty();
            let why = if nothing { DropReason::ByFlow } else { DropReason::NoDestination };
            self.egress.drops.add(why);
        }
    }
}

/// Next step of a walk.
enum Step {
    /// Continue in this table.
    Goto(u8),
    /// Execute the action set.
    End,
    /// Stop: the frame is dropped and counted.
    Over,
}

impl Walk {
    /// Records the fields that actions change.
    fn touch(&mut self, actions: &[Action]) {
        for action in actions {
            let (key, words) = changes(action);
            self.stale = (self.stale.0.or(&key), self.stale.1 | words);
            // Copied values, and the remarking of a meter, depend on more than the key.
            self.trodden = self.trodden.filter(|_| words == 0 && key == Key::ZERO);
        }
    }

    /// Reads the key and the wide words from the current frame.
    fn read(&mut self, frame: &Frame, way: &EgressContext, words: WordSet) {
        self.key = key::extract(way.in_port, frame.bytes());
        self.wide = Wide::ZERO;
        if words & !OUTSIDE != 0 {
            wide::extract(frame.bytes(), words, &mut self.wide);
        }
        self.stale = (Key::ZERO, 0);
    }
}

/// Returns the bits of the key and the wide words that an action may change.
fn changes(action: &Action) -> (Key, WordSet) {
    use packet::field::Field;
    let both = |one: Field, other: Field| {
        let (one, other) = (wide::touched(one), wide::touched(other));
        (one.0.or(&other.0), one.1 | other.1)
    };
    match *action {
        Action::SetField { field, .. } => wide::touched(field),
        Action::CopyField { to, .. } => wide::touched(to),
        Action::Meter(_) => wide::touched(Field::IpDscp),
        Action::SetL4Src(_) => both(Field::TcpSrc, Field::SctpSrc),
        Action::SetL4Dst(_) => both(Field::TcpDst, Field::SctpDst),
        Action::SetVlan(_) | Action::SetVlanPriority(_) | Action::PushVlan(_) | Action::PopVlan => {
            let (key, words) = both(Field::VlanVid, Field::VlanPcp);
            (key.with(key::Field::SecondTag, u64::MAX), words)
        }
        Action::PushMpls(_)
        | Action::PushMplsBehindVlan(_)
        | Action::PopMpls(_)
        | Action::PushPbb(_)
        | Action::PopPbb => EVERYTHING,
        _ => (Key::ZERO, 0),
    }
}
