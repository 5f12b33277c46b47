//! The tester away from its work during a trial, and how many delays are unknown for that.
//!
//! Invariant: a frame whose delay is unknown is counted here and stands in no distribution.

use serde::{Deserialize, Serialize};

/// Gaps in the tester's attention, from the least one that blurs a delay on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// All of them together.
    pub ns_total: u64,
    /// The longest.
    pub ns_longest: u64,
    /// Time that the hypervisor gave to others, of all cores together, to the clock tick; absent
    /// where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_stolen: Option<u64>,
    /// Frames that came back and whose delay is unknown.
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

    /// Adds those of another trial.
    pub fn merge(&mut self, other: &Stalls) {
        self.count += other.count;
        self.ns_total = self.ns_total.saturating_add(other.ns_total);
        self.ns_longest = self.ns_longest.max(other.ns_longest);
        self.delays_unknown += other.delays_unknown;
        let stolen = [self.ns_stolen, other.ns_stolen].into_iter().flatten();
        self.ns_stolen = stolen.reduce(u64::saturating_add);
    }
}
