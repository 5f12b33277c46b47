//! Latency at the throughput (RFC 2544, 26.2).
//!
//! Method: repeated trials at the throughput of each frame size. The standard tags one frame in the middle of a
//! trial of 120 seconds and takes the mean of 20 trials. Here every frame carries its send time. The result is the
//! mean of all frames; the report also shows median, tails and extremes.

use super::super::throughput_based::{AtThroughput, Throughputs, at_throughput};
use super::super::{Context, Method};
use super::FRAMES;

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    Box::new(AtThroughput::new(context, context.frames(&FRAMES), repeated))
}

fn repeated(context: &Context, found: &Throughputs) -> Box<dyn Method> {
    at_throughput(context, found, context.parameters.repeats, false)
}
