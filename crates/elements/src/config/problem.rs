//! Problems of a configuration, with hints.
//!
//! Each problem prints as one line with the key, its value and the allowed values.

use std::fmt;
use std::net::Ipv4Addr;

use dataplane::queue::{QueueError, QueueNo};
use packet::frame::PortNo;

/// One problem of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// No data port is configured.
    NoPorts,
    /// Two ports have this number.
    PortNumberTwice(PortNo),
    /// Two ports have this specification.
    PortSpecTwice(String),
    /// A number is out of range.
    OutOfRange {
        /// The key.
        key: &'static str,
        /// Its value.
        have: u64,
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// A list is too long.
    TooMany {
        /// The key.
        key: &'static str,
        /// Its length.
        have: usize,
        /// The maximum length.
        max: usize,
    },
    /// The address of a control channel is invalid.
    BadUrl {
        /// The key.
        key: &'static str,
        /// The address, and why it is invalid.
        why: String,
    },
    /// A key refers to a port that the process does not have.
    NoSuchPort {
        /// The key.
        key: &'static str,
        /// The port.
        port: PortNo,
    },
    /// The queues of a port are invalid.
    BadQueues(QueueError),
    /// This queue has a minimum rate, but its port has no rate.
    NothingToShare(PortNo, QueueNo),
    /// A router has two interfaces on this port.
    InterfaceTwice(PortNo),
    /// The MAC address of an interface is a group address or zero.
    BadMac(PortNo),
    /// An emulated hardware model cannot have forwarding threads.
    ModelApart,
    /// Only switches and bridges can emulate a hardware model.
    ModelOfRouter,
    /// Both sides of a tagger are this port.
    OneSide(PortNo),
    /// The program of an element does not declare this port.
    NotInProgram(PortNo),
    /// No interface has an address in the network of this next hop.
    Unreachable(Ipv4Addr),
}

impl Problem {
    pub(super) fn out_of_range(key: &'static str, have: u64, min: u64, max: u64) -> Self {
        Problem::OutOfRange { key, have, min, max }
    }

    pub(super) fn check(key: &'static str, have: u64, min: u64, max: u64) -> Option<Self> {
        (have < min || have > max).then(|| Self::out_of_range(key, have, min, max))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NoPorts => f.write_str("port: missing (hint: add --port 1=afpacket:IF)"),
            Problem::PortNumberTwice(number) => {
                write!(f, "port: number {number} is used twice (hint: give each port its own)")
            }
            Problem::PortSpecTwice(spec) => {
                write!(f, "port: {spec} is used twice (hint: remove one of them)")
            }
            Problem::OutOfRange { key, have, min, max } if *max == u64::MAX => {
                write!(f, "{key}: {have} is below {min}")
            }
            Problem::OutOfRange { key, have, min, max } => {
                write!(f, "{key}: {have} is not between {min} and {max}")
            }
            Problem::TooMany { key, have, max } => {
                write!(f, "{key}: {have} entries, at most {max} are allowed")
            }
            Problem::BadUrl { key, why } => write!(f, "{key}: {why}"),
            Problem::NoSuchPort { key, port } => {
                write!(f, "{key}: no port {port} (hint: add --port {port}=SPEC)")
            }
            Problem::BadQueues(error) => write!(f, "queue: {error}"),
            Problem::NothingToShare(port, queue) => write!(
                f,
                "queue: queue {queue} has a rate_bps_min, but port {port} has no rate (hint: add \
                 a [[port_rate]] for the port)"
            ),
            Problem::InterfaceTwice(port) => {
                write!(
                    f,
                    "interface: port {port} has two interfaces (hint: list both addresses in \
                     one)"
                )
            }
            Problem::BadMac(port) => {
                write!(
                    f,
                    "interface: the mac of port {port} is not a unicast address (hint: use one, \
                     or remove it)"
                )
            }
            Problem::ModelApart => f.write_str(
                "frames_core: a hardware model cannot have forwarding threads (hint: remove one \
                 of both)",
            ),
            Problem::ModelOfRouter => f.write_str(
                "model: only switches and bridges can emulate a hardware model (hint: remove it)",
            ),
            Problem::OneSide(port) => {
                write!(
                    f,
                    "port {port} is both access and trunk (hint: use a separate port for each side)"
                )
            }
            Problem::NotInProgram(port) => {
                write!(
                    f,
                    "port {port}: not declared by the program (hint: add <port id=\"{port}\"/> or \
                     remove the port)"
                )
            }
            Problem::Unreachable(via) => {
                write!(
                    f,
                    "route: no interface is in the network of next hop {via} (hint: name its port)"
                )
            }
        }
    }
}

/// A syntax error in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// Line, counted from 1, if known.
    pub line: Option<usize>,
    /// The error, in one line.
    pub why: String,
}

impl FileError {
    pub(super) fn new(text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
        FileError { line, why: error.message().replace('\n', " ") }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

impl std::error::Error for FileError {}
