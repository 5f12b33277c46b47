//! Port statistics at increasing rates: reply times, and the number of missing replies.
//!
//! Claim: a switch replies to a few requests per second in time, and to many of them late or never.
//!
//! Method: the module sends 2 port statistics requests per second, then 4, and so on up to 1024. Each rate runs for
//! a set time and for at least two requests, independent of earlier replies. A request without a reply some time
//! after the last request counts as lost.
//!
//! Source: the port status module of OFLOPS; costa2017, table VIII.

use openflow::model::Match;
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, MeasuredValue, Module, ModuleContext, ModuleRequirements, TimerId,
};

use super::requests::{Delays, PATIENCE_LIMIT, PendingRequests};
use super::rounds::{ModulePoint, RepeatedModule};
use super::statistics::Statistic;
use super::updates;
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis.
pub const AXIS: &str = "requests_per_s";

/// Minimum number of requests at a rate.
const REQUESTS_MIN: u64 = 2;

/// Settings of the request rate test.
#[derive(Debug, Clone)]
pub struct PortStatsSettings {
    /// Type of statistics requested.
    pub statistic: Statistic,
    /// Requests per second.
    pub per_second: u64,
    /// Duration.
    pub span: Nanos,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time to wait for replies after the last request.
    pub patience: Nanos,
}

/// State of the module.
pub struct PortStatsRate {
    settings: PortStatsSettings,
    version: Version,
    pending: PendingRequests,
    begun_at: Nanos,
    count: u64,
    timer: Option<TimerId>,
    delays: Delays,
    /// Time of the last request.
    last_at: Nanos,
}

impl PortStatsSettings {
    /// Returns the number of requests.
    fn requests(&self) -> u64 {
        let in_span = self.span.as_secs_f64() * self.per_second as f64;
        (in_span.round() as u64).max(REQUESTS_MIN)
    }

    /// Returns the time at which a request is due, relative to the first.
    fn due(&self, place: u64) -> Nanos {
        Nanos::from_secs_f64(place as f64 / self.per_second as f64)
    }
}

impl PortStatsRate {
    /// Creates the module for one rate.
    pub fn new(settings: PortStatsSettings) -> PortStatsRate {
        PortStatsRate {
            settings,
            version: Version::V1_3,
            pending: PendingRequests::default(),
            begun_at: Nanos::ZERO,
            count: 0,
            timer: None,
            delays: Delays::default(),
            last_at: Nanos::ZERO,
        }
    }

    /// Sends a request and sets the timer for the next.
    fn ask(&mut self, context: &mut ModuleContext) {
        let message = self.settings.statistic.ask(self.version, Match::ANY);
        self.pending.ask(context, 0, vec![message]);
        self.last_at = context.now();
        self.count += 1;
        self.timer = Some(match self.count < self.settings.requests() {
            true => context.timer_at(self.begun_at.saturating_add(self.settings.due(self.count))),
            false => context.timer_in(self.settings.patience),
        });
    }

    fn timed(&mut self, timer: TimerId, context: &mut ModuleContext) {
        if self.timer != Some(timer) {
            return;
        }
        match self.count < self.settings.requests() {
            true => self.ask(context),
            false => context.end_by_limit(PATIENCE_LIMIT),
        }
    }
}

impl Module for PortStatsRate {
    fn needs(&self) -> ModuleRequirements {
        let all = [
            self.settings.due(self.settings.requests()),
            self.settings.patience,
            Nanos::from_secs(5),
        ];
        let limit = all.into_iter().fold(Nanos::ZERO, Nanos::saturating_add);
        ModuleRequirements::new(limit).in_versions(&self.settings.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => {
                self.version = facts.version(0).unwrap_or(self.version);
                self.begun_at = event.at;
                self.ask(context);
            }
            EventKind::Timer(timer) => self.timed(timer, context),
            _ => {
                if let Some(answer) = self.pending.note(event) {
                    self.delays.note(&answer);
                    if self.count == self.settings.requests() && self.pending.waiting() == 0 {
                        context.end();
                    }
                }
            }
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        if self.count == 0 {
            return;
        }
        let turn = context.poll_period().0 as f64;
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        self.delays.tell("reply_ns", turn, &mut tell);
        let mut ratio = |name: &'static str, count: u64| {
            let share = count as f64 / self.count as f64;
            tell(MeasuredValue::new(name, "ratio", share, 0.0).of(self.count));
        };
        ratio("lost_ratio", self.pending.waiting() as u64);
        ratio("refused_ratio", self.delays.refused);
        ratio("unknown_ratio", self.delays.unknown);
        let took = self.last_at.since(self.begun_at).as_secs_f64();
        if took > 0.0 {
            let rate = (self.count - 1) as f64 / took;
            tell(MeasuredValue::new("requests_per_s", "per_s", rate, 0.0).of(self.count));
        }
    }
}

const RATES: Parameter = Parameter {
    key: "rates",
    takes: ValueType::Integers(1, 1_000_000),
    default: "2,4,8,16,32,64,128,256,512,1024",
    unit: "requests/s",
    help: "request rates",
};

const STATISTIC: Parameter = Parameter {
    key: "statistic",
    takes: ValueType::Word(&["port", "flow", "aggregate", "table"]),
    default: "port",
    unit: "",
    help: "type of statistics to request",
};

const SPAN: Parameter = Parameter {
    key: "duration_s",
    takes: ValueType::Number(0.001, 3600.0),
    default: "0.25",
    unit: "s",
    help: "duration of each rate (5 in OFLOPS), at least two requests",
};

const PATIENCE: Parameter = Parameter {
    key: "timeout_s",
    takes: ValueType::Number(0.1, 600.0),
    default: "1",
    unit: "s",
    help: "timeout for replies after the last request",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[RATES, STATISTIC, SPAN, updates::VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Statistics reply time by request rate",
        &["reply_ns_p50", "reply_ns_max"],
        &["requests_per_s", "refused_ratio", "unknown_ratio"],
    ),
    Chart::values("Requests without a reply", &["lost_ratio"], &[]),
];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let spot = |per_second: u64| {
        let settings = PortStatsSettings {
            statistic: Statistic::of(own.text(&STATISTIC)).unwrap_or(Statistic::Port),
            per_second,
            span: Nanos::from_secs_f64(own.number(&SPAN)),
            versions: updates::versions(context),
            patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
        };
        let seconds = settings.due(settings.requests()).as_secs_f64();
        let make = move |_| Box::new(PortStatsRate::new(settings.clone())) as Box<_>;
        ModulePoint::new(per_second as f64, seconds, make)
    };
    let spots = own.integers(&RATES).into_iter().map(spot).collect();
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
