//! The Protocol Agent for HTTP: programs in, their status and what the element knows out.
//!
//! ```text
//! POST /program?name=NAME      a program in place of the one that runs; 422 and all problems if it is refused
//! POST /check?name=NAME        all problems of a program, which is not run
//! POST /roll-back              the program before the last one again
//! GET  /program                the program that runs, as XML
//! GET  /counters /agents /about            as the control socket has them, JSON
//! GET  /components/INSTANCE/PATH           what a component holds
//! ```
//!
//! RFC 9112 as far as that needs it: bodies with a length, one request after the other on a connection. The
//! heads are read by `httparse`. Invariant: nothing waits here; a client costs at most [`HEAD_BYTES_MAX`], a body of
//! [`BODY_BYTES_MAX`] and one answer, there are [`CLIENTS_MAX`] of them, and who is silent for
//! [`SILENCE_MAX`] is gone.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use packet::time::Nanos;
use ports::channel::{Channel, ChannelError, Listener, Url};
use serde_json::Value;

use crate::control::request::{ComponentAt, Document, Nothing, What};
use crate::control::{Answered, Carry, Request};

/// Bytes of a request's head.
pub const HEAD_BYTES_MAX: usize = 16 << 10;
/// Bytes of a program.
pub const BODY_BYTES_MAX: usize = progfe::xml::TEXT_BYTES_MAX;
/// Clients at once; one more is closed at once.
pub const CLIENTS_MAX: usize = 16;
/// Time without a byte after which a client is closed.
pub const SILENCE_MAX: Nanos = Nanos::from_secs(30);
/// A client that does not read its answer is tried again after this long.
const OWED_RETRY: Nanos = Nanos::from_millis(1);
/// Headers of a request.
const HEADERS_MAX: usize = 64;
const READ_BYTES: usize = 64 << 10;

/// Where it listens, and who may ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// The address.
    pub address: SocketAddr,
    /// What a request has to show as `Authorization: Bearer TOKEN`, if anything.
    pub token: Option<String>,
}

/// The socket and its clients.
pub struct Http {
    listener: Listener,
    token: Option<String>,
    clients: Vec<Client>,
    buffer: Vec<u8>,
}

/// A client of the server, however its channel came about.
pub struct Client {
    channel: Box<dyn Channel>,
    input: Vec<u8>,
    output: Vec<u8>,
    sent: usize,
    heard: Nanos,
    /// What it asked and is not done yet.
    asked: Option<Request>,
    /// Whether it was told to go on with a body.
    continued: bool,
    /// The answer is the last.
    closing: bool,
}

/// An answer.
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Http {
    /// Listens.
    pub fn open(config: &HttpConfig) -> Result<Http, ChannelError> {
        let listener = Listener::open(&Url::PassiveTcp(config.address))?;
        let token = config.token.clone();
        Ok(Http { listener, token, clients: Vec::new(), buffer: vec![0; READ_BYTES] })
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> &Url {
        self.listener.address()
    }

    /// Accepts clients and answers what they asked.
    pub fn turn(&mut self, now: Nanos, carry: Carry<'_>) {
        while let Ok(Some(channel)) = self.listener.accept() {
            if self.clients.len() < CLIENTS_MAX {
                self.clients.push(Client::new(channel, now));
            }
        }
        let (token, buffer) = (self.token.as_deref(), &mut self.buffer);
        self.clients.retain_mut(|client| client.turn(now, buffer, token, carry).is_ok());
    }

    /// The descriptors to wait for until readable: clients that owe us reading are left out.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        let hears = |client: &&Client| !client.owes() && client.asked.is_none();
        let clients = self.clients.iter().filter(hears);
        let clients = clients.filter_map(|client| client.channel.descriptor());
        std::iter::once(self.listener.descriptor()).chain(clients)
    }

    /// When there is something to do although nothing comes.
    pub fn due(&self, now: Nanos) -> Option<Nanos> {
        let due = |client: &Client| match client.owes() || client.asked.is_some() {
            true => now.saturating_add(OWED_RETRY),
            false => client.heard.saturating_add(SILENCE_MAX),
        };
        self.clients.iter().map(due).min()
    }
}

impl Client {
    /// One that has not said anything yet.
    pub fn new(channel: Box<dyn Channel>, heard: Nanos) -> Client {
        let (input, output) = (Vec::new(), Vec::new());
        let (asked, continued, closing) = (None, false, false);
        Client { channel, input, output, sent: 0, heard, asked, continued, closing }
    }

    fn owes(&self) -> bool {
        self.sent < self.output.len()
    }

    /// One round of read, answer, write. An error ends the connection, of which there is nothing to say.
    #[allow(clippy::result_unit_err, reason = "nobody is told why a client is gone")]
    pub fn turn(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        token: Option<&str>,
        carry: Carry<'_>,
    ) -> Result<(), ()> {
        self.flush()?;
        if let Some(asked) = self.asked.take() {
            self.heard = now;
            self.carry(asked, carry);
            if self.asked.is_none() {
                self.read(token, carry);
            }
            self.flush()?;
        }
        if !self.owes() && self.asked.is_none() {
            if self.closing {
                return Err(());
            }
            let count = self.channel.receive(buffer).map_err(drop)?;
            if count > 0 {
                self.heard = now;
                self.input.extend_from_slice(&buffer[..count]);
                self.read(token, carry);
                self.flush()?;
            }
        }
        if now.since(self.heard) >= SILENCE_MAX { Err(()) } else { Ok(()) }
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

    /// Has a request carried out, or keeps it until it is.
    fn carry(&mut self, request: Request, carry: Carry<'_>) {
        let kind = Kind::of(&request);
        match carry(request) {
            Answered::Later(request) => self.asked = Some(request),
            Answered::Now(outcome) => kind.answer(outcome).write(self.closing, &mut self.output),
        }
    }

    /// Answers the request at the front of what came, if it is whole.
    fn read(&mut self, token: Option<&str>, carry: Carry<'_>) {
        if self.input.is_empty() {
            return;
        }
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Request::new(&mut headers);
        let input = std::mem::take(&mut self.input);
        let (request, used) = match head.parse(&input) {
            Err(error) => (Err(self.last(Answer::of("400 Bad Request", error.to_string()))), 0),
            Ok(httparse::Status::Partial) if input.len() > HEAD_BYTES_MAX => {
                let what = format!("a head has at most {HEAD_BYTES_MAX} bytes");
                (Err(self.last(Answer::of("431 Request Header Fields Too Large", what))), 0)
            }
            Ok(httparse::Status::Partial) => {
                self.input = input;
                return;
            }
            Ok(httparse::Status::Complete(body_at)) => match asked(&head, token) {
                // Whose body is not read cannot be understood any further.
                Err(answer) => (Err(self.last(answer)), 0),
                Ok(asked) => {
                    let Some(body) = input[body_at..].get(..asked.body_bytes) else {
                        if asked.expects && !std::mem::replace(&mut self.continued, true) {
                            self.output.extend(b"HTTP/1.1 100 Continue\r\n\r\n");
                        }
                        self.input = input;
                        return;
                    };
                    self.continued = false;
                    self.closing |= asked.closes;
                    (asked.request(body), body_at + asked.body_bytes)
                }
            },
        };
        self.input = if self.closing { Vec::new() } else { input[used..].to_vec() };
        match request {
            Ok(request) => self.carry(request, carry),
            Err(answer) => answer.write(self.closing, &mut self.output),
        }
        if !self.closing && self.asked.is_none() && self.output.len() < BODY_BYTES_MAX {
            self.read(token, carry);
        }
    }

    fn last(&mut self, answer: Answer) -> Answer {
        self.closing = true;
        answer
    }
}

/// What a request's head asks for.
struct Asked {
    is_post: bool,
    path: String,
    query: String,
    body_bytes: usize,
    expects: bool,
    closes: bool,
}

/// Understands a head, and refuses whoever may not ask.
fn asked(head: &httparse::Request<'_, '_>, token: Option<&str>) -> Result<Asked, Answer> {
    let value = |name: &str| {
        let found = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| std::str::from_utf8(header.value).unwrap_or("").trim())
    };
    let shown = value("authorization").and_then(|shown| shown.strip_prefix("Bearer "));
    match token {
        Some(token) if !shown.is_some_and(|shown| is_same(shown, token)) => {
            return Err(Answer::of(
                "401 Unauthorized",
                "show the token: Authorization: Bearer ...",
            ));
        }
        // A page of somebody else's in a browser on this host must not program the element.
        None if value("origin").is_some() => {
            return Err(Answer::of("403 Forbidden", "pages may ask only with a token"));
        }
        _ => {}
    }
    let is_post = match head.method {
        Some("GET") => false,
        Some("POST") => true,
        _ => return Err(Answer::of("405 Method Not Allowed", "GET and POST are answered")),
    };
    if value("transfer-encoding").is_some() {
        return Err(Answer::of("411 Length Required", "send the body with a Content-Length"));
    }
    let body_bytes = match value("content-length") {
        None => 0,
        Some(text) => match text.parse() {
            Ok(bytes) if bytes <= BODY_BYTES_MAX => bytes,
            Ok(_) => {
                let what = format!("a program has at most {BODY_BYTES_MAX} bytes");
                return Err(Answer::of("413 Content Too Large", what));
            }
            Err(_) => return Err(Answer::of("400 Bad Request", "Content-Length is no number")),
        },
    };
    let target = head.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_old = head.version == Some(0);
    let connection = value("connection").unwrap_or("");
    Ok(Asked {
        is_post,
        path: unescaped(path),
        query: query.to_owned(),
        body_bytes,
        expects: value("expect").is_some_and(|it| it.eq_ignore_ascii_case("100-continue")),
        closes: is_old || connection.eq_ignore_ascii_case("close"),
    })
}

impl Asked {
    fn request(&self, body: &[u8]) -> Result<Request, Answer> {
        let program = || {
            let text = String::from_utf8(body.to_vec())
                .map_err(|_| Answer::of("400 Bad Request", "the program is no UTF-8"))?;
            let name = self.query.split('&').find_map(|part| part.strip_prefix("name="));
            let name = unescaped(name.unwrap_or("program.fe.xml"));
            Ok(Document { name, text, number: None })
        };
        let path: Vec<&str> = self.path.trim_matches('/').split('/').collect();
        match (self.is_post, &path[..]) {
            (true, ["program"]) => program().map(Request::Load),
            (true, ["check"]) => program().map(Request::Check),
            (true, ["roll-back"]) => Ok(Request::RollBack(Nothing {})),
            (false, ["program"]) => Ok(Request::Get(What::Program)),
            (false, ["counters"]) => Ok(Request::Get(What::Counters)),
            (false, ["agents"]) => Ok(Request::Get(What::Agents)),
            (false, ["about"]) => Ok(Request::Get(What::About)),
            (false, ["components", instance, component @ ..]) if !component.is_empty() => {
                let (instance, path) = ((*instance).to_owned(), component.join("."));
                Ok(Request::GetComponent(ComponentAt { instance, path, value: String::new() }))
            }
            (true, ["counters" | "agents" | "about"]) | (false, ["check" | "roll-back"]) => {
                Err(Answer::of("405 Method Not Allowed", "this path takes the other method"))
            }
            _ => Err(Answer::of(
                "404 Not Found",
                "there are /program, /check, /roll-back, /counters, /agents, /about and \
                 /components/INSTANCE/PATH",
            )),
        }
    }
}

/// How an answer is written.
enum Kind {
    Xml,
    Component,
    Other,
}

impl Kind {
    fn of(request: &Request) -> Kind {
        match request {
            Request::Get(What::Program) => Kind::Xml,
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

/// Whether two texts are the same, without saying by the time it takes where they differ.
fn is_same(one: &str, other: &str) -> bool {
    let differing = one.bytes().zip(other.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && differing == 0
}

/// A part of a target with `%HH` as the bytes that they stand for.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
