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
use super::workload::{CURVE, Work};
use crate::catalog::Show;
use crate::parameter::own::{Declared, Takes};

/// Name of the axis of figure 4.
pub const WINDOW_AXIS: &str = "window_bytes";

/// Name of the axis of figure 7.
pub const FRAME_AXIS: &str = "frame_bytes";

/// Frame sizes: the smallest that Linux lets a program ask for, and those between it and the largest.
const FRAMES: [u16; 5] = [146, 256, 512, 1024, 1518];

/// The smallest and the largest of them.
const FRAME_LEAST: u16 = FRAMES[0];
const FRAME_MOST: u16 = FRAMES[4];

/// What a program takes beside the time in which it sends, in seconds.
const AROUND_S: f64 = 0.5;

/// Windows that are asked for.
const WINDOWS: Declared = Declared {
    key: "window",
    takes: Takes::Integers(2048, 512 << 20),
    default: "5000,20000,100000,500000,2000000,10000000",
    unit: "bytes",
    help: "windows that both ends of a connection are given; by frame size the largest of them; where trials last less \
           than a second every other one",
};

/// What can be set.
pub const PARAMETERS: &[Declared] = &[WINDOWS, VERSION, PATIENCE];

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
    let windows = windows(context);
    let at = |work: Work| windows.iter().map(move |window| (work, *window as f64, *window, None));
    rounds(context, WINDOW_AXIS, Work::of(context.technology).iter().flat_map(|work| at(*work)))
}

/// Figure 7 on one target.
pub fn by_frame(context: &Context) -> Box<dyn Method> {
    let window = windows(context).into_iter().max().unwrap_or_default();
    let mut frames = context.frames_or(&thinned(context, FRAMES.to_vec()));
    // What no program can ask for is asked for as what comes nearest.
    frames.iter_mut().for_each(|bytes| *bytes = (*bytes).clamp(FRAME_LEAST, FRAME_MOST));
    frames.dedup();
    let at = |work: Work| {
        let frames = frames.iter();
        frames.map(move |bytes| (work, f64::from(*bytes), window, Some(u32::from(*bytes))))
    };
    rounds(context, FRAME_AXIS, Work::of(context.technology).iter().flat_map(|work| at(*work)))
}

/// The windows that are asked for.
fn windows(context: &Context) -> Vec<u64> {
    let own = &context.parameters.own;
    match own.text(&WINDOWS) == WINDOWS.default {
        true => thinned(context, own.integers(&WINDOWS)),
        false => own.integers(&WINDOWS),
    }
}

/// Every other one of a row for a first look, and the last: a connection takes a second at least.
fn thinned<T>(context: &Context, row: Vec<T>) -> Vec<T> {
    let is_first_look = context.parameters.seconds < 1.0;
    let last = row.len().saturating_sub(1);
    let stays = |place: usize| !is_first_look || place.is_multiple_of(2) || place == last;
    row.into_iter().enumerate().filter(|(place, _)| stays(*place)).map(|(_, it)| it).collect()
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
