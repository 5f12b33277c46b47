//! Frames in a thread of their own: what the two threads of a switch say to each other.
//!
//! The thread of the frames has the ports and a worker of the pipeline. The other one, which serves
//! controllers, has everything else and, in the place of each port, a [`RemotePort`]: what it sends
//! there is handed over, and what it asks there is what the other thread said last. Frames wait for
//! nothing but a short look into the letter box.
//!
//! Invariant: letters are taken in the order in which they were put, and a full box is a counted loss.

use std::os::fd::RawFd;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use dataplane::forwarder::{EVENTS_MAX, Event, Outputs};
use dataplane::pipeline::{Pipeline, Worker};
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;
use ports::clock::{self, Wait};
use ports::link::Link;
use ports::memif::doorbell::Doorbell;
use ports::port::{Port, PortCounters, PortError, PortFacts};

use crate::config::Service;
use crate::forward::{ForwardLoop, LaneDrops, NumberedPort, Turns};

/// Frames that the thread of controllers may have handed over and that are not yet sent.
pub const FRAMES_MAX: usize = 4096;

/// While frames keep coming, what is known of the ports is told this often.
const TELL_INTERVAL: Nanos = Nanos::from_millis(1);

/// Longest wait: after that the flag is looked at again.
const WAIT_MAX: Nanos = Nanos::from_millis(100);

/// How long to wait between polls of ports that have no descriptor.
const POLL_PAUSE: Nanos = Nanos::from_micros(50);

/// The letter box.
struct Exchange {
    frames: Mutex<Vec<(PortNo, Frame)>>,
    has_frames: AtomicBool,
    events: Mutex<Vec<Event>>,
    told: Mutex<Told>,
    /// Rung for the thread of the frames.
    frames_bell: Doorbell,
    /// Rung for the other one.
    control_bell: Doorbell,
    stop: AtomicBool,
}

/// What the thread of the frames says of itself.
#[derive(Debug, Clone, Default)]
struct Told {
    ports: Vec<PortTold>,
    turns: Turns,
    events_lost: u64,
}

/// What it says of one port.
#[derive(Debug, Clone, Default)]
struct PortTold {
    counters: PortCounters,
    drops: LaneDrops,
    up: bool,
    link: Link,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread of the frames, as the other one sees it.
pub struct Apart {
    exchange: Arc<Exchange>,
    thread: Option<JoinHandle<()>>,
    /// The last count of lost events that was taken over.
    events_lost: u64,
}

/// What stands in the place of the ports, until the thread of the frames has them.
pub struct Departure {
    exchange: Arc<Exchange>,
    ports: Vec<NumberedPort>,
}

impl Departure {
    /// Takes the ports and gives one for each that stands in its place.
    pub fn new(mut ports: Vec<NumberedPort>) -> std::io::Result<(Departure, Vec<NumberedPort>)> {
        let told = ports.iter_mut().map(|(_, port)| PortTold {
            up: port.has_link(),
            link: port.link(),
            ..PortTold::default()
        });
        let told = Told { ports: told.collect(), ..Told::default() };
        let exchange = Arc::new(Exchange {
            frames: Mutex::default(),
            has_frames: AtomicBool::new(false),
            events: Mutex::default(),
            told: Mutex::new(told),
            frames_bell: Doorbell::create()?,
            control_bell: Doorbell::create()?,
            stop: AtomicBool::new(false),
        });
        let remote = |(place, (number, port)): (usize, &NumberedPort)| {
            let facts = port.facts().clone();
            let exchange = Arc::clone(&exchange);
            let remote = RemotePort { exchange, place, number: *number, facts };
            (*number, Box::new(remote) as Box<dyn Port>)
        };
        let remotes = ports.iter().enumerate().map(remote).collect();
        Ok((Departure { exchange, ports }, remotes))
    }

    /// Starts the thread. It keeps polling for `spin` after the last frame.
    pub fn start(self, worker: Worker, service: Service, spin: Nanos) -> std::io::Result<Apart> {
        let Departure { exchange, ports } = self;
        let inside = Arc::clone(&exchange);
        let thread = std::thread::Builder::new().name("frames".into()).spawn(move || {
            Frames::new(inside, ports, worker, service).run(spin);
        })?;
        Ok(Apart { exchange, thread: Some(thread), events_lost: 0 })
    }
}

impl Apart {
    /// Takes over what the thread of the frames said: events, counters, links.
    pub fn take(
        &mut self,
        pipeline: &mut Pipeline,
        outputs: &mut Outputs,
        lanes: &mut [crate::forward::Lane],
        turns: &mut Turns,
        now: Nanos,
    ) {
        self.exchange.control_bell.drain();
        for event in std::mem::take(&mut *lock(&self.exchange.events)) {
            pipeline.heard(event, now, outputs);
        }
        let told = lock(&self.exchange.told);
        for (lane, told) in lanes.iter_mut().zip(&told.ports) {
            lane.drops = told.drops;
        }
        *turns = told.turns;
        outputs.events_lost += told.events_lost - self.events_lost;
        self.events_lost = told.events_lost;
    }

    /// Waits until frames are forwarded by every change so far: for the batch at hand, no longer.
    pub fn settle(&self, pipeline: &mut Pipeline) {
        while !pipeline.is_settled() {
            std::thread::yield_now();
        }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.exchange.stop.store(true, Release);
        self.exchange.frames_bell.ring();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            drop(thread.join());
        }
    }
}

/// Stands in the place of a port that another thread has.
struct RemotePort {
    exchange: Arc<Exchange>,
    place: usize,
    number: PortNo,
    facts: PortFacts,
}

impl RemotePort {
    fn told(&self) -> PortTold {
        lock(&self.exchange.told).ports[self.place].clone()
    }
}

impl Port for RemotePort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    /// Frames are received by the other thread.
    fn receive(&mut self, _batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        Ok(0)
    }

    fn transmit(&mut self, batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        let mut frames = lock(&self.exchange.frames);
        let room = FRAMES_MAX.saturating_sub(frames.len());
        let count = batch.len().min(room);
        let taken = batch.frames_mut()[..count].iter_mut();
        frames.extend(taken.map(|frame| (self.number, std::mem::take(frame))));
        if count > 0 {
            self.exchange.has_frames.store(true, Release);
            self.exchange.frames_bell.ring();
        }
        Ok(count)
    }

    fn counters(&mut self) -> PortCounters {
        self.told().counters
    }

    fn has_link(&self) -> bool {
        self.told().up
    }

    fn link(&self) -> Link {
        self.told().link
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.exchange.control_bell.descriptor())
    }
}

/// The thread of the frames.
struct Frames {
    exchange: Arc<Exchange>,
    forward: ForwardLoop<Worker>,
    links: Vec<Link>,
    tell_at: Nanos,
}

impl Frames {
    fn new(
        exchange: Arc<Exchange>,
        ports: Vec<NumberedPort>,
        worker: Worker,
        service: Service,
    ) -> Frames {
        let links = lock(&exchange.told).ports.iter().map(|port| port.link).collect();
        let forward = ForwardLoop::new(ports, worker, service);
        Frames { exchange, forward, links, tell_at: Nanos::ZERO }
    }

    fn run(&mut self, spin: Nanos) {
        let mut wait = Wait::new();
        let pollable = self.forward.lanes.iter().all(|lane| lane.port.descriptor().is_some());
        let mut spin_until = Nanos::ZERO;
        let mut cycles = clock::cycles();
        let mut was_busy = true;
        while !self.exchange.stop.load(Relaxed) {
            let now = clock::now();
            self.send_letters(now);
            let turn = self.forward.turn(now);
            let busy = turn.frames > 0;
            if busy {
                spin_until = now.saturating_add(spin);
            } else {
                self.forward.forwarder.rest();
            }
            self.pass_events();
            if was_busy && !busy || now >= self.tell_at {
                self.tell(now);
            }
            was_busy = busy;
            let spent = clock::cycles();
            self.forward.turns.spent(turn, spent.wrapping_sub(cycles));
            cycles = spent;
            if now >= spin_until {
                let pause = if pollable { WAIT_MAX } else { POLL_PAUSE };
                let latest = now.saturating_add(pause);
                let due = self.forward.next_event().map_or(latest, |due| due.min(latest));
                self.wait(&mut wait, due);
                cycles = clock::cycles();
            }
        }
    }

    /// Sends what the other thread handed over.
    #[inline]
    fn send_letters(&mut self, now: Nanos) {
        if !self.exchange.has_frames.load(Acquire) {
            return;
        }
        let letters = {
            let mut frames = lock(&self.exchange.frames);
            self.exchange.has_frames.store(false, Relaxed);
            std::mem::take(&mut *frames)
        };
        self.exchange.frames_bell.drain();
        for (port, mut frame) in letters {
            // A full queue goes out first: the port says what it cannot take.
            if self.forward.outputs.send(port, &mut frame) == dataplane::forwarder::Sent::QueueFull
            {
                self.forward.send_waiting(now);
                self.forward.outputs.send(port, &mut frame);
            }
        }
        self.forward.send_waiting(now);
    }

    /// Hands over what happened, as often as it does: that asks no port for anything.
    #[inline]
    fn pass_events(&mut self) {
        if self.forward.outputs.events.is_empty() {
            return;
        }
        let mut events = lock(&self.exchange.events);
        // What does not fit stays, and what comes then is counted as lost.
        let room = EVENTS_MAX.saturating_sub(events.len());
        let count = self.forward.outputs.events.len().min(room);
        events.extend(self.forward.outputs.events.drain(..count));
        if count > 0 {
            self.exchange.control_bell.ring();
        }
    }

    /// Says how the ports are, which asks the system: now and then.
    fn tell(&mut self, now: Nanos) {
        self.tell_at = now.saturating_add(TELL_INTERVAL);
        let mut news = false;
        while let Some((number, _)) = self.forward.link_change(now) {
            news = true;
            let place = self.forward.lanes.iter().position(|lane| lane.number == number);
            if let Some(place) = place {
                self.links[place] = self.forward.lanes[place].port.link();
            }
        }
        let mut told = lock(&self.exchange.told);
        let lanes = self.forward.lanes.iter_mut().zip(&self.links);
        for (place, (lane, link)) in told.ports.iter_mut().zip(lanes) {
            place.counters = lane.port.counters();
            place.drops = lane.drops;
            place.up = lane.is_up();
            place.link = *link;
        }
        told.turns = self.forward.turns;
        told.events_lost = self.forward.outputs.events_lost;
        drop(told);
        if news {
            self.exchange.control_bell.ring();
        }
    }

    fn wait(&self, wait: &mut Wait, deadline: Nanos) {
        wait.clear();
        wait.add(self.exchange.frames_bell.descriptor(), false);
        for lane in self.forward.lanes.iter().filter(|lane| lane.fault.is_none()) {
            if let Some(descriptor) = lane.port.descriptor() {
                wait.add(descriptor, false);
            }
        }
        if wait.until(Some(deadline)).is_err() {
            clock::sleep_until(deadline.max(clock::now().saturating_add(POLL_PAUSE)));
        }
    }
}
