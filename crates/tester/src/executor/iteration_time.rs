//! Statistics of the event loop's iteration times.
//!
//! A timestamp of an event that arrives within an iteration can be late by the iteration's length.
//!
//! - Lengths are weighted by time, not by iterations: an arrival at a random time falls into a long
//!   iteration more often.
//! - Iterations with a stall are excluded, because delays of events that arrive then are unknown.
//! - A power of two has eight buckets, so that recording takes a few instructions.
//!
//! Invariant: results are the upper end of a bucket, at most an eighth too long and never too
//! short.

use packet::time::Nanos;

/// Buckets per power of two, as a power of two.
const STEPS_BITS: u32 = 3;

/// Number of buckets. Iterations longer than 2^20 ns are stalls.
const BUCKETS: usize = 21 << STEPS_BITS;

/// Time spent in iterations, by their length.
#[derive(Debug, Clone)]
pub struct Lengths {
    /// Start of the current iteration, and number of stalls until then.
    began: Option<(Nanos, u64)>,
    ns: [u64; BUCKETS],
}

impl Lengths {
    /// Creates empty statistics.
    pub fn new() -> Lengths {
        Lengths { began: None, ns: [0; BUCKETS] }
    }

    /// Starts an iteration at `now` and records the previous one, unless `stalls` has increased.
    ///
    /// `stalls` is the number of stalls so far.
    #[inline]
    pub fn begin(&mut self, now: Nanos, stalls: u64) {
        if let Some((before, known)) = self.began.replace((now, stalls))
            && known == stalls
        {
            let length = now.since(before).0;
            if let Some(ns) = self.ns.get_mut(place(length)) {
                *ns += length;
            }
        }
    }

    /// Discards the current iteration, because the tester was idle in it.
    pub fn rest(&mut self) {
        self.began = None;
    }

    /// Returns the iteration length at this quantile of time. Zero without any iteration.
    pub fn quantile(&self, share: f64) -> Nanos {
        let all: u64 = self.ns.iter().sum();
        let wanted = (all as f64 * share).ceil() as u64;
        let mut sum = 0;
        let reached = |ns: &u64| {
            sum += ns;
            sum >= wanted
        };
        match self.ns.iter().position(reached) {
            Some(place) if all > 0 => Nanos(end(place)),
            _ => Nanos::ZERO,
        }
    }
}

/// Returns the bucket of a length.
fn place(length: u64) -> usize {
    let least = 1 << STEPS_BITS;
    if length < least {
        return length as usize;
    }
    let power = length.ilog2() - STEPS_BITS;
    ((power as usize) << STEPS_BITS) + (length >> power) as usize
}

/// Returns the greatest length in a bucket.
fn end(place: usize) -> u64 {
    let steps = 1usize << STEPS_BITS;
    if place < 2 * steps {
        return place as u64;
    }
    let power = place / steps - 1;
    (((place % steps + steps + 1) as u64) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_bucket_is_its_greatest_length() {
        for place_ in 0..BUCKETS - (1 << STEPS_BITS) {
            let last = end(place_);
            assert_eq!((place(last), place(last + 1)), (place_, place_ + 1), "{last}");
            assert!(place_ == 0 || last <= (end(place_ - 1) + 1) * 9 / 8, "{last}");
        }
    }

    #[test]
    fn turns_are_weighted_by_length_and_stalls_are_excluded() {
        let mut lengths = Lengths::new();
        assert_eq!(lengths.quantile(0.5), Nanos::ZERO);
        let mut now = 0;
        let mut turns = |count: u64, length: u64, stalls: u64| {
            for _ in 0..count {
                now += length;
                lengths.begin(Nanos(now), stalls);
            }
        };
        turns(1, 5, 0);
        turns(9_000, 100, 0);
        turns(10, 10_000, 0);
        turns(1, 250_000, 1);
        turns(1, 9_000_000_000, 1);
        assert_eq!(lengths.quantile(0.5), Nanos(103));
        assert_eq!(lengths.quantile(0.99), Nanos(10_239));
    }
}
