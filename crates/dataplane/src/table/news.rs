//! What the control plane has yet to be told, in order.
//!
//! Invariant: at most one piece of news waits for each entry that fits; what is more is counted.

use std::collections::VecDeque;

use crate::forwarder::{Event, Outputs};

/// News that waits for room in the outputs.
#[derive(Debug)]
pub(super) struct News {
    waiting: VecDeque<Event>,
    waiting_max: usize,
    lost: u64,
}

impl News {
    pub(super) fn new(waiting_max: usize) -> News {
        News { waiting: VecDeque::new(), waiting_max, lost: 0 }
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

    /// Moves to the outputs what fits there.
    pub(super) fn tell(&mut self, out: &mut Outputs) {
        let count = self.waiting.len().min(out.events_room());
        out.events.extend(self.waiting.drain(..count));
        out.events_lost += std::mem::take(&mut self.lost);
    }
}
