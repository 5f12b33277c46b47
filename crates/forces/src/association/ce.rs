//! A control element's end of one association.
//!
//! Requests get a correlator, by which the answer that comes is known; one in several parts is put
//! together first. A control element with several forwarding elements has a [`Ce`] for each.

/// Answers, and what is in them.
mod answer;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::Moment;
use super::channel::{self, Channel, Queues};
use super::element::Place;
use super::properties;
use crate::value::{Fields, Value};
use crate::wire::{
    Ack, Body, Flags, Header, Id, Message, Mode, Operation, OperationKind, PathData, Phase,
    Redirect, Select, SetupResult, TeardownReason, TooLong, data, decode,
};
pub use answer::Answer;

/// Most octets of the parts of one answer.
pub const ANSWER_OCTETS_MAX: usize = 256 << 20;
/// Most requests that wait for their answers.
pub const PENDING_MAX: usize = 4096;
/// Most events that wait to be polled before more is read.
pub const EVENTS_MAX: usize = 4096;

/// How a control element behaves.
#[derive(Debug, Clone)]
pub struct CeSettings {
    /// Its id.
    pub id: Id,
    /// The id for a forwarding element that has none; it is denied if there is none for it.
    pub gives: Option<Id>,
    /// The forwarding elements that may be associated; any if none is said.
    pub admits: Option<Vec<Id>>,
    /// After which silence of its own it sends a heartbeat; has to be well below FEPO's CEHDI.
    pub heartbeat_after: Duration,
    /// After which silence the forwarding element is asked for a sign of life, and after which
    /// silence behind that it is lost.
    pub asks_after: Duration,
    /// How long an answer is waited for.
    pub answer_timeout: Duration,
}

impl CeSettings {
    /// What goes with FEPO's defaults.
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

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CeEvent {
    /// There is an association, with this forwarding element, which told this.
    Associated(Id, Vec<Select>),
    /// A request was answered.
    Answered(Answer),
    /// A request was not answered in time.
    TimedOut(u64),
    /// The forwarding element tells of events.
    Notified(Vec<Select>),
    /// The forwarding element sends a packet.
    Redirected(Redirect),
    /// The association is over, or was not made; the connection is to be ended.
    Down(TeardownReason),
}

/// A request that was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// There is no association.
    NotAssociated,
    /// Too many requests wait for their answers.
    TooMany,
    /// No transaction is open, or another one is.
    Transaction,
    /// It does not fit into a message.
    TooLong(TooLong),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Associated(Id),
    Down,
}

/// How far a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    No,
    Started,
    Ended,
}

#[derive(Debug)]
struct Pending {
    until: Moment,
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
    pending: BTreeMap<u64, Pending>,
    next_correlator: u64,
    transaction: Open,
    now: Moment,
    heard_at: Moment,
    said_at: Moment,
    asked_at: Option<Moment>,
}

impl Ce {
    /// An end of a connection that has just been made; the forwarding element speaks first.
    pub fn new(settings: CeSettings, now: Moment) -> Ce {
        Ce {
            settings,
            state: State::Waiting,
            queues: Queues::default(),
            events: VecDeque::new(),
            pending: BTreeMap::new(),
            next_correlator: 1,
            transaction: Open::No,
            now,
            heard_at: now,
            said_at: now,
            asked_at: None,
        }
    }

    /// The forwarding element that it is associated with.
    pub fn fe(&self) -> Option<Id> {
        match self.state {
            State::Associated(fe) => Some(fe),
            _ => None,
        }
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<CeEvent> {
        self.events.pop_front()
    }

    /// The next message to be sent, by strict priority, and its channel.
    pub fn poll_transmit(&mut self) -> Option<(Channel, Vec<u8>)> {
        self.queues.pop()
    }

    /// The next message to be sent by one channel.
    pub fn poll_transmit_by(&mut self, channel: Channel) -> Option<Vec<u8>> {
        self.queues.pop_of(channel)
    }

    /// Whether more is to be read: not before what happened was polled.
    pub fn can_receive(&self) -> bool {
        self.events.len() < EVENTS_MAX
    }

    /// Takes one message that came by a channel. What cannot be read, or is not expected, is
    /// dropped.
    pub fn receive(&mut self, channel: Channel, bytes: &[u8], now: Moment) {
        self.now = self.now.max(now);
        let Ok((header, _)) = channel::received(channel, bytes) else { return };
        let Ok(message) = decode(bytes) else { return };
        if self.state == State::Down || self.fe().is_some_and(|fe| header.source != fe) {
            return;
        }
        (self.heard_at, self.asked_at) = (self.now, None);
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
            // Only forwarding elements answer a heartbeat, whatever it asks for.
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
        self.transaction = Open::No;
        self.events.push_back(CeEvent::Down(reason));
    }

    /// When something is due if nothing comes before.
    pub fn next_timeout(&self) -> Option<Moment> {
        if self.state == State::Down {
            return None;
        }
        let mut due = vec![self.asked_at.unwrap_or(self.heard_at) + self.settings.asks_after];
        if self.fe().is_some() {
            due.push(self.said_at + self.settings.heartbeat_after);
        }
        due.extend(self.pending.values().map(|pending| pending.until));
        due.into_iter().min()
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Moment) {
        self.now = self.now.max(now);
        let now = self.now;
        let late =
            |(correlator, pending): (&u64, &Pending)| (pending.until <= now).then_some(*correlator);
        for correlator in self.pending.iter().filter_map(late).collect::<Vec<_>>() {
            self.pending.remove(&correlator);
            self.events.push_back(CeEvent::TimedOut(correlator));
        }
        let since = self.asked_at.unwrap_or(self.heard_at);
        let is_silent = since + self.settings.asks_after <= now;
        match (self.state, self.asked_at) {
            (State::Waiting, _) if is_silent => self.down(TeardownReason::OTHER),
            (State::Associated(_), Some(_)) if is_silent => {
                self.teardown(TeardownReason::HEARTBEATS);
            }
            (State::Associated(fe), None) if is_silent => {
                self.asked_at = Some(now);
                let flags = Flags { ack: Ack::Always, ..Flags::default() };
                let correlator = self.take_correlator();
                self.say(fe, Body::Heartbeat, correlator, flags);
            }
            (State::Associated(fe), _) if self.said_at + self.settings.heartbeat_after <= now => {
                self.say(fe, Body::Heartbeat, 0, Flags::default());
            }
            _ => {}
        }
    }

    /// Ends the association; what is queued is still to be sent.
    pub fn teardown(&mut self, reason: TeardownReason) {
        if let Some(fe) = self.fe() {
            self.say(fe, Body::AssociationTeardown(reason), 0, Flags::default());
        }
        if self.state != State::Down {
            self.down(reason);
        }
    }

    /// Asks for something; the correlator of the answer.
    pub fn query(&mut self, selects: Vec<Select>) -> Result<u64, Refused> {
        self.request(Body::Query(selects), Flags::default())
    }

    /// Asks for the value at a place.
    pub fn get(&mut self, place: &Place) -> Result<u64, Refused> {
        let path = PathData::named(place.path.clone());
        let operation = Operation::on(OperationKind::Get, vec![path]);
        self.query(vec![Select::one(place.class, place.instance, operation)])
    }

    /// Changes something, and is answered in any case.
    pub fn configure(&mut self, selects: Vec<Select>, mode: Mode) -> Result<u64, Refused> {
        let flags = Flags { ack: Ack::Always, mode, ..Flags::default() };
        self.request(Body::Config(selects), flags)
    }

    /// Changes something in a transaction, which is started by its first message. The answer says
    /// whether it could be done; it is not until the transaction is committed.
    pub fn transact(&mut self, selects: Vec<Select>) -> Result<u64, Refused> {
        let phase = match self.transaction {
            Open::No => Phase::Start,
            Open::Started => Phase::Middle,
            Open::Ended => return Err(Refused::Transaction),
        };
        let correlator = self.request(Body::Config(selects), transaction(phase))?;
        self.transaction = Open::Started;
        Ok(correlator)
    }

    /// Lets the open transaction take effect.
    pub fn commit(&mut self) -> Result<u64, Refused> {
        if self.transaction != Open::Started {
            return Err(Refused::Transaction);
        }
        let correlator = self.request(Body::Config(commits()), transaction(Phase::End))?;
        self.transaction = Open::Ended;
        Ok(correlator)
    }

    /// Takes the transaction back, committed or not.
    pub fn abort(&mut self) -> Result<u64, Refused> {
        if self.transaction == Open::No {
            return Err(Refused::Transaction);
        }
        let correlator = self.request(Body::Config(commits()), transaction(Phase::Abort))?;
        self.transaction = Open::No;
        Ok(correlator)
    }

    /// Says that the committed transaction is so everywhere (TRCOMP); nobody answers.
    pub fn complete(&mut self) -> Result<(), Refused> {
        if self.transaction != Open::Ended {
            return Err(Refused::Transaction);
        }
        let fe = self.fe().ok_or(Refused::NotAssociated)?;
        let operation = Operation::on(OperationKind::Complete, Vec::new());
        let flags = Flags { mode: Mode::AllOrNone, ..Flags::default() };
        self.send(fe, Body::Config(vec![Select::one(1, 1, operation)]), 0, flags)?;
        self.transaction = Open::No;
        Ok(())
    }

    /// Subscribes to an event, or changes its filters: properties by id (RFC 5812 section 4.8.5).
    pub fn subscribe(&mut self, event: &Place, set: &[(u32, u32)]) -> Result<u64, Refused> {
        let numbers = set.iter().map(|(id, number)| (*id, Value::Unsigned((*number).into())));
        let value = Value::Struct(numbers.collect::<Fields>());
        let data = data::write(properties::of_event(), &value);
        let data = data.map_err(|_| Refused::Transaction)?;
        let path = PathData::with(event.path.clone(), data);
        let operation = Operation::on(OperationKind::SetProperties, vec![path]);
        let select = Select::one(event.class, event.instance, operation);
        self.configure(vec![select], Mode::AllOrNone)
    }

    /// Sends a packet to the forwarding element.
    pub fn redirect(&mut self, redirect: Redirect) -> Result<(), Refused> {
        let fe = self.fe().ok_or(Refused::NotAssociated)?;
        self.send(fe, Body::PacketRedirect(vec![redirect]), 0, Flags::default())
    }

    fn take_correlator(&mut self) -> u64 {
        let correlator = self.next_correlator;
        self.next_correlator += 1;
        correlator
    }

    fn request(&mut self, body: Body, flags: Flags) -> Result<u64, Refused> {
        let fe = self.fe().ok_or(Refused::NotAssociated)?;
        if self.pending.len() >= PENDING_MAX || self.queues.is_full() {
            return Err(Refused::TooMany);
        }
        let correlator = self.take_correlator();
        self.send(fe, body, correlator, flags)?;
        let until = self.now + self.settings.answer_timeout;
        self.pending.insert(correlator, Pending { until, selects: Vec::new(), octets: 0 });
        Ok(correlator)
    }

    /// Sends what is never too long.
    fn say(&mut self, fe: Id, body: Body, correlator: u64, flags: Flags) {
        let sent = self.send(fe, body, correlator, flags);
        debug_assert!(sent.is_ok(), "such a message has a few words");
    }

    fn send(
        &mut self,
        fe: Id,
        body: Body,
        correlator: u64,
        mut flags: Flags,
    ) -> Result<(), Refused> {
        flags.priority = channel::priority(body.kind());
        let header = Header { source: self.settings.id, destination: fe, correlator, flags };
        let octets = self.queues.push(&Message { header, body }).map_err(Refused::TooLong)?;
        if octets > 0 {
            self.said_at = self.now;
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

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::NotAssociated => f.write_str("there is no association"),
            Refused::TooMany => f.write_str("too many requests wait for their answers"),
            Refused::Transaction => f.write_str("the transaction is not that far, or is over"),
            Refused::TooLong(what) => what.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}
