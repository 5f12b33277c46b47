//! The control socket: one line of JSON asks or orders, one line of JSON answers.
//!
//! Who starts the process (the lab, a script, a person with `socat`) programs and reads it here,
//! whatever it forwards by: counters, addresses, routes. See `Request` for what can be asked.
//! An answer is `{"ok": ...}` or `{"error": "..."}`, in the order of the requests. Who asks to watch is told
//! events as `{"event": ...}` between them, and by `{"events_lost": N}` that it did not read fast enough.
//!
//! Invariant: a client that does not read its answers is not read from either, so a client costs
//! at most one request, one read, one answer and [`EVENT_BYTES_MAX`] of events, and there are at most
//! [`CONNECTIONS`] of them. A turn answers at most [`REQUESTS_A_TURN`] requests of each.

use std::os::fd::RawFd;

use packet::time::Nanos;
use ports::channel::admission::{Held, Room};
use ports::channel::{Channel, ChannelError, ConnectionLimits, Listener, Progress, Url};
use serde_json::{Value, json};

/// What can be asked.
pub mod request;
/// What is answered.
pub mod answer;

pub use request::Request;

/// What a request has brought.
pub enum Answered {
    /// An answer, or why there is none.
    Now(Result<Value, String>),
    /// Nothing yet: it is to be asked again.
    Later(Request),
}

/// How a request is carried out.
pub type Carry<'a> = &'a mut dyn FnMut(Request) -> Answered;

/// Connections at once. One more takes the place of one that has not sent a request, or is closed.
pub const CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 16, per_source: 8 };
/// Connections that are accepted in one turn.
const ACCEPTS_A_TURN: usize = 16;
/// Requests of one client that are answered in one turn.
pub const REQUESTS_A_TURN: usize = 16;
/// Longest request: 128K routes fit.
pub const LINE_BYTES_MAX: usize = 16 << 20;
/// A client that does not read its answer is tried again after this long.
const OWED_RETRY: Nanos = Nanos::from_millis(1);
/// Bytes of events that wait for one client.
pub const EVENT_BYTES_MAX: usize = 256 << 10;
/// Bytes that are read from one client in one turn.
const READ_BYTES: usize = 64 << 10;

/// The socket and its clients.
pub struct Control {
    listener: Listener,
    clients: Vec<Client>,
    accepted: u64,
    buffer: Vec<u8>,
}

struct Client {
    channel: Box<dyn Channel>,
    /// Which connection of the socket it is.
    number: u64,
    /// Whether it has sent a request.
    has_spoken: bool,
    /// Bytes read.
    input: Vec<u8>,
    /// How many of them were answered.
    used: usize,
    /// Up to where they are known to hold no further line's end.
    searched: usize,
    /// Whether they may hold a whole request that has not been answered.
    has_unread: bool,
    output: Vec<u8>,
    sent: usize,
    /// What it asked and is not done yet.
    asked: Option<Request>,
    /// Whether it is told events, and how many found no room since the last.
    watches: bool,
    events_lost: u64,
    /// Nothing more is read: what is left is sent, then the connection is closed.
    closing: bool,
}

impl Control {
    /// Listens on a socket file. A file that a dead process left is replaced.
    pub fn open(path: &std::path::Path) -> Result<Self, ChannelError> {
        let listener = Listener::open(&Url::PassiveUnix(path.to_path_buf()))?;
        Ok(Control { listener, clients: Vec::new(), accepted: 0, buffer: vec![0; READ_BYTES] })
    }

    /// Accepts clients, and answers the requests that they sent, as many of each as one turn may take. Returns how
    /// many were answered.
    pub fn turn(&mut self, answer: Carry<'_>) -> usize {
        for _ in 0..ACCEPTS_A_TURN {
            let Ok(Some(channel)) = self.listener.accept() else { break };
            self.admit(channel);
        }
        let mut answered = 0;
        let buffer = &mut self.buffer;
        self.clients.retain_mut(|client| client.turn(buffer, answer, &mut answered).is_ok());
        answered
    }

    /// Gives a connection a place, if there is one.
    fn admit(&mut self, channel: Box<dyn Channel>) {
        let held = |(id, client): (usize, &Client)| Held {
            id,
            source: client.channel.source(),
            pending: (!client.has_spoken).then_some((Progress::Silent, client.number)),
        };
        let all: Vec<Held> = self.clients.iter().enumerate().map(held).collect();
        match CONNECTIONS.room_for(&all, channel.source()) {
            Room::Free => {}
            Room::InsteadOf(at) => drop(self.clients.remove(at)),
            Room::Refused(_) => return,
        }
        self.accepted += 1;
        self.clients.push(Client::new(channel, self.accepted));
    }

    /// Tells an event to who watches.
    pub fn tell(&mut self, event: &Value) {
        let watching = self.clients.iter_mut().filter(|client| client.watches);
        watching.for_each(|client| client.tell(event));
    }

    /// The descriptors to wait for until readable: clients that owe us reading are left out.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        let readable =
            |client: &&Client| !client.owes() && client.asked.is_none() && !client.has_unread;
        let clients = self.clients.iter().filter(readable);
        let clients = clients.filter_map(|client| client.channel.descriptor());
        std::iter::once(self.listener.descriptor()).chain(clients)
    }

    /// When there is something to do although nothing comes: requests are left, or a client owes us reading.
    pub fn next_event(&self, now: Nanos) -> Option<Nanos> {
        let due = |client: &Client| match client.owes() || client.asked.is_some() {
            true => Some(now.saturating_add(OWED_RETRY)),
            false => client.has_unread.then_some(now),
        };
        self.clients.iter().filter_map(due).min()
    }
}

impl Client {
    fn new(channel: Box<dyn Channel>, number: u64) -> Self {
        Client {
            channel,
            number,
            has_spoken: false,
            input: Vec::new(),
            used: 0,
            searched: 0,
            has_unread: false,
            output: Vec::new(),
            sent: 0,
            asked: None,
            watches: false,
            events_lost: 0,
            closing: false,
        }
    }

    fn tell(&mut self, event: &Value) {
        if self.output.len() - self.sent >= EVENT_BYTES_MAX {
            self.events_lost += 1;
            return;
        }
        if let lost @ 1.. = std::mem::take(&mut self.events_lost) {
            self.line_out(&json!({ "events_lost": lost }));
        }
        self.line_out(event);
        // One that is gone is noticed at its next turn.
        let _ = self.flush();
    }

    fn owes(&self) -> bool {
        self.sent < self.output.len()
    }

    /// One round of read, answer, write. An error ends the connection.
    fn turn(
        &mut self,
        buffer: &mut [u8],
        answer: Carry<'_>,
        answered: &mut usize,
    ) -> Result<(), ChannelError> {
        self.flush()?;
        if self.owes() || self.closing {
            return if self.owes() { Ok(()) } else { self.closed() };
        }
        let mut left = REQUESTS_A_TURN;
        if let Some(asked) = self.asked.take() {
            self.carry(asked, answer, answered);
            self.flush()?;
        }
        self.read(&mut left, answer, answered)?;
        if self.asked.is_some() || self.owes() || self.has_unread {
            return Ok(());
        }
        let count = self.channel.receive(buffer)?;
        if count > 0 {
            self.drop_used();
            self.input.extend_from_slice(&buffer[..count]);
            self.has_unread = true;
        }
        self.read(&mut left, answer, answered)?;
        if self.searched - self.used > LINE_BYTES_MAX {
            self.reply(Err(format!("a request has at most {LINE_BYTES_MAX} bytes")));
            self.closing = true;
            self.flush()?;
        }
        Ok(())
    }

    /// Answers what was asked, as far as the client reads its answers, nothing takes its time and this turn has
    /// requests left.
    fn read(
        &mut self,
        left: &mut usize,
        answer: Carry<'_>,
        answered: &mut usize,
    ) -> Result<(), ChannelError> {
        while self.has_unread && self.asked.is_none() && !self.owes() && *left > 0 {
            let Some(request) = self.request() else { break };
            *left -= 1;
            self.has_spoken = true;
            match request {
                Ok(request) => self.carry(request, answer, answered),
                Err(why) => {
                    self.reply(Err(why));
                    *answered += 1;
                }
            }
            self.flush()?;
        }
        Ok(())
    }

    /// Has a request carried out, or keeps it until it is.
    fn carry(&mut self, request: Request, answer: Carry<'_>, answered: &mut usize) {
        let is_watch = matches!(request, Request::Watch(_));
        match answer(request) {
            Answered::Later(request) => self.asked = Some(request),
            Answered::Now(outcome) => {
                self.watches |= is_watch && outcome.is_ok();
                self.reply(outcome);
                *answered += 1;
            }
        }
    }

    /// The request in the next whole line, or why it is none.
    fn request(&mut self) -> Option<Result<Request, String>> {
        match self.input[self.searched..].iter().position(|&byte| byte == b'\n') {
            Some(at) => {
                let end = self.searched + at;
                let request = Request::read(&self.input[self.used..end]);
                (self.used, self.searched) = (end + 1, end + 1);
                Some(request)
            }
            None => {
                (self.searched, self.has_unread) = (self.input.len(), false);
                None
            }
        }
    }

    /// Forgets what was answered, and with it the room that a long request needed.
    fn drop_used(&mut self) {
        if self.used > 0 {
            self.input = self.input.split_off(self.used);
            (self.searched, self.used) = (self.searched - self.used, 0);
        }
    }

    fn reply(&mut self, outcome: Result<Value, String>) {
        let value = match outcome {
            Ok(value) => json!({ "ok": value }),
            Err(why) => json!({ "error": why }),
        };
        self.line_out(&value);
    }

    fn line_out(&mut self, value: &Value) {
        self.output.extend_from_slice(value.to_string().as_bytes());
        self.output.push(b'\n');
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        while self.owes() {
            match self.channel.transmit(&self.output[self.sent..])? {
                0 => return Ok(()),
                count => self.sent += count,
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(())
    }

    fn closed(&self) -> Result<(), ChannelError> {
        Err(ChannelError::Closed(self.channel.peer().to_string()))
    }
}

#[cfg(test)]
mod tests;
