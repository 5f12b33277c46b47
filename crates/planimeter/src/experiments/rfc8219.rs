//! Latency, packet delay variation and inter-packet delay variation (RFC 8219, 7.2 and 7.3).
//!
//! Method: at the throughput of each frame size of its section 5.1 trials of which every frame carries its send
//! time, at least 20 of them. Typical latency is a trial's median, worst-case latency its 99.9th percentile, PDV
//! the latter less the trial's minimum, and IPDV the signed difference between the latencies of frames that
//! were sent one after the other: least, median, greatest. Each is the median of the repeats; the 1st and
//! 99th percentile across them tell how far they vary. The standard's trials of 120 seconds, of whose second
//! half 500 frames are marked, are trials of the effort's length here, of which all frames are.

use super::based::{Based, Throughputs, at_throughput};
use super::{Context, Method};
use crate::parameter::own::Declared;
use crate::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Frame sizes.
const FRAMES: Declared = shared::FRAMES.with_default("64,128,256,512,768,1024,1280,1518");

/// Trials at each size.
const REPEATS: Declared = Declared {
    default: "20",
    help: "trials at each size, of which the standard wants twenty at the least",
    ..shared::REPEATS
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Declared] = &[FRAMES, REPEATS];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    Box::new(Based::new(context, context.frames(&FRAMES), often))
}

fn often(context: &Context, found: &Throughputs) -> Box<dyn Method> {
    at_throughput(context, found, context.count(&REPEATS), true)
}
