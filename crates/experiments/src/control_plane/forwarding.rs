//! Latency and loss of frames through flow entries: forwarding latency, queue delay and table lookup.
//!
//! Claim: latency depends on the frame size, on the offered rate and on the installed entries, and differs by
//! target.
//!
//! Method: the module installs entries and runs a load through them. Evenly spaced probes with the load's headers
//! give the latency. Port counters give the loss.
//!
//! Source: the OFLOPS-SUME paper, figures 6a and 6b; OFLOPS's queue delay (rate sweep) and table delay (occupancy)
//! modules.

use openflow::model::message::Message;
use openflow::model::{Action, Field, FlowMod, Match};
use packet::time::Nanos;
use tester::module::{Ended, Event, MeasuredValue, Module, ModuleContext, ModuleRequirements};
use tester::stream::{Stream, Values};

use super::forwarding_check::{Case, ForwardingCheck, RunningCheck};
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::{Priorities, Rules};
use super::updates::{VERSION, versions};
use super::verdict::ActivationLimit;
use crate::show::Chart;
use crate::{Context, Method};
use targets::flow_setup::{PORT_IN, PORT_OUT};
use workload::parameter::declaration::{Parameter, ValueType};

/// Id of the stream of probes.
const PROBES: u16 = 1;

/// Id of the load stream.
const LOAD: u16 = 2;

/// Maximum time of the switch for the entries.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// Time for which frames run before the measurement.
pub const LEAD: Nanos = Nanos::from_millis(50);

const SIZES: Parameter = Parameter {
    key: "sizes",
    takes: ValueType::Integers(64, 1518),
    default: "96,128,256,512,1024,1472",
    unit: "bytes",
    help: "frame sizes, including the frame check sequence",
};

const SIZE: Parameter = Parameter {
    key: "size",
    takes: ValueType::Integer(64, 1518),
    default: "128",
    unit: "bytes",
    help: "frame size, including the frame check sequence",
};

const RATES: Parameter = Parameter {
    key: "rates",
    takes: ValueType::Words(&["low", "high"]),
    default: "low,high",
    unit: "",
    help: "offered rates: low_mbps, high_mbps",
};

const LOW: Parameter = Parameter {
    key: "low_mbps",
    takes: ValueType::Number(0.001, 1e6),
    default: "100",
    unit: "Mbit/s",
    help: "low rate, including preamble and inter-frame gap",
};

const HIGH: Parameter = Parameter {
    key: "high_mbps",
    takes: ValueType::Number(0.0, 1e6),
    default: "0",
    unit: "Mbit/s",
    help: "high rate; 0 means that of the nominal link, or less if the tester cannot offer it",
};

const SWEEP: Parameter = Parameter {
    key: "rates_mbps",
    takes: ValueType::Integers(0, 1_000_000),
    default: "1,10,64,128,256,512,1000,0",
    unit: "Mbit/s",
    help: "offered rates; 0 means that of the nominal link",
};

const RULES: Parameter = Parameter {
    key: "rules_count",
    takes: ValueType::Integer(1, 4096),
    default: "1",
    unit: "rules",
    help: "number of entries that frames visit in turn",
};

const OCCUPANCY: Parameter = Parameter {
    key: "occupancy",
    takes: ValueType::Integers(1, super::rules::RULES_MAX),
    default: "1,10,100,1000",
    unit: "rules",
    help: "number of entries in the table",
};

const KINDS: Parameter = Parameter {
    key: "matches",
    takes: ValueType::Words(&["exact", "wildcard"]),
    default: "exact,wildcard",
    unit: "",
    help: "match of the entries: all twelve fields of OpenFlow 1.0, or only the destination \
           address",
};

const ORDER: Parameter = Parameter {
    key: "priority_order",
    takes: ValueType::Word(Priorities::WORDS),
    default: "descending",
    unit: "",
    help: "order of the priorities; the first entry is the one that is sent first",
};

const QUEUE: Parameter = Parameter {
    key: "queue",
    takes: ValueType::Integer(0, 4_294_967_294),
    default: "0",
    unit: "",
    help: "queue of the output port; 0 means none",
};

const PROBES_PPS: Parameter = Parameter {
    key: "probes_pps",
    takes: ValueType::Number(1.0, 1e6),
    default: "20000",
    unit: "frames/s",
    help: "rate of the frames that give the latency; all others are load",
};

/// Parameters of forwarding latency.
pub const LATENCY: &[Parameter] = &[SIZES, RATES, LOW, HIGH, RULES, PROBES_PPS, VERSION];

/// Parameters of queue delay.
pub const QUEUES: &[Parameter] = &[SWEEP, SIZE, QUEUE, PROBES_PPS, VERSION];

/// Parameters of table lookup.
pub const LOOKUP: &[Parameter] = &[OCCUPANCY, KINDS, ORDER, SIZE, PROBES_PPS, VERSION];

/// Report values of forwarding latency.
pub const LATENCY_SHOWS: &[Chart] = &[Chart::values(
    "Forwarding latency by frame size",
    &["forwarding_ns_p50"],
    &["forwarding_ns_min", "forwarding_ns_p90", "forwarding_ns_p99", "lost_ratio", "offered_pps"],
)];

/// Report values of queue delay.
pub const QUEUES_SHOWS: &[Chart] = &[
    Chart::values(
        "Latency by rate",
        &["forwarding_ns_p50", "forwarding_ns_p90"],
        &["forwarding_ns_min", "forwarding_ns_max", "offered_pps"],
    ),
    Chart::values("Frame loss by rate", &["lost_ratio"], &["lost_frames"]),
];

/// Report values of table lookup.
pub const LOOKUP_SHOWS: &[Chart] = &[
    Chart::values(
        "Latency through the first, the last and a random entry, by number of wildcard entries",
        &["wildcard_first_ns_p50", "wildcard_last_ns_p50", "wildcard_random_ns_p50"],
        &["wildcard_first_ns_p90", "wildcard_last_ns_p90", "wildcard_refused_rules"],
    ),
    Chart::values(
        "Latency through the first, the last and a random entry, by number of exact entries",
        &["exact_first_ns_p50", "exact_last_ns_p50", "exact_random_ns_p50"],
        &["exact_first_ns_p90", "exact_last_ns_p90", "exact_refused_rules"],
    ),
];

/// Axis of forwarding latency.
pub const BYTES_AXIS: &str = "frame_bytes";

/// Axis of queue delay.
pub const RATE_AXIS: &str = "offered_mbps";

/// Axis of table lookup.
pub const RULES_AXIS: &str = "rules";

/// State of the module.
pub struct Forwarding {
    passing: RunningCheck,
}

impl Forwarding {
    /// Creates the module for this passage. It reports the latency of each case under the name of the case.
    pub fn new(passage: ForwardingCheck) -> Forwarding {
        Forwarding { passing: RunningCheck::new(passage) }
    }

    fn tell(&self, span: Nanos, context: &mut ModuleContext) {
        let turn = context.frame_poll_period().0 as f64;
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        let refused = MeasuredValue::new("refused_rules", "rules", self.passing.errors as f64, 0.0);
        tell(match &self.passing.error {
            Some(first) => refused.noting(first.clone()),
            None => refused,
        });
        for (case, seen) in self.passing.cases() {
            if let Some(spread) = seen.spread() {
                spread.tell(&format!("{}_ns", case.name), turn, &mut tell);
            }
        }
        let Some([sent, came]) = self.passing.sent_and_came().filter(|[sent, _]| *sent > 0) else {
            return;
        };
        let lost = sent.saturating_sub(came);
        tell(MeasuredValue::new("lost_frames", "frames", lost as f64, 0.0).of(sent));
        let ratio = lost as f64 / sent as f64;
        tell(MeasuredValue::new("lost_ratio", "ratio", ratio, 0.0).of(sent));
        let pps = sent as f64 * 1e9 / span.0.max(1) as f64;
        tell(MeasuredValue::new("offered_pps", "pps", pps, 0.0).of(sent));
    }
}

impl Module for Forwarding {
    fn needs(&self) -> ModuleRequirements {
        self.passing.needs()
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        self.passing.react(event, context);
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        self.tell(self.passing.frames_ran(), context);
    }
}

/// Converts Mbit/s to frames per second, including preamble and interframe gap; 0 is the rate of the link.
fn pps_of(context: &Context, mbps: f64, frame_bytes: u16) -> f64 {
    let most = context.most_pps(frame_bytes);
    let bits = 8.0 * (f64::from(frame_bytes) + tester::stream::GAP_BYTES as f64);
    if mbps == 0.0 { most } else { mbps * 1e6 / bits }
}

/// Returns the rate of the nominal link, in Mbit/s.
fn link_mbps(context: &Context) -> f64 {
    context.capacity_bps as f64 / 1e6
}

/// Creates a passage of frames through all entries at this rate, with probes of some entries.
fn passing(context: &Context, rules: &Rules, frame_bytes: u16, pps: f64) -> ForwardingCheck {
    let own = &context.parameters.own;
    let probes_pps = own.number(&PROBES_PPS).min(pps);
    let rest = pps - probes_pps;
    let load = rules.probes(LOAD, usize::from(frame_bytes), rest.max(1.0));
    let adds = (0..rules.count()).map(|place| rules.add(place, openflow::model::PRIORITY_DEFAULT));
    let case = Case {
        name: "forwarding".into(),
        rules: adds.map(Message::FlowMod).collect(),
        stream: PROBES,
        place: None,
        comes_out: None,
    };
    ForwardingCheck {
        path: context.kind.path(),
        before: Rules::emptied(),
        cases: vec![case],
        streams: vec![rules.probes(PROBES, usize::from(frame_bytes), probes_pps)],
        load: (rest >= 1.0).then_some(load),
        lead: LEAD,
        span: Nanos::from_secs_f64(context.parameters.seconds),
        versions: versions(context),
        patience: PATIENCE,
        bound: ActivationLimit::default(),
    }
}

fn spot(context: &Context, x: f64, passage: ForwardingCheck) -> ModulePoint {
    let make = move |_| Box::new(Forwarding::new(passage.clone())) as Box<dyn Module>;
    ModulePoint::new(x, context.parameters.seconds + 0.2, make)
}

/// Creates the forwarding latency method: by frame size, at a low and a high rate.
pub fn latency(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let rules = Rules::new(context, own.integer(&RULES) as u32);
    let mut spots = Vec::new();
    for bytes in own.integers(&SIZES) {
        for which in own.words(&RATES) {
            let mbps = own.number(if which == "low" { &LOW } else { &HIGH });
            let shown = if mbps == 0.0 { link_mbps(context) } else { mbps };
            let pps = pps_of(context, mbps, bytes as u16);
            let passage = passing(context, &rules, bytes as u16, pps);
            spots.push(spot(context, bytes as f64, passage).on("offered_mbps", shown));
        }
    }
    Box::new(RepeatedModule::new(context, BYTES_AXIS, spots))
}

/// Creates the queue delay method: by rate.
pub fn queue_delay(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let (bytes, queue) = (own.integer(&SIZE) as u16, own.integer(&QUEUE) as u32);
    let rules = Rules::new(context, 1);
    let mut spots = Vec::new();
    let mut rates: Vec<f64> = own.integers(&SWEEP).into_iter().map(|rate| rate as f64).collect();
    let link = link_mbps(context);
    rates.iter_mut().filter(|rate| **rate == 0.0).for_each(|rate| *rate = link);
    rates.retain(|rate| *rate <= link);
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    for mbps in rates {
        let pps = pps_of(context, mbps, bytes).min(context.most_pps(bytes));
        let mut passage = passing(context, &rules, bytes, pps);
        if queue > 0 {
            passage.cases = queued(&rules, queue);
        }
        spots.push(spot(context, mbps, passage));
    }
    Box::new(RepeatedModule::new(context, RATE_AXIS, spots))
}

/// Returns the entry with a queue, in OpenFlow 1.0 form and in later form; only one of them can be expressed.
fn queued(rules: &Rules, queue: u32) -> Vec<Case> {
    let port = PORT_OUT.into();
    let ways = [
        vec![Action::Enqueue { port, queue }],
        vec![Action::SetQueue(queue), Action::output(port)],
    ];
    let case = |actions| Case {
        name: "forwarding".into(),
        rules: vec![Message::FlowMod(FlowMod::add(rules.matching(0), 1, actions))],
        stream: PROBES,
        place: None,
        comes_out: None,
    };
    ways.map(case).into()
}

/// Creates the table lookup method: by number of entries.
pub fn table_lookup(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let bytes = own.integer(&SIZE) as usize;
    let mut spots = Vec::new();
    for count in own.integers(&OCCUPANCY) {
        let rules = Rules::new(context, count as u32);
        let priorities = Priorities::of(own.text(&ORDER), context.seed).all(count as u32);
        let last = count - 1;
        let some = context.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) % count;
        let places = [("first", 0), ("last", last), ("random", some)];
        for kind in own.words(&KINDS) {
            let mut stream = rules.probes(PROBES, bytes, own.number(&PROBES_PPS));
            let matching = |place: u32| match kind {
                "exact" => exact(&stream, place),
                _ => rules.matching(place),
            };
            let add = |(place, &priority): (u32, &u16)| {
                let actions = vec![Action::output(PORT_OUT.into())];
                Message::FlowMod(FlowMod::add(matching(place), priority, actions))
            };
            let mut before = Rules::emptied();
            before.extend((0..).zip(&priorities).map(add));
            visit(&mut stream, &places.map(|(_, place)| place));
            let case = |(at, (name, _)): (u64, (&'static str, u64))| Case {
                name: name.into(),
                rules: Vec::new(),
                stream: PROBES,
                place: Some(at),
                comes_out: None,
            };
            let passage = ForwardingCheck {
                path: context.kind.path(),
                before,
                cases: (0..).zip(places).map(case).collect(),
                streams: vec![stream],
                load: None,
                lead: LEAD,
                span: Nanos::from_secs_f64(context.parameters.seconds),
                versions: versions(context),
                patience: PATIENCE,
                bound: ActivationLimit::default(),
            };
            let prefix = if kind == "exact" { "exact_" } else { "wildcard_" };
            spots.push(spot(context, count as f64, passage).named(prefix));
        }
    }
    Box::new(RepeatedModule::new(context, RULES_AXIS, spots))
}

/// Restricts a stream to these flows, which are renumbered.
pub fn visit(stream: &mut Stream, places: &[u64]) {
    for vary in &mut stream.vary {
        vary.count = places.len() as u64;
        for (_, values) in &mut vary.fields {
            if let Values::Range { first, step } = *values {
                *values = Values::List(places.iter().map(|place| first + place * step).collect());
            }
        }
    }
}

/// Returns the match of all twelve OpenFlow 1.0 fields for this flow of a stream.
fn exact(stream: &Stream, place: u32) -> Match {
    let headers = stream.flow(place.into());
    Match::ANY
        .with(Field::EthType, 0x0800u16)
        .with(Field::IpProto, headers.ip_protocol)
        .with(Field::UdpSrc, headers.port_source)
        .with(Field::UdpDst, headers.port_destination)
        .with(Field::InPort, PORT_IN)
        .with_mac(Field::EthSrc, headers.mac_source)
        .with_mac(Field::EthDst, headers.mac_destination)
        .untagged()
        .with(Field::IpDscp, headers.tos >> 2)
        .with(Field::Ipv4Src, headers.ip_source.to_bits())
        .with(Field::Ipv4Dst, headers.ip_destination.to_bits())
}
