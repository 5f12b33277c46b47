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

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Frame sizes, FCS included.
pub const FRAME_BYTES: [u16; 8] = [64, 128, 256, 512, 768, 1024, 1280, 1518];

/// Trials at each size, at the least.
pub const REPEATS_MIN: u32 = 20;

/// The method on one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    Box::new(Based::new(context, context.frames_or(&FRAME_BYTES), often))
}

fn often(context: &Context, found: &Throughputs) -> Box<dyn Method> {
    at_throughput(context, found, context.parameters.repeats.max(REPEATS_MIN), true)
}
