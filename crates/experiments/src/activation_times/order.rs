//! Order of activation compared with the order of sending: Kendall's tau over pairs whose windows do not overlap.
//!
//! Source: figure 8b of the OFLOPS-SUME paper; Kendall, 1938.
//!
//! Invariant: a pair whose windows overlap is unresolved; it increases the reported error, and never counts as in
//! order.

use std::ops::Range;

use super::{ActivationTimes, Window};

/// Maximum number of entries for the comparison of pairs; of more, an evenly spaced sample.
const RULES_MAX: usize = 4096;

/// Comparison of the order of activation with the order of sending.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OrderComparison {
    /// Resolved pairs that activate in the reverse of the order of sending.
    pub inversions: u64,
    /// Pairs whose order of activation is known.
    pub resolved: u64,
    /// Pairs whose order of activation is unknown.
    pub unresolved: u64,
}

/// Possible ranks of an entry in the order of activation, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// Rank in the order of sending, from 0.
    pub sent: usize,
    /// Smallest and largest rank that the data allow.
    pub acts: [usize; 2],
}

impl Rank {
    /// Returns the possible rank nearest to the order of sending; any difference from that order is certain.
    pub fn nearest(self) -> usize {
        self.sent.clamp(self.acts[0], self.acts[1])
    }
}

impl OrderComparison {
    /// Returns Kendall's tau over the resolved pairs: 1 for the same order, 0 for no correlation, -1 for the
    /// reverse.
    pub fn tau(&self) -> f64 {
        1.0 - 2.0 * self.inversions as f64 / self.resolved as f64
    }

    /// Returns the uncertainty of tau over all pairs, for any order of the unresolved ones.
    pub fn tau_half(&self) -> f64 {
        let unresolved = self.unresolved as f64 / (self.resolved + self.unresolved) as f64;
        unresolved * (1.0 + self.tau().abs())
    }

    /// Returns the share of inverted pairs among the resolved ones.
    pub fn inverted_share(&self) -> f64 {
        self.inversions as f64 / self.resolved as f64
    }

    fn and(self, other: OrderComparison) -> OrderComparison {
        OrderComparison {
            inversions: self.inversions + other.inversions,
            resolved: self.resolved + other.resolved,
            unresolved: self.unresolved + other.unresolved,
        }
    }
}

fn order(windows: &[Window]) -> OrderComparison {
    let mut order = OrderComparison { inversions: 0, resolved: 0, unresolved: 0 };
    for (place, one) in windows.iter().enumerate() {
        for other in &windows[place + 1..] {
            // The lower bound of the other is not below that of this one.
            if one.acts.high < other.acts.low {
                order.resolved += 1;
                order.inversions += u64::from(one.rule > other.rule);
            } else {
                order.unresolved += 1;
            }
        }
    }
    order
}

impl ActivationTimes {
    /// Returns the order of all entries; `None` if no pair is resolved.
    pub fn order(&self) -> Option<OrderComparison> {
        let step = self.len().div_ceil(RULES_MAX).max(1);
        let some: Vec<Window> = self.windows.iter().step_by(step).copied().collect();
        Some(order(&some)).filter(|order| order.resolved > 0)
    }

    /// Returns the order within groups of entries, over all groups; `None` if no pair is resolved.
    pub fn order_within(&self, groups: &[Range<usize>]) -> Option<OrderComparison> {
        let each = groups.iter().map(|group| {
            let step = group.len().div_ceil(RULES_MAX).max(1);
            let some: Vec<Window> =
                self.windows[group.clone()].iter().step_by(step).copied().collect();
            order(&some)
        });
        each.reduce(OrderComparison::and).filter(|order| order.resolved > 0)
    }

    /// Returns the possible ranks of each entry, in the order of sending.
    pub fn ranks(&self) -> Vec<(usize, Rank)> {
        let lows: Vec<f64> = self.windows.iter().map(|window| window.acts.low).collect();
        let mut rules: Vec<&Window> = self.windows.iter().collect();
        rules.sort_by_key(|window| window.rule);
        let rank = |(sent, window): (usize, &Window)| {
            // Entries that certainly activate before it, and all except those that certainly activate after it.
            let before = self.highs.partition_point(|high| *high < window.acts.low);
            let up_to = lows.partition_point(|low| *low <= window.acts.high);
            (window.rule, Rank { sent, acts: [before, up_to - 1] })
        };
        rules.into_iter().enumerate().map(rank).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::times;

    #[test]
    fn tau_covers_resolved_pairs_and_its_error_the_others() {
        assert_eq!(times(&[10.0, 20.0, 30.0], 2.0).order().unwrap().tau(), 1.0);
        assert_eq!(times(&[30.0, 20.0, 10.0], 2.0).order().unwrap().tau(), -1.0);
        let mixed = times(&[10.0, 30.0, 20.0], 2.0).order().unwrap();
        assert_eq!((mixed.inversions, mixed.resolved, mixed.tau_half()), (1, 3, 0.0));
        let near = times(&[10.0, 11.0, 20.0, 30.0], 2.0).order().unwrap();
        assert_eq!((near.tau(), near.unresolved), (1.0, 1));
        assert!((near.tau_half() - 2.0 / 6.0).abs() < 1e-12);
        assert_eq!(times(&[10.0, 30.0, 20.0], 40.0).order(), None);
    }

    #[test]
    fn a_rank_differs_from_the_send_position_only_if_the_data_show_it() {
        let nearest = |ends: &[f64], width| -> Vec<usize> {
            times(ends, width).ranks().iter().map(|(_, rank)| rank.nearest()).collect()
        };
        // One round of probes: the order of the probes does not depend on the switch.
        assert_eq!(nearest(&[13.0, 11.0, 14.0, 12.0], 10.0), [0, 1, 2, 3]);
        assert_eq!(nearest(&[40.0, 30.0, 20.0, 10.0], 2.0), [3, 2, 1, 0]);
        assert_eq!(nearest(&[20.0, 10.0, 40.0, 30.0], 2.0), [1, 0, 3, 2]);
    }
}
