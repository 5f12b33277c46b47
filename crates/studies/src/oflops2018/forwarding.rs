//! Figures 6a and 6b and table I: forwarding latency by packet size, at a low rate and at line rate.
//!
//! Claim: a hardware switch has a latency of 2.5 µs at every size, with a 90th percentile two thirds higher for the
//! largest packets. Software has ten times that latency, and a hundred times more for small packets at line rate,
//! with high CPU load and packet loss.
//!
//! Method: one flow over one entry at 100 Mbit/s and at the full rate of the nominal link, with a send time in
//! every frame. The report shows the median over the repeats of each of median, minimum and 90th percentile. Loss
//! and CPU load of the target's processes come from the same trials. Parameters: `--set frame=` replaces the sizes.

use tester::stream::Rate;

use experiments::show::{Chart, Range};
use experiments::sweep::{Sweep, SweepPoint};
use experiments::{Context, Method};
use record::Implementation;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Variable of the curves.
const CURVE: &str = "load_mbps";

/// The study's packet sizes, and its low rate.
const SIZES: Parameter = shared::FRAMES.with_default("96,128,256,512,1024,1472");
const LOW_BPS: u64 = 100_000_000;

/// Report values of figure 6a, which is about hardware.
pub const HARDWARE: &[Chart] = &[latencies(Implementation::Hardware)];

/// Report values of figure 6b, which is about software.
pub const SOFTWARE: &[Chart] = &[latencies(Implementation::Software)];

/// Median latency with minimum and 90th percentile, as in the study.
const fn latencies(implementation: Implementation) -> Chart {
    let chart = Chart::values(
        "Median forwarding latency by packet size, at the low and the high rate",
        &["latency_ns_p50"],
        &["latency_ns_min", "latency_ns_p90", "latency_ns_mean", "rate_pps_offered", "loss_ratio"],
    );
    Chart {
        is_logarithmic: true,
        range: Some(Range::Metrics(["latency_ns_min", "latency_ns_p90"])),
        implementation: Some(implementation),
        ..chart
    }
}

/// Report values of the table: cost of forwarding.
pub const COSTS: &[Chart] = &[Chart::values(
    "Processor load and packet loss by packet size, at the low and the high rate",
    &["cpu_load_ratio", "loss_ratio"],
    &["rate_pps_offered", "rate_pps_forwarded"],
)];

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[SIZES];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let setup = context.setup();
    let full = context.capacity_bps;
    let mut points = Vec::new();
    for bps in [LOW_BPS, full] {
        if bps == full && full <= LOW_BPS {
            // A link of at most the low rate has only one rate.
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
