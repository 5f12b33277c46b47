//! What each block costs: some frames go through the graph block by block, and a counter is read before and behind
//! each block.
//!
//! The first [`FIRST`] frames are looked at, afterwards one of so many, so that a quiet element says something and
//! a busy one is hardly slower. What reading the counter takes is found beforehand and left out. What the blocks
//! cost one by one is more than their share of a compiled program, which does most of their work together: it
//! tells blocks from each other.
//!
//! Invariant: without end nothing is looked at; with one, nothing behind it.

use std::sync::Arc;

use dataplane::forwarder::Outputs;
use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use super::{Watch, is_alike};
use crate::enforce::Enforcer;
use crate::program::Program;

/// A counter of time that always goes on, such as the processor's cycles.
pub type Counter = fn() -> u64;

/// Frames that are looked at in any case.
pub const FIRST: u64 = 256;
/// The last visits of each block that are kept, for medians.
const KEPT: usize = 1024;
/// Readings by which the cost of a reading is found.
const READINGS: usize = 64;

/// What each block costs.
#[derive(Debug)]
pub struct Costs {
    counter: Counter,
    every: u64,
    until: Nanos,
    program: Arc<Program>,
    /// Frames that came, some of them counted twice.
    seen: u64,
    /// Frames that were looked at, and what all their blocks took together.
    pub frames: u64,
    /// What two readings beside each other differ by (the median), in units of the counter.
    pub reading: u64,
    /// Whether another program took the place of the one that was looked at: all began again.
    pub began_again: bool,
    blocks: Vec<Visits>,
}

/// Visits of frames to one block.
#[derive(Debug, Clone, Default)]
pub struct Visits {
    /// How many there were.
    pub count: u64,
    /// What they took together, in units of the counter.
    pub total: u64,
    recent: Vec<u32>,
}

impl Costs {
    /// Looks at one frame of `every` until a moment, by a counter.
    pub fn new(program: &Arc<Program>, counter: Counter, every: u64, until: Nanos) -> Costs {
        let apart = |_| {
            let before = counter();
            counter().wrapping_sub(before)
        };
        let mut readings: Vec<u64> = (0..READINGS).map(apart).collect();
        readings.sort_unstable();
        Costs {
            counter,
            every: every.max(1),
            until,
            program: program.clone(),
            seen: 0,
            frames: 0,
            reading: readings[READINGS / 2],
            began_again: false,
            blocks: vec![Visits::default(); program.instances.len()],
        }
    }

    /// Whether it is over.
    pub fn is_over(&self, now: Nanos) -> bool {
        now >= self.until
    }

    /// One frame of how many is looked at, behind the first ones.
    pub fn every(&self) -> u64 {
        self.every
    }

    /// The program whose blocks these are.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// What visits to a block took.
    pub fn visits(&self, instance: usize) -> Option<&Visits> {
        self.blocks.get(instance)
    }

    pub(super) fn wants(&self, now: Nanos) -> bool {
        !self.is_over(now) && self.frames < FIRST + self.seen / self.every
    }

    pub(super) fn pass_by(&mut self, frames: usize) {
        self.seen += frames as u64;
    }

    pub(super) fn sample<E: Enforcer>(
        &mut self,
        enforcer: &mut E,
        port: PortNo,
        frame: &mut Frame,
        now: Nanos,
        out: &mut Outputs,
    ) {
        self.seen += 1;
        self.frames += 1;
        enforcer.pass(port, frame, now, out, Watch::Costs(self));
    }

    /// What the counter says.
    #[inline]
    pub(crate) fn read(&self) -> u64 {
        (self.counter)()
    }

    /// Notes that a frame has been in a block, since the counter said something.
    pub(crate) fn note(&mut self, instance: usize, since: u64) {
        let took = self.read().wrapping_sub(since).saturating_sub(self.reading);
        if let Some(visits) = self.blocks.get_mut(instance) {
            visits.add(took);
        }
    }

    pub(super) fn program_changed(&mut self, program: &Arc<Program>) {
        if !is_alike(&self.program, program) {
            *self = Costs::new(program, self.counter, self.every, self.until);
            self.began_again = true;
        }
        self.program = program.clone();
    }
}

impl Visits {
    fn add(&mut self, took: u64) {
        let short = u32::try_from(took).unwrap_or(u32::MAX);
        match self.recent.len() {
            KEPT => self.recent[self.count as usize % KEPT] = short,
            _ => self.recent.push(short),
        }
        self.count += 1;
        self.total += took;
    }

    /// The median of the last visits; none if there was none.
    pub fn median(&self) -> Option<u32> {
        let mut sorted = self.recent.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    }
}
