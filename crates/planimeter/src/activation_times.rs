//! Activation times of rules that probes observe: each lies between two probes (interval-censored data).
//!
//! The measurement module and the fitting of models derive every metric from here, so that both reach the same
//! result. A rule acts after the last probe that it did not treat left, and before the first that it did treat
//! arrived; where in between is unknown. Source: metrics C2 to C4 of the method (`docs/oflops.md`); order statistics
//! of interval-censored data (Turnbull, 1976).
//!
//! Invariants:
//! - Bounds hold the true value wherever each rule acted within its window. They assume no distribution.
//! - A pause that probes cannot show has a bound; it never counts as absent.

use std::ops::Range;

/// Batches: rules that act together, with pauses between.
pub mod batches;
/// The order in which rules act.
pub mod order;

/// The least and the greatest value that the data allow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Bounds {
    /// The value in the middle.
    pub fn middle(self) -> f64 {
        (self.low + self.high) / 2.0
    }

    /// Half of the width: how far the true value may lie from the middle.
    pub fn half(self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// The bounds of the time from `earlier` to this.
    pub fn since(self, earlier: Bounds) -> Bounds {
        Bounds { low: self.low - earlier.high, high: self.high - earlier.low }
    }

    /// The same, shifted and scaled by a positive factor.
    pub fn per(self, count: f64) -> Bounds {
        Bounds { low: self.low / count, high: self.high / count }
    }
}

/// The window in which a rule began to act, in nanoseconds after the update's first byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// The rule: its place in the order sent.
    pub rule: usize,
    /// When it acts: not before the lower bound, not after the upper.
    pub acts: Bounds,
}

/// The windows of all rules of an update that were seen to act.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActivationTimes {
    /// Sorted by lower bounds.
    windows: Vec<Window>,
    /// Upper bounds in rising order.
    highs: Vec<f64>,
    /// For each place, the greatest upper bound up to there.
    high_before: Vec<f64>,
    /// For each place, the least upper bound from there on.
    high_after: Vec<f64>,
}

/// The longest time in which no rule begins to act.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pause {
    /// How long it is.
    pub length: Bounds,
    /// When it begins.
    pub begins: Bounds,
}

impl ActivationTimes {
    /// The times with these windows.
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

    /// The windows, sorted by lower bounds.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// How many rules were seen to act.
    pub fn len(&self) -> usize {
        self.windows.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// When the rule of this rank acts (0 for the first of all). Panics if there are fewer.
    pub fn nth(&self, rank: usize) -> Bounds {
        Bounds { low: self.windows[rank].acts.low, high: self.highs[rank] }
    }

    /// When the last rule acts.
    pub fn last(&self) -> Option<Bounds> {
        self.len().checked_sub(1).map(|rank| self.nth(rank))
    }

    /// The lower bounds, and the upper ones, each in rising order.
    pub fn ends(&self) -> [Vec<f64>; 2] {
        [self.windows.iter().map(|window| window.acts.low).collect(), self.highs.clone()]
    }

    /// The median of half the windows' widths; none without windows.
    pub fn half_median(&self) -> Option<f64> {
        let mut halves: Vec<f64> = self.windows.iter().map(|it| it.acts.half()).collect();
        halves.sort_by(f64::total_cmp);
        halves.get(halves.len() / 2).copied()
    }

    /// The pause behind each place but the last: how long no rule acts between those up to there and the others.
    /// The lower bound is zero where they cannot be told apart, and the upper one then is that of a hidden pause.
    fn pauses(&self) -> Vec<Bounds> {
        let pause = |place: usize| Bounds {
            low: (self.windows[place + 1].acts.low - self.high_before[place]).max(0.0),
            high: self.high_after[place + 1] - self.windows[place].acts.low,
        };
        (0..self.len().saturating_sub(1)).map(pause).collect()
    }

    /// The longest pause; none of fewer than two rules.
    pub fn longest_pause(&self) -> Option<Pause> {
        let pauses = self.pauses();
        let most = |of: fn(&Bounds) -> f64| pauses.iter().map(of).max_by(f64::total_cmp);
        let length = Bounds { low: most(|it| it.low)?, high: most(|it| it.high)? };
        // Any pause that may be the longest may begin it.
        let longest = (0..pauses.len()).filter(|&place| pauses[place].high >= length.low);
        let begins = longest.fold(Bounds { low: f64::INFINITY, high: 0.0 }, |begins, place| {
            let [low, high] = [self.windows[place].acts.low, self.high_before[place]];
            Bounds { low: begins.low.min(low), high: begins.high.max(high) }
        });
        Some(Pause { length, begins })
    }

    /// When the first of some rules, which no other rule acts between, begins to act; places as in
    /// [`ActivationTimes::windows`].
    pub fn first_of(&self, places: &Range<usize>) -> Bounds {
        let windows = &self.windows[places.clone()];
        let highs = windows.iter().map(|window| window.acts.high);
        Bounds { low: windows[0].acts.low, high: highs.fold(f64::INFINITY, f64::min) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Rules in the order sent, in windows of this width that end at these times.
    pub fn times(ends: &[f64], width: f64) -> ActivationTimes {
        let window = |(rule, &high): (usize, &f64)| Window {
            rule,
            acts: Bounds { low: (high - width).max(0.0), high },
        };
        ActivationTimes::new(ends.iter().enumerate().map(window).collect())
    }

    #[test]
    fn ranks_lie_between_the_sorted_ends() {
        let window = |rule, low, high| Window { rule, acts: Bounds { low, high } };
        let times = ActivationTimes::new(vec![window(0, 5.0, 6.0), window(1, 0.0, 20.0)]);
        assert_eq!(times.nth(0), Bounds { low: 0.0, high: 6.0 });
        assert_eq!(times.last(), Some(Bounds { low: 5.0, high: 20.0 }));
        assert_eq!(ActivationTimes::default().last(), None);
    }

    #[test]
    fn a_pause_is_as_long_as_the_data_allow() {
        let pause = times(&[10.0, 11.0, 50.0], 2.0).longest_pause().unwrap();
        assert_eq!(pause.length, Bounds { low: 37.0, high: 41.0 });
        assert_eq!(pause.begins, Bounds { low: 9.0, high: 11.0 });
        // All windows overlap: whether there is a pause is unknown, and it has an upper bound.
        let hidden = times(&[10.0, 11.0, 12.0], 8.0).longest_pause().unwrap();
        assert_eq!(hidden.length, Bounds { low: 0.0, high: 9.0 });
    }
}
