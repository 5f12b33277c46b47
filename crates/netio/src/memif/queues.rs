//! The queues of one thread: all queues of a port, or some of them ([`PortPart`]). Copies frames
//! between queues and batches, or gives access to them in place.

use std::cell::Cell;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use packet::batch_copy::Copies;
use packet::frame::Batch;
use packet::time::{Clock, Nanos, Stamp};

use super::queue::{Receiver, Transmitter};
use crate::in_place::View;
use crate::in_place::Views;
use crate::port::{FrameParts, InPlace, Port, PortCounters, PortDrop, PortError, PortFacts};

/// Queues that are used together.
pub(super) struct Queues {
    pub(super) receivers: Vec<Receiver>,
    pub(super) transmitters: Vec<Transmitter>,
    /// The receiver to use next.
    first: usize,
    /// Whether the queues are armed to signal frames.
    armed: Cell<bool>,
}

impl Queues {
    /// Creates a set with at least one of each.
    pub(super) fn new(receivers: Vec<Receiver>, transmitters: Vec<Transmitter>) -> Self {
        Queues { receivers, transmitters, first: 0, armed: Cell::new(false) }
    }

    /// Splits the queues into at most `parts` sets with at least one of each; keeps the first and
    /// returns the others.
    pub(super) fn split_queues(&mut self, parts: usize) -> Vec<Queues> {
        let parts = parts.min(self.receivers.len()).min(self.transmitters.len()).max(1);
        let mut sets: Vec<Queues> =
            (0..parts).map(|_| Queues::new(Vec::new(), Vec::new())).collect();
        for (place, receiver) in self.receivers.drain(..).enumerate() {
            sets[place % parts].receivers.push(receiver);
        }
        for (place, transmitter) in self.transmitters.drain(..).enumerate() {
            sets[place % parts].transmitters.push(transmitter);
        }
        *self = sets.remove(0);
        sets
    }

    /// Arms all queues to signal frames.
    pub(super) fn arm(&self) {
        self.armed.set(true);
        for receiver in &self.receivers {
            if !receiver.arm() {
                receiver.wake();
            }
        }
    }

    /// Disarms the queues. Returns whether they were armed.
    #[inline]
    pub(super) fn disarm(&self) -> bool {
        let was_armed = self.armed.replace(false);
        if was_armed {
            self.receivers.iter().for_each(Receiver::disarm);
        }
        was_armed
    }

    /// Passes at most `limit` frames from the queues in turn to `see`, and releases them.
    #[inline]
    fn take(&mut self, limit: usize, mut see: impl FnMut(View<'_>)) -> usize {
        let mut taken = 0;
        for turn in 0..self.receivers.len() {
            let place = (self.first + turn) % self.receivers.len();
            let receiver = &mut self.receivers[place];
            loop {
                let views = receiver.peek(limit - taken);
                let count = views.len();
                if count == 0 {
                    break;
                }
                views.iter().for_each(&mut see);
                receiver.release(count);
                taken += count;
            }
        }
        self.first = (self.first + 1) % self.receivers.len();
        taken
    }

    pub(super) fn receive(&mut self, batch: &mut Batch, now: Nanos) -> usize {
        let room = batch.room();
        let stamp = Some(Stamp { at: now, clock: Clock::UserSpace });
        self.take(room, |view| {
            let frame = batch.push_slot().expect("frames are limited to the room");
            frame.resize(view.len());
            view.copy_to(frame.bytes_mut());
            frame.stamp = stamp;
        })
    }

    pub(super) fn receive_copies(&mut self, copies: &mut Copies, now: Nanos) -> usize {
        copies.clear();
        let stamp = Some(Stamp { at: now, clock: Clock::UserSpace });
        self.take(copies.capacity(), |view| {
            let copy = copies.push(view.len(), stamp);
            view.copy_to(copy.expect("frames are limited to the room"));
        })
    }

    /// Sends through the first queue, which preserves the order of frames. Without a peer there is
    /// no room.
    #[inline]
    pub(super) fn send<'a>(&mut self, frames: impl Iterator<Item = View<'a>>) -> usize {
        self.transmitters[0].send(frames)
    }

    pub(super) fn counters(&self) -> PortCounters {
        let mut counters = PortCounters::default();
        for queue in self.receivers.iter().map(Receiver::counters) {
            counters.rx_frames += queue.frames;
            counters.rx_bytes += queue.bytes;
            counters.lose(PortDrop::ReceiveTooLong, queue.too_long);
            counters.lose(PortDrop::PeerBroken, queue.broken);
        }
        for queue in self.transmitters.iter().map(Transmitter::counters) {
            counters.tx_frames += queue.frames;
            counters.tx_bytes += queue.bytes;
            counters.lose(PortDrop::TooLong, queue.too_long);
        }
        counters
    }

    /// Only frames of one queue are visible at the same time; queues take turns.
    #[inline]
    pub(super) fn look(&mut self, limit: usize) -> usize {
        let shown = self.shown().len();
        if shown > 0 {
            return shown;
        }
        for _ in 0..self.receivers.len() {
            self.first = (self.first + 1) % self.receivers.len();
            let shown = self.receivers[self.first].peek(limit).len();
            if shown > 0 {
                return shown;
            }
        }
        0
    }

    #[inline]
    pub(super) fn shown(&self) -> Views<'_> {
        self.receivers[self.first].shown()
    }

    #[inline]
    pub(super) fn release(&mut self, count: usize) {
        self.receivers[self.first].release(count);
    }

    #[inline]
    pub(super) fn put(&mut self, frames: &[FrameParts<'_>]) -> usize {
        self.transmitters[0].put_all(frames.iter().copied())
    }

    #[inline]
    pub(super) fn flush(&mut self) {
        self.transmitters[0].flush();
    }
}

/// Some queues of a port, for one thread. The port handles the control messages.
pub struct PortPart {
    facts: PortFacts,
    queues: Queues,
    /// Becomes readable when one of the queues was armed and has frames.
    events: Arc<OwnedFd>,
}

impl PortPart {
    pub(super) fn new(facts: PortFacts, queues: Queues, events: Arc<OwnedFd>) -> Self {
        PortPart { facts, queues, events }
    }
}

impl Port for PortPart {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.queues.disarm();
        Ok(self.queues.receive(batch, now))
    }

    fn transmit(&mut self, batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        Ok(self.queues.send(batch.frames().iter().map(|frame| View::of(frame.bytes()))))
    }

    fn receive_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        self.queues.disarm();
        Ok(self.queues.receive_copies(copies, now))
    }

    fn transmit_copies(&mut self, copies: &mut Copies, _now: Nanos) -> Result<usize, PortError> {
        Ok(self.queues.send(copies.frames().map(View::of)))
    }

    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        Some(self)
    }

    fn counters(&mut self) -> PortCounters {
        self.queues.counters()
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.queues.arm();
        Some(self.events.as_raw_fd())
    }
}

impl InPlace for PortPart {
    fn look(&mut self, limit: usize, _now: Nanos) -> usize {
        self.queues.disarm();
        self.queues.look(limit)
    }

    fn shown(&self) -> Views<'_> {
        self.queues.shown()
    }

    fn release(&mut self, count: usize) {
        self.queues.release(count);
    }

    fn put(&mut self, frames: &[FrameParts<'_>]) -> usize {
        self.queues.put(frames)
    }

    fn flush(&mut self) {
        self.queues.flush();
    }
}
