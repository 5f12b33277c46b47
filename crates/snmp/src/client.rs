//! SNMP manager: requests, their datagrams and their results.
//!
//! A request succeeds, fails, or times out after [`SENDINGS_MAX`] datagrams without a response.
//! Each datagram has its own request identifier. So a response belongs to exactly one datagram, and
//! the time between the two is a round trip, even after a loss. The owner of the socket reports
//! when each datagram was sent and received. In version 3, the first request waits for the
//! discovery of the agent's engine identifier and clock (RFC 3414, section 4).
//!
//! Invariant: [`QUESTIONS_MAX`] and [`BINDINGS_MAX`] bound the memory. Datagrams that are
//! unsolicited, invalid or not authenticated as required are counted and change nothing.

use std::collections::VecDeque;

use packet::time::Nanos;

use crate::credentials::{Credentials, User};
use crate::message::{self, Kind, Pdu, Status};
use crate::mib::{self, Refusal};
use crate::usm::Keys;
use crate::usm_message::{self, Cover, SnmpV3Message, UsmError};
use crate::{Binding, Oid, Value};

/// Maximum number of open requests.
pub const QUESTIONS_MAX: usize = 64;

/// Maximum number of names in a request.
pub const NAMES_MAX: usize = 64;

/// Maximum number of bindings that a walk returns.
pub const BINDINGS_MAX: usize = 1 << 16;

/// Maximum number of datagrams per request before it times out.
pub const SENDINGS_MAX: usize = 3;

/// Time to wait for a response before the request is sent again.
pub const ANSWER_NS_MAX: Nanos = Nanos::from_secs(1);

/// Number of names per get-bulk request in a walk.
const REPETITIONS: u32 = 32;

/// Maximum number of reports of a different clock before the request fails.
const CLOCKS_MAX: u32 = 3;

/// Maximum time that an agent's clock may be behind the expected one (RFC 3414, section 2.2.3).
const TIME_WINDOW_S: u32 = 150;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnmpRequest {
    /// The values of these instances.
    Get(Vec<Oid>),
    /// The instances after these names.
    Next(Vec<Oid>),
    /// All instances below these names, one subtree after the other.
    Walk(Vec<Oid>),
}

/// Identifier of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestResult {
    /// The request.
    pub ticket: Ticket,
    /// Time of the datagram that was answered first; `None` if none was sent.
    pub sent: Option<Nanos>,
    /// Time of the last response, or of the timeout.
    pub at: Nanos,
    /// Number of responses.
    pub rounds: u32,
    /// The bindings, or the error.
    pub outcome: Result<Vec<Binding>, Failure>,
}

/// Reason why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No response arrived in time.
    TimedOut,
    /// The port is unreachable.
    Unreachable,
    /// The agent returned an error.
    Error(Status),
    /// The agent rejected the credentials or the message.
    Refused(Refusal),
    /// A walk makes no progress, or does not end.
    Endless,
    /// The named limit is reached.
    Limit(&'static str),
}

/// Numbers of ignored datagrams, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnexpectedDatagrams {
    /// The datagram is invalid.
    pub unreadable: u64,
    /// The datagram is not authenticated as required.
    pub forged: u64,
    /// The datagram belongs to no open request.
    pub unasked: u64,
}

/// Manager of one agent.
pub struct Client {
    credentials: Credentials,
    engine: Option<Engine>,
    open: VecDeque<OpenRequest>,
    done: VecDeque<RequestResult>,
    tickets: u64,
    number: i32,
    salt: u64,
    /// The request of the last datagram returned by [`Client::transmit`].
    handed: Option<Ticket>,
    strays: UnexpectedDatagrams,
}

/// The agent's engine; messages depend on its identifier and clock.
struct Engine {
    id: Vec<u8>,
    boots: u32,
    time: u32,
    /// Time at which the clock was received.
    at: Nanos,
    /// Whether the clock was authenticated.
    is_vouched: bool,
    keys: Keys,
}

/// A request without a complete response.
struct OpenRequest {
    ticket: Ticket,
    question: SnmpRequest,
    /// Position of a walk: its current subtree, and the last name received.
    part: usize,
    behind: Option<Oid>,
    bindings: Vec<Binding>,
    rounds: u32,
    first: Option<Nanos>,
    clocks: u32,
    /// The datagrams since the last response: request identifier and time of sending.
    sendings: Vec<(i32, Option<Nanos>)>,
    /// Time of the next action; immediate if nothing was sent.
    due: Nanos,
}

impl Client {
    /// Creates a manager with these credentials. `seed` is the start of identifiers and salts, and
    /// must differ in each run.
    pub fn new(credentials: Credentials, seed: u64) -> Client {
        Client {
            credentials,
            engine: None,
            open: VecDeque::new(),
            done: VecDeque::new(),
            tickets: 0,
            number: (seed >> 3) as i32 & 0x3fff_ffff,
            salt: seed,
            handed: None,
            strays: UnexpectedDatagrams::default(),
        }
    }

    /// Returns the credentials.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Returns the numbers of ignored datagrams.
    pub fn strays(&self) -> UnexpectedDatagrams {
        self.strays
    }

    /// Whether a request is open.
    pub fn is_waiting(&self) -> bool {
        !self.open.is_empty()
    }

    /// Opens a request. [`Client::poll`] returns the result, also if the request is invalid.
    pub fn ask(&mut self, question: SnmpRequest, now: Nanos) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let names = match &question {
            SnmpRequest::Get(names) | SnmpRequest::Next(names) | SnmpRequest::Walk(names) => {
                names.len()
            }
        };
        let limit = match names {
            0 => Some("names of a request"),
            count if count > NAMES_MAX => Some("NAMES_MAX"),
            _ if self.open.len() >= QUESTIONS_MAX => Some("QUESTIONS_MAX"),
            _ => None,
        };
        if let Some(name) = limit {
            let outcome = Err(Failure::Limit(name));
            self.done.push_back(RequestResult { ticket, sent: None, at: now, rounds: 0, outcome });
            return ticket;
        }
        self.open.push_back(OpenRequest {
            ticket,
            question,
            part: 0,
            behind: None,
            bindings: Vec::new(),
            rounds: 0,
            first: None,
            clocks: 0,
            sendings: Vec::new(),
            due: now,
        });
        ticket
    }

    /// Returns a datagram to send immediately. The caller then reports the time of sending with
    /// [`Client::sent`].
    pub fn transmit(&mut self, now: Nanos) -> Option<Vec<u8>> {
        loop {
            // Until the engine is known, only one request is sent, for discovery.
            let is_blind =
                self.engine.is_none() && matches!(self.credentials, Credentials::User(_));
            let scope = if is_blind { 1 } else { self.open.len() };
            let place = self.open.iter().take(scope).position(|open| open.due <= now)?;
            if self.open[place].sendings.len() >= SENDINGS_MAX {
                self.finish(place, now, Err(Failure::TimedOut));
                continue;
            }
            self.number = (self.number + 1) & 0x3fff_ffff;
            let number = self.number;
            let datagram = self.datagram(place, number, now);
            let open = &mut self.open[place];
            open.sendings.push((number, None));
            open.due = now.saturating_add(ANSWER_NS_MAX);
            self.handed = Some(open.ticket);
            return Some(datagram);
        }
    }

    /// Reports that the last datagram was sent at `at`.
    pub fn sent(&mut self, at: Nanos) {
        let Some(ticket) = self.handed.take() else { return };
        if let Some(open) = self.open.iter_mut().find(|open| open.ticket == ticket) {
            if let Some((_, sent)) = open.sendings.last_mut() {
                *sent = Some(at);
            }
            open.due = at.saturating_add(ANSWER_NS_MAX);
        }
    }

    /// Reports that the port is unreachable: all requests that were sent fail.
    pub fn unreachable(&mut self, at: Nanos) {
        while let Some(place) = self.open.iter().position(|open| !open.sendings.is_empty()) {
            self.finish(place, at, Err(Failure::Unreachable));
        }
    }

    /// Processes a received datagram.
    pub fn receive(&mut self, datagram: &[u8], at: Nanos) {
        match &self.credentials {
            Credentials::Community(_) => match message::decode(datagram) {
                Ok((_, pdu)) => self.answer(pdu.id, pdu, at),
                Err(_) => self.strays.unreadable += 1,
            },
            Credentials::User(_) => match SnmpV3Message::read(datagram) {
                Ok(envelope) => self.opened(&envelope, at),
                Err(_) => self.strays.unreadable += 1,
            },
        }
    }

    /// Returns the time of the next action without a response.
    pub fn next_timeout(&self) -> Option<Nanos> {
        self.open.iter().map(|open| open.due).min()
    }

    /// Discards all open requests and results.
    pub fn forget(&mut self) {
        self.open.clear();
        self.done.clear();
    }

    /// Returns the next result.
    pub fn poll(&mut self) -> Option<RequestResult> {
        self.done.pop_front()
    }

    fn datagram(&mut self, place: usize, number: i32, now: Nanos) -> Vec<u8> {
        let pdu = Pdu { id: number, ..self.open[place].pdu() };
        let user = match &self.credentials {
            Credentials::Community(community) => return message::encode(community.bytes(), &pdu),
            Credentials::User(user) => user,
        };
        let Some(engine) = &self.engine else {
            // A discovery request has an empty engine identifier and user name (RFC 3414, section
            // 4).
            let cover = Cover {
                message_id: number,
                is_reportable: true,
                engine_id: Vec::new(),
                boots: 0,
                time: 0,
                user: Vec::new(),
            };
            let pdu = Pdu { kind: Kind::Get, id: number, bindings: Vec::new() };
            return usm_message::seal(&cover, &pdu, None, 0);
        };
        self.salt = self.salt.wrapping_add(1);
        let cover = Cover {
            message_id: number,
            is_reportable: true,
            engine_id: engine.id.clone(),
            boots: engine.boots,
            time: engine.time_at(now),
            user: user.name.clone().into_bytes(),
        };
        usm_message::seal(&cover, &pdu, Some(&engine.keys), self.salt)
    }

    /// Processes a message of version 3.
    fn opened(&mut self, envelope: &SnmpV3Message, at: Nanos) {
        let Credentials::User(user) = &self.credentials else { return };
        let number = envelope.cover.message_id;
        let Some(engine) = &mut self.engine else {
            return self.discovered(envelope, number, at);
        };
        match engine.hear(envelope, user, at) {
            ProcessResult::Answer(pdu) => self.answer(number, pdu, at),
            ProcessResult::Refusal(refusal) => self.refused(number, refusal, at),
            ProcessResult::Forged => self.strays.forged += 1,
            ProcessResult::Unreadable => self.strays.unreadable += 1,
        }
    }

    /// Processes a discovery report with the engine identifier.
    fn discovered(&mut self, envelope: &SnmpV3Message, number: i32, at: Nanos) {
        let Credentials::User(user) = &self.credentials else { return };
        let Some(place) = self.asked(number) else {
            self.strays.unasked += 1;
            return;
        };
        let said = envelope.plain().ok().as_ref().and_then(report);
        let cover = &envelope.cover;
        if said != Some(Refusal::UnknownEngine) || cover.engine_id.is_empty() {
            self.strays.unreadable += 1;
            return;
        }
        self.engine = Some(Engine::new(user, cover, at));
        let open = &mut self.open[place];
        open.sendings.clear();
        open.due = at;
    }

    /// Processes a report that rejects a message.
    fn refused(&mut self, number: i32, refusal: Refusal, at: Nanos) {
        let Some(place) = self.asked(number) else {
            self.strays.unasked += 1;
            return;
        };
        let open = &mut self.open[place];
        match refusal {
            // Retry: the authenticated clock was adopted, or the engine has changed.
            Refusal::TimeWindow | Refusal::UnknownEngine if open.clocks < CLOCKS_MAX => {
                open.clocks += 1;
                open.sendings.clear();
                open.due = at;
                if refusal == Refusal::UnknownEngine {
                    self.engine = None;
                }
            }
            _ => self.finish(place, at, Err(Failure::Refused(refusal))),
        }
    }

    /// Returns the index of the request with a datagram of this identifier.
    fn asked(&self, number: i32) -> Option<usize> {
        self.open.iter().position(|open| open.sendings.iter().any(|(sent, _)| *sent == number))
    }

    /// Processes a response to the datagram with this identifier.
    fn answer(&mut self, number: i32, pdu: Pdu, at: Nanos) {
        let place = self.asked(number).filter(|_| pdu.id == number);
        let (Some(place), Kind::Response(status)) = (place, pdu.kind) else {
            self.strays.unasked += 1;
            return;
        };
        if status.code != 0 {
            return self.finish(place, at, Err(Failure::Error(status)));
        }
        let open = &mut self.open[place];
        let sent = open.sendings.iter().find(|(sent, _)| *sent == number).and_then(|(_, at)| *at);
        open.first = open.first.or(sent);
        open.rounds += 1;
        match open.take(pdu.bindings) {
            BindingsResult::More => {
                open.sendings.clear();
                open.due = at;
            }
            BindingsResult::All => self.finish(place, at, Ok(())),
            BindingsResult::Wrong(failure) => self.finish(place, at, Err(failure)),
        }
    }

    fn finish(&mut self, place: usize, at: Nanos, outcome: Result<(), Failure>) {
        let Some(open) = self.open.remove(place) else { return };
        let sent = open.first.or_else(|| open.sendings.iter().find_map(|(_, sent)| *sent));
        let outcome = outcome.map(|()| open.bindings);
        let OpenRequest { ticket, rounds, .. } = open;
        self.done.push_back(RequestResult { ticket, sent, at, rounds, outcome });
    }
}

/// Result of processing a response's bindings.
enum BindingsResult {
    /// The request continues.
    More,
    /// The request is complete.
    All,
    /// The response is invalid.
    Wrong(Failure),
}

impl OpenRequest {
    /// Returns the next PDU to send.
    fn pdu(&self) -> Pdu {
        let all = |names: &[Oid]| names.iter().cloned().map(Binding::question).collect();
        let (kind, bindings) = match &self.question {
            SnmpRequest::Get(names) => (Kind::Get, all(names)),
            SnmpRequest::Next(names) => (Kind::Next, all(names)),
            SnmpRequest::Walk(names) => {
                let behind = self.behind.clone().unwrap_or_else(|| names[self.part].clone());
                let kind = Kind::Bulk { repetitions: REPETITIONS };
                (kind, vec![Binding::question(behind)])
            }
        };
        Pdu { kind, id: 0, bindings }
    }

    /// Processes the bindings of a response.
    fn take(&mut self, bindings: Vec<Binding>) -> BindingsResult {
        let SnmpRequest::Walk(names) = &self.question else {
            self.bindings = bindings;
            return BindingsResult::All;
        };
        let (root, is_last) = (&names[self.part], self.part + 1 == names.len());
        let mut is_over = bindings.is_empty();
        for binding in bindings {
            if binding.value == Value::EndOfMibView || binding.name.below(root).is_none() {
                is_over = true;
                break;
            }
            if self.behind.as_ref().unwrap_or(root) >= &binding.name {
                return BindingsResult::Wrong(Failure::Endless);
            }
            if self.bindings.len() == BINDINGS_MAX {
                return BindingsResult::Wrong(Failure::Limit("BINDINGS_MAX"));
            }
            self.behind = Some(binding.name.clone());
            self.bindings.push(binding);
        }
        match (is_over, is_last) {
            (false, _) => BindingsResult::More,
            (true, true) => BindingsResult::All,
            (true, false) => {
                self.part += 1;
                self.behind = None;
                BindingsResult::More
            }
        }
    }
}

impl Engine {
    fn new(user: &User, cover: &Cover, at: Nanos) -> Engine {
        let keys = Keys::new(user, &cover.engine_id);
        let Cover { boots, time, ref engine_id, .. } = *cover;
        Engine { id: engine_id.clone(), boots, time, at, is_vouched: false, keys }
    }

    /// Returns the engine's time at `now`.
    fn time_at(&self, now: Nanos) -> u32 {
        let since = now.since(self.at).0 / 1_000_000_000;
        self.time.saturating_add(u32::try_from(since).unwrap_or(u32::MAX)).min(i32::MAX as u32)
    }

    /// Processes a message of this engine.
    fn hear(&mut self, envelope: &SnmpV3Message, user: &User, at: Nanos) -> ProcessResult {
        if envelope.cover.engine_id != self.id && !envelope.cover.engine_id.is_empty() {
            return ProcessResult::Forged;
        }
        if !envelope.is_signed() {
            // Without authentication, a report may end the request that it names, but has no other
            // effect.
            return match envelope.plain() {
                Ok(pdu) => match (report(&pdu), self.keys.signs()) {
                    (Some(Refusal::TimeWindow), true) | (None, true) => ProcessResult::Forged,
                    (Some(refusal), _) => ProcessResult::Refusal(refusal),
                    (None, false) => ProcessResult::Answer(pdu),
                },
                Err(_) => ProcessResult::Unreadable,
            };
        }
        if !self.keys.signs() {
            return ProcessResult::Forged;
        }
        match envelope.open(&self.keys) {
            Ok(_) if !self.believes(&envelope.cover, at) => ProcessResult::Forged,
            Ok(pdu) => match report(&pdu) {
                Some(refusal) => ProcessResult::Refusal(refusal),
                None if !envelope.is_protected_by(&self.keys) => ProcessResult::Forged,
                None if envelope.cover.user != user.name.as_bytes() => ProcessResult::Forged,
                None => ProcessResult::Answer(pdu),
            },
            Err(UsmError::Unreadable(_)) => ProcessResult::Unreadable,
            Err(UsmError::Forged | UsmError::Unprotected) => ProcessResult::Forged,
        }
    }

    /// Whether an authenticated message is recent; adopts its clock. A clock from before the first
    /// authenticated message is not trusted, so that message is always accepted.
    fn believes(&mut self, cover: &Cover, at: Nanos) -> bool {
        let is_old = cover.boots < self.boots
            || cover.boots == self.boots
                && cover.time.saturating_add(TIME_WINDOW_S) < self.time_at(at);
        if is_old && self.is_vouched {
            return false;
        }
        (self.boots, self.time, self.at, self.is_vouched) = (cover.boots, cover.time, at, true);
        true
    }
}

/// Result of processing a message of version 3.
enum ProcessResult {
    Answer(Pdu),
    Refusal(Refusal),
    Forged,
    Unreadable,
}

/// Returns the error that a report names.
fn report(pdu: &Pdu) -> Option<Refusal> {
    (pdu.kind == Kind::Report).then_some(())?;
    pdu.bindings.iter().find_map(|binding| mib::report(&binding.name))
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::TimedOut => write!(
                f,
                "no reply to {SENDINGS_MAX} datagrams with a timeout of {} s each",
                ANSWER_NS_MAX.as_secs_f64()
            ),
            Failure::Unreachable => f.write_str("connection refused: no agent listens there"),
            Failure::Error(status) => match status.index {
                0 => write!(f, "the agent reports {}", status.name()),
                index => write!(f, "the agent reports {} for name {index}", status.name()),
            },
            Failure::Refused(refusal) => f.write_str(refusal.words()),
            Failure::Endless => f.write_str("the agent returns names out of order"),
            Failure::Limit(name) => write!(f, "limit {name} reached"),
        }
    }
}
