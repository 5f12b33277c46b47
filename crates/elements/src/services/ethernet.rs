//! Protocol agent for Ethernet: receives programs in chunks on a private EtherType, and returns
//! their status.
//!
//! The payload of the Ethernet header (EtherType 0x88b6, IEEE 802 local experimental 2) has the
//! following format, in network byte order:
//!
//! ```text
//! version 1: u8 | kind: u8 | session: u32 | then, by kind
//! chunk   1     index: u16 | count: u16 | length: u16 | bytes            to us
//! status  2     state: u8 | 0: u8 | next: u16 | part: u16 | parts: u16 | length: u16 | text    from us
//! ask     3     part: u16                                                 to us
//! ```
//!
//! Chunks may arrive in any order, several times, or not at all. The agent replies to each with a
//! status whose `next` is the first missing chunk. When no chunk is missing, the agent loads the
//! program once and replaces the running one. The status then reports the outcome, with the
//! problems in parts, and repeats it on request. The sender's address and a number that the sender
//! chooses identify a session.
//!
//! Invariants:
//! - The agent keeps at most [`SESSIONS_MAX`] programs of [`BYTES_MAX`], each for [`SILENCE_MAX`]
//!   after its sender's last frame.
//! - Every host that can send on the port can program the element. The port must not be reachable
//!   by other hosts.

use std::collections::{BTreeMap, VecDeque};

use packet::header::ethernet::{self, Mac};
use packet::time::Nanos;
use serde_json::Value;

use crate::control::Request;
use crate::control::request::ProgramSource;

pub mod agent_port;
pub mod port;
pub mod sender;

/// EtherType of the agent's frames.
pub const ETHER_TYPE: u16 = 0x88b6;
/// Maximum number of programs that are received at the same time.
pub const SESSIONS_MAX: usize = 4;
/// Maximum size of a program in bytes.
pub const BYTES_MAX: usize = progfe::xml::TEXT_BYTES_MAX;
/// Maximum bytes of a chunk, and of a part of a status.
pub const CHUNK_BYTES_MAX: usize = 1400;
/// How long a session is kept after the last frame of its sender.
pub const SILENCE_MAX: Nanos = Nanos::from_secs(30);
/// Maximum number of frames that wait for the agent.
pub const FRAMES_MAX: usize = 1024;

const VERSION: u8 = 1;
const CHUNK: u8 = 1;
const STATUS: u8 = 2;
const ASK: u8 = 3;
const HEAD_BYTES: usize = 6;

/// State of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Chunks are missing.
    Receiving,
    /// The program runs.
    Accepted,
    /// The program is rejected; the text has the reason.
    Refused,
    /// All sessions are in use; the sender can retry later.
    Busy,
    /// The session does not exist.
    Unknown,
}

impl State {
    const ALL: [State; 5] =
        [State::Receiving, State::Accepted, State::Refused, State::Busy, State::Unknown];
}

/// A status message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// State of the program.
    pub state: State,
    /// The first missing chunk.
    pub next: u16,
    /// Index of this part of the text, and number of parts.
    pub part: (u16, u16),
    /// The part of the text.
    pub text: Vec<u8>,
}

/// Frames and programs by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// New chunks.
    pub chunks: u64,
    /// Duplicate chunks.
    pub repeated: u64,
    /// Programs that were loaded.
    pub accepted: u64,
    /// Programs that were rejected.
    pub refused: u64,
    /// Malformed frames.
    pub malformed: u64,
    /// Frames that needed a new session when all sessions were in use.
    pub busy: u64,
}

/// Protocol agent for Ethernet.
#[derive(Debug)]
pub struct Ethernet {
    own: Mac,
    sessions: Vec<Session>,
    /// Counters of the agent.
    pub counters: Counters,
}

#[derive(Debug)]
struct Session {
    from: Mac,
    number: u32,
    count: u16,
    chunks: BTreeMap<u16, Vec<u8>>,
    bytes: usize,
    next: u16,
    heard: Nanos,
    outcome: Option<(State, Vec<u8>)>,
}

impl Ethernet {
    /// Creates an agent on a port with this address.
    pub fn new(own: Mac) -> Ethernet {
        Ethernet { own, sessions: Vec::new(), counters: Counters::default() }
    }

    /// Processes a frame and returns the reply, if there is one. `carry` processes requests to the
    /// element.
    pub fn frame_came(
        &mut self,
        frame: &[u8],
        now: Nanos,
        carry: &mut dyn FnMut(Request) -> Result<Value, String>,
    ) -> Option<Vec<u8>> {
        let outer = ethernet::View::new(frame)?;
        let (from, payload) = (outer.source(), outer.payload());
        self.sessions.retain(|session| now.since(session.heard) < SILENCE_MAX);
        let Some((kind, number, rest)) = head(payload).filter(|_| !ethernet::is_group(&from))
        else {
            self.counters.malformed += 1;
            return None;
        };
        let (status, part) = match (kind, rest) {
            (CHUNK, rest) => {
                let Some((index, count, bytes)) = chunk(rest) else {
                    self.counters.malformed += 1;
                    return None;
                };
                let Some(at) = self.session(from, number, count, now) else {
                    return Some(self.frame(from, number, &Status::of(State::Busy)));
                };
                if self.sessions[at].count != count {
                    self.counters.malformed += 1;
                    return None;
                }
                self.take(at, (index, bytes), carry);
                (at, 0)
            }
            (ASK, [high, low, ..]) => {
                let found = self.sessions.iter_mut().position(|it| it.is(from, number));
                let Some(at) = found else {
                    return Some(self.frame(from, number, &Status::of(State::Unknown)));
                };
                (at, u16::from_be_bytes([*high, *low]))
            }
            _ => {
                self.counters.malformed += 1;
                return None;
            }
        };
        let session = &mut self.sessions[status];
        session.heard = now;
        let status = session.status(part);
        Some(self.frame(from, number, &status))
    }

    /// Returns the index of a session. Begins a new session if there is room.
    fn session(&mut self, from: Mac, number: u32, count: u16, now: Nanos) -> Option<usize> {
        if let Some(at) = self.sessions.iter().position(|it| it.is(from, number)) {
            return Some(at);
        }
        // A sender that begins a new session has abandoned the earlier one.
        self.sessions.retain(|session| session.from != from);
        if self.sessions.len() == SESSIONS_MAX {
            self.counters.busy += 1;
            return None;
        }
        self.sessions.push(Session {
            from,
            number,
            count,
            chunks: BTreeMap::new(),
            bytes: 0,
            next: 0,
            heard: now,
            outcome: None,
        });
        Some(self.sessions.len() - 1)
    }

    /// Stores a chunk, and loads the program after the last one.
    fn take(
        &mut self,
        at: usize,
        (index, bytes): (u16, &[u8]),
        carry: &mut dyn FnMut(Request) -> Result<Value, String>,
    ) {
        let session = &mut self.sessions[at];
        if session.outcome.is_some() || session.chunks.contains_key(&index) {
            self.counters.repeated += 1;
            return;
        }
        self.counters.chunks += 1;
        session.bytes += bytes.len();
        if session.bytes > BYTES_MAX {
            let why = format!("program too large: at most {BYTES_MAX} bytes");
            session.end(Err(why));
            self.counters.refused += 1;
            return;
        }
        session.chunks.insert(index, bytes.to_vec());
        while session.chunks.contains_key(&session.next) {
            session.next += 1;
        }
        if session.next < session.count {
            return;
        }
        let all: Vec<u8> = std::mem::take(&mut session.chunks).into_values().flatten().collect();
        let outcome = match String::from_utf8(all) {
            Err(_) => Err("the program is not UTF-8".to_owned()),
            Ok(text) => {
                let name = "program.fe.xml".to_owned();
                carry(Request::Load(ProgramSource { name, text, number: None }))
                    .map(|told| told.to_string())
            }
        };
        match outcome {
            Ok(_) => self.counters.accepted += 1,
            Err(_) => self.counters.refused += 1,
        }
        session.end(outcome);
    }

    fn frame(&self, to: Mac, session: u32, status: &Status) -> Vec<u8> {
        frame(to, self.own, session, STATUS, &status.bytes())
    }
}

impl Session {
    fn is(&self, from: Mac, number: u32) -> bool {
        (self.from, self.number) == (from, number)
    }

    fn end(&mut self, outcome: Result<String, String>) {
        self.chunks = BTreeMap::new();
        self.outcome = Some(match outcome {
            Ok(text) => (State::Accepted, text.into_bytes()),
            Err(text) => (State::Refused, text.into_bytes()),
        });
    }

    fn status(&self, part: u16) -> Status {
        let Some((state, text)) = &self.outcome else {
            return Status { next: self.next, ..Status::of(State::Receiving) };
        };
        let parts = text.len().div_ceil(CHUNK_BYTES_MAX).clamp(1, usize::from(u16::MAX));
        let start = (usize::from(part) * CHUNK_BYTES_MAX).min(text.len());
        let end = (start + CHUNK_BYTES_MAX).min(text.len());
        let part = (part, parts as u16);
        Status { state: *state, next: self.count, part, text: text[start..end].to_vec() }
    }
}

impl Status {
    fn of(state: State) -> Status {
        Status { state, next: 0, part: (0, 1), text: Vec::new() }
    }

    fn bytes(&self) -> Vec<u8> {
        let state = State::ALL.iter().position(|state| *state == self.state).unwrap_or(0);
        let mut bytes = vec![state as u8, 0];
        for number in [self.next, self.part.0, self.part.1, self.text.len() as u16] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(&self.text);
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Status> {
        let (&[state, _, a, b, c, d, e, f, g, h], rest) = bytes.split_first_chunk()?;
        let number = |high, low| u16::from_be_bytes([high, low]);
        let text = rest.get(..number(g, h).into())?.to_vec();
        let (state, part) = (*State::ALL.get(usize::from(state))?, (number(c, d), number(e, f)));
        Some(Status { state, next: number(a, b), part, text })
    }
}

/// Splits a payload into kind, session and the rest.
fn head(payload: &[u8]) -> Option<(u8, u32, &[u8])> {
    let (&[version, kind, a, b, c, d], rest) = payload.split_first_chunk::<HEAD_BYTES>()?;
    (version == VERSION).then_some((kind, u32::from_be_bytes([a, b, c, d]), rest))
}

/// Parses index, count and bytes of a chunk.
fn chunk(rest: &[u8]) -> Option<(u16, u16, &[u8])> {
    let (&[a, b, c, d, e, f], rest) = rest.split_first_chunk()?;
    let [index, count, length] = [[a, b], [c, d], [e, f]].map(u16::from_be_bytes);
    let bytes = rest.get(..length.into())?;
    (index < count && bytes.len() <= CHUNK_BYTES_MAX).then_some((index, count, bytes))
}

/// Builds a frame of a session.
fn frame(to: Mac, from: Mac, session: u32, kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = [to, from].concat();
    bytes.extend(ETHER_TYPE.to_be_bytes());
    bytes.extend([VERSION, kind]);
    bytes.extend(session.to_be_bytes());
    bytes.extend(rest);
    bytes.resize(bytes.len().max(ethernet::FRAME_BYTES_MIN), 0);
    bytes
}

/// Queue of frames for the agent, and the number of frames that it dropped.
#[derive(Debug, Default)]
pub struct Mailbox {
    /// Oldest first.
    pub frames: VecDeque<Vec<u8>>,
    /// Frames that were dropped because the queue was full.
    pub lost: u64,
}

impl Mailbox {
    fn put(&mut self, frame: &[u8]) {
        if self.frames.len() < FRAMES_MAX {
            self.frames.push_back(frame.to_vec());
        } else {
            self.lost += 1;
        }
    }
}

#[cfg(test)]
mod tests;
