//! Events that the control plane has not received yet, in order.
//!
//! Invariant: the queue is bounded; events beyond the limit are counted as lost.

use std::collections::VecDeque;

use crate::forwarder::{Event, Outputs};

/// Queue of events that wait for space in the outputs.
#[derive(Debug)]
pub(super) struct EventQueue {
    waiting: VecDeque<Event>,
    waiting_max: usize,
    lost: u64,
    /// Whether delivery is suspended.
    held: bool,
}

impl EventQueue {
    pub(super) fn new(waiting_max: usize) -> EventQueue {
        EventQueue { waiting: VecDeque::new(), waiting_max, lost: 0, held: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn add(&mut self, event: Event) {
        if self.waiting.len() >= self.waiting_max {
            self.lost += 1;
        } else {
            self.waiting.push_back(event);
        }
    }

    /// Suspends delivery until [`EventQueue::forget_since`] or [`EventQueue::release`], and returns the queue
    /// length.
    pub(super) fn hold(&mut self) -> usize {
        self.held = true;
        self.waiting.len()
    }

    /// Resumes delivery, including events queued since the suspension. Always returns true.
    pub(super) fn release(&mut self) -> bool {
        self.held = false;
        true
    }

    /// Discards all events after the first `count`, within a budget of one step each, and then
    /// resumes delivery. Returns false if the budget is exhausted first.
    pub(super) fn forget_since(&mut self, count: usize, budget: &mut usize) -> bool {
        let surplus = self.waiting.len().saturating_sub(count).min(*budget);
        self.waiting.truncate(self.waiting.len() - surplus);
        *budget -= surplus;
        if self.waiting.len() > count {
            return false;
        }
        self.lost = 0;
        self.release()
    }

    /// Moves as many events to the outputs as fit.
    pub(super) fn tell(&mut self, out: &mut Outputs) {
        if self.held {
            return;
        }
        let count = self.waiting.len().min(out.events_room());
        out.events.extend(self.waiting.drain(..count));
        out.events_lost += std::mem::take(&mut self.lost);
    }
}
