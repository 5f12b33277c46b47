//! Frames that a wrapper holds until their time, oldest first, in buffers that are reused.
//!
//! The queue is bounded; whoever fills it asks for room first.

use std::collections::VecDeque;

use packet::frame::{Batch, Frame};
use packet::time::Nanos;

use crate::port::{Port, PortError};

/// After how long a port that took nothing is asked again.
pub const RETRY: Nanos = Nanos::from_micros(10);

/// Frames handed to the port inside in one call.
const BATCH_FRAMES: usize = 64;

/// A bounded queue of frames, each with the moment when it leaves.
pub struct Held {
    waiting: VecDeque<(Nanos, Frame)>,
    spare: Vec<Frame>,
    capacity: usize,
    /// Frames that are due, on their way into the port inside.
    leaving: Batch,
    /// When the port inside is asked again, if it did not take all that was due.
    retry_at: Nanos,
}

impl Held {
    pub fn new(capacity: usize) -> Self {
        Held {
            waiting: VecDeque::new(),
            spare: Vec::new(),
            capacity,
            leaving: Batch::new(BATCH_FRAMES),
            retry_at: Nanos::ZERO,
        }
    }

    /// How many more frames fit.
    pub fn room(&self) -> usize {
        self.capacity - self.waiting.len().min(self.capacity)
    }

    /// Takes `frame` by swapping buffers; it is to leave at `due`, which is not before that of
    /// the frame before it.
    pub fn push_swap(&mut self, frame: &mut Frame, due: Nanos) {
        debug_assert!(self.room() > 0);
        debug_assert!(self.waiting.back().is_none_or(|&(last, _)| last <= due));
        let mut own = self.spare.pop().unwrap_or_default();
        std::mem::swap(&mut own, frame);
        self.waiting.push_back((due, own));
    }

    /// When the first frame leaves, or is tried again if the port inside refused it.
    pub fn next(&self) -> Option<Nanos> {
        if self.leaving.is_empty() {
            self.waiting.front().map(|&(due, _)| due)
        } else {
            Some(self.retry_at)
        }
    }

    /// Sends the frames that are due at `now` through `port`, as many as it takes.
    pub fn send_due(&mut self, port: &mut impl Port, now: Nanos) -> Result<(), PortError> {
        loop {
            while self.leaving.room() > 0
                && self.waiting.front().is_some_and(|&(due, _)| due <= now)
            {
                let (_, mut frame) = self.waiting.pop_front().expect("there is a first one");
                self.leaving.push_swap(&mut frame);
                self.spare.push(frame);
            }
            if self.leaving.is_empty() {
                return Ok(());
            }
            let gone = port.transmit(&mut self.leaving, now)?;
            self.leaving.drop_front(gone);
            if gone == 0 {
                self.retry_at = now.saturating_add(RETRY);
                return Ok(());
            }
        }
    }
}
