//! Broadcast frames (RFC 2889, 5.10): how many reach every other port, and how long they take.
//!
//! Method: the first port sends frames for everybody at what its link carries, at each frame size. Every copy is told
//! apart by the port on which it arrived: what is lost is the share of copies that did not reach a port. Latency is
//! that of the copies at the second port, where one of each frame is expected; the copies at the others stand among
//! what received frames were as flooded.

use instrument::stream::Rate;

use super::super::sweep::{Sweep, SweepPoint};
use super::super::{Context, Method};
use super::AXIS;
use crate::workload::mesh;

/// Load of each trial of latencies, in percent of what the port carries: low, so that it is no queue's.
const LATENCY_PERCENT: f64 = 10.0;

/// Forwarding under full load.
pub fn forwarding(context: &Context) -> Box<dyn Method> {
    at(context, 100.0)
}

/// Latency under a low load.
pub fn latency(context: &Context) -> Box<dyn Method> {
    at(context, LATENCY_PERCENT)
}

fn at(context: &Context, percent: f64) -> Box<dyn Method> {
    let setup = super::setup(context);
    let percent = context.loads_or(&[percent])[0];
    let point = |frame_bytes| {
        let pps = context.port_pps(frame_bytes, 1) * percent / 100.0;
        let stream = mesh::broadcast(&context.addresses, frame_bytes, Rate::FramesPerSecond(pps));
        let (x, trial) = (f64::from(frame_bytes), context.trial_of(vec![stream]));
        SweepPoint { x, curve: None, setup, trial }
    };
    let points = super::frames(context).into_iter().map(point).collect();
    Box::new(Sweep::new(AXIS, points, context.parameters.repeats))
}
