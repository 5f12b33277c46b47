//! Connection attempts of a client: one at a time, with a pause after each that failed or ended.

use std::os::fd::{AsRawFd, RawFd};

use packet::time::Nanos;

use super::attach::{ClientRings, RingEnds, prepare};
use super::control_socket::{ReceiveResult, hear, say, say_farewell};
use super::fault::{Fault, Faults};
use super::handshake::{Attachment, Client, ClientStep, Identity};
use super::layout::Shape;
use super::protocol::{Direction, Message};
use super::receive::ReceiveEnd;
use super::socket::{Address, Socket};
use super::spec::Spec;

/// Pause between the end of one attempt and the next.
const PAUSE: Nanos = Nanos::from_millis(100);

/// Timeout of the server's handshake.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// A client without a server, or during the handshake.
pub struct UnconnectedClient {
    address: Address,
    identity: Identity,
    shape: Shape,
    huge_pages: bool,
    call: Option<Call>,
    next_at: Nanos,
    /// Whether an attempt began or ended; the caller resets this to false.
    pub changed: bool,
    /// Reason given by the last server that disconnected during the handshake.
    pub last_words: Option<String>,
}

struct Call {
    socket: Socket,
    client: Client,
    prepared: Option<ClientRings>,
    until: Nanos,
}

/// State of an attempt.
enum Outcome {
    Goes,
    On,
    Up,
}

impl UnconnectedClient {
    /// Creates a client for `spec`.
    pub fn new(spec: &Spec, identity: Identity) -> Self {
        UnconnectedClient {
            address: spec.address.clone(),
            identity,
            shape: spec.shape(),
            huge_pages: spec.huge_pages,
            call: None,
            next_at: Nanos::ZERO,
            changed: true,
            last_words: None,
        }
    }

    /// Does what can be done now, and returns the server's connection once the handshake is
    /// complete.
    pub fn turn(&mut self, now: Nanos, faults: &mut Faults) -> Option<(Socket, RingEnds)> {
        if self.call.is_none() && now >= self.next_at {
            self.next_at = now.saturating_add(PAUSE);
            let socket = Socket::connect(&self.address).ok()?;
            let client = Client::new(self.identity.clone(), self.shape);
            let until = now.saturating_add(PATIENCE);
            self.call = Some(Call { socket, client, prepared: None, until });
            self.changed = true;
        }
        let mut call = self.call.take()?;
        match self.listen(&mut call) {
            Ok(Outcome::On) if now < call.until => {
                self.call = Some(call);
                return None;
            }
            Ok(Outcome::Up) => {
                self.changed = true;
                let mut ends = call.prepared?.ends;
                // Not before the server's `connected` message: until then the server may reset
                // indices to zero.
                ends.receive.iter_mut().for_each(ReceiveEnd::open);
                return Some((call.socket, ends));
            }
            Ok(Outcome::Goes) => {}
            Ok(Outcome::On) => self.fail(&call, Fault::Slow, faults),
            Err(fault) => self.fail(&call, fault, faults),
        }
        self.changed = true;
        self.pause(now);
        None
    }

    /// Delays the next attempt by the pause.
    pub fn pause(&mut self, now: Nanos) {
        self.next_at = now.saturating_add(PAUSE);
    }

    /// Returns when the next attempt is due, or when the current one times out.
    pub fn due(&self) -> Nanos {
        self.call.as_ref().map_or(self.next_at, |call| call.until)
    }

    /// Returns the descriptor that becomes readable when there is work.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.call.as_ref().map(|call| call.socket.descriptor())
    }

    fn fail(&mut self, call: &Call, fault: Fault, faults: &mut Faults) {
        faults.add(fault);
        say_farewell(&call.socket, fault);
    }

    fn listen(&mut self, call: &mut Call) -> Result<Outcome, Fault> {
        loop {
            let message = match hear(&call.socket)? {
                ReceiveResult::Nothing => return Ok(Outcome::On),
                ReceiveResult::End => return Ok(Outcome::Goes),
                ReceiveResult::Message(_, Some(_)) => return Err(Fault::Descriptor),
                ReceiveResult::Message(message, None) => message,
            };
            match call.client.receive(message)? {
                ClientStep::Prepare(shape) => {
                    let huge = self.huge_pages && call.socket.is_of_our_user();
                    // If memory has run out, some may be free after a pause.
                    let Ok(prepared) = prepare(&shape, huge) else { return Ok(Outcome::Goes) };
                    let (message, _) = call.client.start(&shape, prepared.bytes);
                    call.prepared = Some(prepared);
                    say(&call.socket, &message, None)?;
                }
                ClientStep::Say(message, attachment) => call.say(&message, attachment)?,
                ClientStep::Up => return Ok(Outcome::Up),
                ClientStep::Left(reason) => {
                    self.last_words = Some(reason);
                    return Ok(Outcome::Goes);
                }
            }
        }
    }
}

impl Call {
    fn say(&self, message: &Message, attachment: Attachment) -> Result<(), Fault> {
        let bell = |prepared: &ClientRings, direction, index: u16| {
            let bells = match direction {
                Direction::ToServer => &prepared.to_server,
                Direction::ToClient => &prepared.to_client,
            };
            bells.get(usize::from(index)).map(|bell| bell.descriptor())
        };
        let beside = self.prepared.as_ref().and_then(|prepared| match attachment {
            Attachment::None => None,
            Attachment::Region => Some(prepared.file.as_raw_fd()),
            Attachment::Doorbell(direction, index) => bell(prepared, direction, index),
        });
        say(&self.socket, message, beside)
    }
}
