//! Latency, packet delay variation and inter-packet delay variation (RFC 8219, 7.2 and 7.3).
//!
//! Method: at least 20 trials at the throughput of each frame size of section 5.1, in which every frame carries its
//! send time.
//!
//! - Typical latency is the median of a trial, worst-case latency its 99.9th percentile.
//! - PDV is the 99.9th percentile minus the minimum of the trial.
//! - IPDV is the signed difference between the latencies of consecutive frames: minimum, median, maximum.
//!
//! Each result is the median over the repeats; their 1st and 99th percentiles show the variation. The standard's
//! trials last 120 seconds and tag 500 frames of the second half. Trials here have the configured duration, and all
//! frames are tagged.

use super::throughput_based::{AtThroughput, Throughputs, at_throughput};
use super::{Context, Method};
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Frame sizes.
const FRAMES: Parameter = shared::FRAMES.with_default("64,128,256,512,768,1024,1280,1518");

/// Number of trials at each size.
const REPEATS: Parameter = Parameter {
    default: "20",
    help: "trials at each size; the standard requires at least twenty",
    ..shared::REPEATS
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FRAMES, REPEATS];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    Box::new(AtThroughput::new(context, context.frames(&FRAMES), often))
}

fn often(context: &Context, found: &Throughputs) -> Box<dyn Method> {
    at_throughput(context, found, context.count(&REPEATS), true)
}
