//! Sustained rate under overload: what a rate limit admits over a long time.
//!
//! A limit may admit an initial burst (a full token bucket). A short step may therefore exceed the limit. Only
//! steps count in which far more was requested than completed; other steps may have ended before the bucket was
//! empty. Only the second half of their completions counts, from one completion to another. Between these, the
//! number of completions matches the limit, within one.
//!
//! Invariant: a small number of completions gives no value.

use packet::time::Nanos;

/// Share of a step, from its beginning, that may belong to the initial burst.
const EARLY: f64 = 0.5;

/// Minimum ratio of requested to completed operations.
const BEYOND: f64 = 1.5;

/// Minimum number of completions after the burst.
const COUNT_MIN: usize = 8;

/// A rate and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sustained {
    /// Completions per second.
    pub per_s: f64,
    /// Uncertainty: one completion more or less in the evaluated time.
    pub half: f64,
    /// Number of completions in that time.
    pub count: u64,
}

impl Sustained {
    /// Computes the rate from the completion times and the number of requests.
    pub fn of(done_at: &mut [Nanos], asked: u64) -> Option<Sustained> {
        if (asked as f64) < BEYOND * done_at.len() as f64 {
            return None;
        }
        done_at.sort_unstable();
        let (first, last) = (*done_at.first()?, *done_at.last()?);
        let from = first.saturating_add(Nanos((last.since(first).0 as f64 * EARLY) as u64));
        let late = &done_at[done_at.partition_point(|at| *at < from)..];
        let span = last.since(*late.first()?).as_secs_f64();
        if late.len() < COUNT_MIN || span <= 0.0 {
            return None;
        }
        let count = late.len() as u64 - 1;
        Some(Sustained { per_s: count as f64 / span, half: 1.0 / span, count })
    }

    /// Returns the value with the smaller uncertainty.
    pub fn surer(self, other: Sustained) -> Sustained {
        let share = |it: &Sustained| it.half / it.per_s;
        if share(&other) < share(&self) { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_initial_burst_does_not_count() {
        // A burst of ten, then one every five milliseconds.
        let mut done: Vec<Nanos> = (0..10).map(Nanos).collect();
        done.extend((1..40).map(|place| Nanos::from_millis(5 * place)));
        let found = Sustained::of(&mut done, 500).unwrap();
        assert!((found.per_s - 200.0).abs() <= found.half, "{found:?}");
        assert!(found.half < 11.0, "{found:?}");
        assert_eq!(Sustained::of(&mut done[..12], 500), None);
        assert_eq!(
            Sustained::of(&mut done, 60),
            None,
            "the bucket may have been full all the time"
        );
        let surer = found.surer(Sustained { half: 1.0, ..found });
        assert_eq!((surer.half, found.surer(found)), (1.0, found));
    }
}
