//! The part of a port that meets front ends, one at a time, and hears what they say.
//!
//! Nothing waits: [`Control::turn`] does what can be done now. As a memif port's, its one descriptor
//! is an epoll instance that is made anew whenever the set changes.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packet::time::Nanos;

use super::device::{Device, Shape};
use super::line::{Heard, Line};
use super::ring::Ring;
use super::spec::{Role, Spec};
use crate::memif::doorbell::Doorbell;
use crate::memif::fault::{Fault, Faults};
use crate::memif::socket::{Address, Kind, Listener, Socket};
use crate::sys;

/// From the end of one call to the start of the next.
const PAUSE: Nanos = Nanos::from_millis(100);

/// A front end may take so long for the rest of a message.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// Messages that are heard in one turn, so that a chatty front end keeps no frames waiting.
const MESSAGES_MAX: usize = 64;

/// The control part of a port.
pub struct Control {
    door: Door,
    queues: u16,
    peer: Option<Peer>,
    /// What the driver rings.
    kicks: Vec<Doorbell>,
    events: OwnedFd,
    faults: Faults,
    changed: bool,
}

enum Door {
    /// We listen.
    Open(Listener),
    /// We call, not before this.
    Call(Address, Nanos),
}

struct Peer {
    line: Line,
    device: Arc<Mutex<Device>>,
    /// Since when part of a message waits for the rest.
    partial_since: Option<Nanos>,
}

/// Rings by number, and how frames lie in them.
type Rings = (Vec<Option<Ring>>, Shape);

/// What the port does with its rings after a turn.
pub enum News {
    /// It goes on with them.
    Nothing,
    /// It uses these instead, by number.
    Rings(Vec<Option<Ring>>, Shape),
}

fn lock(device: &Mutex<Device>) -> MutexGuard<'_, Device> {
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Control {
    /// Listens, or gets ready to call.
    pub fn open(spec: &Spec) -> io::Result<Control> {
        let door = match spec.role {
            Role::Server => Door::Open(Listener::open_for(&spec.address, Kind::Stream)?),
            Role::Client => Door::Call(spec.address.clone(), Nanos::ZERO),
        };
        let (events, faults) = (sys::epoll()?, Faults::default());
        let (queues, kicks) = (spec.queues, Vec::new());
        Ok(Control { door, queues, peer: None, kicks, events, faults, changed: true })
    }

    /// Does what can be done now. `next` tells for each ring in use where it goes on: to be said
    /// before a front end is heard, who may ask.
    pub fn turn(&mut self, now: Nanos, next: impl Fn(usize) -> Option<u16>) -> News {
        self.meet(now);
        let news = match self.peer.as_mut().filter(|peer| peer.has_something_to_do()) {
            None => Ok(None),
            Some(peer) => {
                peer.note(next);
                peer.hear(now)
            }
        };
        let news = match news {
            Ok(None) => News::Nothing,
            Ok(Some((rings, shape))) => {
                // Those that lead to us.
                let ours = rings.iter().skip(1).step_by(2).flatten();
                self.kicks = ours.filter_map(|ring| ring.kick().cloned()).collect();
                self.changed = true;
                News::Rings(rings, shape)
            }
            Err(fault) => self.part(fault, now),
        };
        if self.changed {
            // If the system refuses, the old set stays, and the next turn tries again.
            self.changed = self.watch().is_err();
        }
        news
    }

    /// Ends the connection, for a fault or because the peer left: no ring is used any more.
    pub fn part(&mut self, fault: Option<Fault>, now: Nanos) -> News {
        if let Some(fault) = fault {
            self.faults.add(fault);
        }
        self.peer = None;
        self.kicks.clear();
        if let Door::Call(_, next_at) = &mut self.door {
            *next_at = now.saturating_add(PAUSE);
        }
        self.changed = true;
        News::Rings(Vec::new(), Shape { header_bytes: 0, merges: false })
    }

    /// Whether there is a peer.
    pub fn is_connected(&self) -> bool {
        self.peer.is_some()
    }

    /// What peers did wrong so far.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// When a turn is due although nothing arrives.
    pub fn due(&self) -> Option<Nanos> {
        match (&self.peer, &self.door) {
            (Some(peer), _) => peer.partial_since.map(|since| since.saturating_add(PATIENCE)),
            (None, Door::Call(_, next_at)) => Some(*next_at),
            (None, Door::Open(_)) => None,
        }
    }

    /// What becomes readable when a turn has something to do, or a ring is kicked.
    pub fn descriptor(&self) -> RawFd {
        self.events.as_raw_fd()
    }

    /// Lets a front end in, or calls one.
    fn meet(&mut self, now: Nanos) {
        let socket = match &mut self.door {
            Door::Open(listener) => match listener.accept() {
                Ok(Some(socket)) => socket,
                // A system that is out of descriptors may have some at the next turn.
                _ => return,
            },
            Door::Call(address, next_at) => {
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
        let Ok(line) = Line::new(socket.into_inner(), &device) else { return };
        self.peer = Some(Peer { line, device, partial_since: None });
        self.changed = true;
    }

    /// Watches all that is of interest now.
    fn watch(&self) -> io::Result<()> {
        let door = match &self.door {
            Door::Open(listener) => Some(listener.descriptor()),
            Door::Call(..) => None,
        };
        let line = self.peer.as_ref().map(|peer| peer.line.descriptor());
        let kicks = self.kicks.iter().map(Doorbell::descriptor);
        sys::watch(&self.events, kicks.chain(door).chain(line))
    }
}

impl Peer {
    fn has_something_to_do(&self) -> bool {
        self.partial_since.is_some() || !self.line.is_quiet()
    }

    /// Takes down where each ring goes on.
    fn note(&self, next: impl Fn(usize) -> Option<u16>) {
        let mut device = lock(&self.device);
        for number in 0..device.numbers() {
            if let Some(next) = next(number) {
                device.note(number, next);
            }
        }
    }

    /// Hears what there is to hear; the rings, if they may be others now. A fault, or `None` if it
    /// left.
    fn hear(&mut self, now: Nanos) -> Result<Option<Rings>, Option<Fault>> {
        for _ in 0..MESSAGES_MAX {
            let heard = self.line.hear();
            if let Some(fault) = lock(&self.device).fault {
                return Err(Some(fault));
            }
            match heard? {
                Heard::End => return Err(None),
                Heard::Message => self.partial_since = None,
                Heard::Nothing(is_part) => {
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
