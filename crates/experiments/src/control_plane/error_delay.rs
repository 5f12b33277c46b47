//! Error delay: the time until the switch rejects a flow-mod, compared with the barrier reply after it.
//!
//! Claim: errors arrive at different times: immediately or late, before the barrier reply or, in violation of the
//! specification, after it.
//!
//! Method: the module sends one invalid flow-mod, alone or after many valid ones, followed by a barrier request.
//! The next one follows when both replies were read. The invalid part is one of these:
//!
//! - the port: output to no port
//! - the table: number 255 does not exist; in OpenFlow 1.0 it is part of the command
//! - the action: an unknown experimenter action
//!
//! The barrier reply time after a valid flow-mod is reported too.
//!
//! Source: OFLOPS's `action_measurement` (time to the error of an invalid modification); OpenFlow 1.3.5, section
//! 6.2 (barriers).

use openflow::header::Xid;
use openflow::model::action::Experimenter;
use openflow::model::message::Message;
use openflow::model::table::TABLE_ALL;
use openflow::model::{Action, FlowMod, PRIORITY_DEFAULT, reserved};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, MeasuredValue, MessageRange, Module, ModuleContext,
    ModuleRequirements, TimerId,
};

use super::requests::PATIENCE_LIMIT;
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::Rules;
use super::summary::Summary;
use super::updates::{VERSION, versions};
use crate::show::Chart;
use crate::{Context, Method};
use targets::flow_setup::PORT_OUT;
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis.
pub const AXIS: &str = "flow_mods_before";

/// Time to wait for an error after the barrier reply.
const QUIET: Nanos = Nanos::from_millis(20);

/// Maximum time to wait for a barrier reply.
const PATIENCE: Nanos = Nanos::from_secs(2);

/// Unassigned experimenter id: locally administered, as in Ethernet addresses.
const NOBODY: u32 = 0x0002_7379;

const WRONG: Parameter = Parameter {
    key: "invalid_field",
    takes: ValueType::Words(&["nothing", "port", "table", "action"]),
    default: "nothing,port,table,action",
    unit: "",
    help: "invalid part of the flow-mod",
};

const BEFORE: Parameter = Parameter {
    key: "flow_mods_before",
    takes: ValueType::Integers(0, 10_000),
    default: "0,100",
    unit: "flow-mods",
    help: "valid flow-mods before the invalid one",
};

const SAMPLES: Parameter = Parameter {
    key: "samples",
    takes: ValueType::Integer(2, 100_000),
    default: "50",
    unit: "flow-mods",
    help: "number of repetitions",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[WRONG, BEFORE, SAMPLES, VERSION];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Error delay by number of flow-mods before the invalid one",
        &["port_error_ns_p50", "table_error_ns_p50", "action_error_ns_p50"],
        &["port_error_ns_max", "table_error_ns_max", "action_error_ns_max"],
    ),
    Chart::values(
        "Barrier reply time by number of flow-mods before the invalid one",
        &["barrier_ns_p50", "port_barrier_ns_p50"],
        &["table_barrier_ns_p50", "action_barrier_ns_p50"],
    ),
    Chart::values(
        "Missing errors, and errors after the barrier reply",
        &["port_missing_ratio"],
        &[
            "table_missing_ratio",
            "action_missing_ratio",
            "port_behind_barrier_count",
            "table_behind_barrier_count",
            "action_behind_barrier_count",
        ],
    ),
];

/// Invalid part of a flow-mod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidField {
    /// Nothing.
    Nothing,
    /// The output port does not exist.
    Port,
    /// The table number is invalid.
    Table,
    /// The action is unknown.
    Action,
}

/// Settings of the error delay test.
#[derive(Debug, Clone)]
pub struct ErrorDelaySettings {
    /// Invalid part.
    pub wrong: InvalidField,
    /// Valid flow-mods before it.
    pub before: u32,
    /// Number of repeats.
    pub samples: u64,
    /// Entries.
    pub flows: Rules,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
}

/// State of the module.
pub struct ErrorDelay {
    settings: ErrorDelaySettings,
    timer: Option<TimerId>,
    barrier: Option<Xid>,
    is_ready: bool,
    said: Option<MessageRange>,
    first: Option<Nanos>,
    /// Read times of the error and of the barrier reply, and whether they are exact.
    error: Option<(Nanos, bool)>,
    answer: Option<(Nanos, bool)>,
    asked: u64,
    errors: Vec<f64>,
    barriers: Vec<f64>,
    told: u64,
    behind: u64,
    others: u64,
    is_unsayable: bool,
}

impl ErrorDelay {
    /// Creates the module for one invalid part.
    pub fn new(settings: ErrorDelaySettings) -> ErrorDelay {
        ErrorDelay {
            settings,
            timer: None,
            barrier: None,
            is_ready: false,
            said: None,
            first: None,
            error: None,
            answer: None,
            asked: 0,
            errors: Vec::new(),
            barriers: Vec::new(),
            told: 0,
            behind: 0,
            others: 0,
            is_unsayable: false,
        }
    }

    fn send(&mut self, messages: Vec<FlowMod>, context: &mut ModuleContext) {
        let barrier = std::iter::once(Message::BarrierRequest);
        let messages = messages.into_iter().map(Message::FlowMod).chain(barrier).collect();
        let said = context.send_all(0, messages);
        (self.said, self.barrier) = (Some(said), said.xids().last());
        (self.first, self.error, self.answer) = (None, None, None);
        self.timer.take().map(|timer| context.cancel(timer));
        self.timer = Some(context.timer_in(PATIENCE));
    }

    fn prepare(&mut self, version: Option<Version>, context: &mut ModuleContext) {
        self.send(vec![Rules::cleared(version)], context);
    }

    /// Sends the next flow-mods, if there are any.
    fn ask(&mut self, context: &mut ModuleContext) {
        if self.asked == self.settings.samples {
            return context.end();
        }
        self.asked += 1;
        let good = |place| {
            let on = vec![Action::output(PORT_OUT.into())];
            FlowMod::add(self.settings.flows.exact(place), PRIORITY_DEFAULT, on)
        };
        let mut messages: Vec<FlowMod> = (1..=self.settings.before).map(good).collect();
        messages.push(self.settings.wrong.done_to(good(0)));
        self.send(messages, context);
    }

    /// Ends a repeat when both replies were read, or the missing one will not arrive.
    fn note(&mut self, context: &mut ModuleContext) {
        if let (Some(first), Some((at, is_known))) = (self.first, self.answer)
            && is_known
        {
            self.barriers.push(at.since(first).0 as f64);
        }
        if let (Some(first), Some((at, is_known))) = (self.first, self.error) {
            self.told += 1;
            self.behind += u64::from(self.answer.is_some_and(|(answered, _)| at > answered));
            if is_known {
                self.errors.push(at.since(first).0 as f64);
            }
        }
        self.ask(context);
    }

    fn look(&mut self, context: &mut ModuleContext) {
        let is_done = self.error.is_some() || self.settings.wrong == InvalidField::Nothing;
        if self.answer.is_none() {
            return;
        }
        if !self.is_ready {
            self.is_ready = true;
            return self.ask(context);
        }
        // The event for the sent bytes arrives soon, in any case before the timer.
        self.timer.take().map(|timer| context.cancel(timer));
        let wait = if is_done { Nanos::from_micros(100) } else { QUIET };
        self.timer = Some(context.timer_in(wait));
    }

    fn heard(
        &mut self,
        xid: Xid,
        message: &Message,
        at: Nanos,
        is_known: bool,
        context: &mut ModuleContext,
    ) {
        match message {
            Message::BarrierReply if self.barrier == Some(xid) => {
                self.answer.get_or_insert((at, is_known));
                self.look(context);
            }
            Message::Error(_) => {
                let place = self.said.and_then(|said| said.place(xid));
                match place == Some(self.settings.before) && self.is_ready {
                    true => {
                        self.error.get_or_insert((at, is_known));
                        self.look(context);
                    }
                    false => self.others += 1,
                }
            }
            _ => {}
        }
    }
}

impl InvalidField {
    /// Makes a flow-mod invalid in this part.
    fn done_to(self, good: FlowMod) -> FlowMod {
        let acting = |action| FlowMod::add(good.matching.clone(), PRIORITY_DEFAULT, vec![action]);
        match self {
            InvalidField::Nothing => good,
            InvalidField::Port => acting(Action::output(reserved::NONE)),
            InvalidField::Table => FlowMod { table: TABLE_ALL, ..good },
            InvalidField::Action => acting(Action::Experimenter(Experimenter {
                experimenter: NOBODY,
                body: vec![0; 8],
            })),
        }
    }
}

impl Module for ErrorDelay {
    fn needs(&self) -> ModuleRequirements {
        ModuleRequirements::new(Nanos::from_secs(60)).in_versions(&self.settings.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => self.prepare(facts.version(0), context),
            EventKind::Sent { said, first, .. } if Some(said) == self.said => {
                self.first = Some(first)
            }
            EventKind::SendFailed { said, .. } if Some(said) == self.said => {
                self.is_unsayable = true;
                context.end();
            }
            EventKind::Message { xid, message, is_timestamp_valid, .. } => {
                self.heard(xid, message, event.at, is_timestamp_valid, context);
            }
            EventKind::Timer(timer) if self.timer == Some(timer) => match self.answer {
                None => context.end_by_limit(PATIENCE_LIMIT),
                Some(_) => self.note(context),
            },
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        let turn = context.poll_period().0 as f64;
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        if self.is_unsayable {
            let one = MeasuredValue::new("unsayable_count", "count", 1.0, 0.0);
            return tell(one.noting("not expressible in this OpenFlow version"));
        }
        if let Some(errors) = Summary::of(std::mem::take(&mut self.errors)) {
            errors.tell("error_ns", turn, &mut tell);
        }
        if let Some(barriers) = Summary::of(std::mem::take(&mut self.barriers)) {
            barriers.tell("barrier_ns", turn, &mut tell);
        }
        if self.settings.wrong != InvalidField::Nothing && self.asked > 0 {
            let missing = 1.0 - self.told as f64 / self.asked as f64;
            tell(MeasuredValue::new("missing_ratio", "ratio", missing, 0.0).of(self.asked));
            let behind = self.behind as f64;
            tell(MeasuredValue::new("behind_barrier_count", "count", behind, 0.0).of(self.told));
        }
        tell(MeasuredValue::new("others_count", "count", self.others as f64, 0.0));
    }
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let mut spots = Vec::new();
    for before in own.integers(&BEFORE) {
        for wrong in own.words(&WRONG) {
            let (wrong, prefix) = match wrong {
                "port" => (InvalidField::Port, "port_"),
                "table" => (InvalidField::Table, "table_"),
                "action" => (InvalidField::Action, "action_"),
                _ => (InvalidField::Nothing, ""),
            };
            let settings = ErrorDelaySettings {
                wrong,
                before: before as u32,
                samples: own.integer(&SAMPLES),
                flows: Rules::new(context, before as u32 + 1),
                versions: versions(context),
            };
            let make = move |_| Box::new(ErrorDelay::new(settings.clone())) as Box<_>;
            spots.push(ModulePoint::new(before as f64, 0.1, make).named(prefix));
        }
    }
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
