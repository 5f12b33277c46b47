//! Control stall: the longest gap in forwarded frames while a named control load runs.
//!
//! Claim: a switch continues to forward frames under any control load.
//!
//! Method: the module installs entries, and frames visit some of them at a constant rate. A quiet period shows the
//! gaps that the machine itself causes. Then one connection sends the load, followed by a barrier request. A second
//! controller sends an echo request every millisecond. The load is complete at the barrier reply. [`LongestGap`]
//! defines a gap.
//!
//! Invariants:
//!
//! - A load ends on its own ([`Load`]); one that exceeds the time limit is reported as not completed.
//! - If the switch rejects a load, the trial fails with its reason.

use std::collections::{BTreeMap, BTreeSet};

use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::multipart::MultipartReplyBody;
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Connection, Ended, Event, EventKind, FrameFilter, MeasuredValue, MessageRange, Module,
    ModuleContext, ModuleRequirements, SendSpan, TimerId,
};

use super::control_load::{EncodedLoad, Load, entry};
use super::rules::{FAR, NEAR, Rules, sent};
use super::silence::LongestGap;

/// Connections: the one with the load, that of the second controller, and the first of those that a load opens.
const LOADING: usize = 0;
const SECOND: usize = 1;
const MORE: usize = 2;

/// The stream of frames.
const FRAMES: u16 = 1;

/// Entries between two barrier requests, and the maximum number of outstanding barrier requests.
const FILL_ENTRIES: u32 = 4096;
const FILLS_AHEAD: usize = 2;

/// Maximum time of the switch for the entries between two barrier requests.
const FILL_PATIENCE: Nanos = Nanos::from_secs(60);

/// Maximum time of the switch for all entries.
const FILL_LIMIT: Nanos = Nanos::from_secs(600);

/// Name of the limit that these set.
const FILL_PATIENCE_LIMIT: &str = "timeout for installing entries";

/// Name of the limit reached by a load that does not complete in time.
const LOAD_PATIENCE_LIMIT: &str = "timeout for the control load";

/// Name of the limit reached when the switch closes one of the two connections.
const LOSSES_LIMIT: &str = "closed connections of the two controllers (none allowed)";

/// Parts of a load that wait for the socket.
const PIECES_AHEAD: usize = 4;

/// Maximum number of connections in setup at the same time.
const CONNECTS_AHEAD: u32 = 32;

/// Interval of echo requests.
const ECHO_INTERVAL: Nanos = Nanos::from_millis(1);

/// Time for which frames continue after the load, and time to wait for the last of them.
const AFTER: Nanos = Nanos::from_millis(50);
const ARRIVING: Nanos = Nanos::from_millis(200);

/// A load and the frames that run with it.
#[derive(Debug, Clone)]
pub struct StallSettings {
    /// The load.
    pub load: Load,
    /// Entries installed beforehand; the count in `rules` also includes those that the load adds.
    pub entries: u32,
    /// Number of entries that frames visit.
    pub visited: u32,
    /// Entries and their frames.
    pub rules: Rules,
    /// Frames per second.
    pub rate_pps: f64,
    /// Size of a frame in bytes, including the frame check sequence.
    pub frame_bytes: usize,
    /// Duration of the quiet period, and of the period without load.
    pub quiet: Nanos,
    /// Maximum time for the load.
    pub patience: Nanos,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
}

/// Phases of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Filling,
    Quiet,
    Loading,
    After,
    Arriving,
}

/// Observations in the quiet period or under the load.
#[derive(Debug, Clone, Copy, Default)]
struct PeriodFrames {
    silence: Nanos,
    echo: Nanos,
    echoes: u64,
}

/// State of the module.
pub struct ControlStall {
    settings: StallSettings,
    version: Version,
    phase: Phase,
    timer: Option<TimerId>,
    /// Entries sent, entries rejected, and outstanding barrier requests.
    filled: u32,
    refused: u32,
    fills: Vec<Xid>,
    pieces: Option<EncodedLoad>,
    connects: Connects,
    echo_timer: Option<TimerId>,
    /// Outstanding echo requests, with the time of sending.
    echoes: BTreeMap<Xid, Nanos>,
    silence: LongestGap,
    quiet: PeriodFrames,
    loaded: PeriodFrames,
    /// Start and completion of the load.
    begun_at: Nanos,
    finished_at: Option<Nanos>,
    errors: u64,
    first_error: Option<String>,
    /// Entries reported by a dump.
    rows: u64,
    /// Port counter of sent frames at the beginning and at the end, and frames received.
    sent: [Option<u64>; 2],
    arrived: u64,
}

/// Connections that a load opens.
#[derive(Debug, Clone, Default)]
struct Connects {
    begun: u32,
    /// Connections that were established or failed.
    settled: BTreeSet<usize>,
    /// Number of established connections.
    up: u32,
}

impl ControlStall {
    /// Creates the module for one load.
    pub fn new(settings: StallSettings) -> ControlStall {
        ControlStall {
            silence: LongestGap::new(settings.rate_pps),
            settings,
            version: Version::V1_4,
            phase: Phase::Filling,
            timer: None,
            filled: 0,
            refused: 0,
            fills: Vec::new(),
            pieces: None,
            connects: Connects::default(),
            echo_timer: None,
            echoes: BTreeMap::new(),
            quiet: PeriodFrames::default(),
            loaded: PeriodFrames::default(),
            begun_at: Nanos::ZERO,
            finished_at: None,
            errors: 0,
            first_error: None,
            rows: 0,
            sent: [None; 2],
            arrived: 0,
        }
    }

    fn prepare(&mut self, version: Option<Version>, context: &mut ModuleContext) {
        self.version = version.unwrap_or(self.version);
        let settings = &self.settings;
        let visited = 0..settings.visited.min(settings.entries);
        context.prepare(settings.rules.visits(
            FRAMES,
            visited,
            settings.frame_bytes,
            settings.rate_pps,
        ));
        context.watch(FAR, FrameFilter::Streams(vec![FRAMES]));
        context.send(LOADING, Message::FlowMod(Rules::cleared(version)));
        (0..FILLS_AHEAD).for_each(|_| self.fill(context));
    }

    /// Sends the next entries, followed by a barrier request.
    fn fill(&mut self, context: &mut ModuleContext) {
        let end = self.settings.entries.min(self.filled + FILL_ENTRIES);
        if self.filled == end {
            return;
        }
        let add = |place| Message::FlowMod(entry(&self.settings.rules, place));
        let mut messages: Vec<Message> = (self.filled..end).map(add).collect();
        messages.push(Message::BarrierRequest);
        let said = context.send_all(LOADING, messages);
        self.fills.extend(said.xids().last());
        self.filled = end;
        self.wait(FILL_PATIENCE, context);
    }

    fn wait(&mut self, span: Nanos, context: &mut ModuleContext) {
        self.timer.take().map(|timer| context.cancel(timer));
        self.timer = Some(context.timer_in(span));
    }

    /// Prepares the load and starts the frames, once the entries are installed.
    fn begin(&mut self, context: &mut ModuleContext) {
        let what = (&self.settings.rules, self.settings.entries);
        match EncodedLoad::encode(self.settings.load, what, self.version, context) {
            Ok(pieces) => self.pieces = Some(pieces),
            Err(why) => {
                return context.fail(format!("cannot encode the load for the switch: {why}"));
            }
        }
        self.phase = Phase::Quiet;
        context.counters();
    }

    fn begin_frames(&mut self, context: &mut ModuleContext) {
        context.begin(FRAMES, SendSpan::OPEN);
        self.wait(self.settings.quiet, context);
        self.echo(context);
    }

    /// Sends an echo request of the second controller and sets the next timer.
    fn echo(&mut self, context: &mut ModuleContext) {
        let xid = context.send(SECOND, Message::EchoRequest(Vec::new()));
        self.echoes.insert(xid, context.now());
        self.echo_timer = Some(context.timer_in(ECHO_INTERVAL));
    }

    fn load(&mut self, context: &mut ModuleContext) {
        self.quiet.silence = self.silence.take(None, context.now());
        (self.phase, self.begun_at) = (Phase::Loading, context.now());
        match self.settings.load {
            Load::Idle => self.wait(self.settings.quiet, context),
            Load::Connections(_) => {
                self.wait(self.settings.patience, context);
                (0..CONNECTS_AHEAD).for_each(|_| self.connect(context));
            }
            _ => {
                self.wait(self.settings.patience, context);
                (0..PIECES_AHEAD).for_each(|_| self.send(context));
            }
        }
    }

    /// Sends the next part of the load.
    fn send(&mut self, context: &mut ModuleContext) {
        if let Some(piece) = self.pieces.as_mut().and_then(EncodedLoad::take) {
            context.send_encoded(LOADING, piece);
        }
    }

    fn connect(&mut self, context: &mut ModuleContext) {
        let Load::Connections(count) = self.settings.load else { return };
        if self.connects.begun < count {
            context.connect(MORE + self.connects.begun as usize);
            self.connects.begun += 1;
        }
    }

    /// Processes a connection of a load that was established or failed.
    ///
    /// Opens the next connection, or sends the barrier request after the last one.
    fn connected(&mut self, connection: usize, is_up: bool, context: &mut ModuleContext) {
        let Load::Connections(count) = self.settings.load else { return };
        if self.phase != Phase::Loading {
            return;
        }
        let is_first = self.connects.settled.insert(connection);
        match (is_up, is_first) {
            (true, _) => self.connects.up += 1,
            // It was established before.
            (false, false) => self.connects.up = self.connects.up.saturating_sub(1),
            (false, true) => {}
        }
        match self.connects.settled.len() >= count as usize {
            _ if !is_first => {}
            true => self.send(context),
            false => self.connect(context),
        }
    }

    /// Ends the load: completed, or timed out.
    fn over(&mut self, finished_at: Option<Nanos>, context: &mut ModuleContext) {
        if self.phase == Phase::Loading {
            (self.phase, self.finished_at) = (Phase::After, finished_at);
            self.wait(AFTER, context);
        }
    }

    fn timed(&mut self, context: &mut ModuleContext) {
        match self.phase {
            Phase::Filling => context.end_by_limit(FILL_PATIENCE_LIMIT),
            Phase::Quiet => self.load(context),
            Phase::Loading => {
                let is_idle = self.settings.load == Load::Idle;
                self.over(is_idle.then_some(context.now()), context);
            }
            Phase::After => {
                self.phase = Phase::Arriving;
                context.stop(FRAMES);
                self.wait(ARRIVING, context);
            }
            Phase::Arriving => context.counters(),
        }
    }

    /// Processes the counter of the port from which frames leave.
    fn counted(&mut self, count: u64, context: &mut ModuleContext) {
        if self.phase == Phase::Quiet {
            self.sent[0] = Some(count);
            return self.begin_frames(context);
        }
        self.sent[1] = Some(count);
        let refused = matches!(self.settings.load, Load::Bundle(_)).then_some(&self.first_error);
        match refused {
            Some(Some(why)) => context.fail(format!("the switch rejected the load: {why}")),
            _ if self.finished_at.is_none() => context.end_by_limit(LOAD_PATIENCE_LIMIT),
            _ => context.end(),
        }
    }

    fn heard(
        &mut self,
        (connection, xid): (usize, Xid),
        message: &Message,
        context: &mut ModuleContext,
    ) {
        let at = context.now();
        match message {
            Message::EchoReply(_) if connection == SECOND => self.echoed(xid, at),
            Message::BarrierReply if self.pieces.as_ref().is_some_and(|it| it.barrier == xid) => {
                self.over(Some(at), context);
            }
            Message::BarrierReply if self.fills.contains(&xid) => {
                self.fills.retain(|fill| *fill != xid);
                self.fill(context);
                if self.fills.is_empty() && self.phase == Phase::Filling {
                    self.begin(context);
                }
            }
            Message::MultipartReply(reply) => {
                if let MultipartReplyBody::Flow(flows) = &reply.body {
                    self.rows += flows.len() as u64;
                }
            }
            Message::Error(_) if self.phase == Phase::Filling => self.refused += 1,
            Message::Error(error) if self.pieces.as_ref().is_some_and(|it| it.has(xid)) => {
                self.errors += 1;
                self.first_error.get_or_insert_with(|| error.to_string());
            }
            _ => {}
        }
    }

    /// Records an echo reply. If the tester was descheduled, the reply counts with its late read time.
    fn echoed(&mut self, xid: Xid, at: Nanos) {
        let Some(sent_at) = self.echoes.remove(&xid) else { return };
        let seen = match self.phase {
            Phase::Quiet => &mut self.quiet,
            _ => &mut self.loaded,
        };
        seen.echoes += 1;
        seen.echo = seen.echo.max(at.since(sent_at));
    }

    /// Describes the installed entries that are missing.
    fn note(&self) -> Option<String> {
        let held = self.filled - self.refused;
        (self.refused > 0)
            .then(|| format!("the switch accepted {held} of {} entries", self.settings.entries))
    }

    fn tell(&mut self, context: &mut ModuleContext) {
        let now = context.now();
        let frames =
            self.sent[0].zip(self.sent[1]).map(|(before, after)| after.saturating_sub(before));
        self.loaded.silence = self.silence.take(frames, now);
        let oldest = self.echoes.values().min().map_or(Nanos::ZERO, |sent_at| now.since(*sent_at));
        let is_late = self.finished_at.is_none() || oldest > ARRIVING;
        if is_late {
            self.loaded.echo = self.loaded.echo.max(oldest);
        }
        let (turn, frame_poll_period) =
            (context.poll_period().0 as f64, context.frame_poll_period().0 as f64);
        let [quiet, loaded] = [self.quiet.silence, self.loaded.silence].map(|it| it.0 as f64);
        let ns =
            |name: &'static str, value: f64, half: f64| MeasuredValue::new(name, "ns", value, half);
        let count =
            |name: &'static str, value: u64| MeasuredValue::new(name, "count", value as f64, 0.0);
        let mut all = vec![
            ns("silence_ns_max", loaded, frame_poll_period).of(self.arrived),
            ns("quiet_silence_ns_max", quiet, frame_poll_period),
            ns("silence_beyond_quiet_ns", (loaded - quiet).max(0.0), 2.0 * frame_poll_period),
            ns("echo_ns_max", self.loaded.echo.0 as f64, turn).of(self.loaded.echoes),
            ns("quiet_echo_ns_max", self.quiet.echo.0 as f64, turn).of(self.quiet.echoes),
        ];
        if let Some(frames) = frames {
            let lost = frames.saturating_sub(self.arrived) as f64;
            all.push(MeasuredValue::new("lost_frames", "frames", lost, 0.0).of(frames));
        }
        let held = count("entries_count", u64::from(self.filled - self.refused));
        all.push(MeasuredValue { note: self.note().map(Into::into), ..held });
        if self.settings.load != Load::Idle {
            let patience = self.settings.patience.as_secs_f64();
            let note = self.finished_at.is_none().then(|| format!("not completed in {patience} s"));
            let share = f64::from(u8::from(self.finished_at.is_some()));
            let finished = MeasuredValue::new("finished_ratio", "ratio", share, 0.0);
            all.push(MeasuredValue { note: note.map(Into::into), ..finished });
            all.push(count("errors_count", self.errors));
        }
        if let Some(at) = self.finished_at.filter(|_| self.settings.load != Load::Idle) {
            all.push(ns("load_ns", at.since(self.begun_at).0 as f64, turn));
        }
        match self.settings.load {
            Load::Dump => all.push(count("rows_count", self.rows)),
            Load::Connections(_) => {
                all.push(count("connections_count", u64::from(self.connects.up)));
            }
            _ => {}
        }
        all.into_iter().for_each(|measured| context.measured(measured));
    }
}

impl Module for ControlStall {
    fn needs(&self) -> ModuleRequirements {
        let spans = [FILL_LIMIT, self.settings.quiet, self.settings.patience, Nanos::from_secs(10)];
        let mut needs = ModuleRequirements::new(
            spans.into_iter().fold(self.settings.quiet, Nanos::saturating_add),
        );
        let more = match self.settings.load {
            Load::Connections(count) => count as usize,
            _ => 0,
        };
        needs.connections = vec![Connection::new(0); MORE + more];
        for connection in &mut needs.connections[MORE..] {
            (connection.opens, connection.requests_features) = (false, false);
        }
        needs.stops_on_disconnect = false;
        needs.in_versions(&self.settings.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => self.prepare(facts.version(LOADING), context),
            EventKind::Frame(arrival) => {
                if let (FAR, Some(probe)) = (arrival.port, arrival.probe) {
                    self.arrived += 1;
                    let is_known = arrival.is_timestamp_valid;
                    self.silence.note(probe.number, probe.sent_at, event.at, is_known);
                }
            }
            EventKind::Message { connection, xid, message, .. } => {
                self.heard((connection, xid), message, context);
            }
            EventKind::Sent { connection: SECOND, said, first, .. } => {
                self.echoes.entry(said.xid).and_modify(|sent_at| *sent_at = first);
            }
            EventKind::Sent { connection: LOADING, said: MessageRange { xid, .. }, .. } => {
                let is_piece = self.pieces.as_ref().is_some_and(|it| it.has(xid));
                if is_piece && !matches!(self.settings.load, Load::Connections(_)) {
                    self.send(context);
                }
            }
            EventKind::Timer(timer) if self.timer == Some(timer) => self.timed(context),
            EventKind::Timer(timer)
                if self.echo_timer == Some(timer) && self.phase != Phase::Arriving =>
            {
                self.echo(context);
            }
            EventKind::Counters(counters) => {
                let count = counters.get(NEAR).map_or(0, sent);
                self.counted(count, context);
            }
            EventKind::Connected { connection, .. } if connection >= MORE => {
                self.connected(connection, true, context);
            }
            EventKind::Disconnected { connection, .. } if connection >= MORE => {
                self.connected(connection, false, context);
            }
            EventKind::Disconnected { .. } => context.end_by_limit(LOSSES_LIMIT),
            EventKind::SendFailed { why, .. } if self.phase != Phase::Arriving => {
                context.fail(format!("cannot send to the switch: {why}"));
            }
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        if self.phase != Phase::Filling {
            self.tell(context);
        }
    }
}
