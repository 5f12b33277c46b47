//! Times when the tester was descheduled during a trial, and the number of latencies that are
//! unknown because of it.
//!
//! Invariant: a frame of unknown latency is counted here and is in no distribution.

use serde::{Deserialize, Serialize};

/// Gaps in the tester's execution that are long enough to make a latency uncertain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stalls {
    /// Number of gaps.
    pub count: u64,
    /// Total length.
    pub ns_total: u64,
    /// The longest.
    pub ns_longest: u64,
    /// Time that the hypervisor gave to other guests (steal time), sum of all cores, in clock tick
    /// resolution. Absent if the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_stolen: Option<u64>,
    /// Received frames of unknown latency.
    #[serde(default)]
    pub delays_unknown: u64,
}

impl Stalls {
    /// Counts a gap.
    pub fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns_total = self.ns_total.saturating_add(ns);
        self.ns_longest = self.ns_longest.max(ns);
    }

    /// Adds the gaps of another trial.
    pub fn merge(&mut self, other: &Stalls) {
        self.count += other.count;
        self.ns_total = self.ns_total.saturating_add(other.ns_total);
        self.ns_longest = self.ns_longest.max(other.ns_longest);
        self.delays_unknown += other.delays_unknown;
        let stolen = [self.ns_stolen, other.ns_stolen].into_iter().flatten();
        self.ns_stolen = stolen.reduce(u64::saturating_add);
    }
}
