//! Abuse: the service of a switch to its controller while another controller sends malformed messages or floods it.
//!
//! Claim: malformed and flooding input slows the switch down for all controllers.
//!
//! Method: one controller sends echo requests and adds exact-match entries, one by one. Probes visit all entries in
//! turn and show their activation. Frames in the other direction show the forwarding rate. After a quiet period,
//! one of these runs: a second controller sends echo requests, a share of them malformed or at a set rate; or
//! frames without an entry flood the controllers. A second quiet period follows. The module reports the values of
//! the periods and their ratio.
//!
//! Source: metric C17 of the method; RFC 8456, section 5.3.
//!
//! Invariant: the first controller never sends a malformed message. If its connection closes, the switch caused it.

use std::collections::BTreeMap;

use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::{Action, Field, FlowMod, Match, PRIORITY_DEFAULT, reserved};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Connection, EncodedMessages, Ended, Event, EventKind, FrameFilter, MeasuredValue, MessageRange,
    Module, ModuleContext, ModuleRequirements, Probe, SendSpan, TestSetup, TimerId,
};

use super::pacer::{Pacer, TICK};
use super::requests::PATIENCE_LIMIT;
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::{FAR, NEAR, Rules};
use super::summary::Summary;
use super::updates::{VERSION, versions};
use crate::show::Chart;
use crate::{Context, Method};
use targets::flow_setup::{PORT_IN, PORT_OUT};
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis.
pub const AXIS: &str = "malformed_percent";

/// Connections of the regular and the misbehaving controller.
const HONEST: usize = 0;
const ABUSER: usize = 1;

/// Streams of probes, of frames without an entry, and of frames that an entry forwards in the other direction.
///
/// Only the last leave the tester's second port, so that the port counter gives their number.
const PROBES: u16 = 1;
const FLOOD: u16 = 2;
const BACK: u16 = 3;

/// Rate of the frames in the other direction, per second.
const BACK_PPS: f64 = 10_000.0;

/// Periods that are compared: quiet, abuse, quiet.
const TIMES: usize = 3;

/// Interval of new entries and of echo requests.
const RULE_EVERY: Nanos = Nanos::from_millis(5);
const ECHO_EVERY: Nanos = Nanos::from_millis(1);

/// Time to wait for frames and replies in flight.
const LINGER: Nanos = Nanos::from_millis(100);

/// Name of the limit reached when the switch closes the first controller's connection.
///
/// The measurements that need this connection are then missing.
const LOSSES_LIMIT: &str = "closed connections of the first controller (none allowed)";

/// Maximum time to wait for a barrier reply.
const PATIENCE: Nanos = Nanos::from_secs(2);

/// Delay before a closed connection is reopened, and the number of attempts.
const AGAIN: Nanos = Nanos::from_millis(5);
const AGAIN_MAX: u64 = 100;

const PERCENT: Parameter = Parameter {
    key: "malformed_percent",
    takes: ValueType::Integers(0, 100),
    default: "0,1,2,100",
    unit: "%",
    help: "share of malformed messages of the second controller",
};

const FORMS: Parameter = Parameter {
    key: "malformed",
    takes: ValueType::Words(&["type", "body", "version", "length"]),
    default: "type,body,version,length",
    unit: "",
    help: "faults of these messages, in turn: an unknown type, a truncated body, another version, \
           a length shorter than the header",
};

const FLOODS: Parameter = Parameter {
    key: "floods",
    takes: ValueType::Words(&["messages", "frames"]),
    default: "messages,frames",
    unit: "",
    help: "additional floods: messages of the second controller, or frames without a flow entry",
};

const ABUSE_PER_S: Parameter = Parameter {
    key: "abuse_per_s",
    takes: ValueType::Number(1.0, 1e7),
    default: "5000",
    unit: "messages/s",
    help: "message rate of the second controller, malformed messages included",
};

const FLOOD_PER_S: Parameter = Parameter {
    key: "flood_per_s",
    takes: ValueType::Number(1.0, 1e7),
    default: "200000",
    unit: "per second",
    help: "rate of a flood of messages or frames",
};

const TIME: Parameter = Parameter {
    key: "time",
    takes: ValueType::Number(0.02, 600.0),
    default: "0.1",
    unit: "s",
    help: "duration of each of the three periods",
};

const PROBES_PPS: Parameter = Parameter {
    key: "probes_pps",
    takes: ValueType::Number(100.0, 2e7),
    default: "50000",
    unit: "frames/s",
    help: "probe rate, all entries together",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] =
    &[PERCENT, FORMS, FLOODS, ABUSE_PER_S, FLOOD_PER_S, TIME, PROBES_PPS, VERSION];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Echo and activation delay: ratio of abuse to the quiet period (floods at 0 %)",
        &["echo_ratio", "activation_ratio", "messages_echo_ratio", "frames_echo_ratio"],
        &["messages_activation_ratio", "frames_activation_ratio"],
    ),
    Chart::values(
        "Share of forwarded frames with a flow entry",
        &["forwarded_ratio", "messages_forwarded_ratio", "frames_forwarded_ratio"],
        &["quiet_forwarded_ratio", "after_forwarded_ratio"],
    ),
    Chart::values(
        "Closed connections and errors",
        &["honest_lost_count", "abuser_lost_count"],
        &["abuser_errors_count", "malformed_count", "messages_honest_lost_count"],
    ),
];

/// Behaviour of the second controller or of the sender of frames.
#[derive(Debug, Clone, PartialEq)]
pub enum Abuse {
    /// Messages at a rate, a share of them malformed.
    Messages {
        /// Messages per second.
        per_s: f64,
        /// Share of malformed messages.
        malformed: f64,
        /// Types of malformation, used in turn.
        forms: Vec<Malformation>,
    },
    /// Frames per second that match no entry.
    Frames(f64),
}

/// Malformation of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformation {
    /// Invalid type.
    Type,
    /// Truncated body.
    Body,
    /// Invalid version.
    Version,
    /// Invalid length.
    Length,
}

/// Settings of the abuse test.
#[derive(Debug, Clone)]
pub struct AbuseSettings {
    /// Type of abuse.
    pub abuse: Abuse,
    /// Entries of the regular controller.
    pub flows: Rules,
    /// Duration of each period.
    pub time: Nanos,
    /// Probes per second.
    pub probes_pps: f64,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
}

/// State of the module.
pub struct AbuseModule {
    settings: AbuseSettings,
    version: Option<Version>,
    barrier: Option<Xid>,
    timer: Option<TimerId>,
    begun_at: Option<Nanos>,
    echoes: Pacer,
    rules: Pacer,
    abuse: Pacer,
    /// Echo requests without a reply, with the time of sending.
    open: BTreeMap<Xid, Option<Nanos>>,
    /// Transaction id of each entry, time of sending, and time at which the first probe passed by it.
    said: Vec<(Xid, Option<Nanos>, Option<Nanos>)>,
    times: [Time; TIMES],
    malformed: Vec<EncodedMessages>,
    malformed_said: u64,
    /// Fraction of a malformed message carried over to the next tick.
    owed: f64,
    lost: [u64; 2],
    abuser_errors: u64,
    /// Counter of the second port at the beginning of each period and at the end.
    sent_back: Vec<u64>,
    /// Number of counter requests sent.
    asked: usize,
    /// Largest delay of these requests.
    late: Nanos,
    is_stopped: bool,
}

/// Observations of one period.
#[derive(Debug, Clone, Default)]
struct Time {
    echoes: Vec<f64>,
    acted: Vec<f64>,
    forwarded: u64,
}

impl AbuseModule {
    /// Creates the module for one type of abuse.
    pub fn new(settings: AbuseSettings) -> AbuseModule {
        let nothing = Pacer::new(1.0, 0, Nanos::ZERO);
        AbuseModule {
            version: None,
            barrier: None,
            timer: None,
            begun_at: None,
            echoes: nothing,
            rules: nothing,
            abuse: nothing,
            open: BTreeMap::new(),
            said: Vec::new(),
            times: Default::default(),
            malformed: Vec::new(),
            malformed_said: 0,
            owed: 0.0,
            lost: [0; 2],
            abuser_errors: 0,
            sent_back: Vec::new(),
            asked: 0,
            late: Nanos::ZERO,
            is_stopped: false,
            settings,
        }
    }

    fn prepare(&mut self, facts: &TestSetup, context: &mut ModuleContext) {
        self.version = facts.version(HONEST);
        let flows = &self.settings.flows;
        let is_flood = matches!(self.settings.abuse, Abuse::Frames(_));
        let below = if is_flood { vec![Action::output(reserved::CONTROLLER)] } else { Vec::new() };
        let below = FlowMod::add(Match::ANY, 0, below);
        let drops = flows.probes(PROBES, 64, self.settings.probes_pps);
        // Probes of entries that are not installed yet are dropped and do not flood the controller.
        let quiet = FlowMod::add(Rules::all(), 1, Vec::new());
        let back = Match::ANY.with(Field::InPort, PORT_OUT);
        let back = FlowMod::add(back, 2, vec![Action::output(PORT_IN.into())]);
        let rules = [Rules::cleared(self.version), below, quiet, back];
        let mut messages: Vec<Message> = rules.map(Message::FlowMod).into();
        messages.push(Message::BarrierRequest);
        self.barrier = context.send_all(HONEST, messages).xids().last();
        self.timer = Some(context.timer_in(PATIENCE));
        context.prepare(drops);
        if let Abuse::Frames(pps) = self.settings.abuse {
            context.prepare(flows.strangers(FLOOD, 64, pps));
        }
        let mut back = flows.visits(BACK, 0..1, 64, BACK_PPS);
        (back.from, back.to) = (FAR, NEAR);
        context.prepare(back);
        context.watch(FAR, FrameFilter::Streams(vec![PROBES]));
        context.watch(NEAR, FrameFilter::Streams(vec![BACK]));
        let wire = facts.version(ABUSER).map_or(4, Version::wire);
        if let Abuse::Messages { forms, .. } = &self.settings.abuse {
            self.malformed = forms.iter().map(|form| context.raw(form.bytes(wire))).collect();
        }
    }

    fn begin(&mut self, context: &mut ModuleContext) {
        let now = context.now();
        self.begun_at = Some(now);
        let times = self.settings.time.0 * TIMES as u64;
        let every = |span: Nanos| Pacer::new(1e9 / span.0 as f64, times / span.0, now);
        (self.echoes, self.rules) = (every(ECHO_EVERY), every(RULE_EVERY));
        let from = now.saturating_add(self.settings.time);
        if let Abuse::Messages { per_s, .. } = self.settings.abuse {
            self.abuse = Pacer::over(per_s, self.settings.time, from);
        }
        self.count(context);
        context.begin(BACK, SendSpan::OPEN);
        context.begin(PROBES, SendSpan::OPEN);
        if let Abuse::Frames(_) = self.settings.abuse {
            let until = from.saturating_add(self.settings.time);
            context.begin(FLOOD, SendSpan { from: Some(from), until: Some(until), frames: None });
        }
        self.timer = Some(context.timer_in(TICK));
    }

    /// Returns the period that contains this time.
    fn time(&mut self, at: Nanos) -> Option<&mut Time> {
        let since = at.since(self.begun_at.filter(|begun| at >= *begun)?);
        self.times.get_mut((since.0 / self.settings.time.0) as usize)
    }

    /// Reads the counter of sent frames at the beginning of a period.
    fn count(&mut self, context: &mut ModuleContext) {
        let begun_at = self.begun_at.unwrap_or(context.now());
        let due = begun_at.saturating_add(Nanos(self.settings.time.0 * self.asked as u64));
        if self.asked <= TIMES && context.now() >= due {
            self.asked += 1;
            self.late = self.late.max(context.now().since(due));
            context.counters();
        }
    }

    /// Sends the messages that are due and sets the next timer.
    fn send(&mut self, context: &mut ModuleContext) {
        let now = context.now();
        self.count(context);
        for number in self.echoes.due(now) {
            let xid = context.send(HONEST, Message::EchoRequest(number.to_be_bytes().to_vec()));
            self.open.insert(xid, None);
        }
        for number in self.rules.due(now) {
            let rule = rule(&self.settings.flows, number as u32);
            self.said.push((context.send(HONEST, Message::FlowMod(rule)), None, None));
        }
        self.abuse(context);
        let Some(begun_at) = self.begun_at else { return };
        let over_at = begun_at.saturating_add(Nanos(self.settings.time.0 * TIMES as u64));
        if now >= over_at.saturating_add(LINGER) {
            // The replies to the last requests have arrived by now, if there are any.
            return match self.open.is_empty() {
                true => context.end(),
                false => context.end_by_limit(PATIENCE_LIMIT),
            };
        }
        if now >= over_at && !std::mem::replace(&mut self.is_stopped, true) {
            context.stop(PROBES);
            context.stop(BACK);
        }
        self.timer = Some(context.timer_in(TICK));
    }

    /// Sends the messages of the second controller.
    fn abuse(&mut self, context: &mut ModuleContext) {
        let Abuse::Messages { malformed, .. } = self.settings.abuse else { return };
        let now = context.now();
        if now < self.abuse.begun_at() {
            return;
        }
        for number in self.abuse.due(now) {
            self.owed += malformed;
            match self.owed >= 1.0 && !self.malformed.is_empty() {
                true => {
                    self.owed -= 1.0;
                    let form = self.malformed_said as usize % self.malformed.len();
                    self.malformed_said += 1;
                    context.send_encoded(ABUSER, &self.malformed[form]);
                }
                false => {
                    context.send(ABUSER, Message::EchoRequest(number.to_be_bytes().to_vec()));
                }
            }
        }
    }

    fn sent(&mut self, connection: usize, said: MessageRange, first: Nanos) {
        if connection != HONEST {
            return;
        }
        if let Some(sent) = self.open.get_mut(&said.xid) {
            *sent = Some(first);
        } else if let Ok(place) = self.said.binary_search_by_key(&said.xid, |(xid, ..)| *xid) {
            self.said[place].1 = Some(first);
        }
    }

    fn echoed(&mut self, xid: Xid, at: Nanos, is_known: bool) {
        let Some(Some(first)) = self.open.remove(&xid) else { return };
        if let Some(time) = self.time(first).filter(|_| is_known) {
            time.echoes.push(at.since(first).0 as f64);
        }
    }

    /// Records a probe that an installed entry forwarded.
    fn came(&mut self, probe: Probe, at: Nanos) {
        if probe.stream == BACK {
            if let Some(time) = self.time(probe.sent_at) {
                time.forwarded += 1;
            }
            return;
        }
        let rule = self.said.get_mut(probe.place as usize);
        if let Some((_, _, acts_at)) = rule.filter(|_| probe.is_delay_known) {
            acts_at.get_or_insert(at);
        }
    }

    /// Assigns the entries to the periods in which they were sent.
    fn sort(&mut self) {
        for (_, said_at, acts_at) in std::mem::take(&mut self.said) {
            let Some((said_at, acts_at)) = said_at.zip(acts_at) else { continue };
            if let Some(time) = self.time(said_at) {
                time.acted.push(acts_at.since(said_at).0 as f64);
            }
        }
    }

    fn lost(&mut self, connection: usize, context: &mut ModuleContext) {
        self.lost[connection] += 1;
        if connection == HONEST {
            context.end_by_limit(LOSSES_LIMIT);
        } else if self.lost[ABUSER] <= AGAIN_MAX {
            context.timer_in(AGAIN);
        }
    }

    /// Returns the uncertainty of activation times: half the time between two probes of an entry.
    fn half(&self) -> f64 {
        f64::from(self.settings.flows.count()) / self.settings.probes_pps * 1e9 / 2.0
    }

    fn tell(&self, context: &mut ModuleContext) {
        let half = self.half();
        let turn = context.poll_period().0 as f64;
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        let middle = |samples: &[f64]| Summary::of(samples.to_vec()).map(|it| it.quantile(0.5));
        let mut ratio = |name: &'static str, half: f64, pick: fn(&Time) -> &Vec<f64>| {
            let [quiet, abused, _] = self.times.each_ref().map(|time| middle(pick(time)));
            let (Some(quiet), Some(abused)) = (quiet, abused) else { return };
            if quiet > 0.0 {
                let ratio = abused / quiet;
                tell(MeasuredValue::new(name, "ratio", ratio, half / quiet * ratio));
            }
        };
        ratio("echo_ratio", turn, |time| &time.echoes);
        ratio("activation_ratio", half, |time| &time.acted);
        for (place, (time, name)) in self.times.iter().zip(["quiet_", "", "after_"]).enumerate() {
            if let Some(echoes) = Summary::of(time.echoes.clone()) {
                echoes.tell(&format!("{name}echo_ns"), turn, &mut tell);
            }
            if let Some(acted) = Summary::of(time.acted.clone()) {
                acted.tell(&format!("{name}activation_ns"), half, &mut tell);
            }
            let sent = self.sent_back.get(place + 1).zip(self.sent_back.get(place));
            let sent = sent.map_or(0, |(after, before)| after.saturating_sub(*before));
            if sent > 0 {
                let share = time.forwarded as f64 / sent as f64;
                // The counters are read on a timer, which may be late.
                let late = self.late.saturating_add(TICK).as_secs_f64();
                let half = 2.0 * (late * BACK_PPS).ceil() / sent as f64;
                let named =
                    MeasuredValue::new(format!("{name}forwarded_ratio"), "ratio", share, half);
                tell(named.of(sent));
            }
        }
        let unanswered = self.open.len() as f64;
        for (name, value) in [
            ("unanswered_count", unanswered),
            ("honest_lost_count", self.lost[HONEST] as f64),
            ("abuser_lost_count", self.lost[ABUSER] as f64),
            ("abuser_errors_count", self.abuser_errors as f64),
            ("malformed_count", self.malformed_said as f64),
        ] {
            tell(MeasuredValue::new(name, "count", value, 0.0));
        }
    }
}

/// Returns the exact-match entry for this place, which forwards frames.
fn rule(flows: &Rules, place: u32) -> FlowMod {
    FlowMod::add(flows.exact(place), PRIORITY_DEFAULT, vec![Action::output(PORT_OUT.into())])
}

impl Malformation {
    /// Builds a malformed message of this version: version, type, length, transaction id, body.
    fn bytes(self, wire: u8) -> Vec<u8> {
        let header = |version, kind, length: u8| vec![version, kind, 0, length, 0, 0, 0, 9];
        match self {
            Malformation::Type => header(wire, 99, 8),
            // A flow-mod is much longer.
            Malformation::Body => [header(wire, 14, 16), vec![0xff; 8]].concat(),
            Malformation::Version => header(0x63, 2, 8),
            Malformation::Length => header(wire, 2, 4),
        }
    }
}

impl Module for AbuseModule {
    fn needs(&self) -> ModuleRequirements {
        let limit = Nanos(self.settings.time.0 * 4).saturating_add(Nanos::from_secs(10));
        let connections = vec![Connection::new(0), Connection::new(0)];
        let needs = ModuleRequirements::new(limit);
        let needs = ModuleRequirements { connections, stops_on_disconnect: false, ..needs };
        needs.in_versions(&self.settings.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => self.prepare(facts, context),
            EventKind::Sent { connection, said, first, .. } => self.sent(connection, said, first),
            EventKind::Message { connection: HONEST, xid, message, is_timestamp_valid, .. } => {
                match message {
                    Message::BarrierReply if self.barrier == Some(xid) => {
                        self.barrier = None;
                        self.timer.take().map(|timer| context.cancel(timer));
                        self.begin(context);
                    }
                    Message::EchoReply(_) => self.echoed(xid, event.at, is_timestamp_valid),
                    _ => {}
                }
            }
            EventKind::Message { message: Message::Error(_), .. } => self.abuser_errors += 1,
            EventKind::Frame(arrival) => {
                if let Some(probe) = arrival.probe {
                    self.came(probe, event.at);
                }
            }
            EventKind::Counters(counters) => {
                self.sent_back.extend(counters.get(FAR).map(|it| it.tx_frames));
            }
            EventKind::Disconnected { connection, .. } => self.lost(connection, context),
            EventKind::Timer(timer) if self.timer == Some(timer) => match self.begun_at {
                None => context.end_by_limit(PATIENCE_LIMIT),
                Some(_) => self.send(context),
            },
            // The only other timer reopens a closed connection.
            EventKind::Timer(_) => context.connect(ABUSER),
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        self.sort();
        self.tell(context);
    }
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let time = Nanos::from_secs_f64(own.number(&TIME));
    let rules = (time.0 * TIMES as u64 / RULE_EVERY.0) as u32;
    let form = |word: &str| match word {
        "type" => Malformation::Type,
        "body" => Malformation::Body,
        "version" => Malformation::Version,
        _ => Malformation::Length,
    };
    let forms: Vec<Malformation> = own.words(&FORMS).map(form).collect();
    let spot = |x: f64, abuse: Abuse| {
        let settings = AbuseSettings {
            abuse,
            flows: Rules::new(context, rules),
            time,
            probes_pps: own.number(&PROBES_PPS),
            versions: versions(context),
        };
        let make = move |_| Box::new(AbuseModule::new(settings.clone())) as Box<_>;
        ModulePoint::new(x, time.as_secs_f64() * TIMES as f64, make)
    };
    let messages = |per_s, malformed| Abuse::Messages { per_s, malformed, forms: forms.clone() };
    let mut spots = Vec::new();
    for percent in own.integers(&PERCENT) {
        let share = percent as f64 / 100.0;
        spots.push(spot(percent as f64, messages(own.number(&ABUSE_PER_S), share)));
    }
    let flood = own.number(&FLOOD_PER_S);
    for what in own.words(&FLOODS) {
        spots.push(match what {
            "frames" => spot(0.0, Abuse::Frames(flood)).named("frames_"),
            _ => spot(0.0, messages(flood, 0.0)).named("messages_"),
        });
    }
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
