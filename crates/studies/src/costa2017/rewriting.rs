//! Table VI: cost of rewriting header fields, and verification of the effect.
//!
//! Claim: no hardware switch rewrites every field; a rewrite in hardware costs nothing.
//!
//! Method: the entries of both directions rewrite the same field. Client and server compare every byte of the first
//! packets, which detects a switch that accepts an entry without executing it. The study's rewrites set both
//! addresses or both ports. Beyond the study, each field that OpenFlow 1.3 can set is measured alone, on frames
//! that have it. A size is the study's, or the minimum for the headers.

use openflow::model::message::Message;
use openflow::model::{Action, Field, FlowMod, PRIORITY_DEFAULT};
use tester::stream::{Headers, Rate, Stream};

use super::common::{ANSWERS_PPS, OPEN_BESIDE, PACKETS, WAIT, compared, early, loops, trip, ways};
use super::matching::AXIS;
use experiments::control_plane::action_cases::{self, ActionCase, Kind};
use experiments::control_plane::round_trip::{BACK, THERE};
use experiments::control_plane::rounds::{ModulePoint, RepeatedModule};
use experiments::control_plane::rules::{FAR, NEAR};
use experiments::control_plane::updates::{PATIENCE, VERSION};
use experiments::show::Chart;
use experiments::{Context, Method};
use targets::flow_setup::{PORT_IN, PORT_OUT};
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the rewrite of both UDP ports.
const UDP_PORTS: &str = "udp_ports";

/// Packet size of the study.
const SIZE: usize = 64;

const FIELDS: Parameter = Parameter {
    key: "rewrites",
    takes: ValueType::Word(&["published", "all"]),
    default: "all",
    unit: "",
    help: "rewrites of the study, or also every other field that can be set",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FIELDS, PACKETS, OPEN_BESIDE, WAIT, VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Mean round-trip time by rewritten field",
        &[
            "none_rtt_ns_mean",
            "mac_rtt_ns_mean",
            "ip_rtt_ns_mean",
            "vlan_priority_rtt_ns_mean",
            "ip_tos_rtt_ns_mean",
            "udp_ports_rtt_ns_mean",
        ],
        &["tagged_none_rtt_ns_mean"],
    ),
    Chart::values(
        "Share of correct packets among the compared ones",
        &[
            "mac_right_ratio",
            "ip_right_ratio",
            "vlan_priority_right_ratio",
            "ip_tos_right_ratio",
            "udp_ports_right_ratio",
        ],
        &[
            "mac_done_ratio",
            "ip_done_ratio",
            "vlan_priority_done_ratio",
            "ip_tos_done_ratio",
            "udp_ports_done_ratio",
            "mac_refused_count",
            "ip_refused_count",
            "vlan_priority_refused_count",
            "ip_tos_refused_count",
            "udp_ports_refused_count",
        ],
    ),
];

/// Returns the rewrites of the study.
fn published() -> Vec<ActionCase> {
    let all = action_cases::all();
    let of = |name: &'static str, fields: [&str; 2]| {
        let found: Vec<&ActionCase> =
            all.iter().filter(|deed| fields.contains(&deed.name)).collect();
        let [first, second] = found[..] else { unreachable!("two rewrites have these names") };
        let actions = [first.actions.clone(), second.actions.clone()].concat();
        ActionCase { name, actions, ..first.clone() }
    };
    let one = |name: &'static str, field: &str| {
        let found = all.iter().find(|deed| deed.name == field);
        ActionCase { name, ..found.expect("a rewrite has this name").clone() }
    };
    fn both_macs(it: &mut Headers) {
        (it.mac_source, it.mac_destination) = (action_cases::MAC, action_cases::MAC);
    }
    fn both_addresses(it: &mut Headers) {
        (it.ip_source, it.ip_destination) = (action_cases::IPV4.into(), action_cases::IPV4.into());
    }
    fn both_ports(it: &mut Headers) {
        (it.port_source, it.port_destination) = (action_cases::PORT, action_cases::PORT);
    }
    vec![
        action_cases::plain(Kind::Plain, Vec::new()),
        action_cases::plain(Kind::Tagged, Vec::new()),
        ActionCase { changes: both_macs, ..of("mac", ["eth_src", "eth_dst"]) },
        ActionCase { changes: both_addresses, ..of("ip", ["ipv4_src", "ipv4_dst"]) },
        one("vlan_priority", "vlan_pcp"),
        one("ip_tos", "ip_dscp"),
        ActionCase { changes: both_ports, ..of(UDP_PORTS, ["udp_src", "udp_dst"]) },
    ]
}

/// Returns the prefix of the metric names of a rewrite.
fn prefix(name: &'static str) -> &'static str {
    record::Name::read(&format!("{name}_ns"))
        .map_or("", |kept| kept.text().strip_suffix("ns").unwrap_or_default())
}

/// Returns the packets of a type in both directions, and the entries that rewrite them.
fn rewritten(context: &Context, deed: &ActionCase) -> ([Stream; 2], [Stream; 2], Vec<Message>) {
    let plain = ways(context, SIZE);
    let [mut there, mut back] = plain.each_ref().map(|way| {
        let mut stream = deed.kind.stream(&way.headers, SIZE, 1, 1.0);
        stream.frame_bytes = SIZE.max(stream.frame_bytes_min());
        stream
    });
    (there.id, there.from, there.to) = (THERE, NEAR, FAR);
    (back.id, back.from, back.to) = (BACK, FAR, NEAR);
    back.rate = Rate::FramesPerSecond(ANSWERS_PPS);
    let rule = |port_in: u16, port_out: u16| {
        let mut actions = deed.actions.clone();
        actions.push(Action::output(port_out.into()));
        let matching = deed.kind.matching(0).with(Field::InPort, port_in);
        Message::FlowMod(FlowMod::add(matching, PRIORITY_DEFAULT, actions))
    };
    let changed = |way: &Stream| {
        let mut stream = way.clone();
        // The variable field has one value, which the rewrite may change too.
        stream.headers = way.flow(0);
        stream.vary.clear();
        (deed.changes)(&mut stream.headers);
        stream
    };
    let comes_out = [changed(&there), changed(&back)];
    ([there, back], comes_out, vec![rule(PORT_IN, PORT_OUT), rule(PORT_OUT, PORT_IN)])
}

/// Creates the method of this table for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let mut all = published();
    if context.parameters.own.text(&FIELDS) == "all" {
        all.extend(action_cases::all().into_iter().filter(|deed| deed.is_rewrite));
    }
    // The transport ports of OpenFlow 1.0 are those of UDP here.
    let ports = vec![
        Action::SetTransportSrc(action_cases::PORT),
        Action::SetTransportDst(action_cases::PORT),
    ];
    let at = |deed: ActionCase| -> Vec<ModulePoint> {
        let (ways, comes_out, rules) = rewritten(context, &deed);
        let mut trip = compared(trip(context, deed.name, ways, Some(rules)), comes_out);
        if deed.name == UDP_PORTS {
            let (_, _, rules) = rewritten(context, &ActionCase { actions: ports.clone(), ..deed });
            trip = early(trip, rules);
        }
        loops(context, SIZE as f64, prefix(trip.name), trip, &OPEN_BESIDE)
    };
    Box::new(RepeatedModule::new(context, AXIS, all.into_iter().flat_map(at).collect()))
}
