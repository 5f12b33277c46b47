//! Control socket: JSON requests and replies, one per line.
//!
//! The program that starts the process (the lab, a script, a user with `socat`) configures and
//! reads the node here, for every data plane: counters, addresses, routes. `Request` lists the
//! requests. A reply is `{"ok": ...}` or `{"error": "..."}`, in the order of the requests. Clients
//! that sent `Watch` also receive events as `{"event": ...}` between replies. If they did not read
//! fast enough, they receive `{"events_lost": N}`.
//!
//! Invariants:
//! - The server reads nothing from a client that does not read its replies. A client therefore
//!   costs at most one request, one read, one reply and [`EVENT_BYTES_MAX`] of events. There are at
//!   most [`CONNECTIONS`] clients.
//! - A turn has a [`Budget`], which the clients share. Long lists are read, added and sent in
//!   parts. A list reply has every entry that exists from the first part to the last, exactly once.
//! - A turn processes at most [`REQUESTS_A_TURN`] requests of each client, and sends it little more
//!   than [`SENT_A_TURN`] bytes.

use std::os::fd::RawFd;

use channel::admission::{AdmissionCounters, AdmissionResult, AdmittedConnection};
use channel::{Channel, ChannelError, ConnectionLimits, Listener, Progress, Url};
use packet::time::Nanos;
use serde_json::{Value, json};

use crate::budget::Budget;

pub mod request;
pub mod answer;
pub mod reader;
pub mod task;

use reader::{ReadResult, Reader};
pub use request::Request;
pub use task::{Task, TaskOutcome};

/// Outcome of processing a request.
pub enum RequestOutcome {
    /// The result, or the error.
    Now(Result<Value, String>),
    /// No result yet: the caller must process this request again later.
    Later(Request),
}

/// Callback that processes a request.
pub type RequestHandler<'a> = &'a mut dyn FnMut(Request) -> RequestOutcome;

/// Callback that processes one part of a request.
pub type TaskHandler<'a> = &'a mut dyn FnMut(Task, &mut Budget<'_>) -> TaskOutcome;

/// Limits of concurrent connections. A further connection replaces one that has not sent a request,
/// or is closed.
pub const CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 16, per_source: 8 };
/// Connections that are accepted in one turn.
const ACCEPTS_A_TURN: usize = 16;
/// Requests of one client that are answered in one turn.
pub const REQUESTS_A_TURN: usize = 16;
/// Maximum length of a request: enough for 128K routes.
pub const LINE_BYTES_MAX: usize = 16 << 20;
/// Retry interval for a client that does not read its reply.
const OWED_RETRY: Nanos = Nanos::from_millis(1);
/// Maximum bytes of events that are queued for one client.
pub const EVENT_BYTES_MAX: usize = 256 << 10;
/// Bytes after which the rest of a client's reply waits for the next turn.
pub const SENT_A_TURN: usize = 256 << 10;
/// Bytes that are read from one client in one turn.
const READ_BYTES: usize = 64 << 10;

/// The listening socket and its clients.
pub struct Control {
    listener: Listener,
    clients: Vec<Client>,
    counters: AdmissionCounters,
    buffer: Vec<u8>,
}

struct Client {
    channel: Box<dyn Channel>,
    /// Number of the connection on this socket.
    number: u64,
    /// Whether the client has sent a request.
    has_spoken: bool,
    /// Received bytes.
    input: Reader,
    /// Whether `input` may hold a complete request that has not been processed.
    has_unread: bool,
    output: Vec<u8>,
    sent: usize,
    /// The request in progress.
    asked: Option<Task>,
    /// Rows written so far of the list reply in progress.
    rows: Option<usize>,
    /// Whether the client receives events, and how many were dropped since the last one it
    /// received.
    watches: bool,
    events_lost: u64,
    /// Whether to stop reading, send the remaining output and then close the connection.
    closing: bool,
}

impl Control {
    /// Listens on a Unix socket file. Replaces a file that a dead process left.
    pub fn open(path: &std::path::Path) -> Result<Self, ChannelError> {
        let listener = Listener::open(&Url::PassiveUnix(path.to_path_buf()))?;
        let (counters, buffer) = (AdmissionCounters::default(), vec![0; READ_BYTES]);
        Ok(Control { listener, clients: Vec::new(), counters, buffer })
    }

    /// Connection counters since the socket was opened.
    pub fn counters(&self) -> AdmissionCounters {
        self.counters
    }

    /// Accepts clients and processes their requests, up to the budget and the limits per turn.
    /// Returns the number of requests answered.
    pub fn turn(&mut self, mut budget: Budget<'_>, carry: TaskHandler<'_>) -> usize {
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

    /// Admits a connection if the limits allow it.
    fn admit(&mut self, channel: Box<dyn Channel>) {
        let held = |(id, client): (usize, &Client)| AdmittedConnection {
            id,
            source: client.channel.source(),
            pending: (!client.has_spoken).then_some((Progress::Silent, client.number)),
        };
        let all: Vec<AdmittedConnection> = self.clients.iter().enumerate().map(held).collect();
        let room = CONNECTIONS.room_for(&all, channel.source());
        self.counters.count(room);
        match room {
            AdmissionResult::Free => {}
            AdmissionResult::InsteadOf(at) => drop(self.clients.remove(at)),
            AdmissionResult::Refused(_) => return,
        }
        self.clients.push(Client::new(channel, self.counters.admitted));
    }

    /// Sends an event to every client that watches.
    pub fn tell(&mut self, event: &Value) {
        let watching = self.clients.iter_mut().filter(|client| client.watches);
        watching.for_each(|client| client.tell(event));
    }

    /// Returns the descriptors to poll for reading. Clients with unsent replies are left out.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        let readable =
            |client: &&Client| !client.owes() && client.asked.is_none() && !client.has_unread;
        let clients = self.clients.iter().filter(readable);
        let clients = clients.filter_map(|client| client.channel.descriptor());
        std::iter::once(self.listener.descriptor()).chain(clients)
    }

    /// Returns when work is due without new input: requests are left, or a client has unsent
    /// replies.
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
        // An event cannot interrupt a list.
        if self.output.len() - self.sent >= EVENT_BYTES_MAX || self.rows.is_some() {
            self.events_lost += 1;
            return;
        }
        if let lost @ 1.. = std::mem::take(&mut self.events_lost) {
            self.line_out(&json!({ "events_lost": lost }));
        }
        self.line_out(event);
        // The client's next turn detects a closed connection.
        let _ = self.flush();
    }

    fn owes(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Reads, processes and writes once. An error ends the connection.
    fn turn(
        &mut self,
        buffer: &mut [u8],
        budget: &mut Budget<'_>,
        carry: TaskHandler<'_>,
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

    /// Processes received requests while the client reads its replies, no task is in progress, and
    /// this turn has requests and budget left.
    fn read(
        &mut self,
        left: &mut usize,
        budget: &mut Budget<'_>,
        carry: TaskHandler<'_>,
        answered: &mut usize,
    ) -> Result<(), ChannelError> {
        while self.has_unread && self.asked.is_none() && !self.owes() && *left > 0 {
            match self.input.next(budget) {
                ReadResult::Incomplete => self.has_unread = false,
                ReadResult::Spent => break,
                ReadResult::TooLong => {
                    let why = format!("request too long: at most {LINE_BYTES_MAX} bytes");
                    self.reply(Err(why));
                    (self.closing, self.has_unread) = (true, false);
                }
                ReadResult::Request(request) => {
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

    /// Processes a task up to the budget, and keeps the rest of it.
    fn carry(
        &mut self,
        task: Task,
        budget: &mut Budget<'_>,
        carry: TaskHandler<'_>,
        answered: &mut usize,
    ) {
        let is_watch = matches!(task, Task::Whole(Request::Watch(_)));
        match carry(task, budget) {
            TaskOutcome::Later(task) => self.asked = Some(task),
            TaskOutcome::Rows(rows, rest) => {
                self.rows_out(&rows, rest.is_none());
                *answered += usize::from(rest.is_none());
                self.asked = rest;
            }
            TaskOutcome::Done(outcome) => {
                self.watches |= is_watch && outcome.is_ok();
                self.reply(outcome);
                *answered += 1;
            }
        }
    }

    /// Writes rows of a list reply.
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
