//! Where decided frames go: the actions done in order, port by port, every loss counted.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 3.3, 5.2.1 (port configuration) and 5.2.4
//! (actions); 1.3.5, sections 5.6 (groups), 5.7 (meters), 5.8 (queues) and 5.12. A frame is copied only
//! when it is still needed: the last place that it goes to gets the frame itself.
//!
//! Invariant: a frame (and each copy of it) either enters an output queue or becomes an event, or
//! is counted as dropped for one reason.

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

/// Frames that leave: by a port, by a shaped queue of one, or to the control plane.
mod deliver;
/// Frames that pass meters.
mod metering;
/// What ports are set to do, and whether they are live.
mod port;
/// Frames that go by groups.
mod spread;

pub use port::PortSettings;
pub use spread::GROUP_COPIES_MAX;

use port::Gate;

/// Queues (of all ports that have none configured) whose traffic is counted; that of others is not.
pub const QUEUES_COUNTED_MAX: usize = 1024;

/// The ports, their settings, what shapes and spreads frames, and the account of what was lost.
#[derive(Debug)]
pub struct Egress {
    ports: Vec<PortNo>,
    /// By port number.
    gates: Vec<Gate>,
    /// Frames lost, by reason.
    pub drops: DropCounters,
    /// What [`Action::Normal`] goes by; without it such frames are dropped.
    pub normal: Option<Bridge>,
    /// Whether frames whose time to live is used up go to the control plane, as they do until this
    /// is changed, or are dropped.
    pub tell_invalid_ttl: bool,
    pub(crate) groups: GroupTable,
    /// The meters.
    pub meters: MeterTable,
    shaped: Queues,
    /// Traffic by queues that are named and not configured.
    queues: Vec<((PortNo, QueueNo), Traffic)>,
    /// Buckets that the frame at hand may still go by for the action at hand.
    copies_left: usize,
    /// Groups that the frame at hand is in.
    depth: usize,
    /// Emptied frames, to be copied to.
    spares: Vec<Frame>,
    /// Whether frames that are about to leave by a port wait for the egress tables.
    pub(crate) defers: bool,
    deferred: VecDeque<Deferred>,
}

/// A frame that waits for the egress tables.
#[derive(Debug)]
pub(crate) struct Deferred {
    pub(crate) frame: Frame,
    /// With the port that it is to leave by.
    pub(crate) context: Context,
}

/// Where a frame comes from, and where it can go.
pub struct Way<'a> {
    /// The port that it came in on.
    pub in_port: PortNo,
    /// When it did, or is taken to have.
    pub now: Nanos,
    /// Where frames leave.
    pub out: &'a mut Outputs,
    /// Where in the pipeline it is.
    pub context: Context,
}

/// What became of a frame by a list of actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// It was sent somewhere, were it to a counted loss.
    Sent,
    /// No action sent it anywhere. Unless later actions do, that is a loss to be counted.
    Nowhere,
    /// It is gone and counted: a meter dropped it, or its time to live is used up. What would be
    /// done later is not for it any more.
    Over,
}

/// The place that a frame is about to go to, while it is not known whether it is needed after.
#[derive(Debug, Clone, Copy)]
enum Next {
    Port(PortNo, Option<QueueNo>),
    Controller(u16),
    Group(GroupNo),
}

impl Egress {
    /// Nothing lost yet, and every port set to do everything. With settings for it, there is a
    /// bridge for [`Action::Normal`]. `seed` is a secret for choosing among a group's buckets.
    pub fn new(
        ports: &[PortNo],
        normal: Option<&bridge::Settings>,
        (groups, meters): (GroupLimits, MeterLimits),
        seed: u64,
    ) -> Egress {
        let count = ports.iter().max().map_or(0, |&port| port as usize + 1);
        Egress {
            ports: ports.to_vec(),
            gates: vec![Gate::default(); count],
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

    /// Sends the frame out of one port, as an action that names that port does.
    #[inline]
    pub fn output(&mut self, port: PortNo, frame: &mut Frame, way: &mut Way) {
        match self.barrier(port, way.in_port) {
            None => self.deliver(port, None, frame, way),
            Some(why) => self.drops.add(why),
        }
    }

    /// Does the actions in order. The frame is used up unless `keep` says that it is needed
    /// afterwards, as the actions left it. [`Action::Table`] is not for here.
    pub fn run(&mut self, actions: &[Action], frame: &mut Frame, keep: bool, way: &mut Way) -> Ran {
        let mut next = None;
        let mut sent = false;
        for action in actions {
            if action.is_output() {
                sent |= self.line_up(action, frame, &mut next, way);
                continue;
            }
            // What was lined up goes as the frame is now.
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
                return Ran::Over;
            }
        }
        if keep {
            self.send_copy(next, frame, way);
        } else if let Some(last) = next {
            self.send(last, frame, way);
        }
        if sent { Ran::Sent } else { Ran::Nowhere }
    }

    /// Sends it to the controller, because no entry matched.
    pub fn miss(&mut self, frame: &mut Frame, way: &mut Way) {
        self.packet_in(frame, None, PacketInReason::NoMatch, way);
    }

    /// Changes the frame. False if its time to live is used up: then it is gone.
    fn change(&mut self, action: &Action, frame: &mut Frame, way: &mut Way) -> bool {
        let changed = rewrite::apply(action, frame, &mut way.context.fields);
        if changed.is_err() && self.tell_invalid_ttl {
            self.packet_in(frame, None, PacketInReason::InvalidTtl, way);
        } else if changed.is_err() {
            self.drops.add(DropReason::TtlExpired);
        }
        changed.is_ok()
    }

    /// Puts the places that an action sends to last in line. False if it leads nowhere, without
    /// that being counted yet.
    fn line_up(
        &mut self,
        action: &Action,
        frame: &Frame,
        next: &mut Option<Next>,
        way: &mut Way,
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
                None => self.replace(Next::Port(way.in_port, queue), frame, next, way),
                Some(why) => self.drops.add(why),
            },
            Action::Controller { bytes_max } => {
                self.replace(Next::Controller(bytes_max), frame, next, way);
            }
            Action::Group(number) => self.replace(Next::Group(number), frame, next, way),
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
        next: &mut Option<Next>,
        way: &mut Way,
    ) {
        match self.barrier(port, way.in_port) {
            None => self.replace(Next::Port(port, queue), frame, next, way),
            Some(why) => self.drops.add(why),
        }
    }

    /// Where a learning bridge would send it. It learns from frames as the actions before left
    /// them, and only behind ports.
    fn line_up_normal(&mut self, frame: &Frame, next: &mut Option<Next>, way: &mut Way) -> bool {
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
        next: &mut Option<Next>,
        way: &mut Way,
    ) -> bool {
        let mut any = false;
        for place in 0..self.ports.len() {
            let port = self.ports[place];
            let left_out = flood && self.settings(port).no_flood;
            if port == LOCAL || left_out || self.barrier(port, way.in_port).is_some() {
                continue;
            }
            self.replace(Next::Port(port, way.context.queue), frame, next, way);
            any = true;
        }
        any
    }

    /// Another place is to get the frame, so the one lined up before gets a copy.
    fn replace(&mut self, with: Next, frame: &Frame, next: &mut Option<Next>, way: &mut Way) {
        let before = next.replace(with);
        self.send_copy(before, frame, way);
    }
}

#[cfg(test)]
mod tests;
