//! A port whose frames the kernel generates, without any socket. On request it receives, too.
//!
//! - Frames to send and received frames are in memory shared with a program. The program runs on
//!   frames that the kernel generates, and redirects them to the interface (Linux
//!   `include/uapi/linux/bpf.h`, `BPF_PROG_TEST_RUN` with live frames, since Linux 5.18).
//! - The program is also attached to the interface. It takes all frames that arrive, so that the
//!   network stack sees none, if the port receives. Otherwise it passes them.
//! - The port can [send ahead](Port::send_ahead): a frame is handed over before its time. The
//!   program sends it on time, and writes this time into the frame.
//! - The kernel runs an attached program immediately. Before it runs any other program, it
//!   synchronizes all cores.
//! - An interface accepts such frames if its driver supports this. A veth does while its peer polls
//!   (with an XDP program, or generic receive offload there).
//! - Frames that find no room at the peer are lost, and are counted only there.
//! - To receive, the interface must have one receive queue: the program then runs for one received
//!   frame at a time.

mod engine;
mod memory;
mod program;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use ebpf::{Assembly, Attachment, Program, Register, SharedMemory, XdpMode};
use os::sys;
use packet::batch_copy::Copies;
use packet::frame::Batch;
use packet::time::{Clock, Nanos, Stamp};

use crate::departure::{Gap, Outcome, SendReport, SendSchedule};
use crate::interface;
use crate::link::Link;
use crate::port::{Port, PortCounters, PortDrop, PortError, PortFacts};
use engine::Slot;
use memory::{
    HEADER_BYTES, RECEIVE_RING_BYTES, RECEIVED_BYTES_MAX, RESULTS, SEND_RING_BYTES,
    SEND_RING_DISTANCE, SENT_BYTES_MAX, TOO_LATE, arrivals, control, received, record_bytes, sent,
};

/// Interval of interface checks.
const CHECK_INTERVAL: Nanos = Nanos::from_millis(10);

/// How long before its time a frame can be handed over.
const AHEAD: Nanos = Nanos::from_micros(200);

/// The departure of a frame that leaves immediately.
const NOW: SendSchedule = SendSchedule {
    due: Nanos::ZERO,
    slack: Nanos::MAX,
    frames: 1,
    gap: Gap { whole: 0, rest: 0, parts: 0, carried: 0 },
    stamp: None,
};

/// Frames in one call, unless frames are sent ahead.
const CALL_FRAMES: usize = 256;

/// An interface that sends kernel-generated frames, and receives without the network stack.
pub struct LivePort {
    facts: PortFacts,
    program: Arc<Program>,
    slot: Slot,
    /// Memory for received frames, if the port receives.
    arrivals: Option<SharedMemory>,
    _attached: Attachment,
    counters: PortCounters,
    /// Position after the last frame to send.
    produced: u64,
    /// Position of the first record with a frame whose result is unknown.
    settled: u64,
    /// Number of frames whose results are known.
    done: u64,
    /// The records from there on, and the number of their frames without a result.
    pending: VecDeque<PendingRecord>,
    pending_frames: u64,
    /// Position of the next frame to receive.
    arrived: u64,
    departed: Vec<SendReport>,
    /// A socket for queries about the interface, because the kernel does not report what happens to
    /// the frames.
    asking: OwnedFd,
    index: i32,
    check_at: Nanos,
}

/// A record whose results are not all known.
#[derive(Debug)]
struct PendingRecord {
    due: Nanos,
    frames: u32,
    frame_bytes: usize,
}

impl LivePort {
    /// Opens an interface of the calling thread's network namespace; it must be up. The network
    /// stack gets no frames from it while the port `receives`.
    ///
    /// Requires CAP_BPF and CAP_NET_ADMIN there, to load programs.
    pub fn open(name: &str, receives: bool) -> Result<Self, PortError> {
        let interface = interface::look_up(name)?;
        if !interface.up {
            return Err(PortError::InterfaceDown(name.to_owned()));
        }
        let failed = |doing| move |error| interface::system(doing, name, error);
        let asking = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        let asking = asking.map_err(failed("read the settings of"))?;
        check_machine(asking.as_raw_fd(), name, receives)
            .map_err(|why| failed("send live frames on")(io::Error::other(why)))?;
        let slot = Slot::take(interface.index).map_err(failed("prepare to send live frames on"))?;
        let arrivals = receives.then(memory::create_arrivals).transpose();
        let arrivals = arrivals.map_err(failed("create a map for"))?;
        let text = program::text(program::MapDescriptors {
            control: slot.engine.memory.control.descriptor(),
            frames: slot.engine.memory.frames.descriptor(),
            results: slot.engine.memory.results.descriptor(),
            arrivals: arrivals.as_ref().map(SharedMemory::descriptor),
            interfaces: slot.engine.interfaces.descriptor(),
            interface: interface.index,
        });
        let program = Program::load(&text, c"Apache-2.0")
            .map_err(failed("load a program that sends live frames on"))?;
        let attached = program.attach(interface.index, XdpMode::Native);
        let attached = attached.map_err(failed("attach an XDP program to"))?;
        let facts = PortFacts {
            name: name.to_owned(),
            kind: "live",
            mac: interface.mac,
            frame_bytes_max: (interface.mtu + HEADER_BYTES).min(SENT_BYTES_MAX),
            stamps: Clock::XdpProgram,
        };
        // Frames of a port that had the slot before are not sent.
        let control = &slot.engine.memory.control;
        let produced = control.word(slot.word(control::CONSUMED));
        let done = control.word(slot.word(control::DONE));
        control.set_word(slot.word(control::PRODUCED), produced);
        Ok(LivePort {
            facts,
            program: Arc::new(program),
            slot,
            arrivals,
            _attached: attached,
            counters: PortCounters::default(),
            produced,
            settled: produced,
            done,
            pending: VecDeque::new(),
            pending_frames: 0,
            arrived: 0,
            departed: Vec::new(),
            asking,
            index: interface.index,
            check_at: Nanos::ZERO,
        })
    }

    /// Checks the interface, and the engine's thread, from time to time.
    fn check(&mut self, now: Nanos) -> Result<(), PortError> {
        if now < self.check_at {
            return Ok(());
        }
        interface::check(self.asking.as_raw_fd(), &self.facts.name, self.index)?;
        self.check_at = now.saturating_add(CHECK_INTERVAL);
        match self.slot.engine.take_error() {
            Some(error) => Err(interface::system("send live frames on", &self.facts.name, error)),
            None => Ok(()),
        }
    }

    /// Returns whether the frames can be sent; counts them otherwise.
    fn accepts(&mut self, bytes: &[u8], frames: u32) -> bool {
        let reason = match bytes.len() {
            length if length > self.facts.frame_bytes_max => PortDrop::TooLong,
            length if length < HEADER_BYTES => PortDrop::TransmitRefused,
            _ => return true,
        };
        self.counters.lose(reason, u64::from(frames));
        false
    }

    /// Writes a frame into the ring, if it has room. The program sees it after
    /// [`LivePort::publish`].
    #[inline]
    fn push(&mut self, bytes: &[u8], departure: &SendSchedule) -> bool {
        let record_bytes = record_bytes(sent::BYTES, bytes.len());
        let used = self.produced - self.settled + record_bytes;
        let pending_frames = self.pending_frames + u64::from(departure.frames);
        if used > SEND_RING_BYTES as u64 || pending_frames > RESULTS as u64 {
            return false;
        }
        let position = self.produced as usize % SEND_RING_BYTES;
        let at = self.slot.number * SEND_RING_DISTANCE + position;
        let frames = &self.slot.engine.memory.frames;
        frames.write(at, &memory::record_head(bytes.len(), departure));
        frames.write(at + sent::BYTES, bytes);
        self.produced += record_bytes;
        self.pending_frames = pending_frames;
        let SendSchedule { due, frames, .. } = *departure;
        self.pending.push_back(PendingRecord { due, frames, frame_bytes: bytes.len() });
        true
    }

    fn publish(&self) {
        let at = self.slot.word(control::PRODUCED);
        self.slot.engine.memory.control.set_word(at, self.produced);
    }

    /// Counts the frames that the program has sent or rejected.
    fn settle(&mut self) {
        let memory = &self.slot.engine.memory;
        let done = memory.control.word(self.slot.word(control::DONE));
        while self.done < done {
            let Some(first) = self.pending.front_mut() else { return };
            let place = self.slot.number * RESULTS + self.done as usize % RESULTS;
            let outcome = match memory.results.word(8 * place) {
                0 => {
                    self.counters.lose(PortDrop::TransmitRefused, 1);
                    Outcome::Rejected
                }
                TOO_LATE => Outcome::TooLate,
                at => {
                    self.counters.tx_frames += 1;
                    self.counters.tx_bytes += first.frame_bytes as u64;
                    Outcome::Left(Nanos(at))
                }
            };
            if first.due > Nanos::ZERO {
                self.departed.push(SendReport { due: first.due, outcome });
            }
            self.done += 1;
            self.pending_frames -= 1;
            first.frames -= 1;
            if first.frames == 0 {
                self.settled += record_bytes(sent::BYTES, first.frame_bytes);
                self.pending.pop_front();
            }
        }
    }

    /// Sends the first frames now, as many as one call takes. Returns how many are done.
    fn send<'a>(
        &mut self,
        frames: impl Iterator<Item = &'a [u8]>,
        now: Nanos,
    ) -> Result<usize, PortError> {
        self.check(now)?;
        self.settle();
        let (mut done, mut laid) = (0, 0);
        for bytes in frames.take(CALL_FRAMES) {
            if self.accepts(bytes, 1) {
                if !self.push(bytes, &NOW) {
                    break;
                }
                self.slot.engine.expect(bytes.len());
                laid += 1;
            }
            done += 1;
        }
        self.publish();
        if laid == 0 {
            return Ok(done);
        }
        if self.slot.engine.is_on() {
            self.slot.start(&self.program);
            return Ok(done);
        }
        let before = self.done;
        let result = self.slot.run(&self.program, laid);
        // A signal may have ended the call: the rest of these frames count as rejected.
        self.take_back();
        match result {
            Err(error) if self.done == before => {
                Err(interface::system("send live frames on", &self.facts.name, error))
            }
            _ => Ok(done),
        }
    }

    /// Takes back the frames that have not left, and counts them as rejected. Those that another
    /// port's thread may send stay.
    fn take_back(&mut self) {
        self.settle();
        if self.slot.engine.is_on() {
            return;
        }
        self.counters.lose(PortDrop::TransmitRefused, self.pending_frames);
        self.pending.clear();
        (self.pending_frames, self.settled) = (0, self.produced);
        let at = self.slot.word(control::CONSUMED);
        self.slot.engine.memory.control.set_word(at, self.produced);
    }

    /// Calls `take` with the received frames until it returns false. Returns how many it took.
    #[inline]
    fn take_arrived(&mut self, mut take: impl FnMut(&Arrival<'_>) -> bool) -> usize {
        let Some(memory) = &self.arrivals else { return 0 };
        let produced = memory.word(arrivals::PRODUCED);
        let (before, mut count) = (self.arrived, 0);
        while self.arrived < produced {
            let at = arrivals::RING + self.arrived as usize % RECEIVE_RING_BYTES;
            let length = memory.word(at + received::LENGTH) as u32 as usize;
            let length = length.min(RECEIVED_BYTES_MAX);
            let arrived = Nanos(memory.word(at + received::ARRIVED));
            let stamp = Stamp { at: arrived, clock: Clock::XdpProgram };
            if !take(&Arrival { memory, at, length, stamp }) {
                break;
            }
            self.arrived += record_bytes(received::BYTES, length);
            self.counters.rx_bytes += length as u64;
            count += 1;
        }
        if self.arrived != before {
            memory.set_word(arrivals::CONSUMED, self.arrived);
        }
        self.counters.rx_frames += count as u64;
        count
    }
}

/// A received frame in the ring.
struct Arrival<'a> {
    memory: &'a SharedMemory,
    at: usize,
    length: usize,
    stamp: Stamp,
}

impl Arrival<'_> {
    #[inline]
    fn copy(&self, into: &mut [u8]) {
        self.memory.read(self.at + received::BYTES, into);
    }
}

/// Returns why this machine or interface cannot have a live port, if so.
fn check_machine(socket: libc::c_int, name: &str, receives: bool) -> Result<(), String> {
    // On other processors, a program's stores need a barrier, which eBPF has only since Linux 6.15.
    if !cfg!(target_arch = "x86_64") {
        return Err("live ports require x86-64".into());
    }
    match interface::receive_queues(socket, name) {
        _ if !receives => Ok(()),
        1 => Ok(()),
        queues => Err(format!(
            "it has {queues} receive queues and live ports require one (hint: run 'ethtool -L \
             {name} combined 1')"
        )),
    }
}

/// Checks whether the kernel generates frames for programs; sends none.
pub fn probe() -> io::Result<()> {
    let mut text = Assembly::new();
    text.set(Register::R0, program::DROP);
    text.exit();
    let text = text.finish().expect("the program has no jumps");
    Program::load(&text, c"Apache-2.0")?.run_on_live_frames(&[0; 64], 1, 1)
}

impl Port for LivePort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn receive(&mut self, batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        Ok(self.take_arrived(|arrival| {
            let Some(frame) = batch.push_slot() else { return false };
            frame.resize(arrival.length);
            frame.stamp = Some(arrival.stamp);
            arrival.copy(frame.bytes_mut());
            true
        }))
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.send(batch.frames().iter().map(|frame| frame.bytes()), now)
    }

    fn receive_copies(&mut self, copies: &mut Copies, _now: Nanos) -> Result<usize, PortError> {
        copies.clear();
        Ok(self.take_arrived(|arrival| {
            let copy = copies.push(arrival.length, Some(arrival.stamp));
            copy.map(|bytes| arrival.copy(bytes)).is_some()
        }))
    }

    fn transmit_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        self.send(copies.frames(), now)
    }

    fn send_ahead(&mut self, is_on: bool) -> Nanos {
        if is_on {
            self.slot.start(&self.program);
            return AHEAD;
        }
        self.slot.stop();
        self.take_back();
        Nanos::ZERO
    }

    fn transmit_at(
        &mut self,
        copies: &mut Copies,
        departures: &[SendSchedule],
        now: Nanos,
    ) -> Result<usize, PortError> {
        self.check(now)?;
        self.settle();
        let mut done = 0;
        for (bytes, departure) in copies.frames().zip(departures) {
            if !self.accepts(bytes, departure.frames) {
                done += 1;
                continue;
            }
            if !self.push(bytes, departure) {
                break;
            }
            self.slot.engine.expect(bytes.len());
            done += 1;
        }
        self.publish();
        Ok(done)
    }

    fn take_departed(&mut self, departed: &mut Vec<SendReport>) {
        self.settle();
        departed.append(&mut self.departed);
    }

    fn counters(&mut self) -> PortCounters {
        self.settle();
        let mut counters = self.counters.clone();
        if let Some(memory) = &self.arrivals {
            counters.lose(PortDrop::ReceiveRingFull, memory.word(arrivals::LOST));
            counters.lose(PortDrop::ReceiveTooLong, memory.word(arrivals::TOO_LONG));
        }
        counters
    }

    fn has_link(&self) -> bool {
        interface::has_link(self.asking.as_raw_fd(), &self.facts.name)
    }

    fn link(&self) -> Link {
        interface::link(self.asking.as_raw_fd(), &self.facts.name)
    }
}

#[cfg(test)]
mod tests;
