//! The control part of a port: connects front ends, one at a time, and processes their messages.
//!
//! Nothing waits: [`Control::turn`] does what can be done now. As in memif, the single descriptor
//! is an epoll instance that is replaced whenever the set changes.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use os::sys;
use packet::time::Nanos;

use super::connection::{Connection, ReceiveResult};
use super::device::{Device, Shape};
use super::ring::Ring;
use super::spec::{Role, Spec};
use crate::memif::doorbell::Doorbell;
use crate::memif::fault::{Fault, Faults};
use crate::memif::socket::{Address, Kind, Listener, Socket};

/// Pause between the end of one connection attempt and the next.
const PAUSE: Nanos = Nanos::from_millis(100);

/// Timeout for the rest of a message.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// Maximum number of messages per turn, so that a busy control channel does not delay frames.
const MESSAGES_MAX: usize = 64;

/// The control part of a port.
pub struct Control {
    endpoint: Endpoint,
    queues: u16,
    peer: Option<Peer>,
    /// Kick eventfds of the rings that we receive from.
    kicks: Vec<Doorbell>,
    events: OwnedFd,
    faults: Faults,
    changed: bool,
}

enum Endpoint {
    /// Server: listens.
    Open(Listener),
    /// Client: connects, not before this time.
    Call(Address, Nanos),
}

struct Peer {
    line: Connection,
    device: Arc<Mutex<Device>>,
    /// When the first part of an incomplete message arrived.
    partial_since: Option<Nanos>,
}

/// Rings by number, and their frame layout.
type Rings = (Vec<Option<Ring>>, Shape);

/// Effect of a turn on the port's rings.
pub enum RingChange {
    /// No change.
    Nothing,
    /// The port must use these rings instead, by number.
    Rings(Vec<Option<Ring>>, Shape),
}

fn lock(device: &Mutex<Device>) -> MutexGuard<'_, Device> {
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Control {
    /// Listens, or prepares to connect.
    pub fn open(spec: &Spec) -> io::Result<Control> {
        let endpoint = match spec.role {
            Role::Server => Endpoint::Open(Listener::open_for(&spec.address, Kind::Stream)?),
            Role::Client => Endpoint::Call(spec.address.clone(), Nanos::ZERO),
        };
        let (events, faults) = (sys::epoll()?, Faults::default());
        let (queues, kicks) = (spec.queues, Vec::new());
        Ok(Control { endpoint, queues, peer: None, kicks, events, faults, changed: true })
    }

    /// Does what can be done now. `next` returns the next available index of each ring in use.
    ///
    /// The indices are stored before messages are processed, because the front end may request
    /// them.
    pub fn turn(&mut self, now: Nanos, next: impl Fn(usize) -> Option<u16>) -> RingChange {
        self.meet(now);
        let change = match self.peer.as_mut().filter(|peer| peer.has_something_to_do()) {
            None => Ok(None),
            Some(peer) => {
                peer.note(next);
                peer.hear(now)
            }
        };
        let change = match change {
            Ok(None) => RingChange::Nothing,
            Ok(Some((rings, shape))) => {
                // Only rings from which we receive.
                let ours = rings.iter().skip(1).step_by(2).flatten();
                self.kicks = ours.filter_map(|ring| ring.kick().cloned()).collect();
                self.changed = true;
                RingChange::Rings(rings, shape)
            }
            Err(fault) => self.part(fault, now),
        };
        if self.changed {
            // If the system call fails, the old set stays, and the next turn retries.
            self.changed = self.watch().is_err();
        }
        change
    }

    /// Ends the connection, after a fault or because the peer left. Its rings are not used any
    /// more.
    pub fn part(&mut self, fault: Option<Fault>, now: Nanos) -> RingChange {
        if let Some(fault) = fault {
            self.faults.add(fault);
        }
        self.peer = None;
        self.kicks.clear();
        if let Endpoint::Call(_, next_at) = &mut self.endpoint {
            *next_at = now.saturating_add(PAUSE);
        }
        self.changed = true;
        RingChange::Rings(Vec::new(), Shape { header_bytes: 0, merges: false })
    }

    /// Returns whether there is a peer.
    pub fn is_connected(&self) -> bool {
        self.peer.is_some()
    }

    /// Returns the counts of the peers' faults.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns when a turn is due even if nothing arrives.
    pub fn due(&self) -> Option<Nanos> {
        match (&self.peer, &self.endpoint) {
            (Some(peer), _) => peer.partial_since.map(|since| since.saturating_add(PATIENCE)),
            (None, Endpoint::Call(_, next_at)) => Some(*next_at),
            (None, Endpoint::Open(_)) => None,
        }
    }

    /// Returns the descriptor that becomes readable when a turn has work, or a ring is kicked.
    pub fn descriptor(&self) -> RawFd {
        self.events.as_raw_fd()
    }

    /// Accepts a front end, or connects to one.
    fn meet(&mut self, now: Nanos) {
        let socket = match &mut self.endpoint {
            Endpoint::Open(listener) => match listener.accept() {
                Ok(Some(socket)) => socket,
                // If descriptors have run out, the next turn retries.
                _ => return,
            },
            Endpoint::Call(address, next_at) => {
                if self.peer.is_some() || now < *next_at {
                    return;
                }
                *next_at = now.saturating_add(PAUSE);
                let Ok(socket) = Socket::connect_for(address, Kind::Stream) else { return };
                socket
            }
        };
        if self.peer.is_some() {
            self.faults.add(Fault::Taken);
            return;
        }
        let device = Arc::new(Mutex::new(Device::new(self.queues)));
        let Ok(line) = Connection::new(socket.into_inner(), &device) else { return };
        self.peer = Some(Peer { line, device, partial_since: None });
        self.changed = true;
    }

    /// Watches all current descriptors.
    fn watch(&self) -> io::Result<()> {
        let endpoint = match &self.endpoint {
            Endpoint::Open(listener) => Some(listener.descriptor()),
            Endpoint::Call(..) => None,
        };
        let line = self.peer.as_ref().map(|peer| peer.line.descriptor());
        let kicks = self.kicks.iter().map(Doorbell::descriptor);
        sys::watch(&self.events, kicks.chain(endpoint).chain(line))
    }
}

impl Peer {
    fn has_something_to_do(&self) -> bool {
        self.partial_since.is_some() || !self.line.is_quiet()
    }

    /// Stores the next available index of each ring.
    fn note(&self, next: impl Fn(usize) -> Option<u16>) {
        let mut device = lock(&self.device);
        for number in 0..device.numbers() {
            if let Some(next) = next(number) {
                device.note(number, next);
            }
        }
    }

    /// Processes waiting messages. Returns the rings if they may have changed; the error is a
    /// fault, or `None` if the peer left.
    fn hear(&mut self, now: Nanos) -> Result<Option<Rings>, Option<Fault>> {
        for _ in 0..MESSAGES_MAX {
            let heard = self.line.hear();
            if let Some(fault) = lock(&self.device).fault {
                return Err(Some(fault));
            }
            match heard? {
                ReceiveResult::End => return Err(None),
                ReceiveResult::Message => self.partial_since = None,
                ReceiveResult::Nothing(is_part) => {
                    let since = self.partial_since.filter(|_| is_part).unwrap_or(now);
                    if now.since(since) >= PATIENCE {
                        return Err(Some(Fault::Slow));
                    }
                    self.partial_since = is_part.then_some(since);
                    break;
                }
            }
        }
        let mut device = lock(&self.device);
        if !std::mem::take(&mut device.changed) {
            return Ok(None);
        }
        let rings = device.rings()?;
        Ok(Some((rings, device.shape())))
    }
}
