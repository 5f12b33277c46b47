//! A stage carries out a module: ports, connections and timers served in one loop by one clock.
//!
//! It is told the time and is handed the ports; it reads no clock and never waits. A live rig and a
//! simulated one drive it alike. Frames of a batch that the module does not watch cost it nothing but
//! being sorted; frames, messages and timers come to the module one by one, and what it says is done
//! before the next.
//!
//! Invariant: every wait has a limit with a name ([`CONNECT_NS_MAX`], [`HELLO_NS_MAX`],
//! [`FEATURES_NS_MAX`], [`crate::module::TIME_LIMIT`]), and memory is bounded whatever switch and module do.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::Arc;

use packet::copies::Copies;
use packet::time::{Clock, Nanos, Stamp};
use ports::channel::{Channel, ChannelError};
use ports::port::{PortCounters, PortDrop};

use crate::gauge::{self, Gauge, STEPS};
use crate::module::desk::Desk;
use crate::module::hosts::Done;
use crate::module::{
    Answer, Costs, Ended, Facts, Joined, Module, Needs, PortAccount, PortHere, Said, Signer,
    SnmpId, StageReport, StreamAccount, Unsent,
};
use crate::rig::engine::{PortRow, RECEIVE_FRAMES};
use crate::stage::agents::{Agent, Asked};
use crate::stage::arriving::{Known, Sight, Watching};
use crate::stage::hosts::{AnyHosts, Busy};
use crate::stage::lengths::Lengths;
use crate::stage::line::Line;
use crate::stage::sending::Streams;
use crate::stall::Watch as Attention;
use crate::trial::{Flag, OFFERED_SHARE_MIN, STALL};

/// Agents of SNMP.
pub mod agents;
/// The frames of streams as they arrive.
mod arriving;
/// Hosts beside ports.
pub mod hosts;
/// How long its turns are.
mod lengths;
/// A connection to a switch.
mod line;
/// Real ports and sockets, real time.
pub mod live;
/// The frames of streams on their way out.
mod sending;
/// Virtual time.
pub mod sim;
/// The module is told, and what it says is done.
mod telling;
/// What a turn consists of.
mod turns;

pub use line::{
    CONNECT_NS_MAX, FEATURES_NS_MAX, HELLO_NS_MAX, MESSAGES_WAITING_MAX, READ_BYTES,
    TRANSMIT_BYTES_MAX, WRITE_BYTES,
};
pub use sending::STREAMS_MAX;

/// The longest that a module may take, whatever it asks for: sending times are known for longer.
pub const MODULE_NS_MAX: Nanos = Nanos::from_secs(24 * 3600);

/// The longest that frames are waited for at its end.
pub const DRAIN_NS_MAX: Nanos = Nanos::from_secs(60);

/// Connections of one module.
pub const CONNECTIONS_MAX: usize = 1024;

/// Connections that are read in one turn in real time. With more, the others have their turn later, so that reading
/// idle connections does not keep frames waiting.
const CONNECTIONS_PER_TURN: usize = 64;

/// Events about what a module said that wait to be told to it.
pub const EVENTS_WAITING_MAX: usize = 1 << 17;

/// How often the drain is prolonged at most while the last frames of a stream are under way.
const DRAINS_MAX: u64 = 10;

/// How often at most what arrives is taken when the drain is over: a target that floods ends nothing.
const LAST_ROUNDS: u32 = 1024;

/// What is at the other ends, as whoever knows the targets tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scene {
    /// Which port of which switch each of the rig's ports leads to, as far as that is known.
    pub joined: Vec<Option<Joined>>,
}

/// A connection that is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Which of the module's connections.
    pub connection: usize,
    /// Which switch it leads to.
    pub switch: usize,
}

/// Makes a connection without waiting: asked again and again while it says none, for at most
/// [`CONNECT_NS_MAX`].
pub type Connect<'a> =
    &'a mut dyn FnMut(Wanted, Nanos) -> Result<Option<Box<dyn Channel>>, ChannelError>;

/// What a stage is handed for a turn.
pub struct World<'a> {
    /// The rig's ports.
    pub ports: &'a mut PortRow,
    /// The module.
    pub module: &'a mut dyn Module,
    /// The agents that the module can ask.
    pub agents: &'a mut [Agent],
    /// The hosts that it can send on errands, where links let them stand there.
    pub hosts: Option<&'a mut AnyHosts>,
    /// How connections are made.
    pub connect: Connect<'a>,
    /// What time it is.
    pub clock: &'a mut dyn FnMut() -> Nanos,
}

/// A module that is being carried out.
pub struct Stage {
    needs: Needs,
    facts: Arc<Facts>,
    desk: Desk,
    phase: Phase,
    ended: Option<Ended>,
    started_at: Nanos,
    ended_at: Nanos,
    lines: Vec<Line>,
    /// The connection that is read first in the next turn.
    reads_from: usize,
    streams: Streams,
    known: Known,
    watching: Vec<Watching>,
    counters: Vec<PortCounters>,
    received: Copies,
    sights: Vec<Sight>,
    /// Where the tester looked when: its ports, and after them its connections.
    attention: Attention,
    /// What sockets took and the module has not been told.
    sent: VecDeque<(usize, Said, [Nanos; 2], Option<Stamp>)>,
    later: VecDeque<Later>,
    asked: Asked,
    hosts: Busy,
    costs: Costs,
    lengths: Lengths,
    stamps: Option<Clock>,
    last_rounds: u32,
    /// Where whoever watches is shown what was counted, and when that was last.
    gauge: Option<&'static Gauge>,
    shown_at: Nanos,
}

/// How far a stage has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Connections come up.
    Opening,
    /// The module is told what happens.
    Running,
    /// What is under way is counted.
    Draining { until: Nanos },
    /// There is nothing left to do.
    Over,
}

/// Events that are told when the module has returned.
#[derive(Debug)]
enum Later {
    Unsent(usize, Said, Unsent),
    StreamOver(u16),
    Counters(Vec<PortCounters>),
    Up(usize),
    Lost(usize, String),
    Snmp(usize, SnmpId, Nanos, Answer),
    Errand(Done),
}

impl Stage {
    /// A stage for a module with these needs, at `now`, with a rig's ports and the agents that can be asked;
    /// its frames are signed by `signer`. `has_hosts` says whether each turn will have hosts.
    pub fn new(
        mut needs: Needs,
        scene: &Scene,
        signer: Signer,
        (ports, agents, has_hosts): (&mut PortRow, &[Agent], bool),
        now: Nanos,
        is_simulated: bool,
    ) -> Self {
        needs.limit = needs.limit.min(MODULE_NS_MAX);
        needs.drain = needs.drain.min(DRAIN_NS_MAX);
        let here = |(place, port): (usize, &mut Box<dyn ports::port::Port>)| PortHere {
            facts: port.facts().clone(),
            joined: scene.joined.get(place).copied().flatten(),
        };
        let here: Vec<PortHere> = ports.iter_mut().enumerate().map(here).collect();
        let account = |port: &PortHere| {
            let name = port.facts.name.clone();
            PortAccount { name, ..PortAccount::default() }
        };
        let lines: Vec<Line> = needs
            .connections
            .iter()
            .take(CONNECTIONS_MAX)
            .enumerate()
            .map(|(number, it)| Line::new(number, it.clone(), now))
            .collect();
        let facts = Facts {
            connections: lines.iter().map(Line::facts).collect(),
            ports: here,
            agents: agents.iter().map(|agent| agent.name().to_owned()).collect(),
            has_hosts,
            is_simulated,
            signer,
        };
        let mut stage = Stage {
            desk: Desk::new(now),
            phase: Phase::Opening,
            ended: None,
            started_at: now,
            ended_at: now,
            attention: Attention::new(ports.len() + lines.len()),
            lines,
            reads_from: 0,
            streams: Streams::new(signer),
            known: Known::new(signer, facts.ports.iter().map(account).collect()),
            watching: ports.iter().map(|_| Watching::default()).collect(),
            counters: ports.iter_mut().map(|port| port.counters()).collect(),
            received: Copies::new(RECEIVE_FRAMES),
            sights: Vec::with_capacity(RECEIVE_FRAMES),
            sent: VecDeque::new(),
            later: VecDeque::new(),
            asked: Asked::new(agents),
            hosts: Busy::default(),
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

    /// The same, shown on a gauge from now on.
    #[must_use]
    pub fn shown_on(self, gauge: &'static Gauge, now: Nanos) -> Stage {
        gauge.begin(now, self.facts.ports.len());
        Stage { gauge: Some(gauge), ..self }
    }

    /// Does once what there is to do without waiting; whether that was anything.
    pub fn turn(&mut self, world: &mut World<'_>) -> bool {
        self.costs.turns += 1;
        let now = self.look(world);
        // Virtual time stands still in a turn.
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
                self.end_errand(world);
                let moved = self.receive(world) | self.serve(world);
                if now >= until && self.is_awaiting(now) {
                    self.phase = Phase::Draining { until: now.saturating_add(self.needs.drain) };
                    return true;
                }
                self.last_rounds += u32::from(now >= until);
                if now >= until && (!moved || self.last_rounds > LAST_ROUNDS) {
                    self.phase = Phase::Over;
                }
                moved
            }
            Phase::Over => false,
        };
        if let (Some(why), Phase::Running) = (self.desk.over(), self.phase) {
            let (why, now) = (why.clone(), (world.clock)());
            self.end(why, now);
        }
        moved
    }

    /// Shows whoever watches what passed by port so far; what latencies are is the module's affair.
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

    /// Whether nothing is left but [`Stage::finish`].
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Ends it from outside.
    pub fn interrupt(&mut self, why: Ended, now: Nanos) {
        self.end(why, now);
    }

    /// The tester has nothing to do before `until`, and misses nothing if it looks again then.
    pub fn rest(&mut self, until: Nanos) {
        self.attention.rested(until);
        self.lengths.rest();
    }

    /// Until when the tester may wait at `now` for what its connections bring, rather than spin: while hosts are
    /// busy on its cores.
    pub fn waits(&self, now: Nanos) -> Option<Nanos> {
        let most = now.saturating_add(hosts::HOSTS_WAIT_NS_MAX);
        let is_waiting = self.hosts.is_busy() && self.phase == Phase::Running;
        is_waiting.then(|| self.next_event().map_or(most, |due| due.min(most)))
    }

    /// What its connections are waited for by.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.lines.iter().filter_map(Line::descriptor)
    }

    /// When something is due although nothing arrives.
    pub fn next_event(&self) -> Option<Nanos> {
        match self.phase {
            Phase::Opening => self.lines.iter().filter_map(Line::deadline).min(),
            Phase::Running => {
                let limit = self.started_at.saturating_add(self.needs.limit);
                let lines = self.lines.iter().filter_map(Line::deadline);
                let agents = self.asked.next_due();
                let due = [self.desk.next_due(), self.streams.next_due(), agents, Some(limit)];
                due.into_iter().flatten().chain(lines).min()
            }
            Phase::Draining { until } => Some(until),
            Phase::Over => None,
        }
    }

    /// Hears the module's last words, and counts everything.
    pub fn finish(mut self, module: &mut dyn Module, ports: &mut PortRow) -> StageReport {
        self.show(self.ended_at.max(self.shown_at));
        let mut ended = self.ended.take().unwrap_or(Ended::Interrupted);
        self.desk.now = self.ended_at;
        self.costs.turn_ns_p50 = self.lengths.quantile(0.5).0;
        self.costs.turn_ns_p99 = self.lengths.quantile(0.99).0;
        let stamps = self.stamps.or(self.facts.ports.first().map(|port| port.facts.stamps));
        let stamps = stamps.unwrap_or(Clock::UserSpace);
        self.desk.turn = Nanos(self.costs.turn_ns_p99);
        let is_told_late = stamps == Clock::UserSpace;
        self.desk.frame_turn = if is_told_late { self.desk.turn } else { Nanos::ZERO };
        module.finish(&ended, &mut self.desk);
        if let (Ended::Said, Some(Ended::Failed(why))) = (&ended, self.desk.over()) {
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
            // What hosts receive passes the tester's ports too, and is nothing to it.
            (drops > 0 && !self.hosts.has_been(), Flag::TesterDrops(drops)),
            (stalls.ns_longest >= STALL.0, Flag::Stalled(stalls.count)),
            (stamps == Clock::UserSpace, Flag::UserSpaceStamps),
        ];
        let findings = std::mem::take(self.desk.findings_mut());
        let (log, measured, series, limits) = findings.take();
        StageReport {
            started_at: self.started_at,
            ended_at: self.ended_at,
            ended,
            is_simulated: self.facts.is_simulated,
            has_sent_hosts: self.hosts.has_been(),
            streams: arrived.streams,
            ports: arrived.ports,
            connections: self.lines.into_iter().map(Line::report).collect(),
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

    /// Ends what hosts are at, and waits for that.
    fn end_errand(&mut self, world: &mut World<'_>) -> Option<Done> {
        let is_busy = self.hosts.is_busy();
        let done = self.hosts.stop(world.hosts.as_deref_mut());
        if is_busy {
            self.rest((world.clock)());
        }
        done
    }

    /// Whether the drain goes on, because the last frames of a stream have not come yet although earlier ones have.
    fn is_awaiting(&self, now: Nanos) -> bool {
        let most = Nanos(self.needs.drain.0.saturating_mul(DRAINS_MAX)).min(DRAIN_NS_MAX);
        now.since(self.ended_at) < most && self.known.awaits(self.streams.accounts())
    }

    /// Nothing more is sent or told; what is under way is waited for.
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

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("phase", &self.phase).field("ended", &self.ended).finish()
    }
}

#[cfg(test)]
mod tests;
