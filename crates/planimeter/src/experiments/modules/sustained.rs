//! A rate that goes on while more is asked for: what a limit lets through for good.
//!
//! A limit may let some through at once before it bites (a bucket that was full), so that in a short step more gets through
//! than the limit says. Here only steps count in which far more was asked for than was done, since others may have
//! been over before the bucket was empty, and only the later half of what was done in them, from one thing to
//! another: between these as many were done as the limit allowed, give or take the one that was due. Invariant:
//! nothing is told of a few.

use packet::time::Nanos;

/// This share of a step, from its beginning on, is what was let through at once.
const EARLY: f64 = 0.5;

/// As many times what was done have to have been asked for.
const BEYOND: f64 = 1.5;

/// Things that have to be done after that.
const COUNT_MIN: usize = 8;

/// A rate and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sustained {
    /// Done in a second.
    pub per_s: f64,
    /// One more or less in the time that was looked at.
    pub half: f64,
    /// How many were done in that time.
    pub count: u64,
}

impl Sustained {
    /// The rate of things that were done at these moments while so many were asked for.
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

    /// The one of two of which more is known.
    pub fn surer(self, other: Sustained) -> Sustained {
        let share = |it: &Sustained| it.half / it.per_s;
        if share(&other) < share(&self) { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_let_through_at_once_does_not_count() {
        // Ten at once, and then one every five milliseconds.
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
