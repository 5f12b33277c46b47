//! Extends a trial's drain time while frames are unaccounted for (RFC 2544, section 23).
//!
//! RFC 2544 waits two seconds after the last frame. Short trials wait less, which is safe as long
//! as every frame is accounted for. Frames may be missing because a target lost its core for a
//! while. The trial then stays open until all are accounted for, at most two seconds.
//!
//! A target may lose frames that neither it nor the kernel counts; every lossy trial would then
//! last two seconds. After two extensions without progress, a target therefore gets one short step
//! only, so that late frames still count.

use packet::time::Nanos;
use tester::rig::RigError;
use tester::rig::live::LiveRig;
use tester::trial::{Trial, TrialReport};

use super::{Snapshot, Target};

/// Longest drain time after the last frame (RFC 2544 section 23).
const DRAIN_MAX: Nanos = Nanos::from_secs(2);

/// Length of one step.
const STEP: Nanos = Nanos::from_millis(50);

/// Number of extensions without progress after which only one step is granted. Progress restores
/// the full drain time.
const FRUITLESS_EXTENSIONS_MAX: u32 = 2;

/// Drain history of a target.
#[derive(Debug, Default)]
pub struct DrainPolicy {
    /// Frames lost by the target and the kernel at the last reading.
    lost: u64,
    /// Number of consecutive extensions without progress.
    fruitless_extensions: u32,
}

/// A target that continues to forward after a trial.
pub trait AsyncTarget: Target {
    /// Returns the tester's ports and the drain history.
    fn overdue(&mut self) -> (&mut LiveRig, &mut DrainPolicy);
}

impl DrainPolicy {
    /// Stores the losses of target and kernel so far.
    pub fn note(&mut self, snapshot: &Snapshot) {
        self.lost = lost(snapshot);
    }

    /// Returns the longest drain time; `None` for one step.
    fn longest(&self) -> Option<Nanos> {
        (self.fruitless_extensions < FRUITLESS_EXTENSIONS_MAX).then_some(DRAIN_MAX)
    }

    /// Records whether an extension made progress.
    fn judge(&mut self, missing: [u64; 2]) {
        let [before, after] = missing;
        self.fruitless_extensions = if after < before { 0 } else { self.fruitless_extensions + 1 };
    }
}

/// Returns whether a trial's drain may be extended: it has streams, and no controller commands.
pub fn can_extend(trial: &Trial) -> bool {
    trial.orders.is_none() && !trial.streams.is_empty()
}

/// Runs a trial that [is covered](covers), and extends its drain while frames are unaccounted for.
/// The target's loss counters must have been read right before.
pub fn trial(target: &mut impl AsyncTarget, trial: &Trial) -> Result<TrialReport, RigError> {
    let (rig, overdue) = target.overdue();
    let lost_before = overdue.lost;
    let most = overdue.longest();
    let mut open = rig.open(trial)?;
    let first = rig.missing(&open);
    let mut missing = first;
    while missing > 0 {
        // A target that cannot report now fails at its next reading.
        let Ok(snapshot) = target.snapshot() else { break };
        if lost(&snapshot).saturating_sub(lost_before) >= missing {
            break;
        }
        let (rig, overdue) = target.overdue();
        if open.drain() >= most.unwrap_or_else(|| trial.drain.saturating_add(STEP)) {
            overdue.judge([first, missing]);
            break;
        }
        open = rig.go_on(open, STEP)?;
        missing = rig.missing(&open);
        if missing < first {
            overdue.judge([first, missing]);
        }
    }
    Ok(target.overdue().0.close(open))
}

/// Returns the frames lost outside the tester's ports.
fn lost(snapshot: &Snapshot) -> u64 {
    snapshot.drops.values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drain_is_extended_again_if_that_helped() {
        let mut overdue = DrainPolicy::default();
        let mut judged = |missing| {
            overdue.judge(missing);
            overdue.longest() == Some(DRAIN_MAX)
        };
        assert!(judged([5, 5]) && judged([5, 4]) && judged([9, 9]), "one in three helped");
        assert!(!judged([1, 1]), "two fruitless extensions: one step only");
        assert!(judged([3, 1]), "that step helped");
    }
}
