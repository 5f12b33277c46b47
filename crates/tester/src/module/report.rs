//! Report of a module's run: how it ended, its results, and counts of all frames and messages.
//!
//! An aborted module has a report like any other. `ended` marks a partial result.

use channel::CaptureAnomalies;
use netio::port::PortCounters;
use openflow::version::{MessageKind, Version};
use packet::time::{Clock, Nanos};
use stats::histogram::Histogram;

use super::findings::{LogEntry, MeasuredValue, Series};
use crate::pauses::Stalls;
use crate::stream::Problem;
use crate::trial::Flag;

/// Name of the limit in [`super::ModuleRequirements::limit`].
pub const TIME_LIMIT: &str = "time limit of the module";

/// Report of a module's run.
#[derive(Debug, Clone)]
pub struct StageReport {
    /// When the module started. When it was given up, if it never started.
    pub started_at: Nanos,
    /// When it ended, without the drain time.
    pub ended_at: Nanos,
    /// Why it ended.
    pub ended: Ended,
    /// Whether time was virtual.
    pub is_simulated: bool,
    /// Whether hosts ran a task. The accounts do not include their frames, and the ports' losses
    /// can then not be assigned to streams or hosts.
    pub has_sent_hosts: bool,
    /// The streams, in the order in which they were prepared.
    pub streams: Vec<StreamAccount>,
    /// The rig's ports, in order.
    pub ports: Vec<PortAccount>,
    /// The connections, in the order of [`super::ModuleRequirements::connections`].
    pub connections: Vec<ConnectionReport>,
    /// The available agents, in order.
    pub agents: Vec<AgentReport>,
    /// The module's log.
    pub log: Vec<LogEntry>,
    /// Measured values.
    pub measured: Vec<MeasuredValue>,
    /// Series of points.
    pub series: Vec<Series>,
    /// Limits that were reached, with the number of items left out.
    pub limits: Vec<(&'static str, u64)>,
    /// Time spent in the event loop and the module.
    pub costs: Costs,
    /// Capture file of the control channels, if requested.
    pub capture: Option<Vec<u8>>,
    /// Stalls of the tester. `delays_unknown` counts received stream frames with unknown delay.
    pub stalls: Stalls,
    /// Warnings about the validity of the results.
    pub flags: Vec<Flag>,
    /// Clock that stamped received frames.
    pub stamps: Clock,
}

/// Why a module ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// It reported completion.
    Completed,
    /// It reached the limit with this name: the event loop's or its own.
    Limit(&'static str),
    /// It failed, with the reason.
    Failed(String),
    /// A connection did not come up before the start.
    NotReady {
        /// Index of the connection.
        connection: usize,
        /// The reason.
        why: String,
    },
    /// A connection was lost.
    Lost {
        /// Index of the connection.
        connection: usize,
        /// The reason.
        why: String,
    },
    /// It requested invalid streams: each problem with its stream id.
    Unusable(Vec<(u16, Problem)>),
    /// A port failed: index and error.
    Port(usize, String),
    /// A user interrupted it.
    Interrupted,
    /// The simulated device and the module exchange events at the same virtual time without end.
    Restless(Nanos),
}

/// Frame counts of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamAccount {
    /// Stream id.
    pub id: u16,
    /// Index of the sending port.
    pub from: usize,
    /// Index of the expected receiving port.
    pub to: usize,
    /// Frames that the port accepted.
    pub sent: u64,
    /// Frames not sent because the tester was late, although the port had room.
    pub unsent_late: u64,
    /// Frames not sent because the port rejected them until their deadline.
    pub unsent_refused: u64,
    /// Distinct frames received on any port, in any state.
    pub arrived: u64,
    /// First copies on the expected port.
    pub expected: u64,
    /// First copies on each other port.
    pub elsewhere: u64,
    /// Duplicates: further copies on the same port.
    pub duplicate: u64,
    /// Copies of any kind that differ from the expected bytes: rewritten or damaged.
    pub altered: u64,
    /// Copies too late to tell first copies from duplicates.
    pub late: u64,
    /// Frames in packet-ins.
    pub told: u64,
    /// Distinct frames in packet-ins that no port received.
    pub only_told: u64,
}

/// Frame counts of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortAccount {
    /// Name of the port.
    pub name: String,
    /// Received frames of all kinds.
    pub received: u64,
    /// Frames of this run among them.
    pub probes: u64,
    /// Frames of an earlier run among them.
    pub stale: u64,
    /// Frames among them that the tester did not send.
    pub foreign: u64,
    /// Frames among them that were delivered to the module.
    pub watched: u64,
    /// The port's own counters.
    pub counters: PortCounters,
}

/// Message counts of a connection.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConnectionReport {
    /// Name of the peer. Empty if the connection was never up.
    pub peer: String,
    /// The version negotiated last.
    pub version: Option<Version>,
    /// Number of times the connection came up.
    pub ups: u64,
    /// Number of times the connection was lost or failed to open.
    pub losses: u64,
    /// The reason, the last time.
    pub lost: Option<String>,
    /// Sent messages of the module, by kind.
    pub sent: Vec<(MessageKind, u64)>,
    /// Messages received for the module, by kind.
    pub received: Vec<(MessageKind, u64)>,
    /// Invalid messages received.
    pub refused: u64,
    /// Messages of the module that were not sent.
    pub unsent: u64,
    /// Bytes that the socket took.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Capture of the connection on the wire. None without one.
    pub wire: Option<WireReport>,
}

/// Capture statistics of a connection.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WireReport {
    /// Clock that stamped the packets.
    pub stamps: Option<Clock>,
    /// Time from a message's passing of the interface to the socket's delivery, in nanoseconds.
    pub received: Histogram,
    /// Time from before the write to the passing of the last byte, in nanoseconds.
    pub sent: Histogram,
    /// Messages whose time on the wire is unknown.
    pub unknown: u64,
    /// Retransmissions, gaps and messages given up.
    pub remarks: CaptureAnomalies,
}

/// Request counts of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentReport {
    /// Address and authentication.
    pub name: String,
    /// Requests sent.
    pub asked: u64,
    /// Requests answered.
    pub answered: u64,
    /// Reason of the last failure.
    pub failure: Option<String>,
    /// Rejected datagrams: invalid, wrongly authenticated or unsolicited.
    pub strays: u64,
}

/// Time spent in the event loop and the module, in which it does not poll ports and sockets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// Events delivered to the module.
    pub events: u64,
    /// Time in the module. A batch of frames counts as one, classification included.
    pub reaction_ns_total: u64,
    /// The longest single span in the module.
    pub reaction_ns_longest: u64,
    /// Time for reading and writing connections, decoding and encoding included.
    pub control_ns_total: u64,
    /// Iterations of the event loop.
    pub turns: u64,
    /// Median iteration time, weighted by time and without stalls.
    pub turn_ns_p50: u64,
    /// 99th percentile of the iteration time, weighted by time and without stalls.
    pub turn_ns_p99: u64,
}

impl StreamAccount {
    /// Returns how many sent frames were not received.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrived + self.late)
    }
}

impl StageReport {
    /// Returns whether the module completed within all limits.
    pub fn is_whole(&self) -> bool {
        self.ended == Ended::Completed && self.limits.is_empty()
    }

    /// Returns the measured value with this name.
    pub fn measured(&self, name: &str) -> Option<&MeasuredValue> {
        self.measured.iter().find(|measured| measured.name == name)
    }
}

/// Adds to the count of this kind.
pub(crate) fn count(row: &mut Vec<(MessageKind, u64)>, kind: MessageKind, more: u64) {
    match row.iter_mut().find(|(known, _)| *known == kind) {
        Some((_, count)) => *count += more,
        None => row.push((kind, more)),
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Completed => f.write_str("the module completed"),
            Ended::Limit(name) => write!(f, "limit {name} reached"),
            Ended::Failed(why) => f.write_str(why),
            Ended::NotReady { connection, why } => {
                write!(f, "connection {connection} not established: {why}")
            }
            Ended::Lost { connection, why } => write!(f, "connection {connection} lost: {why}"),
            Ended::Unusable(problems) => {
                let lines = problems.iter().map(|(id, problem)| format!("stream {id}: {problem}"));
                f.write_str(&lines.collect::<Vec<_>>().join("; "))
            }
            Ended::Port(port, error) => write!(f, "port {}: {error}", port + 1),
            Ended::Interrupted => f.write_str("interrupted"),
            Ended::Restless(now) => write!(f, "module and device stay active at {now}"),
        }
    }
}
