//! Blackhole: the time for which flows continue after they should have stopped, and the frames that leak until
//! then.
//!
//! Claim: a controller that isolates a host or withdraws a route with drop entries relies on the barrier reply. The
//! switch may forward frames long after it.
//!
//! Method: entries that forward frames change to drop them, or are deleted one by one or by one message for all,
//! above an entry that drops. Probes visit each in turn; each probe that still arrives has leaked. A flow stopped
//! between its last frame that arrived and the next one.
//!
//! Source: metric C14 of the method; OFLOPS's consistency module.

use openflow::model::flow::FlowModCommand;
use openflow::model::message::Message;
use openflow::model::{Field, FlowMod, Match};
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, MeasuredValue, Module, ModuleContext, ModuleRequirements,
};

use super::rounds::{ModulePoint, RepeatedModule};
use super::rule_updates::{Change, LEAD, ON, RuleUpdate};
use super::rules::{FAR, Priorities, Rules};
use super::summary::Summary;
use super::update_transient::emptied;
use super::updates::{FRAME, PATIENCE, PRIORITIES, PROBES_PPS, RULES, VERSION, versions};
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Id of the stream of probes.
const PROBES: u16 = 1;

const BY: Parameter = Parameter {
    key: "by",
    takes: ValueType::Words(&["drop", "delete", "delete-all"]),
    default: "drop,delete-all",
    unit: "",
    help: "how flows are stopped: entries modified to drop, deleted one by one, or all deleted by \
           one message",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[RULES, BY, PRIORITIES, PROBES_PPS, FRAME, VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Time until flows stop after a modify to drop, and until the barrier reply",
        &["stop_ns_max", "control_plane_ns"],
        &["stop_ns_p50", "leaked_frames", "leaked_after_barrier_frames", "rules_stopped_ratio"],
    ),
    Chart::values(
        "Time until flows stop after all entries are deleted by one message, and until the barrier \
         reply",
        &["delete_all_stop_ns_max", "delete_all_control_plane_ns"],
        &[
            "delete_all_stop_ns_p50",
            "delete_all_leaked_frames",
            "delete_all_leaked_after_barrier_frames",
            "delete_all_rules_stopped_ratio",
        ],
    ),
];

/// State of the module.
pub struct Blackhole {
    changing: RuleUpdate,
    count: usize,
    leaked_at: Nanos,
}

/// Observations of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Flow {
    /// Departure time of the last frame that arrived.
    last: Option<Nanos>,
    leaked: u64,
    leaked_after: u64,
}

impl Blackhole {
    /// Creates the module for a change of `count` entries.
    pub fn new(change: Change, count: u32) -> Blackhole {
        let leaked_at = Nanos(0);
        Blackhole { changing: RuleUpdate::new(change), count: count as usize, leaked_at }
    }

    /// Returns whether no frame has arrived for two rounds of probes.
    fn is_quiet(&self, now: Nanos) -> bool {
        let round = self.changing.round();
        let quiet = round.saturating_add(round).saturating_add(LEAD);
        let since = self.changing.sent_at.map_or(now, |sent| sent.max(self.leaked_at));
        self.changing.acknowledged_at.is_some() && now.since(since) >= quiet
    }

    fn flows(&self, sent_at: Nanos) -> Vec<Flow> {
        let acknowledged_at = self.changing.acknowledged_at.unwrap_or(Nanos::MAX);
        let mut flows = vec![Flow::default(); self.count];
        for (number, frame) in self.changing.frames().iter().enumerate() {
            if frame.seen & ON == 0 {
                continue;
            }
            let flow = &mut flows[number % self.count];
            flow.last = Some(frame.sent_at);
            flow.leaked += u64::from(frame.sent_at >= sent_at);
            flow.leaked_after += u64::from(frame.sent_at > acknowledged_at);
        }
        flows
    }

    fn tell(&self, context: &mut ModuleContext) {
        let Some(sent_at) = self.changing.sent_at else { return };
        let flows = self.flows(sent_at);
        let ended_at = self.changing.concluded_at.unwrap_or(context.now());
        let turn = context.poll_period().0 as f64;
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        let sum = |pick: fn(&Flow) -> u64| flows.iter().map(pick).sum::<u64>() as f64;
        let frames = |name: &'static str, value| MeasuredValue::new(name, "frames", value, 0.0);
        tell(frames("leaked_frames", sum(|flow| flow.leaked)));
        tell(MeasuredValue::new("errors_count", "count", self.changing.errors as f64, 0.0));
        if let Some(at) = self.changing.acknowledged_at {
            let span = at.since(sent_at).0 as f64;
            tell(MeasuredValue::new("control_plane_ns", "ns", span, turn).of(self.count as u64));
            tell(frames("leaked_after_barrier_frames", sum(|flow| flow.leaked_after)));
        }
        let round = self.changing.round().0 as f64;
        let (mut stops, mut seen) = (Vec::new(), 0u64);
        for flow in &flows {
            // A flow without any arrived frame has no result.
            let Some(at) = flow.last else { continue };
            seen += 1;
            // The flow stopped if its next two frames were sent and did not arrive.
            if ended_at.since(at).0 as f64 >= 2.0 * round {
                let from = at.max(sent_at).0 as f64 - sent_at.0 as f64;
                let until = (at.0 as f64 + round - sent_at.0 as f64).max(from);
                stops.push((from + until) / 2.0);
            }
        }
        if seen == 0 {
            return;
        }
        let share = stops.len() as f64 / seen as f64;
        tell(MeasuredValue::new("rules_stopped_ratio", "ratio", share, 0.0).of(seen));
        let is_whole = stops.len() as u64 == seen;
        if let Some(stops) = Summary::of(stops).filter(|_| is_whole) {
            stops.tell("stop_ns", round / 2.0, &mut tell);
        }
    }
}

impl Module for Blackhole {
    fn needs(&self) -> ModuleRequirements {
        self.changing.needs()
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        if let EventKind::Frame(arrival) = event.what {
            self.leaked_at = if arrival.port == FAR { event.at } else { self.leaked_at };
        }
        if self.changing.react(event, context) && self.is_quiet(event.at) {
            self.changing.conclude(context);
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        self.tell(context);
    }
}

/// Returns the messages that stop the flows.
fn stopped(rules: &Rules, by: &str, priorities: &[u16]) -> Vec<FlowMod> {
    let each = || (0..).zip(priorities.iter().copied());
    match by {
        "delete" => each().map(|(place, priority)| rules.delete(place, priority)).collect(),
        "delete-all" => {
            let ipv4 = Match::ANY.with(Field::EthType, 0x0800u16);
            vec![FlowMod::delete(0, ipv4)]
        }
        _ => each()
            .map(|(place, priority)| FlowMod {
                command: FlowModCommand::ModifyStrict,
                ..FlowMod::add(rules.matching(place), priority, Vec::new())
            })
            .collect(),
    }
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let mut spots = Vec::new();
    for count in own.integers(&RULES) {
        let count = count as u32;
        let rules = Rules::new(context, count);
        let priorities = Priorities::of(own.text(&PRIORITIES), context.seed).all(count);
        for by in own.words(&BY) {
            let adds = (0..).zip(&priorities).map(|(place, &priority)| rules.add(place, priority));
            let flow_mods = stopped(&rules, by, &priorities);
            let change = Change {
                before: emptied().into_iter().chain(adds.map(Message::FlowMod)).collect(),
                change: flow_mods.into_iter().map(Message::FlowMod).collect(),
                stream: rules.probes(PROBES, own.integer(&FRAME) as usize, own.number(&PROBES_PPS)),
                versions: versions(context),
                patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
            };
            let make = move |_| Box::new(Blackhole::new(change.clone(), count)) as Box<dyn Module>;
            let prefix = match by {
                "delete" => "delete_",
                "delete-all" => "delete_all_",
                _ => "",
            };
            spots.push(ModulePoint::new(f64::from(count), 1.0, make).named(prefix));
        }
    }
    Box::new(RepeatedModule::new(context, super::updates::AXIS, spots))
}
