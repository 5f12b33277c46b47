//! Counters of a flow entry, without its instructions (1.5).
//!
//! Source: OpenFlow 1.5.1 section 7.3.5.4 (`ofp_flow_stats`).

use std::fmt;

use super::super::instruction::Counters;
use super::super::matching::Match;

/// Why the switch sends the counters (`ofp_flow_stats_reason`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FlowStatsReason {
    /// In reply to a request.
    #[default]
    Request,
    /// A counter passed a threshold of a stat-trigger instruction.
    Trigger,
}

/// A flow entry and its counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// The entry's table.
    pub table: u8,
    /// Why the switch sends the counters.
    pub reason: FlowStatsReason,
    /// Its priority.
    pub priority: u16,
    /// Its match.
    pub matching: Match,
    /// Its counters.
    pub counters: Counters,
}

impl fmt::Display for FlowCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            FlowStatsReason::Request => "request",
            FlowStatsReason::Trigger => "trigger",
        };
        write!(f, "{reason} table={} priority={}", self.table, self.priority)?;
        write!(f, " match={}{}", self.matching, self.counters)
    }
}
