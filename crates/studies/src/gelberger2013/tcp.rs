//! Figures 4 and 7: throughput of one TCP connection, by window and by frame size, for each workload.
//!
//! Claim: the more flexible element has a higher throughput than the OpenFlow switch at most frame sizes, and the
//! kernel has a higher one than both.
//!
//! Method: as in the study, iperf runs between a host at either end, with windows from 5 KB to 10 MB. The runs by
//! frame size use the largest window. The study states neither its iperf version nor its congestion control; here
//! it is iperf3 with CUBIC. Its text describes both figures in the same way. Here, figure 4 shows the windows and
//! figure 7 the frame sizes. The report also shows the actual window, retransmissions and expired timers.
//!
//! A connection has many packets and lasts at least a second, so there are half as many repeats as for a trial.
//! Parameters: `--set window=` the windows, `--set frame=` the frame sizes, `--set seconds=` the duration of each.

use packet::time::Nanos;
use tester::module::Module;
use tester::module::host_tasks::{Program, Transfer};

use super::workload::{CURVE, RULES, Workload};
use experiments::control_plane::rounds::{ModulePoint, RepeatedModule};
use experiments::control_plane::tcp::{Connection, Tcp};
use experiments::control_plane::updates::{PATIENCE, VERSION, versions};
use experiments::show::Chart;
use experiments::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};
use workload::parameter::shared;

/// Name of the axis of figure 4.
pub const WINDOW_AXIS: &str = "window_bytes";

/// Name of the axis of figure 7.
pub const FRAME_AXIS: &str = "frame_bytes";

/// Frame sizes: the smallest that Linux accepts from a program, and those up to the largest.
const FRAMES: Parameter = Parameter {
    takes: ValueType::Integers(146, 1518),
    default: "quick 146,512,1518; 146,256,512,1024,1518",
    ..shared::FRAMES
};

/// Additional time of a program over its sending time, in seconds.
const AROUND_S: f64 = 0.5;

/// Requested windows.
const WINDOWS: Parameter = Parameter {
    key: "window",
    takes: ValueType::Integers(2048, 512 << 20),
    default: "quick 5000,100000,2000000,10000000; 5000,20000,100000,500000,2000000,10000000",
    unit: "bytes",
    help: "windows of both ends of a connection",
};

/// Window for the runs by frame size.
const WINDOW: Parameter = Parameter {
    key: "window_bytes",
    takes: ValueType::Integer(2048, 512 << 20),
    default: "10000000",
    help: "window of both ends of a connection",
    ..WINDOWS
};

/// Parameters of figure 4.
pub const PARAMETERS: &[Parameter] =
    &[WINDOWS, VERSION, PATIENCE, RULES, shared::REPEATS_OF_SEARCHES];

/// Parameters of figure 7.
pub const PARAMETERS_BY_FRAME: &[Parameter] =
    &[FRAMES, WINDOW, VERSION, PATIENCE, RULES, shared::REPEATS_OF_SEARCHES];

/// Report values of figure 4.
pub const BY_WINDOW: &[Chart] = &[
    Chart::values("TCP throughput by window", &["tcp_throughput_bps"], BESIDE),
    Chart::values(
        "TCP retransmissions by window",
        &["retransmits_count"],
        &["timeouts_count", "timeouts_spurious_count", "retransmits_ratio"],
    ),
];

/// Report values of figure 7.
pub const BY_FRAME: &[Chart] = &[
    Chart::values("TCP throughput by frame size", &["tcp_throughput_bps"], BESIDE),
    Chart::values(
        "TCP retransmissions by frame size",
        &["retransmits_count"],
        &["timeouts_count", "timeouts_spurious_count", "retransmits_ratio"],
    ),
];

const BESIDE: &[&str] =
    &["window_obtained_bytes", "window_congestion_bytes", "tcp_rtt_ns_mean", "retransmits_count"];

/// Creates the method of figure 4.
pub fn by_window(context: &Context) -> Box<dyn Method> {
    let windows = context.parameters.own.integers(&WINDOWS);
    let at =
        |work: Workload| windows.iter().map(move |window| (work, *window as f64, *window, None));
    rounds(context, WINDOW_AXIS, Workload::of(context.technology).iter().flat_map(|work| at(*work)))
}

/// Creates the method of figure 7.
pub fn by_frame(context: &Context) -> Box<dyn Method> {
    let window = context.parameters.own.integer(&WINDOW);
    let frames = context.frames(&FRAMES);
    let at = |work: Workload| {
        let frames = frames.iter();
        frames.map(move |bytes| (work, f64::from(*bytes), window, Some(u32::from(*bytes))))
    };
    rounds(context, FRAME_AXIS, Workload::of(context.technology).iter().flat_map(|work| at(*work)))
}

/// Creates a connection for each workload, position on the axis, window and frame size.
fn rounds(
    context: &Context,
    axis: &'static str,
    places: impl Iterator<Item = (Workload, f64, u64, Option<u32>)>,
) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let spot = |(work, x, window, frame_bytes): (Workload, f64, u64, Option<u32>)| {
        let rules = work.rules(context);
        let is_controlled = rules.is_some();
        let tcp = Tcp {
            rules,
            transfer: Transfer {
                program: Program::Iperf3,
                hosts: work.hosts(context),
                untags: work.vlans(context),
                window_bytes: Some(window),
                frame_bytes,
                span: Nanos::from_secs_f64(context.parameters.seconds),
            },
            versions: versions(context),
            patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
        };
        let seconds = context.parameters.seconds.ceil().max(1.0) + AROUND_S;
        let make = move |_| Box::new(Connection::new(tcp.clone())) as Box<dyn Module>;
        let spot = ModulePoint::new(x, seconds, make).on(CURVE, work.number());
        if is_controlled { spot } else { spot.over(work.setup(context)) }
    };
    let spots = places.map(spot).collect();
    let mut half = context.clone();
    half.parameters.repeats = context.searches();
    Box::new(RepeatedModule::new(&half, axis, spots))
}
