//! Flow churn: the cost of rule changes and statistics requests for frames of other entries.
//!
//! Claim: forwarding loses frames and time while the switch installs other entries.
//!
//! Method: frames visit resident entries at a constant rate. The controller adds and deletes other entries, which
//! no frame matches, at a set rate. A periodic barrier request shows the delay of the switch. The controller also
//! requests flow statistics at a set rate.
//!
//! Source: metric C11 of the method; the coupling of control plane and data plane in RFC 8204.

use openflow::model::message::Message;
use openflow::model::{Match, PRIORITY_DEFAULT};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, FrameFilter, MeasuredValue, MessageRange, Module, ModuleContext,
    ModuleRequirements, SendSpan, TimerId,
};

use super::requests::{Answer, Delays, PATIENCE_LIMIT, PendingRequests};
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::{FAR, NEAR, RULES_MAX, Rules};
use super::statistics::Statistic;
use super::summary::Summary;
use super::updates;
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis.
pub const AXIS: &str = "changes_per_s";

/// The stream of frames.
const FRAMES: u16 = 1;

/// Interval at which due changes are sent.
const TICK: Nanos = Nanos::from_millis(1);

/// Interval of barrier requests.
const BARRIER: Nanos = Nanos::from_millis(50);

/// Time to wait for frames in flight at the end.
const ARRIVING: Nanos = Nanos::from_millis(50);

/// Maximum time to fill the tables.
const FILLING: Nanos = Nanos::from_secs(30);

/// Settings of the churn test.
#[derive(Debug, Clone)]
pub struct Churn {
    /// Entries that frames visit, followed by those that are added and deleted.
    pub rules: Rules,
    /// Number of resident entries.
    pub resident: u32,
    /// Entries added or deleted per second.
    pub changes_per_s: f64,
    /// Flow statistics requests per second.
    pub polls_per_s: f64,
    /// Frames per second.
    pub frames_pps: f64,
    /// Size of a frame in bytes, including the frame check sequence.
    pub frame_bytes: usize,
    /// Duration.
    pub span: Nanos,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time to wait for the last replies.
    pub patience: Nanos,
}

/// State of the module.
pub struct FlowChurn {
    churn: Churn,
    version: Version,
    pending: PendingRequests,
    filling: Option<MessageRange>,
    phase: Phase,
    /// Start and end of the stream.
    begun_at: Nanos,
    stopped_at: Nanos,
    /// Port counter of sent frames at the beginning and at the end.
    sent: [u64; 2],
    arrived: u64,
    delays_ns: Vec<f64>,
    changes: u64,
    unsaid: u64,
    errors: u64,
    barrier: Option<MessageRange>,
    barriers: Delays,
    barrier_due: Nanos,
    poll: Option<MessageRange>,
    polls: Delays,
    tick: Option<TimerId>,
    ask: Option<TimerId>,
    end: Option<TimerId>,
}

/// Phases of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The tables are being filled.
    Filling,
    /// Frames run.
    Running,
    /// The last frames arrive.
    Arriving,
    /// The last replies are outstanding.
    Answering,
}

impl FlowChurn {
    /// Creates the module for one rate of changes.
    pub fn new(churn: Churn) -> FlowChurn {
        FlowChurn {
            churn,
            version: Version::V1_3,
            pending: PendingRequests::default(),
            filling: None,
            phase: Phase::Filling,
            begun_at: Nanos::ZERO,
            stopped_at: Nanos::ZERO,
            sent: [0; 2],
            arrived: 0,
            delays_ns: Vec::new(),
            changes: 0,
            unsaid: 0,
            errors: 0,
            barrier: None,
            barriers: Delays::default(),
            barrier_due: Nanos::ZERO,
            poll: None,
            polls: Delays::default(),
            tick: None,
            ask: None,
            end: None,
        }
    }

    fn prepare(&mut self, version: Option<Version>, context: &mut ModuleContext) {
        self.version = version.unwrap_or(self.version);
        let churn = &self.churn;
        let (bytes, pps) = (churn.frame_bytes, churn.frames_pps);
        context.prepare(churn.rules.visits(FRAMES, 0..churn.resident, bytes, pps));
        for port in [NEAR, FAR] {
            context.watch(port, FrameFilter::Streams(vec![FRAMES]));
        }
        let mut messages = Rules::emptied();
        let add = |place| Message::FlowMod(churn.rules.add(place, PRIORITY_DEFAULT));
        messages.extend((0..churn.resident).map(add));
        messages.push(Message::BarrierRequest);
        self.filling = Some(self.pending.ask(context, 0, messages));
    }

    fn begin(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Running;
        self.begun_at = context.now();
        self.barrier_due = context.now().saturating_add(BARRIER);
        context.begin(FRAMES, SendSpan::OPEN);
        self.end = Some(context.timer_in(self.churn.span));
        if self.churn.changes_per_s > 0.0 {
            self.tick = Some(context.timer_in(TICK));
        }
        if self.churn.polls_per_s > 0.0 {
            self.look(context);
        }
    }

    /// Requests flow statistics, unless the last request is outstanding, and sets the next timer.
    fn look(&mut self, context: &mut ModuleContext) {
        self.ask = Some(context.timer_in(Nanos::from_secs_f64(1.0 / self.churn.polls_per_s)));
        if self.poll.is_none() {
            let message = Statistic::Flow.ask(self.version, Match::ANY);
            self.poll = Some(self.pending.ask(context, 0, vec![message]));
        }
    }

    /// Sends the changes that are due, and a barrier request if one is due.
    fn change(&mut self, context: &mut ModuleContext) {
        self.tick = Some(context.timer_in(TICK));
        let passed = context.now().since(self.begun_at).as_secs_f64();
        let due = (passed * self.churn.changes_per_s) as u64;
        let mut messages: Vec<Message> =
            (self.changes..due).map(|place| self.changed(place)).collect();
        self.changes = self.changes.max(due);
        if context.now() >= self.barrier_due && self.barrier.is_none() {
            self.barrier_due = context.now().saturating_add(BARRIER);
            messages.push(Message::BarrierRequest);
            self.barrier = Some(self.pending.ask(context, 0, messages));
        } else if !messages.is_empty() {
            context.send_all(0, messages);
        }
    }

    /// Returns a change by number: it adds an entry that no frame matches, and the next change deletes it.
    fn changed(&self, place: u64) -> Message {
        let unused = u64::from(self.churn.rules.count() - self.churn.resident).max(1);
        let rule = self.churn.resident + (place / 2 % unused) as u32;
        Message::FlowMod(match place.is_multiple_of(2) {
            true => self.churn.rules.add(rule, PRIORITY_DEFAULT),
            false => self.churn.rules.delete(rule, PRIORITY_DEFAULT),
        })
    }

    fn timed(&mut self, timer: TimerId, context: &mut ModuleContext) {
        let is_running = self.phase == Phase::Running;
        if self.tick == Some(timer) && is_running {
            self.change(context);
        } else if self.ask == Some(timer) && is_running {
            self.look(context);
        } else if self.end == Some(timer) {
            self.end_phase(context);
        }
    }

    fn end_phase(&mut self, context: &mut ModuleContext) {
        match self.phase {
            Phase::Filling => {}
            Phase::Running => {
                self.phase = Phase::Arriving;
                self.stopped_at = context.now();
                context.stop(FRAMES);
                self.end = Some(context.timer_in(ARRIVING));
            }
            Phase::Arriving => context.counters(),
            Phase::Answering => {
                self.barriers.unanswered += u64::from(self.barrier.is_some());
                self.polls.unanswered += u64::from(self.poll.is_some());
                context.end_by_limit(PATIENCE_LIMIT);
            }
        }
    }

    /// Processes the counter of the port from which frames leave.
    fn counted(&mut self, sent: u64, context: &mut ModuleContext) {
        if self.phase == Phase::Filling {
            self.sent[0] = sent;
            return self.begin(context);
        }
        self.sent[1] = sent;
        self.phase = Phase::Answering;
        self.end = Some(context.timer_in(self.churn.patience));
        self.end_if_answered(context);
    }

    fn answered(&mut self, answer: &Answer, context: &mut ModuleContext) {
        if self.filling == Some(answer.said) {
            self.filling = None;
            return context.counters();
        }
        if self.barrier == Some(answer.said) {
            self.barrier = None;
            self.barriers.note(answer);
        } else if self.poll == Some(answer.said) {
            self.poll = None;
            self.polls.note(answer);
        }
        self.end_if_answered(context);
    }

    fn end_if_answered(&mut self, context: &mut ModuleContext) {
        if self.phase == Phase::Answering && self.barrier.is_none() && self.poll.is_none() {
            context.end();
        }
    }
}

impl Module for FlowChurn {
    fn needs(&self) -> ModuleRequirements {
        let all = [FILLING, self.churn.span, ARRIVING, self.churn.patience, Nanos::from_secs(1)];
        let limit = all.into_iter().fold(Nanos::ZERO, Nanos::saturating_add);
        ModuleRequirements::new(limit).in_versions(&self.churn.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => self.prepare(facts.version(0), context),
            EventKind::Timer(timer) => return self.timed(timer, context),
            EventKind::Counters(counters) => {
                let sent = counters.get(NEAR).map_or(0, |port| port.tx_frames);
                return self.counted(sent, context);
            }
            EventKind::Frame(arrival) => {
                if let (FAR, Some(probe)) = (arrival.port, arrival.probe) {
                    self.arrived += 1;
                    if probe.is_delay_known {
                        self.delays_ns.push(event.at.since(probe.sent_at).0 as f64);
                    }
                }
                return;
            }
            EventKind::Message { message: Message::Error(_), .. } => self.errors += 1,
            EventKind::SendFailed { said, .. } => self.unsaid += u64::from(said.count),
            _ => {}
        }
        if let Some(answer) = self.pending.note(event) {
            self.answered(&answer, context);
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        let (turn, frame_poll_period) =
            (context.poll_period().0 as f64, context.frame_poll_period().0 as f64);
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        if let Some(delays) = Summary::of(std::mem::take(&mut self.delays_ns)) {
            delays.tell("frames_latency_ns", frame_poll_period, &mut tell);
        }
        let took = self.stopped_at.since(self.begun_at).as_secs_f64();
        let sent = self.sent[1].saturating_sub(self.sent[0]);
        if sent > 0 {
            let lost = sent.saturating_sub(self.arrived) as f64 / sent as f64;
            tell(MeasuredValue::new("lost_ratio", "ratio", lost, 0.0).of(sent));
            let rate = self.arrived as f64 / took;
            tell(MeasuredValue::new("forwarded_pps", "pps", rate, 0.0).of(self.arrived));
        }
        if took == 0.0 {
            return;
        }
        let said = self.changes.saturating_sub(self.unsaid);
        let rate = said as f64 / took;
        tell(MeasuredValue::new("changes_per_s", "per_s", rate, 0.0).of(said));
        tell(MeasuredValue::new("errors_count", "count", self.errors as f64, 0.0));
        self.barriers.tell("barrier_ns", turn, &mut tell);
        self.polls.tell("statistics_ns", turn, &mut tell);
    }
}

const CHANGES: Parameter = Parameter {
    key: "changes",
    takes: ValueType::Integers(0, 1_000_000),
    default: "0,100,1000,10000",
    unit: "rules/s",
    help: "rate of added and deleted entries",
};

const POLLS: Parameter = Parameter {
    key: "polls",
    takes: ValueType::Integers(0, 100_000),
    default: "0,10",
    unit: "requests/s",
    help: "rate of flow statistics requests",
};

const RESIDENT: Parameter = Parameter {
    key: "rules_count",
    takes: ValueType::Integer(1, RULES_MAX / 2),
    default: "1000",
    unit: "rules",
    help: "number of entries that frames visit",
};

const UNUSED: Parameter = Parameter {
    key: "churn_rules",
    takes: ValueType::Integer(1, RULES_MAX / 2),
    default: "1000",
    unit: "rules",
    help: "number of other entries that are added and deleted one by one",
};

const FRAMES_PPS: Parameter = Parameter {
    key: "frames_pps",
    takes: ValueType::Number(1.0, 2e7),
    default: "20000",
    unit: "frames/s",
    help: "frame rate, all entries together",
};

const FRAME: Parameter = Parameter {
    key: "probe_bytes",
    takes: ValueType::Integer(64, 1518),
    default: "96",
    unit: "bytes",
    help: "frame size, including the frame check sequence",
};

const SPAN: Parameter = Parameter {
    key: "duration_s",
    takes: ValueType::Number(0.001, 3600.0),
    default: "0.3",
    unit: "s",
    help: "duration",
};

const PATIENCE: Parameter = Parameter {
    key: "timeout_s",
    takes: ValueType::Number(0.1, 600.0),
    default: "5",
    unit: "s",
    help: "timeout for the last replies",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] =
    &[CHANGES, POLLS, RESIDENT, UNUSED, FRAMES_PPS, FRAME, SPAN, updates::VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Forwarding latency under flow churn",
        &["frames_latency_ns_p50", "frames_latency_ns_p99"],
        &["frames_latency_ns_max", "changes_per_s", "errors_count"],
    ),
    Chart::values("Frame loss under flow churn", &["lost_ratio"], &["forwarded_pps"]),
    Chart::values(
        "Barrier reply time under flow churn",
        &["barrier_ns_p50", "barrier_ns_max"],
        &["statistics_ns_p50"],
    ),
];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let resident = own.integer(&RESIDENT) as u32;
    let spot = |changes: u64, polls: u64| {
        let churn = Churn {
            rules: Rules::new(context, resident + own.integer(&UNUSED) as u32),
            resident,
            changes_per_s: changes as f64,
            polls_per_s: polls as f64,
            frames_pps: own.number(&FRAMES_PPS),
            frame_bytes: own.integer(&FRAME) as usize,
            span: Nanos::from_secs_f64(own.number(&SPAN)),
            versions: updates::versions(context),
            patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
        };
        let make = move |_| Box::new(FlowChurn::new(churn.clone())) as Box<_>;
        let seconds = own.number(&SPAN) + 0.1;
        ModulePoint::new(changes as f64, seconds, make).on("polls_per_s", polls as f64)
    };
    let (changes, polls) = (own.integers(&CHANGES), own.integers(&POLLS));
    let pairs = polls.iter().flat_map(|&polls| changes.iter().map(move |&it| (it, polls)));
    let spots = pairs.map(|(changes, polls)| spot(changes, polls)).collect();
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
