//! The letter boxes of the threads of frames, and what stands in the place of a port elsewhere.
//!
//! Invariant: letters are taken in the order in which they were put, and a full box is a counted loss.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dataplane::forwarder::Event;
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;
use ports::link::Link;
use ports::memif::doorbell::Doorbell;
use ports::port::{Port, PortCounters, PortError, PortFacts};

use crate::forward::{LaneDrops, Turns};

/// Frames that were handed over to a thread and that it has not sent yet.
pub const FRAMES_MAX: usize = 4096;

/// The letter box of one thread of frames.
pub(super) struct Exchange {
    /// Frames that others hand over to it.
    pub(super) frames: Mutex<Vec<(PortNo, Frame)>>,
    pub(super) has_frames: AtomicBool,
    /// What happened to its frames.
    pub(super) events: Mutex<Vec<Event>>,
    /// What it says of itself.
    pub(super) told: Mutex<Told>,
    /// Rung for this thread.
    pub(super) bell: Doorbell,
    /// Rung for the one that serves controllers.
    pub(super) control_bell: Doorbell,
    pub(super) stop: AtomicBool,
}

/// What a thread of frames says of itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    pub(super) ports: Vec<PortTold>,
    pub(super) turns: Turns,
    pub(super) events_lost: u64,
}

/// What it says of its part of one port.
#[derive(Debug, Clone, Default)]
pub(super) struct PortTold {
    pub(super) counters: PortCounters,
    pub(super) drops: LaneDrops,
    pub(super) up: bool,
    pub(super) link: Link,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Exchange {
    /// An empty box of a thread that knows so many ports.
    pub(super) fn new(ports: usize, control_bell: &Doorbell) -> std::io::Result<Exchange> {
        let told = Told { ports: vec![PortTold::default(); ports], ..Told::default() };
        Ok(Exchange {
            frames: Mutex::default(),
            has_frames: AtomicBool::new(false),
            events: Mutex::default(),
            told: Mutex::new(told),
            bell: Doorbell::create()?,
            control_bell: control_bell.clone(),
            stop: AtomicBool::new(false),
        })
    }
}

/// Stands in the place of a port, or of the part of it, that another thread has.
pub(super) struct RemotePort {
    /// The boxes of all threads: where what is known of the port stands.
    pub(super) exchanges: Arc<[Exchange]>,
    /// The thread to which frames are handed over.
    pub(super) owner: usize,
    /// Which of the ports it is.
    pub(super) place: usize,
    pub(super) number: PortNo,
    pub(super) facts: PortFacts,
    /// Rung for the thread in which this stands.
    pub(super) bell: Doorbell,
}

impl RemotePort {
    fn told<T>(&self, part: impl FnOnce(&PortTold) -> T) -> T {
        part(&lock(&self.exchanges[self.owner].told).ports[self.place])
    }
}

impl Port for RemotePort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    /// Frames are received by other threads.
    fn receive(&mut self, _batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        Ok(0)
    }

    fn transmit(&mut self, batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        let owner = &self.exchanges[self.owner];
        let mut frames = lock(&owner.frames);
        let room = FRAMES_MAX.saturating_sub(frames.len());
        let count = batch.len().min(room);
        let taken = batch.frames_mut()[..count].iter_mut();
        frames.extend(taken.map(|frame| (self.number, std::mem::take(frame))));
        if count > 0 {
            owner.has_frames.store(true, Release);
            owner.bell.ring();
        }
        Ok(count)
    }

    /// The sum over all its parts.
    fn counters(&mut self) -> PortCounters {
        let mut sum = PortCounters::default();
        for exchange in self.exchanges.iter() {
            sum.add(&lock(&exchange.told).ports[self.place].counters);
        }
        sum
    }

    fn has_link(&self) -> bool {
        self.told(|port| port.up)
    }

    fn link(&self) -> Link {
        self.told(|port| port.link)
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.bell.descriptor())
    }
}
