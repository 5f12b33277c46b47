//! Updates of one trial: each from empty tables, and which of them tells the values.
//!
//! A first update with few probes may leave open whether rules come in batches, or whether the last one acts before
//! the barrier's answer. Another with denser probes resolves more, and further ones find a barrier that is early
//! now and then. Invariant: which update tells the values follows from how well it resolves times, never from
//! the times themselves.

use instrument::module::Said;
use packet::time::Nanos;

use super::super::activation::Activation;
use crate::activation_times::ActivationTimes;
use crate::activation_times::batches::Grouping;

/// After this time no further update begins that only repeats the one before.
pub const BUDGET: Nanos = Nanos::from_millis(1_500);

/// So many times as many probes as at first are sent at most.
pub const DENSER: f64 = 10.0;

/// A time that is known to this share of the whole update is resolved.
const NEGLIGIBLE: f64 = 0.002;

/// What was seen of one update.
pub struct Pass {
    /// When each rule acts.
    pub activation: Activation,
    /// Probes in a second.
    pub probes_pps: f64,
    /// When its preparation began.
    pub begun_at: Nanos,
    /// The messages before the update.
    pub prepared: Option<Said>,
    /// Those of the update.
    pub said: Option<Said>,
    /// When its first byte left.
    pub sent: Option<Nanos>,
    /// When the barrier's answer was read.
    pub acknowledged_at: Option<Nanos>,
    /// Errors that the switch sent.
    pub errors: u64,
    /// Which rules the switch refused: nothing waits for them.
    pub refused: Vec<bool>,
    /// Whether the switch refused what the frames of all rules need before the update.
    pub is_base_refused: bool,
    /// Rules that were not as they had to be when the update began all the same.
    pub unready: usize,
    /// When the first probe left, and how many came back that left before the update.
    pub probed_from: Nanos,
    /// Probes that came back before the update.
    pub back: u64,
}

impl Pass {
    /// An update of so many rules that is yet to be prepared.
    pub fn new(count: u32, probes_pps: f64, begun_at: Nanos) -> Pass {
        Pass {
            activation: Activation::new(count),
            probes_pps,
            begun_at,
            prepared: None,
            said: None,
            sent: None,
            acknowledged_at: None,
            errors: 0,
            refused: vec![false; count as usize],
            is_base_refused: false,
            unready: 0,
            probed_from: Nanos::MAX,
            back: 0,
        }
    }

    /// Whether the windows show if rules come in batches, and on which side of the barrier's answer the last one acts.
    pub fn is_resolved(&self) -> bool {
        let times = self.activation.times();
        let (Some(last), Some(first)) = (times.last(), self.sent) else { return false };
        let is_open = |said: Nanos| {
            let said = said.since(first).0 as f64;
            let is_negligible = last.half() <= NEGLIGIBLE * last.middle();
            last.low <= said && said <= last.high && !is_negligible
        };
        times.grouping() != Grouping::Unresolved && !self.acknowledged_at.is_some_and(is_open)
    }

    /// How many rules may act before one that was sent earlier: with all but a few rules.
    pub fn rules_ahead(&self) -> usize {
        let times = self.activation.times();
        let windows = times.windows();
        let mut by_rule: Vec<_> = windows.iter().collect();
        by_rule.sort_by_key(|window| window.rule);
        // The greatest upper bound of the rules up to each.
        let mut highest = f64::NEG_INFINITY;
        let highs: Vec<f64> = by_rule
            .iter()
            .map(|window| {
                highest = highest.max(window.acts.high);
                highest
            })
            .collect();
        let mut ahead: Vec<usize> = by_rule
            .iter()
            .enumerate()
            .map(|(place, window)| {
                place.saturating_sub(highs.partition_point(|high| *high <= window.acts.low))
            })
            .collect();
        ahead.sort_unstable();
        ahead.get(ahead.len() * 9 / 10).copied().unwrap_or(0)
    }

    /// How badly it tells times: the less, the better.
    fn badness(&self, times: &ActivationTimes) -> (bool, f64) {
        let is_bad = !self.activation.is_complete() || self.unready > 0;
        (is_bad, times.half_median().unwrap_or(f64::INFINITY))
    }
}

/// The pass that tells times best; the last one of those that tell them alike.
pub fn best<'a>(passes: impl Iterator<Item = &'a Pass>) -> Option<&'a Pass> {
    let rated = passes.map(|pass| (pass.badness(&pass.activation.times()), pass));
    let by_quality = |((is_bad, half), _): &((bool, f64), &Pass),
                      ((is_other_bad, other), _): &((bool, f64), &Pass)| {
        is_other_bad.cmp(is_bad).then(other.total_cmp(half))
    };
    rated.max_by(by_quality).map(|(_, pass)| pass)
}
