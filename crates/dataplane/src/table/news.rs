//! What the control plane has yet to be told, in order.
//!
//! Invariant: a bounded number of pieces waits; what is more is counted as lost.

use std::collections::VecDeque;

use crate::forwarder::{Event, Outputs};

/// News that waits for room in the outputs.
#[derive(Debug)]
pub(super) struct News {
    waiting: VecDeque<Event>,
    waiting_max: usize,
    lost: u64,
    /// Nothing is told for now.
    held: bool,
}

impl News {
    pub(super) fn new(waiting_max: usize) -> News {
        News { waiting: VecDeque::new(), waiting_max, lost: 0, held: false }
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

    /// Tells nothing until [`News::forget_since`] or [`News::release`], and says how much waits.
    pub(super) fn hold(&mut self) -> usize {
        self.held = true;
        self.waiting.len()
    }

    /// Tells again, what came meanwhile too. Returns true.
    pub(super) fn release(&mut self) -> bool {
        self.held = false;
        true
    }

    /// Forgets all that came after so many, a step of the budget for each, and then tells again. False
    /// if the budget was used up before.
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

    /// Moves to the outputs what fits there.
    pub(super) fn tell(&mut self, out: &mut Outputs) {
        if self.held {
            return;
        }
        let count = self.waiting.len().min(out.events_room());
        out.events.extend(self.waiting.drain(..count));
        out.events_lost += std::mem::take(&mut self.lost);
    }
}
