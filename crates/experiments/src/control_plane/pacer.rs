//! Messages at a fixed rate: computes how many are due.
//!
//! Invariant: after a delay, all overdue messages are due immediately, but never more than the total.

use packet::time::Nanos;

/// Interval of the checks for due messages.
pub const TICK: Nanos = Nanos::from_micros(200);

/// A number of messages at a rate, from a start time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pacer {
    per_s: f64,
    begun_at: Nanos,
    count: u64,
    given: u64,
    last_at: Nanos,
}

impl Pacer {
    /// Creates a schedule for the duration `span` at this rate, with at least two messages.
    pub fn over(per_s: f64, span: Nanos, at: Nanos) -> Pacer {
        Pacer::new(per_s, ((per_s * span.as_secs_f64()).round() as u64).max(2), at)
    }

    /// Creates a schedule for `count` messages at this rate.
    pub fn new(per_s: f64, count: u64, at: Nanos) -> Pacer {
        Pacer { per_s, begun_at: at, count, given: 0, last_at: at }
    }

    /// Returns the numbers of the newly due messages, from 0 on.
    pub fn due(&mut self, now: Nanos) -> std::ops::Range<u64> {
        let owed = (now.since(self.begun_at).as_secs_f64() * self.per_s) as u64 + 1;
        let first = self.given;
        self.given = owed.clamp(first, self.count.max(first));
        if self.given > first {
            self.last_at = now;
        }
        first..self.given
    }

    /// Returns whether all messages have become due.
    pub fn is_over(&self) -> bool {
        self.given >= self.count
    }

    /// Returns the number of messages returned so far.
    pub fn given(&self) -> u64 {
        self.given
    }

    /// Returns the start time.
    pub fn begun_at(&self) -> Nanos {
        self.begun_at
    }

    /// Returns the duration, including one interval after the last message.
    pub fn span(&self) -> Nanos {
        self.last_at.since(self.begun_at).max(Nanos::from_secs_f64(self.given as f64 / self.per_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_messages_are_returned_once_and_a_late_call_returns_all() {
        let mut paced = Pacer::over(1000.0, Nanos::from_millis(10), Nanos(5));
        assert_eq!(paced.due(Nanos(5)), 0..1);
        assert_eq!(paced.due(Nanos(6)), 1..1);
        assert_eq!(paced.due(Nanos(3_000_006)), 1..4);
        assert_eq!(paced.due(Nanos(1_000_000_000)), 4..10);
        assert!(paced.is_over() && paced.due(Nanos(2_000_000_000)).is_empty());
        assert_eq!(paced.span(), Nanos(999_999_995));
    }
}
