//! A measurement module: a value that is told what happens on one clock and says what is to be done.
//!
//! Where an experiment's trial counts at its end what fixed streams came to, a module sees each probe
//! frame and each OpenFlow message as an event, and reacts while it measures. The life of a module is
//! that of OFLOPS (Rotsos et al., PAM 2012): it says what it needs, is started, told of events, and
//! terminated; what carries it out is a [`crate::stage`], live or in virtual time.
//!
//! Invariant: a module does no I/O and reads no clock. All it knows are events and the facts at the
//! start; all it does goes onto the [`Desk`] and is done, in order, when it returns.

use openflow::codec::DecodeError;
use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::switch::Features;
use openflow::version::Version;
use packet::time::{Nanos, Stamp};
use ports::port::{PortCounters, PortFacts};
use snmp::{Binding, Failure};

/// What a module has done, told and found is said on a desk.
pub mod desk;
/// What a module has found.
pub mod findings;
/// What hosts are sent to do.
pub mod hosts;
/// The frames of streams, known again and made by hand.
pub mod probe;
/// All that came of a module.
pub mod report;
/// An agent asked beside a measurement.
pub mod witness;

pub use desk::{Desk, Prepared, Said, SnmpId, Span, TimerId, Watch};
pub use findings::{LogEntry, Measured, Series, Value};
pub use probe::{Frames, Probe, Signer};
pub use report::{
    AgentReport, ConnectionReport, Costs, Ended, PortAccount, StageReport, StreamAccount,
    TIME_LIMIT, WireReport,
};

/// A measurement that reacts to what happens.
pub trait Module: Send {
    /// What it needs before it starts. Asked once.
    fn needs(&self) -> Needs;

    /// Something happened; what is to be done goes onto the desk. Time that this takes is time in
    /// which nobody looks at ports and sockets: it is measured, and a long reaction makes the delays
    /// of what came meanwhile unknown, as any stall of the tester does.
    fn react(&mut self, event: &Event<'_>, desk: &mut Desk);

    /// It is over, because the module said so or for the reason that is given; frames that were under
    /// way have been waited for. What was found can still be told, however little it is; nothing
    /// more is sent. Called once, also when the module was never started.
    fn finish(&mut self, ended: &Ended, desk: &mut Desk);
}

/// What a module needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// Its connections, which it names from 0 in this order.
    pub connections: Vec<Connection>,
    /// The longest it may take from its start on, at most [`crate::stage::MODULE_NS_MAX`]; then it is
    /// ended, by [`TIME_LIMIT`].
    pub limit: Nanos,
    /// How long frames that are under way at its end are waited for, to be counted, at most
    /// [`crate::stage::DRAIN_NS_MAX`]; the module is not told of them.
    pub drain: Nanos,
    /// Whether it is over when a connection is lost that the module did not end itself.
    pub ends_when_lost: bool,
    /// Whether it answers frames, and so has to be told of each as it comes. Moments are as exact
    /// without it; frames may then be told of about a millisecond after they came.
    pub is_prompt: bool,
}

/// A connection to a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Which of the switches at hand, from 0. Several connections may lead to one.
    pub switch: usize,
    /// The versions that are offered.
    pub versions: Vec<Version>,
    /// Whether it is made before the module starts; otherwise when [`Desk::connect`] says so.
    pub opens: bool,
    /// Whether the switch is asked for its features before the connection counts as up.
    pub asks_features: bool,
    /// Bytes of a frame that a packet-in carries (`miss_send_len`), which a SET_CONFIG sets before the connection counts as up;
    /// none is sent without it. Open vSwitch sends its primary connection no packet-in before that.
    pub miss_send_bytes: Option<u16>,
}

/// Something that happened, and when. Events are told in the order in which the tester finds them;
/// whoever wants to know what came first compares their moments: a frame that the kernel stamped may have
/// come before a message that is told before it.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// When. On the machine's monotonic clock, or in virtual time.
    pub at: Nanos,
    /// What.
    pub what: What<'a>,
}

/// What happened.
#[derive(Debug, Clone, Copy)]
pub enum What<'a> {
    /// The module begins, and every connection that opens is up.
    Start(&'a Facts),
    /// A frame arrived that is watched; `at` is its stamp.
    Frame(&'a Arrival<'a>),
    /// The socket took all of what was said together; `at` is `last`. Told before any answer to it.
    Sent {
        /// On which connection.
        connection: usize,
        /// What was said.
        said: Said,
        /// Before the write that took the first byte.
        first: Nanos,
        /// After the write that took the last byte.
        last: Nanos,
        /// When the last byte had passed the interface, where that is captured and had happened by now.
        wire: Option<Stamp>,
    },
    /// A message came; `at` is when the read returned that completed it. Echo requests of the switch
    /// are answered without the module, hellos and the first features are not told.
    Message {
        /// On which connection.
        connection: usize,
        /// Its number, which is not checked: the switch may say any.
        xid: Xid,
        /// The message.
        message: &'a Message,
        /// Bytes that it had.
        bytes: usize,
        /// The probe that a packet-in carries, if it does.
        probe: Option<Probe>,
        /// Whether the tester was there when it came, so that `at` is when it did.
        is_moment_known: bool,
        /// When its last byte had passed the interface, where that is captured; known also if the tester
        /// was away.
        wire: Option<Stamp>,
    },
    /// The moment that was asked for has come; how late it is told is `at` less [`TimerId::due`].
    Timer(TimerId),
    /// All frames of a stream were sent that its span called for.
    StreamOver(u16),
    /// The ports' own counters since they were opened, in their order, as [`Desk::counters`] asked.
    Counters(&'a [PortCounters]),
    /// A question to an agent by [`Desk::snmp`] came to something; `at` is when the read returned that
    /// completed it, or when it was given up.
    Snmp {
        /// Which of the agents.
        agent: usize,
        /// Which question.
        asked: SnmpId,
        /// What came of it.
        answer: &'a Answer,
    },
    /// A connection that [`Desk::connect`] asked for is up.
    Up {
        /// Which.
        connection: usize,
        /// What is known of it.
        facts: &'a ConnectionFacts,
    },
    /// A message came that nobody can understand.
    Refused {
        /// On which connection.
        connection: usize,
        /// What is wrong with it.
        why: &'a DecodeError,
    },
    /// What was to be said is not said.
    Unsent {
        /// On which connection.
        connection: usize,
        /// What.
        said: Said,
        /// Why not.
        why: Unsent,
    },
    /// A connection was lost, or could not be made.
    Lost {
        /// Which.
        connection: usize,
        /// Why.
        why: &'a str,
    },
    /// What came of an errand by [`Desk::errand`].
    Errand(&'a hosts::Done),
    /// A limit with this name is reached: what is beyond it is counted in the report, and left out.
    /// Told once for each.
    LimitReached(&'static str),
}

/// What came of a question to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Before the write of the datagram that was answered first; none if none was sent.
    pub sent: Option<Nanos>,
    /// How many answers it took.
    pub rounds: u32,
    /// Instances and their values, or why there are none.
    pub bindings: Result<Vec<Binding>, Unanswered>,
}

/// Why a question to an agent has no answer. It ends no module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    /// There is no such agent.
    NoAgent,
    /// The agent or the way to it failed.
    Failed(Failure),
    /// The system does not let datagrams through, and why.
    Unsendable(String),
}

/// Why something is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// The connection is not up.
    NotUp,
    /// The version cannot say it.
    NotExpressible(openflow::codec::NotExpressible),
    /// A limit with this name is reached: the switch does not take what was said before.
    Limit(&'static str),
}

/// A frame that arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The port, from 0.
    pub port: usize,
    /// When, and who says so.
    pub stamp: Stamp,
    /// Whether that is when it came: a tester that was away finds frames later, and stamps them then.
    pub is_moment_known: bool,
    /// Which frame of which stream it is; none if it is not the tester's.
    pub probe: Option<Probe>,
    /// The frame, without frame check sequence.
    pub bytes: &'a [u8],
}

/// What is known when a module starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// The ports, in their order.
    pub ports: Vec<PortHere>,
    /// The connections, in the order in which they were needed.
    pub connections: Vec<ConnectionFacts>,
    /// Agents that can be asked by [`Desk::snmp`], in order: where, and how we are believed.
    pub agents: Vec<String>,
    /// Whether hosts can stand at the ports, to be sent on errands by [`Desk::errand`].
    pub has_hosts: bool,
    /// Whether time is virtual.
    pub is_simulated: bool,
    /// Signs frames that are sent by other ways than a stream's, in a packet-out for one.
    pub signer: Signer,
}

/// A port of the tester.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortHere {
    /// Name, address and who stamps.
    pub facts: PortFacts,
    /// Which port of which switch is at its other end, if that is known.
    pub joined: Option<Joined>,
}

/// A switch's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// Which switch, from 0.
    pub switch: usize,
    /// The number that the switch gives it, in the numbers of OpenFlow 1.1 and later.
    pub port: u32,
}

/// What is known of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionFacts {
    /// Name of the other end; empty until the connection is up.
    pub peer: String,
    /// The version that was agreed on; none until the connection is up.
    pub version: Option<Version>,
    /// What the switch says it is, if it was asked.
    pub features: Option<Features>,
}

impl Needs {
    /// One connection to one switch, in whatever version it speaks; a drain of 50 ms.
    pub fn new(limit: Nanos) -> Self {
        let connections = vec![Connection::new(0)];
        let drain = Nanos::from_millis(50);
        Needs { connections, limit, drain, ends_when_lost: true, is_prompt: false }
    }

    /// The same in one of these versions only.
    #[must_use]
    pub fn in_versions(mut self, versions: &[Version]) -> Self {
        self.connections.iter_mut().for_each(|it| it.versions = versions.to_vec());
        self
    }
}

impl Connection {
    /// A connection to this switch that opens before the module starts, in any spoken version.
    pub fn new(switch: usize) -> Self {
        let versions = Version::SPOKEN.to_vec();
        Connection { switch, versions, opens: true, asks_features: true, miss_send_bytes: None }
    }
}

impl Facts {
    /// The version of a connection that is up.
    pub fn version(&self, connection: usize) -> Option<Version> {
        self.connections.get(connection).and_then(|facts| facts.version)
    }

    /// The tester's port that is joined to this port of this switch.
    pub fn port_joined(&self, joined: Joined) -> Option<usize> {
        self.ports.iter().position(|port| port.joined == Some(joined))
    }
}

impl std::fmt::Display for Unanswered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unanswered::NoAgent => f.write_str("there is no such agent"),
            Unanswered::Failed(failure) => write!(f, "{failure}"),
            Unanswered::Unsendable(why) => f.write_str(why),
        }
    }
}

impl std::fmt::Display for Unsent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unsent::NotUp => f.write_str("the connection is not up"),
            Unsent::NotExpressible(what) => write!(f, "{what}"),
            Unsent::Limit(name) => write!(f, "{name} is reached"),
        }
    }
}
