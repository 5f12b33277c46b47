//! The vhost-user port: copies frames between rings and batches, or gives access to them in place.

use std::cell::Cell;
use std::os::fd::RawFd;

use packet::batch_copy::Copies;
use packet::frame::{Batch, FRAME_BYTES_MAX};
use packet::time::{Clock, Nanos, Stamp};

use super::control::{Control, RingChange};
use super::receive::ReceiveEnd;
use super::spec::{Role, Spec};
use super::transmit::TransmitEnd;
use crate::in_place::View;
use crate::in_place::Views;
use crate::memif::fault::{Fault, Faults};
use crate::memif::socket::Address;
use crate::memif::transmit::{PutError, Refusal};
use crate::port::{FrameParts, InPlace, Port, PortCounters, PortDrop, PortError, PortFacts};

/// Interval of control turns while the port is polled.
const CONTROL_INTERVAL: Nanos = Nanos::from_millis(1);

/// A port to a virtual machine's driver.
pub struct VhostPort {
    facts: PortFacts,
    control: Control,
    /// By queue pair; `None` for queues that the driver does not use.
    receivers: Vec<Option<ReceiveEnd>>,
    transmitters: Vec<Option<TransmitEnd>>,
    control_due: Nanos,
    /// The receiver to use next.
    current: usize,
    /// A fault found while frames were put.
    broken: Option<Fault>,
    counters: PortCounters,
    /// Whether the driver must kick, because the port is not polled.
    armed: Cell<bool>,
}

impl VhostPort {
    /// Opens a port. A server starts to listen; a client connects, and retries until a server
    /// listens.
    pub fn open(spec: &Spec) -> Result<Self, PortError> {
        let name = match &spec.address {
            Address::Path(path) => path.display().to_string(),
            Address::Abstract(name) => format!("@{name}"),
        };
        let control = Control::open(spec).map_err(|error| PortError::System {
            doing: match spec.role {
                Role::Server => "listen on",
                Role::Client => "prepare a connection to",
            },
            what: name.clone(),
            error,
        })?;
        let facts = PortFacts {
            name,
            kind: "vhost",
            mac: [0; 6],
            frame_bytes_max: FRAME_BYTES_MAX,
            stamps: Clock::UserSpace,
        };
        Ok(VhostPort {
            facts,
            control,
            receivers: Vec::new(),
            transmitters: Vec::new(),
            control_due: Nanos::ZERO,
            current: 0,
            broken: None,
            counters: PortCounters::default(),
            armed: Cell::new(false),
        })
    }

    /// Runs a control turn. Callers that receive frames need not call this.
    pub fn turn(&mut self, now: Nanos) {
        self.control_due = now.saturating_add(CONTROL_INTERVAL);
        let (receivers, transmitters) = (&self.receivers, &self.transmitters);
        let next = |number: usize| match number % 2 {
            0 => Some(transmitters.get(number / 2)?.as_ref()?.ring().next()),
            _ => Some(receivers.get(number / 2)?.as_ref()?.ring().next()),
        };
        let change = self.control.turn(now, next);
        self.hear(change);
    }

    /// Returns the counts of the peers' faults.
    pub fn faults(&self) -> &Faults {
        self.control.faults()
    }

    /// Returns how many queues the driver uses now: those to receive from, and those to send into.
    pub fn queues(&self) -> [usize; 2] {
        let count = |ends: &mut dyn Iterator<Item = bool>| ends.filter(|is_used| *is_used).count();
        [
            count(&mut self.receivers.iter().map(Option::is_some)),
            count(&mut self.transmitters.iter().map(Option::is_some)),
        ]
    }

    fn hear(&mut self, change: RingChange) {
        let RingChange::Rings(rings, shape) = change else { return };
        // Dropped before the new ones are created: the old memory need not outlive its connection.
        self.receivers.clear();
        self.transmitters.clear();
        self.current = 0;
        for (number, ring) in rings.into_iter().enumerate() {
            if number.is_multiple_of(2) {
                let end = |ring| TransmitEnd::new(ring, shape.header_bytes, shape.merges);
                self.transmitters.push(ring.map(end));
            } else {
                self.receivers.push(ring.map(|ring| ReceiveEnd::new(ring, shape.header_bytes)));
            }
        }
        // The new rings must also wake a thread that already waits.
        if self.armed.get() {
            self.arm();
        }
    }

    #[cold]
    fn part(&mut self, fault: Fault, now: Nanos) {
        let change = self.control.part(Some(fault), now);
        self.hear(change);
    }

    /// Enables kicks on every ring. If a frame already waits, signals the kick immediately.
    fn arm(&self) {
        for ring in self.receivers.iter().flatten().map(ReceiveEnd::ring) {
            if !ring.arm()
                && let Some(kick) = ring.kick()
            {
                kick.ring();
            }
        }
    }

    /// Disables kicks and runs a control turn if one is due, because the caller polls.
    #[inline]
    fn attend(&mut self, now: Nanos) {
        if self.armed.replace(false) {
            self.receivers.iter().flatten().for_each(|end| end.ring().disarm());
            self.control_due = now;
        }
        if now >= self.control_due {
            self.turn(now);
        }
    }

    /// Looks for at most `limit` frames in one queue, trying the queues in turn. Returns how many
    /// are visible.
    #[inline]
    fn find(&mut self, limit: usize, now: Nanos) -> usize {
        for _ in 0..self.receivers.len() {
            if let Some(end) = &mut self.receivers[self.current] {
                let looked = end.look(limit);
                self.counters.lose(PortDrop::ReceiveTooLong, end.take_too_long());
                if let Err(fault) = looked {
                    // After a truncation, the read data may be anything.
                    let is_broken = end.ring().memory().is_broken();
                    let fault = if is_broken { Fault::RegionShrunk } else { fault };
                    self.counters.lose(PortDrop::PeerBroken, 1);
                    self.part(fault, now);
                    return 0;
                }
                let count = end.views().len();
                if count > 0 {
                    return count;
                }
            }
            self.current = (self.current + 1) % self.receivers.len();
        }
        0
    }

    /// Passes at most `limit` frames from the queues in turn to `see`, and releases them.
    #[inline]
    fn take(&mut self, limit: usize, now: Nanos, mut see: impl FnMut(View<'_>)) -> usize {
        self.attend(now);
        let mut taken = 0;
        while taken < limit {
            let count = self.find(limit - taken, now).min(limit - taken);
            if count == 0 {
                break;
            }
            self.shown().iter().take(count).for_each(&mut see);
            self.release(count);
            taken += count;
        }
        taken
    }

    /// Puts frames until one finds no room. Returns how many are done, including frames too long to
    /// send.
    ///
    /// All frames go through the first queue in use, which preserves their order.
    #[inline]
    fn put_all<'a>(&mut self, frames: impl Iterator<Item = FrameParts<'a>>) -> usize {
        let Some(end) = self.transmitters.iter_mut().flatten().next() else { return 0 };
        let mut done = 0;
        for (first, second) in frames {
            match end.put(first, second) {
                Ok(()) => {
                    self.counters.tx_frames += 1;
                    self.counters.tx_bytes += (first.len() + second.len()) as u64;
                }
                Err(PutError::Refused(Refusal::TooLong)) => {
                    self.counters.lose(PortDrop::TooLong, 1);
                }
                Err(PutError::Refused(_)) => break,
                Err(PutError::Broken(fault)) => {
                    self.broken = Some(fault);
                    break;
                }
            }
            done += 1;
        }
        done
    }

    /// Makes the put frames visible to the driver, and disconnects it after a fault.
    #[inline]
    fn show(&mut self) {
        let Some(end) = self.transmitters.iter_mut().flatten().next() else { return };
        let flushed = end.flush();
        if let Some(fault) = flushed.err().or(self.broken.take()) {
            // There is no time argument; the time of the next turn is close enough.
            self.part(fault, self.control_due);
        }
    }

    fn send<'a>(&mut self, frames: impl Iterator<Item = View<'a>>) -> usize {
        let done = self.put_all(frames.map(|frame| (frame, View::of(&[]))));
        self.show();
        done
    }
}

impl Port for VhostPort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    /// Receives from the queues in turn. Without a peer there are no frames, and no error.
    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        let stamp = Some(Stamp { at: now, clock: Clock::UserSpace });
        Ok(self.take(batch.room(), now, |view| {
            let frame = batch.push_slot().expect("frames are limited to the room");
            frame.resize(view.len());
            view.copy_to(frame.bytes_mut());
            frame.stamp = stamp;
        }))
    }

    /// Sends through the first queue. Without a peer there is no room.
    fn transmit(&mut self, batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        Ok(self.send(batch.frames().iter().map(|frame| View::of(frame.bytes()))))
    }

    fn receive_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        copies.clear();
        let stamp = Some(Stamp { at: now, clock: Clock::UserSpace });
        Ok(self.take(copies.capacity(), now, |view| {
            let copy = copies.push(view.len(), stamp);
            view.copy_to(copy.expect("frames are limited to the room"));
        }))
    }

    fn transmit_copies(&mut self, copies: &mut Copies, _now: Nanos) -> Result<usize, PortError> {
        Ok(self.send(copies.frames().map(View::of)))
    }

    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        Some(self)
    }

    fn counters(&mut self) -> PortCounters {
        PortCounters { peer_faults: self.control.faults().total(), ..self.counters.clone() }
    }

    /// There is no link if the driver uses no ring.
    fn has_link(&self) -> bool {
        self.control.is_connected() && self.queues().iter().all(|&count| count > 0)
    }

    /// Also enables kicks, until the next frames are received.
    fn descriptor(&self) -> Option<RawFd> {
        self.armed.set(true);
        self.arm();
        Some(self.control.descriptor())
    }

    /// If a driver never kicks, its rings must be polled.
    fn next_event(&self) -> Option<Nanos> {
        let mut rings = self.receivers.iter().flatten().map(ReceiveEnd::ring);
        if rings.any(|ring| ring.kick().is_none()) { Some(Nanos::ZERO) } else { self.control.due() }
    }
}

impl InPlace for VhostPort {
    #[inline]
    fn look(&mut self, limit: usize, now: Nanos) -> usize {
        self.attend(now);
        let shown = self.shown().len();
        if shown > 0 { shown } else { self.find(limit, now) }
    }

    #[inline]
    fn shown(&self) -> Views<'_> {
        let end = self.receivers.get(self.current).and_then(Option::as_ref);
        end.map_or(Views::NONE, ReceiveEnd::views)
    }

    #[inline]
    fn release(&mut self, count: usize) {
        let Some(Some(end)) = self.receivers.get_mut(self.current) else { return };
        let mut released = 0;
        for frame in end.views().iter().take(count) {
            self.counters.rx_bytes += frame.len() as u64;
            released += 1;
        }
        self.counters.rx_frames += released;
        end.release(count);
        if end.views().is_empty() {
            self.current = (self.current + 1) % self.receivers.len();
        }
    }

    #[inline]
    fn put(&mut self, frames: &[FrameParts<'_>]) -> usize {
        self.put_all(frames.iter().copied())
    }

    #[inline]
    fn flush(&mut self) {
        self.show();
    }
}
