//! What a search has to know of a trial: how much of it was lost.
//!
//! Where the tester fell short, what it did not send counts as lost, since nobody knows what would
//! have become of it (RFC 9971 recommends it). More frames than were sent are a failure, never a gain.

use crate::trial::{Flag, TrialReport};

/// What the search has to know of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Frames that the schedule called for.
    pub intended: u64,
    /// Frames that the tester sent.
    pub offered: u64,
    /// Frames that arrived where and as they should, plus duplicates of those.
    pub forwarded: u64,
    /// Whether the tester fell short of what was intended.
    pub is_tester_limited: bool,
    /// Whether it counts although the tester disturbed it ([`super::disturbed`]).
    pub is_disturbed: bool,
}

impl From<&TrialReport> for Measured {
    fn from(report: &TrialReport) -> Self {
        Measured {
            intended: report.total.intended,
            offered: report.total.offered,
            forwarded: report.total.forwarded + report.classes.duplicate,
            is_tester_limited: report.is_tester_limited(),
            is_disturbed: report.flags.contains(&Flag::Disturbed),
        }
    }
}

impl Measured {
    /// Whether more frames came back than were sent.
    pub fn has_extra(&self) -> bool {
        self.forwarded > self.offered
    }

    /// Whether at most this share was lost; never where nothing was sent or frames were added.
    pub fn is_within(&self, loss_ratio: f64) -> bool {
        !self.has_extra()
            && self.base() > 0
            && self.lost() as f64 <= loss_ratio * self.base() as f64
    }

    /// The share that was lost, 0 to 1; all of it where nothing was sent or frames were added.
    pub fn loss_ratio(&self) -> f64 {
        if self.has_extra() || self.base() == 0 {
            return 1.0;
        }
        self.lost() as f64 / self.base() as f64
    }

    /// Whether more than this share was lost, but not if so many frames were lost by the tester's doing.
    pub fn is_undecided(&self, loss_ratio: f64, owed: u64) -> bool {
        let beyond = self.lost().saturating_sub(owed) as f64;
        !self.has_extra()
            && self.base() > 0
            && !self.is_within(loss_ratio)
            && beyond <= loss_ratio * self.base() as f64
    }

    fn base(&self) -> u64 {
        if self.is_tester_limited { self.intended } else { self.offered }
    }

    fn lost(&self) -> u64 {
        self.base().saturating_sub(self.forwarded)
    }
}
