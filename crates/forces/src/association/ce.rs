//! A control element's end of one association.
//!
//! Requests have a correlator, which identifies their response. A response of several messages is
//! collected before it is reported. A control element with several forwarding elements has one
//! [`Ce`] for each.

mod answer;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::Timestamp;
use super::channel::{self, Channel, Queues};
use super::element::Place;
use super::properties;
use crate::model::value::{Fields, Value};
use crate::wire::{
    Ack, Body, Flags, Header, Id, Message, Mode, Operation, OperationKind, PathData, Phase,
    Redirect, Select, SetupResult, TeardownReason, TooLong, data, decode,
};
pub use answer::Answer;

/// Maximum octets of the messages of one response.
pub const ANSWER_OCTETS_MAX: usize = 256 << 20;
/// Maximum number of pending requests.
pub const PENDING_MAX: usize = 4096;
/// Maximum number of unpolled events before the end stops reading.
pub const EVENTS_MAX: usize = 4096;

/// Settings of a control element.
#[derive(Debug, Clone)]
pub struct CeSettings {
    /// CE ID.
    pub id: Id,
    /// ID to assign to a forwarding element without one; `None` denies it.
    pub gives: Option<Id>,
    /// Forwarding elements that may associate; `None` for any.
    pub admits: Option<Vec<Id>>,
    /// Time without a sent message after which it sends a heartbeat. Must be well below FEPO's
    /// CEHDI.
    pub heartbeat_after: Duration,
    /// Idle time after which it requests a heartbeat. After the same time again, the forwarding
    /// element is lost.
    pub asks_after: Duration,
    /// Timeout for a response.
    pub answer_timeout: Duration,
}

impl CeSettings {
    /// Returns settings that fit FEPO's defaults.
    pub fn new(id: Id) -> CeSettings {
        CeSettings {
            id,
            gives: None,
            admits: None,
            heartbeat_after: Duration::from_secs(5),
            asks_after: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
        }
    }
}

/// An event of the association.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CeEvent {
    /// The association is established, with this forwarding element and its report.
    Associated(Id, Vec<Select>),
    /// A response arrived.
    Answered(Answer),
    /// A request timed out (its correlator).
    TimedOut(u64),
    /// The forwarding element reported events.
    Notified(Vec<Select>),
    /// The forwarding element redirected a packet.
    Redirected(Redirect),
    /// The association ended or was not established; close the connection.
    Down(TeardownReason),
}

/// Why a request was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestError {
    /// There is no association.
    NotAssociated,
    /// Too many requests are pending.
    TooMany,
    /// No transaction is open, or it is in another state.
    Transaction,
    /// The request does not fit into a message.
    TooLong(TooLong),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Associated(Id),
    Down,
}

/// State of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransactionState {
    No,
    Started,
    Ended,
}

#[derive(Debug)]
struct PendingTransaction {
    until: Timestamp,
    selects: Vec<Select>,
    octets: usize,
}

/// A control element's end of one association.
#[derive(Debug)]
pub struct Ce {
    settings: CeSettings,
    state: State,
    queues: Queues,
    events: VecDeque<CeEvent>,
    pending: BTreeMap<u64, PendingTransaction>,
    next_correlator: u64,
    transaction: TransactionState,
    now: Timestamp,
    last_received_at: Timestamp,
    last_sent_at: Timestamp,
    heartbeat_sent_at: Option<Timestamp>,
}

impl Ce {
    /// Creates the end of a new connection; the forwarding element sends the first message.
    pub fn new(settings: CeSettings, now: Timestamp) -> Ce {
        Ce {
            settings,
            state: State::Waiting,
            queues: Queues::default(),
            events: VecDeque::new(),
            pending: BTreeMap::new(),
            next_correlator: 1,
            transaction: TransactionState::No,
            now,
            last_received_at: now,
            last_sent_at: now,
            heartbeat_sent_at: None,
        }
    }

    /// Returns the associated forwarding element.
    pub fn fe(&self) -> Option<Id> {
        match self.state {
            State::Associated(fe) => Some(fe),
            _ => None,
        }
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<CeEvent> {
        self.events.pop_front()
    }

    /// Returns the next message to send, by strict priority, with its channel.
    pub fn poll_transmit(&mut self) -> Option<(Channel, Vec<u8>)> {
        self.queues.pop()
    }

    /// Returns the next message to send on this channel.
    pub fn poll_transmit_by(&mut self, channel: Channel) -> Option<Vec<u8>> {
        self.queues.pop_of(channel)
    }

    /// Returns whether to read more; false while too many events are unpolled.
    pub fn can_receive(&self) -> bool {
        self.events.len() < EVENTS_MAX
    }

    /// Handles a message that arrived on a channel; drops malformed and unexpected ones.
    pub fn receive(&mut self, channel: Channel, bytes: &[u8], now: Timestamp) {
        self.now = self.now.max(now);
        let Ok((header, _)) = channel::received(channel, bytes) else { return };
        let Ok(message) = decode(bytes) else { return };
        if self.state == State::Down || self.fe().is_some_and(|fe| header.source != fe) {
            return;
        }
        (self.last_received_at, self.heartbeat_sent_at) = (self.now, None);
        match (message.body, self.state) {
            (Body::AssociationSetup(report), State::Waiting) => self.asked(&header, report),
            (Body::ConfigResponse(selects), State::Associated(_)) => {
                let more = header.flags.atomic && header.flags.phase != Phase::End;
                self.answered(&header, selects, bytes.len(), more);
            }
            (Body::QueryResponse(selects), State::Associated(_)) => {
                let more = header.flags.atomic && header.flags.phase != Phase::End;
                self.answered(&header, selects, bytes.len(), more);
            }
            (Body::EventNotification(selects), State::Associated(_)) => {
                self.events.push_back(CeEvent::Notified(selects));
            }
            (Body::PacketRedirect(all), State::Associated(_)) => {
                self.events.extend(all.into_iter().map(CeEvent::Redirected));
            }
            // Only forwarding elements respond to heartbeats, so a CE ignores them.
            (Body::AssociationTeardown(reason), _) => self.down(reason),
            _ => {}
        }
    }

    fn asked(&mut self, header: &Header, report: Vec<Select>) {
        let asked = header.source;
        let id = if asked == Id::NONE { self.settings.gives } else { Some(asked) };
        let admits = |id: &Id| self.settings.admits.as_ref().is_none_or(|all| all.contains(id));
        let result = match id {
            Some(id) if !id.is_fe() || id == Id::NONE => SetupResult::FE_ID_INVALID,
            Some(id) if admits(&id) => SetupResult::SUCCESS,
            _ => SetupResult::DENIED,
        };
        let to = id.filter(|_| result == SetupResult::SUCCESS).unwrap_or(asked);
        let answer = Body::AssociationSetupResponse(result);
        let sent = self.send(to, answer, header.correlator, Flags::default());
        if result == SetupResult::SUCCESS && sent.is_ok() {
            self.state = State::Associated(to);
            self.events.push_back(CeEvent::Associated(to, report));
        } else {
            self.down(TeardownReason::OTHER);
        }
    }

    fn answered(&mut self, header: &Header, selects: Vec<Select>, octets: usize, more: bool) {
        let Some(pending) = self.pending.get_mut(&header.correlator) else { return };
        pending.octets += octets;
        pending.until = self.now + self.settings.answer_timeout;
        if pending.octets > ANSWER_OCTETS_MAX {
            self.down(TeardownReason::MEMORY);
            return;
        }
        pending.selects.extend(selects);
        if !more && let Some(pending) = self.pending.remove(&header.correlator) {
            let (correlator, selects) = (header.correlator, pending.selects);
            self.events.push_back(CeEvent::Answered(Answer { correlator, selects }));
        }
    }

    fn down(&mut self, reason: TeardownReason) {
        self.state = State::Down;
        self.pending.clear();
        self.transaction = TransactionState::No;
        self.events.push_back(CeEvent::Down(reason));
    }

    /// Returns when [`Ce::tick`] is due next if nothing arrives.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        if self.state == State::Down {
            return None;
        }
        let mut due = vec![
            self.heartbeat_sent_at.unwrap_or(self.last_received_at) + self.settings.asks_after,
        ];
        if self.fe().is_some() {
            due.push(self.last_sent_at + self.settings.heartbeat_after);
        }
        due.extend(self.pending.values().map(|pending| pending.until));
        due.into_iter().min()
    }

    /// Handles the timeouts that are due at `now`.
    pub fn tick(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        let now = self.now;
        let late = |(correlator, pending): (&u64, &PendingTransaction)| {
            (pending.until <= now).then_some(*correlator)
        };
        for correlator in self.pending.iter().filter_map(late).collect::<Vec<_>>() {
            self.pending.remove(&correlator);
            self.events.push_back(CeEvent::TimedOut(correlator));
        }
        let since = self.heartbeat_sent_at.unwrap_or(self.last_received_at);
        let is_silent = since + self.settings.asks_after <= now;
        match (self.state, self.heartbeat_sent_at) {
            (State::Waiting, _) if is_silent => self.down(TeardownReason::OTHER),
            (State::Associated(_), Some(_)) if is_silent => {
                self.teardown(TeardownReason::HEARTBEATS);
            }
            (State::Associated(fe), None) if is_silent => {
                self.heartbeat_sent_at = Some(now);
                let flags = Flags { ack: Ack::Always, ..Flags::default() };
                let correlator = self.take_correlator();
                self.say(fe, Body::Heartbeat, correlator, flags);
            }
            (State::Associated(fe), _)
                if self.last_sent_at + self.settings.heartbeat_after <= now =>
            {
                self.say(fe, Body::Heartbeat, 0, Flags::default());
            }
            _ => {}
        }
    }

    /// Ends the association; queued messages remain to be sent.
    pub fn teardown(&mut self, reason: TeardownReason) {
        if let Some(fe) = self.fe() {
            self.say(fe, Body::AssociationTeardown(reason), 0, Flags::default());
        }
        if self.state != State::Down {
            self.down(reason);
        }
    }

    /// Sends a query and returns its correlator.
    pub fn query(&mut self, selects: Vec<Select>) -> Result<u64, RequestError> {
        self.request(Body::Query(selects), Flags::default())
    }

    /// Queries the value at a place.
    pub fn get(&mut self, place: &Place) -> Result<u64, RequestError> {
        let path = PathData::named(place.path.clone());
        let operation = Operation::on(OperationKind::Get, vec![path]);
        self.query(vec![Select::one(place.class, place.instance, operation)])
    }

    /// Sends a configuration that always gets a response.
    pub fn configure(&mut self, selects: Vec<Select>, mode: Mode) -> Result<u64, RequestError> {
        let flags = Flags { ack: Ack::Always, mode, ..Flags::default() };
        self.request(Body::Config(selects), flags)
    }

    /// Sends a configuration in a transaction; the first message starts it.
    ///
    /// The response reports whether the changes are possible. They take effect only at the commit.
    pub fn transact(&mut self, selects: Vec<Select>) -> Result<u64, RequestError> {
        let phase = match self.transaction {
            TransactionState::No => Phase::Start,
            TransactionState::Started => Phase::Middle,
            TransactionState::Ended => return Err(RequestError::Transaction),
        };
        let correlator = self.request(Body::Config(selects), transaction(phase))?;
        self.transaction = TransactionState::Started;
        Ok(correlator)
    }

    /// Commits the open transaction.
    pub fn commit(&mut self) -> Result<u64, RequestError> {
        if self.transaction != TransactionState::Started {
            return Err(RequestError::Transaction);
        }
        let correlator = self.request(Body::Config(commits()), transaction(Phase::End))?;
        self.transaction = TransactionState::Ended;
        Ok(correlator)
    }

    /// Aborts the transaction; rolls it back if it is committed.
    pub fn abort(&mut self) -> Result<u64, RequestError> {
        if self.transaction == TransactionState::No {
            return Err(RequestError::Transaction);
        }
        let correlator = self.request(Body::Config(commits()), transaction(Phase::Abort))?;
        self.transaction = TransactionState::No;
        Ok(correlator)
    }

    /// Reports that the committed transaction is complete on all elements (TRCOMP); there is no
    /// response.
    pub fn complete(&mut self) -> Result<(), RequestError> {
        if self.transaction != TransactionState::Ended {
            return Err(RequestError::Transaction);
        }
        let fe = self.fe().ok_or(RequestError::NotAssociated)?;
        let operation = Operation::on(OperationKind::Complete, Vec::new());
        let flags = Flags { mode: Mode::AllOrNone, ..Flags::default() };
        self.send(fe, Body::Config(vec![Select::one(1, 1, operation)]), 0, flags)?;
        self.transaction = TransactionState::No;
        Ok(())
    }

    /// Subscribes to an event, or changes its filters: property IDs and values (RFC 5812 section
    /// 4.8.5).
    pub fn subscribe(&mut self, event: &Place, set: &[(u32, u32)]) -> Result<u64, RequestError> {
        let numbers = set.iter().map(|(id, number)| (*id, Value::Unsigned((*number).into())));
        let value = Value::Struct(numbers.collect::<Fields>());
        let data = data::write(properties::of_event(), &value);
        let data = data.map_err(|_| RequestError::Transaction)?;
        let path = PathData::with(event.path.clone(), data);
        let operation = Operation::on(OperationKind::SetProperties, vec![path]);
        let select = Select::one(event.class, event.instance, operation);
        self.configure(vec![select], Mode::AllOrNone)
    }

    /// Redirects a packet to the forwarding element.
    pub fn redirect(&mut self, redirect: Redirect) -> Result<(), RequestError> {
        let fe = self.fe().ok_or(RequestError::NotAssociated)?;
        self.send(fe, Body::PacketRedirect(vec![redirect]), 0, Flags::default())
    }

    fn take_correlator(&mut self) -> u64 {
        let correlator = self.next_correlator;
        self.next_correlator += 1;
        correlator
    }

    fn request(&mut self, body: Body, flags: Flags) -> Result<u64, RequestError> {
        let fe = self.fe().ok_or(RequestError::NotAssociated)?;
        if self.pending.len() >= PENDING_MAX || self.queues.is_full() {
            return Err(RequestError::TooMany);
        }
        let correlator = self.take_correlator();
        self.send(fe, body, correlator, flags)?;
        let until = self.now + self.settings.answer_timeout;
        self.pending
            .insert(correlator, PendingTransaction { until, selects: Vec::new(), octets: 0 });
        Ok(correlator)
    }

    /// Sends a message that cannot be too long.
    fn say(&mut self, fe: Id, body: Body, correlator: u64, flags: Flags) {
        let sent = self.send(fe, body, correlator, flags);
        debug_assert!(sent.is_ok(), "such a message is short");
    }

    fn send(
        &mut self,
        fe: Id,
        body: Body,
        correlator: u64,
        mut flags: Flags,
    ) -> Result<(), RequestError> {
        flags.priority = channel::priority(body.kind());
        let header = Header { source: self.settings.id, destination: fe, correlator, flags };
        let octets = self.queues.push(&Message { header, body }).map_err(RequestError::TooLong)?;
        if octets > 0 {
            self.last_sent_at = self.now;
        }
        Ok(())
    }
}

fn transaction(phase: Phase) -> Flags {
    let (ack, mode) = (Ack::Always, Mode::AllOrNone);
    Flags { ack, mode, atomic: true, phase, ..Flags::default() }
}

fn commits() -> Vec<Select> {
    vec![Select::one(1, 1, Operation::on(OperationKind::Commit, Vec::new()))]
}

impl std::fmt::Display for RequestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RequestError::NotAssociated => f.write_str("not associated"),
            RequestError::TooMany => f.write_str("too many requests without reply"),
            RequestError::Transaction => {
                f.write_str("the transaction is in another phase, or has ended")
            }
            RequestError::TooLong(what) => what.fmt(f),
        }
    }
}

impl std::error::Error for RequestError {}
