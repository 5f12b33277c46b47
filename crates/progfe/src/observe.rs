//! A running element looked at while frames go through it: what some of them do block by block, and what each
//! block costs.
//!
//! Most frames go by decisions that know no blocks, so frames that are looked at take the way of the
//! [interpreter](crate::interpret), which does the same to them. They do so in the order in which they came,
//! only while somebody asked, and until a moment that was said before: whoever asks and goes away leaves
//! nothing behind. Nothing in here reads a clock: who wants costs hands one in.

use std::sync::Arc;

use dataplane::forwarder::Outputs;
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::enforce::Enforcer;
use crate::program::{End, Program};
use crate::trace::Trace;

/// What each block costs.
pub mod cost;
/// The next frames that somebody is interested in.
pub mod tracing;

pub use cost::Costs;
pub use tracing::{Traced, Tracing, Wanted};

/// What is noted of a frame on its way.
#[derive(Debug, Default)]
pub enum Watch<'w> {
    /// Nothing.
    #[default]
    Nothing,
    /// Each step.
    Trace(&'w mut Trace),
    /// What each step takes.
    Costs(&'w mut Costs),
}

impl Watch<'_> {
    /// The same, for a part of the way.
    pub(crate) fn part(&mut self) -> Watch<'_> {
        match self {
            Watch::Nothing => Watch::Nothing,
            Watch::Trace(trace) => Watch::Trace(trace),
            Watch::Costs(costs) => Watch::Costs(costs),
        }
    }

    /// A frame enters a block.
    #[inline]
    pub(crate) fn begin(&self) -> u64 {
        if let Watch::Costs(costs) = self { costs.read() } else { 0 }
    }

    /// It has been there.
    #[inline]
    pub(crate) fn end(&mut self, instance: usize, since: u64) {
        if let Watch::Costs(costs) = self {
            costs.note(instance, since);
        }
    }
}

/// What of an element is looked at.
#[derive(Debug, Default)]
pub struct Observing {
    /// What blocks cost, if somebody asked.
    pub costs: Option<Costs>,
    /// Frames that somebody is interested in.
    pub tracing: Option<Tracing>,
    /// How often frames were asked for.
    pub(crate) tracings: u64,
}

impl Observing {
    /// Whether frames that a port received are to come as frames, rather than be decided where they lie.
    pub fn wants(&self, port: PortNo, now: Nanos) -> bool {
        let costs = self.costs.as_ref().is_some_and(|costs| costs.wants(now));
        costs || self.tracing.as_ref().is_some_and(|tracing| tracing.wants(port, now))
    }

    /// Notes frames that nobody looked at.
    pub fn pass_by(&mut self, frames: usize) {
        if let Some(costs) = &mut self.costs {
            costs.pass_by(frames);
        }
    }

    /// Forwards what a port received, and looks at what is to be looked at.
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
                    enforcer.pass(port, frame, now, out, Watch::Nothing);
                }
            }
        } else if let Some(costs) = self.costs.as_mut().filter(|it| it.wants(now)) {
            let frames = batch.frames_mut();
            frames.iter_mut().for_each(|it| costs.sample(enforcer, port, it, now, out));
        } else {
            self.pass_by(batch.len());
            return enforcer.forward(port, batch, now, out);
        }
        // Queues that hold frames are served behind a batch.
        enforcer.forward(port, &mut Batch::new(0), now, out);
    }

    /// Says that another program runs: what was learnt of the one before goes no further, unless it
    /// has the same blocks and links.
    pub fn program_changed(&mut self, program: &Arc<Program>) {
        if let Some(costs) = &mut self.costs {
            costs.program_changed(program);
        }
        if let Some(tracing) = &mut self.tracing {
            tracing.program_changed(program);
        }
    }
}

/// Whether blocks and links of two programs are the same, and frames are read the same, so that what was
/// noted by their places holds for both.
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

/// A copy of a frame's bytes.
fn bytes_of(frame: &Frame) -> Vec<u8> {
    frame.bytes().to_vec()
}

#[cfg(test)]
mod tests;
