//! A link that loses, duplicates, reorders and corrupts frames at random, with counters.
//!
//! - Each kind of fault has its own seeded sequence with one draw per frame. A change of one
//!   probability leaves the other faults unchanged.
//! - A reordered frame is delayed until a number of later frames have passed it, or until a time
//!   limit.
//! - Faults are independent: a corrupt frame may also be duplicated.

use std::collections::VecDeque;

use packet::frame::{Batch, Frame};
use packet::time::Nanos;

use super::delay::earliest;
use super::queue::RETRY;
use super::rng::Chance;
use crate::port::{Port, PortCounters, PortDrop, PortError};

/// Frames in the batch to the inner port.
const LEAVING_FRAMES: usize = 256;

/// Maximum number of frames that are delayed for reordering at the same time. Further frames are
/// not reordered.
const HELD_FRAMES_MAX: usize = 64;

/// Probability of each fault per frame, from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultOptions {
    /// The frame is lost.
    pub loss: f64,
    /// The frame is sent twice.
    pub duplicate: f64,
    /// The frame is delayed until `reorder_frames` later ones have passed it.
    pub reorder: f64,
    /// One bit of the frame, at any position, is inverted.
    pub corrupt: f64,
    /// How many frames pass a delayed one.
    pub reorder_frames: u32,
    /// Longest delay of a frame.
    pub reorder_wait: Nanos,
    /// Seed of all faults.
    pub seed: u64,
}

impl Default for FaultOptions {
    fn default() -> Self {
        FaultOptions {
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            corrupt: 0.0,
            reorder_frames: 3,
            reorder_wait: Nanos::from_millis(1),
            seed: 0,
        }
    }
}

/// Number of faults by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultCounters {
    /// Frames accepted from the sender.
    pub frames: u64,
    /// Lost frames.
    pub lost: u64,
    /// Frames sent twice.
    pub duplicated: u64,
    /// Frames delayed for reordering.
    pub reordered: u64,
    /// Frames with an inverted bit.
    pub corrupted: u64,
}

/// A port behind a faulty link.
pub struct FaultyPort<P> {
    inner: P,
    options: FaultOptions,
    loss: Chance,
    duplicate: Chance,
    reorder: Chance,
    corrupt: Chance,
    held: VecDeque<DelayedFrame>,
    leaving: Batch,
    /// When to retry the inner port, if it did not accept all frames.
    retry_at: Nanos,
    counters: FaultCounters,
}

/// A frame delayed for reordering.
struct DelayedFrame {
    frame: Frame,
    /// Frames that have yet to pass it.
    passes: u32,
    /// When it is sent even if they do not arrive.
    due: Nanos,
}

impl<P: Port> FaultyPort<P> {
    /// Wraps `inner` in a faulty link.
    pub fn new(inner: P, options: FaultOptions) -> Self {
        let chance = |kind: u64| Chance::new(options.seed.wrapping_mul(4).wrapping_add(kind));
        FaultyPort {
            inner,
            loss: chance(0),
            duplicate: chance(1),
            reorder: chance(2),
            corrupt: chance(3),
            held: VecDeque::new(),
            leaving: Batch::new(LEAVING_FRAMES),
            retry_at: Nanos::ZERO,
            counters: FaultCounters::default(),
            options,
        }
    }

    /// Returns the number of faults by kind.
    pub fn faults(&self) -> FaultCounters {
        self.counters
    }

    /// Returns whether the next frame, its copy and all delayed frames fit into `leaving`.
    fn has_room(&self) -> bool {
        self.leaving.room() >= self.held.len() + 2
    }

    fn take(&mut self, frame: &mut Frame, now: Nanos) {
        let lost = self.loss.happens(self.options.loss);
        let twice = self.duplicate.happens(self.options.duplicate);
        let late = self.reorder.happens(self.options.reorder);
        let corrupt = self.corrupt.happens(self.options.corrupt);
        let bit = self.corrupt.below(8 * frame.len().max(1) as u64) as usize;
        self.counters.frames += 1;
        if lost {
            self.counters.lost += 1;
            return;
        }
        if corrupt && let Some(byte) = frame.bytes_mut().get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
            self.counters.corrupted += 1;
        }
        if twice && let Some(copy) = self.leaving.push_slot() {
            copy.copy_from(frame);
            self.counters.duplicated += 1;
        }
        if late && self.held.len() < HELD_FRAMES_MAX {
            let frame = std::mem::take(frame);
            let due = now.saturating_add(self.options.reorder_wait);
            self.held.push_back(DelayedFrame { frame, passes: self.options.reorder_frames, due });
            self.counters.reordered += 1;
        } else {
            self.leaving.push_swap(frame);
            self.held.iter_mut().for_each(|late| late.passes = late.passes.saturating_sub(1));
            self.release(|late| late.passes == 0);
        }
    }

    /// Sends the first delayed frames while `may_go` allows it.
    fn release(&mut self, may_go: impl Fn(&DelayedFrame) -> bool) {
        while self.leaving.room() > 0 && self.held.front().is_some_and(&may_go) {
            let mut late = self.held.pop_front().expect("the queue is not empty");
            self.leaving.push_swap(&mut late.frame);
        }
    }

    fn send(&mut self, now: Nanos) -> Result<(), PortError> {
        self.release(|late| late.due <= now);
        loop {
            // Called even with nothing to send, because an inner port that holds frames moves them
            // on.
            let gone = self.inner.transmit(&mut self.leaving, now)?;
            self.leaving.drop_front(gone);
            if self.leaving.is_empty() {
                return Ok(());
            }
            if gone == 0 {
                self.retry_at = now.saturating_add(RETRY);
                return Ok(());
            }
        }
    }
}

impl<P: Port> Port for FaultyPort<P> {
    delegated!(facts, has_link, link, descriptor);

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.send(now)?;
        self.inner.receive(batch, now)
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.send(now)?;
        let mut count = 0;
        for frame in batch.frames_mut() {
            if !self.has_room() {
                self.send(now)?;
            }
            if !self.has_room() {
                break;
            }
            self.take(frame, now);
            count += 1;
        }
        self.send(now)?;
        Ok(count)
    }

    fn counters(&mut self) -> PortCounters {
        let mut counters = self.inner.counters();
        counters.lose(PortDrop::InjectedLoss, self.counters.lost);
        counters
    }

    fn next_event(&self) -> Option<Nanos> {
        let waiting = (!self.leaving.is_empty()).then_some(self.retry_at);
        let own = waiting.or(self.held.front().map(|late| late.due));
        earliest(own, self.inner.next_event())
    }
}

#[cfg(test)]
mod tests;
