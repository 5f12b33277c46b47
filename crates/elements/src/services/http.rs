//! Protocol agent for HTTP: accepts programs, and serves their status and the element's data.
//!
//! ```text
//! POST /program?name=NAME      a program in place of the one that runs; 422 and all problems if it is rejected
//! POST /check?name=NAME        all problems of a program, without running it
//! POST /roll-back              the previous program again
//! GET  /program                the running program, as XML
//! GET  /counters /agents /about            as on the control socket, JSON
//! GET  /components/INSTANCE/PATH           value of a component
//! ```
//!
//! The server implements the part of RFC 9112 that this needs: bodies with a length, one request
//! after the other on a connection. `httparse` parses the heads.
//!
//! Invariants:
//! - Nothing blocks. One turn processes at most [`REQUESTS_A_TURN`] requests, and at most
//!   [`REQUESTS_A_TURN_OF_ONE`] of one client. Further requests wait for the next turn.
//! - A client costs at most [`HEAD_BYTES_MAX`], a body of [`BODY_BYTES_MAX`], one read and one
//!   reply beyond [`OUTPUT_BYTES`]. Every byte is copied a bounded number of times.
//! - A head must be complete within [`HEAD_TIME_MAX`] after the server began to wait for it or
//!   after its first byte.
//! - The server closes a connection after [`SILENCE_MAX`] without data from the client.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use channel::admission::{AdmissionCounters, AdmissionResult, AdmittedConnection};
use channel::{Channel, ChannelError, ConnectionLimits, Listener, Progress, Url};
use packet::time::Nanos;
use serde_json::Value;

use crate::control::request::Resource;
use crate::control::{Request, RequestHandler, RequestOutcome};

mod request;
pub mod site;

use request::asked;
use site::ServerNames;

/// Maximum bytes of a request's head.
pub const HEAD_BYTES_MAX: usize = 16 << 10;
/// Maximum bytes of a program.
pub const BODY_BYTES_MAX: usize = progfe::xml::TEXT_BYTES_MAX;
/// Default limits of concurrent connections. A new connection replaces an idle one.
pub const CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 16, per_source: 8 };
/// Time without received data after which a connection is closed.
pub const SILENCE_MAX: Nanos = Nanos::from_secs(30);
/// Time within which the head of a request must be complete.
pub const HEAD_TIME_MAX: Nanos = Nanos::from_secs(2);
/// Requests that are answered in one turn.
pub const REQUESTS_A_TURN: usize = 32;
/// Requests of one client that are answered in one turn.
pub const REQUESTS_A_TURN_OF_ONE: usize = 8;
/// Bytes of unread replies above which the client's next request waits.
const OUTPUT_BYTES: usize = 64 << 10;
/// Connections that are accepted in one turn.
const ACCEPTS_A_TURN: usize = 16;
/// Retry interval for a client that does not read its reply.
const OWED_RETRY: Nanos = Nanos::from_millis(1);
/// Maximum number of headers of a request.
const HEADERS_MAX: usize = 64;
/// Bytes of one read.
pub const READ_BYTES: usize = 64 << 10;

/// Address and access control of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// Address on which the server listens.
    pub address: SocketAddr,
    /// Bearer token that requests must send in `Authorization`, if any.
    pub token: Option<String>,
    /// Names of this server in addition to its addresses and `localhost`.
    pub names: Vec<String>,
    /// Limits of concurrent connections.
    pub limits: ConnectionLimits,
    /// Whether other hosts may connect although there is no token.
    pub is_insecure: bool,
}

/// The listening socket and its clients.
pub struct Http {
    listener: Listener,
    access: Access,
    limits: ConnectionLimits,
    clients: Vec<Client>,
    counters: AdmissionCounters,
    buffer: Vec<u8>,
}

/// Access control of requests.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Bearer token that requests must send in `Authorization`, if any.
    pub token: Option<String>,
    /// Names of this server.
    pub names: ServerNames,
}

/// A client of the server, over any channel.
pub struct Client {
    channel: Box<dyn Channel>,
    input: Vec<u8>,
    /// Bytes of `input` that were processed.
    used: usize,
    /// Whether `input` may hold a complete request after those bytes.
    has_unread: bool,
    output: Vec<u8>,
    sent: usize,
    heard: Nanos,
    /// Start of the time limit for the first head, or for a partially received one.
    head_since: Option<Nanos>,
    /// Number of the connection on this server.
    number: u64,
    /// Whether the client has sent a complete head.
    has_spoken: bool,
    /// The request in progress.
    asked: Option<Request>,
    /// Whether `100 Continue` was sent for a body.
    continued: bool,
    /// Whether the connection closes after this response.
    closing: bool,
}

/// A response.
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Http {
    /// Listens on the address of a valid configuration.
    pub fn open(config: &HttpConfig) -> Result<Http, ChannelError> {
        let url = Url::PassiveTcp(config.address);
        let listener = Listener::open(&url)?;
        let names = ServerNames::new(config.names.clone());
        let access = Access { token: config.token.clone(), names };
        let (clients, buffer) = (Vec::new(), vec![0; READ_BYTES]);
        let counters = AdmissionCounters::default();
        Ok(Http { listener, access, limits: config.limits, clients, counters, buffer })
    }

    /// Connection counters since the socket was opened.
    pub fn counters(&self) -> AdmissionCounters {
        self.counters
    }

    /// Returns the address on which the server listens, with the port that the system chose.
    pub fn address(&self) -> &Url {
        self.listener.address()
    }

    /// Whether other hosts can connect without authentication.
    pub fn accepts_anyone(&self) -> bool {
        self.access.token.is_none() && self.address().accepts_anyone(false)
    }

    /// Accepts clients and processes their requests, up to the limits per turn.
    pub fn turn(&mut self, now: Nanos, carry: RequestHandler<'_>) {
        for _ in 0..ACCEPTS_A_TURN {
            let Ok(Some(channel)) = self.listener.accept() else { break };
            self.admit(channel, now);
        }
        let mut requests_left = REQUESTS_A_TURN;
        let (access, buffer) = (&self.access, &mut self.buffer);
        self.clients.retain_mut(|client| {
            client.turn(now, buffer, access, &mut requests_left, carry).is_ok()
        });
        // The next turn begins with another client.
        if !self.clients.is_empty() {
            self.clients.rotate_left(1);
        }
    }

    /// Admits a connection if there is room or an idle connection to replace.
    fn admit(&mut self, channel: Box<dyn Channel>, now: Nanos) {
        let held = |(id, client): (usize, &Client)| AdmittedConnection {
            id,
            source: client.channel.source(),
            pending: client.pending(),
        };
        let all: Vec<AdmittedConnection> = self.clients.iter().enumerate().map(held).collect();
        let room = self.limits.room_for(&all, channel.source());
        self.counters.count(room);
        match room {
            AdmissionResult::Free => {}
            AdmissionResult::InsteadOf(at) => drop(self.clients.swap_remove(at)),
            AdmissionResult::Refused(_) => return,
        }
        let mut client = Client::new(channel, now);
        client.number = self.counters.admitted;
        self.clients.push(client);
    }

    /// Returns the descriptors to poll for reading. Clients with unsent responses are left out.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        let hears = |client: &&Client| !client.is_busy();
        let clients = self.clients.iter().filter(hears);
        let clients = clients.filter_map(|client| client.channel.descriptor());
        std::iter::once(self.listener.descriptor()).chain(clients)
    }

    /// Returns the time of the next work that does not depend on received data.
    pub fn due(&self, now: Nanos) -> Option<Nanos> {
        self.clients.iter().map(|client| client.due(now)).min()
    }
}

impl Client {
    /// Creates a client that has not sent anything yet.
    pub fn new(channel: Box<dyn Channel>, heard: Nanos) -> Client {
        Client {
            channel,
            input: Vec::new(),
            used: 0,
            has_unread: false,
            output: Vec::new(),
            sent: 0,
            heard,
            head_since: Some(heard),
            number: 0,
            has_spoken: false,
            asked: None,
            continued: false,
            closing: false,
        }
    }

    fn owes(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Whether nothing more is received for now.
    fn is_busy(&self) -> bool {
        self.owes() || self.asked.is_some() || self.has_unread
    }

    /// Returns the client's state for the connection limits. Idle connections are pending, those
    /// without any request first.
    fn pending(&self) -> Option<(Progress, u64)> {
        let progress = if self.has_spoken { Progress::Open } else { Progress::Silent };
        (!self.is_busy()).then_some((progress, self.number))
    }

    fn due(&self, now: Nanos) -> Nanos {
        match self.owes() || self.asked.is_some() {
            true => now.saturating_add(OWED_RETRY),
            false => self.deadline().unwrap_or(now),
        }
    }

    /// Returns when the connection is closed if the client neither sends nor reads. A client that
    /// waits for the server has no deadline.
    fn deadline(&self) -> Option<Nanos> {
        let silent = self.heard.saturating_add(SILENCE_MAX);
        let head = self.head_since.map(|since| since.saturating_add(HEAD_TIME_MAX));
        match self.is_busy() {
            true => self.owes().then_some(silent),
            false => Some(head.map_or(silent, |head| head.min(silent))),
        }
    }

    /// Reads, processes and writes once, up to `requests_left` requests. An error ends the
    /// connection; it needs no message.
    #[allow(clippy::result_unit_err, reason = "a closed connection is not reported")]
    pub fn turn(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        access: &Access,
        requests_left: &mut usize,
        carry: RequestHandler<'_>,
    ) -> Result<(), ()> {
        let mut own_left = REQUESTS_A_TURN_OF_ONE.min(*requests_left);
        let before = own_left;
        let outcome = self.work(now, buffer, access, &mut own_left, carry);
        *requests_left -= before - own_left;
        outcome
    }

    fn work(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        access: &Access,
        requests_left: &mut usize,
        carry: RequestHandler<'_>,
    ) -> Result<(), ()> {
        self.flush()?;
        if let Some(asked) = self.asked.take() {
            self.heard = now;
            self.carry(asked, carry);
        }
        self.answer_waiting(now, access, requests_left, carry)?;
        if !self.is_busy() {
            if self.closing {
                return Err(());
            }
            let count = self.channel.receive(buffer).map_err(drop)?;
            if count > 0 {
                self.heard = now;
                if self.used > 0 {
                    // This also frees the memory of a large body.
                    self.input = self.input.split_off(self.used);
                    self.used = 0;
                }
                self.input.extend_from_slice(&buffer[..count]);
                self.has_unread = true;
                self.head_since.get_or_insert(now);
                self.answer_waiting(now, access, requests_left, carry)?;
            }
        }
        if self.deadline().is_some_and(|deadline| now >= deadline) { Err(()) } else { Ok(()) }
    }

    /// Processes received requests while this turn has requests left and the client reads its
    /// responses.
    fn answer_waiting(
        &mut self,
        now: Nanos,
        access: &Access,
        requests_left: &mut usize,
        carry: RequestHandler<'_>,
    ) -> Result<(), ()> {
        while self.has_unread && self.asked.is_none() && *requests_left > 0 {
            if self.output.len() >= OUTPUT_BYTES {
                self.flush()?;
                if self.owes() {
                    break;
                }
            }
            match self.next_request(access) {
                ParseResult::Incomplete => self.has_unread = false,
                ParseResult::Request(request) => {
                    *requests_left -= 1;
                    (self.has_spoken, self.head_since) = (true, None);
                    match request {
                        Ok(request) => self.carry(request, carry),
                        Err(answer) => answer.write(self.closing, &mut self.output),
                    }
                    if self.closing {
                        (self.input, self.used) = (Vec::new(), 0);
                    }
                    self.has_unread = self.used < self.input.len();
                    if self.has_unread {
                        self.head_since = Some(now);
                    }
                }
            }
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), ()> {
        while self.owes() {
            match self.channel.transmit(&self.output[self.sent..]).map_err(drop)? {
                0 => return Ok(()),
                count => self.sent += count,
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(())
    }

    /// Processes a request, or keeps it until it can be processed.
    fn carry(&mut self, request: Request, carry: RequestHandler<'_>) {
        let kind = Kind::of(&request);
        match carry(request) {
            RequestOutcome::Later(request) => self.asked = Some(request),
            RequestOutcome::Now(outcome) => {
                kind.answer(outcome).write(self.closing, &mut self.output)
            }
        }
    }

    /// Parses the request at the front of the input.
    fn next_request(&mut self, access: &Access) -> ParseResult {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Request::new(&mut headers);
        let input = &self.input[self.used..];
        let request = match head.parse(input) {
            Err(error) => Err(Answer::of("400 Bad Request", error.to_string())),
            Ok(httparse::Status::Partial) if input.len() > HEAD_BYTES_MAX => {
                let what = format!("header fields too long: at most {HEAD_BYTES_MAX} bytes");
                Err(Answer::of("431 Request Header Fields Too Large", what))
            }
            Ok(httparse::Status::Partial) => return ParseResult::Incomplete,
            Ok(httparse::Status::Complete(body_at)) => {
                match asked(&head, &access.names, access.token.as_deref()) {
                    Err(answer) => Err(answer),
                    Ok(asked) => {
                        (self.has_spoken, self.head_since) = (true, None);
                        let Some(body) = input[body_at..].get(..asked.body_bytes) else {
                            if asked.expects && !std::mem::replace(&mut self.continued, true) {
                                self.output.extend(b"HTTP/1.1 100 Continue\r\n\r\n");
                            }
                            return ParseResult::Incomplete;
                        };
                        let request = asked.request(body);
                        self.continued = false;
                        self.closing |= asked.closes;
                        self.used += body_at + asked.body_bytes;
                        return ParseResult::Request(request);
                    }
                }
            }
        };
        // The end of an unread body is unknown, so the connection must close.
        ParseResult::Request(request.map_err(|answer| self.last(answer)))
    }

    fn last(&mut self, answer: Answer) -> Answer {
        self.closing = true;
        answer
    }
}

/// Result of parsing a client's input.
enum ParseResult {
    /// No complete request.
    Incomplete,
    /// A request, or the response to a rejected one.
    Request(Result<Request, Answer>),
}

/// Format of a response.
enum Kind {
    Xml,
    Component,
    Other,
}

impl Kind {
    fn of(request: &Request) -> Kind {
        match request {
            Request::Get(Resource::Program) => Kind::Xml,
            Request::GetComponent(_) => Kind::Component,
            _ => Kind::Other,
        }
    }

    fn answer(&self, outcome: Result<Value, String>) -> Answer {
        match outcome {
            Ok(value) if matches!(self, Kind::Xml) => {
                let body = value["text"].as_str().unwrap_or_default().to_owned();
                Answer { status: "200 OK", kind: "application/xml", body }
            }
            Ok(value) => {
                Answer { status: "200 OK", kind: "application/json", body: format!("{value}\n") }
            }
            Err(why) if matches!(self, Kind::Component) => Answer::of("404 Not Found", why),
            Err(why) => Answer::of("422 Unprocessable Content", why),
        }
    }
}

impl Answer {
    fn of(status: &'static str, body: impl Into<String>) -> Answer {
        let mut body = body.into();
        body.push('\n');
        Answer { status, kind: "text/plain; charset=utf-8", body }
    }

    fn write(&self, closes: bool, out: &mut Vec<u8>) {
        let connection = if closes { "close" } else { "keep-alive" };
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
            self.status,
            self.kind,
            self.body.len()
        );
        out.extend(head.as_bytes());
        out.extend(self.body.as_bytes());
    }
}

#[cfg(test)]
mod tests;
