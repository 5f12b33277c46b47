//! Whoever asks: questions, their datagrams, and what came of each.
//!
//! A question is answered, refused, or given up after [`SENDINGS_MAX`] datagrams without an answer. Each
//! datagram has a number of its own, so that an answer belongs to one of them and the span between
//! the two is a round trip, also when a datagram was lost. Whoever owns the socket says when each was
//! sent and came. With version 3 the first question waits for the agent's engine to say its name and
//! its clock (RFC 3414, section 4).
//!
//! Invariant: memory is bounded by [`QUESTIONS_MAX`] and [`BINDINGS_MAX`]; datagrams that nobody asked for,
//! are not signed as they ought to be or make no sense are counted and change nothing.

use std::collections::VecDeque;

use packet::time::Nanos;

use crate::credentials::{Credentials, User};
use crate::message::{self, Kind, Pdu, Status};
use crate::mib::{self, Refusal};
use crate::sealed::{self, Cover, Distrust, Envelope};
use crate::usm::Keys;
use crate::{Binding, Oid, Value};

/// Questions that may be open at a time.
pub const QUESTIONS_MAX: usize = 64;

/// Names that one question may have.
pub const NAMES_MAX: usize = 64;

/// Bindings that a walk brings at most.
pub const BINDINGS_MAX: usize = 1 << 16;

/// Datagrams that are sent for an answer before it is given up.
pub const SENDINGS_MAX: usize = 3;

/// How long an answer is waited for before the question is sent again.
pub const ANSWER_NS_MAX: Nanos = Nanos::from_secs(1);

/// Names that an agent is asked for at once on a walk.
const REPETITIONS: u32 = 32;

/// How often an agent may say that its clock is another before that is a refusal.
const CLOCKS_MAX: u32 = 3;

/// How far an agent's clock may be behind what is known of it (RFC 3414, section 2.2.3).
const TIME_WINDOW_S: u32 = 150;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// The values of these instances.
    Get(Vec<Oid>),
    /// The instances behind these names.
    Next(Vec<Oid>),
    /// All instances below these names, one part after the other.
    Walk(Vec<Oid>),
}

/// Which question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Which.
    pub ticket: Ticket,
    /// When the datagram was sent that was answered first; none if none was sent.
    pub sent: Option<Nanos>,
    /// When the last answer came, or it was given up.
    pub at: Nanos,
    /// How many answers it took.
    pub rounds: u32,
    /// What was answered, or why nothing was.
    pub outcome: Result<Vec<Binding>, Failure>,
}

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Nobody answers in time.
    TimedOut,
    /// Nobody listens there.
    Unreachable,
    /// The agent answers that it cannot.
    Error(Status),
    /// The agent does not believe who asks.
    Refused(Refusal),
    /// A walk that does not go on, or has no end.
    Endless,
    /// A limit with this name is reached.
    Limit(&'static str),
}

/// Datagrams that changed nothing, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strays {
    /// They make no sense.
    pub unreadable: u64,
    /// They are not signed as they ought to be.
    pub forged: u64,
    /// Nobody waits for them.
    pub unasked: u64,
}

/// Whoever asks one agent.
pub struct Client {
    credentials: Credentials,
    engine: Option<Engine>,
    open: VecDeque<Open>,
    done: VecDeque<Done>,
    tickets: u64,
    number: i32,
    salt: u64,
    /// The datagram that was handed out last: of which question.
    handed: Option<Ticket>,
    strays: Strays,
}

/// The agent's engine, whose name and clock its messages depend on.
struct Engine {
    id: Vec<u8>,
    boots: u32,
    time: u32,
    /// When its clock said so.
    at: Nanos,
    /// Whether that was signed.
    is_vouched: bool,
    keys: Keys,
}

/// A question that has no answer yet.
struct Open {
    ticket: Ticket,
    question: Question,
    /// Of a walk: which of its parts it is at, and the name behind which it goes on.
    part: usize,
    behind: Option<Oid>,
    bindings: Vec<Binding>,
    rounds: u32,
    first: Option<Nanos>,
    clocks: u32,
    /// The datagrams since the last answer: number, and when it was sent.
    sendings: Vec<(i32, Option<Nanos>)>,
    /// When something has to happen; at once if nothing was sent.
    due: Nanos,
}

impl Client {
    /// Asks by these credentials. `seed` is where numbers and salts begin, and is another each time.
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
            strays: Strays::default(),
        }
    }

    /// By what it asks.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Datagrams that changed nothing.
    pub fn strays(&self) -> Strays {
        self.strays
    }

    /// Whether a question is open.
    pub fn is_waiting(&self) -> bool {
        !self.open.is_empty()
    }

    /// Asks; what comes of it is told by [`Client::poll`], also that it cannot be asked.
    pub fn ask(&mut self, question: Question, now: Nanos) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let names = match &question {
            Question::Get(names) | Question::Next(names) | Question::Walk(names) => names.len(),
        };
        let limit = match names {
            0 => Some("names of a question"),
            count if count > NAMES_MAX => Some("NAMES_MAX"),
            _ if self.open.len() >= QUESTIONS_MAX => Some("QUESTIONS_MAX"),
            _ => None,
        };
        if let Some(name) = limit {
            let outcome = Err(Failure::Limit(name));
            self.done.push_back(Done { ticket, sent: None, at: now, rounds: 0, outcome });
            return ticket;
        }
        self.open.push_back(Open {
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

    /// A datagram that is due, to be sent at once; [`Client::sent`] is then told when it was.
    pub fn transmit(&mut self, now: Nanos) -> Option<Vec<u8>> {
        loop {
            // Until the engine is known, one question finds out.
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

    /// The datagram that was handed out last left at `at`.
    pub fn sent(&mut self, at: Nanos) {
        let Some(ticket) = self.handed.take() else { return };
        if let Some(open) = self.open.iter_mut().find(|open| open.ticket == ticket) {
            if let Some((_, sent)) = open.sendings.last_mut() {
                *sent = Some(at);
            }
            open.due = at.saturating_add(ANSWER_NS_MAX);
        }
    }

    /// The socket says that nobody listens there: so it is for every question that was sent.
    pub fn unreachable(&mut self, at: Nanos) {
        while let Some(place) = self.open.iter().position(|open| !open.sendings.is_empty()) {
            self.finish(place, at, Err(Failure::Unreachable));
        }
    }

    /// A datagram came.
    pub fn receive(&mut self, datagram: &[u8], at: Nanos) {
        match &self.credentials {
            Credentials::Community(_) => match message::decode(datagram) {
                Ok((_, pdu)) => self.answer(pdu.id, pdu, at),
                Err(_) => self.strays.unreadable += 1,
            },
            Credentials::User(_) => match Envelope::read(datagram) {
                Ok(envelope) => self.opened(&envelope, at),
                Err(_) => self.strays.unreadable += 1,
            },
        }
    }

    /// When something is due although nothing comes.
    pub fn next_timeout(&self) -> Option<Nanos> {
        self.open.iter().map(|open| open.due).min()
    }

    /// Waits for no answer any more, and tells of none.
    pub fn forget(&mut self) {
        self.open.clear();
        self.done.clear();
    }

    /// What has come of a question.
    pub fn poll(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    fn datagram(&mut self, place: usize, number: i32, now: Nanos) -> Vec<u8> {
        let pdu = Pdu { id: number, ..self.open[place].pdu() };
        let user = match &self.credentials {
            Credentials::Community(community) => return message::encode(community.bytes(), &pdu),
            Credentials::User(user) => user,
        };
        let Some(engine) = &self.engine else {
            // Who asks for the engine's name has none himself yet (RFC 3414, section 4).
            let cover = Cover {
                message_id: number,
                is_reportable: true,
                engine_id: Vec::new(),
                boots: 0,
                time: 0,
                user: Vec::new(),
            };
            let pdu = Pdu { kind: Kind::Get, id: number, bindings: Vec::new() };
            return sealed::seal(&cover, &pdu, None, 0);
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
        sealed::seal(&cover, &pdu, Some(&engine.keys), self.salt)
    }

    /// A message of version 3.
    fn opened(&mut self, envelope: &Envelope, at: Nanos) {
        let Credentials::User(user) = &self.credentials else { return };
        let number = envelope.cover.message_id;
        let Some(engine) = &mut self.engine else {
            return self.discovered(envelope, number, at);
        };
        match engine.hear(envelope, user, at) {
            Heard::Answer(pdu) => self.answer(number, pdu, at),
            Heard::Refusal(refusal) => self.refused(number, refusal, at),
            Heard::Forged => self.strays.forged += 1,
            Heard::Unreadable => self.strays.unreadable += 1,
        }
    }

    /// The engine says its name.
    fn discovered(&mut self, envelope: &Envelope, number: i32, at: Nanos) {
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

    /// The agent does not take a message.
    fn refused(&mut self, number: i32, refusal: Refusal, at: Nanos) {
        let Some(place) = self.asked(number) else {
            self.strays.unasked += 1;
            return;
        };
        let open = &mut self.open[place];
        match refusal {
            // Its signed clock was taken over, or it is another engine since: once more.
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

    /// The question to which a datagram with this number belongs.
    fn asked(&self, number: i32) -> Option<usize> {
        self.open.iter().position(|open| open.sendings.iter().any(|(sent, _)| *sent == number))
    }

    /// An answer to the datagram with this number.
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
            Taken::More => {
                open.sendings.clear();
                open.due = at;
            }
            Taken::All => self.finish(place, at, Ok(())),
            Taken::Wrong(failure) => self.finish(place, at, Err(failure)),
        }
    }

    fn finish(&mut self, place: usize, at: Nanos, outcome: Result<(), Failure>) {
        let Some(open) = self.open.remove(place) else { return };
        let sent = open.first.or_else(|| open.sendings.iter().find_map(|(_, sent)| *sent));
        let outcome = outcome.map(|()| open.bindings);
        let Open { ticket, rounds, .. } = open;
        self.done.push_back(Done { ticket, sent, at, rounds, outcome });
    }
}

/// What the bindings of an answer come to.
enum Taken {
    /// There is more to ask.
    More,
    /// That was all.
    All,
    /// It makes no sense.
    Wrong(Failure),
}

impl Open {
    /// What is asked next.
    fn pdu(&self) -> Pdu {
        let all = |names: &[Oid]| names.iter().cloned().map(Binding::question).collect();
        let (kind, bindings) = match &self.question {
            Question::Get(names) => (Kind::Get, all(names)),
            Question::Next(names) => (Kind::Next, all(names)),
            Question::Walk(names) => {
                let behind = self.behind.clone().unwrap_or_else(|| names[self.part].clone());
                let kind = Kind::Bulk { repetitions: REPETITIONS };
                (kind, vec![Binding::question(behind)])
            }
        };
        Pdu { kind, id: 0, bindings }
    }

    /// Takes what an answer brought.
    fn take(&mut self, bindings: Vec<Binding>) -> Taken {
        let Question::Walk(names) = &self.question else {
            self.bindings = bindings;
            return Taken::All;
        };
        let (root, is_last) = (&names[self.part], self.part + 1 == names.len());
        let mut is_over = bindings.is_empty();
        for binding in bindings {
            if binding.value == Value::EndOfMibView || binding.name.below(root).is_none() {
                is_over = true;
                break;
            }
            if self.behind.as_ref().unwrap_or(root) >= &binding.name {
                return Taken::Wrong(Failure::Endless);
            }
            if self.bindings.len() == BINDINGS_MAX {
                return Taken::Wrong(Failure::Limit("BINDINGS_MAX"));
            }
            self.behind = Some(binding.name.clone());
            self.bindings.push(binding);
        }
        match (is_over, is_last) {
            (false, _) => Taken::More,
            (true, true) => Taken::All,
            (true, false) => {
                self.part += 1;
                self.behind = None;
                Taken::More
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

    /// What its clock says at `now`.
    fn time_at(&self, now: Nanos) -> u32 {
        let since = now.since(self.at).0 / 1_000_000_000;
        self.time.saturating_add(u32::try_from(since).unwrap_or(u32::MAX)).min(i32::MAX as u32)
    }

    /// What a message of this engine comes to.
    fn hear(&mut self, envelope: &Envelope, user: &User, at: Nanos) -> Heard {
        if envelope.cover.engine_id != self.id && !envelope.cover.engine_id.is_empty() {
            return Heard::Forged;
        }
        if !envelope.is_signed() {
            // Nobody vouches for it: a report ends the question that it names, no more.
            return match envelope.plain() {
                Ok(pdu) => match (report(&pdu), self.keys.signs()) {
                    (Some(Refusal::TimeWindow), true) | (None, true) => Heard::Forged,
                    (Some(refusal), _) => Heard::Refusal(refusal),
                    (None, false) => Heard::Answer(pdu),
                },
                Err(_) => Heard::Unreadable,
            };
        }
        if !self.keys.signs() {
            return Heard::Forged;
        }
        match envelope.open(&self.keys) {
            Ok(_) if !self.believes(&envelope.cover, at) => Heard::Forged,
            Ok(pdu) => match report(&pdu) {
                Some(refusal) => Heard::Refusal(refusal),
                None if !envelope.is_protected_by(&self.keys) => Heard::Forged,
                None if envelope.cover.user != user.name.as_bytes() => Heard::Forged,
                None => Heard::Answer(pdu),
            },
            Err(Distrust::Unreadable(_)) => Heard::Unreadable,
            Err(Distrust::Forged | Distrust::Unprotected) => Heard::Forged,
        }
    }

    /// Whether a signed message is of now, not of long ago; its clock is taken over. Before anything was
    /// signed, what is known of the clock is anybody's word, and the first signed one counts.
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

/// What a message of version 3 comes to.
enum Heard {
    Answer(Pdu),
    Refusal(Refusal),
    Forged,
    Unreadable,
}

/// What a message reports.
fn report(pdu: &Pdu) -> Option<Refusal> {
    (pdu.kind == Kind::Report).then_some(())?;
    pdu.bindings.iter().find_map(|binding| mib::report(&binding.name))
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::TimedOut => write!(
                f,
                "no answer to {SENDINGS_MAX} datagrams, each waited for {} s",
                ANSWER_NS_MAX.as_secs_f64()
            ),
            Failure::Unreachable => f.write_str("nobody listens there"),
            Failure::Error(status) => match status.index {
                0 => write!(f, "the agent answers {}", status.name()),
                index => write!(f, "the agent answers {} to name {index}", status.name()),
            },
            Failure::Refused(refusal) => f.write_str(refusal.words()),
            Failure::Endless => f.write_str("the agent's names do not come in order"),
            Failure::Limit(name) => write!(f, "{name} is reached"),
        }
    }
}
