//! Updates of one trial, each from empty tables, and the choice of the one that gives the values.
//!
//! A first update with few probes may not resolve whether entries activate in batches, or whether the last one
//! activates before the barrier reply. An update with denser probes resolves more. Further updates find a barrier
//! reply that is early only occasionally.
//!
//! Invariant: the choice of the update depends on the resolution of its times, never on the times themselves.

use packet::time::Nanos;
use tester::module::MessageRange;

use super::super::activation::Activation;
use crate::activation_times::ActivationTimes;
use crate::activation_times::batches::Grouping;

/// After this time, no further update begins that only repeats the one before.
pub const BUDGET: Nanos = Nanos::from_millis(1_500);

/// Maximum ratio of the later to the first probe rate.
pub const DENSER: f64 = 10.0;

/// A time is resolved if its uncertainty is at most this share of the whole update.
const NEGLIGIBLE: f64 = 0.002;

/// Observations of one update.
pub struct UpdateObservations {
    /// Activation time of each entry.
    pub activation: Activation,
    /// Probes per second.
    pub probes_pps: f64,
    /// Time at which the preparation began.
    pub begun_at: Nanos,
    /// Messages before the update.
    pub prepared: Option<MessageRange>,
    /// Messages of the update.
    pub said: Option<MessageRange>,
    /// Time at which the first byte of the update was sent.
    pub sent: Option<Nanos>,
    /// Time at which the barrier reply was read.
    pub acknowledged_at: Option<Nanos>,
    /// Error messages from the switch.
    pub errors: u64,
    /// Entries that the switch rejected; the module does not wait for them.
    pub refused: Vec<bool>,
    /// Whether the switch rejected the initial entries that all frames need.
    pub is_base_refused: bool,
    /// Whether the path carried the probes before the update.
    pub is_carried: bool,
    /// Entries that were not in their initial state when the update began.
    pub unready: usize,
    /// Departure time of the first probe.
    pub probed_from: Nanos,
    /// Probes that returned before the update.
    pub back: u64,
}

impl UpdateObservations {
    /// Creates an update of `count` entries that is not prepared yet.
    pub fn new(count: u32, probes_pps: f64, begun_at: Nanos) -> UpdateObservations {
        UpdateObservations {
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
            is_carried: true,
            unready: 0,
            probed_from: Nanos::MAX,
            back: 0,
        }
    }

    /// Returns whether the windows resolve batches, and whether the last activation is before the barrier reply.
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

    /// Returns how many entries may activate before one that was sent earlier; a few entries are ignored.
    pub fn rules_ahead(&self) -> usize {
        let times = self.activation.times();
        let windows = times.windows();
        let mut by_rule: Vec<_> = windows.iter().collect();
        by_rule.sort_by_key(|window| window.rule);
        // Highest upper bound of the entries up to each one.
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

    /// Rates the resolution of the times; lower is better. Probes that overload the path come after all others.
    fn badness(&self, times: &ActivationTimes) -> ([bool; 2], f64) {
        let is_bad = !self.activation.is_complete() || self.unready > 0;
        ([is_bad, !self.is_carried], times.half_median().unwrap_or(f64::INFINITY))
    }
}

/// Returns the pass with the best resolution; the last one if several are equal.
pub fn best<'a>(
    passes: impl Iterator<Item = &'a UpdateObservations>,
) -> Option<&'a UpdateObservations> {
    let rated = passes.map(|pass| (pass.badness(&pass.activation.times()), pass));
    let by_quality =
        |((is_bad, half), _): &(([bool; 2], f64), &UpdateObservations),
         ((is_other_bad, other), _): &(([bool; 2], f64), &UpdateObservations)| {
            is_other_bad.cmp(is_bad).then(other.total_cmp(half))
        };
    rated.max_by(by_quality).map(|(_, pass)| pass)
}
