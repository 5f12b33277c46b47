//! Observation of a running element: traces of frames, block by block, and the cost of each block.
//!
//! - Most frames take the compiled fast path, which has no blocks. Observed frames go through the
//!   [interpreter](crate::interpret) instead, with the same result and in arrival order.
//! - Observation runs only on request and ends at a fixed deadline, even if the requester
//!   disappears.
//! - This module reads no clock. The caller passes a counter for cost measurement.

use std::sync::Arc;

use dataplane::forwarder::Outputs;
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::executor::Enforcer;
use crate::program::{End, Program};
use crate::trace::Trace;

pub mod cost;
pub mod tracing;

pub use cost::Costs;
pub use tracing::{TraceRecord, Tracing, Wanted};

/// What to record of a frame.
#[derive(Debug, Default)]
pub enum ObservationHook<'w> {
    /// Nothing.
    #[default]
    Nothing,
    /// Each step.
    Trace(&'w mut Trace),
    /// The cost of each step.
    Costs(&'w mut Costs),
}

impl ObservationHook<'_> {
    /// Reborrows the watch for a part of the path.
    pub(crate) fn part(&mut self) -> ObservationHook<'_> {
        match self {
            ObservationHook::Nothing => ObservationHook::Nothing,
            ObservationHook::Trace(trace) => ObservationHook::Trace(trace),
            ObservationHook::Costs(costs) => ObservationHook::Costs(costs),
        }
    }

    /// Starts the cost measurement of a frame in a block.
    #[inline]
    pub(crate) fn begin(&self) -> u64 {
        if let ObservationHook::Costs(costs) = self { costs.read() } else { 0 }
    }

    /// Ends the cost measurement of a frame in a block.
    #[inline]
    pub(crate) fn end(&mut self, instance: usize, since: u64) {
        if let ObservationHook::Costs(costs) = self {
            costs.note(instance, since);
        }
    }
}

/// Active trace and cost measurement of an element.
#[derive(Debug, Default)]
pub struct Observing {
    /// Cost measurement, if requested.
    pub costs: Option<Costs>,
    /// Trace, if requested.
    pub tracing: Option<Tracing>,
    /// Number of traces requested so far.
    pub(crate) tracings: u64,
}

impl Observing {
    /// Returns true if frames of a port must arrive in `forward` instead of being decided in place.
    pub fn wants(&self, port: PortNo, now: Nanos) -> bool {
        let costs = self.costs.as_ref().is_some_and(|costs| costs.wants(now));
        costs || self.tracing.as_ref().is_some_and(|tracing| tracing.wants(port, now))
    }

    /// Returns true if a trace has not ended, so that all frames must come to this element.
    pub fn is_tracing(&self, now: Nanos) -> bool {
        self.tracing.as_ref().is_some_and(|tracing| tracing.ended(now).is_none())
    }

    /// Counts frames that are not observed.
    pub fn pass_by(&mut self, frames: usize) {
        if let Some(costs) = &mut self.costs {
            costs.pass_by(frames);
        }
    }

    /// Forwards a batch of a port and observes frames as requested.
    pub fn forward<E: Enforcer>(
        &mut self,
        enforcer: &mut E,
        port: PortNo,
        batch: &mut Batch,
        (now, out): (Nanos, &mut Outputs),
    ) {
        let tracing = self.tracing.as_mut().filter(|it| it.wants(port, now));
        if let Some(tracing) = tracing
            && batch.frames_mut().iter_mut().any(|frame| tracing.is_meant(port, frame))
        {
            for frame in batch.frames_mut() {
                if tracing.wants(port, now) && tracing.is_meant(port, frame) {
                    tracing.follow(enforcer, port, frame, now, out);
                } else {
                    enforcer.pass(port, frame, now, out, ObservationHook::Nothing);
                }
            }
        } else if let Some(costs) = self.costs.as_mut().filter(|it| it.wants(now)) {
            let frames = batch.frames_mut();
            frames.iter_mut().for_each(|it| costs.sample(enforcer, port, it, now, out));
        } else {
            self.pass_by(batch.len());
            return enforcer.forward(port, batch, now, out);
        }
        // The engine serves queues after a batch.
        enforcer.forward(port, &mut Batch::new(0), now, out);
    }

    /// Handles a program change. Collected data becomes invalid unless blocks and links are the
    /// same.
    pub fn program_changed(&mut self, program: &Arc<Program>) {
        if let Some(costs) = &mut self.costs {
            costs.program_changed(program);
        }
        if let Some(tracing) = &mut self.tracing {
            tracing.program_changed(program);
        }
    }
}

/// Returns true if two programs have the same blocks, links and frame formats, so that indices are
/// valid for both.
fn is_alike(one: &Arc<Program>, other: &Arc<Program>) -> bool {
    let blocks = |program: &Arc<Program>| -> Vec<(String, u32)> {
        program.instances.iter().map(|it| (it.name.clone(), it.class)).collect()
    };
    let links = |program: &Arc<Program>| -> Vec<(End, End)> {
        program.links.iter().map(|link| (link.from, link.to)).collect()
    };
    Arc::ptr_eq(one, other)
        || Arc::ptr_eq(&one.catalog, &other.catalog)
            && blocks(one) == blocks(other)
            && links(one) == links(other)
            && one.frames == other.frames
}

/// Copies the bytes of a frame.
fn bytes_of(frame: &Frame) -> Vec<u8> {
    frame.bytes().to_vec()
}

#[cfg(test)]
mod tests;
