//! Statistics reply time of each type of statistics, over the number of entries, load and request interval.
//!
//! Claim: the cost of flow statistics grows with the number of entries, and replies are later while the data plane
//! is busy.
//!
//! Method: the module installs entries, groups and meters. Frames visit the entries at the requested load. The
//! module requests each type of statistics in turn: after the last part of the previous reply, or at a set interval
//! per type. Without load, it also requests flow and aggregate statistics before it fills the tables. The
//! difference is the cost of each entry.
//!
//! Source: metric C10 of the method; costa2017, tables VII and VIII; the flow, aggregate and port statistics
//! modules of OFLOPS.

use openflow::model::message::Message;
use openflow::model::{
    Action, Bucket, GROUP_ALL, GROUP_ANY, GroupKind, GroupMod, GroupModCommand, METER_ALL, Match,
    MeterBand, MeterBandKind, MeterFlags, MeterMod, MeterModCommand, PRIORITY_DEFAULT, reserved,
};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, MeasuredValue, MessageRange, Module, ModuleContext,
    ModuleRequirements, SendSpan, TimerId,
};

use super::requests::{Answer, Delays, PATIENCE_LIMIT, PendingRequests};
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::{RULES_MAX, Rules};
use super::statistics::Statistic;
use super::updates;
use crate::show::Chart;
use crate::{Context, Method};
use targets::flow_setup::PORT_OUT;
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis.
pub const AXIS: &str = "rules";

/// The stream that loads the data plane.
const LOAD: u16 = 1;

/// Time for which the load runs before the first request.
const LEAD: Nanos = Nanos::from_millis(20);

/// Requests of each type before the tables are filled.
const BASE_REQUESTS: usize = 5;

/// Maximum time to fill the tables.
const FILLING: Nanos = Nanos::from_secs(30);

/// Rate limit of a meter, in packets per second.
const METER_PPS: u32 = 1_000_000;

/// Settings of the statistics test.
#[derive(Debug, Clone)]
pub struct StatsDelaySettings {
    /// Entries.
    pub rules: Rules,
    /// Number of groups, and of meters, in versions that have them.
    pub groups: u32,
    /// Types of statistics.
    pub statistics: Vec<Statistic>,
    /// Requests of each type.
    pub requests: u32,
    /// Interval of requests of a type; `None` if each follows the last reply.
    pub pace: Option<Nanos>,
    /// Frames per second that visit the entries; 0 for none.
    pub load_pps: f64,
    /// Size of a frame in bytes, including the frame check sequence.
    pub frame_bytes: usize,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time to wait for a reply.
    pub patience: Nanos,
}

/// State of the module.
pub struct StatsDelay {
    settings: StatsDelaySettings,
    version: Version,
    pending: PendingRequests,
    /// Types that the version supports, and their reply times.
    kinds: Vec<(Statistic, Delays)>,
    /// Reply times of flow-related types with only the table-miss entry.
    base: Vec<(Statistic, Delays)>,
    /// Messages that fill the tables, until they are sent.
    fill: Vec<Message>,
    /// Number of requests before the tables are filled.
    base_count: usize,
    filling: Option<MessageRange>,
    /// Outstanding request.
    asked: Option<MessageRange>,
    /// Number of requests sent.
    count: usize,
    begun_at: Nanos,
    timer: Option<TimerId>,
    errors: u64,
    /// Requests without a reply since the last reply, and whether there was any reply.
    unanswered: usize,
    is_unanswered: bool,
}

impl StatsDelay {
    /// Creates the module.
    pub fn new(settings: StatsDelaySettings) -> StatsDelay {
        StatsDelay {
            settings,
            version: Version::V1_3,
            pending: PendingRequests::default(),
            kinds: Vec::new(),
            base: Vec::new(),
            fill: Vec::new(),
            base_count: 0,
            filling: None,
            asked: None,
            count: 0,
            begun_at: Nanos::ZERO,
            timer: None,
            errors: 0,
            unanswered: 0,
            is_unanswered: false,
        }
    }

    /// Clears the tables, followed by a barrier request.
    fn prepare(&mut self, version: Option<Version>, context: &mut ModuleContext) {
        self.version = version.unwrap_or(self.version);
        let settings = &self.settings;
        let mut messages = Rules::emptied();
        messages.extend(emptied());
        let add = |place| Message::FlowMod(settings.rules.add(place, PRIORITY_DEFAULT));
        self.fill = (0..settings.rules.count()).map(add).collect();
        messages.extend((1..=settings.groups).flat_map(|number| [group(number), meter(number)]));
        // Messages that the version cannot express are left out.
        messages.retain(|message| can_say(self.version, message, context));
        messages.push(Message::BarrierRequest);
        let known =
            |it: &&Statistic| can_say(self.version, &it.ask(self.version, Match::ANY), context);
        let kinds = settings.statistics.iter().filter(known);
        self.kinds = kinds.map(|&kind| (kind, Delays::default())).collect();
        if settings.load_pps == 0.0 && settings.pace.is_none() {
            let rows = self.kinds.iter().filter(|(kind, _)| kind.counts_rules());
            self.base = rows.cloned().collect();
        }
        if settings.load_pps > 0.0 {
            context.prepare(settings.rules.probes(LOAD, settings.frame_bytes, settings.load_pps));
        }
        self.filling = Some(self.pending.ask(context, 0, messages));
    }

    /// Requests flow-related statistics while there are no entries, then fills the tables.
    fn ask_base(&mut self, context: &mut ModuleContext) {
        if self.base_count < self.base.len() * BASE_REQUESTS {
            let (kind, _) = self.base[self.base_count % self.base.len()];
            self.base_count += 1;
            return self.put(kind, context);
        }
        let mut messages = std::mem::take(&mut self.fill);
        messages.push(Message::BarrierRequest);
        self.filling = Some(self.pending.ask(context, 0, messages));
    }

    fn begin(&mut self, filled: &Answer, context: &mut ModuleContext) {
        self.filling = None;
        self.errors += u64::from(filled.errors);
        if !self.fill.is_empty() {
            return self.ask_base(context);
        }
        if self.settings.load_pps > 0.0 {
            context.begin(LOAD, SendSpan::OPEN);
        }
        self.begun_at = context.now().saturating_add(LEAD);
        self.timer = Some(context.timer_at(self.begun_at));
    }

    /// Sends the next request, or ends the module.
    fn go_on(&mut self, context: &mut ModuleContext) {
        let kinds = self.kinds.len();
        if self.count >= kinds * self.settings.requests as usize {
            return match self.is_unanswered {
                true => context.end_by_limit(PATIENCE_LIMIT),
                false => context.end(),
            };
        }
        let due = self.due();
        if context.now() < due {
            self.timer = Some(context.timer_at(due));
            return;
        }
        let (kind, _) = self.kinds[self.count % kinds];
        self.count += 1;
        self.put(kind, context);
    }

    fn put(&mut self, kind: Statistic, context: &mut ModuleContext) {
        let message = kind.ask(self.version, Match::ANY);
        self.asked = Some(self.pending.ask(context, 0, vec![message]));
        self.timer = Some(context.timer_in(self.settings.patience));
    }

    /// Sends the next request of the current phase.
    fn next(&mut self, context: &mut ModuleContext) {
        if self.fill.is_empty() { self.go_on(context) } else { self.ask_base(context) }
    }

    /// Returns the time at which the next request is due.
    fn due(&self) -> Nanos {
        let Some(pace) = self.settings.pace else { return self.begun_at };
        let share = self.count as f64 / self.kinds.len().max(1) as f64;
        self.begun_at.saturating_add(Nanos::from_secs_f64(pace.as_secs_f64() * share))
    }

    fn timed(&mut self, timer: TimerId, context: &mut ModuleContext) {
        if self.timer != Some(timer) {
            return;
        }
        if let Some(asked) = self.asked.take() {
            self.pending.give_up(0, asked);
            self.last().unanswered += 1;
            (self.unanswered, self.is_unanswered) = (self.unanswered + 1, true);
            // A switch may not reply to one type. One that replies to no type has stopped replying altogether.
            let kinds = if self.fill.is_empty() { self.kinds.len() } else { self.base.len() };
            return match self.unanswered >= kinds {
                true => context.end_by_limit(PATIENCE_LIMIT),
                false => self.next(context),
            };
        }
        self.go_on(context);
    }

    /// Returns the reply times of the type requested last.
    fn last(&mut self) -> &mut Delays {
        if !self.fill.is_empty() {
            let place = (self.base_count - 1) % self.base.len();
            return &mut self.base[place].1;
        }
        let place = (self.count - 1) % self.kinds.len();
        &mut self.kinds[place].1
    }

    fn answered(&mut self, answer: &Answer, context: &mut ModuleContext) {
        if self.filling == Some(answer.said) {
            return self.begin(answer, context);
        }
        if self.asked == Some(answer.said) {
            self.asked = None;
            self.timer.take().map(|timer| context.cancel(timer));
            self.last().note(answer);
            self.unanswered = 0;
            self.next(context);
        }
    }

    /// Reports the reply time per entry, if the reply time without entries is known.
    fn tell_rules(
        &self,
        kind: Statistic,
        delays: &Delays,
        turn: f64,
        tell: &mut impl FnMut(MeasuredValue),
    ) {
        let base = self.base.iter().find(|(other, _)| *other == kind);
        let spreads = base.and_then(|(_, base)| base.spread()).zip(delays.spread());
        let Some((before, full)) = spreads else { return };
        let rules = f64::from(self.settings.rules.count());
        let mean = (full.quantile(0.5) - before.quantile(0.5)) / rules;
        let half = (full.quartiles_half() + before.quartiles_half() + 2.0 * turn) / rules;
        let named = MeasuredValue::new(format!("{}_rule_ns_mean", kind.word()), "ns", mean, half);
        tell(named.of(full.count()));
    }
}

impl Module for StatsDelay {
    fn needs(&self) -> ModuleRequirements {
        let kinds = self.settings.statistics.len() as u64;
        let one = self.settings.patience.max(self.settings.pace.unwrap_or(Nanos::ZERO));
        let requests = u64::from(self.settings.requests) + BASE_REQUESTS as u64;
        let all = Nanos(one.0.saturating_mul(kinds * requests));
        ModuleRequirements::new(FILLING.saturating_add(all)).in_versions(&self.settings.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => self.prepare(facts.version(0), context),
            EventKind::Timer(timer) => self.timed(timer, context),
            _ => {
                if let Some(answer) = self.pending.note(event) {
                    self.answered(&answer, context);
                }
            }
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        let turn = context.poll_period().0 as f64;
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        for (kind, delays) in &self.kinds {
            tell_kind(*kind, delays, turn, &mut tell);
            self.tell_rules(*kind, delays, turn, &mut tell);
        }
        tell(MeasuredValue::new("errors_count", "count", self.errors as f64, 0.0));
    }
}

/// Reports one type, unless the switch rejects it.
fn tell_kind(kind: Statistic, delays: &Delays, turn: f64, tell: &mut impl FnMut(MeasuredValue)) {
    let word = kind.word();
    if delays.asked() == 0 {
        return;
    }
    delays.tell(&format!("{word}_reply_ns"), turn, tell);
    delays.tell_first(&format!("{word}_first_part_ns"), turn, tell);
    let mut say = |what: &'static str, unit: &'static str, value: f64| {
        let named = MeasuredValue::new(format!("{word}_{what}"), unit, value, 0.0);
        tell(named.of(delays.asked()));
    };
    say("answered_ratio", "ratio", delays.answered() as f64 / delays.asked() as f64);
    if delays.answered() > 0 {
        say("reply_bytes", "bytes", delays.bytes as f64);
        say("reply_rows", "rows", delays.rows as f64);
    }
}

/// Returns whether a version can express a message.
fn can_say(version: Version, message: &Message, context: &mut ModuleContext) -> bool {
    context.encode(version, std::slice::from_ref(message)).is_ok()
}

/// Deletes all groups and meters.
fn emptied() -> [Message; 2] {
    let (command, group) = (GroupModCommand::Delete, GROUP_ALL);
    let groups = GroupMod { command, group, ..GroupMod::default() };
    let (command, meter) = (MeterModCommand::Delete, METER_ALL);
    let meters = MeterMod { command, meter, ..MeterMod::default() };
    [Message::GroupMod(groups), Message::MeterMod(meters)]
}

fn group(number: u32) -> Message {
    let bucket = Bucket {
        id: 1,
        weight: 0,
        watch_port: reserved::NONE,
        watch_group: GROUP_ANY,
        actions: vec![Action::output(PORT_OUT.into())],
        experimenter: Vec::new(),
    };
    let kind = GroupKind::Indirect;
    Message::GroupMod(GroupMod {
        kind,
        group: number,
        buckets: vec![bucket],
        ..GroupMod::default()
    })
}

fn meter(number: u32) -> Message {
    let bands = vec![MeterBand { rate: METER_PPS, burst: 0, kind: MeterBandKind::Drop }];
    Message::MeterMod(MeterMod {
        flags: MeterFlags::PKTPS | MeterFlags::STATS,
        meter: number,
        bands,
        ..MeterMod::default()
    })
}

const RULES: Parameter = Parameter {
    key: "rules_count",
    takes: ValueType::Integers(1, RULES_MAX),
    default: "10,1000",
    unit: "rules",
    help: "number of entries",
};

const GROUPS: Parameter = Parameter {
    key: "groups_count",
    takes: ValueType::Integer(0, 4096),
    default: "16",
    unit: "groups",
    help: "number of groups, and of meters",
};

const STATISTICS: Parameter = Parameter {
    key: "statistics",
    takes: ValueType::Words(Statistic::WORDS),
    default: "flow,aggregate,table,port,queue,group,meter",
    unit: "",
    help: "types of statistics to request",
};

const REQUESTS: Parameter = Parameter {
    key: "requests",
    takes: ValueType::Integer(1, 100_000),
    default: "10",
    unit: "requests",
    help: "requests of each type, back to back",
};

const PACED: Parameter = Parameter {
    key: "paced_requests",
    takes: ValueType::Integer(0, 100_000),
    default: "2",
    unit: "requests",
    help: "requests of each type at an interval; 0 means none",
};

const PACE: Parameter = Parameter {
    key: "pace",
    takes: ValueType::Number(0.001, 3600.0),
    default: "1",
    unit: "s",
    help: "interval between two requests of one type",
};

const LOADS: Parameter = Parameter {
    key: "load_pps",
    takes: ValueType::Integers(0, 20_000_000),
    default: "0,10000,200000",
    unit: "frames/s",
    help: "rates of frames that visit the entries: none, low, high",
};

const FRAME: Parameter = Parameter {
    key: "probe_bytes",
    takes: ValueType::Integer(64, 1518),
    default: "96",
    unit: "bytes",
    help: "size of these frames, including the frame check sequence",
};

const PATIENCE: Parameter = Parameter {
    key: "timeout_s",
    takes: ValueType::Number(0.1, 600.0),
    default: "5",
    unit: "s",
    help: "timeout of a reply",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] =
    &[RULES, GROUPS, STATISTICS, REQUESTS, PACED, PACE, LOADS, FRAME, updates::VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Statistics reply time, back to back, by number of entries",
        &["flow_reply_ns_p50", "aggregate_reply_ns_p50", "table_reply_ns_p50", "port_reply_ns_p50"],
        &["flow_first_part_ns_p50", "flow_reply_rows", "flow_reply_bytes", "flow_answered_ratio"],
    ),
    Chart::values(
        "Reply time of queue, group and meter statistics",
        &["queue_reply_ns_p50", "group_reply_ns_p50", "meter_reply_ns_p50"],
        &["queue_reply_rows", "group_reply_rows", "meter_reply_rows", "errors_count"],
    ),
    Chart::values(
        "Statistics reply time at an interval, without load",
        &["paced_flow_reply_ns_p50", "paced_aggregate_reply_ns_p50", "paced_port_reply_ns_p50"],
        &["paced_flow_answered_ratio"],
    ),
];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let settings =
        |rules: u64, load_pps: u64, requests: u64, pace: Option<Nanos>| StatsDelaySettings {
            rules: Rules::new(context, rules as u32),
            groups: own.integer(&GROUPS) as u32,
            statistics: own.words(&STATISTICS).filter_map(Statistic::of).collect(),
            requests: requests as u32,
            pace,
            load_pps: load_pps as f64,
            frame_bytes: own.integer(&FRAME) as usize,
            versions: updates::versions(context),
            patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
        };
    let spot = |settings: StatsDelaySettings, seconds: f64| {
        let (rules, load) = (f64::from(settings.rules.count()), settings.load_pps);
        let make = move |_| Box::new(StatsDelay::new(settings.clone())) as Box<_>;
        ModulePoint::new(rules, seconds, make).on("load_pps", load)
    };
    let (paced, pace) = (own.integer(&PACED), own.number(&PACE));
    let mut spots = Vec::new();
    for rules in own.integers(&RULES) {
        for load in own.integers(&LOADS) {
            spots.push(spot(settings(rules, load, own.integer(&REQUESTS), None), 0.2));
        }
        if paced > 0 {
            let paced_settings = settings(rules, 0, paced, Some(Nanos::from_secs_f64(pace)));
            spots.push(spot(paced_settings, paced as f64 * pace).named("paced_"));
        }
    }
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
