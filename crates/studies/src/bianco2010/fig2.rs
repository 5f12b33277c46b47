//! Figure 2: maximum forwarding rate of one flow over frame size, with tables of one entry.
//!
//! Claim: routing and OpenFlow reach nearly the offered load except for small frames, bridging is worse, and from
//! 256 bytes all three reach wire speed.
//!
//! Method: full nominal load of one flow, with frames of 64 to 1500 bytes; the offered load is drawn as reference.
//! The study's router had a destination cache, so this project's router is measured with and without one.

use experiments::sweep::{Sweep, SweepPoint};
use experiments::{Context, Method};
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Frame sizes. The study's axis runs from 64 to 1500 bytes; its text and table name these.
const FRAMES: Parameter = shared::FRAMES.with_default("64,96,128,256,512,1024,1500");

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FRAMES];

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let setup = context.setup();
    let points = context.frames(&FRAMES).into_iter().map(|frame_bytes| SweepPoint {
        x: f64::from(frame_bytes),
        curve: None,
        setup,
        trial: context.trial(&setup, frame_bytes, context.link_percent(100.0)),
    });
    Box::new(Sweep::new(AXIS, points.collect(), context.parameters.repeats))
}
