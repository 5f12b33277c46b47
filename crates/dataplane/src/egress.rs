//! Where decided frames go: the actions done in order, port by port, every loss counted.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 3.3, 5.2.1 (port configuration) and 5.2.4
//! (actions). A frame is copied only when it is still needed: the last place that it goes to gets
//! the frame itself.
//!
//! Invariant: a frame (and each copy of it) either enters an output queue or becomes an event, or
//! is counted as dropped for one reason.

use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use crate::action::{Action, LOCAL};
use crate::bridge::{self, Bridge, Destination};
use crate::counter::{DropCounters, DropReason, Traffic};
use crate::forwarder::{Context, Event, Outputs, PacketInReason, Sent};
use crate::rewrite;

/// Queues (of all ports together) whose traffic is counted; that of others is not.
pub const QUEUES_COUNTED_MAX: usize = 1024;

/// What a port is set to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortSettings {
    /// Switched off: neither receives nor sends.
    pub down: bool,
    /// Drop what it receives, but for frames of the spanning tree protocol.
    pub no_receive: bool,
    /// Drop the frames of the spanning tree protocol that it receives.
    pub no_receive_spanning_tree: bool,
    /// Leave it out when flooding.
    pub no_flood: bool,
    /// Drop what is sent to it.
    pub no_forward: bool,
    /// Tell the controller nothing of frames from it that match no entry.
    pub no_packet_in: bool,
}

/// The ports, their settings, and the account of what was lost.
#[derive(Debug, Default)]
pub struct Egress {
    ports: Vec<PortNo>,
    /// By port number.
    settings: Vec<PortSettings>,
    /// Frames lost, by reason.
    pub drops: DropCounters,
    /// What [`Action::Normal`] goes by; without it such frames are dropped.
    pub normal: Option<Bridge>,
    queues: Vec<((PortNo, u32), Traffic)>,
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

/// The place that a frame is about to go to, while it is not known whether it is needed after.
#[derive(Debug, Clone, Copy)]
enum Next {
    Port(PortNo),
    Controller(u16),
}

impl Egress {
    /// Nothing lost yet, and every port set to do everything. With settings for it, there is a
    /// bridge for [`Action::Normal`].
    pub fn new(ports: &[PortNo], normal: Option<&bridge::Settings>) -> Egress {
        let count = ports.iter().max().map_or(0, |&port| port as usize + 1);
        Egress {
            ports: ports.to_vec(),
            settings: vec![PortSettings::default(); count],
            normal: normal.map(|settings| Bridge::new(ports, settings)),
            ..Egress::default()
        }
    }

    /// What a port is set to do; a port that does not exist is set to nothing special.
    #[inline]
    pub fn settings(&self, port: PortNo) -> PortSettings {
        self.settings.get(port as usize).copied().unwrap_or_default()
    }

    /// Sets what a port does. False if there is no such port.
    pub fn set_settings(&mut self, port: PortNo, settings: PortSettings) -> bool {
        let known = self.ports.contains(&port);
        if known {
            self.settings[port as usize] = settings;
        }
        known
    }

    /// Frames and bytes sent by way of each queue that was used.
    pub fn queues(&self) -> impl Iterator<Item = (PortNo, u32, Traffic)> + '_ {
        self.queues.iter().map(|&((port, queue), traffic)| (port, queue, traffic))
    }

    /// Sends the frame out of one port, as an action that names that port does.
    #[inline]
    pub fn output(&mut self, port: PortNo, frame: &mut Frame, way: &mut Way) {
        match self.barrier(port, way.in_port) {
            None => self.deliver(port, way.out.send(port, frame)),
            Some(why) => self.drops.add(why),
        }
    }

    /// Does the actions in order and says whether any of them led somewhere (were it to a counted
    /// loss). The frame is used up unless `keep` says that it is needed afterwards, as the actions
    /// left it. [`Action::Table`] is not for here.
    pub fn run(
        &mut self,
        actions: &[Action],
        frame: &mut Frame,
        keep: bool,
        way: &mut Way,
    ) -> bool {
        let mut next = None;
        let mut sent = false;
        for action in actions {
            if action.is_output() {
                sent |= self.line_up(action, frame, &mut next, way);
            } else {
                // What was lined up goes as the frame is now.
                self.send_copy(next.take(), frame, way);
                if rewrite::apply(action, frame, &mut way.context.fields).is_err() {
                    way.context.why = PacketInReason::InvalidTtl;
                    self.packet_in(frame, None, way);
                    return true;
                }
            }
        }
        if keep {
            self.send_copy(next, frame, way);
        } else if let Some(last) = next {
            self.send(last, frame, way);
        }
        sent
    }

    /// Sends it to the controller, because no entry matched.
    pub fn miss(&mut self, frame: &mut Frame, way: &mut Way) {
        way.context.why = PacketInReason::NoMatch;
        self.packet_in(frame, None, way);
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
        match *action {
            Action::Output { port } => self.line_up_port(port, frame, next, way),
            Action::Local => self.line_up_port(LOCAL, frame, next, way),
            Action::Enqueue { port, queue } => {
                self.count_queue(port, queue, frame.len());
                self.line_up_port(port, frame, next, way);
            }
            Action::InPort => match self.refusal(way.in_port) {
                None => self.replace(Next::Port(way.in_port), frame, next, way),
                Some(why) => self.drops.add(why),
            },
            Action::Controller { bytes_max } => {
                self.replace(Next::Controller(bytes_max), frame, next, way);
            }
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
        frame: &Frame,
        next: &mut Option<Next>,
        way: &mut Way,
    ) {
        match self.barrier(port, way.in_port) {
            None => self.replace(Next::Port(port), frame, next, way),
            Some(why) => self.drops.add(why),
        }
    }

    /// Where a learning bridge would send it. It learns from frames as the actions before left
    /// them, and only behind ports.
    fn line_up_normal(&mut self, frame: &Frame, next: &mut Option<Next>, way: &mut Way) -> bool {
        let from_port = self.ports.contains(&way.in_port);
        let to = match &mut self.normal {
            Some(bridge) if from_port => bridge.decide(way.in_port, frame.bytes(), way.now),
            Some(bridge) => bridge.look_up(frame.bytes(), way.now),
            None => Destination::Nowhere(DropReason::NoBridge),
        };
        match to {
            Destination::Port(port) => self.line_up_port(port, frame, next, way),
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
            self.replace(Next::Port(port), frame, next, way);
            any = true;
        }
        any
    }

    /// Another place is to get the frame, so the one lined up before gets a copy.
    fn replace(&mut self, with: Next, frame: &Frame, next: &mut Option<Next>, way: &mut Way) {
        let before = next.replace(with);
        self.send_copy(before, frame, way);
    }

    fn send_copy(&mut self, to: Option<Next>, frame: &Frame, way: &mut Way) {
        match to {
            None => {}
            Some(Next::Port(port)) => self.deliver(port, way.out.send_copy(port, frame)),
            Some(Next::Controller(bytes_max)) => {
                if way.out.events_room() == 0 {
                    return self.packet_in_lost(way);
                }
                let mut copy = Frame::default();
                copy.copy_from(frame);
                self.packet_in(&mut copy, Some(bytes_max), way);
            }
        }
    }

    fn send(&mut self, to: Next, frame: &mut Frame, way: &mut Way) {
        match to {
            Next::Port(port) => self.deliver(port, way.out.send(port, frame)),
            Next::Controller(bytes_max) => {
                self.packet_in(frame, Some(bytes_max), way);
            }
        }
    }

    fn packet_in(&mut self, frame: &mut Frame, bytes_max: Option<u16>, way: &mut Way) {
        if way.out.events_room() == 0 {
            return self.packet_in_lost(way);
        }
        let frame = std::mem::take(frame);
        let (port, context) = (way.in_port, way.context);
        way.out.event(Event::PacketIn { port, bytes_max, context, frame });
    }

    fn packet_in_lost(&mut self, way: &mut Way) {
        way.out.events_lost += 1;
        self.drops.add(DropReason::EventQueueFull);
    }

    /// Why a frame from `in_port` must not leave by `port`, if so.
    #[inline]
    fn barrier(&self, port: PortNo, in_port: PortNo) -> Option<DropReason> {
        if port == in_port { Some(DropReason::BackToIngress) } else { self.refusal(port) }
    }

    /// Why nothing must leave by `port`, if so.
    #[inline]
    fn refusal(&self, port: PortNo) -> Option<DropReason> {
        let settings = self.settings(port);
        if settings.down {
            Some(DropReason::PortDown)
        } else if settings.no_forward {
            Some(DropReason::NoForward)
        } else {
            None
        }
    }

    #[inline]
    fn deliver(&mut self, port: PortNo, sent: Sent) {
        match sent {
            Sent::Queued => {}
            Sent::QueueFull => self.drops.add(DropReason::OutputQueueFull),
            Sent::NoSuchPort if port == LOCAL => self.drops.add(DropReason::NoLocalPort),
            Sent::NoSuchPort => self.drops.add(DropReason::NoSuchPort),
        }
    }

    fn count_queue(&mut self, port: PortNo, queue: u32, bytes: usize) {
        let name = (port, queue);
        let known = self.queues.iter_mut().find(|(other, _)| *other == name);
        if let Some((_, traffic)) = known {
            traffic.frames += 1;
            traffic.bytes += bytes as u64;
        } else if self.queues.len() < QUEUES_COUNTED_MAX {
            self.queues.push((name, Traffic { frames: 1, bytes: bytes as u64 }));
        }
    }
}
