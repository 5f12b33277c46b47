//! SNMP agent that replies from a table of values, for simulated switches.
//!
//! It supports get, get-next and get-bulk requests in both versions, and rejects requests as the
//! standards define. In version 2c, a request with another community gets no response. In version
//! 3, a report names the error.
//!
//! Invariant: a response is never longer than [`DATAGRAM_BYTES_MAX`]; every datagram is either
//! answered or ignored.

use crate::credentials::Credentials;
use crate::message::{self, Kind, Pdu, Status};
use crate::mib::Refusal;
use crate::usm::Keys;
use crate::usm_message::{self, Cover, SnmpV3Message, UsmError};
use crate::{Binding, DATAGRAM_BYTES_MAX, Oid, Value};

/// Maximum number of bindings in a response, so that it fits into a datagram.
const ANSWER_BINDINGS_MAX: usize = 256;

/// Maximum clock difference of a manager (RFC 3414, section 3.2).
const TIME_WINDOW_S: u32 = 150;

/// Error status of a response that would be too long.
const TOO_BIG: u32 = 1;

/// An agent.
pub struct Agent {
    credentials: Credentials,
    engine_id: Vec<u8>,
    boots: u32,
    keys: Option<Keys>,
    reports: u32,
    salt: u64,
}

impl Agent {
    /// Creates an agent that accepts these credentials; its engine has this identifier of up to 32
    /// bytes.
    pub fn new(credentials: Credentials, engine_id: &[u8]) -> Agent {
        let keys = match &credentials {
            Credentials::Community(_) => None,
            Credentials::User(user) => Some(Keys::new(user, engine_id)),
        };
        let engine_id = engine_id[..engine_id.len().min(usm_message::ENGINE_ID_BYTES_MAX)].to_vec();
        Agent { credentials, engine_id, boots: 1, keys, reports: 0, salt: 0 }
    }

    /// Returns the response to a datagram received when the agent has run for `time_s` seconds.
    /// `table` has the values, ordered by name.
    pub fn answer(&mut self, datagram: &[u8], table: &[Binding], time_s: u32) -> Option<Vec<u8>> {
        match &self.credentials {
            Credentials::Community(known) => {
                let (community, asked) = message::decode(datagram).ok()?;
                let encode = |answer: &Pdu| message::encode(known.bytes(), answer);
                (community == known.bytes()).then_some(())?;
                fitting(respond(&asked, table)?, encode)
            }
            Credentials::User(_) => {
                let envelope = SnmpV3Message::read(datagram).ok()?;
                self.answer_sealed(&envelope, table, time_s)
            }
        }
    }

    fn answer_sealed(
        &mut self,
        envelope: &SnmpV3Message,
        table: &[Binding],
        time_s: u32,
    ) -> Option<Vec<u8>> {
        let (Credentials::User(user), Some(keys)) = (&self.credentials, &self.keys) else {
            return None;
        };
        let asked = &envelope.cover;
        let cover = Cover {
            message_id: asked.message_id,
            is_reportable: false,
            engine_id: self.engine_id.clone(),
            boots: self.boots,
            time: time_s,
            user: asked.user.clone(),
        };
        let opened = || match envelope.open(keys) {
            Ok(_) if !envelope.is_protected_by(keys) => Err(Refusal::SecurityLevel),
            Ok(pdu) => Ok(pdu),
            Err(UsmError::Forged) => Err(Refusal::WrongDigest),
            Err(UsmError::Unprotected) => Err(Refusal::SecurityLevel),
            Err(UsmError::Unreadable(_)) => Err(Refusal::Decryption),
        };
        let is_in_time = asked.boots == self.boots && asked.time.abs_diff(time_s) <= TIME_WINDOW_S;
        let outcome = if asked.engine_id != self.engine_id {
            Err(Refusal::UnknownEngine)
        } else if asked.user != user.name.as_bytes() {
            Err(Refusal::UnknownUser)
        } else {
            opened().and_then(|pdu| match is_in_time || !keys.signs() {
                true => Ok(pdu),
                false => Err(Refusal::TimeWindow),
            })
        };
        self.salt += 1;
        match outcome {
            Ok(pdu) => {
                let seal = |answer: &Pdu| usm_message::seal(&cover, answer, Some(keys), self.salt);
                fitting(respond(&pdu, table)?, seal)
            }
            Err(refusal) if asked.is_reportable => {
                self.reports += 1;
                let value = Value::Counter32(self.reports);
                let bindings = vec![Binding { name: refusal.name(), value }];
                let report = Pdu { kind: Kind::Report, id: asked.message_id, bindings };
                // The manager accepts a clock only from an authenticated message.
                let signs = refusal == Refusal::TimeWindow;
                Some(usm_message::seal(&cover, &report, Some(keys).filter(|_| signs), self.salt))
            }
            Err(_) => None,
        }
    }
}

/// Encodes a response, or a tooBig response if it does not fit into a datagram.
fn fitting(answer: Pdu, encode: impl Fn(&Pdu) -> Vec<u8>) -> Option<Vec<u8>> {
    let bytes = encode(&answer);
    if bytes.len() <= DATAGRAM_BYTES_MAX {
        return Some(bytes);
    }
    let kind = Kind::Response(Status { code: TOO_BIG, index: 0 });
    Some(encode(&Pdu { kind, bindings: Vec::new(), ..answer }))
}

/// Returns the response to a request.
fn respond(asked: &Pdu, table: &[Binding]) -> Option<Pdu> {
    let names = asked.bindings.iter().map(|binding| &binding.name);
    let names = names.take(ANSWER_BINDINGS_MAX);
    let bindings = match asked.kind {
        Kind::Get => names.map(|name| exact(name, table)).collect(),
        Kind::Next => names.map(|name| next(name, table)).collect(),
        Kind::Bulk { repetitions } => bulk(names.cloned().collect(), repetitions, table),
        Kind::Response(_) | Kind::Report | Kind::Other => return None,
    };
    Some(Pdu { kind: Kind::Response(Status::default()), id: asked.id, bindings })
}

fn exact(name: &Oid, table: &[Binding]) -> Binding {
    match table.binary_search_by(|binding| binding.name.cmp(name)) {
        Ok(place) => table[place].clone(),
        Err(_) => Binding { name: name.clone(), value: Value::NoSuchInstance },
    }
}

fn next(name: &Oid, table: &[Binding]) -> Binding {
    let place = table.partition_point(|binding| binding.name <= *name);
    let end = || Binding { name: name.clone(), value: Value::EndOfMibView };
    table.get(place).cloned().unwrap_or_else(end)
}

fn bulk(mut names: Vec<Oid>, repetitions: u32, table: &[Binding]) -> Vec<Binding> {
    let mut bindings = Vec::new();
    for _ in 0..repetitions {
        for name in &mut names {
            if bindings.len() == ANSWER_BINDINGS_MAX {
                return bindings;
            }
            let binding = next(name, table);
            *name = binding.name.clone();
            bindings.push(binding);
        }
        if names.is_empty()
            || bindings.iter().rev().take(names.len()).all(|it| it.value.is_absent())
        {
            break;
        }
    }
    bindings
}
