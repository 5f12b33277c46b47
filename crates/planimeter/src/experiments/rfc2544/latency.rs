//! Latency at the throughput (RFC 2544, 26.2).
//!
//! Method: at the throughput of each frame size a trial, repeated. The standard marks one frame in the middle
//! of a trial of 120 seconds and takes the mean of 20 trials; here every frame carries its send time, so
//! that its number is the mean of all frames, and median, tails and extremes stand beside it.

use super::super::based::{Based, Throughputs, at_throughput};
use super::super::{Context, Method};
use super::FRAMES;

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    Box::new(Based::new(context, context.frames(&FRAMES), repeated))
}

fn repeated(context: &Context, found: &Throughputs) -> Box<dyn Method> {
    at_throughput(context, found, context.parameters.repeats, false)
}
