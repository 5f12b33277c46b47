//! Activation times of flow entries, each between two probes (interval-censored data).
//!
//! The measurement modules and model fitting derive every metric from this module, so that both get the same
//! result. An entry becomes active after the last probe that it did not handle was sent, and before the first probe
//! that it handled arrived. The exact time between these is unknown. Source: metrics C2 to C4 of the method
//! (`docs/oflops.md`); order statistics of interval-censored data (Turnbull, 1976).
//!
//! Invariants:
//!
//! - Bounds contain the true value, wherever each entry became active within its window. They assume no
//!   distribution.
//! - A pause that probes cannot show has a bound; it never counts as absent.

use std::ops::Range;

pub mod batches;
pub mod order;

/// Smallest and largest value that the data allow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Smallest value.
    pub low: f64,
    /// Largest value.
    pub high: f64,
}

impl Bounds {
    /// Returns the midpoint.
    pub fn middle(self) -> f64 {
        (self.low + self.high) / 2.0
    }

    /// Returns half of the width, the uncertainty of the midpoint.
    pub fn half(self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Returns the bounds of the time from `earlier` to this value.
    pub fn since(self, earlier: Bounds) -> Bounds {
        Bounds { low: self.low - earlier.high, high: self.high - earlier.low }
    }

    /// Divides the bounds by a positive factor.
    pub fn per(self, count: f64) -> Bounds {
        Bounds { low: self.low / count, high: self.high / count }
    }
}

/// Window in which an entry became active, in nanoseconds after the first byte of the update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Entry: its position in the order of sending.
    pub rule: usize,
    /// Bounds of the activation time.
    pub acts: Bounds,
}

/// Windows of all entries of an update that became active.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActivationTimes {
    /// Windows, sorted by lower bounds.
    windows: Vec<Window>,
    /// Upper bounds in rising order.
    highs: Vec<f64>,
    /// For each position, the largest upper bound up to it.
    high_before: Vec<f64>,
    /// For each position, the smallest upper bound from it on.
    high_after: Vec<f64>,
}

/// Longest time without an activation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pause {
    /// Duration.
    pub length: Bounds,
    /// Start.
    pub begins: Bounds,
}

impl ActivationTimes {
    /// Creates the activation times from these windows.
    pub fn new(mut windows: Vec<Window>) -> ActivationTimes {
        windows.sort_by(|a, b| {
            a.acts.low.total_cmp(&b.acts.low).then(a.acts.high.total_cmp(&b.acts.high))
        });
        let mut highs: Vec<f64> = windows.iter().map(|window| window.acts.high).collect();
        let mut high_before = highs.clone();
        for place in 1..high_before.len() {
            high_before[place] = high_before[place].max(high_before[place - 1]);
        }
        let mut high_after = highs.clone();
        for place in (1..high_after.len()).rev() {
            high_after[place - 1] = high_after[place - 1].min(high_after[place]);
        }
        highs.sort_by(f64::total_cmp);
        ActivationTimes { windows, highs, high_before, high_after }
    }

    /// Returns the windows, sorted by lower bounds.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Returns the number of active entries.
    pub fn len(&self) -> usize {
        self.windows.len()
    }

    /// Returns whether there is no active entry.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Returns the activation time of this rank (0 is the first). Panics if there are fewer entries.
    pub fn nth(&self, rank: usize) -> Bounds {
        Bounds { low: self.windows[rank].acts.low, high: self.highs[rank] }
    }

    /// Returns the last activation time.
    pub fn last(&self) -> Option<Bounds> {
        self.len().checked_sub(1).map(|rank| self.nth(rank))
    }

    /// Returns the lower and the upper bounds, each in rising order.
    pub fn ends(&self) -> [Vec<f64>; 2] {
        [self.windows.iter().map(|window| window.acts.low).collect(), self.highs.clone()]
    }

    /// Returns the median half width of the windows; `None` without windows.
    pub fn half_median(&self) -> Option<f64> {
        let mut halves: Vec<f64> = self.windows.iter().map(|it| it.acts.half()).collect();
        halves.sort_by(f64::total_cmp);
        halves.get(halves.len() / 2).copied()
    }

    /// Returns the pause after each position except the last: the time without activations between the two sides.
    ///
    /// If the two sides overlap, the lower bound is zero, and the upper bound is that of a hidden pause.
    fn pauses(&self) -> Vec<Bounds> {
        let pause = |place: usize| Bounds {
            low: (self.windows[place + 1].acts.low - self.high_before[place]).max(0.0),
            high: self.high_after[place + 1] - self.windows[place].acts.low,
        };
        (0..self.len().saturating_sub(1)).map(pause).collect()
    }

    /// Returns the longest pause; `None` for fewer than two entries.
    pub fn longest_pause(&self) -> Option<Pause> {
        let pauses = self.pauses();
        let most = |of: fn(&Bounds) -> f64| pauses.iter().map(of).max_by(f64::total_cmp);
        let length = Bounds { low: most(|it| it.low)?, high: most(|it| it.high)? };
        // The start covers every pause that may be the longest.
        let longest = (0..pauses.len()).filter(|&place| pauses[place].high >= length.low);
        let begins = longest.fold(Bounds { low: f64::INFINITY, high: 0.0 }, |begins, place| {
            let [low, high] = [self.windows[place].acts.low, self.high_before[place]];
            Bounds { low: begins.low.min(low), high: begins.high.max(high) }
        });
        Some(Pause { length, begins })
    }

    /// Returns the first activation time of adjacent entries, without activations of other entries between them.
    ///
    /// Places are those of [`ActivationTimes::windows`].
    pub fn first_of(&self, places: &Range<usize>) -> Bounds {
        let windows = &self.windows[places.clone()];
        let highs = windows.iter().map(|window| window.acts.high);
        Bounds { low: windows[0].acts.low, high: highs.fold(f64::INFINITY, f64::min) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates entries in the order of sending, with windows of this width that end at these times.
    pub fn times(ends: &[f64], width: f64) -> ActivationTimes {
        let window = |(rule, &high): (usize, &f64)| Window {
            rule,
            acts: Bounds { low: (high - width).max(0.0), high },
        };
        ActivationTimes::new(ends.iter().enumerate().map(window).collect())
    }

    #[test]
    fn ranks_are_between_the_sorted_bounds() {
        let window = |rule, low, high| Window { rule, acts: Bounds { low, high } };
        let times = ActivationTimes::new(vec![window(0, 5.0, 6.0), window(1, 0.0, 20.0)]);
        assert_eq!(times.nth(0), Bounds { low: 0.0, high: 6.0 });
        assert_eq!(times.last(), Some(Bounds { low: 5.0, high: 20.0 }));
        assert_eq!(ActivationTimes::default().last(), None);
    }

    #[test]
    fn a_pause_has_the_limits_that_the_data_permit() {
        let pause = times(&[10.0, 11.0, 50.0], 2.0).longest_pause().unwrap();
        assert_eq!(pause.length, Bounds { low: 37.0, high: 41.0 });
        assert_eq!(pause.begins, Bounds { low: 9.0, high: 11.0 });
        // All windows overlap: a pause is possible but not certain, and it has an upper bound.
        let hidden = times(&[10.0, 11.0, 12.0], 8.0).longest_pause().unwrap();
        assert_eq!(hidden.length, Bounds { low: 0.0, high: 9.0 });
    }
}
