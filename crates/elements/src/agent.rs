//! OpenFlow agent of a switch: connections, requests and asynchronous messages.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 4 and 5; 1.3.5, sections 6 and 7.
//! Controllers of all versions can be connected at the same time. The agent does I/O only through
//! its channels and reads no clock. Its owner calls `serve` with the data plane, transmits the
//! frames that this produced, and then calls `flush`. A barrier reply is therefore sent only after
//! the effects of all earlier messages.
//!
//! Invariant: a peer that sends invalid data or does not read ends at most its own connection.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::Arc;

use channel::{Channel, ChannelError, Listener, Tls, Url};
use dataplane::forwarder::Outputs;
use dataplane::instruction::Instructions;
use dataplane::pipeline::Pipeline;
use netio::link::Link;
use openflow::model::{
    FragmentHandling, Instruction, Message, PortDescription, PortStatus, PortStatusReason,
};
use openflow::version::{AsyncKind, Version};
use packet::frame::PortNo;
use packet::time::Nanos;

use crate::budget::Budget;
use crate::config::{Limits, OpenFlowConfig};
use crate::event::Event;
use crate::fast_path::FastPath;
use crate::forward::{ForwardPort, mac_of};
use crate::hardware_model::Behaviour;
use crate::translate::downgrade;

mod auxiliary;
pub mod buffers;
pub mod connection;
pub mod dialer;
pub mod admission;
pub mod failover;
pub mod roles;
mod status;
pub mod async_config;
pub mod rate_limit;
pub mod multipart_reassembly;
mod turn;
mod ongoing;
mod handle;
mod connections;
mod modelled;
mod change;
mod packet_out;
mod tables;
mod features;
mod ways;
mod shaping;
pub mod bundle;
mod commit;
pub mod schedule;
mod multipart;
pub mod multipart_reply;
pub mod monitor;
mod nicira;
mod async_messages;
pub mod ports;
mod link_features;

use admission::{Admission, PendingConnection};
use buffers::Buffers;
use commit::Transaction;
use connection::Connection;
use dialer::Dialer;
use failover::{ConnectedCounts, Failover};
use features::Features;
use ongoing::OngoingChange;
use ports::PortTable;
use rate_limit::Pace;
use roles::Roles;
use schedule::Schedule;

/// Retry interval for a connection whose peer does not read.
const FULL_RETRY: Nanos = Nanos::from_millis(1);

/// OpenFlow agent of a switch.
pub struct Agent {
    datapath_id: u64,
    opened_at: Nanos,
    versions: Vec<Version>,
    limits: Limits,
    roles: Roles,
    pace: Pace,
    schedule: Schedule,
    features: Features,
    /// The last instructions that only output to one port, with the version of their message.
    last_instructions: Option<(Version, Vec<Instruction>, Arc<Instructions>)>,
    /// While messages of a bundle are applied: work that is deferred until the whole bundle is
    /// visible.
    transaction: Option<Transaction>,
    /// The change that takes several turns, if there is one.
    ongoing: Option<OngoingChange>,
    /// Whether that change waits in this turn for forwarding threads.
    waits_for_frames: bool,
    /// Whether forwarding threads saw every change when the turn began.
    is_settled: bool,
    /// Whether a change of several turns ended while messages waited for it.
    has_released: bool,
    /// Index of the connection that is served first in the next cycle.
    first: usize,
    /// Time of day minus the agent's own time; wraps.
    wall_offset: u64,
    connections_made: u32,
    fragments: FragmentHandling,
    miss_send_bytes: u16,
    probe: Nanos,
    ports: PortTable,
    buffers: Buffers,
    failover: Failover,
    listeners: Vec<Listener>,
    dialers: Vec<Dialer>,
    connections: Vec<Connection>,
    /// Admission of incoming connections.
    pub admission: Admission,
    /// Counters.
    pub counters: AgentCounters,
    /// Events for the log. The agent's owner drains them.
    pub events: Vec<Event>,
    read_buffer: Vec<u8>,
    /// Buffer for encoded rows of statistics.
    rows: Vec<u8>,
    /// Data plane events that have not been reported yet.
    news: VecDeque<dataplane::forwarder::Event>,
    /// Number of data plane events reported so far.
    news_told: u64,
}

/// Counters of the agent. Each asynchronous message counts once for every controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentCounters {
    /// Frames that the data plane sent to the controllers.
    pub frames: u64,
    /// Of these, frames that no connected controller receives.
    pub frames_unheard: u64,
    /// Of these, frames that were not buffered because no buffer was free.
    pub frames_not_kept: u64,
    /// Of these, frames that exceeded the packet-in rate limit.
    pub frames_over_rate: u64,
    /// Of these, frames that no controller receives because all their send queues were full.
    pub frames_lost: u64,
    /// Valid messages received.
    pub messages: u64,
    /// Invalid messages received.
    pub refused: u64,
    /// Valid messages that failed.
    pub failed: u64,
    /// Turns of a connection that ended because its share of the turn's time was used up.
    pub turns_cut: u64,
    /// Bundles that were discarded because they were idle for too long.
    pub bundles_expired: u64,
    /// Asynchronous messages that were dropped because the controller's send queue was full.
    pub news_lost: u64,
}

/// The parts of the data plane that the agent changes and reads.
pub struct Datapath<'a> {
    /// The flow tables.
    pub pipeline: &'a mut Pipeline,
    /// The hardware model that the switch emulates, if any.
    pub model: Option<&'a mut Behaviour>,
    /// Queues of frames and events.
    pub outputs: &'a mut Outputs,
    /// The ports.
    pub forward_ports: &'a mut [ForwardPort],
    /// The fast path in the kernel, if there is one.
    pub fast_path: Option<&'a FastPath>,
    /// When the pipeline's next tick is due.
    pub due: &'a mut Option<Nanos>,
    /// The current time.
    pub now: Nanos,
    /// Budget of control work in this turn.
    pub budget: Budget<'a>,
    /// Whether forwarding threads see every change so far.
    pub is_settled: bool,
}

impl Datapath<'_> {
    /// Whether the work in progress must wait for the next turn. A hardware model has its own
    /// timing for each message, and then processes the whole message without a pause.
    fn must_pause(&self) -> bool {
        self.model.is_none() && self.budget.is_spent()
    }
}

impl Agent {
    /// Creates the agent of a switch with these ports. It listens now and connects at the first
    /// turn. The configuration must be valid.
    pub fn open(
        config: &OpenFlowConfig,
        forward_ports: &[ForwardPort],
        now: Nanos,
    ) -> Result<Self, ChannelError> {
        let mut agent = Agent {
            datapath_id: config.datapath_id.unwrap_or_else(|| datapath_id_of(forward_ports)),
            opened_at: now,
            versions: config.versions.clone(),
            roles: Roles::default(),
            pace: Pace::new(config.limits.packet_ins_per_s, config.limits.packet_in_burst, now),
            schedule: Schedule::default(),
            features: Features::new(config),
            limits: config.limits.clone(),
            last_instructions: None,
            transaction: None,
            ongoing: None,
            waits_for_frames: false,
            is_settled: true,
            has_released: false,
            first: 0,
            wall_offset: 0,
            connections_made: 0,
            fragments: FragmentHandling::Normal,
            miss_send_bytes: config.miss_send_len,
            probe: Nanos::from_millis(config.probe_ms),
            ports: PortTable::new(forward_ports),
            buffers: Buffers::new(config.buffers, Nanos::from_millis(config.buffer_ms)),
            failover: Failover::new(config.fail_mode, patience(config), now),
            listeners: Vec::new(),
            dialers: Vec::new(),
            connections: Vec::new(),
            admission: Admission::new(&config.limits),
            counters: AgentCounters::default(),
            events: Vec::new(),
            read_buffer: vec![0; connection::READ_BYTES],
            rows: Vec::new(),
            news: VecDeque::new(),
            news_told: 0,
        };
        if config.limits.flow_mods_per_turn.is_some() {
            let event = Event::ObsoleteKey("limits.flow_mods_per_turn", "limits.turn_us");
            agent.events.push(event);
        }
        let tls = credentials(config)?;
        for text in &config.listen {
            let listener = Listener::open_with(&text.parse()?, tls.as_ref())?;
            agent.events.push(Event::Listening(listener.address().to_string()));
            if listener.address().accepts_anyone(config.ca_cert.is_some()) {
                agent.events.push(Event::AcceptsAnyone(listener.address().to_string()));
            }
            agent.listeners.push(listener);
        }
        let pause_max = Nanos::from_millis(config.backoff_ms_max);
        for text in &config.controllers {
            agent.dialers.push(Dialer::new(text.parse::<Url>()?, tls.clone(), pause_max));
        }
        for main in 0..agent.dialers.len() {
            agent.add_auxiliaries(main, config.auxiliary);
        }
        Ok(agent)
    }

    /// Returns the addresses on which the agent listens, with the ports that the system chose.
    pub fn addresses(&self) -> impl Iterator<Item = &Url> {
        self.listeners.iter().map(Listener::address)
    }

    /// Returns the number of established sessions.
    pub fn controllers(&self) -> usize {
        self.connections.iter().filter(|connection| connection.up).count()
    }

    /// Counts the established sessions by whether they count as controllers for the fail mode.
    fn connected(&self) -> ConnectedCounts {
        let management = self.connections.iter().filter(|it| it.up && it.is_management()).count();
        ConnectedCounts { controllers: self.controllers() - management, management }
    }

    /// Adds a controller over a channel that the caller made (in memory, for example).
    pub fn adopt(&mut self, channel: Box<dyn Channel>, now: Nanos) {
        self.connect(channel, None, now);
    }

    /// Accepts connections, reads and processes messages, and queues asynchronous messages.
    ///
    /// [`Agent::flush`] sends the queued messages; frames wait in the outputs. Further changes wait
    /// until forwarding threads see the earlier ones.
    pub fn serve(&mut self, datapath: &mut Datapath<'_>) {
        self.is_settled = datapath.is_settled;
        self.meet(datapath.now);
        self.begin_modelled(datapath);
        self.serve_connections(datapath);
        datapath.budget.extend();
        self.send_async_messages(datapath);
        let changed = self.failover.turn(self.connected(), datapath.now);
        if let Some(misses) = changed {
            self.log_misses(misses);
        }
        self.set_misses(self.failover.misses(), datapath);
        let watched = self.connections.iter().any(|connection| !connection.monitors.is_empty());
        datapath.pipeline.watch(watched || datapath.model.is_some());
        self.end_modelled(datapath);
    }

    /// Maximum duration of control work in one turn while frames arrive.
    pub fn busy_turn(&self) -> Nanos {
        Nanos::from_micros(self.limits.turn_us)
    }

    /// Sends queued messages and drops connections that have ended.
    ///
    /// Replies on a connection that changed the tables wait until forwarding threads see every
    /// change.
    pub fn flush(&mut self, is_settled: bool, now: Nanos) {
        for connection in &mut self.connections {
            connection.has_changed &= !is_settled;
            connection.flush(now);
        }
        self.drop_ended(now);
    }

    /// Adds a connection. `guest` is its admission state if a listener accepted it.
    fn admit(
        &mut self,
        channel: Box<dyn Channel>,
        dialer: Option<usize>,
        guest: Option<PendingConnection>,
        now: Nanos,
    ) {
        self.connections_made = self.connections_made.wrapping_add(1);
        let known = (self.connections_made, &self.versions[..]);
        let mut connection = Connection::new(channel, dialer, known, self.probe, now);
        connection.arrive(guest);
        connection.auxiliary = dialer.is_some_and(|at| self.dialers[at].auxiliary.is_some());
        connection.miss_send_bytes = self.miss_send_bytes;
        self.connections.push(connection);
    }

    fn log_misses(&mut self, misses: failover::Misses) {
        match misses {
            failover::Misses::ToController => {}
            failover::Misses::Dropped => self.events.push(Event::FailSecure),
            failover::Misses::Bridged => self.events.push(Event::FailStandalone),
        }
    }

    /// Updates a port's link state and sends port-status messages to controllers.
    pub fn link_changed(&mut self, number: PortNo, up: bool, link: &Link) {
        if let Some(port) = self.ports.set_link(number, up, link) {
            self.tell_port(port);
        }
    }

    /// Sets the time of day, in nanoseconds since 1970.
    pub fn set_wall_clock(&mut self, since_1970: Nanos, now: Nanos) {
        self.wall_offset = since_1970.0.wrapping_sub(now.0);
    }

    /// Returns the time of day.
    fn wall(&self, now: Nanos) -> Nanos {
        Nanos(now.0.wrapping_add(self.wall_offset))
    }

    fn tell_port(&mut self, port: PortDescription) {
        let reason = PortStatusReason::Modify;
        for connection in &mut self.connections {
            if connection.wants(AsyncKind::PortStatus, reason as u32) {
                let port = downgrade::port(connection.version(), port.clone());
                let told = connection.tell(&Message::PortStatus(PortStatus { reason, port }));
                self.counters.news_lost += u64::from(!told);
            }
        }
    }

    /// Returns the time of the next work that does not depend on received data.
    pub fn next_event(&self, now: Nanos) -> Option<Nanos> {
        let sessions = self.connections.iter().filter_map(|connection| {
            match (connection.is_full(), connection.dump.is_some() || connection.is_ready()) {
                (true, _) => Some(now.saturating_add(FULL_RETRY)),
                (false, true) => Some(connection.held_until().unwrap_or(now)),
                (false, false) => connection.session.next_timeout(),
            }
        });
        let has_news =
            |connection: &Connection| !connection.monitors.news.is_empty() && !connection.is_full();
        if self.ongoing.is_some() || !self.news.is_empty() || self.connections.iter().any(has_news)
        {
            return Some(now);
        }
        let idle_max = Nanos::from_millis(self.limits.bundle_ms);
        let bundles = self.connections.iter().filter_map(|it| it.bundles.next_event(idle_max));
        let dialers = self.dialers.iter().filter_map(Dialer::next_event);
        let admission = self.next_at_door();
        let others = self.failover.next_event().into_iter().chain(admission);
        sessions.chain(bundles).chain(dialers).chain(others).min()
    }

    /// Returns the descriptors to poll, each with whether to poll for writing as well.
    pub fn descriptors(&self) -> impl Iterator<Item = (RawFd, bool)> + '_ {
        let open = self.listeners.iter().filter(|_| self.admission.accepting);
        let listeners = open.map(|listener| (listener.descriptor(), false));
        let dialers = self.dialers.iter().filter_map(Dialer::descriptor).map(|at| (at, true));
        let read = |connection: &&Connection| self.admission.beginning || !connection.is_silent();
        let connections = self.connections.iter().filter(read).filter_map(Connection::descriptor);
        listeners.chain(dialers).chain(connections)
    }
}

/// Loads the TLS credentials that the configuration names, if any. Returns an error if they do not
/// suffice for the addresses of a valid configuration.
pub fn credentials(config: &OpenFlowConfig) -> Result<Option<Tls>, ChannelError> {
    let files = config.tls_files();
    let tls = if files.is_empty() { None } else { Some(Tls::load(&files)?) };
    for text in config.listen.iter().chain(&config.controllers) {
        Tls::check(tls.as_ref(), &text.parse()?)?;
    }
    Ok(tls)
}

/// Returns how long a standalone switch waits for a controller: zero if none is configured.
fn patience(config: &OpenFlowConfig) -> Nanos {
    match config.controllers.is_empty() {
        true => Nanos::ZERO,
        false => Nanos::from_millis(config.probe_ms),
    }
}

/// Derives a datapath ID from the first port's MAC address.
fn datapath_id_of(forward_ports: &[ForwardPort]) -> u64 {
    let mac = forward_ports
        .first()
        .map(|forward_port| mac_of(forward_port.number, forward_port.port.as_ref()));
    mac.unwrap_or_default().iter().fold(0, |id, &byte| id << 8 | u64::from(byte))
}
