//! All that came of a module: how it ended, what it found, and where every frame and message went.
//!
//! A module that was cut short has a report like any other: a partial result is a result, and says so
//! by how it ended.

use openflow::version::{MessageKind, Version};
use packet::time::{Clock, Nanos};
use ports::channel::wire::Remarks;
use ports::port::PortCounters;
use results::histogram::Histogram;

use super::findings::{LogEntry, Measured, Series};
use crate::stall::Stalls;
use crate::stream::Problem;
use crate::trial::Flag;

/// The name of the limit that [`super::Needs::limit`] sets.
pub const TIME_LIMIT: &str = "time limit of the module";

/// What came of a module.
#[derive(Debug, Clone)]
pub struct StageReport {
    /// When the module was started; when it was given up, if it never was.
    pub started_at: Nanos,
    /// When it was over, the drain not counted.
    pub ended_at: Nanos,
    /// Why it was over.
    pub ended: Ended,
    /// Whether time was virtual.
    pub is_simulated: bool,
    /// Whether hosts were sent on an errand: their frames are in no account, and of what was lost nobody knows whose it was.
    pub has_sent_hosts: bool,
    /// Each stream, in the order in which they were prepared.
    pub streams: Vec<StreamAccount>,
    /// Each of the rig's ports, in order.
    pub ports: Vec<PortAccount>,
    /// Each connection, in the order in which they were needed.
    pub connections: Vec<ConnectionReport>,
    /// Each agent that could be asked, in order.
    pub agents: Vec<AgentReport>,
    /// The module's log.
    pub log: Vec<LogEntry>,
    /// What it measured.
    pub measured: Vec<Measured>,
    /// Its rows of points.
    pub series: Vec<Series>,
    /// Limits that were reached, and how many things were left out.
    pub limits: Vec<(&'static str, u64)>,
    /// What the stage and the module cost.
    pub costs: Costs,
    /// What control channels looked like on the wire, as a capture file, if one was asked for.
    pub capture: Option<Vec<u8>>,
    /// When the tester was not at its work; `delays_unknown` counts the streams' frames that came back
    /// and whose delay nobody knows.
    pub stalls: Stalls,
    /// What to know before believing the numbers.
    pub flags: Vec<Flag>,
    /// Who stamped the received frames.
    pub stamps: Clock,
}

/// Why a module was over.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// It said that it has all that it wanted.
    Said,
    /// A limit with this name was reached: the stage's, or one of the module's own waits.
    Limit(&'static str),
    /// It said that it could not go on, and why.
    Failed(String),
    /// A connection could not be made before it started.
    NotReady {
        /// Which connection.
        connection: usize,
        /// Why not.
        why: String,
    },
    /// A connection was lost.
    Lost {
        /// Which connection.
        connection: usize,
        /// Why.
        why: String,
    },
    /// It asked for what makes no sense: each fault, with the number of the stream it concerns.
    Unusable(Vec<(u16, Problem)>),
    /// A port failed: its index, and how.
    Port(usize, String),
    /// Someone asked to stop.
    Interrupted,
    /// The simulated device and the module go on at the same moment without end.
    Restless(Nanos),
}

/// What became of a stream's frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamAccount {
    /// The stream's number.
    pub id: u16,
    /// Port it was sent from.
    pub from: usize,
    /// Port where it was expected.
    pub to: usize,
    /// Frames that the port accepted.
    pub sent: u64,
    /// Frames that the tester was too late for, although the port would have taken them.
    pub unsent_late: u64,
    /// Frames that the port refused until it was too late for them.
    pub unsent_refused: u64,
    /// Different frames that were seen on any port, in whatever state.
    pub arrived: u64,
    /// First copies on the expected port.
    pub expected: u64,
    /// First copies on each port that is not the expected one.
    pub elsewhere: u64,
    /// Further copies on a port where the frame had been before.
    pub duplicate: u64,
    /// Copies of any kind that are not as they ought to arrive: rewritten or damaged.
    pub altered: u64,
    /// Copies so late that nobody knows whether they came before.
    pub late: u64,
    /// Frames that packet-ins carried.
    pub told: u64,
    /// Different frames that packet-ins carried and that were seen on no port.
    pub only_told: u64,
}

/// What arrived on a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortAccount {
    /// The port's name.
    pub name: String,
    /// Frames received, of all kinds.
    pub received: u64,
    /// Of those, the stage's own.
    pub probes: u64,
    /// Of those, frames of an earlier stage.
    pub stale: u64,
    /// Of those, frames that are not the instrument's.
    pub foreign: u64,
    /// Of those, told to the module.
    pub watched: u64,
    /// What the port itself counted.
    pub counters: PortCounters,
}

/// What passed on a connection.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConnectionReport {
    /// Name of the other end, empty if it was never up.
    pub peer: String,
    /// The version that was agreed on last.
    pub version: Option<Version>,
    /// How often it was up.
    pub ups: u64,
    /// How often it was lost or could not be made, and why the last time.
    pub losses: u64,
    /// Why the last time.
    pub lost: Option<String>,
    /// Messages of the module that the socket took, by kind.
    pub sent: Vec<(MessageKind, u64)>,
    /// Messages that came for the module, by kind.
    pub received: Vec<(MessageKind, u64)>,
    /// Messages that nobody could understand.
    pub refused: u64,
    /// Messages of the module that were never said.
    pub unsent: u64,
    /// Bytes that the socket took.
    pub bytes_sent: u64,
    /// Bytes that came.
    pub bytes_received: u64,
    /// What was seen of it on the wire; none if nobody looked there.
    pub wire: Option<WireReport>,
}

/// What was seen of a connection on the wire.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WireReport {
    /// Who took the stamps.
    pub stamps: Option<Clock>,
    /// From when a message had passed the interface to when the socket had handed it over, in nanoseconds.
    pub received: Histogram,
    /// From before the write of what was said to when all of it had passed, in nanoseconds.
    pub sent: Histogram,
    /// Messages whose moment on the wire nobody knows.
    pub unknown: u64,
    /// Retransmissions, gaps, and what was given up.
    pub remarks: Remarks,
}

/// What passed between a module and an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentReport {
    /// Where it is, and how we are believed.
    pub name: String,
    /// Questions that were asked.
    pub asked: u64,
    /// Questions that were answered.
    pub answered: u64,
    /// Why the last of the others was not.
    pub failure: Option<String>,
    /// Datagrams that made no sense, were not signed as they ought to be, or that nobody asked for.
    pub strays: u64,
}

/// What the stage and the module cost, in time in which nobody looked at ports and sockets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// Events that the module was told.
    pub events: u64,
    /// Time in the module's hands. Frames that came together are taken together, sorting them included.
    pub react_ns_total: u64,
    /// The longest time at once.
    pub react_ns_longest: u64,
    /// Time for reading and writing connections, decoding and encoding included.
    pub control_ns_total: u64,
    /// How often the stage looked at everything.
    pub turns: u64,
    /// Half of the time was spent in turns no longer than this, those left out in which the tester was away...
    pub turn_ns_p50: u64,
    /// ...and 99 % of it in turns no longer than this.
    pub turn_ns_p99: u64,
}

impl StreamAccount {
    /// Frames that were sent and seen nowhere.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrived + self.late)
    }
}

impl StageReport {
    /// Whether the module had all that it wanted.
    pub fn is_whole(&self) -> bool {
        self.ended == Ended::Said && self.limits.is_empty()
    }

    /// What the module measured under this name.
    pub fn measured(&self, name: &str) -> Option<&Measured> {
        self.measured.iter().find(|measured| measured.name == name)
    }
}

/// Counts in a row by kind.
pub(crate) fn count(row: &mut Vec<(MessageKind, u64)>, kind: MessageKind, more: u64) {
    match row.iter_mut().find(|(known, _)| *known == kind) {
        Some((_, count)) => *count += more,
        None => row.push((kind, more)),
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Said => f.write_str("the module was done"),
            Ended::Limit(name) => write!(f, "{name} was reached"),
            Ended::Failed(why) => f.write_str(why),
            Ended::NotReady { connection, why } => {
                write!(f, "connection {connection} did not come up: {why}")
            }
            Ended::Lost { connection, why } => write!(f, "connection {connection} was lost: {why}"),
            Ended::Unusable(problems) => {
                let lines = problems.iter().map(|(id, problem)| format!("stream {id}: {problem}"));
                f.write_str(&lines.collect::<Vec<_>>().join("; "))
            }
            Ended::Port(port, error) => write!(f, "port {}: {error}", port + 1),
            Ended::Interrupted => f.write_str("interrupted"),
            Ended::Restless(now) => write!(f, "module and device do not come to rest at {now}"),
        }
    }
}
