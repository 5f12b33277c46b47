//! The control part of a port: connects a peer, passes its rings to the queues, and removes them
//! when the peer leaves or is at fault.
//!
//! Nothing waits: [`Control::turn`] does what can be done now. The port has one descriptor for all
//! events: an epoll instance. It is replaced under the same number whenever the set changes.
//! Nothing of an earlier peer remains in it, even if another process still has its descriptors
//! open.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use os::sys;
use packet::time::Nanos;

use super::attach::RingEnds;
use super::control_socket::{ReceiveResult, hear, say, say_farewell};
use super::doorbell::Doorbell;
use super::fault::{Fault, Faults};
use super::handshake::Identity;
use super::pending_peers::MemifListener;
use super::protocol::{Message, text, words};
use super::queue::{Mailbox, Receiver, Transmitter};
use super::receive::ReceiveEnd;
use super::reconnect::UnconnectedClient;
use super::ring::Side;
use super::socket::Socket;
use super::spec::Spec;
use super::transmit::TransmitEnd;

/// The control part of a port.
pub struct Control {
    role: Role,
    peer: Option<Peer>,
    receivers: Vec<Arc<Mailbox<ReceiveEnd>>>,
    transmitters: Vec<Arc<Mailbox<TransmitEnd>>>,
    /// Epoll instances: first that of the peer and of all queues without their own part, then one
    /// per part.
    events: Vec<Arc<OwnedFd>>,
    faults: Faults,
    last_words: Option<String>,
    changed: bool,
}

enum Role {
    Server(MemifListener),
    Client(Box<UnconnectedClient>),
}

struct Peer {
    socket: Socket,
    doorbells: Vec<Doorbell>,
}

impl Control {
    /// Listens, or prepares to connect. Returns the queues of `spec`, still without rings.
    pub fn open(spec: &Spec, name: &str) -> io::Result<(Control, Vec<Receiver>, Vec<Transmitter>)> {
        let identity = Identity { id: spec.id, secret: spec.secret, name: text(name) };
        let role = match spec.side {
            Side::Server => Role::Server(MemifListener::open(spec, identity)?),
            Side::Client => Role::Client(Box::new(UnconnectedClient::new(spec, identity))),
        };
        let receivers: Vec<_> = (0..spec.receive_queues).map(|_| Mailbox::new()).collect();
        let transmitters: Vec<_> = (0..spec.transmit_queues).map(|_| Mailbox::new()).collect();
        let queues = (
            receivers.iter().cloned().map(Receiver::new).collect(),
            transmitters.iter().cloned().map(Transmitter::new).collect(),
        );
        let control = Control {
            role,
            peer: None,
            receivers,
            transmitters,
            events: vec![Arc::new(sys::epoll()?)],
            faults: Faults::default(),
            last_words: None,
            changed: true,
        };
        Ok((control, queues.0, queues.1))
    }

    /// Does what can be done now: reads the peer's messages, connects a new peer, handles faults
    /// that queues found.
    pub fn turn(&mut self, now: Nanos) {
        if let Err(fault) = self.hear_peer() {
            self.part(fault, now);
        }
        let taken = self.peer.is_some();
        let joined = match &mut self.role {
            Role::Server(listener) => listener.turn(now, taken, &mut self.faults),
            Role::Client(_) if taken => None,
            Role::Client(caller) => caller.turn(now, &mut self.faults),
        };
        if let Some((socket, ends)) = joined {
            self.join(socket, ends);
        }
        let changed = match &mut self.role {
            Role::Server(listener) => std::mem::take(&mut listener.changed),
            Role::Client(caller) => std::mem::take(&mut caller.changed),
        };
        if changed || self.changed {
            // If the system call fails, the old set stays, and the next turn retries.
            self.changed = self.watch().is_err();
        }
    }

    /// Creates a descriptor for the queues of each part; receiving queues belong to the parts in
    /// turn. The first part uses the port's descriptor.
    pub(super) fn split_queues(&mut self, parts: usize) -> io::Result<Vec<Arc<OwnedFd>>> {
        let more = (1..parts).map(|_| Ok(Arc::new(sys::epoll()?)));
        let more: Vec<_> = more.collect::<io::Result<_>>()?;
        self.events.truncate(1);
        self.events.extend(more.iter().cloned());
        self.changed = true;
        Ok(more)
    }

    /// Returns whether there is a peer.
    pub fn is_connected(&self) -> bool {
        self.peer.is_some()
    }

    /// Returns the counts of the peers' faults.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns the reason that the last peer gave for leaving, if any.
    pub fn last_words(&self) -> Option<&str> {
        let of_call = match &self.role {
            Role::Server(_) => None,
            Role::Client(caller) => caller.last_words.as_deref(),
        };
        of_call.or(self.last_words.as_deref())
    }

    /// Returns when a turn is due even if nothing arrives.
    pub fn due(&self) -> Option<Nanos> {
        match &self.role {
            Role::Server(listener) => listener.due(),
            Role::Client(caller) => self.peer.is_none().then(|| caller.due()),
        }
    }

    /// Returns the descriptor that becomes readable when a turn has work, or an armed queue has
    /// frames.
    pub fn descriptor(&self) -> RawFd {
        self.events[0].as_raw_fd()
    }

    /// Reads from the peer, whose only valid message is `disconnect`. The error is a fault, or
    /// `None` if the peer left.
    fn hear_peer(&mut self) -> Result<(), Option<Fault>> {
        let Some(peer) = &self.peer else { return Ok(()) };
        let found = self.receivers.iter().find_map(|mailbox| mailbox.take_fault());
        let found = found.or(self.transmitters.iter().find_map(|mailbox| mailbox.take_fault()));
        if found.is_some() {
            return Err(found);
        }
        match hear(&peer.socket) {
            Ok(ReceiveResult::Nothing) => Ok(()),
            Ok(ReceiveResult::End) => Err(None),
            Ok(ReceiveResult::Message(Message::Disconnect { reason, .. }, _)) => {
                self.last_words = Some(words(&reason));
                Err(None)
            }
            Ok(ReceiveResult::Message(..)) => Err(Some(Fault::Unexpected)),
            Err(fault) => Err(Some(fault)),
        }
    }

    fn join(&mut self, socket: Socket, ends: RingEnds) {
        let doorbells = ends.receive.iter().map(|end| end.doorbell().clone()).collect();
        let (mut receive, mut transmit) = (ends.receive.into_iter(), ends.transmit.into_iter());
        self.receivers.iter().for_each(|mailbox| mailbox.post(receive.next()));
        self.transmitters.iter().for_each(|mailbox| mailbox.post(transmit.next()));
        self.peer = Some(Peer { socket, doorbells });
        self.changed = true;
    }

    /// Ends the connection, after a fault or because the peer left.
    fn part(&mut self, fault: Option<Fault>, now: Nanos) {
        if let (Some(fault), Some(peer)) = (fault, &self.peer) {
            self.faults.add(fault);
            say_farewell(&peer.socket, fault);
        }
        self.peer = None;
        self.receivers.iter().for_each(|mailbox| mailbox.post(None));
        self.transmitters.iter().for_each(|mailbox| mailbox.post(None));
        if let Role::Client(caller) = &mut self.role {
            caller.pause(now);
        }
        self.changed = true;
    }

    /// Replaces each epoll instance with one that watches the current descriptors.
    fn watch(&self) -> io::Result<()> {
        let listener: Vec<RawFd> = match &self.role {
            Role::Server(listener) => listener.descriptors().collect(),
            Role::Client(caller) => caller.descriptor().into_iter().collect(),
        };
        let bells = self.peer.iter().flat_map(|peer| &peer.doorbells).map(Doorbell::descriptor);
        let peer = self.peer.iter().map(|peer| peer.socket.descriptor());
        let parts = self.events.len();
        for (part, events) in self.events.iter().enumerate() {
            let own = listener.iter().copied().chain(peer.clone()).filter(|_| part == 0);
            sys::watch(events, own.chain(bells.clone().skip(part).step_by(parts)))?;
        }
        Ok(())
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some(peer) = &self.peer {
            let farewell = Message::Disconnect { code: 0, reason: text("closed") };
            let _ = say(&peer.socket, &farewell, None);
        }
    }
}
