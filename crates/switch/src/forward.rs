//! The forward loop: inhale what the ports received, let the forwarder decide, exhale.
//!
//! Which port is served next is the loop's only policy (`Service`): deficit round robin
//! (M. Shreedhar and G. Varghese, "Efficient fair queuing using deficit round robin", SIGCOMM
//! 1995), as the Linux kernel serves its interfaces, or first come first served. Frames wait in
//! the ports' own receive rings, so a port that overloads the loop loses its own frames there,
//! and only a drained port is asked for more. Frames that a port does not accept at once are
//! dropped there and counted, as a switch with full transmit rings does.
//!
//! First come first served goes by the receive stamps: every drained port is polled before each
//! choice, so the order is exact among frames that had arrived by then. A port that takes no
//! stamps is taken to have received its frames when they were polled.
//!
//! Frames of ports in shared memory stay where they are if the forwarder can decide by their first bytes
//! ([`in_place`]): then they are copied once, from ring to ring.
//!
//! Invariant: between two turns no frame is inside except those that wait in a lane or, for their
//! time, in the forwarder's shaped queues, so frames in = frames waiting + decided, and frames
//! decided are accounted for by the forwarder.

use dataplane::forwarder::{Forwarder, Outputs};
use packet::frame::{Batch, FCS_BYTES, Frame, PortNo};
use packet::time::Nanos;
use ports::port::{Port, PortError};

use crate::config::Service;

/// Frames that stay where they are.
mod in_place;

use in_place::Scratch;

/// Frames that are received from one port at once.
pub const BATCH_FRAMES: usize = 256;

/// A port that failed is tried again after this long.
pub const PORT_RETRY: Nanos = Nanos::from_millis(100);

/// A port is asked this often whether its link carries frames.
pub const LINK_INTERVAL: Nanos = Nanos::from_millis(100);

/// A port and the number that it is known by.
pub type NumberedPort = (PortNo, Box<dyn Port>);

/// The hardware address by which a port is known: its own, or for want of one a local address
/// made from its number.
pub fn mac_of(number: PortNo, port: &dyn Port) -> [u8; 6] {
    let [.., high, low] = number.to_be_bytes();
    let made = [0x02, 0, 0, 0, high, low];
    Some(port.facts().mac).filter(|mac| *mac != [0; 6]).unwrap_or(made)
}

/// Ports, the forwarder between them, and what is on its way.
pub struct ForwardLoop<F> {
    /// The ports, in the order in which they are served.
    pub lanes: Vec<Lane>,
    /// What decides.
    pub forwarder: F,
    /// What it decided: empty between turns, but for what a control plane adds.
    pub outputs: Outputs,
    /// How often there was something to do, and how often not.
    pub turns: Turns,
    /// The same of each thread of frames, where they have their own.
    pub turns_apart: Vec<Turns>,
    /// When the forwarder's next tick is due; whoever changes the forwarder may set it earlier.
    pub due: Option<Nanos>,
    service: Service,
    work: Batch,
    scratch: Box<Scratch>,
}

/// One port with the frames received from it that are not decided yet.
pub struct Lane {
    /// The port's number.
    pub number: PortNo,
    /// The port.
    pub port: Box<dyn Port>,
    /// Frames lost because the port did not accept them, or was down.
    pub drops: LaneDrops,
    /// Why the port does not work, while it does not.
    pub fault: Option<PortError>,
    fault_retry_at: Nanos,
    has_link: bool,
    link_asked_at: Option<Nanos>,
    down_told: bool,
    waiting: Batch,
    waiting_since: Nanos,
    head: usize,
    /// Frames that the port shows where they lie and that are not decided yet.
    shown: usize,
    /// Whether frames were put to the port that it does not show the other end yet.
    has_put: bool,
    deficit_bytes: usize,
}

/// Frames that were decided to leave by a port and could not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaneDrops {
    /// The port accepted no more frames.
    pub transmit_full: u64,
    /// The port was down or gone.
    pub port_down: u64,
}

/// What one turn did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turn {
    /// Frames that were decided.
    pub frames: usize,
    /// Frames that ports accepted for sending.
    pub frames_sent: usize,
}

/// How many turns had frames to decide or send, and how many had none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turns {
    /// Turns with at least one frame.
    pub busy: u64,
    /// Turns without any.
    pub idle: u64,
    /// Cycles of the time-stamp counter that the former took, where whoever runs the loop counts
    /// them.
    pub cycles_busy: u64,
    /// Cycles of the others, waiting left out.
    pub cycles_idle: u64,
}

impl Turns {
    /// Books the cycles of a turn.
    #[inline]
    pub fn spent(&mut self, turn: Turn, cycles: u64) {
        match turn {
            Turn { frames: 0, frames_sent: 0 } => self.cycles_idle += cycles,
            _ => self.cycles_busy += cycles,
        }
    }
}

impl<F: Forwarder> ForwardLoop<F> {
    /// A loop over these ports.
    pub fn new(ports: Vec<NumberedPort>, forwarder: F, service: Service) -> Self {
        let numbers: Vec<PortNo> = ports.iter().map(|(number, _)| *number).collect();
        ForwardLoop {
            lanes: ports.into_iter().map(|(number, port)| Lane::new(number, port)).collect(),
            forwarder,
            outputs: Outputs::new(&numbers),
            turns: Turns::default(),
            turns_apart: Vec::new(),
            service,
            work: Batch::new(BATCH_FRAMES),
            scratch: Box::default(),
            due: Some(Nanos::ZERO),
        }
    }

    /// Does what is due, serves every port once and sends what was decided.
    pub fn turn(&mut self, now: Nanos) -> Turn {
        let mut turn = Turn::default();
        // Frames that wait in the forwarder may be due before what its last tick said.
        self.due = self.due.into_iter().chain(self.outputs.wake.take()).min();
        if self.due.is_some_and(|due| due <= now) {
            self.due = self.forwarder.tick(now, &mut self.outputs);
        }
        match self.service {
            Service::DeficitRoundRobin { quantum_bytes } => {
                for lane in 0..self.lanes.len() {
                    self.serve_quantum(lane, quantum_bytes, now, &mut turn);
                }
            }
            Service::FirstComeFirstServed => self.serve_oldest(now, &mut turn),
        }
        self.exhale(now, &mut turn);
        match turn {
            Turn { frames: 0, frames_sent: 0 } => self.turns.idle += 1,
            _ => self.turns.busy += 1,
        }
        turn
    }

    /// Serves one port until its deficit is used up or it has nothing more.
    fn serve_quantum(&mut self, index: usize, quantum: usize, now: Nanos, turn: &mut Turn) {
        let lane = &mut self.lanes[index];
        lane.deficit_bytes = lane.deficit_bytes.saturating_add(quantum);
        if self.forwarder.decides() && self.serve_in_place(index, now, turn) {
            return;
        }
        let mut more = self.lanes[index].inhale(now);
        loop {
            let count = self.lanes[index].affordable();
            if count > 0 {
                self.decide(index, count, now);
                self.exhale(now, turn);
                turn.frames += count;
            }
            let lane = &mut self.lanes[index];
            if !lane.is_empty() {
                return;
            }
            if !more {
                lane.deficit_bytes = 0;
                return;
            }
            more = lane.inhale(now);
        }
    }

    /// Serves the oldest waiting frames of all ports until a port that had frames is drained.
    fn serve_oldest(&mut self, now: Nanos, turn: &mut Turn) {
        for lane in &mut self.lanes {
            lane.inhale(now);
        }
        while let Some((oldest, until)) = self.oldest() {
            let count = self.lanes[oldest].run_until(until);
            self.decide(oldest, count, now);
            self.exhale(now, turn);
            turn.frames += count;
            if self.lanes[oldest].is_empty() {
                return;
            }
        }
    }

    /// The lane whose first frame is oldest, and the age of the first frame of the next lane
    /// (with whether that lane comes first when both are equally old).
    fn oldest(&self) -> Option<(usize, (Nanos, bool))> {
        let heads = || {
            let waiting = |(index, lane): (usize, &Lane)| Some((lane.head_at()?, index));
            self.lanes.iter().enumerate().filter_map(waiting)
        };
        let (_, oldest) = heads().min()?;
        let next = heads().filter(|&(_, index)| index != oldest).min();
        let until = next.map_or((Nanos::MAX, false), |(at, index)| (at, index < oldest));
        Some((oldest, until))
    }

    /// Lets the forwarder decide the first `count` frames that wait in a lane.
    fn decide(&mut self, index: usize, count: usize, now: Nanos) {
        let lane = &mut self.lanes[index];
        if lane.head == 0 && count == lane.waiting.len() {
            self.forwarder.forward(lane.number, &mut lane.waiting, now, &mut self.outputs);
            lane.waiting.clear();
        } else {
            self.work.clear();
            for frame in &mut lane.waiting.frames_mut()[lane.head..lane.head + count] {
                self.work.push_swap(frame);
            }
            lane.advance(count);
            self.forwarder.forward(lane.number, &mut self.work, now, &mut self.outputs);
        }
    }

    /// Hands every port what was decided for it; what it does not accept is dropped and counted.
    fn exhale(&mut self, now: Nanos, turn: &mut Turn) {
        for (lane, (_, queue)) in self.lanes.iter_mut().zip(self.outputs.queues_mut()) {
            if !queue.is_empty() {
                turn.frames_sent += lane.exhale(queue, now);
            }
        }
    }

    /// When the next turn has something to do that no arriving frame announces: at once if frames
    /// wait, otherwise when a port releases a frame, a failed port is tried again, or a time-out
    /// of the forwarder or a frame that it holds back is due.
    pub fn next_event(&self) -> Option<Nanos> {
        let ports = self.lanes.iter().filter_map(|lane| match (&lane.fault, lane.is_empty()) {
            (_, false) => Some(Nanos::ZERO),
            (Some(_), _) => Some(lane.fault_retry_at),
            (None, _) => lane.port.next_event(),
        });
        ports.chain(self.due).chain(self.outputs.wake).min()
    }

    /// Whether no frame waits and none will arrive at any port any more.
    pub fn is_over(&self) -> bool {
        let is_over = |lane: &Lane| lane.is_empty() && lane.port.is_over();
        !self.lanes.is_empty() && self.lanes.iter().all(is_over)
    }

    /// Sends what waits in the outputs, beside the frames of a turn. Returns how many were sent.
    pub fn send_waiting(&mut self, now: Nanos) -> usize {
        let mut turn = Turn::default();
        self.exhale(now, &mut turn);
        turn.frames_sent
    }

    /// What turns with frames took, of all threads that move frames.
    pub fn turns_of_frames(&self) -> Turns {
        let Some((first, others)) = self.turns_apart.split_first() else { return self.turns };
        others.iter().fold(*first, |sum, turns| Turns {
            busy: sum.busy + turns.busy,
            idle: sum.idle + turns.idle,
            cycles_busy: sum.cycles_busy + turns.cycles_busy,
            cycles_idle: sum.cycles_idle + turns.cycles_idle,
        })
    }

    /// The lane of this port.
    pub fn lane(&mut self, number: PortNo) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.number == number)
    }

    /// The next port that went down or came up since this was last asked: its number, and
    /// whether it is up now.
    pub fn link_change(&mut self, now: Nanos) -> Option<(PortNo, bool)> {
        self.lanes.iter_mut().for_each(|lane| lane.look_at_link(now));
        let lane = self.lanes.iter_mut().find(|lane| lane.down_told == lane.is_up())?;
        lane.down_told = !lane.is_up();
        Some((lane.number, lane.is_up()))
    }
}

impl Lane {
    pub(crate) fn new(number: PortNo, port: Box<dyn Port>) -> Self {
        Lane {
            number,
            port,
            drops: LaneDrops::default(),
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

    /// Frames that were received and wait to be decided.
    pub fn waiting(&self) -> usize {
        self.waiting.len() - self.head + self.shown
    }

    /// Whether the port works and its link carries frames, as far as is known.
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

    /// Asks a drained port for frames; true if there may be more behind those it gave.
    fn inhale(&mut self, now: Nanos) -> bool {
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

    /// Sends the queue and empties it; returns how many frames the port accepted.
    fn exhale(&mut self, queue: &mut Batch, now: Nanos) -> usize {
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

    /// How many of the waiting frames the deficit pays for; they are paid for.
    fn affordable(&mut self) -> usize {
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

    /// How many waiting frames are older than `until` (or as old, unless the other goes first).
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
