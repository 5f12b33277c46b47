//! Figure 3: bridges as fixed code and as programs, by latency and throughput.
//!
//! Claim: on a network processor, a bridge as a program has about 5 microseconds more latency than a bridge in
//! dedicated code. It has about 5 more when it is configured for more than forty other workloads. Their throughput
//! is the same.
//!
//! Method: at each frame size, one trial at full nominal load gives the rate. Another trial at a rate that every
//! target can carry gives the latency. The study's bridges used a network processor; the most similar link here is
//! shared memory: `--link memif`. Parameters: `--set latency_pps=`, `--set frame=`.

use record::{Metric, Name};
use tester::stream::Rate;
use tester::trial::{Trial, TrialReport};

use super::latency::{AXIS, RATE};
use experiments::show::Chart;
use experiments::sweep::{Reading, Sweep, SweepPoint};
use experiments::{Context, Method};
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Frame sizes.
const FRAMES: Parameter = shared::FRAMES.with_default("64,128,256,512,1024,1518");

/// Name of the curves: low or full load.
const CURVE: &str = "trial_load";
const LOW: f64 = 0.0;
const FULL: f64 = 1.0;

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[RATE, FRAMES];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart {
        is_logarithmic: true,
        ..Chart::values(
            "Latency of bridges by frame size under a low load",
            &["bridge_latency_ns_p50"],
            &["bridge_latency_ns_mean", "bridge_latency_ns_p99", "bridge_latency_ns_max"],
        )
    },
    Chart::values(
        "Forwarding rate of bridges by frame size under full load",
        &["bridge_rate_pps"],
        &["bridge_loss_ratio"],
    ),
];

/// Creates the method of this figure for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let setup = context.setup();
    let pps = context.parameters.own.number(&RATE);
    let mut points = Vec::new();
    for frame_bytes in context.frames(&FRAMES) {
        let low = Rate::FramesPerSecond(pps.min(context.most_pps(frame_bytes)));
        for (load, rate) in [(LOW, low), (FULL, context.link_percent(100.0))] {
            points.push(SweepPoint {
                x: f64::from(frame_bytes),
                curve: Some((CURVE, load)),
                setup,
                trial: context.trial(&setup, frame_bytes, rate),
            });
        }
    }
    Box::new(Sweep::new(AXIS, points, context.parameters.repeats).reading(read))
}

/// Reads the latency of a low load, and the forwarding rate of the full load.
fn read(trial: &Trial, report: &TrialReport) -> Vec<Reading> {
    let is_full = trial.streams.iter().any(|it| matches!(it.rate, Rate::LinkPercent { .. }));
    let delays = &report.latency.from_sent;
    let whole = |ns: Option<u64>| ns.map(|ns| ns as f64);
    let found = match is_full {
        true => vec![
            ("bridge_rate_pps", Some(report.total.pps_forwarded())),
            ("bridge_loss_ratio", Some(report.total.loss_ratio())),
        ],
        false => vec![
            ("bridge_latency_ns_p50", whole(delays.ns_at_quantile(0.5))),
            ("bridge_latency_ns_mean", delays.ns_mean()),
            ("bridge_latency_ns_p99", whole(delays.ns_at_quantile(0.99))),
            ("bridge_latency_ns_max", whole(delays.ns_max())),
        ],
    };
    let reading = |(name, value): (&'static str, Option<f64>)| {
        Some(Reading { metric: Metric::Named(Name::of(name)), value: value?, is_irregular: false })
    };
    found.into_iter().filter_map(reading).collect()
}
