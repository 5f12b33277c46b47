//! Executes actions and delivers frames to ports; counts every drop.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 3.3, 5.2.1 (port configuration) and 5.2.4
//! (actions); 1.3.5, sections 5.6 (groups), 5.7 (meters), 5.8 (queues) and 5.12. A frame is copied
//! only if it is still needed: its last destination gets the frame itself.
//!
//! Invariant: a frame (and each copy of it) enters an output queue, becomes an event, or is counted
//! as dropped with one reason.

use std::collections::VecDeque;

use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use crate::action::{Action, LOCAL};
use crate::bridge::{self, Bridge, Destination};
use crate::counter::{DropCounters, DropReason, Traffic};
use crate::forwarder::{Context, Outputs, PacketInReason};
use crate::group::{GroupLimits, GroupNo, GroupTable};
use crate::meter::{MeterLimits, MeterTable};
use crate::queue::{QueueNo, Queues};
use crate::rewrite;

mod deliver;
mod metering;
mod port;
mod group;

pub use group::GROUP_COPIES_MAX;
pub use port::PortSettings;

use port::PortState;

/// Maximum number of unconfigured queues (of all ports together) with traffic counters.
pub const QUEUES_COUNTED_MAX: usize = 1024;

/// Ports and their settings, groups, meters, queues, and drop counters.
#[derive(Debug)]
pub struct Egress {
    ports: Vec<PortNo>,
    /// By port number.
    gates: Vec<PortState>,
    /// Dropped frames, by reason.
    pub drops: DropCounters,
    /// Bridge for [`Action::Normal`]; without it, such frames are dropped.
    pub normal: Option<Bridge>,
    /// Whether frames with an invalid TTL are sent to the controller (the default) or dropped.
    pub tell_invalid_ttl: bool,
    pub(crate) groups: GroupTable,
    /// The meters.
    pub meters: MeterTable,
    shaped: Queues,
    /// Traffic of queues that actions name but that are not configured.
    queues: Vec<((PortNo, QueueNo), Traffic)>,
    /// Number of buckets that the current action may still execute for the current frame.
    copies_left: usize,
    /// Nesting depth of groups for the current frame.
    depth: usize,
    /// Empty frames for copies.
    spares: Vec<Frame>,
    /// Whether frames for a port wait for the egress tables.
    pub(crate) defers: bool,
    deferred: VecDeque<Deferred>,
}

/// A frame that waits for the egress tables.
#[derive(Debug)]
pub(crate) struct Deferred {
    pub(crate) frame: Frame,
    /// Includes the output port.
    pub(crate) context: Context,
}

/// Origin and outputs of a frame.
pub struct EgressContext<'a> {
    /// The ingress port.
    pub in_port: PortNo,
    /// Time of reception, actual or assumed.
    pub now: Nanos,
    /// The outputs.
    pub out: &'a mut Outputs,
    /// Position in the pipeline.
    pub context: Context,
}

/// Result of an action list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionOutcome {
    /// The frame was sent somewhere, or dropped and counted on the way.
    Sent,
    /// No action sent the frame anywhere. Unless later actions do, the caller must count a drop.
    Nowhere,
    /// The frame was dropped and counted: by a meter, or for an invalid TTL. Later actions do not
    /// apply.
    Over,
}

/// The next destination of a frame, while it is unknown whether the frame is needed later.
#[derive(Debug, Clone, Copy)]
enum NextOutput {
    Port(PortNo, Option<QueueNo>),
    Controller(u16),
    Group(GroupNo),
}

impl Egress {
    /// Creates an egress with default port settings, and with a bridge for [`Action::Normal`] if
    /// `normal` is given. `seed` is a secret for the choice of group buckets.
    pub fn new(
        ports: &[PortNo],
        normal: Option<&bridge::Settings>,
        (groups, meters): (GroupLimits, MeterLimits),
        seed: u64,
    ) -> Egress {
        let count = ports.iter().max().map_or(0, |&port| port as usize + 1);
        Egress {
            ports: ports.to_vec(),
            gates: vec![PortState::default(); count],
            drops: DropCounters::default(),
            normal: normal.map(|settings| Bridge::new(ports, settings)),
            tell_invalid_ttl: true,
            groups: GroupTable::new(ports, groups, seed),
            meters: MeterTable::new(meters),
            shaped: Queues::default(),
            queues: Vec::new(),
            copies_left: 0,
            depth: 0,
            spares: Vec::new(),
            defers: false,
            deferred: VecDeque::new(),
        }
    }

    /// Sends the frame to one port, as an output action does.
    #[inline]
    pub fn output(&mut self, port: PortNo, frame: &mut Frame, way: &mut EgressContext) {
        match self.barrier(port, way.in_port) {
            None => self.deliver(port, None, frame, way),
            Some(why) => self.drops.add(why),
        }
    }

    /// Executes actions in order. Consumes the frame unless `keep` is set; then the frame has the
    /// changes of the actions. [`Action::Table`] is not supported here.
    pub fn run(
        &mut self,
        actions: &[Action],
        frame: &mut Frame,
        keep: bool,
        way: &mut EgressContext,
    ) -> ActionOutcome {
        let mut next = None;
        let mut sent = false;
        for action in actions {
            if action.is_output() {
                sent |= self.line_up(action, frame, &mut next, way);
                continue;
            }
            // The pending destination gets the frame before the change.
            self.send_copy(next.take(), frame, way);
            let goes_on = match *action {
                Action::SetQueue(queue) => {
                    way.context.queue = Some(queue);
                    true
                }
                Action::Meter(number) => self.meter(number, frame, way.now),
                _ => self.change(action, frame, way),
            };
            if !goes_on {
                return ActionOutcome::Over;
            }
        }
        if keep {
            self.send_copy(next, frame, way);
        } else if let Some(last) = next {
            self.send(last, frame, way);
        }
        if sent { ActionOutcome::Sent } else { ActionOutcome::Nowhere }
    }

    /// Sends the frame to the controller because of a table miss.
    pub fn miss(&mut self, frame: &mut Frame, way: &mut EgressContext) {
        self.packet_in(frame, None, PacketInReason::NoMatch, way);
    }

    /// Changes the frame. Returns false if its TTL is invalid; then the frame is consumed.
    fn change(&mut self, action: &Action, frame: &mut Frame, way: &mut EgressContext) -> bool {
        let changed = rewrite::apply(action, frame, &mut way.context.fields);
        if changed.is_err() && self.tell_invalid_ttl {
            self.packet_in(frame, None, PacketInReason::InvalidTtl, way);
        } else if changed.is_err() {
            self.drops.add(DropReason::TtlExpired);
        }
        changed.is_ok()
    }

    /// Makes an action's destination the pending one. Returns false if the action has no
    /// destination, without counting a drop.
    fn line_up(
        &mut self,
        action: &Action,
        frame: &Frame,
        next: &mut Option<NextOutput>,
        way: &mut EgressContext,
    ) -> bool {
        let queue = way.context.queue;
        match *action {
            Action::Output { port } => self.line_up_port(port, queue, frame, next, way),
            Action::Local => self.line_up_port(LOCAL, queue, frame, next, way),
            Action::Enqueue { port, queue } => {
                self.count_queue(port, queue, frame.len());
                self.line_up_port(port, Some(queue), frame, next, way);
            }
            Action::InPort => match self.refusal(way.in_port) {
                None => self.replace(NextOutput::Port(way.in_port, queue), frame, next, way),
                Some(why) => self.drops.add(why),
            },
            Action::Controller { bytes_max } => {
                self.replace(NextOutput::Controller(bytes_max), frame, next, way);
            }
            Action::Group(number) => self.replace(NextOutput::Group(number), frame, next, way),
            Action::All | Action::Flood => {
                return self.line_up_all(*action == Action::Flood, frame, next, way);
            }
            Action::Normal => return self.line_up_normal(frame, next, way),
            _ => self.drops.add(DropReason::TableFromFlow),
        }
        true
    }

    fn line_up_port(
        &mut self,
        port: PortNo,
        queue: Option<QueueNo>,
        frame: &Frame,
        next: &mut Option<NextOutput>,
        way: &mut EgressContext,
    ) {
        match self.barrier(port, way.in_port) {
            None => self.replace(NextOutput::Port(port, queue), frame, next, way),
            Some(why) => self.drops.add(why),
        }
    }

    /// Adds the destination that a learning bridge selects. The bridge learns from frames as
    /// changed by previous actions, and only from frames of its ports.
    fn line_up_normal(
        &mut self,
        frame: &Frame,
        next: &mut Option<NextOutput>,
        way: &mut EgressContext,
    ) -> bool {
        let from_port = self.ports.contains(&way.in_port);
        let to = match &mut self.normal {
            Some(bridge) if from_port => bridge.decide_one(way.in_port, frame.bytes(), way.now),
            Some(bridge) => bridge.look_up(frame.bytes(), way.now),
            None => Destination::Nowhere(DropReason::NoBridge),
        };
        match to {
            Destination::Port(port) => {
                self.line_up_port(port, way.context.queue, frame, next, way);
            }
            Destination::Flood => return self.line_up_all(true, frame, next, way),
            Destination::Nowhere(why) => self.drops.add(why),
        }
        true
    }

    fn line_up_all(
        &mut self,
        flood: bool,
        frame: &Frame,
        next: &mut Option<NextOutput>,
        way: &mut EgressContext,
    ) -> bool {
        let mut any = false;
        for place in 0..self.ports.len() {
            let port = self.ports[place];
            let left_out = flood && self.settings(port).no_flood;
            if port == LOCAL || left_out || self.barrier(port, way.in_port).is_some() {
                continue;
            }
            self.replace(NextOutput::Port(port, way.context.queue), frame, next, way);
            any = true;
        }
        any
    }

    /// Sets the pending destination, and sends a copy of the frame to the previous one.
    fn replace(
        &mut self,
        with: NextOutput,
        frame: &Frame,
        next: &mut Option<NextOutput>,
        way: &mut EgressContext,
    ) {
        let before = next.replace(with);
        self.send_copy(before, frame, way);
    }
}

#[cfg(test)]
mod tests;
