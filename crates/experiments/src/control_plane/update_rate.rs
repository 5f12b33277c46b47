//! Update rate: flow entry changes per second, over the number of outstanding batches and the occupancy of the
//! table.
//!
//! Claim: update rates are comparable only with the number of outstanding changes, the changes per barrier request
//! and the occupancy of the table.
//!
//! Method: the module fills a share of the table. It then adds, modifies or deletes entries in batches, each
//! followed by a barrier request. A fixed number of batches is outstanding; each barrier reply triggers the next.
//! The rate covers the time from the first byte of the first batch to the last reply.
//!
//! Source: metric C5 of the method. `flow-mod-rate` measures bundles.

use openflow::model::message::Message;
use openflow::model::{FlowMod, PRIORITY_DEFAULT};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, MeasuredValue, Module, ModuleContext, ModuleRequirements, TimerId,
};

use super::requests::{Answer, Delays, PATIENCE_LIMIT, PendingRequests};
use super::rounds::{ModulePoint, RepeatedModule};
use super::rule_activation::FlowModCommand;
use super::rules::{Priorities, RULES_MAX, Rules};
use super::updates::{self, VERSION, versions};
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis.
pub const AXIS: &str = "occupancy_percent";

/// Name of the curve.
const WINDOW: &str = "under_way";

const TABLE: Parameter = Parameter {
    key: "table_rules",
    takes: ValueType::Integer(1, RULES_MAX / 2),
    default: "1000",
    unit: "rules",
    help: "number of entries at an occupancy of 100 %",
};

const OCCUPANCIES: Parameter = Parameter {
    key: "occupancy",
    takes: ValueType::Integers(0, 100),
    default: "0,50,90",
    unit: "%",
    help: "entries installed in advance, in percent of table_rules",
};

const RULES: Parameter = Parameter {
    key: "rules_count",
    takes: ValueType::Integer(1, RULES_MAX / 2),
    default: "400",
    unit: "rules",
    help: "number of entries that change at each point",
};

const WINDOWS: Parameter = Parameter {
    key: "in_flight",
    takes: ValueType::Integers(1, 1000),
    default: "1,4,16",
    unit: "batches",
    help: "number of outstanding batches",
};

const BATCHES: Parameter = Parameter {
    key: "batches",
    takes: ValueType::Words(&["1", "10", "100"]),
    default: "1,10,100",
    unit: "rules",
    help: "entries before each barrier request",
};

const DEEDS: Parameter = Parameter {
    key: "commands",
    takes: ValueType::Words(&["add", "modify", "delete"]),
    default: "add",
    unit: "",
    help: "operations on the entries",
};

const MATCHES: Parameter = Parameter {
    key: "matches",
    takes: ValueType::Word(&["exact", "wildcard"]),
    default: "wildcard",
    unit: "",
    help: "match of the entries: every field of their frames, or only the destination address",
};

const PATIENCE: Parameter = Parameter {
    key: "timeout_s",
    takes: ValueType::Number(0.1, 600.0),
    default: "10",
    unit: "s",
    help: "timeout of a barrier reply",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[
    TABLE,
    OCCUPANCIES,
    RULES,
    WINDOWS,
    BATCHES,
    DEEDS,
    MATCHES,
    updates::PRIORITIES,
    PATIENCE,
    VERSION,
];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Add rate by occupancy of the table",
        &["add_1_per_s", "add_10_per_s", "add_100_per_s"],
        &[
            "add_1_batch_ns_p50",
            "add_10_batch_ns_p50",
            "add_100_batch_ns_p50",
            "add_1_errors_count",
        ],
    ),
    Chart::values(
        "Modify rate by occupancy of the table",
        &["modify_1_per_s", "modify_10_per_s", "modify_100_per_s"],
        &["modify_100_batch_ns_p50"],
    ),
    Chart::values(
        "Delete rate by occupancy of the table",
        &["delete_1_per_s", "delete_10_per_s", "delete_100_per_s"],
        &["delete_100_batch_ns_p50"],
    ),
];

/// Settings of the update rate test.
#[derive(Debug, Clone)]
pub struct Load {
    /// Entries that change, followed by those installed beforehand.
    pub rules: Rules,
    /// Priorities of the entries that change.
    pub priorities: Vec<u16>,
    /// Operation on the entries.
    pub deed: FlowModCommand,
    /// Whether they match on every field.
    pub is_exact: bool,
    /// Entries before each barrier request.
    pub batch: usize,
    /// Number of outstanding batches.
    pub window: usize,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time to wait for a reply.
    pub patience: Nanos,
}

/// State of the module.
pub struct UpdateRate {
    load: Load,
    pending: PendingRequests,
    is_filled: bool,
    /// Entries sent.
    said: usize,
    done: usize,
    begun_at: Option<Nanos>,
    last_at: Nanos,
    batches: Delays,
    errors: u64,
    timer: Option<TimerId>,
}

impl UpdateRate {
    /// Creates the module for one load.
    pub fn new(load: Load) -> UpdateRate {
        UpdateRate {
            load,
            pending: PendingRequests::default(),
            is_filled: false,
            said: 0,
            done: 0,
            begun_at: None,
            last_at: Nanos::ZERO,
            batches: Delays::default(),
            errors: 0,
            timer: None,
        }
    }

    /// Builds a change of an entry, with its type of match.
    fn changed(&self, place: usize, change: fn(&Rules, u32, u16) -> FlowMod) -> Message {
        let priority = self.load.priorities.get(place).copied().unwrap_or(PRIORITY_DEFAULT);
        let flow_mod = change(&self.load.rules, place as u32, priority);
        let matching = match self.load.is_exact {
            true => self.load.rules.exact(place as u32),
            false => flow_mod.matching,
        };
        Message::FlowMod(FlowMod { matching, ..flow_mod })
    }

    /// Fills the table.
    fn prepare(&mut self, context: &mut ModuleContext) {
        let first = match self.load.deed {
            FlowModCommand::Add => self.load.priorities.len(),
            FlowModCommand::Modify | FlowModCommand::Delete => 0,
        };
        let there = first..self.load.rules.count() as usize;
        let mut messages = Rules::emptied();
        messages.extend(there.map(|place| self.changed(place, Rules::add_back)));
        messages.push(Message::BarrierRequest);
        self.pending.ask(context, 0, messages);
        self.wait(context);
    }

    fn wait(&mut self, context: &mut ModuleContext) {
        self.timer.take().map(|timer| context.cancel(timer));
        self.timer = Some(context.timer_in(self.load.patience));
    }

    /// Sends batches until the set number is outstanding.
    fn go_on(&mut self, context: &mut ModuleContext) {
        let all = self.load.priorities.len();
        let change: fn(&Rules, u32, u16) -> FlowMod = match self.load.deed {
            FlowModCommand::Add => Rules::add,
            FlowModCommand::Modify => Rules::modify,
            FlowModCommand::Delete => Rules::delete,
        };
        while self.said < all && self.pending.waiting() < self.load.window {
            let next = (self.said + self.load.batch).min(all);
            let each = (self.said..next).map(|place| self.changed(place, change));
            let messages = each.chain([Message::BarrierRequest]).collect();
            self.pending.ask(context, 0, messages);
            self.said = next;
        }
        if self.done == all {
            return context.end();
        }
        self.wait(context);
    }

    fn answered(&mut self, answer: &Answer, context: &mut ModuleContext) {
        self.errors += u64::from(answer.errors) + u64::from(answer.is_refused);
        if std::mem::replace(&mut self.is_filled, true) {
            self.begun_at = Some(self.begun_at.map_or(answer.sent_at, |at| at.min(answer.sent_at)));
            self.last_at = self.last_at.max(answer.last_at);
            self.done += answer.said.count as usize - 1;
            self.batches.note(answer);
        }
        self.go_on(context);
    }
}

impl Module for UpdateRate {
    fn needs(&self) -> ModuleRequirements {
        let batches = self.load.priorities.len().div_ceil(self.load.batch) as u64 + 2;
        let most = Nanos(self.load.patience.0.saturating_mul(batches));
        ModuleRequirements::new(most.min(Nanos::from_secs(1800))).in_versions(&self.load.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) => self.prepare(context),
            EventKind::Timer(timer) if self.timer == Some(timer) => {
                context.end_by_limit(PATIENCE_LIMIT)
            }
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
        let span = self.begun_at.map_or(0.0, |at| self.last_at.since(at).0 as f64);
        let done = self.done as u64;
        if span > 0.0 {
            let rate = done as f64 * 1e9 / span;
            tell(MeasuredValue::new("per_s", "per_s", rate, rate * turn / span).of(done));
        }
        self.batches.tell("batch_ns", turn, &mut tell);
        tell(MeasuredValue::new("errors_count", "count", self.errors as f64, 0.0).of(done));
    }
}

/// Returns the prefix of the metric names.
fn prefix(deed: FlowModCommand, batch: &str) -> &'static str {
    match (deed, batch) {
        (FlowModCommand::Add, "1") => "add_1_",
        (FlowModCommand::Add, "10") => "add_10_",
        (FlowModCommand::Add, _) => "add_100_",
        (FlowModCommand::Modify, "1") => "modify_1_",
        (FlowModCommand::Modify, "10") => "modify_10_",
        (FlowModCommand::Modify, _) => "modify_100_",
        (FlowModCommand::Delete, "1") => "delete_1_",
        (FlowModCommand::Delete, "10") => "delete_10_",
        (FlowModCommand::Delete, _) => "delete_100_",
    }
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let count = own.integer(&RULES) as u32;
    let mut spots = Vec::new();
    for occupancy in own.integers(&OCCUPANCIES) {
        for window in own.integers(&WINDOWS) {
            for (word, batch) in own
                .words(&DEEDS)
                .flat_map(|deed| own.words(&BATCHES).map(move |batch| (deed, batch)))
            {
                let deed = FlowModCommand::of(word);
                let there = (own.integer(&TABLE) * occupancy / 100) as u32;
                let load = Load {
                    rules: Rules::new(context, count + there),
                    priorities: Priorities::of(own.text(&updates::PRIORITIES), context.seed)
                        .all(count),
                    deed,
                    is_exact: own.text(&MATCHES) == "exact",
                    batch: batch.parse().expect("all words of this parameter are numbers"),
                    window: window as usize,
                    versions: versions(context),
                    patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
                };
                let make = move |_| Box::new(UpdateRate::new(load.clone())) as Box<_>;
                let spot = ModulePoint::new(occupancy as f64, 0.1, make).on(WINDOW, window as f64);
                spots.push(spot.named(prefix(deed, batch)));
            }
        }
    }
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
