//! Offering a core to others while there is nothing to do, instead of sleeping.
//!
//! To sleep and be woken takes longer than whatever is nearly there; to look for it again and again
//! keeps others from a core that may be theirs too. Between the two is to offer the core around after
//! each look. That goes wrong beside somebody who is never done: who offers the core then waits for a
//! whole slice of time, where a sleeper that is woken goes first.

use packet::time::Nanos;

use crate::clock;

/// Who gets the core back only after this long shares it with somebody who is never done.
const CROWDED: Nanos = Nanos::from_micros(500);

/// For how long it is better to sleep on such a core.
const CROWDED_FOR: Nanos = Nanos::from_secs(1);

/// Whether the core is worth offering.
#[derive(Debug, Clone, Copy, Default)]
pub struct Courtesy {
    crowded_until: Nanos,
}

impl Courtesy {
    /// Whether the core came back soon whenever it was offered lately.
    pub fn pays(&self, now: Nanos) -> bool {
        now >= self.crowded_until
    }

    /// Offers the core to whoever waits for it, and returns the time when it came back.
    pub fn offer(&mut self) -> Nanos {
        let before = clock::now();
        std::thread::yield_now();
        let after = clock::now();
        self.came_back(before, after);
        after
    }

    fn came_back(&mut self, before: Nanos, after: Nanos) {
        if after.since(before) > CROWDED {
            self.crowded_until = after.saturating_add(CROWDED_FOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_came_back_late_is_not_offered_for_a_while() {
        let mut courtesy = Courtesy::default();
        courtesy.came_back(Nanos(0), Nanos::from_micros(50));
        assert!(courtesy.pays(Nanos::from_micros(50)));
        courtesy.came_back(Nanos(0), Nanos::from_micros(600));
        assert!(!courtesy.pays(Nanos::from_micros(600)));
        assert!(!courtesy.pays(Nanos::from_secs(1)));
        assert!(courtesy.pays(Nanos::from_millis(1001)));
    }
}
