//! SNMP without I/O: questions to an agent, its answers, and an agent for simulations.
//!
//! An agent is an independent witness: what a switch's management says of its interfaces and its
//! processor can be compared with what the instrument sent and received. Versions 2c (RFC 1901, 3416)
//! and 3 with the User-based Security Model (RFC 3412, 3414, 3826, 7860) are spoken. What is on the
//! wire is described by [`rasn_snmp`]; who answers what when, keys and ciphers are here.
//!
//! Invariants: nothing here knows a socket or a clock, bytes of a stranger never panic, and memory is
//! bounded by the limits with a name. Secrets are never shown.

/// An agent that answers from a table of values.
pub mod agent;
/// Whoever asks.
pub mod client;
#[cfg(test)]
mod foreign;
/// By what an agent believes whoever asks.
pub mod credentials;
/// Requests and responses as bytes.
pub mod message;
/// Names of objects that every agent has.
pub mod mib;
/// Names of objects.
pub mod oid;
/// Messages of version 3: signed and encrypted.
mod sealed;
/// Keys and ciphers of the User-based Security Model.
mod usm;
/// Values of objects.
pub mod value;

pub use agent::Agent;
pub use client::{Client, Done, Failure, Question, Ticket};
pub use credentials::{AuthProtocol, Credentials, Secret, User};
pub use message::{Kind, Pdu, Status, Unreadable};
pub use oid::Oid;
pub use value::{Binding, Value};

/// Most bytes of a message: what a datagram of UDP over IPv4 holds.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;
