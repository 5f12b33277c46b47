//! The control socket: one line of JSON asks or orders, one line of JSON answers.
//!
//! Who starts the process (the lab, a script, a person with `socat`) programs and reads it here,
//! whatever it forwards by: counters, addresses, routes. See `Request` for what can be asked.
//! An answer is `{"ok": ...}` or `{"error": "..."}`, in the order of the requests. Who asks to watch is told
//! events as `{"event": ...}` between them, and by `{"events_lost": N}` that it did not read fast enough.
//!
//! Invariant: a client that does not read its answers is not read from either, so a client costs
//! at most one request, one answer and [`EVENT_BYTES_MAX`] of events, and there are at most `CLIENTS_MAX`
//! of them.

use std::os::fd::RawFd;

use packet::time::Nanos;
use ports::channel::{Channel, ChannelError, Listener, Url};
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

/// Most connections at once; one more is closed at once.
pub const CLIENTS_MAX: usize = 8;
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
    buffer: Vec<u8>,
}

struct Client {
    channel: Box<dyn Channel>,
    /// Bytes read and not used up.
    input: Vec<u8>,
    /// How many of them are known to hold no line's end.
    searched: usize,
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
        Ok(Control { listener, clients: Vec::new(), buffer: vec![0; READ_BYTES] })
    }

    /// Accepts clients, and answers the requests that they sent. Returns how many were answered.
    pub fn turn(&mut self, answer: Carry<'_>) -> usize {
        while let Ok(Some(channel)) = self.listener.accept() {
            if self.clients.len() < CLIENTS_MAX {
                self.clients.push(Client::new(channel));
            }
        }
        let mut answered = 0;
        let buffer = &mut self.buffer;
        self.clients.retain_mut(|client| client.turn(buffer, answer, &mut answered).is_ok());
        answered
    }

    /// Tells an event to who watches.
    pub fn tell(&mut self, event: &Value) {
        let watching = self.clients.iter_mut().filter(|client| client.watches);
        watching.for_each(|client| client.tell(event));
    }

    /// The descriptors to wait for until readable: clients that owe us reading are left out.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        let readable = |client: &&Client| !client.owes() && client.asked.is_none();
        let clients = self.clients.iter().filter(readable);
        let clients = clients.filter_map(|client| client.channel.descriptor());
        std::iter::once(self.listener.descriptor()).chain(clients)
    }

    /// When a client that owes us reading is tried again.
    pub fn next_event(&self, now: Nanos) -> Option<Nanos> {
        let waits = |client: &Client| client.owes() || client.asked.is_some();
        self.clients.iter().any(waits).then(|| now.saturating_add(OWED_RETRY))
    }
}

impl Client {
    fn new(channel: Box<dyn Channel>) -> Self {
        let (input, output) = (Vec::new(), Vec::new());
        let (watches, events_lost) = (false, 0);
        let (searched, sent, closing) = (0, 0, false);
        let asked = None;
        Client { channel, input, searched, output, sent, asked, watches, events_lost, closing }
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
        if let Some(asked) = self.asked.take() {
            self.carry(asked, answer, answered);
            self.flush()?;
            self.read(answer, answered)?;
            if self.asked.is_some() || self.owes() {
                return Ok(());
            }
        }
        let count = self.channel.receive(buffer)?;
        self.input.extend_from_slice(&buffer[..count]);
        self.read(answer, answered)?;
        if self.input.len() > LINE_BYTES_MAX && self.searched > LINE_BYTES_MAX {
            self.reply(Err(format!("a request has at most {LINE_BYTES_MAX} bytes")));
            self.closing = true;
            self.flush()?;
        }
        Ok(())
    }

    /// Answers what was asked, as far as the client reads its answers and nothing takes its time.
    fn read(&mut self, answer: Carry<'_>, answered: &mut usize) -> Result<(), ChannelError> {
        while self.asked.is_none() && !self.owes() {
            let Some(line) = self.line() else { break };
            match Request::read(&line) {
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

    /// The next whole line, without its end.
    fn line(&mut self) -> Option<Vec<u8>> {
        match self.input[self.searched..].iter().position(|&byte| byte == b'\n') {
            Some(at) => {
                let rest = self.input.split_off(self.searched + at + 1);
                let mut line = std::mem::replace(&mut self.input, rest);
                self.searched = 0;
                line.pop();
                Some(line)
            }
            None => {
                self.searched = self.input.len();
                None
            }
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
