//! Agents that are programs of the user: one Unix socket for each, in the folder of the
//! configuration.
//!
//! Invariants:
//! - Nothing blocks.
//! - Data that a program does not read stays in its agent's bounded outbox.
//! - A turn takes at most [`READ_BYTES`] from each program.

use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use channel::{Channel, ChannelError, Listener, Url};
use dataplane::forwarder::Outputs;
use packet::time::Nanos;
use progfe::dispatcher::Dispatcher;

use crate::datapath::Element;

/// Bytes that are taken from one program in one turn.
const READ_BYTES: usize = 64 << 10;
/// Retry interval for a program that does not read.
const OWED_RETRY: Nanos = Nanos::from_millis(1);
/// Connections that are accepted in one turn.
const ACCEPTS_A_TURN: usize = 8;
/// Retry interval for a socket that could not be opened.
const OPEN_RETRY: Nanos = Nanos::from_secs(1);

/// Sockets of all agents that are programs of the user.
pub struct Processes {
    folder: PathBuf,
    places: Vec<AgentSocket>,
    buffer: Vec<u8>,
}

/// One agent's socket.
struct AgentSocket {
    agent: String,
    listener: Result<Listener, Nanos>,
    channel: Option<Box<dyn Channel>>,
    owes: bool,
}

impl Processes {
    /// Creates the set of sockets in this folder.
    pub fn new(folder: &Path) -> Processes {
        let (folder, buffer) = (folder.to_path_buf(), vec![0; READ_BYTES]);
        Processes { folder, places: Vec::new(), buffer }
    }

    fn open(&self, agent: &str, now: Nanos) -> Result<Listener, Nanos> {
        let url = Url::PassiveUnix(self.folder.join(format!("{agent}.sock")));
        Listener::open(&url).map_err(|_| now.saturating_add(OPEN_RETRY))
    }

    /// Moves data in both directions.
    pub fn turn(
        &mut self,
        dispatcher: &mut Dispatcher,
        (element, out): (&mut Element, &mut Outputs),
        now: Nanos,
    ) {
        let names = dispatcher.wires();
        self.places.retain(|place| names.contains(&place.agent));
        for name in &names {
            if !self.places.iter().any(|place| place.agent == *name) {
                let listener = self.open(name, now);
                let (agent, channel, owes) = (name.clone(), None, false);
                self.places.push(AgentSocket { agent, listener, channel, owes });
            }
        }
        for at in 0..self.places.len() {
            if matches!(self.places[at].listener, Err(retry) if retry <= now) {
                self.places[at].listener = self.open(&self.places[at].agent.clone(), now);
            }
            let Processes { places, buffer, .. } = self;
            places[at].turn(dispatcher, buffer, (element, out), now);
        }
    }

    /// Returns the descriptors to poll for reading.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.places.iter().flat_map(|place| {
            let listener = place.listener.as_ref().ok().map(Listener::descriptor);
            let channel = place.channel.as_ref().and_then(|channel| channel.descriptor());
            listener.into_iter().chain(channel)
        })
    }

    /// Returns the time of the next work that does not depend on received data.
    pub fn due(&self, now: Nanos) -> Option<Nanos> {
        let dues = self.places.iter().flat_map(|place| {
            let owes = place.owes.then(|| now.saturating_add(OWED_RETRY));
            owes.into_iter().chain(place.listener.as_ref().err().copied())
        });
        dues.min()
    }
}

impl AgentSocket {
    fn turn(
        &mut self,
        dispatcher: &mut Dispatcher,
        buffer: &mut [u8],
        (element, out): (&mut Element, &mut Outputs),
        now: Nanos,
    ) {
        // One program per agent. A further connection is closed, so that its program reads the end
        // of the stream.
        for _ in 0..ACCEPTS_A_TURN {
            let Ok(listener) = &mut self.listener else { break };
            let Ok(Some(channel)) = listener.accept() else { break };
            self.channel.get_or_insert(channel);
        }
        let Some(channel) = &mut self.channel else { return };
        // The agent does not know of the connection yet, or a new agent replaced it because its
        // settings changed.
        dispatcher.with_wire(&self.agent, (&mut *element, now, &mut *out), |wire, around| {
            if !wire.is_connected() {
                wire.connected(around);
            }
        });
        let mut outcome = match channel.receive(buffer) {
            Ok(0) => Ok(()),
            Ok(count) => {
                let around = (&mut *element, now, &mut *out);
                let bytes = &buffer[..count];
                let received = dispatcher
                    .with_wire(&self.agent, around, |it, around| it.received(bytes, around));
                received.unwrap_or(Ok(())).map_err(|_| ())
            }
            Err(_) => Err(()),
        };
        if outcome.is_ok() {
            outcome = carry(channel.as_mut(), dispatcher, &self.agent).map_err(|_| ());
        }
        match outcome {
            Ok(()) => {
                let outbox = dispatcher.outbox(&self.agent);
                self.owes = outbox.is_some_and(|outbox| outbox.waiting() > 0);
            }
            Err(()) => {
                (self.channel, self.owes) = (None, false);
                let around = (element, now, out);
                dispatcher.with_wire(&self.agent, around, |wire, _| wire.closed());
            }
        }
    }
}

/// Writes as much of the outbox as there is room for.
fn carry(
    channel: &mut dyn Channel,
    dispatcher: &mut Dispatcher,
    agent: &str,
) -> Result<(), ChannelError> {
    let Some(outbox) = dispatcher.outbox(agent) else { return Ok(()) };
    while !outbox.front().is_empty() {
        match channel.transmit(outbox.front())? {
            0 => break,
            count => outbox.carried(count),
        }
    }
    Ok(())
}
