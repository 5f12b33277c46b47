//! Delivery of frames to a port, a shaped queue or the control plane.
//!
//! Invariant: every frame passed to these functions is queued, reported, or counted as dropped.

use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use super::{Deferred, Egress, EgressContext, NextOutput, QUEUES_COUNTED_MAX};
use crate::action::LOCAL;
use crate::counter::{DropReason, Traffic};
use crate::forwarder::{Context, Event, Outputs, PacketInReason, Sent};
use crate::meter::CONTROLLER;
use crate::queue::{QueueNo, Queued};

/// Maximum number of empty frames in reserve for copies.
const SPARES_MAX: usize = 32;

/// Maximum number of frames that wait for the egress tables: copies of one frame, which groups
/// multiply.
pub(super) const DEFERRED_MAX: usize = 8192;

impl Egress {
    /// Returns why a frame from `in_port` must not leave by `port`, or `None`.
    #[inline]
    pub(super) fn barrier(&self, port: PortNo, in_port: PortNo) -> Option<DropReason> {
        if port == in_port { Some(DropReason::BackToIngress) } else { self.refusal(port) }
    }

    /// Returns why no frame may leave by `port`, or `None`.
    #[inline]
    pub(super) fn refusal(&self, port: PortNo) -> Option<DropReason> {
        let settings = self.settings(port);
        if settings.down {
            Some(DropReason::PortDown)
        } else if settings.no_forward {
            Some(DropReason::NoForward)
        } else {
            None
        }
    }

    /// Sends the frame to a port after all checks.
    #[inline]
    pub(super) fn deliver(
        &mut self,
        port: PortNo,
        queue: Option<QueueNo>,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) {
        if self.defers && way.context.actset_output.is_none() {
            return self.defer(port, queue, frame, way);
        }
        if self.gates.get(port as usize).is_some_and(|gate| gate.shaped) {
            return self.deliver_shaped(port, queue, frame, way);
        }
        let sent = way.out.send(port, frame);
        self.account(port, sent);
    }

    #[inline(never)]
    fn deliver_shaped(
        &mut self,
        port: PortNo,
        queue: Option<QueueNo>,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) {
        match self.shaped.send(port, queue, frame, way.now, way.out) {
            Queued::Yes => way.out.wake_at(self.shaped.due()),
            Queued::Full => self.drops.add(DropReason::ShaperFull),
            Queued::NoQueues => self.drops.add(DropReason::NoSuchPort),
        }
    }

    /// Queues the frame for the egress tables, if there is space.
    #[inline(never)]
    fn defer(
        &mut self,
        port: PortNo,
        queue: Option<QueueNo>,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) {
        if self.deferred.len() >= DEFERRED_MAX {
            return self.drops.add(DropReason::OutputQueueFull);
        }
        let frame = std::mem::take(frame);
        let context = Context { actset_output: Some(port), queue, ..way.context };
        self.deferred.push_back(Deferred { frame, context });
    }

    /// Returns the next frame for the egress tables.
    pub(crate) fn next_deferred(&mut self) -> Option<Deferred> {
        self.deferred.pop_front()
    }

    /// Sends a frame to its port after the egress tables.
    pub(crate) fn leave(&mut self, port: PortNo, frame: &mut Frame, way: &mut EgressContext) {
        self.deliver(port, way.context.queue, frame, way);
    }

    /// Releases the frames in shaped queues that are due, and returns when the next one is due.
    pub fn release(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        self.shaped.release(now, out);
        self.shaped.due()
    }

    /// Sends a copy of the frame to a destination.
    pub(super) fn send_copy(
        &mut self,
        to: Option<NextOutput>,
        frame: &Frame,
        way: &mut EgressContext,
    ) {
        match to {
            None => {}
            Some(NextOutput::Port(port, _)) if !self.defers && !self.is_shaped(port) => {
                let sent = way.out.send_copy(port, frame);
                self.account(port, sent);
            }
            Some(NextOutput::Controller(_)) if way.out.events_room() == 0 => {
                self.packet_in_lost(way)
            }
            Some(to) => {
                let mut copy = self.copy_of(frame);
                self.send(to, &mut copy, way);
                self.give_back(copy);
            }
        }
    }

    /// Sends the frame itself to a destination.
    pub(super) fn send(&mut self, to: NextOutput, frame: &mut Frame, way: &mut EgressContext) {
        match to {
            NextOutput::Port(port, queue) => self.deliver(port, queue, frame, way),
            NextOutput::Controller(bytes_max) => {
                let why = way.context.why;
                self.packet_in(frame, Some(bytes_max), why, way);
            }
            NextOutput::Group(number) => self.run_group(number, frame, way),
        }
    }

    /// Sends the frame to the control plane, if the controller's meter passes it.
    pub(super) fn packet_in(
        &mut self,
        frame: &mut Frame,
        bytes_max: Option<u16>,
        why: PacketInReason,
        way: &mut EgressContext,
    ) {
        let unasked = why == PacketInReason::NoMatch && self.settings(way.in_port).no_packet_in;
        if unasked {
            return self.drops.add(DropReason::NoMatch);
        }
        if !self.meter(CONTROLLER, frame, way.now) {
            return;
        }
        if way.out.events_room() == 0 {
            return self.packet_in_lost(way);
        }
        let frame = std::mem::take(frame);
        let context = Context { why, ..way.context };
        way.out.event(Event::PacketIn { port: way.in_port, bytes_max, context, frame });
    }

    fn packet_in_lost(&mut self, way: &mut EgressContext) {
        way.out.events_lost += 1;
        self.drops.add(DropReason::EventQueueFull);
    }

    pub(super) fn copy_of(&mut self, frame: &Frame) -> Frame {
        let mut copy = self.spares.pop().unwrap_or_default();
        copy.copy_from(frame);
        copy
    }

    pub(super) fn give_back(&mut self, spare: Frame) {
        if self.spares.len() < SPARES_MAX {
            self.spares.push(spare);
        }
    }

    pub(super) fn count_queue(&mut self, port: PortNo, queue: QueueNo, bytes: usize) {
        if self.shaped.contains(port, queue) {
            return;
        }
        let name = (port, queue);
        if let Some((_, traffic)) = self.queues.iter_mut().find(|(other, _)| *other == name) {
            traffic.add(bytes);
        } else if self.queues.len() < QUEUES_COUNTED_MAX {
            self.queues.push((name, Traffic { frames: 1, bytes: bytes as u64 }));
        }
    }

    pub(super) fn is_shaped(&self, port: PortNo) -> bool {
        self.gates.get(port as usize).is_some_and(|gate| gate.shaped)
    }

    #[inline]
    fn account(&mut self, port: PortNo, sent: Sent) {
        match sent {
            Sent::Queued => {}
            Sent::QueueFull => self.drops.add(DropReason::OutputQueueFull),
            Sent::NoSuchPort if port == LOCAL => self.drops.add(DropReason::NoLocalPort),
            Sent::NoSuchPort => self.drops.add(DropReason::NoSuchPort),
        }
    }
}
