//! A memif port as every port is: frames copied into a batch, and out of one. Its queues can be
//! used in place instead, together ([`MemifPort::split`]) or each in a thread of its own
//! ([`MemifPort::into_parts`]).

use std::cell::Cell;
use std::os::fd::RawFd;

use packet::copies::Copies;
use packet::frame::Batch;
use packet::time::{Clock, Nanos, Stamp};

use super::control::Control;
use super::fault::Faults;
use super::queue::{Receiver, Transmitter};
use super::receive::Views;
use super::ring::Side;
use super::socket::Address;
use super::spec::Spec;
use super::view::View;
use crate::port::{InPlace, Parts, Port, PortCounters, PortDrop, PortError, PortFacts};

/// The peer is listened to this often while frames are asked for.
const CONTROL_INTERVAL: Nanos = Nanos::from_millis(1);

/// A port to another process by shared memory.
pub struct MemifPort {
    facts: PortFacts,
    control: Control,
    receivers: Vec<Receiver>,
    transmitters: Vec<Transmitter>,
    control_due: Nanos,
    first: usize,
    /// Whether queues were told that nobody looks at them.
    armed: Cell<bool>,
}

impl MemifPort {
    /// Opens a port. A server listens from now on; a client calls its server until it is there.
    pub fn open(spec: &Spec) -> Result<Self, PortError> {
        let name = match &spec.address {
            Address::Path(path) => path.display().to_string(),
            Address::Abstract(name) => format!("@{name}"),
        };
        let name = format!("{name}#{}", spec.id);
        let opened = Control::open(spec, &name);
        let (control, receivers, transmitters) = opened.map_err(|error| PortError::System {
            doing: match spec.side {
                Side::Server => "listening on",
                Side::Client => "preparing to call",
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
        Ok(MemifPort {
            facts,
            control,
            receivers,
            transmitters,
            control_due: Nanos::ZERO,
            first: 0,
            armed: Cell::new(false),
        })
    }

    /// Listens to the peer, or for one. Whoever only uses the queues in place calls this now and
    /// then; who receives by [`Port::receive`] need not.
    pub fn turn(&mut self, now: Nanos) {
        self.control_due = now.saturating_add(CONTROL_INTERVAL);
        self.control.turn(now);
    }

    /// The queues, receiving and sending ones, so that what one shows can be put into another.
    pub fn split(&mut self) -> (&mut [Receiver], &mut [Transmitter]) {
        (&mut self.receivers, &mut self.transmitters)
    }

    /// The port in parts, for use in several threads.
    pub fn into_parts(self) -> (Control, Vec<Receiver>, Vec<Transmitter>) {
        (self.control, self.receivers, self.transmitters)
    }

    /// Somebody asks for frames.
    #[inline]
    fn attend(&mut self, now: Nanos) {
        if self.armed.replace(false) {
            self.receivers.iter().for_each(Receiver::disarm);
            self.control_due = now;
        }
        if now >= self.control_due {
            self.turn(now);
        }
    }

    /// Hands at most `limit` frames from the queues in turn to `see`, and gives them back.
    #[inline]
    fn take(&mut self, limit: usize, now: Nanos, mut see: impl FnMut(View<'_>)) -> usize {
        self.attend(now);
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

    /// What peers did wrong so far.
    pub fn faults(&self) -> &Faults {
        self.control.faults()
    }

    /// Why the last peer left, in its own words, if it said.
    pub fn last_words(&self) -> Option<&str> {
        self.control.last_words()
    }
}

impl Port for MemifPort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    /// Takes from the queues in turn. Without a peer there is nothing to receive, and no error.
    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        let room = batch.room();
        let stamp = Some(Stamp { at: now, clock: Clock::UserSpace });
        Ok(self.take(room, now, |view| {
            let frame = batch.push_slot().expect("no more are shown than there is room for");
            frame.resize(view.len());
            view.copy_to(frame.bytes_mut());
            frame.stamp = stamp;
        }))
    }

    /// Sends through the first queue, so that frames keep their order. Without a peer there is no
    /// room.
    fn transmit(&mut self, batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        let frames = batch.frames().iter();
        Ok(self.transmitters[0].send(frames.map(|frame| View::of(frame.bytes()))))
    }

    fn receive_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        copies.clear();
        let stamp = Some(Stamp { at: now, clock: Clock::UserSpace });
        Ok(self.take(copies.capacity(), now, |view| {
            let copy = copies.push(view.len(), stamp);
            view.copy_to(copy.expect("no more are shown than there is room for"));
        }))
    }

    fn transmit_copies(&mut self, copies: &mut Copies, _now: Nanos) -> Result<usize, PortError> {
        Ok(self.transmitters[0].send(copies.frames().map(View::of)))
    }

    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        Some(self)
    }

    fn counters(&mut self) -> PortCounters {
        let mut counters = PortCounters::default();
        for queue in self.receivers.iter().map(Receiver::counters) {
            counters.rx_frames += queue.frames;
            counters.rx_bytes += queue.bytes;
            counters.lose(PortDrop::TooLong, queue.too_long);
            counters.lose(PortDrop::PeerBroken, queue.broken);
        }
        for queue in self.transmitters.iter().map(Transmitter::counters) {
            counters.tx_frames += queue.frames;
            counters.tx_bytes += queue.bytes;
            counters.lose(PortDrop::TooLong, queue.too_long);
        }
        counters.peer_faults = self.control.faults().total();
        counters
    }

    fn has_link(&self) -> bool {
        self.control.is_connected()
    }

    /// Asking for it means that nobody looks until it can be read or the next frames are asked
    /// for: peers ring only in between.
    fn descriptor(&self) -> Option<RawFd> {
        self.armed.set(true);
        for receiver in &self.receivers {
            if !receiver.arm() {
                receiver.wake();
            }
        }
        Some(self.control.descriptor())
    }

    fn next_event(&self) -> Option<Nanos> {
        self.control.due()
    }
}

impl InPlace for MemifPort {
    /// Frames of one queue at a time are shown, of the queues in turn.
    fn look(&mut self, limit: usize, now: Nanos) -> usize {
        let shown = self.receivers[self.first].shown().len();
        if shown > 0 {
            return shown;
        }
        self.attend(now);
        for _ in 0..self.receivers.len() {
            self.first = (self.first + 1) % self.receivers.len();
            let shown = self.receivers[self.first].peek(limit).len();
            if shown > 0 {
                return shown;
            }
        }
        0
    }

    fn shown(&self) -> Views<'_> {
        self.receivers[self.first].shown()
    }

    fn release(&mut self, count: usize) {
        self.receivers[self.first].release(count);
    }

    fn put(&mut self, frames: &[Parts<'_>]) -> usize {
        self.transmitters[0].put_all(frames.iter().copied())
    }

    fn flush(&mut self) {
        self.transmitters[0].flush();
    }
}
