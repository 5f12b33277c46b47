//! Endurance: the control message rate of a switch, and its behaviour near and above that rate.
//!
//! Claim: some switches become unstable near their highest rate, others crash above it (costa2017, section IV-E).
//!
//! Method: a fixed number of messages is outstanding, and each reply triggers the next message. This gives the rate
//! of the switch. Messages then come at a share of that rate whether or not the switch replies: some seconds near
//! it, and as long above it. In the pause between, the switch replies to queued messages. The module reports the
//! share of replies, errors, and whether the connection closed.
//!
//! Invariants:
//!
//! - Every step ends, whatever the switch does.
//! - A closed connection ends the run and is a result.

use std::collections::HashSet;

use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, MeasuredValue, Module, ModuleContext, ModuleRequirements, TimerId,
};

use super::control_rate::{Kind, messages};
use super::pacer::{Pacer, TICK};
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::Rules;
use super::updates::{PATIENCE, VERSION, versions};
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis, which has a single position.
pub const AXIS: &str = "messages_under_way";

/// Outstanding messages during the search for the rate of the switch.
const UNDER_WAY: u64 = 64;

/// Duration of that search.
const LOOKING: Nanos = Nanos::from_millis(200);

/// Number of replies without elapsed time after which the search ends: in virtual time, replies may take no time.
const TIMELESS: u64 = 1000;

/// Number of entries that flow-mods add and delete.
const RULES: u32 = 100;

/// Shares of the rate of the switch for the two following steps: near it and above it.
const SHARES: [f64; 2] = [0.9, 1.2];

/// Duration of these steps, and the duration if trials last less than a second.
const LASTS: Nanos = Nanos::from_secs(5);
const LASTS_QUICK: Nanos = Nanos::from_millis(500);

const MESSAGES: Parameter = Parameter {
    key: "messages",
    takes: ValueType::Words(&["echo", "flow_mod", "port_stats"]),
    default: "echo,flow_mod,port_stats",
    unit: "",
    help: "types of messages; flow-mods add entries and delete them again",
};

const RATE_MAX: Parameter = Parameter {
    key: "messages_max",
    takes: ValueType::Number(1.0, 1e6),
    default: "100000",
    unit: "messages/s",
    help: "maximum message rate, even if the switch is faster with 64 outstanding messages",
};

const SECONDS: Parameter = Parameter {
    key: "step_duration_s",
    takes: ValueType::Number(0.0, 3600.0),
    default: "0",
    unit: "s",
    help: "duration of the load near the limit, and of the load above it; 0 means 5 s, or \
           0.5 s if trials are shorter than a second",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[MESSAGES, RATE_MAX, SECONDS, VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Control message rate with 64 outstanding messages",
        &["echo_taken_per_s", "flow_mod_taken_per_s", "port_stats_taken_per_s"],
        &[],
    ),
    Chart::values(
        "Share of messages with a reply at 90 % and at 120 % of that rate",
        &[
            "echo_near_answered_ratio",
            "flow_mod_near_answered_ratio",
            "port_stats_near_answered_ratio",
            "echo_beyond_answered_ratio",
            "flow_mod_beyond_answered_ratio",
            "port_stats_beyond_answered_ratio",
        ],
        &["echo_lost_count", "flow_mod_lost_count", "port_stats_lost_count"],
    ),
];

/// Messages that are sent, and how.
#[derive(Debug, Clone)]
pub struct EnduranceSettings {
    /// Type of message.
    pub kind: Kind,
    /// Highest rate to request, in messages per second.
    pub most_per_s: f64,
    /// Duration of messages at each share.
    pub lasts: Nanos,
    /// Maximum time to wait for replies.
    pub patience: Nanos,
    /// Entries of the flow-mods.
    pub flows: Rules,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
}

/// State of the module.
pub struct Endurance {
    settings: EnduranceSettings,
    version: Option<Version>,
    barrier: Option<Xid>,
    timer: Option<TimerId>,
    /// Messages sent since the start.
    number: u64,
    /// Outstanding replies.
    open: HashSet<Xid>,
    /// Time of the first message and of the last reply.
    begun_at: Nanos,
    last_at: Nanos,
    done: u64,
    /// Rate of the switch per second, and its uncertainty.
    taken: Option<(f64, f64)>,
    /// Whether that rate is the highest that may be requested.
    is_most: bool,
    paced: Option<Pacer>,
    held: Vec<LoadStep>,
    errors: u64,
    first_error: Option<String>,
    lost: Option<String>,
}

/// Messages at a share of the rate of the switch.
#[derive(Debug, Clone, Copy, Default)]
struct LoadStep {
    per_s: f64,
    asked: u64,
    answered: u64,
    errors: u64,
}

impl Endurance {
    /// Creates the module for one type of message.
    pub fn new(settings: EnduranceSettings) -> Endurance {
        Endurance {
            settings,
            version: None,
            barrier: None,
            timer: None,
            number: 0,
            open: HashSet::new(),
            begun_at: Nanos::ZERO,
            last_at: Nanos::ZERO,
            done: 0,
            taken: None,
            is_most: false,
            paced: None,
            held: Vec::new(),
            errors: 0,
            first_error: None,
            lost: None,
        }
    }

    fn wait(&mut self, span: Nanos, context: &mut ModuleContext) {
        self.timer.take().map(|timer| context.cancel(timer));
        self.timer = Some(context.timer_in(span));
    }

    /// Sends `count` messages.
    fn send(&mut self, count: u64, context: &mut ModuleContext) {
        if count == 0 {
            return;
        }
        let EnduranceSettings { kind, flows, .. } = &self.settings;
        let numbers = self.number..self.number + count;
        let all: Vec<Message> =
            numbers.flat_map(|number| messages(*kind, number, flows, self.version)).collect();
        self.number += count;
        let each = all.len() / count as usize;
        let said = context.send_all(0, all);
        self.open.extend(said.xids().skip(each - 1).step_by(each));
    }

    /// Checks the rate of the switch.
    fn look(&mut self, context: &mut ModuleContext) {
        self.begun_at = context.now();
        self.wait(LOOKING.saturating_add(self.settings.patience), context);
        self.send(UNDER_WAY, context);
    }

    fn answered(&mut self, xid: Xid, at: Nanos, context: &mut ModuleContext) {
        if !self.open.remove(&xid) {
            return;
        }
        (self.done, self.last_at) = (self.done + 1, at);
        if let Some(held) = self.held.last_mut() {
            held.answered += 1;
            return self.settle(context);
        }
        if self.taken.is_some() {
            return;
        }
        let span = at.since(self.begun_at);
        let is_timeless = span == Nanos::ZERO && self.done >= TIMELESS;
        if span < LOOKING && !is_timeless {
            return self.send(1, context);
        }
        self.found(span);
        self.hold(context);
    }

    fn found(&mut self, span: Nanos) {
        let most = self.settings.most_per_s;
        let rate = match span {
            Nanos::ZERO => f64::INFINITY,
            span => self.done as f64 * 1e9 / span.0 as f64,
        };
        self.is_most = rate >= most;
        // In virtual time, replies may take no time.
        let taken = if rate.is_finite() { rate } else { most };
        // Messages outstanding at the end count neither way.
        self.taken = Some((taken, taken * UNDER_WAY as f64 / self.done as f64));
    }

    /// Begins the next share, or ends the module.
    fn hold(&mut self, context: &mut ModuleContext) {
        let Some((taken, _)) = self.taken else { return };
        let Some(share) = SHARES.get(self.held.len()) else { return context.end() };
        // Outstanding messages of earlier steps do not count here.
        self.open.clear();
        self.errors = 0;
        let per_s = taken.min(self.settings.most_per_s) * share;
        self.held.push(LoadStep { per_s, ..LoadStep::default() });
        self.paced = Some(Pacer::over(per_s, self.settings.lasts, context.now()));
        self.go_on(context);
    }

    /// Sends the messages that are due.
    fn go_on(&mut self, context: &mut ModuleContext) {
        let Some(paced) = &mut self.paced else { return };
        let due = paced.due(context.now());
        let is_over = paced.is_over();
        let count = due.end - due.start;
        self.send(count, context);
        if let Some(held) = self.held.last_mut() {
            held.asked += count;
        }
        match is_over {
            true => {
                self.paced = None;
                self.wait(self.settings.patience, context);
                self.settle(context);
            }
            false => self.wait(TICK, context),
        }
    }

    /// Begins the next share when all messages are sent and have replies.
    fn settle(&mut self, context: &mut ModuleContext) {
        if self.paced.is_none() && self.open.is_empty() {
            self.close();
            self.hold(context);
        }
    }

    /// Assigns the counted errors to this share.
    fn close(&mut self) {
        if let Some(held) = self.held.last_mut() {
            held.errors = self.errors;
        }
    }

    fn timed(&mut self, context: &mut ModuleContext) {
        self.timer = None;
        if self.paced.is_some() {
            return self.go_on(context);
        }
        match (self.held.is_empty(), self.barrier.take()) {
            // The table could not be cleared, or there are no more replies.
            (true, Some(_)) => context.end_by_limit(super::requests::PATIENCE_LIMIT),
            (true, None) => {
                let span = self.last_at.since(self.begun_at);
                if self.done == 0 {
                    return context.end_by_limit(super::requests::PATIENCE_LIMIT);
                }
                self.found(span);
                self.hold(context);
            }
            (false, _) => {
                self.close();
                self.hold(context);
            }
        }
    }

    fn tell(&mut self, context: &mut ModuleContext) {
        self.close();
        let count =
            |name: &'static str, value: u64| MeasuredValue::new(name, "count", value as f64, 0.0);
        if let Some((taken, half)) = self.taken {
            let told = MeasuredValue::new("taken_per_s", "per_s", taken, half).of(self.done);
            context.measured(match self.is_most {
                true => told.noting("the later loads are based on the maximum rate (messages_max)"),
                false => told,
            });
        }
        let names = [
            ("near_per_s", "near_answered_ratio", "near_errors_count"),
            ("beyond_per_s", "beyond_answered_ratio", "beyond_errors_count"),
        ];
        for ((rate, ratio, errors), held) in names.into_iter().zip(&self.held) {
            context.measured(MeasuredValue::new(rate, "per_s", held.per_s, 0.0).of(held.asked));
            let answered = held.answered as f64 / held.asked.max(1) as f64;
            context.measured(MeasuredValue::new(ratio, "ratio", answered, 0.0).of(held.asked));
            let errors = count(errors, held.errors).of(held.asked);
            context.measured(match &self.first_error {
                Some(first) if held.errors > 0 => errors.noting(format!("first error: {first}")),
                _ => errors,
            });
        }
        let lost = count("lost_count", self.lost.is_some().into());
        context.measured(match &self.lost {
            Some(why) => lost.noting(why.clone()),
            None => lost,
        });
    }

    /// Returns the step of the run in which a connection closed.
    fn place(&self) -> &'static str {
        match self.held.len() {
            0 => "during the search for the message rate",
            1 => "under the load near the message rate",
            _ => "under the load above the message rate",
        }
    }
}

impl Module for Endurance {
    fn needs(&self) -> ModuleRequirements {
        let EnduranceSettings { lasts, patience, versions, .. } = &self.settings;
        let steps = Nanos(lasts.0.saturating_mul(2)).saturating_add(LOOKING);
        let limit = steps.saturating_add(Nanos(patience.0.saturating_mul(5)));
        ModuleRequirements::new(limit).in_versions(versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => {
                self.version = facts.version(0);
                let cleared = Message::FlowMod(Rules::cleared(self.version));
                let said = context.send_all(0, vec![cleared, Message::BarrierRequest]);
                self.barrier = said.xids().last();
                self.wait(self.settings.patience, context);
            }
            EventKind::Message { xid, message, .. } => match message {
                Message::BarrierReply if self.barrier == Some(xid) => {
                    self.barrier = None;
                    self.look(context);
                }
                Message::EchoReply(_) | Message::BarrierReply => {
                    self.answered(xid, event.at, context);
                }
                Message::MultipartReply(part) if !part.more => {
                    self.answered(xid, event.at, context);
                }
                Message::Error(error) => {
                    self.errors += 1;
                    self.first_error.get_or_insert_with(|| error.code.to_string());
                }
                _ => {}
            },
            EventKind::Timer(timer) if self.timer == Some(timer) => self.timed(context),
            _ => {}
        }
    }

    fn finish(&mut self, ended: &Ended, context: &mut ModuleContext) {
        if let Ended::Lost { why, .. } = ended {
            self.lost = Some(format!("{}: {why}", self.place()));
        }
        self.tell(context);
    }
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let lasts = match own.number(&SECONDS) {
        0.0 if context.parameters.seconds < 1.0 => LASTS_QUICK,
        0.0 => LASTS,
        seconds => Nanos::from_secs_f64(seconds),
    };
    let at = |word: &str| {
        let (kind, prefix) = match word {
            "flow_mod" => (Kind::FlowMod, "flow_mod_"),
            "port_stats" => (Kind::PortStats, "port_stats_"),
            _ => (Kind::Echo, "echo_"),
        };
        let settings = EnduranceSettings {
            kind,
            most_per_s: own.number(&RATE_MAX),
            lasts,
            patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
            flows: Rules::new(context, RULES),
            versions: versions(context),
        };
        let seconds = 2.0 * lasts.as_secs_f64() + LOOKING.as_secs_f64();
        let make = move |_| Box::new(Endurance::new(settings.clone())) as Box<dyn Module>;
        ModulePoint::new(UNDER_WAY as f64, seconds, make).named(prefix)
    };
    let spots = own.words(&MESSAGES).map(at).collect();
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
