//! The study's question and its quarrel with bianco2010: does the richer cost more, all workloads side by side?
//!
//! Claim: flexibility costs raw performance, and so does a more complex workload; but the richer of two programmable elements need
//! not be the slower. bianco2010, whose OpenFlow switch and router outran its bridge, says otherwise. Method: full nominal load of
//! one flow in frames of three sizes, for each workload that a target can do: the forwarding rate is what bianco2010 calls
//! throughput, so that both studies are put to the same trials. Parameters: `--set frame=` the sizes.

use super::super::sweep::{Sweep, SweepPoint};
use super::super::{Context, Method};
use super::workload::{CURVE, RULES, Work};
use crate::catalog::Show;
use crate::parameter::own::Declared;
use crate::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Frame sizes: the one of bianco2010's claims, one at which it says that all reach the wire's speed, and the largest.
const FRAMES: Declared = shared::FRAMES.with_default("64,256,1518");

/// Parameters of the experiment.
pub const PARAMETERS: &[Declared] = &[FRAMES, RULES];

/// Values that the report shows.
pub const SHOWS: &[Show] = &[Show::values(
    "Forwarding rate at full load by frame size",
    &["rate_pps_forwarded"],
    &["rate_pps_offered", "loss_ratio", "cpu_load_ratio"],
)];

/// The rates of one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let rate = context.link_percent(100.0);
    let points = Work::of(context.technology).iter().flat_map(|work| {
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
