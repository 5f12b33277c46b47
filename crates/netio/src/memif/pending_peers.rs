//! The listening side of a server: connected clients whose handshake is not complete, each with a
//! timeout.

use std::os::fd::{OwnedFd, RawFd};

use packet::time::Nanos;

use super::attach::{RingEnds, attach};
use super::control_socket::{ReceiveResult, hear, say, say_farewell};
use super::fault::{Fault, Faults};
use super::handshake::{Identity, Server, ServerStep};
use super::socket::{Listener, Socket};
use super::spec::Spec;

/// Maximum number of pending clients; further ones wait in the listen queue.
const STRANGERS_MAX: usize = 8;

/// Timeout of a client's handshake.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// A listening server.
pub struct MemifListener {
    listener: Listener,
    identity: Identity,
    /// Maximum number of rings of a client, to the server and to the client.
    rings_max: (u16, u16),
    strangers: Vec<PendingPeer>,
    /// Whether a client connected or left; the caller resets this to false.
    pub changed: bool,
}

struct PendingPeer {
    socket: Socket,
    server: Server<OwnedFd>,
    until: Nanos,
}

/// Result of a pending client's turn.
enum Outcome {
    Stays,
    Goes,
    Joins(RingEnds),
}

impl MemifListener {
    /// Listens at the address of `spec`.
    pub fn open(spec: &Spec, identity: Identity) -> std::io::Result<Self> {
        Ok(MemifListener {
            listener: Listener::open(&spec.address)?,
            identity,
            rings_max: (spec.receive_queues, spec.transmit_queues),
            strangers: Vec::new(),
            changed: true,
        })
    }

    /// Does what can be done now. Returns the client that becomes the peer; none if the port has
    /// one (`taken`).
    pub fn turn(
        &mut self,
        now: Nanos,
        taken: bool,
        faults: &mut Faults,
    ) -> Option<(Socket, RingEnds)> {
        self.let_in(now);
        let mut joined = None;
        let mut place = 0;
        while let Some(stranger) = self.strangers.get_mut(place) {
            let outcome = stranger.turn(taken || joined.is_some());
            let outcome = match outcome {
                Ok(Outcome::Stays) if now >= stranger.until => Err(Fault::Slow),
                other => other,
            };
            if matches!(outcome, Ok(Outcome::Stays)) {
                place += 1;
                continue;
            }
            let stranger = self.strangers.remove(place);
            self.changed = true;
            match outcome {
                Ok(Outcome::Joins(ends)) => joined = Some((stranger.socket, ends)),
                Ok(_) => {}
                Err(fault) => {
                    faults.add(fault);
                    say_farewell(&stranger.socket, fault);
                }
            }
        }
        joined
    }

    fn let_in(&mut self, now: Nanos) {
        while self.strangers.len() < STRANGERS_MAX {
            // If descriptors have run out, the next turn retries.
            let Ok(Some(socket)) = self.listener.accept() else { return };
            let (to_server, to_client) = self.rings_max;
            let server = Server::new(self.identity.clone(), to_server, to_client);
            if say(&socket, &server.hello(), None).is_ok() {
                let until = now.saturating_add(PATIENCE);
                self.strangers.push(PendingPeer { socket, server, until });
                self.changed = true;
            }
        }
    }

    /// Returns the earliest timeout of a pending client.
    pub fn due(&self) -> Option<Nanos> {
        self.strangers.iter().map(|stranger| stranger.until).min()
    }

    /// Returns the descriptors that become readable when there is work.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        let strangers = self.strangers.iter().map(|stranger| stranger.socket.descriptor());
        strangers.chain([self.listener.descriptor()])
    }
}

impl PendingPeer {
    /// Processes a client's waiting messages. Each message advances or ends the handshake, so there
    /// are not many.
    fn turn(&mut self, taken: bool) -> Result<Outcome, Fault> {
        loop {
            let (message, descriptor) = match hear(&self.socket)? {
                ReceiveResult::Nothing => return Ok(Outcome::Stays),
                ReceiveResult::End => return Ok(Outcome::Goes),
                ReceiveResult::Message(message, descriptor) => (message, descriptor),
            };
            let step = self.server.receive(message, descriptor)?;
            if taken && self.server.is_greeted() {
                return Err(Fault::Taken);
            }
            match step {
                ServerStep::Reply(answer) => say(&self.socket, &answer, None)?,
                ServerStep::Left(_) => return Ok(Outcome::Goes),
                ServerStep::Attach(offer) => {
                    let ends = attach(offer, self.socket.is_of_our_user())?;
                    say(&self.socket, &self.server.connected(), None)?;
                    return Ok(Outcome::Joins(ends));
                }
            }
        }
    }
}
