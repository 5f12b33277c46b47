//! The switch's end of OpenFlow: controllers come and go, ask and order, and are told.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 4 and 5; 1.3.5, sections 6 and 7. Controllers
//! of all versions are there at once. The agent does no I/O but through its
//! channels and reads no clock; whoever runs it calls `serve` with the data plane, lets
//! the frames out that this produced, and then calls `flush`, so that a barrier is
//! answered when what came before it is really done.
//!
//! Invariant: whatever a peer sends or does not read ends at most its own connection.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::Arc;

use dataplane::forwarder::Outputs;
use dataplane::instruction::Instructions;
use dataplane::pipeline::Pipeline;
use openflow::model::{
    FragmentHandling, Instruction, Message, PortDescription, PortStatus, PortStatusReason,
};
use openflow::version::{AsyncKind, Version};
use packet::frame::PortNo;
use packet::time::Nanos;
use ports::channel::{Channel, ChannelError, Listener, Tls, Url};
use ports::link::Link;

use crate::behaviour::Behaviour;
use crate::budget::Budget;
use crate::config::{Limits, OpenFlowConfig};
use crate::event::Event;
use crate::forward::{Lane, mac_of};
use crate::lower::express;

/// Further connections to a controller.
mod auxiliary;
/// Frames that wait until a controller says what to do with them.
pub mod buffers;
/// One controller's connection.
pub mod connection;
/// Reaching a controller, again and again.
pub mod dialer;
/// Who may come in.
pub mod door;
/// What happens to frames without match while there is no controller.
pub mod failover;
/// Which part each controller plays.
pub mod roles;
/// How each controller does.
mod status;
/// Which news each controller gets.
pub mod interests;
/// So many a second and no more.
pub mod pace;
/// Requests in several messages.
pub mod parts;
/// How connections share a turn.
mod turn;
/// A change that takes several turns.
mod ongoing;
/// What each message does.
mod handle;
/// Connections come and go.
mod meet;
/// What it does otherwise where it behaves like a model.
mod modelled;
/// What changes the switch.
mod change;
/// Frames that controllers have it send.
mod packet_out;
/// What tables are set to do.
mod tables;
/// What tables can do.
mod features;
/// Setting what tables can do.
mod ways;
/// What is told of groups, meters and queues.
mod shaping;
/// Messages that are collected to be done together.
pub mod bundle;
/// Doing them together.
mod commit;
/// Doing them at a set time.
pub mod schedule;
/// Statistics and descriptions.
mod multipart;
/// Long replies.
pub mod dump;
/// Watching entries.
pub mod monitor;
/// What Open vSwitch's tools say to a 1.0 switch.
mod nicira;
/// News: frames, entries, tables, ports.
mod news;
/// What controllers know of the ports.
pub mod port_book;
/// What they know of the ports' links.
mod link_features;

use buffers::Buffers;
use commit::Transaction;
use connection::Connection;
use dialer::Dialer;
use door::{Door, Guest};
use failover::{Connected, Failover};
use features::Features;
use ongoing::Ongoing;
use pace::Pace;
use port_book::PortBook;
use roles::Roles;
use schedule::Schedule;

/// A connection that is not read from is tried again after this long.
const FULL_RETRY: Nanos = Nanos::from_millis(1);

/// The agent.
pub struct Agent {
    datapath_id: u64,
    opened_at: Nanos,
    versions: Vec<Version>,
    limits: Limits,
    roles: Roles,
    pace: Pace,
    schedule: Schedule,
    features: Features,
    /// Instructions that only send frames to one port, as they were said last and by which version.
    last_instructions: Option<(Version, Vec<Instruction>, Arc<Instructions>)>,
    /// While messages of a bundle are done: what is to be done once all of it can be seen.
    transaction: Option<Transaction>,
    /// The change that takes several turns, if there is one.
    ongoing: Option<Ongoing>,
    /// Whether that waits in this turn for threads of frames.
    waits_for_frames: bool,
    /// Whether threads of frames saw every change when the turn began.
    is_settled: bool,
    /// Whether it has ended while messages waited for it.
    has_released: bool,
    /// The connection that is served first in the next cycle.
    first: usize,
    /// The time of the day minus our own; wraps.
    wall_offset: u64,
    connections_made: u32,
    fragments: FragmentHandling,
    miss_send_bytes: u16,
    probe: Nanos,
    ports: PortBook,
    buffers: Buffers,
    failover: Failover,
    listeners: Vec<Listener>,
    dialers: Vec<Dialer>,
    connections: Vec<Connection>,
    /// Who may come in, and who did not.
    pub door: Door,
    /// What was told, and what was not.
    pub counters: AgentCounters,
    /// What happened that belongs into a log; whoever runs the agent drains it.
    pub events: Vec<Event>,
    read_buffer: Vec<u8>,
    /// Rows of statistics on their way.
    rows: Vec<u8>,
    /// What happened and has not been told yet.
    news: VecDeque<dataplane::forwarder::Event>,
    /// Events that were told so far.
    news_told: u64,
}

/// What the agent told its controllers. Each piece of news counts once for every controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentCounters {
    /// Frames that the data plane had for the controllers.
    pub frames: u64,
    /// Those of them for which no controller was there.
    pub frames_unheard: u64,
    /// Those of them that were not kept, for want of room.
    pub frames_not_kept: u64,
    /// Those of them that were not told because they came faster than is allowed.
    pub frames_over_rate: u64,
    /// Messages that came and were understood.
    pub messages: u64,
    /// Messages that were not understood.
    pub refused: u64,
    /// Messages that were understood and could not be done.
    pub failed: u64,
    /// Turns of a connection that ended because its share of the turn's time was used up.
    pub turns_cut: u64,
    /// Bundles that were forgotten because nothing was said about them for too long.
    pub bundles_expired: u64,
    /// News that was not told because too much waited for the controller to read it.
    pub news_lost: u64,
}

/// The data plane, as far as the agent changes and reads it.
pub struct Datapath<'a> {
    /// The tables.
    pub pipeline: &'a mut Pipeline,
    /// The model of hardware that it behaves like, if any.
    pub model: Option<&'a mut Behaviour>,
    /// Where frames and events wait.
    pub outputs: &'a mut Outputs,
    /// The ports.
    pub lanes: &'a mut [Lane],
    /// When the pipeline's next tick is due.
    pub due: &'a mut Option<Nanos>,
    /// This moment.
    pub now: Nanos,
    /// How much work the turn may do.
    pub budget: Budget<'a>,
    /// Whether threads of frames see every change so far.
    pub is_settled: bool,
}

impl Datapath<'_> {
    /// Whether the work at hand has to wait for the next turn. A model of hardware takes its own time for each
    /// message, and does the whole of it then.
    fn must_pause(&self) -> bool {
        self.model.is_none() && self.budget.is_spent()
    }
}

impl Agent {
    /// An agent for a switch with these ports. Listens where it is told to; connects at the
    /// first turn. The configuration must be valid.
    pub fn open(config: &OpenFlowConfig, lanes: &[Lane], now: Nanos) -> Result<Self, ChannelError> {
        let mut agent = Agent {
            datapath_id: config.datapath_id.unwrap_or_else(|| datapath_id_of(lanes)),
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
            ports: PortBook::new(lanes),
            buffers: Buffers::new(config.buffers, Nanos::from_millis(config.buffer_ms)),
            failover: Failover::new(config.fail_mode, patience(config), now),
            listeners: Vec::new(),
            dialers: Vec::new(),
            connections: Vec::new(),
            door: Door::new(&config.limits),
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

    /// Where it listens, with the ports that the system chose.
    pub fn addresses(&self) -> impl Iterator<Item = &Url> {
        self.listeners.iter().map(Listener::address)
    }

    /// Sessions that are up.
    pub fn controllers(&self) -> usize {
        self.connections.iter().filter(|connection| connection.up).count()
    }

    /// The sessions that are up, by whether they are a controller's for the fail mode.
    fn connected(&self) -> Connected {
        let management = self.connections.iter().filter(|it| it.up && it.is_management()).count();
        Connected { controllers: self.controllers() - management, management }
    }

    /// Takes a channel that was made elsewhere (in memory, for instance) as a controller's.
    pub fn adopt(&mut self, channel: Box<dyn Channel>, now: Nanos) {
        self.connect(channel, None, now);
    }

    /// Accepts and reads controllers, does what they ask, and tells them the news. What has to
    /// be sent waits for [`Agent::flush`]; frames wait in the outputs. While threads of frames have yet to see earlier
    /// changes, further ones wait.
    pub fn serve(&mut self, datapath: &mut Datapath<'_>) {
        self.is_settled = datapath.is_settled;
        self.meet(datapath.now);
        self.begin_modelled(datapath);
        self.serve_connections(datapath);
        datapath.budget.extend();
        self.tell_news(datapath);
        let changed = self.failover.turn(self.connected(), datapath.now);
        if let Some(misses) = changed {
            self.log_misses(misses);
        }
        self.set_misses(self.failover.misses(), datapath);
        let watched = self.connections.iter().any(|connection| !connection.monitors.is_empty());
        datapath.pipeline.watch(watched || datapath.model.is_some());
        self.end_modelled(datapath);
    }

    /// How long control work may go on in one turn while frames arrive.
    pub fn busy_turn(&self) -> Nanos {
        Nanos::from_micros(self.limits.turn_us)
    }

    /// Sends what waits and lets go of connections that ended. Replies of a connection that changed the tables say that
    /// this holds for frames: they wait until threads of frames see every change.
    pub fn flush(&mut self, is_settled: bool, now: Nanos) {
        for connection in &mut self.connections {
            connection.has_changed &= !is_settled;
            connection.flush(now);
        }
        self.let_go(now);
    }

    /// Adds a connection, which is a guest if it came from a listener.
    fn admit(
        &mut self,
        channel: Box<dyn Channel>,
        dialer: Option<usize>,
        guest: Option<Guest>,
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

    /// A port's link changed to this: controllers are told.
    pub fn link_changed(&mut self, number: PortNo, up: bool, link: &Link) {
        if let Some(port) = self.ports.set_link(number, up, link) {
            self.tell_port(port);
        }
    }

    /// Says what time of the day it is: nanoseconds since 1970.
    pub fn set_wall_clock(&mut self, since_1970: Nanos, now: Nanos) {
        self.wall_offset = since_1970.0.wrapping_sub(now.0);
    }

    /// The time of the day.
    fn wall(&self, now: Nanos) -> Nanos {
        Nanos(now.0.wrapping_add(self.wall_offset))
    }

    fn tell_port(&mut self, port: PortDescription) {
        let reason = PortStatusReason::Modify;
        for connection in &mut self.connections {
            if connection.wants(AsyncKind::PortStatus, reason as u32) {
                let port = express::port(connection.version(), port.clone());
                let told = connection.tell(&Message::PortStatus(PortStatus { reason, port }));
                self.counters.news_lost += u64::from(!told);
            }
        }
    }

    /// When something is due that no arriving byte announces.
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
        let door = self.next_at_door();
        let others = self.failover.next_event().into_iter().chain(door);
        sessions.chain(bundles).chain(dialers).chain(others).min()
    }

    /// The descriptors to wait for, each with whether it is to be waited for until writable.
    pub fn descriptors(&self) -> impl Iterator<Item = (RawFd, bool)> + '_ {
        let open = self.listeners.iter().filter(|_| self.door.accepting);
        let listeners = open.map(|listener| (listener.descriptor(), false));
        let dialers = self.dialers.iter().filter_map(Dialer::descriptor).map(|at| (at, true));
        let read = |connection: &&Connection| self.door.beginning || !connection.is_silent();
        let connections = self.connections.iter().filter(read).filter_map(Connection::descriptor);
        listeners.chain(dialers).chain(connections)
    }
}

/// What TLS is made from, if files are named for it; an error if that is not enough for the
/// addresses of a valid configuration.
pub fn credentials(config: &OpenFlowConfig) -> Result<Option<Tls>, ChannelError> {
    let files = config.tls_files();
    let tls = if files.is_empty() { None } else { Some(Tls::load(&files)?) };
    for text in config.listen.iter().chain(&config.controllers) {
        Tls::check(tls.as_ref(), &text.parse()?)?;
    }
    Ok(tls)
}

/// How long a standalone switch waits for a controller: not at all if none is configured.
fn patience(config: &OpenFlowConfig) -> Nanos {
    match config.controllers.is_empty() {
        true => Nanos::ZERO,
        false => Nanos::from_millis(config.probe_ms),
    }
}

/// An identity made from the first port's address.
fn datapath_id_of(lanes: &[Lane]) -> u64 {
    let mac = lanes.first().map(|lane| mac_of(lane.number, lane.port.as_ref()));
    mac.unwrap_or_default().iter().fold(0, |id, &byte| id << 8 | u64::from(byte))
}
