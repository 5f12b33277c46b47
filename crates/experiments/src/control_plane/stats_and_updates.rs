//! Interaction of statistics requests and updates.
//!
//! Claim: a switch installs entries later while its processor reads counters, and replies later while it installs
//! entries.
//!
//! Method: three periods of equal length over the same entries: statistics alone, requested periodically; updates
//! alone, each a batch of changes with a barrier request; and both together. Updates are periodic too, but never
//! begin before the previous barrier reply. The module reports the delays of each period, and their ratios.
//!
//! Source: the interaction test of OFLOPS; metric C10 of the method.

use openflow::model::message::Message;
use openflow::model::{Match, PRIORITY_DEFAULT};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, MeasuredValue, MessageRange, Module, ModuleContext,
    ModuleRequirements, TimerId,
};

use super::requests::{Answer, Delays, PATIENCE_LIMIT, PendingRequests};
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::{RULES_MAX, Rules};
use super::statistics::Statistic;
use super::updates;
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis.
pub const AXIS: &str = "poll_ms";

/// Maximum time to fill the tables.
const FILLING: Nanos = Nanos::from_secs(30);

/// Settings of the interaction test.
#[derive(Debug, Clone)]
pub struct Interaction {
    /// Installed entries.
    pub rules: Rules,
    /// Number of entries that one update changes.
    pub batch: u32,
    /// Type of statistics requested.
    pub statistic: Statistic,
    /// Minimum interval of requests.
    pub poll: Nanos,
    /// Minimum interval of updates.
    pub update: Nanos,
    /// Duration of each period.
    pub span: Nanos,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time to wait for the last replies of a period.
    pub patience: Nanos,
}

/// State of the module.
pub struct StatsAndUpdates {
    interaction: Interaction,
    version: Version,
    pending: PendingRequests,
    filling: Option<MessageRange>,
    /// Current period, and the results of all.
    place: usize,
    spans: [LoadPeriod; 3],
    poll: Option<TimerId>,
    update: Option<TimerId>,
    end: Option<TimerId>,
    /// Whether no further request or update begins in this period.
    is_ending: bool,
    asked: Option<MessageRange>,
    updating: Option<MessageRange>,
    updates: u32,
    errors: u64,
}

/// A period with requests, updates or both.
#[derive(Debug, Clone, Default)]
struct LoadPeriod {
    name: &'static str,
    asks: bool,
    updates: bool,
    replies: Delays,
    barriers: Delays,
}

impl StatsAndUpdates {
    /// Creates the module.
    pub fn new(interaction: Interaction) -> StatsAndUpdates {
        let span =
            |name, asks, updates| LoadPeriod { name, asks, updates, ..LoadPeriod::default() };
        StatsAndUpdates {
            interaction,
            version: Version::V1_3,
            pending: PendingRequests::default(),
            filling: None,
            place: 0,
            spans: [
                span("alone", true, false),
                span("alone", false, true),
                span("together", true, true),
            ],
            poll: None,
            update: None,
            end: None,
            is_ending: false,
            asked: None,
            updating: None,
            updates: 0,
            errors: 0,
        }
    }

    fn prepare(&mut self, version: Option<Version>, context: &mut ModuleContext) {
        self.version = version.unwrap_or(self.version);
        let rules = &self.interaction.rules;
        let mut messages = Rules::emptied();
        let add = |place| Message::FlowMod(rules.add_back(place, PRIORITY_DEFAULT));
        messages.extend((0..rules.count()).map(add));
        messages.push(Message::BarrierRequest);
        self.filling = Some(self.pending.ask(context, 0, messages));
    }

    fn begin(&mut self, context: &mut ModuleContext) {
        let Some(span) = self.spans.get(self.place) else { return context.end() };
        let (asks, updates) = (span.asks, span.updates);
        self.is_ending = false;
        self.end = Some(context.timer_in(self.interaction.span));
        if asks {
            self.ask(context);
        }
        if updates {
            self.update(context);
        }
    }

    /// Sends a request, unless the last one is outstanding, and sets the next timer.
    fn ask(&mut self, context: &mut ModuleContext) {
        self.poll = Some(context.timer_in(self.interaction.poll));
        if self.asked.is_none() {
            let message = self.interaction.statistic.ask(self.version, Match::ANY);
            self.asked = Some(self.pending.ask(context, 0, vec![message]));
        }
    }

    /// Changes the output port of the next entries, unless the last update is outstanding, and sets the next timer.
    ///
    /// The port alternates, so that every update is a real change.
    fn update(&mut self, context: &mut ModuleContext) {
        self.update = Some(context.timer_in(self.interaction.update));
        if self.updating.is_some() {
            return;
        }
        let rules = &self.interaction.rules;
        let (count, batch) = (rules.count(), self.interaction.batch.min(rules.count()));
        let first = u64::from(self.updates) * u64::from(batch);
        let change = |place: u64| {
            let (round, rule) = (place / u64::from(count), (place % u64::from(count)) as u32);
            let modified = rules.modify(rule, PRIORITY_DEFAULT);
            let back = rules.add_back(rule, PRIORITY_DEFAULT);
            let instructions =
                if round.is_multiple_of(2) { modified.instructions } else { back.instructions };
            Message::FlowMod(openflow::model::FlowMod { instructions, ..modified })
        };
        let mut messages: Vec<Message> = (first..first + u64::from(batch)).map(change).collect();
        messages.push(Message::BarrierRequest);
        self.updates += 1;
        self.updating = Some(self.pending.ask(context, 0, messages));
    }

    fn timed(&mut self, timer: TimerId, context: &mut ModuleContext) {
        if self.poll == Some(timer) && !self.is_ending {
            self.ask(context);
        } else if self.update == Some(timer) && !self.is_ending {
            self.update(context);
        } else if self.end == Some(timer) && !self.is_ending {
            self.is_ending = true;
            self.end = Some(context.timer_in(self.interaction.patience));
            self.go_on_if_quiet(context);
        } else if self.end == Some(timer) {
            self.give_up(context);
        }
    }

    /// Gives up requests that are still outstanding long after a period.
    fn give_up(&mut self, context: &mut ModuleContext) {
        let span = &mut self.spans[self.place];
        let waiting =
            [(&mut self.asked, &mut span.replies), (&mut self.updating, &mut span.barriers)];
        for (waiting, delays) in waiting {
            if let Some(said) = waiting.take() {
                self.pending.give_up(0, said);
                delays.unanswered += 1;
            }
        }
        context.end_by_limit(PATIENCE_LIMIT);
    }

    fn go_on_if_quiet(&mut self, context: &mut ModuleContext) {
        if self.is_ending && self.asked.is_none() && self.updating.is_none() {
            for timer in [&mut self.end, &mut self.poll, &mut self.update] {
                timer.take().map(|timer| context.cancel(timer));
            }
            self.place += 1;
            self.begin(context);
        }
    }

    fn answered(&mut self, answer: &Answer, context: &mut ModuleContext) {
        self.errors += u64::from(answer.errors);
        if self.filling == Some(answer.said) {
            self.filling = None;
            return self.begin(context);
        }
        let Some(span) = self.spans.get_mut(self.place) else { return };
        if self.asked == Some(answer.said) {
            self.asked = None;
            span.replies.note(answer);
        } else if self.updating == Some(answer.said) {
            self.updating = None;
            span.barriers.note(answer);
        }
        self.go_on_if_quiet(context);
    }
}

impl Module for StatsAndUpdates {
    fn needs(&self) -> ModuleRequirements {
        let one = self.interaction.span.saturating_add(self.interaction.patience);
        ModuleRequirements::new(FILLING.saturating_add(Nanos(one.0 * 3)))
            .in_versions(&self.interaction.versions)
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
        for span in &self.spans {
            let done = [("statistics", &span.replies), ("update", &span.barriers)];
            for (what, delays) in done.into_iter().filter(|(_, delays)| delays.asked() > 0) {
                let name = span.name;
                delays.tell(&format!("{what}_{name}_ns"), turn, &mut tell);
                let answered = delays.answered() as f64 / delays.asked() as f64;
                let named = format!("{what}_{name}_answered_ratio");
                tell(MeasuredValue::new(named, "ratio", answered, 0.0).of(delays.asked()));
            }
        }
        let [asked, updated, both] = &self.spans;
        let pairs = [
            ("statistics", &asked.replies, &both.replies),
            ("update", &updated.barriers, &both.barriers),
        ];
        for (what, alone, together) in pairs {
            if let (Some(alone), Some(together)) = (alone.spread(), together.spread()) {
                let times = together.quantile(0.5) / alone.quantile(0.5).max(1.0);
                let named = MeasuredValue::new(format!("{what}_slowed_ratio"), "ratio", times, 0.0);
                tell(named.of(together.count()));
            }
        }
        tell(MeasuredValue::new("errors_count", "count", self.errors as f64, 0.0));
    }
}

const POLLS: Parameter = Parameter {
    key: "poll_ms",
    takes: ValueType::Integers(1, 60_000),
    default: "1,10,100",
    unit: "ms",
    help: "interval between two statistics requests",
};

const UPDATE: Parameter = Parameter {
    key: "update_ms",
    takes: ValueType::Integer(1, 60_000),
    default: "1",
    unit: "ms",
    help: "interval between two updates; none begins before the previous barrier reply",
};

const RULES: Parameter = Parameter {
    key: "rules_count",
    takes: ValueType::Integer(1, RULES_MAX),
    default: "1024",
    unit: "rules",
    help: "number of entries",
};

const BATCH: Parameter = Parameter {
    key: "batch",
    takes: ValueType::Integer(1, RULES_MAX),
    default: "128",
    unit: "rules",
    help: "number of entries that one update changes",
};

const STATISTIC: Parameter = Parameter {
    key: "statistic",
    takes: ValueType::Word(&["flow", "aggregate", "table", "port"]),
    default: "aggregate",
    unit: "",
    help: "type of statistics to request",
};

const SPAN: Parameter = Parameter {
    key: "duration_s",
    takes: ValueType::Number(0.001, 3600.0),
    default: "0.3",
    unit: "s",
    help: "duration of each of the three periods",
};

const PATIENCE: Parameter = Parameter {
    key: "timeout_s",
    takes: ValueType::Number(0.1, 600.0),
    default: "5",
    unit: "s",
    help: "timeout for the last replies of a period",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] =
    &[POLLS, UPDATE, RULES, BATCH, STATISTIC, SPAN, updates::VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Statistics reply time and update delay, alone and together, by request interval",
        &[
            "statistics_alone_ns_p50",
            "statistics_together_ns_p50",
            "update_alone_ns_p50",
            "update_together_ns_p50",
        ],
        &["statistics_together_answered_ratio", "update_together_answered_ratio"],
    ),
    Chart::values(
        "Ratio of the delays together to those alone",
        &["statistics_slowed_ratio", "update_slowed_ratio"],
        &["statistics_together_ns_max", "update_together_ns_max", "errors_count"],
    ),
];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let spot = |poll_ms: u64| {
        let interaction = Interaction {
            rules: Rules::new(context, own.integer(&RULES) as u32),
            batch: own.integer(&BATCH) as u32,
            statistic: Statistic::of(own.text(&STATISTIC)).unwrap_or(Statistic::Aggregate),
            poll: Nanos::from_millis(poll_ms),
            update: Nanos::from_millis(own.integer(&UPDATE)),
            span: Nanos::from_secs_f64(own.number(&SPAN)),
            versions: updates::versions(context),
            patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
        };
        let make = move |_| Box::new(StatsAndUpdates::new(interaction.clone())) as Box<_>;
        ModulePoint::new(poll_ms as f64, 3.0 * own.number(&SPAN), make)
    };
    let spots = own.integers(&POLLS).into_iter().map(spot).collect();
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
