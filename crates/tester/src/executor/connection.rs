//! Connection from a module to a switch: connect, handshake, read, write and reconnect.
//!
//! - A received message has the time at which the read call that completed it returned.
//! - A sent batch has the times before the write of its first byte and after the write of its last.
//! - Messages of the module are encoded here, with the module's transaction ids. The session sends
//!   hellos and echo replies.
//!
//! Invariant: memory is bounded by the send queue ([`TRANSMIT_BYTES_MAX`],
//! [`MESSAGES_WAITING_MAX`]) and by the session's own limits.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use channel::Channel;
use channel::{CaptureAnomalies, Direction, UnknownTime};
use openflow::codec::{DecodeError, encode};
use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::switch::{Features, SwitchConfig};
use openflow::session::{self, Event, Session};
use openflow::version::{End, MessageKind, Version};
use packet::time::{Nanos, Stamp};

use crate::executor::{Connect, ConnectionRequest};
use crate::module::report::count;
use crate::module::{
    Connection, ConnectionFacts, ConnectionReport, EncodedMessages, MessageRange, SendError,
};

/// Timeout for opening a connection.
pub const CONNECT_NS_MAX: Nanos = Nanos::from_secs(5);

/// Timeout for the switch's hello.
pub const HELLO_NS_MAX: Nanos = Nanos::from_secs(5);

/// Timeout for the switch's features reply.
pub const FEATURES_NS_MAX: Nanos = Nanos::from_secs(5);

/// Maximum number of queued bytes on a connection.
pub const TRANSMIT_BYTES_MAX: usize = 16 << 20;

/// Maximum number of queued batches on a connection.
pub const MESSAGES_WAITING_MAX: usize = 1 << 16;

/// Bytes to read from a connection before the ports are polled.
pub const READ_BYTES: usize = 16 << 10;

/// Bytes to write to a connection before the ports are polled.
pub const WRITE_BYTES: usize = 64 << 10;

/// Transaction id of the features request. The hello has 1, the module's messages far higher ones.
const FEATURES_XID: Xid = 2;

/// Transaction id of the SET_CONFIG.
const CONFIG_XID: Xid = 3;

/// A connection, up or not.
pub struct SwitchConnection {
    number: usize,
    needs: Connection,
    state: State,
    channel: Option<Box<dyn Channel>>,
    session: Option<Session>,
    features: Option<Features>,
    buffer: Vec<u8>,
    /// Bytes in `buffer` that the session has not taken yet.
    unread: std::ops::Range<usize>,
    /// Queued bytes. The first `out_start` of them are sent.
    out: Vec<u8>,
    out_start: usize,
    /// Bytes sent since the connection was opened.
    sent: u64,
    marks: VecDeque<BatchEnd>,
    /// Bytes that the session has taken since the connection was opened.
    taken: u64,
    /// Batches that had not passed the interface at the last check: end offset and time before the
    /// write of the first byte.
    unpassed: VecDeque<(u64, Nanos)>,
    /// Capture remarks of earlier connections.
    remarks_before: CaptureAnomalies,
    report: ConnectionReport,
}

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Closed.
    Idle,
    /// Connecting.
    Dialing { deadline: Nanos },
    /// Exchanging hellos.
    Greeting,
    /// Waiting for the features reply.
    Asking { deadline: Nanos },
    /// Exchanging messages.
    Up,
}

/// Position of a batch in the sent byte stream.
#[derive(Debug)]
struct BatchEnd {
    said: MessageRange,
    kinds: Vec<(MessageKind, u64)>,
    begins: u64,
    ends: u64,
    first: Option<Nanos>,
}

/// An event on a connection.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly every event is a message")]
pub enum ConnectionEvent {
    /// The connection is up.
    Up,
    /// A message for the module.
    Message { xid: Xid, message: Message, bytes: usize, wire: Option<Stamp> },
    /// Invalid bytes.
    Refused(DecodeError),
    /// The connection is lost.
    Lost(String),
}

impl SwitchConnection {
    /// Connection `number` of a module. It starts to connect at `now` if `needs.opens` is set.
    pub fn new(number: usize, needs: Connection, now: Nanos) -> Self {
        let mut line = SwitchConnection {
            number,
            state: State::Idle,
            channel: None,
            session: None,
            features: None,
            buffer: vec![0; READ_BYTES],
            unread: 0..0,
            out: Vec::new(),
            out_start: 0,
            sent: 0,
            marks: VecDeque::new(),
            taken: 0,
            unpassed: VecDeque::new(),
            remarks_before: CaptureAnomalies::default(),
            report: ConnectionReport::default(),
            needs,
        };
        if line.needs.opens {
            line.begin(now);
        }
        line
    }

    /// Starts to connect, unless the connection is open or opening.
    pub fn begin(&mut self, now: Nanos) {
        if self.state == State::Idle {
            self.state = State::Dialing { deadline: now.saturating_add(CONNECT_NS_MAX) };
        }
    }

    /// Closes the connection, with the reason if it was lost.
    pub fn close(&mut self, lost: Option<String>) {
        let waiting = self.marks.iter().map(|mark| u64::from(mark.said.count)).sum::<u64>();
        self.report.unsent += waiting;
        if let Some(why) = lost {
            self.report.losses += 1;
            self.report.lost = Some(why);
        }
        self.look_back();
        self.state = State::Idle;
        (self.channel, self.session, self.features) = (None, None, None);
        self.unread = 0..0;
        self.out.clear();
        self.marks.clear();
        (self.out_start, self.sent, self.taken) = (0, 0, 0);
        let unseen = self.unpassed.len() as u64;
        self.unpassed.clear();
        if let Some(wire) = &mut self.report.wire {
            wire.unknown += unseen;
            self.remarks_before = wire.remarks;
        }
    }

    /// Returns whether the connection is closed.
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Returns whether the connection does not delay the module's start.
    pub fn is_ready(&self) -> bool {
        self.state == State::Up || !self.needs.opens
    }

    /// Returns the deadline of the current state.
    pub fn deadline(&self) -> Option<Nanos> {
        match self.state {
            State::Dialing { deadline } | State::Asking { deadline } => Some(deadline),
            State::Greeting => self.session.as_ref().and_then(Session::next_timeout),
            State::Idle | State::Up => None,
        }
    }

    /// Continues to connect, or reads once and returns the number of bytes. Fails if the connection
    /// is lost.
    pub fn read(&mut self, now: Nanos, connect: Connect<'_>) -> Result<usize, String> {
        if let State::Dialing { deadline } = self.state {
            return self.dial(now, deadline, connect);
        }
        if let State::Asking { deadline } = self.state
            && now >= deadline
        {
            return Err("limit FEATURES_NS_MAX reached: no features reply".into());
        }
        // Applies backpressure to a peer that sends requests without reading the replies.
        if !self.unread.is_empty() {
            return Ok(0);
        }
        let Some(channel) = &mut self.channel else { return Ok(0) };
        let count = channel.receive(&mut self.buffer).map_err(|error| error.to_string())?;
        self.report.bytes_received += count as u64;
        self.unread = 0..count;
        Ok(count)
    }

    fn dial(&mut self, now: Nanos, deadline: Nanos, connect: Connect<'_>) -> Result<usize, String> {
        let wanted = ConnectionRequest { connection: self.number, switch: self.needs.switch };
        match connect(wanted, now).map_err(|error| error.to_string())? {
            Some(channel) => {
                self.report.peer = channel.peer().to_owned();
                self.session = Some(Session::new(self.settings(), now));
                self.channel = Some(channel);
                self.state = State::Greeting;
                Ok(0)
            }
            None if now >= deadline => Err("limit CONNECT_NS_MAX reached: no connection".into()),
            None => Ok(0),
        }
    }

    /// Settings of a session without keepalive: its echo requests would mix with the module's.
    fn settings(&self) -> session::Settings {
        let mut settings = session::Settings::new(End::Controller);
        let offered = self.needs.versions.iter().filter(|version| version.is_spoken());
        settings.versions = offered.copied().collect();
        if settings.versions.is_empty() {
            settings.versions = Version::SUPPORTED.to_vec();
        }
        settings.hello_timeout = HELLO_NS_MAX;
        settings.echo_idle = None;
        settings
    }

    /// Returns the next event in the bytes read, which were available at `at`.
    pub fn hear(&mut self, at: Nanos) -> Option<ConnectionEvent> {
        loop {
            let session = self.session.as_mut()?;
            let event = match session.poll_event() {
                Some(event) => event,
                None => {
                    self.collect();
                    let session = self.session.as_mut()?;
                    let taken = session.receive(&self.buffer[self.unread.clone()], at);
                    self.unread.start += taken;
                    self.taken += taken as u64;
                    session.tick(at);
                    session.poll_event()?
                }
            };
            if let Some(heard) = self.sort(event, at) {
                return Some(heard);
            }
        }
    }

    fn sort(&mut self, event: Event, at: Nanos) -> Option<ConnectionEvent> {
        match event {
            Event::Up { version } => {
                self.report.version = Some(version);
                self.set_config(version);
                if !self.needs.requests_features {
                    return Some(self.up());
                }
                self.collect();
                encode(version, FEATURES_XID, &Message::FeaturesRequest, &mut self.out)
                    .expect("every version has features requests");
                self.state = State::Asking { deadline: at.saturating_add(FEATURES_NS_MAX) };
                None
            }
            Event::Message { xid, message, .. } if matches!(self.state, State::Asking { .. }) => {
                match message {
                    Message::FeaturesReply(features) if xid == FEATURES_XID => {
                        self.features = Some(features);
                        Some(self.up())
                    }
                    Message::Error(error) if xid == FEATURES_XID => Some(ConnectionEvent::Lost(
                        format!("the switch rejected the features request: {error}"),
                    )),
                    _ => None,
                }
            }
            Event::Message { xid, message, bytes, .. } => {
                count(&mut self.report.received, message.kind(), 1);
                let wire = self.came(at);
                Some(ConnectionEvent::Message { xid, message, bytes, wire })
            }
            Event::Refused(error) => {
                self.report.refused += 1;
                Some(ConnectionEvent::Refused(error))
            }
            Event::Down { why } => {
                let name = match why {
                    session::DownReason::HelloTimeout => "limit HELLO_NS_MAX reached: ",
                    _ => "",
                };
                Some(ConnectionEvent::Lost(format!("{name}{why}")))
            }
        }
    }

    /// Sends the SET_CONFIG that the connection needs.
    fn set_config(&mut self, version: Version) {
        let Some(miss_send_bytes) = self.needs.miss_send_bytes else { return };
        self.collect();
        let config = SwitchConfig { miss_send_bytes, ..SwitchConfig::default() };
        encode(version, CONFIG_XID, &Message::SetConfig(config), &mut self.out)
            .expect("every version has SET_CONFIG");
    }

    fn up(&mut self) -> ConnectionEvent {
        self.state = State::Up;
        self.report.ups += 1;
        ConnectionEvent::Up
    }

    /// Appends the session's own output to the send queue.
    fn collect(&mut self) {
        if let Some(session) = &mut self.session
            && self.out.len() < TRANSMIT_BYTES_MAX
        {
            let bytes = session.transmit();
            self.out.extend_from_slice(bytes);
            let count = bytes.len();
            session.transmitted(count);
        }
    }

    /// Queues a batch of messages.
    pub fn say_all(&mut self, said: MessageRange, messages: &[Message]) -> Result<(), SendError> {
        let version = self.room()?;
        let (start, mut kinds) = (self.out.len(), Vec::new());
        for (message, xid) in messages.iter().zip(said.xids()) {
            if let Err(what) = encode(version, xid, message, &mut self.out) {
                self.out.truncate(start);
                return Err(SendError::NotExpressible(what));
            }
            count(&mut kinds, message.kind(), 1);
        }
        self.mark(said, kinds, start);
        Ok(())
    }

    /// Queues encoded messages.
    pub fn say(&mut self, prepared: &EncodedMessages) -> Result<(), SendError> {
        self.room()?;
        let start = self.out.len();
        self.out.extend_from_slice(&prepared.bytes);
        self.mark(prepared.said, prepared.kinds.to_vec(), start);
        Ok(())
    }

    /// Returns the version, if the send queue has room.
    fn room(&mut self) -> Result<Version, SendError> {
        let version = match (self.state, &self.session) {
            (State::Up, Some(session)) => session.version().ok_or(SendError::NotUp)?,
            _ => return Err(SendError::NotUp),
        };
        if self.out.len() - self.out_start >= TRANSMIT_BYTES_MAX {
            return Err(SendError::Limit("TRANSMIT_BYTES_MAX"));
        }
        if self.marks.len() >= MESSAGES_WAITING_MAX {
            return Err(SendError::Limit("MESSAGES_WAITING_MAX"));
        }
        self.collect();
        Ok(version)
    }

    /// Records the position of a batch that starts at `start` of the send queue.
    fn mark(&mut self, said: MessageRange, kinds: Vec<(MessageKind, u64)>, start: usize) {
        let at = |place: usize| self.sent + (place - self.out_start) as u64;
        let (begins, ends) = (at(start), at(self.out.len()));
        self.marks.push_back(BatchEnd { said, kinds, begins, ends, first: None });
    }

    /// Counts messages that were not sent.
    pub fn unsent(&mut self, messages: u64) {
        self.report.unsent += messages;
    }

    /// Returns the file descriptor to wait for, while the connection is open.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.channel.as_ref()?.descriptor()
    }

    /// Returns whether there is anything to write to the channel.
    pub fn owes(&self) -> bool {
        let Some(channel) = &self.channel else { return false };
        let own = self.session.as_ref().is_some_and(|session| !session.transmit().is_empty());
        own || self.out_start < self.out.len() || channel.waits_for_room(false)
    }

    /// Writes at most [`WRITE_BYTES`] to the channel. Returns whether the channel took any.
    ///
    /// Calls `sent` for each completed batch, with the times before its first and after its last
    /// byte.
    pub fn write(
        &mut self,
        clock: &mut dyn FnMut() -> Nanos,
        mut sent: impl FnMut(MessageRange, [Nanos; 2], Option<Stamp>),
    ) -> Result<bool, String> {
        self.collect();
        let Some(channel) = &mut self.channel else { return Ok(false) };
        let end = self.out.len().min(self.out_start + WRITE_BYTES);
        let first = clock();
        let taken = channel.transmit(&self.out[self.out_start..end]);
        let last = clock();
        let taken = taken.map_err(|error| error.to_string())?;
        self.out_start += taken;
        self.sent += taken as u64;
        self.report.bytes_sent += taken as u64;
        for mark in self.marks.iter_mut().take_while(|mark| mark.begins < self.sent) {
            mark.first.get_or_insert(first);
        }
        while self.marks.front().is_some_and(|mark| mark.ends <= self.sent) {
            let mark = self.marks.pop_front().expect("the queue is not empty");
            mark.kinds.iter().for_each(|&(kind, more)| count(&mut self.report.sent, kind, more));
            let first = mark.first.unwrap_or(first);
            let wire = self.left(mark.ends, first);
            sent(mark.said, [first, last], wire);
        }
        if self.out_start == self.out.len() {
            self.out.clear();
            self.out_start = 0;
        } else if self.out_start > self.out.len() / 2 {
            self.out.drain(..self.out_start);
            self.out_start = 0;
        }
        Ok(taken > 0)
    }

    /// Returns when the last message read passed the interface. The socket delivered it at `at`.
    fn came(&mut self, at: Nanos) -> Option<Stamp> {
        let end = self.taken - self.session.as_ref()?.unread().len() as u64;
        let passed = self.channel.as_mut()?.passed(Direction::In, end)?;
        let wire = self.report.wire.get_or_insert_default();
        match passed {
            Ok(stamp) => {
                wire.stamps = Some(stamp.clock);
                wire.received.record(at.since(stamp.at).0);
                Some(stamp)
            }
            Err(_) => {
                wire.unknown += 1;
                None
            }
        }
    }

    /// Returns when the batch that ends with this byte passed the interface, if already known.
    ///
    /// `first` is the time before the write of its first byte. A batch without a time is checked
    /// again later.
    fn left(&mut self, end: u64, first: Nanos) -> Option<Stamp> {
        self.channel.as_ref()?.remarks()?;
        if self.unpassed.len() < MESSAGES_WAITING_MAX {
            self.unpassed.push_back((end, first));
        } else {
            self.report.wire.get_or_insert_default().unknown += 1;
        }
        self.look_back()
    }

    /// Checks pending batches again. Returns the time of the last one if all have passed.
    fn look_back(&mut self) -> Option<Stamp> {
        let channel = self.channel.as_mut()?;
        let wire = match channel.remarks() {
            Some(remarks) => {
                let wire = self.report.wire.get_or_insert_default();
                wire.remarks = self.remarks_before.and(remarks);
                wire
            }
            None => return None,
        };
        let mut last = None;
        while let Some(&(end, first)) = self.unpassed.front() {
            match channel.passed(Direction::Out, end) {
                Some(Ok(stamp)) => {
                    wire.stamps = Some(stamp.clock);
                    wire.sent.record(stamp.at.since(first).0);
                    last = Some(stamp);
                }
                Some(Err(UnknownTime::NotYet)) => return None,
                _ => {
                    wire.unknown += 1;
                    last = None;
                }
            }
            self.unpassed.pop_front();
        }
        last
    }

    /// Returns the facts for the module.
    pub fn facts(&self) -> ConnectionFacts {
        let version = self.session.as_ref().and_then(Session::version);
        let peer = self.channel.as_ref().map_or("", |channel| channel.peer()).to_owned();
        ConnectionFacts { peer, version, features: self.features.clone() }
    }

    /// Returns the report.
    pub fn report(mut self) -> ConnectionReport {
        self.look_back();
        if let Some(wire) = &mut self.report.wire {
            wire.unknown += self.unpassed.len() as u64;
        }
        self.report
    }
}
