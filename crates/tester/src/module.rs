//! Measurement modules: state machines that react to events on one clock and queue commands.
//!
//! A trial counts the frames of fixed streams and reports at its end. A module receives each probe
//! frame and each OpenFlow message as an event, and reacts while it measures. Its life cycle is
//! that of OFLOPS (Rotsos et al., PAM 2012): it declares its needs, starts, receives events, and
//! terminates. A [`crate::executor`] drives it, live or in virtual time.
//!
//! Invariants:
//!
//! - A module does no I/O and reads no clock. Its inputs are events and the facts at the start.
//! - A module queues its commands on the [`ModuleContext`]. They run in order when it returns.

use netio::port::{PortCounters, PortFacts};
use openflow::codec::DecodeError;
use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::switch::Features;
use openflow::version::Version;
use packet::time::{Nanos, Stamp};
use snmp::{Binding, Failure};

pub mod context;
pub mod findings;
pub mod host_tasks;
pub mod probe;
pub mod report;
pub mod snmp_poll;

pub use context::{
    EncodedMessages, FrameFilter, MessageRange, ModuleContext, SendSpan, SnmpId, TimerId,
};
pub use findings::{LogEntry, MeasuredValue, Series, Value};
pub use probe::{Frames, Probe, Signer};
pub use report::{
    AgentReport, ConnectionReport, Costs, Ended, PortAccount, StageReport, StreamAccount,
    TIME_LIMIT, WireReport,
};

/// A measurement that reacts to events.
pub trait Module: Send {
    /// Returns the module's requirements. Called once, before the start.
    fn needs(&self) -> ModuleRequirements;

    /// Handles an event and queues commands in `context`.
    ///
    /// The event loop does not poll ports and sockets during this call. It measures the time spent
    /// here. A long call counts as a stall of the tester: delays of frames and messages that arrive
    /// during it are unknown.
    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext);

    /// Ends the module, on its own request or for the given reason.
    ///
    /// The drain of outstanding frames is over. The module can still report results, even partial
    /// ones, but cannot send. Called once, also when the module was never started.
    fn finish(&mut self, ended: &Ended, context: &mut ModuleContext);
}

/// Requirements of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleRequirements {
    /// Connections to open. The module refers to them by index.
    pub connections: Vec<Connection>,
    /// Time limit from the module's start, at most [`crate::executor::MODULE_NS_MAX`]. When it
    /// expires, the module ends with the limit [`TIME_LIMIT`].
    pub limit: Nanos,
    /// Drain time: how long to wait for and count outstanding frames after the module's end, at
    /// most [`crate::executor::DRAIN_NS_MAX`]. The module receives no events for them.
    pub drain: Nanos,
    /// Whether the module ends when it loses a connection that it did not close itself.
    pub stops_on_disconnect: bool,
    /// Whether to deliver each frame event immediately, for modules that react to frames. Otherwise
    /// delivery can be delayed by about a millisecond. Timestamps are equally exact.
    pub needs_immediate_frames: bool,
}

/// A connection to a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Index of the switch. Several connections can lead to one switch.
    pub switch: usize,
    /// OpenFlow versions to offer.
    pub versions: Vec<Version>,
    /// Whether to connect before the module starts. Otherwise [`ModuleContext::connect`] connects.
    pub opens: bool,
    /// Whether to send a features request before the connection counts as up.
    pub requests_features: bool,
    /// `miss_send_len`: bytes of a frame in a packet-in. A SET_CONFIG message sets it before the
    /// connection counts as up. Without a value no SET_CONFIG is sent, and Open vSwitch then sends
    /// its primary connection no packet-in.
    pub miss_send_bytes: Option<u16>,
}

/// An event and its time.
///
/// The tester delivers events in the order in which it detects them. To order them by time, compare
/// `at`: a frame with a kernel timestamp can be older than a message that was delivered before it.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Time of the event, on the machine's monotonic clock or in virtual time.
    pub at: Nanos,
    /// Kind of the event.
    pub what: EventKind<'a>,
}

/// Kind and data of an event.
#[derive(Debug, Clone, Copy)]
pub enum EventKind<'a> {
    /// The module starts. Every connection with `opens` is up.
    Start(&'a TestSetup),
    /// A watched frame arrived. `at` is its timestamp.
    Frame(&'a Arrival<'a>),
    /// The socket took a complete batch of messages. `at` is `last`. Delivered before any reply.
    Sent {
        /// Index of the connection.
        connection: usize,
        /// The batch of messages.
        said: MessageRange,
        /// Before the write call that took the first byte.
        first: Nanos,
        /// After the write call that took the last byte.
        last: Nanos,
        /// When the last byte passed the interface. None without a capture there, or if not known
        /// yet.
        wire: Option<Stamp>,
    },
    /// A message arrived. `at` is when the read call that completed it returned.
    ///
    /// Hellos, the first features reply and the switch's echo requests are handled without the
    /// module.
    Message {
        /// Index of the connection.
        connection: usize,
        /// Transaction id, as received: the tester does not check it.
        xid: Xid,
        /// The decoded message.
        message: &'a Message,
        /// Length in bytes.
        bytes: usize,
        /// The probe in a packet-in, if any.
        probe: Option<Probe>,
        /// Whether `at` is the time of arrival, because the tester was not stalled.
        is_timestamp_valid: bool,
        /// When the last byte passed the interface. None without a capture there. Known even if the
        /// tester was stalled.
        wire: Option<Stamp>,
    },
    /// A timer expired. It is late by `at` less [`TimerId::due`].
    Timer(TimerId),
    /// All frames of a stream's span were sent.
    StreamEnded(u16),
    /// The ports' own counters since they were opened, in port order. Reply to [`ModuleContext::counters`].
    Counters(&'a [PortCounters]),
    /// An SNMP request by [`ModuleContext::snmp`] is complete. `at` is when the read call that completed it
    /// returned, or when the request failed.
    Snmp {
        /// Index of the agent.
        agent: usize,
        /// Identifier of the request.
        asked: SnmpId,
        /// The reply.
        answer: &'a SnmpReply,
    },
    /// A connection that [`ModuleContext::connect`] requested is up.
    Connected {
        /// Index of the connection.
        connection: usize,
        /// Properties of the connection.
        facts: &'a ConnectionFacts,
    },
    /// An invalid message arrived.
    DecodeFailed {
        /// Index of the connection.
        connection: usize,
        /// The decode error.
        why: &'a DecodeError,
    },
    /// A batch of messages could not be sent.
    SendFailed {
        /// Index of the connection.
        connection: usize,
        /// The batch of messages.
        said: MessageRange,
        /// The reason.
        why: SendError,
    },
    /// A connection was lost, or the attempt to connect failed.
    Disconnected {
        /// Index of the connection.
        connection: usize,
        /// The reason.
        why: &'a str,
    },
    /// Result of a host task by [`ModuleContext::run_host_task`].
    HostTask(&'a host_tasks::HostTaskResult),
    /// The limit with this name is reached. The report counts what exceeds it and leaves it out.
    /// Delivered once for each limit.
    LimitReached(&'static str),
}

/// Reply to an SNMP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnmpReply {
    /// Before the write of the first datagram that was answered. None if no datagram was sent.
    pub sent: Option<Nanos>,
    /// Number of responses received.
    pub rounds: u32,
    /// Object instances and their values, or the error.
    pub bindings: Result<Vec<Binding>, SnmpError>,
}

/// Why an SNMP request failed. The module continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnmpError {
    /// No such agent.
    NoAgent,
    /// The agent or the path to it failed.
    Failed(Failure),
    /// The system does not send the datagrams, with the reason.
    Unsendable(String),
}

/// Why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendError {
    /// The connection is not up.
    NotUp,
    /// The OpenFlow version does not support it.
    NotExpressible(openflow::codec::NotExpressible),
    /// The limit with this name is reached: the switch does not read its messages fast enough.
    Limit(&'static str),
}

/// A received frame.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Index of the port.
    pub port: usize,
    /// Timestamp and its clock.
    pub stamp: Stamp,
    /// Whether the timestamp is the time of arrival. A stalled tester reads frames late, and stamps
    /// them then.
    pub is_timestamp_valid: bool,
    /// The probe, or none if the tester did not send this frame.
    pub probe: Option<Probe>,
    /// The frame, without frame check sequence.
    pub bytes: &'a [u8],
}

/// Facts that a module receives at its start.
#[derive(Debug, Clone, PartialEq)]
pub struct TestSetup {
    /// The tester's ports, in order.
    pub ports: Vec<TesterPort>,
    /// The connections, in the order of [`ModuleRequirements::connections`].
    pub connections: Vec<ConnectionFacts>,
    /// Agents for [`ModuleContext::snmp`], in order: address and authentication of each.
    pub agents: Vec<String>,
    /// Whether hosts can run at the ports, for [`ModuleContext::run_host_task`].
    pub has_hosts: bool,
    /// Whether time is virtual.
    pub is_simulated: bool,
    /// Signs frames that are not sent by a stream, for example in a packet-out.
    pub signer: Signer,
}

/// A port of the tester.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TesterPort {
    /// Name, address and source of timestamps.
    pub facts: PortFacts,
    /// The switch port at the other end of the link, if known.
    pub joined: Option<SwitchPort>,
}

/// A port of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchPort {
    /// Index of the switch.
    pub switch: usize,
    /// Port number at the switch, in the numbering of OpenFlow 1.1 and later.
    pub port: u32,
}

/// Properties of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionFacts {
    /// Name of the peer. Empty until the connection is up.
    pub peer: String,
    /// The negotiated version. None until the connection is up.
    pub version: Option<Version>,
    /// The switch's features reply, if it was requested.
    pub features: Option<Features>,
}

impl ModuleRequirements {
    /// One connection to one switch, in any supported version, with a drain time of 50 ms.
    pub fn new(limit: Nanos) -> Self {
        let connections = vec![Connection::new(0)];
        let drain = Nanos::from_millis(50);
        ModuleRequirements {
            connections,
            limit,
            drain,
            stops_on_disconnect: true,
            needs_immediate_frames: false,
        }
    }

    /// Restricts all connections to these versions.
    #[must_use]
    pub fn in_versions(mut self, versions: &[Version]) -> Self {
        self.connections.iter_mut().for_each(|it| it.versions = versions.to_vec());
        self
    }
}

impl Connection {
    /// A connection to this switch that opens before the module starts, in any supported version.
    pub fn new(switch: usize) -> Self {
        let versions = Version::SUPPORTED.to_vec();
        Connection { switch, versions, opens: true, requests_features: true, miss_send_bytes: None }
    }
}

impl TestSetup {
    /// Returns the version of a connection that is up.
    pub fn version(&self, connection: usize) -> Option<Version> {
        self.connections.get(connection).and_then(|facts| facts.version)
    }

    /// Returns the tester's port that is connected to this switch port.
    pub fn port_joined(&self, joined: SwitchPort) -> Option<usize> {
        self.ports.iter().position(|port| port.joined == Some(joined))
    }
}

impl std::fmt::Display for SnmpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SnmpError::NoAgent => f.write_str("no such agent"),
            SnmpError::Failed(failure) => write!(f, "{failure}"),
            SnmpError::Unsendable(why) => f.write_str(why),
        }
    }
}

impl std::fmt::Display for SendError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SendError::NotUp => f.write_str("the connection is not up"),
            SendError::NotExpressible(what) => write!(f, "{what}"),
            SendError::Limit(name) => write!(f, "limit {name} reached"),
        }
    }
}
