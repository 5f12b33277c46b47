//! Yields a core to other threads while there is nothing to do, instead of sleeping.
//!
//! - Sleeping and waking take longer than the arrival of an event that is almost there.
//! - Busy-polling keeps other threads from a core that may be theirs too.
//! - Yielding after each poll is between the two. It fails next to a thread that never blocks: the
//!   yielding thread then waits for a whole time slice, whereas a sleeper that wakes up runs first.

use packet::time::Nanos;

use crate::clock;

/// If a yield takes longer than this, the core is shared with a thread that never blocks.
const SLOW_YIELD_THRESHOLD: Nanos = Nanos::from_micros(500);

/// How long the thread sleeps instead of yielding on such a core.
const CROWDED_FOR: Nanos = Nanos::from_secs(1);

/// Decides whether to yield or to sleep.
#[derive(Debug, Clone, Copy, Default)]
pub struct YieldPolicy {
    crowded_until: Nanos,
}

impl YieldPolicy {
    /// Returns whether all recent yields returned soon.
    pub fn pays(&self, now: Nanos) -> bool {
        now >= self.crowded_until
    }

    /// Yields the core, and returns the time after the yield.
    pub fn offer(&mut self) -> Nanos {
        let before = clock::now();
        std::thread::yield_now();
        let after = clock::now();
        self.came_back(before, after);
        after
    }

    fn came_back(&mut self, before: Nanos, after: Nanos) {
        if after.since(before) > SLOW_YIELD_THRESHOLD {
            self.crowded_until = after.saturating_add(CROWDED_FOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_is_not_yielded_for_a_while_after_a_late_return() {
        let mut courtesy = YieldPolicy::default();
        courtesy.came_back(Nanos(0), Nanos::from_micros(50));
        assert!(courtesy.pays(Nanos::from_micros(50)));
        courtesy.came_back(Nanos(0), Nanos::from_micros(600));
        assert!(!courtesy.pays(Nanos::from_micros(600)));
        assert!(!courtesy.pays(Nanos::from_secs(1)));
        assert!(courtesy.pays(Nanos::from_millis(1001)));
    }
}
