//! The control socket: one line of JSON asks or orders, one line of JSON answers.
//!
//! Who starts the process (the lab, a script, a person with `socat`) programs and reads it here,
//! whatever it forwards by: counters, addresses, routes. See `Request` for what can be asked.
//! An answer is `{"ok": ...}` or `{"error": "..."}`, in the order of the requests. Who asks to watch is told
//! events as `{"event": ...}` between them, and by `{"events_lost": N}` that it did not read fast enough.
//!
//! Invariants:
//! - A client that does not read its answers is not read from either, so a client costs at most one request, one read,
//!   one answer and [`EVENT_BYTES_MAX`] of events, and there are at most [`CONNECTIONS`] of them.
//! - A turn has a [`Budget`], of which each client has a share. Long lists are read, added and sent a part at a time; a
//!   list that is sent has all entries that are there from the first part to the last, each once.
//! - A turn answers at most [`REQUESTS_A_TURN`] requests of each client, and sends it [`SENT_A_TURN`] bytes or little
//!   more.

use std::os::fd::RawFd;

use packet::time::Nanos;
use ports::channel::admission::{AdmissionCounters, Held, Room};
use ports::channel::{Channel, ChannelError, ConnectionLimits, Listener, Progress, Url};
use serde_json::{Value, json};

use crate::budget::Budget;

/// What can be asked.
pub mod request;
/// What is answered.
pub mod answer;
/// Requests in the bytes of a client.
pub mod reader;
/// Requests that are carried out a part at a time.
pub mod task;

use reader::{Found, Reader};
pub use request::Request;
pub use task::{Carried, Task};

/// What a request has brought.
pub enum Answered {
    /// An answer, or why there is none.
    Now(Result<Value, String>),
    /// Nothing yet: it is to be asked again.
    Later(Request),
}

/// How a request is carried out.
pub type Carry<'a> = &'a mut dyn FnMut(Request) -> Answered;

/// How a request is carried out a part at a time.
pub type CarryTask<'a> = &'a mut dyn FnMut(Task, &mut Budget<'_>) -> Carried;

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
/// Bytes after which the rest of a client's answer waits for the next turn.
pub const SENT_A_TURN: usize = 256 << 10;
/// Bytes that are read from one client in one turn.
const READ_BYTES: usize = 64 << 10;

/// The socket and its clients.
pub struct Control {
    listener: Listener,
    clients: Vec<Client>,
    counters: AdmissionCounters,
    buffer: Vec<u8>,
}

struct Client {
    channel: Box<dyn Channel>,
    /// Which connection of the socket it is.
    number: u64,
    /// Whether it has sent a request.
    has_spoken: bool,
    /// What it sent.
    input: Reader,
    /// Whether that may hold a whole request that has not been answered.
    has_unread: bool,
    output: Vec<u8>,
    sent: usize,
    /// What it asked and is not done yet.
    asked: Option<Task>,
    /// Rows that were written of the list that it asked for.
    rows: Option<usize>,
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
        let (counters, buffer) = (AdmissionCounters::default(), vec![0; READ_BYTES]);
        Ok(Control { listener, clients: Vec::new(), counters, buffer })
    }

    /// Connections since it was opened.
    pub fn counters(&self) -> AdmissionCounters {
        self.counters
    }

    /// Accepts clients, and answers the requests that they sent as far as the budget goes, as many of each as one turn
    /// may take. Returns how many were answered.
    pub fn turn(&mut self, mut budget: Budget<'_>, carry: CarryTask<'_>) -> usize {
        for _ in 0..ACCEPTS_A_TURN {
            let Ok(Some(channel)) = self.listener.accept() else { break };
            self.admit(channel);
        }
        let mut answered = 0;
        let buffer = &mut self.buffer;
        let mut to_serve = self.clients.len();
        self.clients.retain_mut(|client| {
            budget.begin_share(to_serve);
            to_serve -= 1;
            client.turn(buffer, &mut budget, carry, &mut answered).is_ok()
        });
        // The next turn begins with another client.
        if !self.clients.is_empty() {
            self.clients.rotate_left(1);
        }
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
        let room = CONNECTIONS.room_for(&all, channel.source());
        self.counters.count(room);
        match room {
            Room::Free => {}
            Room::InsteadOf(at) => drop(self.clients.remove(at)),
            Room::Refused(_) => return,
        }
        self.clients.push(Client::new(channel, self.counters.admitted));
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
        let due = |client: &Client| match &client.asked {
            _ if client.owes() => Some(now.saturating_add(OWED_RETRY)),
            Some(task) if task.waits() => Some(now.saturating_add(OWED_RETRY)),
            Some(_) => Some(now),
            None => client.has_unread.then_some(now),
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
            input: Reader::default(),
            has_unread: false,
            output: Vec::new(),
            sent: 0,
            asked: None,
            rows: None,
            watches: false,
            events_lost: 0,
            closing: false,
        }
    }

    fn tell(&mut self, event: &Value) {
        // An event cannot stand within a list.
        if self.output.len() - self.sent >= EVENT_BYTES_MAX || self.rows.is_some() {
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
        budget: &mut Budget<'_>,
        carry: CarryTask<'_>,
        answered: &mut usize,
    ) -> Result<(), ChannelError> {
        self.flush()?;
        if self.owes() || self.closing {
            return if self.owes() { Ok(()) } else { self.closed() };
        }
        let mut left = REQUESTS_A_TURN;
        if let Some(task) = self.asked.take() {
            self.carry(task, budget, carry, answered);
            self.flush()?;
        }
        self.read(&mut left, budget, carry, answered)?;
        if self.asked.is_some() || self.owes() || self.has_unread || self.closing {
            return Ok(());
        }
        let count = self.channel.receive(buffer)?;
        if count > 0 {
            self.input.add(&buffer[..count]);
            self.has_unread = true;
        }
        self.read(&mut left, budget, carry, answered)
    }

    /// Answers what was asked, as far as the client reads its answers, nothing takes its time, and this turn has
    /// requests and its budget left.
    fn read(
        &mut self,
        left: &mut usize,
        budget: &mut Budget<'_>,
        carry: CarryTask<'_>,
        answered: &mut usize,
    ) -> Result<(), ChannelError> {
        while self.has_unread && self.asked.is_none() && !self.owes() && *left > 0 {
            match self.input.next(budget) {
                Found::Incomplete => self.has_unread = false,
                Found::Spent => break,
                Found::TooLong => {
                    let why = format!("a request has at most {LINE_BYTES_MAX} bytes");
                    self.reply(Err(why));
                    (self.closing, self.has_unread) = (true, false);
                }
                Found::Request(request) => {
                    *left -= 1;
                    self.has_spoken = true;
                    match request {
                        Ok(request) => self.carry(request.into(), budget, carry, answered),
                        Err(why) => {
                            self.reply(Err(why));
                            *answered += 1;
                        }
                    }
                }
            }
            self.flush()?;
            if budget.is_spent() {
                break;
            }
        }
        Ok(())
    }

    /// Has a request carried out as far as the budget goes, and keeps what is left of it.
    fn carry(
        &mut self,
        task: Task,
        budget: &mut Budget<'_>,
        carry: CarryTask<'_>,
        answered: &mut usize,
    ) {
        let is_watch = matches!(task, Task::Whole(Request::Watch(_)));
        match carry(task, budget) {
            Carried::Later(task) => self.asked = Some(task),
            Carried::Rows(rows, rest) => {
                self.rows_out(&rows, rest.is_none());
                *answered += usize::from(rest.is_none());
                self.asked = rest;
            }
            Carried::Done(outcome) => {
                self.watches |= is_watch && outcome.is_ok();
                self.reply(outcome);
                *answered += 1;
            }
        }
    }

    /// Writes rows of the list that is the answer.
    fn rows_out(&mut self, rows: &[Value], is_end: bool) {
        let written = self.rows.get_or_insert_with(|| {
            self.output.extend_from_slice(b"{\"ok\":[");
            0
        });
        for row in rows {
            if *written > 0 {
                self.output.push(b',');
            }
            *written += 1;
            self.output.extend_from_slice(row.to_string().as_bytes());
        }
        if is_end {
            self.output.extend_from_slice(b"]}\n");
            self.rows = None;
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
        let end = self.sent + SENT_A_TURN;
        while self.owes() {
            match self.channel.transmit(&self.output[self.sent..])? {
                0 => return Ok(()),
                count => self.sent += count,
            }
            if self.owes() && self.sent >= end {
                return Ok(());
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
