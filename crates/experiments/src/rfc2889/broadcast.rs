//! Broadcast frames (RFC 2889, 5.10): forwarding to every other port, and latency.
//!
//! Method: the first port sends broadcast frames at the capacity of its link, at each frame size. Copies are
//! distinguished by the port on which they arrive; the loss is the share of missing copies. The latency is that of
//! the copies at the second port, which should get one of each frame. The copies at the other ports count as
//! flooded frames.

use tester::stream::Rate;

use super::super::sweep::{Sweep, SweepPoint};
use super::super::{Context, Method};
use super::{AXIS, FRAMES};
use workload::mesh;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Load of each trial, in percent of the capacity of the port.
const LOAD: Parameter =
    Parameter { help: "offered load, in percent of the capacity of the port", ..shared::LOAD };

/// Load for latency: low, so that frames do not queue.
const LOAD_LATENCY: Parameter = LOAD.with_default("10");

/// Parameters of the forwarding test.
pub const PARAMETERS: &[Parameter] = &[FRAMES, LOAD];

/// Parameters of the latency test.
pub const PARAMETERS_LATENCY: &[Parameter] = &[FRAMES, LOAD_LATENCY];

/// Creates the method for forwarding under full load.
pub fn forwarding(context: &Context) -> Box<dyn Method> {
    at(context, &LOAD)
}

/// Creates the method for latency under a low load.
pub fn latency(context: &Context) -> Box<dyn Method> {
    at(context, &LOAD_LATENCY)
}

fn at(context: &Context, load: &Parameter) -> Box<dyn Method> {
    let setup = super::setup(context);
    let percent = context.load(load);
    let point = |frame_bytes| {
        let pps = context.port_pps(frame_bytes, 1) * percent / 100.0;
        let stream = mesh::broadcast(&context.addresses, frame_bytes, Rate::FramesPerSecond(pps));
        let (x, trial) = (f64::from(frame_bytes), context.trial_of(vec![stream]));
        SweepPoint { x, curve: None, setup, trial }
    };
    let points = super::frames(context).into_iter().map(point).collect();
    Box::new(Sweep::new(AXIS, points, context.parameters.repeats))
}
