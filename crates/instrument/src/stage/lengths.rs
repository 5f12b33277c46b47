//! How long the turns of a stage's loop are: what comes in a turn is dated at its end at the latest.
//!
//! Counted by time, not by turns: something that comes at any moment comes in a long turn more often than in a
//! short one. Turns in which the tester was away are left out, as what came then has no known delay. Buckets
//! are eight to each power of two, so that counting costs a few instructions. Invariant: what is told is the upper end
//! of a bucket, at most an eighth too long and never too short.

use packet::time::Nanos;

/// Buckets for each power of two, as a power of two.
const STEPS_BITS: u32 = 3;

/// Longer turns than 2^20 ns are no turns: the tester was away.
const BUCKETS: usize = 21 << STEPS_BITS;

/// Time spent in turns, by their length.
#[derive(Debug, Clone)]
pub struct Lengths {
    /// When the turn at hand began, and how often the tester had been away until then.
    began: Option<(Nanos, u64)>,
    ns: [u64; BUCKETS],
}

impl Lengths {
    /// No turn yet.
    pub fn new() -> Lengths {
        Lengths { began: None, ns: [0; BUCKETS] }
    }

    /// A turn begins at `now`, and the one before it is over, which does not count if the tester was away in it; until
    /// now it was so often.
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

    /// The tester has waited for something: that was no turn.
    pub fn rest(&mut self) {
        self.began = None;
    }

    /// For this share of the time, turns were no longer than this; zero where they take none.
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

/// The bucket of a length.
fn place(length: u64) -> usize {
    let least = 1 << STEPS_BITS;
    if length < least {
        return length as usize;
    }
    let power = length.ilog2() - STEPS_BITS;
    ((power as usize) << STEPS_BITS) + (length >> power) as usize
}

/// The greatest length in a bucket.
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
    fn a_bucket_s_end_is_its_own_greatest_length() {
        for place_ in 0..BUCKETS - (1 << STEPS_BITS) {
            let last = end(place_);
            assert_eq!((place(last), place(last + 1)), (place_, place_ + 1), "{last}");
            assert!(place_ == 0 || last <= (end(place_ - 1) + 1) * 9 / 8, "{last}");
        }
    }

    #[test]
    fn lengths_are_counted_by_time_and_what_was_away_is_left_out() {
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
