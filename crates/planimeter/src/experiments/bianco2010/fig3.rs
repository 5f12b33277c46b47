//! Figure 3: forwarding rate of one flow of 64-byte frames against offered load.
//!
//! Claim: the rate follows the load up to saturation and does not fall after the peak.
//! Method: one flow of 64-byte frames (or the first size of `--set frame`) at rising shares of the
//! nominal link, from underload to overload. The same trials give figure 4 its latencies.

use super::super::sweep::{Sweep, SweepPoint};
use super::super::{Context, Method};

/// Offered loads in percent of the nominal link: denser where targets saturate.
pub const LOAD_PERCENT: [f64; 8] = [1.0, 5.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0];

/// Name of the axis.
pub const AXIS: &str = "load_percent";

/// The method on one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let setup = context.setup();
    let frame_bytes = context.frames_or(&[64])[0];
    let points = context.loads_or(&LOAD_PERCENT).into_iter().map(|percent| SweepPoint {
        x: percent,
        curve: None,
        setup,
        trial: context.trial(&setup, frame_bytes, context.link_percent(percent)),
    });
    Box::new(Sweep::new(AXIS, points.collect(), context.parameters.repeats))
}
