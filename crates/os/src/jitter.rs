//! Measures how long a core is taken away from a busy thread, by other threads, interrupts or the
//! hypervisor.
//!
//! A thread on each core reads the clock in a loop. A gap between two readings is time that the
//! thread did not run. Measurements on that core cannot have a better time resolution.

use std::io;

use packet::time::Nanos;

use crate::{clock, core};

/// Gaps shorter than this are due to reading the clock itself.
pub const LEAST: Nanos = Nanos::from_micros(5);

/// Gaps of at least this length disturb a trial.
pub const STALL: Nanos = Nanos::from_millis(1);

/// The gaps of one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OsJitter {
    /// The core.
    pub core: usize,
    /// Duration of the observation.
    pub span: Nanos,
    /// Number of gaps of at least [`LEAST`].
    pub count: u64,
    /// Their total duration.
    pub total: Nanos,
    /// The longest gap, however short.
    pub longest: Nanos,
    /// Number of gaps of at least [`STALL`].
    pub stalls: u64,
    /// Their total duration.
    pub stalled: Nanos,
}

impl OsJitter {
    fn new(core: usize) -> Self {
        let none = Nanos::ZERO;
        OsJitter {
            core,
            span: none,
            count: 0,
            total: none,
            longest: none,
            stalls: 0,
            stalled: none,
        }
    }

    fn add(&mut self, gap: Nanos) {
        self.longest = self.longest.max(gap);
        if gap >= LEAST {
            self.count += 1;
            self.total += gap;
        }
        if gap >= STALL {
            self.stalls += 1;
            self.stalled += gap;
        }
    }
}

/// Observes these cores for `span`, all at the same time.
pub fn watch(cores: &[usize], span: Nanos) -> io::Result<Vec<OsJitter>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            cores.iter().map(|&core| scope.spawn(move || watch_one(core, span))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("the thread does not panic"))
            .collect()
    })
}

fn watch_one(core: usize, span: Nanos) -> io::Result<OsJitter> {
    core::hold(&[core])?;
    let mut found = OsJitter::new(core);
    let begin = clock::now();
    let mut last = begin;
    while last.since(begin) < span {
        let now = clock::now();
        found.add(now.since(last));
        last = now;
    }
    found.span = last.since(begin);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_from_the_minimum_on() {
        let mut found = OsJitter::new(3);
        for ns in [20, LEAST.0 - 1, LEAST.0, 2_000_000] {
            found.add(Nanos(ns));
        }
        assert_eq!((found.count, found.total), (2, LEAST + Nanos(2_000_000)));
        assert_eq!(found.longest, Nanos(2_000_000));
        assert_eq!((found.stalls, found.stalled), (1, Nanos(2_000_000)));
    }

    #[test]
    fn every_core_is_observed_and_a_missing_core_is_an_error() {
        let cores = core::allowed().unwrap();
        let found = watch(&cores, Nanos::from_millis(5)).unwrap();
        assert_eq!(found.iter().map(|one| one.core).collect::<Vec<_>>(), cores);
        assert!(
            found.iter().all(|one| one.span >= Nanos::from_millis(5) && one.longest > Nanos(0))
        );
        assert!(watch(&[usize::MAX], Nanos(1)).is_err());
    }
}
