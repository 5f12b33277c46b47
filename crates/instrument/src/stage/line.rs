//! A connection to a switch on a stage: made, greeted, read and written, and made again.
//!
//! What came is told message by message with the moment at which the read returned that completed it;
//! of what is said it is noted when the socket was handed the first byte and when it had taken the
//! last. Messages of the module are encoded here and numbered by it; the session says hello and
//! answers echo requests. Invariant: memory is bounded by what may wait to be sent
//! ([`TRANSMIT_BYTES_MAX`], [`MESSAGES_WAITING_MAX`]) and by the session's own limits.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use openflow::codec::{DecodeError, encode};
use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::switch::{Features, SwitchConfig};
use openflow::session::{self, Event, Session};
use openflow::version::{End, MessageKind, Version};
use packet::time::{Nanos, Stamp};
use ports::channel::Channel;
use ports::channel::wire::{Direction, Remarks, Unseen};

use crate::module::report::count;
use crate::module::{Connection, ConnectionFacts, ConnectionReport, Prepared, Said, Unsent};
use crate::stage::{Connect, Wanted};

/// How long a connection may take to be made.
pub const CONNECT_NS_MAX: Nanos = Nanos::from_secs(5);

/// How long a switch may take to say hello.
pub const HELLO_NS_MAX: Nanos = Nanos::from_secs(5);

/// How long a switch may take to say what it is.
pub const FEATURES_NS_MAX: Nanos = Nanos::from_secs(5);

/// Bytes that may wait to be sent on a connection.
pub const TRANSMIT_BYTES_MAX: usize = 16 << 20;

/// Messages said one by one, and batches of them, that may wait to be sent on a connection.
pub const MESSAGES_WAITING_MAX: usize = 1 << 16;

/// Bytes that are read from a connection before the ports have their turn.
pub const READ_BYTES: usize = 16 << 10;

/// Bytes that are handed to a connection before the ports have their turn.
pub const WRITE_BYTES: usize = 64 << 10;

/// Number of the question for features: the session's hello has 1, the module's begin far above.
const FEATURES_XID: Xid = 2;

/// Transaction id of the SET_CONFIG.
const CONFIG_XID: Xid = 3;

/// A connection, up or not.
pub struct Line {
    number: usize,
    needs: Connection,
    state: State,
    channel: Option<Box<dyn Channel>>,
    session: Option<Session>,
    features: Option<Features>,
    buffer: Vec<u8>,
    /// Bytes that the session has not taken yet.
    unread: std::ops::Range<usize>,
    /// Bytes to be sent, of which the first `out_start` have been.
    out: Vec<u8>,
    out_start: usize,
    /// Bytes that were sent since the connection was made.
    sent: u64,
    marks: VecDeque<Mark>,
    /// Bytes that the session has taken since the connection was made.
    taken: u64,
    /// What was sent and had not passed the interface when that was last looked at: up to which byte, and
    /// when the socket was handed it.
    unpassed: VecDeque<(u64, Nanos)>,
    /// What was remarkable on the wire of connections before.
    remarks_before: Remarks,
    report: ConnectionReport,
}

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nobody wants it.
    Idle,
    /// It is being made.
    Dialing { deadline: Nanos },
    /// The ends say hello.
    Greeting,
    /// The switch was asked what it is.
    Asking { deadline: Nanos },
    /// Messages pass.
    Up,
}

/// Something that was said, among the bytes that are sent.
#[derive(Debug)]
struct Mark {
    said: Said,
    kinds: Vec<(MessageKind, u64)>,
    begins: u64,
    ends: u64,
    first: Option<Nanos>,
}

/// What came on a connection.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly every one is a message")]
pub enum Heard {
    /// It is up.
    Up,
    /// A message for the module.
    Message { xid: Xid, message: Message, bytes: usize, wire: Option<Stamp> },
    /// Bytes that are no message.
    Refused(DecodeError),
    /// It is of no use any more.
    Lost(String),
}

impl Line {
    /// Connection `number` of a module, which begins to be made at `now` if it opens by itself.
    pub fn new(number: usize, needs: Connection, now: Nanos) -> Self {
        let mut line = Line {
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
            remarks_before: Remarks::default(),
            report: ConnectionReport::default(),
            needs,
        };
        if line.needs.opens {
            line.begin(now);
        }
        line
    }

    /// Begins to make it, unless it is up or being made.
    pub fn begin(&mut self, now: Nanos) {
        if self.state == State::Idle {
            self.state = State::Dialing { deadline: now.saturating_add(CONNECT_NS_MAX) };
        }
    }

    /// Gives it up, for this reason if it was lost.
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

    /// Whether nobody wants it now.
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Whether a module that needs it can start.
    pub fn is_ready(&self) -> bool {
        self.state == State::Up || !self.needs.opens
    }

    /// When it is given up, if it does not get on.
    pub fn deadline(&self) -> Option<Nanos> {
        match self.state {
            State::Dialing { deadline } | State::Asking { deadline } => Some(deadline),
            State::Greeting => self.session.as_ref().and_then(Session::next_timeout),
            State::Idle | State::Up => None,
        }
    }

    /// Goes on with making it, or reads once; how many bytes came. An error says why it is lost.
    pub fn read(&mut self, now: Nanos, connect: Connect<'_>) -> Result<usize, String> {
        if let State::Dialing { deadline } = self.state {
            return self.dial(now, deadline, connect);
        }
        if let State::Asking { deadline } = self.state
            && now >= deadline
        {
            return Err("FEATURES_NS_MAX is reached: the switch does not say what it is".into());
        }
        // A peer that asks without reading the answers is not read either.
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
        let wanted = Wanted { connection: self.number, switch: self.needs.switch };
        match connect(wanted, now).map_err(|error| error.to_string())? {
            Some(channel) => {
                self.report.peer = channel.peer().to_owned();
                self.session = Some(Session::new(self.settings(), now));
                self.channel = Some(channel);
                self.state = State::Greeting;
                Ok(0)
            }
            None if now >= deadline => {
                Err("CONNECT_NS_MAX is reached: the connection is not made".into())
            }
            None => Ok(0),
        }
    }

    /// A session that asks for no signs of life by itself: its echoes would stand between a module's.
    fn settings(&self) -> session::Settings {
        let mut settings = session::Settings::new(End::Controller);
        let offered = self.needs.versions.iter().filter(|version| version.is_spoken());
        settings.versions = offered.copied().collect();
        if settings.versions.is_empty() {
            settings.versions = Version::SPOKEN.to_vec();
        }
        settings.hello_timeout = HELLO_NS_MAX;
        settings.echo_idle = None;
        settings
    }

    /// The next thing that the bytes read come to, which were there at `at`.
    pub fn hear(&mut self, at: Nanos) -> Option<Heard> {
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

    fn sort(&mut self, event: Event, at: Nanos) -> Option<Heard> {
        match event {
            Event::Up { version } => {
                self.report.version = Some(version);
                self.set_config(version);
                if !self.needs.asks_features {
                    return Some(self.up());
                }
                self.collect();
                encode(version, FEATURES_XID, &Message::FeaturesRequest, &mut self.out)
                    .expect("every version can ask for features");
                self.state = State::Asking { deadline: at.saturating_add(FEATURES_NS_MAX) };
                None
            }
            Event::Message { xid, message, .. } if matches!(self.state, State::Asking { .. }) => {
                match message {
                    Message::FeaturesReply(features) if xid == FEATURES_XID => {
                        self.features = Some(features);
                        Some(self.up())
                    }
                    Message::Error(error) if xid == FEATURES_XID => {
                        Some(Heard::Lost(format!("the switch does not say what it is: {error}")))
                    }
                    _ => None,
                }
            }
            Event::Message { xid, message, bytes, .. } => {
                count(&mut self.report.received, message.kind(), 1);
                let wire = self.came(at);
                Some(Heard::Message { xid, message, bytes, wire })
            }
            Event::Refused(error) => {
                self.report.refused += 1;
                Some(Heard::Refused(error))
            }
            Event::Down { why } => {
                let name = match why {
                    session::DownReason::HelloTimeout => "HELLO_NS_MAX is reached: ",
                    _ => "",
                };
                Some(Heard::Lost(format!("{name}{why}")))
            }
        }
    }

    /// Sends the SET_CONFIG that the connection needs.
    fn set_config(&mut self, version: Version) {
        let Some(miss_send_bytes) = self.needs.miss_send_bytes else { return };
        self.collect();
        let config = SwitchConfig { miss_send_bytes, ..SwitchConfig::default() };
        encode(version, CONFIG_XID, &Message::SetConfig(config), &mut self.out)
            .expect("every version can set the miss length");
    }

    fn up(&mut self) -> Heard {
        self.state = State::Up;
        self.report.ups += 1;
        Heard::Up
    }

    /// Takes what the session has to say behind what waits.
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

    /// Says messages.
    pub fn say_all(&mut self, said: Said, messages: &[Message]) -> Result<(), Unsent> {
        let version = self.room()?;
        let (start, mut kinds) = (self.out.len(), Vec::new());
        for (message, xid) in messages.iter().zip(said.xids()) {
            if let Err(what) = encode(version, xid, message, &mut self.out) {
                self.out.truncate(start);
                return Err(Unsent::NotExpressible(what));
            }
            count(&mut kinds, message.kind(), 1);
        }
        self.mark(said, kinds, start);
        Ok(())
    }

    /// Says what is bytes already.
    pub fn say(&mut self, prepared: &Prepared) -> Result<(), Unsent> {
        self.room()?;
        let start = self.out.len();
        self.out.extend_from_slice(&prepared.bytes);
        self.mark(prepared.said, prepared.kinds.to_vec(), start);
        Ok(())
    }

    /// The version, if there is room for more.
    fn room(&mut self) -> Result<Version, Unsent> {
        let version = match (self.state, &self.session) {
            (State::Up, Some(session)) => session.version().ok_or(Unsent::NotUp)?,
            _ => return Err(Unsent::NotUp),
        };
        if self.out.len() - self.out_start >= TRANSMIT_BYTES_MAX {
            return Err(Unsent::Limit("TRANSMIT_BYTES_MAX"));
        }
        if self.marks.len() >= MESSAGES_WAITING_MAX {
            return Err(Unsent::Limit("MESSAGES_WAITING_MAX"));
        }
        self.collect();
        Ok(version)
    }

    /// Notes what the bytes from `start` on are.
    fn mark(&mut self, said: Said, kinds: Vec<(MessageKind, u64)>, start: usize) {
        let at = |place: usize| self.sent + (place - self.out_start) as u64;
        let (begins, ends) = (at(start), at(self.out.len()));
        self.marks.push_back(Mark { said, kinds, begins, ends, first: None });
    }

    /// So many messages were not said.
    pub fn unsent(&mut self, messages: u64) {
        self.report.unsent += messages;
    }

    /// What it can be waited for by, while it is up.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.channel.as_ref()?.descriptor()
    }

    /// Whether there is anything to hand to the channel.
    pub fn owes(&self) -> bool {
        let Some(channel) = &self.channel else { return false };
        let own = self.session.as_ref().is_some_and(|session| !session.transmit().is_empty());
        own || self.out_start < self.out.len() || channel.waits_for_room(false)
    }

    /// Hands bytes to the channel, at most [`WRITE_BYTES`]; whether it took any. `sent` is told what it has
    /// taken all of, with the moments before its first byte and after its last.
    pub fn write(
        &mut self,
        clock: &mut dyn FnMut() -> Nanos,
        mut sent: impl FnMut(Said, [Nanos; 2], Option<Stamp>),
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
            let mark = self.marks.pop_front().expect("there is a first one");
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

    /// When the message that was just heard had passed the interface; the socket handed it over at `at`.
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

    /// When what ends with this byte had passed the interface, if it has; the socket was handed its first at
    /// `first`. What has not is looked at again.
    fn left(&mut self, end: u64, first: Nanos) -> Option<Stamp> {
        self.channel.as_ref()?.remarks()?;
        if self.unpassed.len() < MESSAGES_WAITING_MAX {
            self.unpassed.push_back((end, first));
        } else {
            self.report.wire.get_or_insert_default().unknown += 1;
        }
        self.look_back()
    }

    /// Looks again at what had not passed; when the last of it had, if all of it has.
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
                Some(Err(Unseen::NotYet)) => return None,
                _ => {
                    wire.unknown += 1;
                    last = None;
                }
            }
            self.unpassed.pop_front();
        }
        last
    }

    /// What a module is told of it.
    pub fn facts(&self) -> ConnectionFacts {
        let version = self.session.as_ref().and_then(Session::version);
        let peer = self.channel.as_ref().map_or("", |channel| channel.peer()).to_owned();
        ConnectionFacts { peer, version, features: self.features.clone() }
    }

    /// What passed on it.
    pub fn report(mut self) -> ConnectionReport {
        self.look_back();
        if let Some(wire) = &mut self.report.wire {
            wire.unknown += self.unpassed.len() as u64;
        }
        self.report
    }
}
