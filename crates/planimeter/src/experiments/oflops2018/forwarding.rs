//! Figures 6a and 6b and table I: forwarding latency by packet size, at a low rate and at line rate.
//!
//! Claim: a hardware switch takes 2.5 µs whatever the size, with a 90th percentile two thirds higher for
//! the largest packets; software takes ten times as long, and a hundred times as long again where small
//! packets come at line rate, which costs it its processor and some of the packets. Method: one flow over
//! one entry at 100 Mbit/s and at the nominal link's full rate, every frame stamped; of the repeats the
//! median, least and 90th percentile each; loss and load of the target's processor from the same trials.
//! Parameters: `--set frame=` takes the place of the sizes.

use instrument::stream::Rate;

use super::super::sweep::{Sweep, SweepPoint};
use super::super::{Context, Method};
use crate::catalog::Show;
use crate::parameter::own::Declared;
use crate::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// What is varied from curve to curve.
const CURVE: &str = "load_mbps";

/// The study's packet sizes, and its low rate.
const SIZES: Declared = shared::FRAMES.with_default("96,128,256,512,1024,1472");
const LOW_BPS: u64 = 100_000_000;

/// Latencies, as both figures show them.
pub const LATENCIES: &[Show] = &[Show {
    is_logarithmic: true,
    ..Show::values(
        "Median forwarding latency by packet size, at the low and the high rate",
        &["latency_ns_p50"],
        &["latency_ns_min", "latency_ns_p90", "latency_ns_mean", "rate_pps_offered", "loss_ratio"],
    )
}];

/// What forwarding costs, as the table shows it.
pub const COSTS: &[Show] = &[Show::values(
    "Processor load and packet loss by packet size, at the low and the high rate",
    &["cpu_load_ratio", "loss_ratio"],
    &["rate_pps_offered", "rate_pps_forwarded"],
)];

/// Parameters of the experiment.
pub const PARAMETERS: &[Declared] = &[SIZES];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let setup = context.setup();
    let full = context.capacity_bps;
    let mut points = Vec::new();
    for bps in [LOW_BPS, full] {
        if bps == full && full <= LOW_BPS {
            // A link that carries no more has one rate.
            continue;
        }
        let rate = Rate::LinkPercent { percent: 100.0, link_bits_per_second: bps };
        points.extend(context.frames(&SIZES).into_iter().map(|frame_bytes| SweepPoint {
            x: f64::from(frame_bytes),
            curve: Some((CURVE, bps as f64 / 1e6)),
            setup,
            trial: context.trial(&setup, frame_bytes, rate),
        }));
    }
    Box::new(Sweep::new(AXIS, points, context.parameters.repeats))
}
