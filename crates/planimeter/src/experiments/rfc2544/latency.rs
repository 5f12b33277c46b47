//! Latency at the throughput (RFC 2544, 26.2).
//!
//! Method: at the throughput of each frame size a trial, repeated. The standard marks one frame in the middle
//! of a trial of 120 seconds and takes the mean of 20 trials; here every frame carries its send time, so
//! that its number is the mean of all frames, and median, tails and extremes stand beside it.

use instrument::stream::Rate;

use super::super::based::{Based, Throughputs};
use super::super::sweep::{Sweep, SweepPoint};
use super::super::{Context, Method};
use super::{AXIS, FRAME_BYTES};

/// The method on one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    Box::new(Based::new(context, context.frames_or(&FRAME_BYTES), at_throughput))
}

fn at_throughput(context: &Context, found: &Throughputs) -> Box<dyn Method> {
    let setup = context.setup();
    let point = |(frame_bytes, pps)| SweepPoint {
        x: f64::from(frame_bytes),
        curve: None,
        setup,
        trial: context.trial(&setup, frame_bytes, Rate::FramesPerSecond(pps)),
    };
    Box::new(Sweep::new(AXIS, found.each().map(point).collect(), context.parameters.repeats))
}
