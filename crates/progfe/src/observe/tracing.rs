//! Traces of the next frames that match: bytes on arrival, steps block by block, and bytes on
//! departure.
//!
//! A port, a condition (as in rules) or both select the frames. The trace ends after a number of
//! frames or at a deadline. Frames that leave later, from queues of blocks, do not count as
//! departures.
//!
//! Invariant: uncollected data is bounded ([`KEPT_OCTETS_MAX`]). Frames that exceed the bound are
//! counted.

use std::collections::VecDeque;
use std::sync::Arc;

use dataplane::forwarder::Outputs;
use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use super::{ObservationHook, bytes_of, is_alike};
use crate::condition::{Condition, Operand};
use crate::executor::Enforcer;
use crate::lfb::{Packet, Slots, meta_id};
use crate::program::{Program, text};
use crate::trace::{Step, Trace};

/// Maximum number of frames in one request.
pub const FRAMES_MAX: u64 = 10_000;
/// Maximum octets of recorded data that is not yet taken.
pub const KEPT_OCTETS_MAX: usize = 4 << 20;
/// Assumed size of a step without changed bytes.
const STEP_OCTETS: usize = 256;

/// Frames that a trace selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Number of frames, 1 to [`FRAMES_MAX`].
    pub count: u64,
    /// Receiving port; none selects all ports.
    pub port: Option<PortNo>,
    /// Condition, such as `IPv4.proto = 17`. An empty condition is always true.
    pub when: String,
    /// Deadline.
    pub until: Nanos,
}

/// A traced frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceRecord {
    /// Arrival time.
    pub at: Nanos,
    /// Receiving port.
    pub port: PortNo,
    /// Bytes on arrival.
    pub came: Vec<u8>,
    /// Steps through the blocks.
    pub trace: Trace,
    /// Frames sent immediately: port and bytes.
    pub left: Vec<(PortNo, Vec<u8>)>,
}

/// Reason why a trace ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The requested number of frames was traced.
    Count,
    /// The deadline has passed.
    Time,
    /// A program with other blocks, links or frame formats runs.
    Program,
}

/// A trace of frames.
#[derive(Debug)]
pub struct Tracing {
    /// Id of the trace in this element.
    pub id: u64,
    program: Arc<Program>,
    port: Option<PortNo>,
    condition: Condition,
    slots: Slots,
    packet: Packet,
    missing: u64,
    until: Nanos,
    is_stale: bool,
    kept: VecDeque<TraceRecord>,
    kept_octets: usize,
    /// Number of matching frames for which there was no room.
    pub missed: u64,
}

impl Tracing {
    /// Creates a trace for a program. Returns the reason if the request is invalid.
    pub fn new(id: u64, program: &Arc<Program>, wanted: &Wanted) -> Result<Tracing, String> {
        let Wanted { count, port, when, until } = wanted;
        if !(1..=FRAMES_MAX).contains(count) {
            return Err(format!("invalid count of {count} frames (hint: use 1 to {FRAMES_MAX})"));
        }
        let ports: Vec<PortNo> = program.ports.iter().map(|port| port.number).collect();
        if let Some(port) = port.filter(|port| !ports.contains(port)) {
            return Err(format!("no port {port} (hint: use one of {ports:?})"));
        }
        let condition = match when.trim() {
            "" => Ok(Condition::Any),
            when => text::condition(when, &program.frames, &program.catalog),
        };
        let condition = condition.map_err(|error| {
            let hint = if error.hint.is_empty() {
                String::new()
            } else {
                format!(" (hint: {})", error.hint)
            };
            format!("{when}: at byte {}: {}{hint}", error.at, error.what)
        })?;
        if let Some(name) = unknown_yet(&condition) {
            return Err(format!(
                "{when}: meta:{name} is unknown when a frame arrives (hint: use only \
                 meta:PHYPortID)"
            ));
        }
        let slots = Slots::of(&program.catalog).ok_or("too many metadata")?;
        Ok(Tracing {
            id,
            program: program.clone(),
            port: *port,
            condition,
            packet: Packet::new(&slots),
            slots,
            missing: *count,
            until: *until,
            is_stale: false,
            kept: VecDeque::new(),
            kept_octets: 0,
            missed: 0,
        })
    }

    /// Returns why the trace ended, if it did.
    pub fn ended(&self, now: Nanos) -> Option<Ended> {
        match self.missing {
            0 => Some(Ended::Count),
            _ if self.is_stale => Some(Ended::Program),
            _ => (now >= self.until).then_some(Ended::Time),
        }
    }

    /// Returns the program whose blocks and links the steps name.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Takes the oldest traced frame.
    pub fn take(&mut self) -> Option<TraceRecord> {
        let traced = self.kept.pop_front()?;
        self.kept_octets -= octets(&traced);
        Some(traced)
    }

    /// Returns true if traced frames are waiting.
    pub fn has_more(&self) -> bool {
        !self.kept.is_empty()
    }

    pub(super) fn wants(&self, port: PortNo, now: Nanos) -> bool {
        self.ended(now).is_none() && self.port.is_none_or(|wanted| wanted == port)
    }

    /// Returns true if a frame of a port matches.
    pub(super) fn is_meant(&mut self, port: PortNo, frame: &mut Frame) -> bool {
        if self.condition == Condition::Any {
            return true;
        }
        let Tracing { program, slots, packet, condition, .. } = self;
        let frames = &program.frames;
        packet.begin(frame, frames.start, slots.ids().len(), Nanos::ZERO);
        packet.set_meta(slots, meta_id::PHY_PORT, port.into());
        let is_meant = packet.facts(frames, slots, |facts| condition.holds(facts));
        std::mem::swap(packet.frame_mut(), frame);
        is_meant
    }

    /// Sends a frame through the program and records its trace.
    pub(super) fn follow<E: Enforcer>(
        &mut self,
        enforcer: &mut E,
        port: PortNo,
        frame: &mut Frame,
        now: Nanos,
        out: &mut Outputs,
    ) {
        let (came, at) = (bytes_of(frame), frame.stamp.map_or(now, |stamp| stamp.at));
        let before: Vec<usize> = out.queues().iter().map(|(_, queue)| queue.len()).collect();
        let mut trace = Trace::default();
        enforcer.pass(port, frame, now, out, ObservationHook::Trace(&mut trace));
        let queues = out.queues().iter().zip(before);
        let left = queues.flat_map(|((to, queue), before)| {
            let new = queue.frames().get(before..).unwrap_or_default();
            new.iter().map(|frame| (*to, bytes_of(frame)))
        });
        let traced = TraceRecord { at, port, came, trace, left: left.collect() };
        self.missing -= 1;
        let octets = octets(&traced);
        if self.kept_octets + octets > KEPT_OCTETS_MAX {
            self.missed += 1;
            return;
        }
        self.kept_octets += octets;
        self.kept.push_back(traced);
    }

    pub(super) fn program_changed(&mut self, program: &Arc<Program>) {
        // Recorded steps refer to blocks by their indices in the program of that time.
        match self.is_stale || !is_alike(&self.program, program) {
            true => self.is_stale = true,
            false => self.program = program.clone(),
        }
    }
}

/// Finds a metadata item in a condition that a newly received frame does not have.
fn unknown_yet(condition: &Condition) -> Option<&str> {
    match condition {
        Condition::Any => None,
        Condition::All(all) | Condition::Either(all) => all.iter().find_map(unknown_yet),
        Condition::Not(inner) => unknown_yet(inner),
        Condition::Present(operand) | Condition::Test(operand, _) => match operand {
            Operand::Meta { id, name, .. } if *id != meta_id::PHY_PORT => Some(name),
            _ => None,
        },
    }
}

/// Estimates the size of a traced frame.
fn octets(traced: &TraceRecord) -> usize {
    let step = |step: &Step| {
        let words = step.before.len() + step.after.len() + step.copies.len();
        STEP_OCTETS + step.bytes.as_ref().map_or(0, Vec::len) + words * size_of::<(u32, u128)>()
    };
    let left: usize = traced.left.iter().map(|(_, bytes)| bytes.len()).sum();
    traced.came.len() + left + traced.trace.steps.iter().map(step).sum::<usize>()
}
