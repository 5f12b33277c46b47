//! Event loop that drives a measurement module: it serves ports, connections and timers.
//!
//! The caller passes ports and clock, so the loop is the same for a live and a simulated rig. It
//! reads no clock itself and never blocks. Unwatched frames cost the module nothing: the loop only
//! classifies them. The module receives frames, messages and timers one by one, and its commands
//! run before the next event.
//!
//! Invariants:
//!
//! - Every wait has a named limit: [`CONNECT_NS_MAX`], [`HELLO_NS_MAX`], [`FEATURES_NS_MAX`],
//!   [`crate::module::TIME_LIMIT`].
//! - Memory is bounded, regardless of the switch and the module.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::Arc;

use channel::{Channel, ChannelError};
use netio::port::{PortCounters, PortDrop};
use packet::batch_copy::Copies;
use packet::time::{Clock, Nanos, Stamp};

use crate::executor::connection::SwitchConnection;
use crate::executor::iteration_time::Lengths;
use crate::executor::receive::{ArrivedFrame, FrameSelection, KnownStreams};
use crate::executor::transmit::Streams;
use crate::gauge::{self, Gauge, STEPS};
use crate::module::context::ModuleContext;
use crate::module::host_tasks::HostTaskResult;
use crate::module::{
    Costs, Ended, MessageRange, Module, ModuleRequirements, PortAccount, SendError, Signer, SnmpId,
    SnmpReply, StageReport, StreamAccount, SwitchPort, TestSetup, TesterPort,
};
use crate::pauses::PauseDetector as Attention;
use crate::rig::agents::{Agent, OutstandingRequests};
use crate::rig::engine::{PortRow, RECEIVE_FRAMES};
use crate::rig::hosts::{AnyHosts, HostTasks};
use crate::trial::{Flag, OFFERED_SHARE_MIN, STALL};

mod receive;
mod iteration_time;
mod connection;
pub mod live;
mod transmit;
pub mod sim;
mod dispatch;
mod iteration;

pub use connection::{
    CONNECT_NS_MAX, FEATURES_NS_MAX, HELLO_NS_MAX, MESSAGES_WAITING_MAX, READ_BYTES,
    TRANSMIT_BYTES_MAX, WRITE_BYTES,
};
pub use transmit::STREAMS_MAX;

/// Maximum run time of a module. Send times in signatures are unambiguous for longer.
pub const MODULE_NS_MAX: Nanos = Nanos::from_secs(24 * 3600);

/// Maximum drain time at a module's end.
pub const DRAIN_NS_MAX: Nanos = Nanos::from_secs(60);

/// Maximum number of connections of one module.
pub const CONNECTIONS_MAX: usize = 1024;

/// Connections that one iteration reads in real time. The others follow in the next iterations, so
/// that reading idle connections does not delay frames.
const CONNECTIONS_PER_TURN: usize = 64;

/// Maximum number of queued events for a module.
pub const EVENTS_WAITING_MAX: usize = 1 << 17;

/// Maximum number of drain extensions while a stream's last frames are outstanding.
const DRAINS_MAX: u64 = 10;

/// Maximum number of receive rounds after the drain, so that a flooding target cannot block the
/// end.
const FINAL_POLLS_MAX: u32 = 1024;

/// Topology: what the rig's ports are connected to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopologyInfo {
    /// The switch port at the other end of each of the rig's ports, if known.
    pub joined: Vec<Option<SwitchPort>>,
}

/// A connection to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionRequest {
    /// Index of the module's connection.
    pub connection: usize,
    /// Index of the switch.
    pub switch: usize,
}

/// Opens a connection without blocking. Called repeatedly while it returns none, for at most
/// [`CONNECT_NS_MAX`].
pub type Connect<'a> =
    &'a mut dyn FnMut(ConnectionRequest, Nanos) -> Result<Option<Box<dyn Channel>>, ChannelError>;

/// Inputs of one iteration of the event loop.
pub struct ExecutorIo<'a> {
    /// The rig's ports.
    pub ports: &'a mut PortRow,
    /// The module.
    pub module: &'a mut dyn Module,
    /// Agents that the module can query.
    pub agents: &'a mut [Agent],
    /// Hosts for tasks, if the links support them.
    pub hosts: Option<&'a mut AnyHosts>,
    /// Opens connections.
    pub connect: Connect<'a>,
    /// The clock.
    pub clock: &'a mut dyn FnMut() -> Nanos,
}

/// Event loop of one module.
pub struct ModuleExecutor {
    needs: ModuleRequirements,
    facts: Arc<TestSetup>,
    context: ModuleContext,
    phase: Phase,
    ended: Option<Ended>,
    started_at: Nanos,
    ended_at: Nanos,
    lines: Vec<SwitchConnection>,
    /// Index of the connection to read first in the next iteration.
    reads_from: usize,
    streams: Streams,
    known: KnownStreams,
    watching: Vec<FrameSelection>,
    counters: Vec<PortCounters>,
    received: Copies,
    sights: Vec<ArrivedFrame>,
    /// Stall detection: one lane per port, then one per connection.
    attention: Attention,
    /// Batches that sockets took, not yet reported to the module.
    sent: VecDeque<(usize, MessageRange, [Nanos; 2], Option<Stamp>)>,
    later: VecDeque<DeferredEvent>,
    asked: OutstandingRequests,
    hosts: HostTasks,
    costs: Costs,
    lengths: Lengths,
    stamps: Option<Clock>,
    last_rounds: u32,
    /// Gauge for live counters, and time of its last update.
    gauge: Option<&'static Gauge>,
    shown_at: Nanos,
}

/// Phase of the module's life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Connections come up.
    Opening,
    /// The module receives events.
    Running,
    /// Outstanding frames are counted.
    Draining { until: Nanos },
    /// Nothing is left to do.
    Over,
}

/// Events that are delivered after the module has returned.
#[derive(Debug)]
enum DeferredEvent {
    Unsent(usize, MessageRange, SendError),
    StreamOver(u16),
    Counters(Vec<PortCounters>),
    Up(usize),
    Lost(usize, String),
    Snmp(usize, SnmpId, Nanos, SnmpReply),
    HostTask(HostTaskResult),
}

impl ModuleExecutor {
    /// Creates the event loop at `now` for a module with these needs, a rig's ports and its agents.
    ///
    /// `signer` signs its frames. `has_hosts` states whether each iteration will have hosts.
    pub fn new(
        mut needs: ModuleRequirements,
        scene: &TopologyInfo,
        signer: Signer,
        (ports, agents, has_hosts): (&mut PortRow, &[Agent], bool),
        now: Nanos,
        is_simulated: bool,
    ) -> Self {
        needs.limit = needs.limit.min(MODULE_NS_MAX);
        needs.drain = needs.drain.min(DRAIN_NS_MAX);
        let here = |(place, port): (usize, &mut Box<dyn netio::port::Port>)| TesterPort {
            facts: port.facts().clone(),
            joined: scene.joined.get(place).copied().flatten(),
        };
        let here: Vec<TesterPort> = ports.iter_mut().enumerate().map(here).collect();
        let account = |port: &TesterPort| {
            let name = port.facts.name.clone();
            PortAccount { name, ..PortAccount::default() }
        };
        let lines: Vec<SwitchConnection> = needs
            .connections
            .iter()
            .take(CONNECTIONS_MAX)
            .enumerate()
            .map(|(number, it)| SwitchConnection::new(number, it.clone(), now))
            .collect();
        let facts = TestSetup {
            connections: lines.iter().map(SwitchConnection::facts).collect(),
            ports: here,
            agents: agents.iter().map(|agent| agent.name().to_owned()).collect(),
            has_hosts,
            is_simulated,
            signer,
        };
        let mut stage = ModuleExecutor {
            context: ModuleContext::new(now),
            phase: Phase::Opening,
            ended: None,
            started_at: now,
            ended_at: now,
            attention: Attention::new(ports.len() + lines.len()),
            lines,
            reads_from: 0,
            streams: Streams::new(signer),
            known: KnownStreams::new(signer, facts.ports.iter().map(account).collect()),
            watching: ports.iter().map(|_| FrameSelection::default()).collect(),
            counters: ports.iter_mut().map(|port| port.counters()).collect(),
            received: Copies::new(RECEIVE_FRAMES),
            sights: Vec::with_capacity(RECEIVE_FRAMES),
            sent: VecDeque::new(),
            later: VecDeque::new(),
            asked: OutstandingRequests::new(agents),
            hosts: HostTasks::default(),
            costs: Costs::default(),
            lengths: Lengths::new(),
            stamps: None,
            last_rounds: 0,
            gauge: None,
            shown_at: now,
            facts: Arc::new(facts),
            needs,
        };
        if stage.needs.connections.len() > CONNECTIONS_MAX {
            stage.end(Ended::Limit("CONNECTIONS_MAX"), now);
        }
        stage
    }

    /// Updates this gauge with live counters from now on.
    #[must_use]
    pub fn shown_on(self, gauge: &'static Gauge, now: Nanos) -> ModuleExecutor {
        gauge.begin(now, self.facts.ports.len());
        ModuleExecutor { gauge: Some(gauge), ..self }
    }

    /// Runs one iteration without blocking. Returns whether it did any work.
    pub fn turn(&mut self, world: &mut ExecutorIo<'_>) -> bool {
        self.costs.turns += 1;
        let now = self.look(world);
        // Virtual time does not advance within an iteration.
        if self.phase == Phase::Running && !self.facts.is_simulated {
            self.lengths.begin(now, self.attention.stalls().count);
        }
        let every = if self.facts.is_simulated { gauge::SPARSE } else { gauge::EVERY };
        if now.since(self.shown_at) >= every {
            self.show(now);
        }
        let moved = match self.phase {
            Phase::Opening => self.open(world, now),
            Phase::Running => self.run(world, now),
            Phase::Draining { until } => {
                self.cancel_host_task(world);
                let moved = self.receive(world) | self.serve(world);
                if now >= until && self.is_awaiting(now) {
                    self.phase = Phase::Draining { until: now.saturating_add(self.needs.drain) };
                    return true;
                }
                self.last_rounds += u32::from(now >= until);
                if now >= until && (!moved || self.last_rounds > FINAL_POLLS_MAX) {
                    self.phase = Phase::Over;
                }
                moved
            }
            Phase::Over => false,
        };
        if let (Some(why), Phase::Running) = (self.context.over(), self.phase) {
            let (why, now) = (why.clone(), (world.clock)());
            self.end(why, now);
        }
        moved
    }

    /// Updates the gauge with the frame counts by port. Only the module knows its latencies.
    fn show(&mut self, now: Nanos) {
        self.shown_at = now;
        let Some(gauge) = self.gauge else { return };
        let sent = |port: usize| -> u64 {
            let own = self.streams.accounts().filter(|stream| stream.from == port);
            own.map(|stream| stream.sent).sum()
        };
        let ports = self.known.received().enumerate().map(|(port, came)| [sent(port), came]);
        gauge.show(now, ports, &[0; STEPS]);
    }

    /// Returns whether only [`ModuleExecutor::finish`] is left.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Ends the module from outside.
    pub fn interrupt(&mut self, why: Ended, now: Nanos) {
        self.end(why, now);
    }

    /// Records that the tester is idle until `until` and misses nothing if it resumes then.
    pub fn rest(&mut self, until: Nanos) {
        self.attention.rested(until);
        self.lengths.rest();
    }

    /// Returns until when the tester may block at `now` on its connections instead of busy-polling.
    ///
    /// It blocks only while hosts use its cores.
    pub fn waits(&self, now: Nanos) -> Option<Nanos> {
        let most = now.saturating_add(crate::rig::hosts::HOSTS_WAIT_NS_MAX);
        let is_waiting = self.hosts.is_busy() && self.phase == Phase::Running;
        is_waiting.then(|| self.next_event().map_or(most, |due| due.min(most)))
    }

    /// Returns the connections' file descriptors to wait for.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.lines.iter().filter_map(SwitchConnection::descriptor)
    }

    /// Returns when the next timer or deadline is due.
    pub fn next_event(&self) -> Option<Nanos> {
        match self.phase {
            Phase::Opening => self.lines.iter().filter_map(SwitchConnection::deadline).min(),
            Phase::Running => {
                let limit = self.started_at.saturating_add(self.needs.limit);
                let lines = self.lines.iter().filter_map(SwitchConnection::deadline);
                let agents = self.asked.next_due();
                let due = [self.context.next_due(), self.streams.next_due(), agents, Some(limit)];
                due.into_iter().flatten().chain(lines).min()
            }
            Phase::Draining { until } => Some(until),
            Phase::Over => None,
        }
    }

    /// Calls the module's `finish` and creates the report.
    pub fn finish(mut self, module: &mut dyn Module, ports: &mut PortRow) -> StageReport {
        self.show(self.ended_at.max(self.shown_at));
        let mut ended = self.ended.take().unwrap_or(Ended::Interrupted);
        self.context.now = self.ended_at;
        self.costs.turn_ns_p50 = self.lengths.quantile(0.5).0;
        self.costs.turn_ns_p99 = self.lengths.quantile(0.99).0;
        let stamps = self.stamps.or(self.facts.ports.first().map(|port| port.facts.stamps));
        let stamps = stamps.unwrap_or(Clock::UserSpace);
        self.context.poll_period = Nanos(self.costs.turn_ns_p99);
        let is_told_late = stamps == Clock::UserSpace;
        self.context.frame_poll_period =
            if is_told_late { self.context.poll_period } else { Nanos::ZERO };
        module.finish(&ended, &mut self.context);
        if let (Ended::Completed, Some(Ended::Failed(why))) = (&ended, self.context.over()) {
            ended = Ended::Failed(why.clone());
        }
        let counters = ports.iter_mut().map(|port| port.counters());
        let since = counters.zip(&self.counters).map(|(now, before)| now.since(before));
        let arrived = self.known.finish(self.streams.accounts(), since);
        let mut stalls = self.attention.stalls();
        stalls.delays_unknown = arrived.delays_unknown;
        let drops: u64 =
            arrived.ports.iter().map(|port| port.counters.lost(PortDrop::ReceiveRingFull)).sum();
        let sent: u64 = arrived.streams.iter().map(|stream| stream.sent).sum();
        let unsent = |stream: &StreamAccount| stream.unsent_late + stream.unsent_refused;
        let intended = sent + arrived.streams.iter().map(unsent).sum::<u64>();
        let share = if intended == 0 { 1.0 } else { sent as f64 / intended as f64 };
        let flags = [
            (share < OFFERED_SHARE_MIN, Flag::TesterLimited(share)),
            // What hosts receive also passes the tester's ports, and is no loss of the tester.
            (drops > 0 && !self.hosts.has_been(), Flag::TesterDrops(drops)),
            (stalls.ns_longest >= STALL.0, Flag::Stalled(stalls.count)),
            (stamps == Clock::UserSpace, Flag::UserSpaceStamps),
        ];
        let findings = std::mem::take(self.context.findings_mut());
        let (log, measured, series, limits) = findings.take();
        StageReport {
            started_at: self.started_at,
            ended_at: self.ended_at,
            ended,
            is_simulated: self.facts.is_simulated,
            has_sent_hosts: self.hosts.has_been(),
            streams: arrived.streams,
            ports: arrived.ports,
            connections: self.lines.into_iter().map(SwitchConnection::report).collect(),
            agents: self.asked.report(),
            log,
            measured,
            series,
            limits,
            costs: self.costs,
            capture: None,
            stalls,
            flags: flags.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag).collect(),
            stamps,
        }
    }

    /// Stops the current host task and waits for its end.
    fn cancel_host_task(&mut self, world: &mut ExecutorIo<'_>) -> Option<HostTaskResult> {
        let is_busy = self.hosts.is_busy();
        let done = self.hosts.stop(world.hosts.as_deref_mut());
        if is_busy {
            self.rest((world.clock)());
        }
        done
    }

    /// Returns whether to extend the drain: earlier frames of a stream arrived, its last did not.
    fn is_awaiting(&self, now: Nanos) -> bool {
        let most = Nanos(self.needs.drain.0.saturating_mul(DRAINS_MAX)).min(DRAIN_NS_MAX);
        now.since(self.ended_at) < most && self.known.awaits(self.streams.accounts())
    }

    /// Stops sending and event delivery, and starts the drain.
    fn end(&mut self, why: Ended, now: Nanos) {
        if self.ended.is_some() {
            return;
        }
        if self.phase == Phase::Opening {
            self.started_at = now;
        }
        (self.ended, self.ended_at) = (Some(why), now);
        self.streams.stop_all();
        let drain = if self.streams.has_sent() { self.needs.drain } else { Nanos::ZERO };
        self.phase = Phase::Draining { until: now.saturating_add(drain) };
    }
}

impl std::fmt::Debug for ModuleExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("phase", &self.phase).field("ended", &self.ended).finish()
    }
}

#[cfg(test)]
mod tests;
