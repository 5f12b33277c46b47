//! A queue of frames that a wrapper holds until their time, oldest first, in reused buffers.
//!
//! The queue is bounded; the caller checks for room before it adds a frame.

use std::collections::VecDeque;

use packet::frame::{Batch, Frame};
use packet::time::Nanos;

use crate::port::{Port, PortError};

/// Retry interval of a port that accepted no frames.
pub const RETRY: Nanos = Nanos::from_micros(10);

/// Frames passed to the inner port in one call.
const BATCH_FRAMES: usize = 64;

/// A bounded queue of frames, each with its time of departure.
pub struct FrameQueue {
    waiting: VecDeque<(Nanos, Frame)>,
    spare: Vec<Frame>,
    capacity: usize,
    /// Frames that are due, on their way to the inner port.
    leaving: Batch,
    /// When to retry the inner port, if it did not accept all frames that were due.
    retry_at: Nanos,
}

impl FrameQueue {
    pub fn new(capacity: usize) -> Self {
        FrameQueue {
            waiting: VecDeque::new(),
            spare: Vec::new(),
            capacity,
            leaving: Batch::new(BATCH_FRAMES),
            retry_at: Nanos::ZERO,
        }
    }

    /// Returns how many more frames fit.
    pub fn room(&self) -> usize {
        self.capacity - self.waiting.len().min(self.capacity)
    }

    /// Adds `frame` by swapping buffers. It leaves at `due`, which must not be before the time of
    /// the previous frame.
    pub fn push_swap(&mut self, frame: &mut Frame, due: Nanos) {
        debug_assert!(self.room() > 0);
        debug_assert!(self.waiting.back().is_none_or(|&(last, _)| last <= due));
        let mut own = self.spare.pop().unwrap_or_default();
        std::mem::swap(&mut own, frame);
        self.waiting.push_back((due, own));
    }

    /// Returns when the first frame leaves, or is retried if the inner port did not accept it.
    pub fn next(&self) -> Option<Nanos> {
        if self.leaving.is_empty() {
            self.waiting.front().map(|&(due, _)| due)
        } else {
            Some(self.retry_at)
        }
    }

    /// Sends the frames that are due at `now` through `port`, as many as it accepts.
    pub fn send_due(&mut self, port: &mut impl Port, now: Nanos) -> Result<(), PortError> {
        loop {
            while self.leaving.room() > 0
                && self.waiting.front().is_some_and(|&(due, _)| due <= now)
            {
                let (_, mut frame) = self.waiting.pop_front().expect("the queue is not empty");
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
