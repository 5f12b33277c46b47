//! Figure 3: forwarding rate of one flow of 64-byte frames against offered load.
//!
//! Claim: the rate follows the load up to saturation and does not fall after the peak.
//! Method: one flow of 64-byte frames (or each size of `--set frame`) at rising shares of the
//! nominal link, from underload to overload. The same trials give figure 4 its latencies.

use experiments::sweep::{Sweep, SweepPoint};
use experiments::{Context, FRAME_CURVE, Method, curve_of};
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Offered loads: denser where targets saturate.
const LOADS: Parameter = shared::LOADS.with_default("1,5,10,20,40,60,80,100");

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[shared::FRAMES, LOADS];

/// Name of the axis.
pub const AXIS: &str = "load_percent";

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let setup = context.setup();
    let (frames, loads) = (context.frames(&shared::FRAMES), context.loads(&LOADS));
    let point = |frame_bytes: u16, percent: f64| SweepPoint {
        x: percent,
        curve: curve_of(FRAME_CURVE, &frames, frame_bytes),
        setup,
        trial: context.trial(&setup, frame_bytes, context.link_percent(percent)),
    };
    let of = |&frame_bytes: &u16| loads.iter().map(move |&percent| (frame_bytes, percent));
    let points = frames.iter().flat_map(of).map(|(size, percent)| point(size, percent));
    Box::new(Sweep::new(AXIS, points.collect(), context.parameters.repeats))
}
