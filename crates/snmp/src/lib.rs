//! SNMP without I/O: a manager, and an agent for simulations.
//!
//! An agent is an independent source. A test can compare the interface counters and the processor
//! load of a switch with the frames that the tester sent and received. The crate supports versions
//! 2c (RFC 1901, 3416) and 3 with the User-based Security Model (RFC 3412, 3414, 3826, 7860).
//! [`rasn_snmp`] defines the wire format; this crate implements the protocol, keys and ciphers.
//!
//! Invariants:
//! - The crate uses neither a socket nor a clock.
//! - Received bytes never cause a panic.
//! - Named limits bound the memory.
//! - Secrets are never printed.

pub mod agent;
pub mod client;
#[cfg(test)]
mod foreign;
pub mod credentials;
pub mod message;
pub mod mib;
pub mod oid;
mod usm_message;
mod usm;
pub mod value;

pub use agent::Agent;
pub use client::{Client, Failure, RequestResult, SnmpRequest, Ticket};
pub use credentials::{AuthProtocol, Credentials, Secret, User};
pub use message::{DecodeError, Kind, Pdu, Status};
pub use oid::Oid;
pub use value::{Binding, Value};

/// Maximum length of a message: the payload of UDP over IPv4.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;
