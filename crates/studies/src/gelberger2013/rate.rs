//! Forwarding rates of all workloads: does the more flexible element cost more?
//!
//! Claim: flexibility reduces raw performance, and so does a more complex workload. The more flexible of two
//! programmable elements need not be slower. bianco2010 contradicts this: its OpenFlow switch and router
//! outperformed its bridge.
//!
//! Method: full nominal load of one flow at three frame sizes, for each workload that a target supports. The
//! forwarding rate is what bianco2010 calls throughput, so that the same trials apply to both studies. Parameters:
//! `--set frame=` the sizes.

use super::workload::{CURVE, RULES, Workload};
use experiments::show::Chart;
use experiments::sweep::{Sweep, SweepPoint};
use experiments::{Context, Method};
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Frame sizes: that of bianco2010's claims, one at which it reports wire speed for all, and the largest.
const FRAMES: Parameter = shared::FRAMES.with_default("64,256,1518");

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FRAMES, RULES];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[Chart::values(
    "Forwarding rate under full load by frame size",
    &["rate_pps_forwarded"],
    &["rate_pps_offered", "loss_ratio", "cpu_load_ratio"],
)];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let rate = context.link_percent(100.0);
    let points = Workload::of(context.technology).iter().flat_map(|work| {
        let setup = work.setup(context);
        context.frames(&FRAMES).into_iter().map(move |frame_bytes| SweepPoint {
            x: f64::from(frame_bytes),
            curve: Some((CURVE, work.number())),
            setup,
            trial: context.trial(&setup, frame_bytes, rate),
        })
    });
    Box::new(Sweep::new(AXIS, points.collect(), context.parameters.repeats))
}
