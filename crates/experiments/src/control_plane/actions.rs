//! Cost of actions, and verification of their effect.
//!
//! Claim: an action may take time, run in software, be rejected, or be accepted without effect.
//!
//! Method: each action has its own entry, and another entry only outputs frames of the same kind. One stream of
//! each kind of frame visits its entries in turn, so that one trial measures both. Every output frame is compared
//! with the expected frame to its last byte.
//!
//! Source: OFLOPS's action delay and action scalability modules; the OFLOPS-SUME paper, figure 6c; costa2017, table
//! VI.

use openflow::model::group::{BUCKET_ALL, GROUP_ALL, GroupKind, GroupModCommand};
use openflow::model::message::Message;
use openflow::model::{Action, FlowMod, GroupMod, Match, PRIORITY_DEFAULT, reserved};
use packet::time::Nanos;
use tester::module::{
    Ended, Event, MeasuredValue, Module, ModuleContext, ModuleRequirements, Value,
};
use tester::stream::{Headers, Rate, Stream};

use super::action_cases::{self, ActionCase, Kind};
use super::forwarding::LEAD;
use super::forwarding_check::{
    Case, CaseFrames, ForwardingCheck, MissingReason, RunningCheck, extra, median,
};
use super::rounds::{ModulePoint, RepeatedModule};
use super::updates::{VERSION, versions};
use super::verdict::{self, ActivationLimit};
use crate::show::Chart;
use crate::{Context, Method};
use targets::flow_setup::PORT_OUT;
use targets::network::Hop;
use workload::Technology;
use workload::parameter::declaration::{Parameter, ValueType};

const SIZES: Parameter = Parameter {
    key: "sizes",
    takes: ValueType::Integers(128, 1500),
    default: "128",
    unit: "bytes",
    help: "frame sizes, including the frame check sequence",
};

/// Frames per second, over all entries.
pub const PROBES_PPS: Parameter = Parameter {
    key: "probes_pps",
    takes: ValueType::Number(1.0, 1e6),
    default: "50000",
    unit: "frames/s",
    help: "frame rate, all entries together",
};

const LENGTHS: Parameter = Parameter {
    key: "actions_count",
    takes: ValueType::Integers(1, 250),
    default: "1,2,4,8,16,32",
    unit: "",
    help: "number of rewrites of an entry",
};

const SIZE: Parameter = Parameter {
    key: "size",
    takes: ValueType::Integer(128, 1500),
    default: "128",
    unit: "bytes",
    help: "frame size, including the frame check sequence",
};

const PATIENCE: Nanos = Nanos::from_secs(10);

/// Parameters of action delay and header rewrite.
pub const DELAY: &[Parameter] = &[SIZES, PROBES_PPS, VERSION];

/// Parameters of action scalability.
pub const SCALABILITY: &[Parameter] = &[LENGTHS, SIZE, PROBES_PPS, VERSION];

/// Axis of action delay and header rewrite.
pub const BYTES_AXIS: &str = "frame_bytes";

/// Axis of action scalability.
pub const LENGTH_AXIS: &str = "actions";

const VERDICTS: Chart = Chart::values(
    "Actions by verdict: done, not done, rejected, not expressible",
    &["actions_done_count", "actions_wrong_count"],
    &[
        "actions_late_count",
        "actions_unstable_count",
        "actions_refused_count",
        "actions_inexpressible_count",
        "actions_unseen_count",
    ],
);

/// Report values of action delay.
pub const DELAY_SHOWS: &[Chart] = &[
    VERDICTS,
    Chart::values(
        "Extra latency of groups, queues and TTLs",
        &["group_extra_ns_p50", "dec_nw_ttl_extra_ns_p50", "set_nw_ttl_extra_ns_p50"],
        &["enqueue_extra_ns_p50", "set_queue_extra_ns_p50", "ipv6_dec_nw_ttl_extra_ns_p50"],
    ),
    Chart::values(
        "Extra latency of VLAN tags",
        &["push_vlan_extra_ns_p50", "pop_vlan_extra_ns_p50"],
        &["add_vlan_vid_extra_ns_p50", "vlan_vid_extra_ns_p50", "vlan_pcp_extra_ns_p50"],
    ),
    Chart::values(
        "Extra latency of MPLS entries",
        &["push_mpls_extra_ns_p50", "pop_mpls_extra_ns_p50"],
        &[
            "set_mpls_ttl_extra_ns_p50",
            "dec_mpls_ttl_extra_ns_p50",
            "mpls_label_extra_ns_p50",
            "mpls_tc_extra_ns_p50",
        ],
    ),
    REWRITES,
    REWRITES_OTHER,
];

const REWRITES: Chart = Chart::values(
    "Extra latency of rewriting addresses and ports",
    &["eth_src_extra_ns_p50", "ipv4_src_extra_ns_p50", "udp_src_extra_ns_p50"],
    &[
        "eth_dst_extra_ns_p50",
        "ipv4_dst_extra_ns_p50",
        "transport_src_extra_ns_p50",
        "tcp_src_extra_ns_p50",
        "sctp_src_extra_ns_p50",
        "ip_dscp_extra_ns_p50",
    ],
);

const REWRITES_OTHER: Chart = Chart::values(
    "Extra latency of rewriting IPv6 and ARP",
    &["ipv6_src_extra_ns_p50", "arp_spa_extra_ns_p50"],
    &["ipv6_dst_extra_ns_p50", "ipv6_flabel_extra_ns_p50", "arp_op_extra_ns_p50"],
);

/// Report values of header rewrite.
pub const REWRITE_SHOWS: &[Chart] = &[
    VERDICTS,
    Chart::values(
        "Latency by rewritten field",
        &["none_ns_p50", "eth_src_ns_p50", "ipv4_src_ns_p50", "udp_src_ns_p50"],
        &["vlan_pcp_ns_p50", "ip_dscp_ns_p50", "transport_src_ns_p50"],
    ),
    REWRITES,
    REWRITES_OTHER,
];

/// Report values of action scalability.
pub const SCALABILITY_SHOWS: &[Chart] = &[
    Chart::values(
        "Extra latency by number of actions",
        &["list_extra_ns_p50"],
        &["list_ns_p50", "none_ns_p50", "list_right_ratio"],
    ),
    VERDICTS,
];

/// State of the module.
pub struct Acting {
    passing: RunningCheck,
    /// For each case, the case of the same kind without actions.
    plain: Vec<usize>,
}

/// A case and the case that it is compared with.
type CasePair = (Case, usize);

impl Acting {
    /// Creates the module; `plain` has the case that each case is compared with.
    pub fn new(passage: ForwardingCheck, plain: Vec<usize>) -> Acting {
        Acting { passing: RunningCheck::new(passage), plain }
    }

    fn tell(&self, context: &mut ModuleContext) {
        if !self.passing.is_set_up {
            return;
        }
        let cases: Vec<(&Case, &CaseFrames)> = self.passing.cases().collect();
        let verdicts: Vec<(&str, Verdict)> =
            cases.iter().map(|(case, seen)| (&*case.name, Verdict::of(seen))).collect();
        for (place, ((case, seen), &plain)) in cases.iter().zip(&self.plain).enumerate() {
            note(case, seen, context);
            if let (None, Some(late)) =
                (&seen.absent, seen.activation.late_ns(self.passing.acknowledged_at))
            {
                let late =
                    MeasuredValue::new(format!("{}_late_ns", case.name), "ns", late.0, late.1);
                context.measured(late);
            }
            let (Some(spread), None) = (seen.spread(), &seen.absent) else { continue };
            let name = &case.name;
            let told = |what: &str, (value, half): (f64, f64)| {
                MeasuredValue::new(format!("{name}_{what}"), "ns", value, half).of(spread.count())
            };
            context.measured(told("ns_p50", median(&spread)));
            let right = seen.right_ratio().unwrap_or(0.0);
            let ratio = MeasuredValue::new(format!("{name}_right_ratio"), "ratio", right, 0.0);
            context.measured(ratio.of(seen.checked));
            // An action without effect has no cost to report.
            let is_done = seen.right == seen.checked && place != plain;
            if let (Some(plain), true) = (cases[plain].1.spread(), is_done) {
                context.measured(told("extra_ns_p50", extra(&spread, &plain)));
            }
        }
        tell_verdicts(&verdicts, context);
    }
}

/// Verdict about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Accepted(verdict::Verdict),
    Refused,
    Inexpressible,
}

impl Verdict {
    fn of(seen: &CaseFrames) -> Verdict {
        match (&seen.absent, seen.checked) {
            (Some(MissingReason::NotExpressible), _) => Verdict::Inexpressible,
            (Some(_), _) => Verdict::Refused,
            // Its frames returned until the end: it is not active, although no frame was compared.
            (None, 0) if seen.back == 0 => Verdict::Accepted(verdict::Verdict::Unseen),
            (None, _) => Verdict::Accepted(seen.activation.verdict()),
        }
    }
}

/// Logs why an entry is missing or how its frames are incorrect.
fn note(case: &Case, seen: &CaseFrames, context: &mut ModuleContext) {
    let why = match &seen.absent {
        Some(MissingReason::NotExpressible) => return,
        Some(MissingReason::Refused(why) | MissingReason::Unsaid(why)) => why.clone(),
        None => match &seen.wrong {
            Some(wrong) => wrong.clone(),
            None if seen.came == 0 && seen.back > 0 => {
                "its frames returned to the input port".into()
            }
            None if seen.came == 0 => "none of its frames arrived".into(),
            None => return,
        },
    };
    context
        .log("action", &[("name", case.name.to_string().into()), ("why", Value::Text(why.into()))]);
}

/// Reports how many entries got each verdict, and which.
fn tell_verdicts(verdicts: &[(&str, Verdict)], context: &mut ModuleContext) {
    use verdict::Verdict::{Done, Late, NotDone, Unseen, Unstable};
    for (name, verdict) in [
        ("actions_done_count", Verdict::Accepted(Done)),
        ("actions_late_count", Verdict::Accepted(Late)),
        ("actions_unstable_count", Verdict::Accepted(Unstable)),
        ("actions_wrong_count", Verdict::Accepted(NotDone)),
        ("actions_refused_count", Verdict::Refused),
        ("actions_inexpressible_count", Verdict::Inexpressible),
        ("actions_unseen_count", Verdict::Accepted(Unseen)),
    ] {
        let which: Vec<&str> =
            verdicts.iter().filter(|(_, it)| *it == verdict).map(|(name, _)| *name).collect();
        let told =
            MeasuredValue::new(name, "count", which.len() as f64, 0.0).of(verdicts.len() as u64);
        let is_odd = verdict != Verdict::Accepted(Done) && !which.is_empty();
        context.measured(if is_odd { told.noting(which.join(", ")) } else { told });
    }
}

impl Module for Acting {
    fn needs(&self) -> ModuleRequirements {
        self.passing.needs()
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        self.passing.react(event, context);
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        self.tell(context);
    }
}

/// Deletes all groups and all entries of the first table except the lowest, which sends frames back.
fn emptied() -> Vec<Message> {
    let groups = GroupMod {
        command: GroupModCommand::Delete,
        kind: GroupKind::All,
        group: GROUP_ALL,
        command_bucket: BUCKET_ALL,
        buckets: Vec::new(),
        experimenter: Vec::new(),
    };
    let back = FlowMod::add(Match::ANY, 0, vec![Action::output(reserved::IN_PORT)]);
    let empty = FlowMod::delete(0, Match::ANY);
    vec![Message::FlowMod(empty), Message::GroupMod(groups), Message::FlowMod(back)]
}

/// Creates the case of an action at this position, for frames of this size.
fn case(deed: &ActionCase, place: u64, plain: &Headers, frame_bytes: usize, flows: u64) -> Case {
    let mut actions = deed.actions.clone();
    if !deed.sends {
        actions.push(Action::output(PORT_OUT.into()));
    }
    let add = FlowMod::add(deed.kind.matching(place), PRIORITY_DEFAULT, actions);
    let stream = deed.kind.stream(plain, frame_bytes, flows, 1.0);
    let comes_out = changed(&stream, place, frame_bytes, deed.changes);
    Case {
        name: deed.name.into(),
        rules: deed.first.clone().into_iter().chain([Message::FlowMod(add)]).collect(),
        stream: deed.kind.stream_id(),
        place: Some(place),
        comes_out: Some(comes_out),
    }
}

/// Returns the frames of one flow of a stream with changed headers, at their length.
fn changed(
    stream: &Stream,
    place: u64,
    frame_bytes: usize,
    changes: impl Fn(&mut Headers),
) -> Stream {
    let before = stream.flow(place);
    let mut headers = before.clone();
    changes(&mut headers);
    let longer = headers.layout().payload_at as i64 - before.layout().payload_at as i64;
    let frame_bytes = (frame_bytes as i64 + longer) as usize;
    Stream { headers, frame_bytes, vary: Vec::new(), ..stream.clone() }
}

/// Returns the cases of these actions, each kind after a case without actions, and their streams.
fn lined_up(
    deeds: &[ActionCase],
    plain: &Headers,
    frame_bytes: usize,
    pps: f64,
) -> (Vec<CasePair>, Vec<Stream>) {
    let (mut cases, mut streams) = (Vec::new(), Vec::new());
    let all = (deeds.len() + Kind::ALL.len()) as f64;
    for kind in Kind::ALL {
        let own: Vec<&ActionCase> = deeds.iter().filter(|deed| deed.kind == kind).collect();
        if own.is_empty() {
            continue;
        }
        let none = action_cases::plain(kind, Vec::new());
        let flows = own.len() as u64 + 1;
        let first = cases.len();
        for (place, deed) in (0..).zip([&none].into_iter().chain(own)) {
            cases.push((case(deed, place, plain, frame_bytes, flows), first));
        }
        // The rates differ slightly, so that contention between streams affects all entries alike.
        let apart = 1.0 + 0.03 * streams.len() as f64;
        streams.push(kind.stream(plain, frame_bytes, flows, pps * apart * flows as f64 / all));
    }
    (cases, streams)
}

fn spot(context: &Context, x: f64, cases: Vec<CasePair>, streams: Vec<Stream>) -> ModulePoint {
    let (cases, plain): (Vec<Case>, Vec<usize>) = cases.into_iter().unzip();
    let passage = ForwardingCheck {
        path: vec![Hop::ALONE],
        before: emptied(),
        cases,
        streams,
        load: None,
        lead: LEAD,
        span: Nanos::from_secs_f64(context.parameters.seconds),
        versions: versions(context),
        patience: PATIENCE,
        bound: ActivationLimit::default(),
    };
    let make = move |_| Box::new(Acting::new(passage.clone(), plain.clone())) as Box<dyn Module>;
    ModulePoint::new(x, context.parameters.seconds + 0.2, make)
}

/// Returns the headers of unchanged frames with this run's addresses.
fn plain(context: &Context) -> Headers {
    let rate = Rate::FramesPerSecond(1.0);
    context.setup().stream(Technology::OpenFlow, &context.addresses, 64, rate).headers
}

/// Creates the method for these actions, by frame sizes from this parameter.
fn by_size(context: &Context, deeds: &[ActionCase], sizes: &Parameter) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let plain = plain(context);
    let at = |bytes: u64| {
        let pps = own.number(&PROBES_PPS);
        let (cases, streams) = lined_up(deeds, &plain, bytes as usize, pps);
        spot(context, bytes as f64, cases, streams)
    };
    let spots = own.integers(sizes).into_iter().map(at).collect();
    Box::new(RepeatedModule::new(context, BYTES_AXIS, spots))
}

/// Creates the action delay method.
pub fn delay(context: &Context) -> Box<dyn Method> {
    by_size(context, &action_cases::all(), &SIZES)
}

/// Creates the header rewrite method.
pub fn rewrite(context: &Context) -> Box<dyn Method> {
    let deeds: Vec<ActionCase> =
        action_cases::all().into_iter().filter(|deed| deed.is_rewrite).collect();
    by_size(context, &deeds, &SIZES)
}

/// Creates the method for the rewrite of one UDP port, named `port_rewrite`, by frame sizes from a parameter.
pub fn port_rewrite(context: &Context, sizes: &Parameter) -> Box<dyn Method> {
    let is_it = |deed: &ActionCase| deed.name == "udp_src";
    let named = |deed: ActionCase| ActionCase { name: "port_rewrite", ..deed };
    let deeds: Vec<ActionCase> = action_cases::all().into_iter().filter(is_it).map(named).collect();
    by_size(context, &deeds, sizes)
}

/// Creates the action scalability method, by number of actions.
pub fn scalability(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let (plain, bytes) = (plain(context), own.integer(&SIZE) as usize);
    let mut spots = Vec::new();
    for count in own.integers(&LENGTHS) {
        let (actions, changes) = action_cases::list(count as u32);
        let deed = ActionCase { name: "list", ..action_cases::plain(Kind::Plain, actions) };
        let (mut cases, streams) =
            lined_up(&[deed], &plain, bytes, own.number(&PROBES_PPS).min(20_000.0));
        cases[1].0.comes_out = Some(changed(&streams[0], 1, bytes, changes));
        spots.push(spot(context, count as f64, cases, streams));
    }
    Box::new(RepeatedModule::new(context, LENGTH_AXIS, spots))
}
