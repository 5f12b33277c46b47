//! The memif port. Its queues can also be used in place, together ([`MemifPort::split`]) or each in
//! its own thread ([`MemifPort::into_parts`]).

use std::os::fd::RawFd;

use packet::batch_copy::Copies;
use packet::frame::Batch;
use packet::time::{Clock, Nanos};

use super::control::Control;
use super::fault::Faults;
use super::queue::{Receiver, Transmitter};
use super::queues::{PortPart, Queues};
use super::ring::Side;
use super::socket::Address;
use super::spec::Spec;
use crate::in_place::View;
use crate::in_place::Views;
use crate::port::{FrameParts, InPlace, Port, PortCounters, PortError, PortFacts};

/// Interval of control turns while the port is polled.
const CONTROL_INTERVAL: Nanos = Nanos::from_millis(1);

/// A shared-memory port to another process.
pub struct MemifPort {
    facts: PortFacts,
    control: Control,
    queues: Queues,
    control_due: Nanos,
}

impl MemifPort {
    /// Opens a port. A server starts to listen; a client connects, and retries until its server
    /// listens.
    pub fn open(spec: &Spec) -> Result<Self, PortError> {
        let name = match &spec.address {
            Address::Path(path) => path.display().to_string(),
            Address::Abstract(name) => format!("@{name}"),
        };
        let name = format!("{name}#{}", spec.id);
        let opened = Control::open(spec, &name);
        let (control, receivers, transmitters) = opened.map_err(|error| PortError::System {
            doing: match spec.side {
                Side::Server => "listen on",
                Side::Client => "prepare a connection to",
            },
            what: name.clone(),
            error,
        })?;
        let frame_bytes_max = spec.frame_bytes_max();
        let facts = PortFacts {
            name,
            kind: "memif",
            mac: [0; 6],
            frame_bytes_max,
            stamps: Clock::UserSpace,
        };
        let queues = Queues::new(receivers, transmitters);
        Ok(MemifPort { facts, control, queues, control_due: Nanos::ZERO })
    }

    /// Runs a control turn. Call this regularly if the queues are only used in place;
    /// [`Port::receive`] calls it too.
    pub fn turn(&mut self, now: Nanos) {
        self.control_due = now.saturating_add(CONTROL_INTERVAL);
        self.control.turn(now);
    }

    /// Returns the receiving and sending queues, so that frames of one can be put into another.
    pub fn split(&mut self) -> (&mut [Receiver], &mut [Transmitter]) {
        (&mut self.queues.receivers, &mut self.queues.transmitters)
    }

    /// Disarms the queues and runs a control turn if one is due, because the caller polls.
    #[inline]
    fn attend(&mut self, now: Nanos) {
        if self.queues.disarm() {
            self.control_due = now;
        }
        if now >= self.control_due {
            self.turn(now);
        }
    }

    /// Returns the counts of the peers' faults.
    pub fn faults(&self) -> &Faults {
        self.control.faults()
    }

    /// Returns the reason that the last peer gave for leaving, if any.
    pub fn last_words(&self) -> Option<&str> {
        self.control.last_words()
    }
}

impl Port for MemifPort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    /// Receives from the queues in turn. Without a peer there are no frames, and no error.
    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.attend(now);
        Ok(self.queues.receive(batch, now))
    }

    /// Sends through the first queue, which preserves the order of frames. Without a peer there is
    /// no room.
    fn transmit(&mut self, batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        Ok(self.queues.send(batch.frames().iter().map(|frame| View::of(frame.bytes()))))
    }

    fn receive_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        self.attend(now);
        Ok(self.queues.receive_copies(copies, now))
    }

    fn transmit_copies(&mut self, copies: &mut Copies, _now: Nanos) -> Result<usize, PortError> {
        Ok(self.queues.send(copies.frames().map(View::of)))
    }

    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        Some(self)
    }

    /// Returns at most as many parts as there are queues of both kinds; no split if the system has
    /// no descriptors.
    fn split_queues(&mut self, parts: usize) -> Vec<Box<dyn Port>> {
        let (receivers, transmitters) = (&self.queues.receivers, &self.queues.transmitters);
        let parts = parts.min(receivers.len()).min(transmitters.len());
        let Ok(events) = self.control.split_queues(parts) else { return Vec::new() };
        let part = |(queues, events)| PortPart::new(self.facts.clone(), queues, events);
        let parts = self.queues.split_queues(parts).into_iter().zip(events).map(part);
        parts.map(|part| Box::new(part) as Box<dyn Port>).collect()
    }

    fn counters(&mut self) -> PortCounters {
        PortCounters { peer_faults: self.control.faults().total(), ..self.queues.counters() }
    }

    fn has_link(&self) -> bool {
        self.control.is_connected()
    }

    /// Also arms the queues, until the next frames are received: peers signal only in between.
    fn descriptor(&self) -> Option<RawFd> {
        self.queues.arm();
        Some(self.control.descriptor())
    }

    fn next_event(&self) -> Option<Nanos> {
        self.control.due()
    }
}

impl InPlace for MemifPort {
    fn look(&mut self, limit: usize, now: Nanos) -> usize {
        self.attend(now);
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
