//! Forwarding loop: receives from the ports, passes frames to the forwarder, and transmits.
//!
//! The only policy of the loop is the order in which it serves ports (`Service`):
//! - Deficit round robin (M. Shreedhar and G. Varghese, "Efficient fair queuing using deficit round
//!   robin", SIGCOMM 1995), as the Linux kernel serves its interfaces.
//! - First come first served, by receive timestamps. The loop polls every drained port before each
//!   choice, so the order is exact among frames that had arrived by then. For a port without
//!   timestamps, the time of the poll counts.
//!
//! Frames wait in the ports' own receive rings. A port that overloads the loop therefore loses its
//! own frames there. The loop polls only a drained port for more frames. Frames that a port does
//! not accept immediately are dropped and counted, as in a switch with full transmit rings.
//!
//! Frames of shared-memory ports stay in place if the forwarder can decide by their first bytes
//! ([`in_place`]). They are then copied once, from ring to ring.
//!
//! Invariant: between two turns the loop holds only frames that wait in a port or in the
//! forwarder's shaped queues. Received frames therefore equal waiting frames plus decided frames,
//! and the forwarder accounts for the latter.

use dataplane::forwarder::{Forwarder, Outputs};
use netio::port::{Port, PortError};
use packet::frame::{Batch, FCS_BYTES, Frame, PortNo};
use packet::time::Nanos;

use crate::config::Service;
use crate::fast_path::FastPath;

mod in_place;

use in_place::Scratch;

/// Maximum number of frames that are received from one port in one call.
pub const BATCH_FRAMES: usize = 256;

/// Retry interval of a failed port.
pub const PORT_RETRY: Nanos = Nanos::from_millis(100);

/// Interval at which a port's link state is read.
pub const LINK_INTERVAL: Nanos = Nanos::from_millis(100);

/// A port and its number.
pub type NumberedPort = (PortNo, Box<dyn Port>);

/// Returns the MAC address of a port: its own, or a locally administered one derived from its
/// number.
pub fn mac_of(number: PortNo, port: &dyn Port) -> [u8; 6] {
    let [.., high, low] = number.to_be_bytes();
    let made = [0x02, 0, 0, 0, high, low];
    Some(port.facts().mac).filter(|mac| *mac != [0; 6]).unwrap_or(made)
}

/// Ports, the forwarder between them, and frames in transit.
pub struct ForwardLoop<F> {
    /// The ports, in the order in which they are served.
    pub forward_ports: Vec<ForwardPort>,
    /// The forwarder.
    pub forwarder: F,
    /// Output of the forwarder: empty between turns, except for what a control plane adds.
    pub outputs: Outputs,
    /// Numbers of busy and idle turns.
    pub turns: Turns,
    /// Numbers of turns of each forwarding thread, if there are any.
    pub turns_apart: Vec<Turns>,
    /// The fast path in the kernel, if there is one.
    pub fast_path: Option<FastPath>,
    /// When the forwarder's next tick is due. Code that changes the forwarder may set it earlier.
    pub due: Option<Nanos>,
    service: Service,
    work: Batch,
    scratch: Box<Scratch>,
}

/// One port, with received frames that are not decided yet.
pub struct ForwardPort {
    /// The port's number.
    pub number: PortNo,
    /// The port.
    pub port: Box<dyn Port>,
    /// Frames that were dropped because the port did not accept them, or was down.
    pub drops: PortDrops,
    /// Why the port does not work, if it has failed.
    pub fault: Option<PortError>,
    fault_retry_at: Nanos,
    has_link: bool,
    link_asked_at: Option<Nanos>,
    down_told: bool,
    waiting: Batch,
    waiting_since: Nanos,
    head: usize,
    /// Frames that are visible in place and not decided yet.
    shown: usize,
    /// Whether frames were put into the port that its peer cannot see yet.
    has_put: bool,
    deficit_bytes: usize,
}

/// Output frames that were dropped at a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortDrops {
    /// The port accepted no more frames.
    pub transmit_full: u64,
    /// The port was down or gone.
    pub port_down: u64,
}

/// Result of one turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turn {
    /// Frames that were decided.
    pub frames: usize,
    /// Frames that ports accepted for transmission.
    pub frames_sent: usize,
}

/// Numbers of turns with and without frames to decide or send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turns {
    /// Turns with at least one frame.
    pub busy: u64,
    /// Turns without frames.
    pub idle: u64,
    /// Time-stamp counter cycles of busy turns, if the loop's owner counts them.
    pub cycles_busy: u64,
    /// Cycles of idle turns, without waiting.
    pub cycles_idle: u64,
}

impl Turns {
    /// Adds the cycles of a turn.
    #[inline]
    pub fn record_cycles(&mut self, turn: Turn, cycles: u64) {
        match turn {
            Turn { frames: 0, frames_sent: 0 } => self.cycles_idle += cycles,
            _ => self.cycles_busy += cycles,
        }
    }
}

impl<F: Forwarder> ForwardLoop<F> {
    /// Creates a loop over these ports.
    pub fn new(ports: Vec<NumberedPort>, forwarder: F, service: Service) -> Self {
        let numbers: Vec<PortNo> = ports.iter().map(|(number, _)| *number).collect();
        ForwardLoop {
            forward_ports: ports
                .into_iter()
                .map(|(number, port)| ForwardPort::new(number, port))
                .collect(),
            forwarder,
            outputs: Outputs::new(&numbers),
            turns: Turns::default(),
            turns_apart: Vec::new(),
            fast_path: None,
            service,
            work: Batch::new(BATCH_FRAMES),
            scratch: Box::default(),
            due: Some(Nanos::ZERO),
        }
    }

    /// Performs due work, serves every port once and transmits the output.
    pub fn turn(&mut self, now: Nanos) -> Turn {
        let mut turn = Turn::default();
        // Frames that wait in the forwarder may be due earlier than its last tick returned.
        self.due = self.due.into_iter().chain(self.outputs.wake.take()).min();
        if self.due.is_some_and(|due| due <= now) {
            self.due = self.forwarder.tick(now, &mut self.outputs);
        }
        match self.service {
            Service::DeficitRoundRobin { quantum_bytes } => {
                for forward_port in 0..self.forward_ports.len() {
                    self.serve_quantum(forward_port, quantum_bytes, now, &mut turn);
                }
            }
            Service::FirstComeFirstServed => self.serve_oldest(now, &mut turn),
        }
        self.transmit_frames(now, &mut turn);
        match turn {
            Turn { frames: 0, frames_sent: 0 } => self.turns.idle += 1,
            _ => self.turns.busy += 1,
        }
        turn
    }

    /// Serves one port until its deficit is used up or it has no more frames.
    fn serve_quantum(&mut self, index: usize, quantum: usize, now: Nanos, turn: &mut Turn) {
        let forward_port = &mut self.forward_ports[index];
        forward_port.deficit_bytes = forward_port.deficit_bytes.saturating_add(quantum);
        if self.forwarder.decides() && self.serve_in_place(index, now, turn) {
            return;
        }
        let mut more = self.forward_ports[index].receive_frames(now);
        loop {
            let count = self.forward_ports[index].frames_within_deficit();
            if count > 0 {
                self.decide(index, count, now);
                self.transmit_frames(now, turn);
                turn.frames += count;
            }
            let forward_port = &mut self.forward_ports[index];
            if !forward_port.is_empty() {
                return;
            }
            if !more {
                forward_port.deficit_bytes = 0;
                return;
            }
            more = forward_port.receive_frames(now);
        }
    }

    /// Serves the oldest frames of all ports until a port that had frames is drained.
    fn serve_oldest(&mut self, now: Nanos, turn: &mut Turn) {
        for forward_port in &mut self.forward_ports {
            forward_port.receive_frames(now);
        }
        while let Some((oldest, until)) = self.oldest() {
            let count = self.forward_ports[oldest].run_until(until);
            self.decide(oldest, count, now);
            self.transmit_frames(now, turn);
            turn.frames += count;
            if self.forward_ports[oldest].is_empty() {
                return;
            }
        }
    }

    /// Returns the port with the oldest first frame, and the age of the first frame of the next
    /// port. The flag says whether that port comes first when both are equally old.
    fn oldest(&self) -> Option<(usize, (Nanos, bool))> {
        let heads = || {
            let waiting = |(index, forward_port): (usize, &ForwardPort)| {
                Some((forward_port.head_at()?, index))
            };
            self.forward_ports.iter().enumerate().filter_map(waiting)
        };
        let (_, oldest) = heads().min()?;
        let next = heads().filter(|&(_, index)| index != oldest).min();
        let until = next.map_or((Nanos::MAX, false), |(at, index)| (at, index < oldest));
        Some((oldest, until))
    }

    /// Passes the first `count` frames of a port to the forwarder.
    fn decide(&mut self, index: usize, count: usize, now: Nanos) {
        let forward_port = &mut self.forward_ports[index];
        if forward_port.head == 0 && count == forward_port.waiting.len() {
            self.forwarder.forward(
                forward_port.number,
                &mut forward_port.waiting,
                now,
                &mut self.outputs,
            );
            forward_port.waiting.clear();
        } else {
            self.work.clear();
            for frame in
                &mut forward_port.waiting.frames_mut()[forward_port.head..forward_port.head + count]
            {
                self.work.push_swap(frame);
            }
            forward_port.advance(count);
            self.forwarder.forward(forward_port.number, &mut self.work, now, &mut self.outputs);
        }
    }

    /// Transmits the output queue of every port. Frames that a port does not accept are dropped and
    /// counted.
    fn transmit_frames(&mut self, now: Nanos, turn: &mut Turn) {
        for (forward_port, (_, queue)) in
            self.forward_ports.iter_mut().zip(self.outputs.queues_mut())
        {
            if !queue.is_empty() {
                turn.frames_sent += forward_port.transmit_frames(queue, now);
            }
        }
    }

    /// Returns the time of the next turn with work that does not depend on received frames.
    ///
    /// - Immediately, if frames wait.
    /// - When a port releases a frame or a failed port is retried.
    /// - When a timeout or a delayed frame of the forwarder is due.
    pub fn next_event(&self) -> Option<Nanos> {
        let ports = self.forward_ports.iter().filter_map(|forward_port| {
            match (&forward_port.fault, forward_port.is_empty()) {
                (_, false) => Some(Nanos::ZERO),
                (Some(_), _) => Some(forward_port.fault_retry_at),
                (None, _) => forward_port.port.next_event(),
            }
        });
        ports.chain(self.due).chain(self.outputs.wake).min()
    }

    /// Whether no frame waits and none will arrive at any port.
    pub fn is_over(&self) -> bool {
        let is_over =
            |forward_port: &ForwardPort| forward_port.is_empty() && forward_port.port.is_over();
        !self.forward_ports.is_empty() && self.forward_ports.iter().all(is_over)
    }

    /// Transmits frames in the outputs outside a turn. Returns how many were sent.
    pub fn send_waiting(&mut self, now: Nanos) -> usize {
        let mut turn = Turn::default();
        self.transmit_frames(now, &mut turn);
        turn.frames_sent
    }

    /// Returns the sum of turns over all threads that forward frames.
    pub fn turns_of_frames(&self) -> Turns {
        let Some((first, others)) = self.turns_apart.split_first() else { return self.turns };
        others.iter().fold(*first, |sum, turns| Turns {
            busy: sum.busy + turns.busy,
            idle: sum.idle + turns.idle,
            cycles_busy: sum.cycles_busy + turns.cycles_busy,
            cycles_idle: sum.cycles_idle + turns.cycles_idle,
        })
    }

    /// Returns the entry of this port.
    pub fn forward_port(&mut self, number: PortNo) -> Option<&mut ForwardPort> {
        self.forward_ports.iter_mut().find(|forward_port| forward_port.number == number)
    }

    /// Returns the next port whose link state changed since the last call: its number, and whether
    /// it is up.
    pub fn link_change(&mut self, now: Nanos) -> Option<(PortNo, bool)> {
        self.forward_ports.iter_mut().for_each(|forward_port| forward_port.look_at_link(now));
        let forward_port = self
            .forward_ports
            .iter_mut()
            .find(|forward_port| forward_port.down_told == forward_port.is_up())?;
        forward_port.down_told = !forward_port.is_up();
        Some((forward_port.number, forward_port.is_up()))
    }
}

impl ForwardPort {
    pub(crate) fn new(number: PortNo, port: Box<dyn Port>) -> Self {
        ForwardPort {
            number,
            port,
            drops: PortDrops::default(),
            fault: None,
            fault_retry_at: Nanos::ZERO,
            has_link: true,
            link_asked_at: None,
            down_told: false,
            waiting: Batch::new(BATCH_FRAMES),
            waiting_since: Nanos::ZERO,
            head: 0,
            shown: 0,
            has_put: false,
            deficit_bytes: 0,
        }
    }

    /// Returns the number of received frames that are not decided yet.
    pub fn waiting(&self) -> usize {
        self.waiting.len() - self.head + self.shown
    }

    /// Whether the port works and its link was up at the last check.
    pub fn is_up(&self) -> bool {
        self.fault.is_none() && self.has_link
    }

    fn look_at_link(&mut self, now: Nanos) {
        if self.link_asked_at.is_none_or(|asked| now.since(asked) >= LINK_INTERVAL) {
            self.link_asked_at = Some(now);
            self.has_link = self.port.has_link();
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.shown == 0
    }

    /// Receives frames from a drained port. Returns whether there may be more.
    fn receive_frames(&mut self, now: Nanos) -> bool {
        if !self.is_empty() {
            return true;
        }
        if self.fault.is_some() && now < self.fault_retry_at {
            return false;
        }
        self.waiting_since = now;
        match self.port.receive(&mut self.waiting, now) {
            Ok(_) => self.fault = None,
            Err(error) => self.fail(error, now),
        }
        self.waiting.len() == BATCH_FRAMES
    }

    /// Transmits the queue and empties it. Returns how many frames the port accepted.
    fn transmit_frames(&mut self, queue: &mut Batch, now: Nanos) -> usize {
        let mut sent = 0;
        if self.fault.is_none() {
            match self.port.transmit(queue, now) {
                Ok(accepted) => {
                    sent = accepted;
                    self.drops.transmit_full += (queue.len() - sent) as u64;
                    queue.clear();
                    return sent;
                }
                Err(error) => self.fail(error, now),
            }
        }
        self.drops.port_down += queue.len() as u64;
        queue.clear();
        sent
    }

    fn fail(&mut self, error: PortError, now: Nanos) {
        self.fault = Some(error);
        self.fault_retry_at = now.saturating_add(PORT_RETRY);
    }

    /// Returns how many waiting frames the deficit covers, and deducts their bytes.
    fn frames_within_deficit(&mut self) -> usize {
        let mut count = 0;
        for frame in &self.waiting.frames()[self.head..] {
            let bytes = frame.len() + FCS_BYTES;
            if bytes > self.deficit_bytes {
                break;
            }
            self.deficit_bytes -= bytes;
            count += 1;
        }
        count
    }

    fn head_at(&self) -> Option<Nanos> {
        self.waiting.frames().get(self.head).map(|frame| self.received_at(frame))
    }

    fn received_at(&self, frame: &Frame) -> Nanos {
        frame.stamp.map_or(self.waiting_since, |stamp| stamp.at)
    }

    /// Returns how many waiting frames are older than `until`, or as old unless the other port goes
    /// first.
    fn run_until(&self, (until, other_first): (Nanos, bool)) -> usize {
        let frames = &self.waiting.frames()[self.head..];
        let before = |at: Nanos| at < until || (at == until && !other_first);
        frames.iter().take_while(|frame| before(self.received_at(frame))).count().max(1)
    }

    fn advance(&mut self, count: usize) {
        self.head += count;
        if self.head == self.waiting.len() {
            self.waiting.clear();
            self.head = 0;
        }
    }
}

#[cfg(test)]
mod tests;
