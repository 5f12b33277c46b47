//! Path setup: the time until frames of k flows pass several switches in a row.
//!
//! Claim: a controller that sets up a path relies on barrier replies. The path works only when the switch with the
//! latest activation after its barrier reply works. Until then, frames are lost or cause packet-ins. Their number
//! depends on how well the order of the updates suits the direction of the frames.
//!
//! Method: probes visit each flow in turn. The entries go to all switches at the same time, or switch by switch
//! from either end, each after the barrier reply of the one before. A probe that leaves at the far end passed all
//! switches. A probe in a packet-in identifies the switch without its entry.
//!
//! Source: metrics C1 to C4 of the method (`docs/oflops.md`), over a path.
//!
//! Invariant: a frame counts as lost only if the port counter shows that it was sent.

use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::{Action, FlowMod, Match, reserved};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Connection, Ended, Event, EventKind, FrameFilter, MeasuredValue, MessageRange, Module,
    ModuleContext, ModuleRequirements, Probe, SendSpan, TimerId,
};
use tester::stream::Stream;

use super::activation::Activation;
use super::forwarding_check::UNANSWERED;
use super::rounds::{ModulePoint, RepeatedModule};
use super::rule_updates::{FRAMES_MAX, LEAD};
use super::rules::{FAR, NEAR, Priorities, RULES_MAX, Rules, sent};
use super::summary::Summary;
use super::updates::{FRAME, PATIENCE, PRIORITIES, VERSION, versions};
use crate::show::Chart;
use crate::{Context, Method};
use targets::network::Hop;
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis.
pub const AXIS: &str = "flows";

/// Id of the stream of probes.
const PROBES: u16 = 1;

/// Interval of the checks for completion.
const LOOK_EVERY: Nanos = Nanos::from_millis(5);

/// Name of the limit that [`Setting::patience`] sets for the path.
const PATIENCE_LIMIT: &str = "timeout for the path and its barrier replies";

const FLOWS: Parameter = Parameter {
    key: "flows_count",
    takes: ValueType::Integers(1, RULES_MAX),
    default: "10,100",
    unit: "flows",
    help: "number of flows to set up",
};

const ORDER: Parameter = Parameter {
    key: "order",
    takes: ValueType::Words(&["together", "ingress-first", "egress-first"]),
    default: "together,ingress-first,egress-first",
    unit: "",
    help: "order of the switches: all at the same time, or each after the barrier reply of the one \
           before, from the ingress or from the egress",
};

const MISS: Parameter = Parameter {
    key: "miss",
    takes: ValueType::Word(&["punt", "drop"]),
    default: "punt",
    unit: "",
    help: "action for frames without an entry: packet-in or drop",
};

const PROBES_PPS: Parameter = Parameter {
    key: "probes_pps",
    takes: ValueType::Number(1.0, 2e7),
    default: "10000",
    unit: "frames/s",
    help: "total probe rate of all flows; until the path works, every probe causes a packet-in",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] =
    &[FLOWS, ORDER, MISS, PRIORITIES, PROBES_PPS, FRAME, VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Path setup delay and last barrier reply, all switches at the same time",
        &["path_ns", "barriers_ns"],
        &["setup_ns_p50", "late_ns_max", "late_flows_ratio", "flows_set_up_ratio", "resolution_ns"],
    ),
    Chart::values(
        "Path setup delay and last barrier reply, switch by switch from the ingress",
        &["ingress_path_ns", "ingress_barriers_ns"],
        &["ingress_late_ns_max", "ingress_late_flows_ratio"],
    ),
    Chart::values(
        "Path setup delay and last barrier reply, switch by switch from the egress",
        &["egress_path_ns", "egress_barriers_ns"],
        &["egress_late_ns_max", "egress_late_flows_ratio"],
    ),
    Chart::values(
        "Frames lost or sent to the controller before the path worked, and after the last barrier \
         reply",
        &["punted_frames", "lost_frames", "failed_after_barrier_frames"],
        &["egress_punted_frames", "egress_lost_frames", "egress_failed_after_barrier_frames"],
    ),
];

/// Order in which the switches are updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateOrder {
    /// All at the same time.
    Together,
    /// From the first switch to the last, in the direction of the frames.
    IngressFirst,
    /// From the last switch to the first.
    EgressFirst,
}

/// Settings of one path setup.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Switches of the path.
    pub path: Vec<Hop>,
    /// Order of the updates.
    pub order: UpdateOrder,
    /// Entry of each flow, as for a single switch.
    pub rules: Vec<FlowMod>,
    /// Actions of the table-miss entry.
    pub miss: Vec<Action>,
    /// Stream of probes.
    pub stream: Stream,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time to wait for switches and frames.
    pub patience: Nanos,
}

/// Path setup module.
pub struct PathSetup {
    setting: Setting,
    phase: Phase,
    hops: Vec<HopTimes>,
    /// Positions of the switches that are still to be updated; the next one is last.
    waiting: Vec<usize>,
    timer: Option<TimerId>,
    quiet_from: Nanos,
    activation: Activation,
    changed_at: Nanos,
    /// Shortest time of a frame to the far end.
    way: Nanos,
    frames: Vec<Frame>,
    counted: [Option<u64>; 2],
    errors: u64,
    /// Whether the path exceeded the time limit and was given up.
    is_late: bool,
}

/// Observations of one switch of the path.
#[derive(Debug, Clone, Copy, Default)]
struct HopTimes {
    /// Outstanding barrier request.
    barrier: Option<Xid>,
    said: Option<MessageRange>,
    /// Time at which the first byte of its entries was sent.
    sent_at: Option<Nanos>,
    /// Time of the barrier reply after its entries.
    acknowledged_at: Option<Nanos>,
}

/// Observations of the frame with one sequence number.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    /// Departure time, if known.
    sent_at: Nanos,
    /// Whether the departure time is exact.
    is_known: bool,
    came: bool,
    /// Position, from 1, of the switch that sent a packet-in for it; 0 for none.
    punted_by: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Preparing,
    Counting,
    Quiet,
    Updating,
    Draining,
}

/// Frames that did not pass during the path setup.
#[derive(Debug, Default)]
struct LostFrames {
    lost: u64,
    /// Packet-ins by position on the path.
    punted: Vec<u64>,
    after_barrier: u64,
}

impl Frame {
    fn is_lost(&self) -> bool {
        !self.came && self.punted_by == 0
    }
}

impl PathSetup {
    /// Creates the module for this path.
    pub fn new(setting: Setting) -> PathSetup {
        let hops = vec![HopTimes::default(); setting.path.len()];
        let activation = Activation::new(setting.rules.len() as u32);
        PathSetup {
            setting,
            phase: Phase::Preparing,
            hops,
            waiting: Vec::new(),
            timer: None,
            quiet_from: Nanos(0),
            activation,
            changed_at: Nanos(0),
            way: Nanos::MAX,
            frames: Vec::new(),
            counted: [None; 2],
            errors: 0,
            is_late: false,
        }
    }

    /// Returns the time in which the probes visit every flow once.
    fn round(&self) -> Nanos {
        let stream = &self.setting.stream;
        Nanos::from_secs_f64(stream.flow_count() as f64 / stream.rate_pps())
    }

    /// Returns the time at which the first byte of the first entries was sent.
    fn sent_at(&self) -> Option<Nanos> {
        self.hops.iter().filter_map(|hop| hop.sent_at).min()
    }

    /// Returns the time of the last barrier reply.
    fn acknowledged_at(&self) -> Option<Nanos> {
        let all: Option<Vec<Nanos>> = self.hops.iter().map(|hop| hop.acknowledged_at).collect();
        all?.into_iter().max()
    }

    fn prepare(&mut self, context: &mut ModuleContext) {
        let miss = FlowMod::add(Match::ANY, 0, self.setting.miss.clone());
        let empty = [FlowMod::delete(0, Match::ANY), miss].map(Message::FlowMod);
        for (connection, hop) in self.hops.iter_mut().enumerate() {
            let messages = empty.iter().cloned().chain([Message::BarrierRequest]).collect();
            hop.barrier = context.send_all(connection, messages).xids().last();
        }
        self.timer = Some(context.timer_in(self.setting.patience));
        context.prepare(self.setting.stream.clone());
        context.watch(FAR, FrameFilter::Streams(vec![self.setting.stream.id]));
    }

    fn answered(&mut self, connection: usize, xid: Xid, at: Nanos, context: &mut ModuleContext) {
        match self.hops.get_mut(connection) {
            Some(hop) if hop.barrier == Some(xid) => {
                hop.barrier = None;
                hop.acknowledged_at = Some(at).filter(|_| self.phase == Phase::Updating);
            }
            _ => return,
        }
        match self.phase {
            Phase::Preparing if self.hops.iter().all(|hop| hop.barrier.is_none()) => {
                self.phase = Phase::Counting;
                self.timer.take().map(|timer| context.cancel(timer));
                context.counters();
            }
            Phase::Updating if self.setting.order != UpdateOrder::Together => {
                self.tell_next(context)
            }
            _ => {}
        }
    }

    /// Processes the port counter of sent frames.
    fn counted(&mut self, frames: u64, context: &mut ModuleContext) {
        if self.phase == Phase::Counting {
            self.counted[0] = Some(frames);
            (self.phase, self.quiet_from) = (Phase::Quiet, context.now());
            context.begin(self.setting.stream.id, SendSpan::OPEN);
            self.timer = Some(context.timer_in(self.round().saturating_add(LEAD)));
        } else {
            self.counted[1] = Some(frames);
            match self.is_late {
                true => context.end_by_limit(PATIENCE_LIMIT),
                false => context.end(),
            }
        }
    }

    fn timed(&mut self, context: &mut ModuleContext) {
        match self.phase {
            Phase::Preparing => return context.end_by_limit(UNANSWERED),
            Phase::Counting => return,
            Phase::Quiet if self.is_quiet(context.now()) => return self.update(context),
            Phase::Updating if self.is_over(context.now()) => {
                self.phase = Phase::Draining;
                self.is_late = !self.is_there();
                context.stop(self.setting.stream.id);
                self.timer = Some(context.timer_in(LEAD));
                return;
            }
            Phase::Draining => return context.counters(),
            Phase::Quiet | Phase::Updating => {}
        }
        self.timer = Some(context.timer_in(LOOK_EVERY));
    }

    /// Returns whether a packet-in arrived for each flow, or cannot be expected.
    ///
    /// Then it is certain that table-miss frames reach the controller.
    fn is_quiet(&self, now: Nanos) -> bool {
        let is_ready = self.activation.ready() == self.setting.rules.len();
        let waited = now.since(self.quiet_from) >= self.setting.patience;
        self.setting.miss.is_empty() || is_ready || waited
    }

    /// Returns whether every flow passed and was observed for a while afterwards, or the time limit is over.
    fn is_over(&self, now: Nanos) -> bool {
        let since = self.sent_at().map_or(Nanos(0), |sent| now.since(sent));
        let watched = self.round().saturating_add(LEAD);
        since >= self.setting.patience || self.is_there() && now.since(self.changed_at) >= watched
    }

    /// Returns whether every flow passed and every switch sent its barrier reply.
    fn is_there(&self) -> bool {
        self.activation.is_complete() && self.acknowledged_at().is_some()
    }

    fn update(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Updating;
        self.waiting = (0..self.hops.len()).collect();
        if self.setting.order == UpdateOrder::IngressFirst {
            self.waiting.reverse();
        }
        self.tell_next(context);
        while self.setting.order == UpdateOrder::Together && !self.waiting.is_empty() {
            self.tell_next(context);
        }
        self.timer = Some(context.timer_in(LOOK_EVERY));
    }

    /// Sends the entries to the next switch.
    fn tell_next(&mut self, context: &mut ModuleContext) {
        let Some(place) = self.waiting.pop() else { return };
        let hop = self.setting.path[place];
        let rules = self.setting.rules.iter().map(|rule| Message::FlowMod(hop.led(rule.clone())));
        let said = context.send_all(place, rules.chain([Message::BarrierRequest]).collect());
        let seen = &mut self.hops[place];
        (seen.said, seen.barrier) = (Some(said), said.xids().last());
    }

    /// Records a probe at the far end or in a packet-in of the switch at a position.
    fn note(&mut self, probe: Probe, at: Nanos, punted_by: Option<usize>) {
        let number = probe.number as usize;
        if number < FRAMES_MAX {
            if self.frames.len() <= number {
                self.frames.resize(number + 1, Frame::default());
            }
            let frame = &mut self.frames[number];
            (frame.sent_at, frame.is_known) = (probe.sent_at, probe.is_delay_known);
            match punted_by {
                None => frame.came = true,
                Some(place) => frame.punted_by = place as u8 + 1,
            }
        }
        let came = punted_by.is_none();
        if came && probe.is_delay_known {
            self.way = self.way.min(at.since(probe.sent_at));
        }
        match self.sent_at() {
            Some(begun) if probe.sent_at >= begun => {
                self.activation.begin(begun);
                if self.activation.note(probe.place, probe.sent_at, at, came) {
                    self.changed_at = at;
                }
            }
            _ => self.activation.note_before(probe.place, probe.sent_at, came),
        }
    }

    /// Returns the number of sequence numbers that were never sent, according to the port counter.
    fn unsent(&self) -> Option<u64> {
        let [before, after] = self.counted;
        let sent = after?.saturating_sub(before?);
        Some((self.frames.len() as u64).saturating_sub(sent))
    }

    /// Iterates over all frames by sequence number with their departure time.
    ///
    /// For a lost frame this is its scheduled time after the frame before it.
    fn left(&self) -> impl Iterator<Item = (Nanos, &Frame)> {
        let gap = Nanos::from_secs_f64(1.0 / self.setting.stream.rate_pps());
        let mut left_at = Nanos(0);
        self.frames.iter().map(move |frame| {
            left_at = match frame.is_lost() {
                true => left_at.saturating_add(gap),
                false => frame.sent_at,
            };
            (left_at, frame)
        })
    }

    /// Returns the activation of each flow; lost frames count as frames that did not pass.
    ///
    /// They do not count if the tester skipped frames, or if frames were lost although each should cause a
    /// packet-in.
    fn set_up(&self, begun: Nanos) -> Activation {
        let is_dropped = self.setting.miss.is_empty();
        let lost_before = self.left().any(|(left, frame)| left < begun && frame.is_lost());
        let knows_lost = self.unsent() == Some(0) && (is_dropped || !lost_before);
        let count = self.setting.rules.len();
        let mut set_up = Activation::new(count as u32);
        set_up.begin(begun);
        self.acknowledged_at().into_iter().for_each(|at| set_up.acknowledge(at));
        for (number, (left_at, frame)) in self.left().enumerate() {
            let place = (number % count.max(1)) as u64;
            if !frame.is_lost() && !frame.is_known {
                continue;
            }
            if left_at < begun {
                // No flow was set up yet, whatever happened to its frames.
                set_up.note_before(place, left_at, frame.came);
            } else if knows_lost || !frame.is_lost() {
                set_up.note(place, left_at, left_at.saturating_add(self.way), frame.came);
            }
        }
        set_up
    }

    /// Counts the frames sent during the path setup that did not pass.
    fn failed(&self, begun: Nanos, until: Nanos) -> LostFrames {
        let mut failed = LostFrames { punted: vec![0; self.hops.len()], ..LostFrames::default() };
        let acknowledged = self.acknowledged_at().unwrap_or(Nanos::MAX);
        for (left_at, frame) in self.left() {
            let is_lost = frame.is_lost();
            if left_at < begun || left_at > until || frame.came {
                continue;
            }
            failed.lost += u64::from(is_lost);
            if let Some(place) = usize::from(frame.punted_by).checked_sub(1) {
                failed.punted[place] += 1;
            }
            failed.after_barrier += u64::from(left_at > acknowledged);
        }
        failed
    }

    fn tell(&self, context: &mut ModuleContext) {
        let Some(begun) = self.sent_at() else { return };
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        let round = self.round().0 as f64;
        let all = self.setting.rules.len() as u64;
        tell(MeasuredValue::new("resolution_ns", "ns", round, 0.0));
        tell(MeasuredValue::new("errors_count", "count", self.errors as f64, 0.0));
        let set_up = self.set_up(begun);
        let share = set_up.active() as f64 / all as f64;
        tell(MeasuredValue::new("flows_set_up_ratio", "ratio", share, 0.0).of(all));
        let moments: Vec<_> = set_up.moments().map(|(_, moment)| moment).collect();
        let half = moments.iter().map(|moment| moment.half.0).max().unwrap_or(0) as f64;
        let since = moments.iter().map(|moment| moment.at.since(begun).0 as f64).collect();
        if let Some(spread) = Summary::of(since) {
            spread.tell("setup_ns", half, &mut tell);
            if set_up.is_complete() {
                tell(MeasuredValue::new("path_ns", "ns", spread.greatest(), half).of(all));
            }
        }
        for (place, hop) in (1..).zip(&self.hops) {
            if let (Some(sent), Some(heard)) = (hop.sent_at, hop.acknowledged_at) {
                let span = heard.since(sent).0 as f64;
                tell(MeasuredValue::new(format!("switch_{place}_barrier_ns"), "ns", span, 0.0));
            }
        }
        if let Some(acknowledged) = self.acknowledged_at() {
            let span = acknowledged.since(begun).0 as f64;
            tell(MeasuredValue::new("barriers_ns", "ns", span, 0.0));
            let late = moments.iter().map(|moment| moment.at.since(acknowledged).0 as f64);
            if let Some(spread) = Summary::of(late.collect()) {
                tell(MeasuredValue::new("late_ns_p50", "ns", spread.quantile(0.5), half).of(all));
                tell(MeasuredValue::new("late_ns_max", "ns", spread.greatest(), half).of(all));
            }
            let proven = set_up.premature() as f64 / all as f64;
            tell(MeasuredValue::new("late_flows_ratio", "ratio", proven, 0.0).of(all));
        }
        let until = match self.activation.is_complete() {
            true => self.changed_at,
            false => Nanos::MAX,
        };
        let failed = self.failed(begun, until);
        let frames = |name: String, count: u64, half: f64| {
            MeasuredValue::new(name, "frames", count as f64, half)
        };
        for (place, &count) in (1..).zip(&failed.punted) {
            tell(frames(format!("switch_{place}_punted_frames"), count, 0.0));
        }
        tell(frames("punted_frames".into(), failed.punted.iter().sum(), 0.0));
        // Sequence numbers that were never sent are not frames; they may be among the missing ones.
        if let Some(unsent) = self.unsent() {
            let known = unsent as f64;
            tell(frames("lost_frames".into(), failed.lost.saturating_sub(unsent), known));
            let after = failed.after_barrier.saturating_sub(unsent);
            tell(frames("failed_after_barrier_frames".into(), after, known));
        }
    }
}

impl Module for PathSetup {
    fn needs(&self) -> ModuleRequirements {
        let patience = self.setting.patience;
        let rounds = Nanos(self.round().0.saturating_mul(4));
        let spans = [patience, patience, patience, rounds, Nanos::from_secs(10)];
        let limit = spans.into_iter().fold(Nanos(0), Nanos::saturating_add);
        let connections = self.setting.path.iter().map(|hop| Connection::new(hop.switch));
        let needs = ModuleRequirements {
            connections: connections.collect(),
            ..ModuleRequirements::new(limit)
        };
        needs.in_versions(&self.setting.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) => self.prepare(context),
            EventKind::Frame(arrival) => {
                if let Some(probe) = arrival.probe {
                    self.note(probe, event.at, None);
                }
            }
            EventKind::Message { connection, probe: Some(probe), .. } => {
                self.note(probe, event.at, Some(connection));
            }
            EventKind::Message { connection, xid, message: Message::BarrierReply, .. } => {
                self.answered(connection, xid, event.at, context);
            }
            EventKind::Message { message: Message::Error(_), .. } => self.errors += 1,
            EventKind::Sent { connection, said, first, .. } => {
                if let Some(hop) =
                    self.hops.get_mut(connection).filter(|hop| hop.said == Some(said))
                {
                    hop.sent_at = Some(first);
                }
            }
            EventKind::Counters(ports) => self.counted(sent(&ports[NEAR]), context),
            EventKind::Timer(timer) if Some(timer) == self.timer => self.timed(context),
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        self.tell(context);
    }
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let mut spots = Vec::new();
    for count in own.integers(&FLOWS) {
        let rules = Rules::new(context, count as u32);
        let priorities = Priorities::of(own.text(&PRIORITIES), context.seed).all(count as u32);
        for word in own.words(&ORDER) {
            let (order, prefix) = match word {
                "ingress-first" => (UpdateOrder::IngressFirst, "ingress_"),
                "egress-first" => (UpdateOrder::EgressFirst, "egress_"),
                _ => (UpdateOrder::Together, ""),
            };
            let add = |(place, &priority): (u32, &u16)| rules.add(place, priority);
            let setting = Setting {
                path: context.kind.path(),
                order,
                rules: (0..).zip(&priorities).map(add).collect(),
                miss: match own.text(&MISS) {
                    "drop" => Vec::new(),
                    _ => vec![Action::output(reserved::CONTROLLER)],
                },
                stream: rules.probes(PROBES, own.integer(&FRAME) as usize, own.number(&PROBES_PPS)),
                versions: versions(context),
                patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
            };
            let make = move |_| Box::new(PathSetup::new(setting.clone())) as Box<dyn Module>;
            spots.push(ModulePoint::new(count as f64, 1.0, make).named(prefix));
        }
    }
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
