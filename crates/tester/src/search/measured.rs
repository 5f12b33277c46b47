//! Loss of a trial, as the searches use it.
//!
//! If the tester offered less than intended, the missing frames count as lost (RFC 9971 recommends
//! this). More forwarded than offered frames count as a miss.

use crate::trial::{Flag, TrialReport};

/// Frame counts of a trial for a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredLoad {
    /// Frames that the schedule required.
    pub intended: u64,
    /// Frames that the tester sent.
    pub offered: u64,
    /// Frames received intact on the expected port, duplicates included.
    pub forwarded: u64,
    /// Whether the tester offered less than intended.
    pub is_tester_limited: bool,
    /// Whether the trial counts although the tester disturbed it ([`super::interference`]).
    pub is_disturbed: bool,
}

impl From<&TrialReport> for MeasuredLoad {
    fn from(report: &TrialReport) -> Self {
        MeasuredLoad {
            intended: report.total.intended,
            offered: report.total.offered,
            forwarded: report.total.forwarded + report.classes.duplicate,
            is_tester_limited: report.is_tester_limited(),
            is_disturbed: report.flags.contains(&Flag::TesterInterference),
        }
    }
}

impl MeasuredLoad {
    /// Returns whether more frames were forwarded than offered.
    pub fn has_extra(&self) -> bool {
        self.forwarded > self.offered
    }

    /// Returns whether at most this share was lost. False if nothing was sent or frames were added.
    pub fn is_within(&self, loss_ratio: f64) -> bool {
        !self.has_extra()
            && self.base() > 0
            && self.lost() as f64 <= loss_ratio * self.base() as f64
    }

    /// Returns the frame loss rate from 0 to 1. It is 1 if nothing was sent or frames were added.
    pub fn loss_ratio(&self) -> f64 {
        if self.has_extra() || self.base() == 0 {
            return 1.0;
        }
        self.lost() as f64 / self.base() as f64
    }

    /// Returns whether the loss exceeds this share, but not without the `owed` frames of the
    /// tester.
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
