//! One end of a control channel as a state machine, without I/O.
//!
//! Source: OpenFlow 1.0.0 section 4.5 (connection set-up, interruption) and 5.5 (hello, echo);
//! 1.3.1 section 6.3.1 (negotiation with bitmaps).
//!
//! A session sends a hello, negotiates a version and matches replies to requests. It replies to
//! echo requests, and sends its own when the peer is idle. It never blocks. The owner of the
//! connection calls, in this order:
//!
//! 1. `Session::receive` with received bytes,
//! 2. `Session::poll_event` until it returns `None`,
//! 3. `Session::tick` when `Session::next_timeout` is due,
//! 4. `Session::transmit`, and `Session::transmitted` with the number of bytes written.
//!
//! Memory is bounded for any peer: received bytes by `crate::frame::BUFFER_BYTES_MAX`, bytes to
//! send and pending requests by `Settings`. A session that cannot send its replies stops reading.

mod event;
mod negotiate;
mod pending;

use std::collections::VecDeque;

use packet::error::{Malformed, MalformedReason};
use packet::time::Nanos;

use crate::codec::{self, DecodeError, MessageExcerpt};
use crate::frame::Stream;
use crate::header::{Header, MESSAGE_BYTES_MAX, Xid};
use crate::model::message::{ErrorMessage, Hello, Message};
use crate::version::{End, ErrorCode, MessageKind, Version};

pub use event::{DownReason, Event, SendError, Settings};
pub use pending::AnsweredRequest;
use pending::PendingReply;

/// Bytes that the session's own replies may add to [`Settings::transmit_bytes_max`] before it stops
/// reading.
pub const ANSWER_BYTES_MAX: usize = 4 * (MESSAGE_BYTES_MAX + 1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The session has queued its hello and expects the peer's before the deadline.
    Greeting {
        deadline: Nanos,
    },
    Up {
        version: Version,
    },
    Down,
}

/// One end of a control channel.
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    state: State,
    stream: Stream,
    /// Bytes to send; the first `transmit_start` of them have been sent.
    transmit: Vec<u8>,
    transmit_start: usize,
    /// Events without a message of their own; at most one.
    event: VecDeque<Event>,
    pending: PendingReply,
    xid: Xid,
    now: Nanos,
    /// When the last byte arrived.
    heard_at: Nanos,
    /// When the session sent its unanswered echo request, if there is one.
    asked_at: Option<Nanos>,
}

impl Session {
    /// Creates a session on a new connection and queues its hello.
    pub fn new(settings: Settings, now: Nanos) -> Session {
        assert!(!settings.versions.is_empty(), "a session offers at least one version");
        assert!(settings.versions.iter().all(|version| version.is_spoken()));
        let deadline = now.saturating_add(settings.hello_timeout);
        let mut session = Session {
            pending: PendingReply::new(settings.pending_max),
            settings,
            state: State::Greeting { deadline },
            stream: Stream::default(),
            transmit: Vec::new(),
            transmit_start: 0,
            event: VecDeque::new(),
            xid: 0,
            now,
            heard_at: now,
            asked_at: None,
        };
        let versions = negotiate::bitmap_to_send(&session.settings.versions);
        let xid = session.next_xid();
        session.queue(
            session.highest(),
            xid,
            &Message::Hello(Hello { versions, others: Vec::new() }),
        );
        session
    }

    /// Accepts bytes from the connection and returns their number.
    ///
    /// It accepts up to [`MESSAGE_BYTES_MAX`] bytes if the caller has polled all events. It accepts
    /// fewer while the peer does not read the replies; offer the rest again later.
    #[must_use]
    pub fn receive(&mut self, bytes: &[u8], now: Nanos) -> usize {
        self.now = self.now.max(now);
        if self.state == State::Down {
            return bytes.len();
        }
        let count = self.stream.push(bytes);
        if count > 0 {
            self.heard_at = self.now;
            self.asked_at = None;
        }
        count
    }

    /// Returns the next event, if there is one.
    pub fn poll_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.event.pop_front() {
                return Some(event);
            }
            if self.state == State::Down || self.answers_full() {
                return None;
            }
            if !self.starts_with_hello() {
                continue;
            }
            let result = match self.stream.cut() {
                Ok(None) => return None,
                Ok(Some(bytes)) => decode(self.state, bytes),
                Err(malformed) => {
                    self.unframed(malformed);
                    continue;
                }
            };
            if let Some(event) = self.handle(result) {
                return Some(event);
            }
        }
    }

    /// Queues a message with a new transaction ID, and returns that ID.
    ///
    /// The event of a reply names the request that it replies to.
    pub fn send(&mut self, message: &Message, now: Nanos) -> Result<Xid, SendError> {
        self.now = self.now.max(now);
        if message.kind().reply().is_some() && self.pending.is_full() {
            return Err(SendError::PendingFull { requests: self.pending.len() });
        }
        let xid = self.next_xid();
        self.answer(xid, message)?;
        self.pending.add(xid, message.kind(), self.now);
        Ok(xid)
    }

    /// Queues a message with the transaction ID of its request, or with 0 for an asynchronous
    /// message.
    pub fn answer(&mut self, xid: Xid, message: &Message) -> Result<(), SendError> {
        let State::Up { version } = self.state else { return Err(SendError::NotUp) };
        let bytes = self.transmit().len();
        if bytes >= self.settings.transmit_bytes_max {
            return Err(SendError::TransmitFull { bytes });
        }
        codec::encode(version, xid, message, &mut self.transmit).map_err(SendError::NotExpressible)
    }

    /// Queues a part of a flow statistics reply whose rows are already encoded. 1.1 and later.
    ///
    /// Behaves like [`Session::answer`]. `rows` has fewer than
    /// [`ROWS_BYTES_MAX`](codec::ROWS_BYTES_MAX) bytes.
    pub fn answer_flow_rows(&mut self, xid: Xid, more: bool, rows: &[u8]) -> Result<(), SendError> {
        let State::Up { version } = self.state else { return Err(SendError::NotUp) };
        let bytes = self.transmit().len();
        if bytes >= self.settings.transmit_bytes_max {
            return Err(SendError::TransmitFull { bytes });
        }
        codec::put_flow_rows(version, xid, more, rows, &mut self.transmit)
            .map_err(SendError::NotExpressible)
    }

    /// Returns the bytes to write to the connection, oldest first.
    pub fn transmit(&self) -> &[u8] {
        &self.transmit[self.transmit_start..]
    }

    /// Removes the first `count` bytes of [`Session::transmit`], which the caller has written.
    pub fn transmitted(&mut self, count: usize) {
        assert!(count <= self.transmit().len(), "at most the queued bytes were written");
        self.transmit_start += count;
        if self.transmit_start == self.transmit.len() {
            self.transmit.clear();
            self.transmit_start = 0;
        } else if self.transmit_start > self.transmit.len() / 2 {
            self.transmit.drain(..self.transmit_start);
            self.transmit_start = 0;
        }
    }

    /// Records that the peer accepted bytes of a blocked connection.
    ///
    /// This counts as received bytes. A session that sends a long reply reads nothing until the
    /// peer has accepted it. Without this call the echo timeout would end that session.
    pub fn peer_reads(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        self.heard_at = self.now;
        self.asked_at = None;
    }

    /// Returns when [`Session::tick`] is due next if nothing arrives.
    pub fn next_timeout(&self) -> Option<Nanos> {
        match (self.state, self.asked_at, self.settings.echo_idle) {
            (State::Down, ..) => None,
            (State::Greeting { deadline }, ..) => Some(deadline),
            (_, Some(asked_at), _) => Some(asked_at.saturating_add(self.settings.echo_timeout)),
            (_, None, Some(idle)) => Some(self.heard_at.saturating_add(idle)),
            (_, None, None) => None,
        }
    }

    /// Handles the timeouts that are due at `now`.
    pub fn tick(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        if self.next_timeout().is_none_or(|due| due > self.now) {
            return;
        }
        match (self.state, self.asked_at) {
            (State::Greeting { .. }, _) => self.go_down(DownReason::HelloTimeout),
            (_, Some(_)) => self.go_down(DownReason::EchoTimeout),
            (_, None) => self.ask_for_life(),
        }
    }

    /// Returns the negotiated version, while the session is up.
    pub fn version(&self) -> Option<Version> {
        match self.state {
            State::Up { version } => Some(version),
            _ => None,
        }
    }

    /// Returns whether the session is over.
    pub fn is_down(&self) -> bool {
        self.state == State::Down
    }

    /// Returns the bytes of the last event's message; empty after more bytes have been received.
    pub fn message_bytes(&self) -> &[u8] {
        self.stream.last()
    }

    /// Returns the received bytes that the session has not parsed, for a caller that continues
    /// without it.
    pub fn unread(&self) -> &[u8] {
        self.stream.rest()
    }

    /// Returns the number of this end's requests that wait for replies.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Returns the highest offered version.
    fn highest(&self) -> Version {
        *self.settings.versions.iter().max().expect("a session offers at least one version")
    }

    fn next_xid(&mut self) -> Xid {
        self.xid = self.xid.wrapping_add(1).max(1);
        self.xid
    }

    /// Queues one of the session's own messages, which every version can express.
    fn queue(&mut self, version: Version, xid: Xid, message: &Message) {
        codec::encode(version, xid, message, &mut self.transmit)
            .expect("every supported version has hello, echo and error");
    }

    fn answers_full(&self) -> bool {
        self.transmit().len() >= self.settings.transmit_bytes_max + ANSWER_BYTES_MAX
    }

    fn go_down(&mut self, why: DownReason) {
        self.state = State::Down;
        self.stream = Stream::default();
        self.pending.clear();
        self.event.push_back(Event::Down { why });
    }

    fn ask_for_life(&mut self) {
        let State::Up { version } = self.state else { return };
        let xid = self.next_xid();
        self.queue(version, xid, &Message::EchoRequest(Vec::new()));
        self.pending.add_own_echo(xid, self.now);
        self.asked_at = Some(self.now);
    }

    /// Ends the session if the peer's first bytes are neither a hello nor an error.
    ///
    /// It does not wait for the announced length.
    fn starts_with_hello(&mut self) -> bool {
        if let (State::Greeting { .. }, &[version, kind, ..]) = (self.state, self.stream.rest())
            && !is_version_free(kind)
        {
            self.refuse_hello("the first message must be a hello");
            self.go_down(DownReason::NoHello { version, kind });
            return false;
        }
        true
    }

    fn refuse_hello(&mut self, text: &str) {
        let code = ErrorCode::HelloIncompatible;
        let error = Message::Error(ErrorMessage { code, data: text.as_bytes().to_vec() });
        self.queue(self.highest(), 0, &error);
    }

    /// Ends a session whose stream has lost its message boundaries; a switch sends an error first.
    fn unframed(&mut self, malformed: Malformed) {
        let error = Message::error(ErrorCode::RequestBadLength, self.stream.rest());
        if self.settings.end == End::Switch {
            self.queue(self.version().unwrap_or(self.highest()), 0, &error);
        }
        self.go_down(DownReason::Malformed(malformed));
    }

    fn handle(&mut self, (result, offending): Decoded) -> Option<Event> {
        match (self.state, result) {
            (State::Greeting { .. }, Ok((header, Message::Hello(hello)))) => {
                self.greet(header, hello)
            }
            (State::Greeting { .. }, Ok((_, Message::Error(error)))) => {
                self.go_down(DownReason::RefusedByPeer(error));
                None
            }
            (State::Greeting { .. }, Err(DecodeError { malformed, .. })) => {
                self.go_down(DownReason::Malformed(malformed));
                None
            }
            (State::Up { version }, Ok((header, message))) => {
                self.sort(version, header, message, offending)
            }
            (State::Up { .. }, Err(error)) => Some(self.refuse(error)),
            (_, Ok(_)) | (State::Down, Err(_)) => None,
        }
    }

    fn greet(&mut self, header: Header, hello: Hello) -> Option<Event> {
        match negotiate::agree(&self.settings.versions, header.version, hello.versions) {
            Some(version) => {
                self.state = State::Up { version };
                Some(Event::Up { version })
            }
            None => {
                let ours: Vec<_> = self.settings.versions.iter().map(Version::to_string).collect();
                self.refuse_hello(&format!("supported: OpenFlow {}", ours.join(", ")));
                self.go_down(DownReason::NoCommonVersion { theirs: header.version });
                None
            }
        }
    }

    /// Handles a message inside the session, or returns its event.
    fn sort(
        &mut self,
        version: Version,
        header: Header,
        message: Message,
        offending: MessageExcerpt,
    ) -> Option<Event> {
        let kind = message.kind();
        match message {
            Message::Hello(_) => return None,
            Message::Error(error) if is_hello_error(error.code) => {
                self.go_down(DownReason::RefusedByPeer(error));
                return None;
            }
            _ => {}
        }
        if kind.sender() == Some(self.settings.end) {
            let malformed = Malformed { at: 1, why: MalformedReason::BadValue(header.kind.into()) };
            let answer = Some(ErrorCode::RequestBadType);
            let error = DecodeError { header: Some(header), malformed, answer, offending };
            return Some(self.refuse(error));
        }
        if let Message::EchoRequest(data) = message {
            self.queue(version, header.xid, &Message::EchoReply(data));
            return None;
        }
        let (answers, own) = self.pending.answered(header.xid, &message);
        let (xid, at, bytes) = (header.xid, self.now, usize::from(header.length));
        (!own).then_some(Event::Message { xid, message, bytes, offending, answers, at })
    }

    /// Reports an invalid message; a switch also replies with an error.
    fn refuse(&mut self, error: DecodeError) -> Event {
        if let (End::Switch, State::Up { version }, Some(answer)) =
            (self.settings.end, self.state, error.answer())
        {
            let xid = error.header.map_or(0, |header| header.xid);
            self.queue(version, xid, &answer);
        }
        Event::Refused(error)
    }
}

/// Returns whether the peer rejects this connection. It may do so after this end considers it up.
fn is_hello_error(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::HelloIncompatible | ErrorCode::HelloPermission)
}

/// A message or its decode error, and its first bytes.
type Decoded = (Result<(Header, Message), DecodeError>, MessageExcerpt);

/// Decodes a message.
///
/// After negotiation it rejects every other version. Hello and error messages are exempt, because
/// all versions encode them alike.
fn decode(state: State, bytes: &[u8]) -> Decoded {
    let offending = MessageExcerpt::of(bytes);
    if let (State::Up { version }, Ok(header)) = (state, Header::parse(bytes))
        && header.version != version.wire()
        && !is_version_free(header.kind)
    {
        let malformed = Malformed { at: 0, why: MalformedReason::BadValue(header.version.into()) };
        let answer = Some(ErrorCode::RequestBadVersion);
        let error = DecodeError { header: Some(header), malformed, answer, offending };
        return (Err(error), offending);
    }
    (codec::decode(bytes), offending)
}

/// Returns whether this is the type of a hello or an error, which all versions encode alike.
fn is_version_free(kind: u8) -> bool {
    let kind = MessageKind::from_code(Version::V1_0, kind);
    matches!(kind, Some(MessageKind::Hello | MessageKind::Error))
}

#[cfg(test)]
mod tests;
