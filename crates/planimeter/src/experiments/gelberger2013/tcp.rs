//! Figures 4 and 7: throughput of one connection by TCP, by window and by frame size, for each workload.
//!
//! Claim: the richer element carries more than the OpenFlow switch at most frame sizes, and the kernel more than both.
//! Method: as in the study, iperf from a host at one end to a host at the other, with windows from 5 KB to 10 MB; by
//! frame size the window is the largest of them. The study says neither its version of iperf nor its congestion
//! control: here it is iperf3 with CUBIC. Its text gives both figures one description and does not say what tells them
//! apart; here figure 4 has the windows and figure 7 the frames. What the window came to, what was sent again and which timers
//! ran out stand beside. A connection is many packets, and lasts a second at least: there are half as many repeats as of a
//! trial.
//! Parameters: `--set window=` the windows, `--set frame=` the frame sizes, `--set seconds=` how long each lasts.

use instrument::module::Module;
use instrument::module::hosts::{Program, Transfer};
use packet::time::Nanos;

use super::super::modules::rounds::{Rounds, Spot};
use super::super::modules::tcp::{Connection, Tcp};
use super::super::modules::updates::{PATIENCE, VERSION, versions};
use super::super::{Context, Method};
use super::workload::{CURVE, RULES, Work};
use crate::catalog::Show;
use crate::parameter::own::{Declared, Takes};
use crate::parameter::shared;

/// Name of the axis of figure 4.
pub const WINDOW_AXIS: &str = "window_bytes";

/// Name of the axis of figure 7.
pub const FRAME_AXIS: &str = "frame_bytes";

/// Frame sizes: the smallest that Linux lets a program request, and those between it and the largest.
const FRAMES: Declared = Declared {
    takes: Takes::Integers(146, 1518),
    default: "quick 146,512,1518; 146,256,512,1024,1518",
    ..shared::FRAMES
};

/// What a program takes beside the time in which it sends, in seconds.
const AROUND_S: f64 = 0.5;

/// Windows that are asked for.
const WINDOWS: Declared = Declared {
    key: "window",
    takes: Takes::Integers(2048, 512 << 20),
    default: "quick 5000,100000,2000000,10000000; 5000,20000,100000,500000,2000000,10000000",
    unit: "bytes",
    help: "windows that both ends of a connection are given",
};

/// The window by frame size.
const WINDOW: Declared = Declared {
    key: "window_bytes",
    takes: Takes::Integer(2048, 512 << 20),
    default: "10000000",
    help: "window that both ends of a connection are given",
    ..WINDOWS
};

/// What can be set of figure 4.
pub const PARAMETERS: &[Declared] =
    &[WINDOWS, VERSION, PATIENCE, RULES, shared::REPEATS_OF_SEARCHES];

/// What can be set of figure 7.
pub const PARAMETERS_BY_FRAME: &[Declared] =
    &[FRAMES, WINDOW, VERSION, PATIENCE, RULES, shared::REPEATS_OF_SEARCHES];

/// What figure 4 shows.
pub const BY_WINDOW: &[Show] = &[
    Show::values("Throughput of TCP by window", &["tcp_throughput_bps"], BESIDE),
    Show::values(
        "Segments sent again by window",
        &["retransmits_count"],
        &["timeouts_count", "timeouts_spurious_count", "retransmits_ratio"],
    ),
];

/// What figure 7 shows.
pub const BY_FRAME: &[Show] = &[
    Show::values("Throughput of TCP by frame size", &["tcp_throughput_bps"], BESIDE),
    Show::values(
        "Segments sent again by frame size",
        &["retransmits_count"],
        &["timeouts_count", "timeouts_spurious_count", "retransmits_ratio"],
    ),
];

const BESIDE: &[&str] =
    &["window_obtained_bytes", "window_congestion_bytes", "tcp_rtt_ns_mean", "retransmits_count"];

/// Figure 4 on one target.
pub fn by_window(context: &Context) -> Box<dyn Method> {
    let windows = context.parameters.own.integers(&WINDOWS);
    let at = |work: Work| windows.iter().map(move |window| (work, *window as f64, *window, None));
    rounds(context, WINDOW_AXIS, Work::of(context.technology).iter().flat_map(|work| at(*work)))
}

/// Figure 7 on one target.
pub fn by_frame(context: &Context) -> Box<dyn Method> {
    let window = context.parameters.own.integer(&WINDOW);
    let frames = context.frames(&FRAMES);
    let at = |work: Work| {
        let frames = frames.iter();
        frames.map(move |bytes| (work, f64::from(*bytes), window, Some(u32::from(*bytes))))
    };
    rounds(context, FRAME_AXIS, Work::of(context.technology).iter().flat_map(|work| at(*work)))
}

/// A connection for each workload, place on the axis, window and frame size.
fn rounds(
    context: &Context,
    axis: &'static str,
    places: impl Iterator<Item = (Work, f64, u64, Option<u32>)>,
) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let spot = |(work, x, window, frame_bytes): (Work, f64, u64, Option<u32>)| {
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
        let spot = Spot::new(x, seconds, make).on(CURVE, work.number());
        if is_controlled { spot } else { spot.over(work.setup(context)) }
    };
    let spots = places.map(spot).collect();
    let mut half = context.clone();
    half.parameters.repeats = context.searches();
    Box::new(Rounds::new(&half, axis, spots))
}
