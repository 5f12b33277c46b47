//! Flow entry timeouts: their accuracy, and the time of the flow-removed messages.
//!
//! Claim: entries expire later than their timeouts, in batches, and flow-removed messages for many simultaneous
//! expiries are late.
//!
//! Method: half of the entries have a hard timeout, half an idle timeout. Probes visit the hard ones in turn from
//! before they are added; an entry becomes active between two probes, and expires between two others. Probes visit
//! the idle ones until all are active, then stop. The module waits for the flow-removed messages, and sends a last
//! probe for each entry to verify its expiry.
//!
//! Source: metric C15 of the method; the timer test of OFLOPS.
//!
//! Invariant: an entry whose last probe was lost gives no idle timeout.

use std::ops::Range;

use openflow::model::message::Message;
use openflow::model::{FlowMod, FlowModFlags, FlowRemoved, FlowRemovedReason, PRIORITY_DEFAULT};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, FrameFilter, MeasuredValue, MessageRange, Module, ModuleContext,
    ModuleRequirements, SendSpan, TimerId,
};
use tester::stream::Stream;

use super::activation::{Activation, UncertainTime};
use super::requests::{Answer, PATIENCE_LIMIT, PendingRequests, hear_news};
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::{FAR, NEAR, RULES_MAX, Rules};
use super::summary::Summary;
use super::updates;
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis.
pub const AXIS: &str = "rules";

/// Streams of probes for entries with a hard timeout, and for those with an idle timeout.
const HARD: u16 = 1;
const IDLE: u16 = 2;

/// Minimum time for which probes run before entries are added, and time to wait for the last probes.
const LEAD: Nanos = Nanos::from_millis(50);

/// Maximum time to add the entries.
const ADDING: Nanos = Nanos::from_secs(30);

/// Settings of the timeout test.
#[derive(Debug, Clone)]
pub struct Expiry {
    /// Entries: half have a hard timeout, the others an idle timeout.
    pub rules: Rules,
    /// Timeout, in seconds.
    pub timeout_s: u16,
    /// Probes per second, for either half.
    pub probes_pps: f64,
    /// Size of a probe in bytes, including the frame check sequence.
    pub frame_bytes: usize,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time by which entries may exceed their timeout.
    pub patience: Nanos,
}

/// State of the module.
pub struct FlowTimeouts {
    expiry: Expiry,
    pending: PendingRequests,
    emptying: Option<MessageRange>,
    adding: Option<MessageRange>,
    phase: Phase,
    timer: Option<TimerId>,
    /// Times at which entries with a hard timeout became active and expired.
    began: Activation,
    ceased: Activation,
    idle: Vec<LastForwarded>,
    /// Highest sequence number of a returned probe of an idle entry before these probes stopped.
    idle_number_last: u64,
    told: Vec<Option<ReceivedRemoval>>,
    /// Flow-removed messages for unknown entries, or for a reason other than a timeout.
    strange: u64,
    /// Last probes that idle entries still forwarded after their flow-removed message.
    still_acting: u64,
    errors: u64,
}

/// Last probe that an entry with an idle timeout forwarded: sequence number, departure time, arrival time.
#[derive(Debug, Clone, Copy, Default)]
struct LastForwarded(Option<(u64, Nanos, Nanos)>);

/// Flow-removed message of an entry, and its arrival time.
#[derive(Debug, Clone, Copy)]
struct ReceivedRemoval {
    at: Nanos,
    age: Nanos,
}

/// Phases of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// The tables are being cleared.
    Emptying,
    /// Probes run without entries.
    Quiet,
    /// The entries were sent.
    Adding,
    /// Probes visit every idle entry once more.
    Visiting,
    /// Entries expire.
    Ending,
    /// A last probe for each idle entry is sent.
    Checking,
}

impl Expiry {
    /// Returns the number of entries with a hard timeout, which come first.
    fn hard(&self) -> u32 {
        self.rules.count() / 2
    }

    /// Returns the number of entries with an idle timeout.
    fn idle(&self) -> u32 {
        self.rules.count() - self.hard()
    }

    fn timeout(&self) -> Nanos {
        Nanos::from_secs(self.timeout_s.into())
    }

    /// Returns the time in which the probes visit every entry once.
    fn round(&self) -> Nanos {
        Nanos::from_secs_f64(f64::from(self.idle()) / self.probes_pps)
    }

    /// Creates the stream of probes for these entries.
    fn probes(&self, id: u16, places: Range<u32>) -> Stream {
        self.rules.visits(id, places, self.frame_bytes, self.probes_pps)
    }

    /// Adds an entry with a flow-removed flag; its cookie identifies it.
    fn add(&self, place: u32) -> Message {
        let is_hard = place < self.hard();
        let (hard_timeout_s, idle_timeout_s) =
            if is_hard { (self.timeout_s, 0) } else { (0, self.timeout_s) };
        Message::FlowMod(FlowMod {
            hard_timeout_s,
            idle_timeout_s,
            flags: FlowModFlags::SEND_FLOW_REMOVED,
            cookie: u64::from(place) + 1,
            ..self.rules.add(place, PRIORITY_DEFAULT)
        })
    }
}

impl FlowTimeouts {
    /// Creates the module.
    pub fn new(expiry: Expiry) -> FlowTimeouts {
        FlowTimeouts {
            pending: PendingRequests::default(),
            emptying: None,
            adding: None,
            phase: Phase::Emptying,
            timer: None,
            began: Activation::new(expiry.hard()),
            ceased: Activation::new(expiry.hard()),
            idle: vec![LastForwarded::default(); expiry.idle() as usize],
            idle_number_last: 0,
            told: vec![None; expiry.rules.count() as usize],
            strange: 0,
            still_acting: 0,
            errors: 0,
            expiry,
        }
    }

    fn prepare(&mut self, context: &mut ModuleContext) {
        let (hard, idle) = (self.expiry.hard(), self.expiry.idle());
        context.prepare(self.expiry.probes(HARD, 0..hard));
        context.prepare(self.expiry.probes(IDLE, hard..hard + idle));
        for port in [NEAR, FAR] {
            context.watch(port, FrameFilter::Streams(vec![HARD, IDLE]));
        }
        let mut messages = Rules::emptied();
        messages.extend([hear_news(), Message::BarrierRequest]);
        self.emptying = Some(self.pending.ask(context, 0, messages));
    }

    fn answered(&mut self, answer: &Answer, context: &mut ModuleContext) {
        if self.emptying == Some(answer.said) {
            self.phase = Phase::Quiet;
            context.begin(HARD, SendSpan::OPEN);
            context.begin(IDLE, SendSpan::OPEN);
            self.timer = Some(context.timer_in(self.expiry.round().saturating_add(LEAD)));
        } else if self.adding == Some(answer.said) {
            self.phase = Phase::Visiting;
            self.errors = answer.errors.into();
            self.timer = Some(context.timer_in(self.expiry.round().saturating_add(LEAD)));
        }
    }

    fn timed(&mut self, timer: TimerId, context: &mut ModuleContext) {
        if self.timer != Some(timer) {
            return;
        }
        match self.phase {
            Phase::Emptying | Phase::Adding => {}
            Phase::Quiet => {
                self.phase = Phase::Adding;
                let mut messages: Vec<Message> =
                    (0..self.expiry.rules.count()).map(|place| self.expiry.add(place)).collect();
                messages.push(Message::BarrierRequest);
                self.adding = Some(self.pending.ask(context, 0, messages));
            }
            Phase::Visiting => {
                self.phase = Phase::Ending;
                context.stop(IDLE);
                let most = self.expiry.timeout().saturating_add(self.expiry.patience);
                self.timer = Some(context.timer_in(most));
            }
            Phase::Ending => self.check(context),
            Phase::Checking if self.has_all() => context.end(),
            Phase::Checking => context.end_by_limit(PATIENCE_LIMIT),
        }
    }

    /// Sends a last probe for each idle entry.
    fn check(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Checking;
        self.timer.take().map(|timer| context.cancel(timer));
        context.stop(HARD);
        context.begin(IDLE, SendSpan::frames(self.expiry.idle().into()));
        self.timer = Some(context.timer_in(self.expiry.round().saturating_add(LEAD)));
    }

    /// Returns whether every entry expired with a flow-removed message.
    fn has_all(&self) -> bool {
        self.ceased.is_complete() && self.told.iter().all(Option::is_some)
    }

    fn check_if_over(&mut self, context: &mut ModuleContext) {
        if self.phase == Phase::Ending && self.has_all() {
            self.check(context);
        }
    }

    /// Processes a probe of an entry with a hard timeout; at the far port, the entry forwarded it.
    fn hard_probed(
        &mut self,
        place: u64,
        [sent_at, at]: [Nanos; 2],
        acts: bool,
        context: &mut ModuleContext,
    ) {
        if self.phase < Phase::Adding {
            return;
        }
        let began = self.began.moment(place as usize);
        if began.is_none() || acts {
            self.began.note(place, sent_at, at, acts);
        }
        // Probes that were sent before the activation may arrive only now.
        let is_later = |began: UncertainTime| sent_at > began.at.saturating_add(began.half);
        if began.is_some_and(is_later) && self.ceased.note(place, sent_at, at, !acts) {
            self.check_if_over(context);
        }
    }

    fn idle_probed(&mut self, place: u64, number: u64, [sent_at, at]: [Nanos; 2], acts: bool) {
        if self.phase == Phase::Checking {
            let rule = (u64::from(self.expiry.hard()) + place) as usize;
            let was_told = self.told.get(rule).copied().flatten();
            self.still_acting += u64::from(acts && was_told.is_some_and(|told| sent_at > told.at));
            return;
        }
        self.idle_number_last = self.idle_number_last.max(number);
        if let Some(idle) = self.idle.get_mut(place as usize).filter(|_| acts) {
            idle.0 = Some((number, sent_at, at));
        }
    }

    fn removed(&mut self, removed: &FlowRemoved, at: Nanos, context: &mut ModuleContext) {
        let place = removed.cookie.wrapping_sub(1) as usize;
        let is_hard = place < self.expiry.hard() as usize;
        let reason =
            if is_hard { FlowRemovedReason::HardTimeout } else { FlowRemovedReason::IdleTimeout };
        match self.told.get_mut(place) {
            Some(told) if told.is_none() && removed.reason == reason => {
                *told = Some(ReceivedRemoval { at, age: removed.age });
                self.check_if_over(context);
            }
            _ => self.strange += 1,
        }
    }

    /// Reports the accuracy of hard timeouts, from the first entry on.
    fn tell_hard(&self, turn: f64, tell: &mut impl FnMut(MeasuredValue)) {
        let timeout = self.expiry.timeout().0 as f64;
        let (mut kept, mut told, mut late, mut said) =
            (UncertainValues::new(), UncertainValues::new(), UncertainValues::new(), vec![]);
        for place in 0..self.expiry.hard() as usize {
            let began = self.began.moment(place);
            let ceased = self.ceased.moment(place);
            let message = self.told[place];
            if let (Some(began), Some(ceased)) = (began, ceased) {
                kept.push(ceased.at.0 as f64 - began.at.0 as f64 - timeout, [began, ceased]);
            }
            if let (Some(began), Some(message)) = (began, message) {
                told.push(message.at.0 as f64 - began.at.0 as f64 - timeout, [began]);
                said.push(message.age.0 as f64 - timeout);
            }
            if let (Some(ceased), Some(message)) = (ceased, message) {
                late.push(message.at.0 as f64 - ceased.at.0 as f64, [ceased]);
            }
        }
        kept.tell("hard_error_ns", 0.0, tell);
        told.tell("hard_told_ns", turn, tell);
        late.tell("removed_delay_ns", turn, tell);
        if let Some(said) = Summary::of(said) {
            said.tell("hard_age_error_ns", 0.0, tell);
        }
    }

    /// Reports the accuracy of idle timeouts.
    fn tell_idle(&self, turn: f64, tell: &mut impl FnMut(MeasuredValue)) {
        let timeout = self.expiry.timeout().0 as f64;
        let mut kept = UncertainValues::new();
        let hard = self.expiry.hard() as usize;
        for (idle, told) in self.idle.iter().zip(&self.told[hard..]) {
            let (Some((number, sent_at, arrived_at)), Some(told)) = (idle.0, told) else {
                continue;
            };
            // Valid only if no later probe can have been lost on its way back.
            if number + self.idle.len() as u64 > self.idle_number_last {
                let half = Nanos(arrived_at.since(sent_at).0 / 2);
                let last = UncertainTime { at: sent_at.saturating_add(half), half };
                kept.push(told.at.0 as f64 - last.at.0 as f64 - timeout, [last]);
            }
        }
        kept.tell("idle_error_ns", turn, tell);
    }
}

/// Values and their uncertainties.
struct UncertainValues(Vec<f64>, Vec<f64>);

impl UncertainValues {
    fn new() -> UncertainValues {
        UncertainValues(Vec::new(), Vec::new())
    }

    fn push<const N: usize>(&mut self, value: f64, moments: [UncertainTime; N]) {
        self.0.push(value);
        self.1.push(moments.iter().map(|moment| moment.half.0 as f64).sum());
    }

    fn tell(self, name: &str, more: f64, tell: &mut impl FnMut(MeasuredValue)) {
        if let (Some(values), Some(halves)) = (Summary::of(self.0), Summary::of(self.1)) {
            // The smallest and the largest value may have the largest uncertainty.
            values.tell(name, halves.greatest() + more, tell);
        }
    }
}

impl Module for FlowTimeouts {
    fn needs(&self) -> ModuleRequirements {
        let rounds = Nanos(self.expiry.round().0.saturating_mul(4));
        let all = [self.expiry.timeout(), self.expiry.patience, rounds, ADDING, LEAD];
        let limit = all.into_iter().fold(Nanos::ZERO, Nanos::saturating_add);
        ModuleRequirements::new(limit).in_versions(&self.expiry.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) => self.prepare(context),
            EventKind::Timer(timer) => self.timed(timer, context),
            EventKind::Frame(arrival) => {
                let Some(probe) = arrival.probe else { return };
                let (way, acts) = ([probe.sent_at, event.at], arrival.port == FAR);
                match probe.stream {
                    HARD => self.hard_probed(probe.place, way, acts, context),
                    _ => self.idle_probed(probe.place, probe.number, way, acts),
                }
            }
            EventKind::Message { message: Message::FlowRemoved(removed), .. } => {
                self.removed(removed, event.at, context);
            }
            EventKind::Sent { said, first, .. } if self.adding == Some(said) => {
                self.began.begin(first);
            }
            _ => {}
        }
        if let Some(answer) = self.pending.note(event) {
            self.answered(&answer, context);
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        if self.phase <= Phase::Adding {
            return;
        }
        let turn = context.poll_period().0 as f64;
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        self.tell_hard(turn, &mut tell);
        self.tell_idle(turn, &mut tell);
        let all = self.told.len() as u64;
        let told: Vec<&ReceivedRemoval> = self.told.iter().flatten().collect();
        let share = told.len() as f64 / all as f64;
        tell(MeasuredValue::new("removed_told_ratio", "ratio", share, 0.0).of(all));
        let [first, last] = [told.iter().map(|it| it.at).min(), told.iter().map(|it| it.at).max()];
        if let (Some(first), Some(last)) = (first, last) {
            let span = last.since(first).0 as f64;
            tell(MeasuredValue::new("removed_span_ns", "ns", span, turn).of(told.len() as u64));
        }
        let mut count = |name: &'static str, count: u64| {
            tell(MeasuredValue::new(name, "count", count as f64, 0.0).of(all));
        };
        count("removed_strange_count", self.strange);
        count("still_acting_count", self.still_acting);
        count("errors_count", self.errors);
    }
}

const RULES: Parameter = Parameter {
    key: "rules_count",
    takes: ValueType::Integers(2, RULES_MAX),
    default: "10,1000",
    unit: "rules",
    help: "number of entries that expire at the same time: half with a hard timeout, half with an \
           idle timeout",
};

const TIMEOUT: Parameter = Parameter {
    key: "entry_timeout_s",
    takes: ValueType::Integer(1, 3600),
    default: "1",
    unit: "s",
    help: "timeout of the entries",
};

const PROBES_PPS: Parameter = Parameter {
    key: "probes_pps",
    takes: ValueType::Number(1.0, 2e7),
    default: "50000",
    unit: "frames/s",
    help: "probe rate, for all entries with a hard timeout together and for the others",
};

const FRAME: Parameter = Parameter {
    key: "probe_bytes",
    takes: ValueType::Integer(64, 1518),
    default: "96",
    unit: "bytes",
    help: "probe size, including the frame check sequence",
};

const PATIENCE: Parameter = Parameter {
    key: "timeout_s",
    takes: ValueType::Number(0.1, 600.0),
    default: "5",
    unit: "s",
    help: "additional waiting time for entries to expire after their timeout",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] =
    &[RULES, TIMEOUT, PROBES_PPS, FRAME, updates::VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Lifetime of entries beyond their timeout, by number of entries",
        &["hard_error_ns_p50", "hard_error_ns_max", "idle_error_ns_p50", "idle_error_ns_max"],
        &["hard_age_error_ns_p50", "still_acting_count"],
    ),
    Chart::values(
        "Delay of flow-removed messages after the expiry",
        &["removed_delay_ns_p50", "removed_delay_ns_max"],
        &["removed_span_ns", "removed_told_ratio", "removed_strange_count", "errors_count"],
    ),
];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let spot = |count: u64| {
        let expiry = Expiry {
            rules: Rules::new(context, count as u32),
            timeout_s: own.integer(&TIMEOUT) as u16,
            probes_pps: own.number(&PROBES_PPS),
            frame_bytes: own.integer(&FRAME) as usize,
            versions: updates::versions(context),
            patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
        };
        let seconds = f64::from(expiry.timeout_s) + 0.5;
        let make = move |_| Box::new(FlowTimeouts::new(expiry.clone())) as Box<_>;
        ModulePoint::new(count as f64, seconds, make)
    };
    let spots = own.integers(&RULES).into_iter().map(spot).collect();
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
