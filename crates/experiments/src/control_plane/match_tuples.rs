//! Match tuples: the combinations of match fields that a switch accepts, and whether such entries match exactly.
//!
//! Claim: a switch may reject a combination, match on fewer fields than requested, or match some of them in
//! software.
//!
//! Method: for each combination of fields with their prerequisites, one entry forwards frames with all of its
//! values. The module sends such frames, and frames that differ in one field, for each field. The port at which
//! they return shows whether they matched. Incorrect results are repeated until a time limit, so that a late entry
//! does not count as an incorrect one.
//!
//! Source: OFLOPS's tuple test; costa2017, table III.

use std::collections::{BTreeMap, BTreeSet};

use openflow::header::Xid;
use openflow::model::flow::FlowModCommand;
use openflow::model::message::Message;
use openflow::model::{Action, Field, FlowMod, Match};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, FrameFilter, MeasuredValue, Module, ModuleContext, ModuleRequirements,
    SendError, SendSpan, Series, TimerId, Value,
};
use tester::stream::{Headers, Network, Rate, Stream, Transport, Vlan};

use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::{FAR, NEAR, Rules};
use super::summary::Summary;
use super::updates::{VERSION, versions};
use super::verdict::ActivationLimit;
use crate::show::Chart;
use crate::{Context, Method};
use targets::flow_setup::{PORT_IN, PORT_OUT};
use workload::Technology;
use workload::parameter::declaration::{Parameter, ValueType};

/// Fields: those of OpenFlow 1.0, and ECN.
const FIELDS: [Field; 13] = [
    Field::InPort,
    Field::EthSrc,
    Field::EthDst,
    Field::VlanVid,
    Field::VlanPcp,
    Field::EthType,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::IpDscp,
    Field::IpEcn,
    Field::UdpSrc,
    Field::UdpDst,
];

/// VLAN tag of the frames.
const VLAN: Vlan = Vlan { kind: 0x8100, id: 5, priority: 3 };

/// Id of the stream with all values; streams that differ in one field follow.
const ALIKE: u16 = 1;

/// Priority of the entry.
const PRIORITY: u16 = 100;

/// Time to wait for frames.
const WAIT: Nanos = Nanos::from_millis(20);

/// Maximum time to retry entries whose frames did not arrive.
const UNSEEN_MAX: Nanos = Nanos::from_secs(1);

/// Maximum time to retry entries with incorrect results, which may be late.
const PATIENCE: Nanos = Nanos::from_secs(10);

const AT_ONCE: Parameter = Parameter {
    key: "fields_at_once",
    takes: ValueType::Integers(1, FIELDS.len() as u64),
    default: "2",
    unit: "",
    help: "maximum number of combined fields, without their prerequisites; named combinations \
           always run",
};

const FRAMES: Parameter = Parameter {
    key: "frames_count",
    takes: ValueType::Integer(1, 10_000),
    default: "20",
    unit: "frames",
    help: "number of frames that measure the latency of each combination",
};

const BUDGET: Parameter = Parameter {
    key: "budget",
    takes: ValueType::Number(0.1, 3600.0),
    default: "20",
    unit: "s",
    help: "time limit for all combinations; the remaining ones are reported as left out",
};

const SIZE: Parameter = Parameter {
    key: "size",
    takes: ValueType::Integer(128, 1500),
    default: "128",
    unit: "bytes",
    help: "frame size, including the frame check sequence",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[AT_ONCE, FRAMES, BUDGET, SIZE, VERSION];

/// Name of the axis.
pub const AXIS: &str = "fields_at_once";

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Match field combinations by verdict",
        &["right_count", "too_wide_count", "too_narrow_count"],
        &[
            "unstable_count",
            "late_count",
            "late_ns_max",
            "refused_count",
            "inexpressible_count",
            "unseen_count",
            "left_out_count",
        ],
    ),
    Chart::values(
        "Latency by match type",
        &["port_ns_p50", "mac_ns_p50", "ip_ns_p50", "udp_port_ns_p50", "exact_ns_p50"],
        &["combination_ns_min", "combination_ns_p50", "combination_ns_max"],
    ),
    Chart::series("Latency by number of match fields", &["latency_by_fields"]),
];

/// Combinations with a name.
const NAMED: [(&str, &[Field]); 5] = [
    ("port", &[Field::InPort]),
    ("mac", &[Field::EthSrc, Field::EthDst]),
    ("ip", &[Field::Ipv4Src, Field::Ipv4Dst]),
    ("udp_port", &[Field::UdpSrc, Field::UdpDst]),
    ("exact", &FIELDS),
];

/// Set of fields, one bit each.
type Fields = u16;

/// Settings of the sweep.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Combinations.
    combinations: Vec<Fields>,
    /// Frames with all values, then frames that differ in each field.
    streams: Vec<Stream>,
    frames: u64,
    budget: Nanos,
    /// Knowledge of the time limit shared between repeats.
    bound: ActivationLimit,
    versions: Vec<Version>,
}

/// State of the module.
pub struct MatchTuples {
    sweep: Sweep,
    next: usize,
    begun_at: Nanos,
    barrier: Option<Xid>,
    add: Option<Xid>,
    absent: Option<Verdict>,
    /// Installed entry.
    there: Option<Match>,
    acknowledged_at: Nanos,
    attempt_at: Nanos,
    /// Consecutive correct attempts, and whether any attempt was correct.
    right_in_a_row: u32,
    was_right: bool,
    timer: Option<TimerId>,
    /// Whether a retry waits for its timer.
    is_pausing: bool,
    /// Whether frames contradicted the entry after its barrier reply.
    was_wrong: bool,
    /// For each stream, frames forwarded and returned.
    seen: Vec<[u64; 2]>,
    delays: Vec<f64>,
    verdicts: BTreeMap<Verdict, Vec<Fields>>,
    late: u64,
    late_most: Nanos,
    latencies: BTreeMap<Fields, f64>,
}

/// Verdict about a combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Right,
    TooWide,
    TooNarrow,
    Unstable,
    Refused,
    Inexpressible,
    Unseen,
}

/// Returns the bit of a field.
fn bit(field: Field) -> Fields {
    let place = FIELDS.iter().position(|it| *it == field);
    place.map_or(0, |place| 1 << place)
}

/// Returns the fields and their prerequisites.
fn closed(fields: Fields) -> Fields {
    let any = |of: &[Field]| of.iter().any(|field| fields & bit(*field) != 0);
    let udp = any(&[Field::UdpSrc, Field::UdpDst]);
    let ip =
        udp || any(&[Field::IpProto, Field::Ipv4Src, Field::Ipv4Dst, Field::IpDscp, Field::IpEcn]);
    let mut all = fields;
    all |= if udp { bit(Field::IpProto) } else { 0 };
    all |= if ip { bit(Field::EthType) } else { 0 };
    all | if any(&[Field::VlanPcp]) { bit(Field::VlanVid) } else { 0 }
}

/// Returns all combinations of up to this many fields with their prerequisites, smallest first, and the named ones.
fn combinations(at_once: u32) -> Vec<Fields> {
    let every = 1..1 << FIELDS.len();
    let few = every.filter(|fields: &Fields| fields.count_ones() <= at_once);
    let named = NAMED.iter().map(|(_, fields)| fields.iter().map(|it| bit(*it)).sum());
    let all: BTreeSet<Fields> = few.chain(named).map(closed).collect();
    let mut all: Vec<Fields> = all.into_iter().collect();
    all.sort_by_key(|fields| fields.count_ones());
    all
}

/// Returns the names of fields.
fn words(fields: Fields) -> String {
    let names = FIELDS.iter().filter(|field| fields & bit(**field) != 0);
    names.map(ToString::to_string).collect::<Vec<_>>().join("+")
}

/// Returns the match on some fields of these headers.
fn matching(headers: &Headers, fields: Fields) -> Match {
    let mac = openflow::model::matching::mac_bits;
    let value = |field: Field| -> u128 {
        match field {
            Field::InPort => PORT_IN.into(),
            Field::EthSrc => mac(headers.mac_source),
            Field::EthDst => mac(headers.mac_destination),
            Field::VlanVid => packet::field::VLAN_PRESENT | u128::from(VLAN.id),
            Field::VlanPcp => VLAN.priority.into(),
            Field::EthType => 0x0800,
            Field::IpProto => headers.ip_protocol.into(),
            Field::Ipv4Src => headers.ip_source.to_bits().into(),
            Field::Ipv4Dst => headers.ip_destination.to_bits().into(),
            Field::IpDscp => (headers.tos >> 2).into(),
            Field::IpEcn => (headers.tos & 3).into(),
            Field::UdpSrc => headers.port_source.into(),
            _ => headers.port_destination.into(),
        }
    };
    let all = FIELDS.iter().filter(|field| fields & bit(**field) != 0);
    all.fold(Match::ANY, |matching, field| matching.with(*field, value(*field)))
}

/// Changes one field of the headers.
fn differ(headers: &mut Headers, field: Field) {
    let plus_one = |address: std::net::Ipv4Addr| std::net::Ipv4Addr::from(address.to_bits() ^ 1);
    match field {
        Field::EthSrc => headers.mac_source[5] ^= 1,
        Field::EthDst => headers.mac_destination[5] ^= 1,
        Field::VlanVid => headers.vlans[0].id ^= 1,
        Field::VlanPcp => headers.vlans[0].priority ^= 1,
        Field::EthType => {
            let (source, destination) =
                (headers.ip_source.to_ipv6_mapped(), headers.ip_destination.to_ipv6_mapped());
            headers.network = Network::Ipv6 { source, destination, flow_label: 0 };
        }
        Field::IpProto => {
            headers.transport = Transport::Tcp { flags: 0x10 };
            headers.ip_protocol = headers.transport.protocol();
        }
        Field::Ipv4Src => headers.ip_source = plus_one(headers.ip_source),
        Field::Ipv4Dst => headers.ip_destination = plus_one(headers.ip_destination),
        Field::IpDscp => headers.tos ^= 4,
        Field::IpEcn => headers.tos ^= 1,
        Field::UdpSrc => headers.port_source ^= 1,
        Field::UdpDst => headers.port_destination ^= 1,
        // The input port is not a header field.
        _ => {}
    }
}

impl MatchTuples {
    /// Creates the module for a sweep.
    pub fn new(sweep: Sweep) -> MatchTuples {
        MatchTuples {
            seen: vec![[0; 2]; sweep.streams.len()],
            sweep,
            next: 0,
            begun_at: Nanos(0),
            barrier: None,
            add: None,
            absent: None,
            there: None,
            acknowledged_at: Nanos(0),
            attempt_at: Nanos(0),
            right_in_a_row: 0,
            was_right: false,
            timer: None,
            is_pausing: false,
            was_wrong: false,
            delays: Vec::new(),
            verdicts: BTreeMap::new(),
            late: 0,
            late_most: Nanos(0),
            latencies: BTreeMap::new(),
        }
    }

    fn prepare(&mut self, context: &mut ModuleContext) {
        self.begun_at = context.now();
        let ids: Vec<u16> = self.sweep.streams.iter().map(|stream| stream.id).collect();
        self.sweep.streams.iter().for_each(|stream| context.prepare(stream.clone()));
        for port in [NEAR, FAR] {
            context.watch(port, FrameFilter::Streams(ids.clone()));
        }
        context.send_all(0, Rules::emptied());
        self.begin(context);
    }

    /// Returns the current combination.
    fn fields(&self) -> Option<Fields> {
        self.sweep.combinations.get(self.next).copied()
    }

    /// Installs the entry of the next combination in place of the previous one.
    fn begin(&mut self, context: &mut ModuleContext) {
        let is_late = context.now().since(self.begun_at) >= self.sweep.budget;
        let Some(fields) = self.fields().filter(|_| !is_late) else { return context.end() };
        let matching = matching(&self.sweep.streams[0].headers, fields);
        let add = FlowMod::add(matching.clone(), PRIORITY, vec![Action::output(PORT_OUT.into())]);
        if let Some(before) = self.there.take() {
            let command = FlowModCommand::DeleteStrict;
            let gone = FlowMod { command, ..FlowMod::add(before, PRIORITY, Vec::new()) };
            context.send(0, Message::FlowMod(FlowMod { instructions: Vec::new(), ..gone }));
        }
        (self.absent, self.was_wrong) = (None, false);
        (self.right_in_a_row, self.was_right) = (0, false);
        self.add = Some(context.send(0, Message::FlowMod(add)));
        self.barrier = Some(context.send(0, Message::BarrierRequest));
        self.there = Some(matching);
    }

    /// Returns the streams that test a combination: the one with all values, and those that differ in one of its
    /// fields.
    fn streams_of(&self, fields: Fields) -> impl Iterator<Item = usize> + use<> {
        (0..FIELDS.len() + 1).filter(move |place| *place == 0 || fields & (1 << (place - 1)) != 0)
    }

    /// Sends the frames.
    fn probe(&mut self, fields: Fields, context: &mut ModuleContext) {
        self.attempt_at = context.now();
        self.seen.iter_mut().for_each(|seen| *seen = [0; 2]);
        self.delays.clear();
        for place in self.streams_of(fields) {
            let frames = if place == 0 { self.sweep.frames } else { 1 };
            context.begin(self.sweep.streams[place].id, SendSpan::frames(frames));
        }
        let pps = self.sweep.streams[0].rate_pps();
        let span = Nanos::from_secs_f64(self.sweep.frames as f64 / pps);
        self.timer = Some(context.timer_in(span.saturating_add(WAIT)));
    }

    fn answered(&mut self, context: &mut ModuleContext) {
        let Some(fields) = self.fields() else { return };
        match self.absent {
            Some(verdict) => {
                self.there = None;
                self.judge(fields, verdict, context);
            }
            None => {
                self.acknowledged_at = context.now();
                self.probe(fields, context);
            }
        }
    }

    /// Records a returned frame.
    fn probed(
        &mut self,
        stream: u16,
        port: usize,
        sent_at: Nanos,
        delay: Nanos,
        context: &mut ModuleContext,
    ) {
        let place = usize::from(stream - ALIKE);
        let Some(fields) = self.fields().filter(|_| sent_at >= self.attempt_at) else { return };
        let from = self.sweep.streams[place].from;
        self.seen[place][usize::from(port == from)] += 1;
        if place == 0 && port == FAR {
            self.delays.push(delay.0 as f64);
        }
        let came = |place: usize| self.seen[place].iter().sum::<u64>();
        let wants = |place: usize| if place == 0 { self.sweep.frames } else { 1 };
        if !self.is_pausing
            && self.timer.is_some()
            && self.streams_of(fields).all(|it| came(it) >= wants(it))
        {
            self.timer.take().map(|timer| context.cancel(timer));
            self.look(fields, context);
        }
    }

    /// Returns the result of one attempt.
    fn shown(&self, fields: Fields) -> Verdict {
        let mut others = self.streams_of(fields).skip(1);
        if self.seen[0] == [0; 2] {
            Verdict::Unseen
        } else if self.seen[0][1] > 0 {
            Verdict::TooNarrow
        } else if others.any(|place| self.seen[place][0] > 0) {
            Verdict::TooWide
        } else if self.streams_of(fields).any(|place| self.seen[place] == [0; 2]) {
            Verdict::Unseen
        } else {
            Verdict::Right
        }
    }

    /// Ends a combination that is correct, or incorrect until the time limit; retries others.
    fn look(&mut self, fields: Fields, context: &mut ModuleContext) {
        let verdict = self.shown(fields);
        let waited = context.now().since(self.acknowledged_at);
        let is_right = verdict == Verdict::Right;
        self.right_in_a_row = if is_right { self.right_in_a_row + 1 } else { 0 };
        self.was_right |= is_right || verdict == Verdict::TooNarrow && self.seen[0][0] > 0;
        // An entry may be late, and frames may have been lost.
        self.was_wrong |= !is_right && verdict != Verdict::Unseen;
        let most = match self.was_wrong {
            true => self.sweep.bound.of(PATIENCE),
            false => UNSEEN_MAX,
        };
        // A combination that was incorrect before must be correct repeatedly.
        let is_known = is_right && (!self.was_wrong || self.right_in_a_row > 1);
        if !is_known && waited < most {
            (self.is_pausing, self.timer) = (true, Some(context.timer_in(WAIT)));
            return;
        }
        if is_right {
            self.late += u64::from(self.was_wrong);
            if self.was_wrong {
                self.late_most = self.late_most.max(waited);
            }
            if let Some(spread) = Summary::of(std::mem::take(&mut self.delays)) {
                self.latencies.insert(fields, spread.quantile(0.5));
            }
        } else if self.was_wrong {
            self.sweep.bound.missed();
        }
        let is_unstable = !is_right && self.was_right && verdict != Verdict::Unseen;
        self.judge(fields, if is_unstable { Verdict::Unstable } else { verdict }, context);
    }

    fn judge(&mut self, fields: Fields, verdict: Verdict, context: &mut ModuleContext) {
        if verdict != Verdict::Right {
            let said = [("fields", words(fields).into()), ("verdict", Value::Text(verdict.word()))];
            context.log("combination", &said);
        }
        self.verdicts.entry(verdict).or_default().push(fields);
        self.next += 1;
        self.begin(context);
    }

    fn timed(&mut self, context: &mut ModuleContext) {
        self.timer = None;
        let Some(fields) = self.fields() else { return };
        if std::mem::take(&mut self.is_pausing) {
            self.probe(fields, context);
        } else {
            self.look(fields, context);
        }
    }

    fn tell(&self, context: &mut ModuleContext) {
        let turn = context.frame_poll_period().0 as f64;
        let all = self.sweep.combinations.len();
        let count = |name: &'static str, value: usize| {
            MeasuredValue::new(name, "count", value as f64, 0.0).of(all as u64)
        };
        for verdict in Verdict::ALL {
            let which = self.verdicts.get(&verdict).map_or(&[][..], Vec::as_slice);
            let told = count(verdict.name(), which.len());
            let is_odd = verdict > Verdict::Right && !which.is_empty();
            let some = which.iter().take(12).map(|fields| words(*fields)).collect::<Vec<_>>();
            context.measured(if is_odd { told.noting(some.join(", ")) } else { told });
        }
        context.measured(count("late_count", self.late as usize));
        if self.late > 0 {
            // It became correct between this attempt and the second to last.
            let (most, half) = (self.late_most.0 as f64, 2.0 * WAIT.0 as f64);
            context.measured(MeasuredValue::new("late_ns_max", "ns", most, half));
        }
        context.measured(count("left_out_count", all - self.next));
        for (name, fields) in NAMED {
            let fields = closed(fields.iter().map(|field| bit(*field)).sum());
            if let Some(ns) = self.latencies.get(&fields) {
                let told = MeasuredValue::new(format!("{name}_ns_p50"), "ns", *ns, turn);
                context.measured(told.of(self.sweep.frames));
            }
        }
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        if let Some(spread) = Summary::of(self.latencies.values().copied().collect()) {
            spread.tell("combination_ns", turn, &mut tell);
        }
        let points =
            self.latencies.iter().map(|(fields, ns)| (f64::from(fields.count_ones()), *ns));
        let mut points: Vec<(f64, f64)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        context.series(Series {
            name: "latency_by_fields".into(),
            unit: "ns".into(),
            x_name: "fields".into(),
            x_unit: "".into(),
            points,
        });
    }
}

impl Verdict {
    const ALL: [Verdict; 7] = [
        Verdict::Right,
        Verdict::TooWide,
        Verdict::TooNarrow,
        Verdict::Unstable,
        Verdict::Refused,
        Verdict::Inexpressible,
        Verdict::Unseen,
    ];

    fn name(self) -> &'static str {
        match self {
            Verdict::Right => "right_count",
            Verdict::TooWide => "too_wide_count",
            Verdict::TooNarrow => "too_narrow_count",
            Verdict::Unstable => "unstable_count",
            Verdict::Refused => "refused_count",
            Verdict::Inexpressible => "inexpressible_count",
            Verdict::Unseen => "unseen_count",
        }
    }

    /// Describes the verdict.
    fn word(self) -> std::borrow::Cow<'static, str> {
        match self {
            Verdict::Right => "correct",
            Verdict::TooWide => "frames that differ in one field match too",
            Verdict::TooNarrow => "frames that have all values do not match",
            Verdict::Unstable => "frames that have all values match only at times",
            Verdict::Refused => "rejected by the switch",
            Verdict::Inexpressible => "not expressible in this OpenFlow version",
            Verdict::Unseen => "no frame arrived",
        }
        .into()
    }
}

impl Module for MatchTuples {
    fn needs(&self) -> ModuleRequirements {
        let limit = self.sweep.budget.saturating_add(PATIENCE).saturating_add(Nanos::from_secs(10));
        ModuleRequirements::new(limit).in_versions(&self.sweep.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) => self.prepare(context),
            EventKind::Frame(arrival) => {
                if let Some(probe) = arrival.probe {
                    let delay = arrival.stamp.at.since(probe.sent_at);
                    self.probed(probe.stream, arrival.port, probe.sent_at, delay, context);
                }
            }
            EventKind::Message { xid, message: Message::Error(_), .. } if self.add == Some(xid) => {
                self.absent = Some(Verdict::Refused);
            }
            EventKind::SendFailed { said, why, .. } if self.add == Some(said.xid) => {
                let is_expressible = !matches!(why, SendError::NotExpressible(_));
                self.absent =
                    Some(if is_expressible { Verdict::Refused } else { Verdict::Inexpressible });
            }
            EventKind::Message { xid, message: Message::BarrierReply, .. }
                if self.barrier == Some(xid) =>
            {
                self.barrier = None;
                self.answered(context);
            }
            EventKind::Timer(timer) if self.timer == Some(timer) => self.timed(context),
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        self.tell(context);
    }
}

/// Creates the streams with all values, and those that differ in each field.
fn streams(context: &Context, frame_bytes: usize) -> Vec<Stream> {
    let setup = context.setup();
    let slow = Rate::FramesPerSecond(1.0);
    let mut headers = setup.stream(Technology::OpenFlow, &context.addresses, 64, slow).headers;
    headers.vlans = vec![VLAN];
    let rate = Rate::FramesPerSecond(20_000.0);
    let stream = |id: u16, headers: Headers| Stream::plain(id, frame_bytes, headers, rate);
    let mut all = vec![stream(ALIKE, headers.clone())];
    for (id, field) in (ALIKE + 1..).zip(FIELDS) {
        let mut other = headers.clone();
        differ(&mut other, field);
        let mut stream = stream(id, other);
        if field == Field::InPort {
            (stream.from, stream.to) = (FAR, NEAR);
        }
        all.push(stream);
    }
    all
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let streams = streams(context, own.integer(&SIZE) as usize);
    let at = |at_once: u64| {
        let sweep = Sweep {
            combinations: combinations(at_once as u32),
            streams: streams.clone(),
            frames: own.integer(&FRAMES),
            budget: Nanos::from_secs_f64(own.number(&BUDGET)),
            bound: ActivationLimit::default(),
            versions: versions(context),
        };
        let make = move |_| Box::new(MatchTuples::new(sweep.clone())) as Box<dyn Module>;
        ModulePoint::new(at_once as f64, 1.0, make)
    };
    let spots = own.integers(&AT_ONCE).into_iter().map(at).collect();
    Box::new(RepeatedModule::new(context, AXIS, spots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_combination_includes_its_prerequisites() {
        let with = |fields: &[Field]| fields.iter().map(|it| bit(*it)).sum::<Fields>();
        let udp = with(&[Field::UdpSrc, Field::IpProto, Field::EthType]);
        assert_eq!(closed(bit(Field::UdpSrc)), udp);
        assert_eq!(words(udp), "eth_type+ip_proto+udp_src");
        assert_eq!(closed(bit(Field::VlanPcp)), with(&[Field::VlanVid, Field::VlanPcp]));
    }

    #[test]
    fn every_combination_is_listed_once() {
        let all = combinations(13);
        assert!(all.iter().all(|fields| closed(*fields) == *fields));
        let pairs = combinations(2);
        assert!(pairs.len() > 70 && pairs.len() < all.len(), "{}", pairs.len());
        assert!(pairs.contains(&((1 << 13) - 1)), "all fields together");
    }
}
