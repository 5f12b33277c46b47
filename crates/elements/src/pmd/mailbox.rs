//! Mailboxes of forwarding threads, and stand-ins for ports of other threads.
//!
//! Invariant: messages are taken in the order in which they were put. Messages that find a full
//! mailbox are counted as lost.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dataplane::forwarder::Event;
use netio::link::Link;
use netio::memif::doorbell::Doorbell;
use netio::port::{Port, PortCounters, PortError, PortFacts};
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::forward::{PortDrops, Turns};

/// Maximum number of frames that were passed to a thread and that it has not sent yet.
pub const FRAMES_MAX: usize = 4096;

/// Mailbox of one forwarding thread.
pub(super) struct Exchange {
    /// Frames that other threads pass to it.
    pub(super) frames: Mutex<Vec<(PortNo, Frame)>>,
    pub(super) has_frames: AtomicBool,
    /// Events of its frames.
    pub(super) events: Mutex<Vec<Event>>,
    /// Reported state of the thread.
    pub(super) told: Mutex<PmdStatus>,
    /// Wakes this thread.
    pub(super) bell: Doorbell,
    /// Wakes the control thread.
    pub(super) control_bell: Doorbell,
    pub(super) stop: AtomicBool,
}

/// Reported state of a forwarding thread.
#[derive(Debug, Clone, Default)]
pub(super) struct PmdStatus {
    pub(super) ports: Vec<ReportedPort>,
    pub(super) turns: Turns,
    pub(super) events_lost: u64,
}

/// Reported state of its part of one port.
#[derive(Debug, Clone, Default)]
pub(super) struct ReportedPort {
    pub(super) counters: PortCounters,
    pub(super) drops: PortDrops,
    pub(super) up: bool,
    pub(super) link: Link,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Exchange {
    /// Creates an empty mailbox of a thread with this number of ports.
    pub(super) fn new(ports: usize, control_bell: &Doorbell) -> std::io::Result<Exchange> {
        let told =
            PmdStatus { ports: vec![ReportedPort::default(); ports], ..PmdStatus::default() };
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

/// Stand-in for a port, or the part of it, that another thread owns.
pub(super) struct RemotePort {
    /// The mailboxes of all threads, which have the reported state of the port.
    pub(super) exchanges: Arc<[Exchange]>,
    /// The thread to which frames are passed.
    pub(super) owner: usize,
    /// Index of the port.
    pub(super) place: usize,
    pub(super) number: PortNo,
    pub(super) facts: PortFacts,
    /// Wakes the thread that owns this stand-in.
    pub(super) bell: Doorbell,
}

impl RemotePort {
    fn told<T>(&self, part: impl FnOnce(&ReportedPort) -> T) -> T {
        part(&lock(&self.exchanges[self.owner].told).ports[self.place])
    }
}

impl Port for RemotePort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    /// Other threads receive frames.
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

    /// Returns the sum over all parts.
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
