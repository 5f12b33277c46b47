//! Session behaviour: controllers that connect, disconnect and change roles, and ports that change state.
//!
//! Claim: failover takes time that a controller has to know, and a switch without a controller may stop forwarding.
//!
//! Method: these steps run one after another over several connections.
//!
//! 1. The module closes one connection and reopens it, several times.
//! 2. It sends echo requests one by one.
//! 3. All controllers are equal, then one is master, then another becomes master while frames go to the controller.
//!    The module records which connection receives the packet-in of each frame.
//! 4. The controller takes a port down and up while frames leave by that port.
//! 5. All connections are closed while frames arrive that match an entry, and frames that match none.
//!
//! Source: metric C16 of the method; OpenFlow 1.3.5 sections 6.3.4 and 6.3.2.
//!
//! Invariant: every step ends, whatever the switch does.

use std::collections::BTreeSet;

use openflow::model::message::Message;
use openflow::model::multipart::{MultipartReplyBody, MultipartRequestBody};
use openflow::model::{
    Action, FlowMod, MacAddress, Match, PRIORITY_DEFAULT, PortConfig, PortDescription, PortMod,
    PortState, PortStatus, Role, reserved,
};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Connection, Ended, Event, EventKind, FrameFilter, MeasuredValue, Module, ModuleContext,
    ModuleRequirements, Probe, SendSpan, TimerId,
};
use tester::stream::Stream;

use super::requests::{Answer, Delays, PATIENCE_LIMIT, PendingRequests, hear_news};
use super::rules::{FAR, NEAR, Rules};
use super::summary::Summary;
use targets::flow_setup::PORT_OUT;

mod roles;
mod results;

/// Streams: frames that cause packet-ins, frames that an entry forwards, frames that match no entry, and frames
/// that return in every state of the port. The last show when the tester sent any.
const TOLD: u16 = 1;
const RULED: u16 = 2;
const MISSED: u16 = 3;
const BACK: u16 = 4;

/// Time for which frames run before a change, and for which the module waits for them afterwards.
const LEAD: Nanos = Nanos::from_millis(20);

/// Time to wait for the effects of a step: frames, packet-ins, port status messages.
const SETTLE: Nanos = Nanos::from_millis(60);

/// Settings of the session test.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Three entries; the third is never installed.
    pub rules: Rules,
    /// Number of connections, at least two.
    pub controllers: usize,
    /// Number of reconnections.
    pub handshakes: u32,
    /// Number of echo requests.
    pub echoes: u32,
    /// Number of frames that should cause packet-ins, for each assignment of roles.
    pub frames: u64,
    /// Frames per second.
    pub frames_pps: f64,
    /// Frame size in bytes, including the frame check sequence.
    pub frame_bytes: usize,
    /// Time without any controller.
    pub away: Nanos,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time of the switch for a step.
    pub patience: Nanos,
}

/// Session behaviour module.
pub struct Session {
    trying: SessionConfig,
    version: Version,
    step: Step,
    pending: PendingRequests,
    timer: Option<TimerId>,
    /// Connection that may write: the master's, if there is a master.
    speaker: usize,
    generation: u64,
    mac: Option<MacAddress>,
    /// Time at which the connection that is being reopened was closed.
    closed_at: Nanos,
    reconnects_ns: Vec<f64>,
    joined: BTreeSet<usize>,
    failed: u64,
    /// Whether the switch rejected Nicira's role request, the only one for OpenFlow 1.0.
    is_roleless: bool,
    /// Whether the switch exceeded the time limit of a step.
    is_late: bool,
    echoes: Delays,
    roles: Delays,
    slave: Option<Answer>,
    told: PacketInCounts,
    takeover: Takeover,
    down: Change,
    up: Change,
    /// Departure and return times of frames while the port changed.
    backs: Vec<[Nanos; 2]>,
    without: UncontrolledFrames,
    results: Vec<MeasuredValue>,
}

/// Steps, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Reconnecting,
    Joining,
    Echoing,
    Equal,
    EqualTold,
    Ruling,
    RulingTold,
    SlaveWrites,
    Swapping,
    SwappingTold,
    Describing,
    Ready,
    Down,
    Up,
    Without,
    Again,
    Over,
}

/// Packet-ins that each connection received.
#[derive(Debug, Default)]
struct PacketInCounts {
    counts: Vec<u64>,
    numbers: BTreeSet<u64>,
}

/// Takeover by a new master.
#[derive(Debug, Default)]
struct Takeover {
    asked: Option<Answer>,
    /// Departure time of the last frame whose packet-in went only to the old master.
    old_last: Option<Nanos>,
    /// Time of the first packet-in at the new master.
    first_at: Option<Nanos>,
    /// Packet-ins at the old master for frames sent after the role reply to the new one.
    old_told: u64,
}

/// A port change: the request, the time of the port status at each connection if known, and its effect on frames.
#[derive(Debug, Default)]
struct Change {
    asked: Option<Answer>,
    heard_at: Vec<(usize, Option<Nanos>)>,
    /// Departure time of the last frame that passed before the change, and departure and arrival times of those
    /// after it.
    last: Option<Nanos>,
    firsts: Vec<[Nanos; 2]>,
}

/// Frames that passed while there was no controller.
#[derive(Debug, Default)]
struct UncontrolledFrames {
    from: Nanos,
    until: Nanos,
    /// Sequence numbers of frames that match an entry, and the number of frames that match none.
    ruled: BTreeSet<u64>,
    missed: u64,
}

impl Session {
    /// Creates the module.
    pub fn new(trying: SessionConfig) -> Session {
        Session {
            version: Version::V1_3,
            step: Step::Reconnecting,
            pending: PendingRequests::default(),
            timer: None,
            speaker: 0,
            generation: 0,
            mac: None,
            closed_at: Nanos::ZERO,
            reconnects_ns: Vec::new(),
            joined: BTreeSet::from([0]),
            failed: 0,
            is_roleless: false,
            is_late: false,
            echoes: Delays::default(),
            roles: Delays::default(),
            slave: None,
            told: PacketInCounts::default(),
            takeover: Takeover::default(),
            down: Change::default(),
            up: Change::default(),
            backs: Vec::new(),
            without: UncontrolledFrames::default(),
            results: Vec::new(),
            trying,
        }
    }

    /// Returns the time between two frames of a stream, in nanoseconds.
    fn gap_ns(&self) -> f64 {
        1e9 / self.trying.frames_pps
    }

    /// Creates the stream of frames for one of the entries.
    fn frames(&self, id: u16, place: u32) -> Stream {
        let SessionConfig { rules, frame_bytes, frames_pps, .. } = &self.trying;
        rules.visits(id, place..place + 1, *frame_bytes, *frames_pps)
    }

    /// Begins a step that ends on its own or after `most`.
    fn enter(&mut self, step: Step, most: Nanos, context: &mut ModuleContext) {
        self.timer.take().map(|timer| context.cancel(timer));
        self.step = step;
        self.timer = Some(context.timer_in(most));
    }

    /// Begins the next step.
    fn go_on(&mut self, context: &mut ModuleContext) {
        let patience = self.trying.patience;
        match self.step {
            Step::Reconnecting => {
                self.enter(Step::Joining, patience, context);
                (1..self.trying.controllers).for_each(|connection| context.connect(connection));
            }
            Step::Joining => {
                self.enter(Step::Echoing, patience, context);
                self.echo(context);
            }
            Step::Echoing => {
                self.enter(Step::Equal, patience, context);
                self.tables(reserved::CONTROLLER, context);
                for &connection in &self.joined {
                    context.send(connection, hear_news());
                }
                let all = 0..self.trying.controllers;
                all.for_each(|connection| self.role(connection, Role::Equal, context));
            }
            Step::Equal | Step::Ruling => {
                let next =
                    if self.step == Step::Equal { Step::EqualTold } else { Step::RulingTold };
                self.enter(next, patience, context);
                self.told.counts = vec![0; self.trying.controllers];
                context.begin(TOLD, SendSpan::frames(self.trying.frames));
            }
            Step::EqualTold if !self.has_roles() => self.describe(context),
            Step::EqualTold => {
                self.enter(Step::Ruling, patience, context);
                self.generation = self.generation.wrapping_add(1);
                self.role(0, Role::Master, context);
                (1..self.trying.controllers).for_each(|it| self.role(it, Role::Slave, context));
            }
            Step::RulingTold => {
                self.enter(Step::SlaveWrites, patience, context);
                let write = self.trying.rules.delete(1, PRIORITY_DEFAULT - 1);
                self.pending.ask(
                    context,
                    1,
                    vec![Message::FlowMod(write), Message::BarrierRequest],
                );
            }
            Step::SlaveWrites => {
                self.enter(Step::Swapping, patience, context);
                self.told = PacketInCounts {
                    counts: vec![0; self.trying.controllers],
                    ..PacketInCounts::default()
                };
                context.begin(TOLD, SendSpan::OPEN);
                self.generation = self.generation.wrapping_add(1);
                self.role(1, Role::Master, context);
            }
            Step::Swapping => self.enter(Step::SwappingTold, SETTLE, context),
            Step::SwappingTold => {
                context.stop(TOLD);
                self.describe(context);
            }
            Step::Describing => {
                self.enter(Step::Ready, patience, context);
                self.tables(PORT_OUT.into(), context);
            }
            Step::Ready if self.mac.is_none() => {
                // A port cannot be changed without its hardware address.
                self.step = Step::Up;
                self.go_on(context);
            }
            Step::Ready => {
                self.enter(Step::Down, patience, context);
                self.port_mod(PortConfig::PORT_DOWN, context);
            }
            Step::Down => {
                self.enter(Step::Up, patience, context);
                self.port_mod(PortConfig::NONE, context);
            }
            Step::Up => {
                self.enter(Step::Without, self.trying.away, context);
                (0..self.trying.controllers).for_each(|connection| context.disconnect(connection));
                self.joined.clear();
                self.without.from = context.now();
                context.begin(MISSED, SendSpan::OPEN);
            }
            Step::Without => {
                self.enter(Step::Again, patience, context);
                self.without.until = context.now();
                context.stop(MISSED);
                context.connect(0);
            }
            Step::Again => {
                self.enter(Step::Over, LEAD, context);
                context.stop(RULED);
                context.stop(BACK);
            }
            Step::Over if self.is_late => context.end_by_limit(PATIENCE_LIMIT),
            Step::Over => context.end(),
        }
    }

    /// Closes the first connection and reopens it.
    fn reconnect(&mut self, context: &mut ModuleContext) {
        self.closed_at = context.now();
        self.joined.remove(&0);
        context.disconnect(0);
        context.connect(0);
        self.enter(Step::Reconnecting, self.trying.patience, context);
    }

    fn echo(&mut self, context: &mut ModuleContext) {
        self.pending.ask(context, 0, vec![Message::EchoRequest(vec![0; 8])]);
    }

    /// Installs one entry that outputs to this port and one that sends frames back; deletes all others.
    fn tables(&mut self, port: u32, context: &mut ModuleContext) {
        let matching = self.trying.rules.matching(0);
        let rule = FlowMod::add(matching, PRIORITY_DEFAULT, vec![Action::output(port)]);
        let back = self.trying.rules.add_back(1, PRIORITY_DEFAULT);
        let empty = FlowMod::delete(0, Match::ANY);
        let mut messages = [empty, rule, back].map(Message::FlowMod).to_vec();
        messages.push(Message::BarrierRequest);
        self.pending.ask(context, self.speaker, messages);
    }

    /// Requests the hardware address of the port, which a port-mod requires.
    fn describe(&mut self, context: &mut ModuleContext) {
        self.enter(Step::Describing, self.trying.patience, context);
        if self.version >= Version::V1_3 {
            let body = MultipartRequestBody::PortDesc(reserved::NONE);
            self.pending.ask(context, self.speaker, vec![Message::ask(body)]);
        } else {
            self.pending.ask(context, self.speaker, vec![Message::BarrierRequest]);
        }
    }

    fn described(&mut self, ports: &[PortDescription]) {
        let port = ports.iter().find(|port| port.number == u32::from(PORT_OUT));
        self.mac = port.map(|port| port.mac).or(self.mac);
    }

    fn port_mod(&mut self, config: PortConfig, context: &mut ModuleContext) {
        let Some(mac) = self.mac else { return };
        let (number, mask) = (PORT_OUT.into(), PortConfig::PORT_DOWN);
        let change = PortMod { number, mac, config, mask, ..PortMod::default() };
        let messages = vec![Message::PortMod(change), Message::BarrierRequest];
        self.pending.ask(context, self.speaker, messages);
    }

    fn is_up(
        &mut self,
        connection: usize,
        ports: Option<&[PortDescription]>,
        context: &mut ModuleContext,
    ) {
        self.joined.insert(connection);
        self.described(ports.unwrap_or(&[]));
        match self.step {
            Step::Reconnecting if connection == 0 => {
                self.reconnects_ns.push(context.now().since(self.closed_at).0 as f64);
                match self.reconnects_ns.len() < self.trying.handshakes as usize {
                    true => self.reconnect(context),
                    false => self.go_on(context),
                }
            }
            Step::Joining if self.joined.len() == self.trying.controllers => self.go_on(context),
            Step::Again if connection == 0 => self.enter(Step::Again, LEAD, context),
            _ => {}
        }
    }

    /// Processes a reply; the last reply that a step waits for ends the step.
    fn answered(&mut self, answer: Answer, connection: usize, context: &mut ModuleContext) {
        match self.step {
            Step::Echoing => {
                self.echoes.note(&answer);
                if self.echoes.answered() < self.trying.echoes.into() {
                    return self.echo(context);
                }
            }
            Step::Equal | Step::Ruling | Step::Swapping if answer.said.count == 1 => {
                self.is_roleless |= answer.is_refused && self.version == Version::V1_0;
                self.roles.note(&answer);
            }
            Step::SlaveWrites => self.slave = Some(answer),
            Step::Down => self.down.asked = Some(answer),
            Step::Up => self.up.asked = Some(answer),
            _ => {}
        }
        if self.step == Step::Swapping && connection == 1 && !answer.is_refused {
            self.takeover.asked = Some(answer);
            self.speaker = 1;
        }
        if self.pending.waiting() == 0 {
            self.settled(context);
        }
    }

    /// Ends the requests of this step.
    fn settled(&mut self, context: &mut ModuleContext) {
        match self.step {
            Step::Ready => {
                context.begin(RULED, SendSpan::OPEN);
                context.begin(BACK, SendSpan::OPEN);
                self.enter(Step::Ready, LEAD, context);
            }
            Step::Down => self.enter(Step::Down, SETTLE, context),
            Step::Up => self.enter(Step::Up, SETTLE, context),
            Step::Reconnecting | Step::Joining | Step::EqualTold | Step::RulingTold => {}
            Step::SwappingTold | Step::Without | Step::Again | Step::Over => {}
            _ => self.go_on(context),
        }
    }

    fn timed(&mut self, timer: TimerId, context: &mut ModuleContext) {
        if self.timer != Some(timer) {
            return;
        }
        match self.step {
            Step::Reconnecting | Step::Again if !self.joined.contains(&0) => self.failed += 1,
            Step::Joining => self.failed += (self.trying.controllers - self.joined.len()) as u64,
            Step::EqualTold => self.tell_equal(),
            Step::RulingTold => self.tell_ruling(),
            _ => {}
        }
        // Unanswered requests do not carry over to later steps.
        self.is_late |= self.pending.waiting() > 0 || self.failed > 0;
        self.pending = PendingRequests::default();
        self.go_on(context);
    }

    /// Records a packet-in on a connection.
    fn told(&mut self, connection: usize, probe: Probe, at: Nanos) {
        if let Some(count) = self.told.counts.get_mut(connection) {
            *count += 1;
        }
        self.told.numbers.insert(probe.number);
        if !matches!(self.step, Step::Swapping | Step::SwappingTold) {
            return;
        }
        let answered = self.takeover.asked.map(|answer| answer.last_at);
        if connection == 1 {
            self.takeover.first_at.get_or_insert(at);
            return;
        }
        if self.takeover.first_at.is_none() {
            self.takeover.old_last = self.takeover.old_last.max(Some(probe.sent_at));
        }
        if answered.is_some_and(|answered| probe.sent_at > answered) {
            self.takeover.old_told += 1;
        }
    }

    fn port_status(&mut self, connection: usize, news: &PortStatus, at: Option<Nanos>) {
        let port = &news.port;
        let is_down = port.config.contains(PortConfig::PORT_DOWN)
            || port.state.contains(PortState::LINK_DOWN);
        let change = match self.step {
            Step::Down if is_down => &mut self.down,
            Step::Up if !is_down => &mut self.up,
            _ => return,
        };
        let is_new = change.heard_at.iter().all(|(known, _)| *known != connection);
        if port.number == u32::from(PORT_OUT) && is_new {
            change.heard_at.push((connection, at));
        }
    }

    /// Records a frame that passed or returned.
    fn passed(&mut self, probe: Probe, at: Nanos) {
        if probe.stream == BACK {
            if matches!(self.step, Step::Ready | Step::Down | Step::Up) {
                self.backs.push([probe.sent_at, at]);
            }
            return;
        }
        match self.step {
            Step::Ready | Step::Down => self.down.last = self.down.last.max(Some(probe.sent_at)),
            Step::Up => self.up.firsts.push([probe.sent_at, at]),
            Step::Without | Step::Again | Step::Over => {
                let UncontrolledFrames { from, until, .. } = self.without;
                let is_within = probe.sent_at > from && (until.0 == 0 || probe.sent_at < until);
                match (is_within, probe.stream) {
                    (true, RULED) => {
                        self.without.ruled.insert(probe.number);
                    }
                    (true, _) => self.without.missed += 1,
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

impl Change {
    /// Returns the reply if the switch executed the request.
    fn done(&self) -> Option<&Answer> {
        self.asked.as_ref().filter(|answer| !answer.is_refused && answer.errors == 0)
    }
}

impl Module for Session {
    fn needs(&self) -> ModuleRequirements {
        // Each step and each reconnection may take the full time limit.
        let steps =
            Nanos(self.trying.patience.0.saturating_mul(20 + u64::from(self.trying.handshakes)));
        let limit = steps.saturating_add(self.trying.away).saturating_add(Nanos::from_secs(1));
        let mut needs = ModuleRequirements::new(limit);
        let later = || Connection { opens: false, ..Connection::new(0) };
        needs.connections.extend((1..self.trying.controllers).map(|_| later()));
        ModuleRequirements {
            stops_on_disconnect: false,
            ..needs.in_versions(&self.trying.versions)
        }
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => {
                self.version = facts.version(0).unwrap_or(self.version);
                for (id, place) in [(TOLD, 0), (RULED, 0), (BACK, 1), (MISSED, 2)] {
                    context.prepare(self.frames(id, place));
                }
                context.watch(NEAR, FrameFilter::Streams(vec![BACK]));
                context.watch(FAR, FrameFilter::Streams(vec![RULED, MISSED]));
                self.reconnect(context);
            }
            EventKind::Connected { connection, facts } => {
                let ports = facts.features.as_ref().map(|features| &features.ports[..]);
                self.is_up(connection, ports, context);
            }
            EventKind::Disconnected { connection, .. } => {
                self.joined.remove(&connection);
            }
            EventKind::Timer(timer) => self.timed(timer, context),
            EventKind::StreamEnded(_)
                if matches!(self.step, Step::EqualTold | Step::RulingTold) =>
            {
                self.enter(self.step, SETTLE, context);
            }
            EventKind::Frame(arrival) => {
                if let Some(probe) = arrival.probe {
                    self.passed(probe, event.at);
                }
            }
            EventKind::Message { connection, message, probe, is_timestamp_valid, .. } => {
                let known_at = is_timestamp_valid.then_some(event.at);
                match message {
                    Message::PacketIn(_) => {
                        let told = probe.filter(|probe| probe.stream == TOLD);
                        told.into_iter().for_each(|probe| self.told(connection, probe, event.at));
                    }
                    Message::PortStatus(news) => self.port_status(connection, news, known_at),
                    Message::RoleReply(reply) if self.step == Step::Equal => {
                        // A switch that has seen no master election reports an unknown generation id.
                        let known = reply.generation;
                        let is_known = known != openflow::model::GENERATION_UNKNOWN;
                        self.generation = if is_known { known } else { 0 };
                    }
                    Message::MultipartReply(part) => {
                        if let MultipartReplyBody::PortDesc(ports) = &part.body {
                            self.described(ports);
                        }
                    }
                    _ => {}
                }
                self.note(event, connection, context);
            }
            EventKind::Sent { connection, .. } | EventKind::SendFailed { connection, .. } => {
                self.note(event, connection, context);
            }
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        let turn = context.poll_period().0 as f64;
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        if let Some(spread) = Summary::of(self.reconnects_ns.clone()) {
            spread.tell("reconnect_ns", turn, &mut tell);
        }
        self.echoes.tell("echo_ns", turn, &mut tell);
        self.roles.tell("role_ns", turn, &mut tell);
        self.tell_roles();
        self.tell_ports();
        self.tell_without();
        self.report("connections_failed_count", "count", self.failed as f64, 0.0, 1);
        std::mem::take(&mut self.results).into_iter().for_each(tell);
    }
}

impl Session {
    fn note(&mut self, event: &Event<'_>, connection: usize, context: &mut ModuleContext) {
        if let Some(answer) = self.pending.note(event) {
            self.answered(answer, connection, context);
        }
    }
}
