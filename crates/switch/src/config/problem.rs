//! What cannot be used in a configuration, and how to mend it.
//!
//! Each problem prints as one line that names the key, what it holds and what it may hold.

use std::fmt;
use std::net::Ipv4Addr;

use dataplane::queue::{QueueError, QueueNo};
use packet::frame::PortNo;

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// There is no data port at all.
    NoPorts,
    /// Two ports have this number.
    PortNumberTwice(PortNo),
    /// Two ports are this same thing.
    PortSpecTwice(String),
    /// A number is outside what is allowed.
    OutOfRange {
        /// The setting.
        key: &'static str,
        /// What it holds.
        have: u64,
        /// The least it may hold.
        min: u64,
        /// The most it may hold.
        max: u64,
    },
    /// A list is too long.
    TooMany {
        /// The setting.
        key: &'static str,
        /// How many it holds.
        have: usize,
        /// How many it may hold.
        max: usize,
    },
    /// A control channel's address cannot be used.
    BadUrl {
        /// The setting.
        key: &'static str,
        /// The address, and what is wrong with it.
        why: String,
    },
    /// A router's interface, route or neighbour names a port that the process does not have.
    NoSuchPort {
        /// What names it.
        key: &'static str,
        /// The port.
        port: PortNo,
    },
    /// A port cannot have the queues that it is to have.
    BadQueues(QueueError),
    /// This port's queue has a minimum rate, and the port has no rate to be shared.
    NothingToShare(PortNo, QueueNo),
    /// A router has two interfaces on this port.
    InterfaceTwice(PortNo),
    /// An interface's hardware address is a group address or zero.
    BadMac(PortNo),
    /// Frames that behave like a model cannot have threads of their own.
    ModelApart,
    /// There are models of switches and bridges only.
    ModelOfRouter,
    /// A tagger's two sides are this one port.
    OneSide(PortNo),
    /// The program of an element declares no such port.
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
            Problem::NoPorts => f.write_str("port: none is given; add --port 1=afpacket:IF"),
            Problem::PortNumberTwice(number) => {
                write!(f, "port: number {number} is given twice; give each port its own")
            }
            Problem::PortSpecTwice(spec) => {
                write!(f, "port: {spec} is given twice; one port can have it")
            }
            Problem::OutOfRange { key, have, min, max } if *max == u64::MAX => {
                write!(f, "{key}: {have} is below {min}")
            }
            Problem::OutOfRange { key, have, min, max } => {
                write!(f, "{key}: {have} is not between {min} and {max}")
            }
            Problem::TooMany { key, have, max } => {
                write!(f, "{key}: {have} are given; at most {max} are allowed")
            }
            Problem::BadUrl { key, why } => write!(f, "{key}: {why}"),
            Problem::NoSuchPort { key, port } => {
                write!(f, "{key}: there is no port {port}; add --port {port}=SPEC")
            }
            Problem::BadQueues(error) => write!(f, "queue: {error}"),
            Problem::NothingToShare(port, queue) => write!(
                f,
                "queue: queue {queue} of port {port} has a rate_bps_min; give the port a [[port_rate]]"
            ),
            Problem::InterfaceTwice(port) => {
                write!(f, "interface: port {port} has two; give it both addresses in one")
            }
            Problem::BadMac(port) => {
                write!(f, "interface: port {port} needs the address of one station as its mac")
            }
            Problem::ModelApart => f.write_str(
                "frames_core: with a model frames have no thread of their own; leave one of both out",
            ),
            Problem::ModelOfRouter => {
                f.write_str("model: there are models of switches only; leave it out")
            }
            Problem::OneSide(port) => {
                write!(f, "port {port} is both access and trunk; give each side a port of its own")
            }
            Problem::NotInProgram(port) => {
                write!(f, "port {port}: the program declares no such port; add <port id=\"{port}\"/> or leave it out")
            }
            Problem::Unreachable(via) => {
                write!(f, "route: no interface is in the network of next hop {via}; name its port")
            }
        }
    }
}

/// A configuration file that cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// Line, counted from 1, where the reader knows it.
    pub line: Option<usize>,
    /// What is wrong there, in one line.
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
