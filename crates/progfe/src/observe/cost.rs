//! Cost of each block: sampled frames go through the graph block by block, and a counter is read
//! before and after each block.
//!
//! - The first [`FIRST`] frames are sampled, then one of `every`. An idle element still gives
//!   results, and a busy one slows down little.
//! - The cost of reading the counter is measured first and subtracted.
//! - The sum of the block costs exceeds the cost of the compiled program, which combines work of
//!   several blocks. The values serve to compare blocks.
//!
//! Invariant: sampling always has a deadline, and no frame is sampled after it.

use std::sync::Arc;

use dataplane::forwarder::Outputs;
use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use super::{ObservationHook, is_alike};
use crate::executor::Enforcer;
use crate::program::Program;

/// A monotonic time counter, such as the processor's cycle counter.
pub type Counter = fn() -> u64;

/// Number of frames that are sampled first.
pub const FIRST: u64 = 256;
/// Number of recent visits per block that are stored for the median.
const KEPT: usize = 1024;
/// Number of readings that determine the cost of a reading.
const READINGS: usize = 64;

/// Cost of each block.
#[derive(Debug)]
pub struct Costs {
    counter: Counter,
    every: u64,
    until: Nanos,
    program: Arc<Program>,
    /// Number of frames received; some are counted twice.
    seen: u64,
    /// Number of sampled frames.
    pub frames: u64,
    /// Median difference of two consecutive readings, in units of the counter.
    pub reading: u64,
    /// Whether the measurement restarted because another program replaced the measured one.
    pub began_again: bool,
    blocks: Vec<Visits>,
}

/// Visits of frames to one block.
#[derive(Debug, Clone, Default)]
pub struct Visits {
    /// Number of visits.
    pub count: u64,
    /// Total cost of the visits, in units of the counter.
    pub total: u64,
    recent: Vec<u32>,
}

impl Costs {
    /// Starts to sample one frame of `every` until a deadline.
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

    /// Returns true if the deadline has passed.
    pub fn is_over(&self, now: Nanos) -> bool {
        now >= self.until
    }

    /// Returns the sampling interval in frames, after the first frames.
    pub fn every(&self) -> u64 {
        self.every
    }

    /// Returns the program that the blocks belong to.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Returns the visits to a block.
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
        enforcer.pass(port, frame, now, out, ObservationHook::Costs(self));
    }

    /// Reads the counter.
    #[inline]
    pub(crate) fn read(&self) -> u64 {
        (self.counter)()
    }

    /// Records a visit to a block that started at counter value `since`.
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

    /// Returns the median of the recent visits; none without visits.
    pub fn median(&self) -> Option<u32> {
        let mut sorted = self.recent.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    }
}
