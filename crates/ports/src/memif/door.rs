//! A server's door: strangers who called, each with a limited time to say whom they want and what
//! they bring.

use std::os::fd::{OwnedFd, RawFd};

use packet::time::Nanos;

use super::attach::{Ends, attach};
use super::fault::{Fault, Faults};
use super::handshake::{Identity, Server, ServerStep};
use super::line::{Heard, hear, say, say_farewell};
use super::socket::{Listener, Socket};
use super::spec::Spec;

/// Strangers that are let in at once; others wait outside.
const STRANGERS_MAX: usize = 8;

/// A stranger has so long to become the peer.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// A listening server.
pub struct Door {
    listener: Listener,
    identity: Identity,
    /// Rings to the server and to the client that a client may have.
    rings_max: (u16, u16),
    strangers: Vec<Stranger>,
    /// Whether somebody came or went since this was last set to false.
    pub changed: bool,
}

struct Stranger {
    socket: Socket,
    server: Server<OwnedFd>,
    until: Nanos,
}

/// What became of a stranger.
enum Outcome {
    Stays,
    Goes,
    Joins(Ends),
}

impl Door {
    /// Listens where `spec` says.
    pub fn open(spec: &Spec, identity: Identity) -> std::io::Result<Self> {
        Ok(Door {
            listener: Listener::open(&spec.address)?,
            identity,
            rings_max: (spec.receive_queues, spec.transmit_queues),
            strangers: Vec::new(),
            changed: true,
        })
    }

    /// Does what can be done now. Returns the stranger that is the peer from now on; there can be
    /// none while the port has one (`taken`).
    pub fn turn(&mut self, now: Nanos, taken: bool, faults: &mut Faults) -> Option<(Socket, Ends)> {
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
            // A system that is out of descriptors may have some at the next turn.
            let Ok(Some(socket)) = self.listener.accept() else { return };
            let (to_server, to_client) = self.rings_max;
            let server = Server::new(self.identity.clone(), to_server, to_client);
            if say(&socket, &server.hello(), None).is_ok() {
                let until = now.saturating_add(PATIENCE);
                self.strangers.push(Stranger { socket, server, until });
                self.changed = true;
            }
        }
    }

    /// When somebody's time is over.
    pub fn due(&self) -> Option<Nanos> {
        self.strangers.iter().map(|stranger| stranger.until).min()
    }

    /// What becomes readable when there is something to do.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        let strangers = self.strangers.iter().map(|stranger| stranger.socket.descriptor());
        strangers.chain([self.listener.descriptor()])
    }
}

impl Stranger {
    /// Listens to a stranger as long as it has something to say. Each message takes the
    /// handshake a step further or ends it, so there are not many.
    fn turn(&mut self, taken: bool) -> Result<Outcome, Fault> {
        loop {
            let (message, descriptor) = match hear(&self.socket)? {
                Heard::Nothing => return Ok(Outcome::Stays),
                Heard::End => return Ok(Outcome::Goes),
                Heard::Message(message, descriptor) => (message, descriptor),
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
