//! Broadcast frames (RFC 2889, 5.10): how many reach every other port, and how long they take.
//!
//! Method: the first port sends frames for everybody at what its link carries, at each frame size. Every copy is told
//! apart by the port on which it arrived: what is lost is the share of copies that did not reach a port. Latency is
//! that of the copies at the second port, where one of each frame is expected; the copies at the others stand among
//! what received frames were as flooded.

use instrument::stream::Rate;

use super::super::sweep::{Sweep, SweepPoint};
use super::super::{Context, Method};
use super::{AXIS, FRAMES};
use crate::parameter::own::Declared;
use crate::parameter::shared;
use crate::workload::mesh;

/// Load of each trial, in percent of what the port carries.
const LOAD: Declared =
    Declared { help: "offered load, in percent of what the port carries", ..shared::LOAD };

/// The same of latencies: low, so that they are no queue's.
const LOAD_LATENCY: Declared = LOAD.with_default("10");

/// What can be set of forwarding.
pub const PARAMETERS: &[Declared] = &[FRAMES, LOAD];

/// What can be set of latency.
pub const PARAMETERS_LATENCY: &[Declared] = &[FRAMES, LOAD_LATENCY];

/// Forwarding under full load.
pub fn forwarding(context: &Context) -> Box<dyn Method> {
    at(context, &LOAD)
}

/// Latency under a low load.
pub fn latency(context: &Context) -> Box<dyn Method> {
    at(context, &LOAD_LATENCY)
}

fn at(context: &Context, load: &Declared) -> Box<dyn Method> {
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
