//! Tables VII and VIII, figures 7 to 10: statistics reply time over one entry and over a nearly full table, under
//! light and under heavy load.
//!
//! Claim: flow statistics take much longer over a nearly full table, port statistics do so on few switches; a heavy
//! load delays some.
//!
//! Method: flow and port statistics are each requested every second. Frames run at 1 MB/s, then at the capacity of
//! link and tester, in the largest frames as iperf sends them. Alternatively iperf3 itself sends them from a host
//! at the end of the link to another, at its maximum rate for the heavy load. Nearly full is 90 % of the maximum,
//! which the study found stable. Filling ends at a limit if the switch accepts more.

use packet::time::Nanos;
use tester::module::Module;
use tester::module::host_tasks::{Program, payload_bytes};
use tester::stream::Stream;

use super::filling::{AXIS, BOUND, bound};
use experiments::control_plane::polling::{BackgroundLoad, Polling, PollingSettings};
use experiments::control_plane::round_trip::table_fill::Fill;
use experiments::control_plane::rounds::{ModulePoint, RepeatedModule};
use experiments::control_plane::rules::Rules;
use experiments::control_plane::updates::{PATIENCE, VERSION, versions};
use experiments::show::Chart;
use experiments::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Light load, in bytes of frames per second, or of UDP payload for iperf3.
const LIGHT_BYTES: f64 = 1e6;

/// Size of frames that iperf sends on Ethernet.
const FRAME_BYTES: u16 = 1512;

/// Stable share of the maximum number of entries, in percent.
const NEARLY_PERCENT: f64 = 90.0;

const REQUESTS: Parameter = Parameter {
    key: "requests",
    takes: ValueType::Integer(0, 100_000),
    default: "0",
    unit: "requests",
    help: "requests of each type under each load; 0 means 30, or 3 if trials are shorter than a \
           second",
};

const PACE: Parameter = Parameter {
    key: "pace",
    takes: ValueType::Number(0.001, 3600.0),
    default: "1",
    unit: "s",
    help: "interval between two requests of one type",
};

const HEAVY: Parameter = Parameter {
    key: "heavy_pps",
    takes: ValueType::Number(0.0, 2e7),
    default: "0",
    unit: "frames/s",
    help: "heavy load; 0 means the maximum of link and tester",
};

const SOURCE: Parameter = Parameter {
    key: "load_by",
    takes: ValueType::Word(&["tester", IPERF3]),
    default: "tester",
    unit: "",
    help: "source of the load: the tester's port, or iperf3 as in the study, between hosts with \
           sockets (over veth)",
};

/// Version 3 of the program that the study used.
const IPERF3: &str = "iperf3";

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[REQUESTS, PACE, HEAVY, SOURCE, BOUND, VERSION, PATIENCE];

const fn shows(
    title: &'static str,
    drawn: &'static [&'static str],
    beside: &'static [&'static str],
) -> Chart {
    Chart::values(title, drawn, beside)
}

/// Report values of table VII.
pub const FLOWS: &[Chart] = &[shows(
    "Mean flow statistics reply time by occupancy of the table",
    &["light_flow_reply_ns_mean", "heavy_flow_reply_ns_mean"],
    &[
        "filling_rules",
        "light_flow_reply_rows",
        "light_flow_answered_ratio",
        "heavy_flow_answered_ratio",
        "heavy_flow_unknown_count",
        "light_load_pps",
        "heavy_load_pps",
    ],
)];

/// Report values of table VIII.
pub const PORTS: &[Chart] = &[shows(
    "Mean port statistics reply time by occupancy of the table",
    &["light_port_reply_ns_mean", "heavy_port_reply_ns_mean"],
    &[
        "filling_rules",
        "light_port_reply_rows",
        "light_port_answered_ratio",
        "heavy_port_answered_ratio",
        "heavy_port_unknown_count",
        "light_load_pps",
        "heavy_load_pps",
    ],
)];

const fn distribution(title: &'static str, series: &'static [&'static str]) -> Chart {
    Chart { is_logarithmic: true, ..Chart::series(title, series) }
}

/// Report values of figure 7.
pub const FLOWS_ONE: &[Chart] = &[distribution(
    "Flow statistics reply time over one entry under heavy load",
    &["heavy_one_flow_share"],
)];

/// Report values of figure 8.
pub const FLOWS_FULL: &[Chart] = &[distribution(
    "Flow statistics reply time over a nearly full table under heavy load",
    &["heavy_full_flow_share"],
)];

/// Report values of figure 9.
pub const PORTS_ONE: &[Chart] = &[distribution(
    "Port statistics reply time over one entry under heavy load",
    &["heavy_one_port_share"],
)];

/// Report values of figure 10.
pub const PORTS_FULL: &[Chart] = &[distribution(
    "Port statistics reply time over a nearly full table under heavy load",
    &["heavy_full_port_share"],
)];

/// Creates the method of these tables for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let requests = match own.integer(&REQUESTS) {
        0 if context.parameters.seconds < 1.0 => 3,
        0 => 30,
        asked => asked,
    };
    let light = LIGHT_BYTES / f64::from(FRAME_BYTES);
    let heavy = match own.number(&HEAVY) {
        0.0 => context.most_pps(FRAME_BYTES),
        asked => asked,
    };
    let one = Rules::new(context, 1);
    // A configured rate also applies to a program; without one, the program sends at its own maximum.
    let asked = Some(own.number(&HEAVY)).filter(|pps| *pps > 0.0);
    let asked = asked.map(|pps| pps * payload_bytes(FRAME_BYTES.into()) as f64);
    let is_program = own.text(&SOURCE) == IPERF3;
    let load = |(name, id, pps, bytes): (&'static str, u16, f64, Option<f64>)| {
        let stream: Stream = one.probes(id, FRAME_BYTES.into(), pps);
        BackgroundLoad { name, stream, program: is_program.then_some((Program::Iperf3, bytes)) }
    };
    let pace = own.number(&PACE);
    let at = |name: &'static str, x: f64, rules: u32, share: f64| {
        let poll = PollingSettings {
            name,
            fill: Fill { rules: Rules::new(context, rules), is_exact: true, share, leaves: 0 },
            loads: vec![
                load(("light", 1, light, Some(LIGHT_BYTES))),
                load(("heavy", 2, heavy, asked)),
            ],
            requests: requests as u32,
            pace: Nanos::from_secs_f64(pace),
            versions: versions(context),
            patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
        };
        let make = move |_| Box::new(Polling::new(poll.clone())) as Box<dyn Module>;
        ModulePoint::new(x, 2.0 * pace * requests as f64, make)
    };
    let spots = vec![
        at("one", 0.0, 1, 1.0),
        at("full", NEARLY_PERCENT, bound(context), NEARLY_PERCENT / 100.0),
    ];
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
