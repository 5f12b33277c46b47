//! Frames that nobody knows of when a trial is over: they may still be under way.
//!
//! RFC 2544 section 23 waits two seconds after the last frame. Short trials wait less, which does no harm as long
//! as every frame is accounted for afterwards. Where some are not, as when a target did not get its core for a while,
//! the trial is kept open until they are, or until those two seconds are over. A target that loses frames which
//! neither it nor the kernel counts would make every lossy trial that long: after waiting twice in vain it is waited for in one
//! short step, so that frames which are only late are still counted.

use instrument::rig::RigError;
use instrument::rig::live::LiveRig;
use instrument::trial::{Trial, TrialReport};
use packet::time::Nanos;

use super::{Snapshot, Target};

/// How long is waited after the last frame at most (RFC 2544 section 23).
const DRAIN_MAX: Nanos = Nanos::from_secs(2);

/// For how long at once.
const STEP: Nanos = Nanos::from_millis(50);

/// After waiting in vain so often, a target is waited for in one step only, and longer again once that helped.
const IN_VAIN_MAX: u32 = 2;

/// What a target's last trials were like.
#[derive(Debug, Default)]
pub struct Overdue {
    /// Frames that it and the kernel said they had lost when they were asked last.
    lost: u64,
    /// How often nothing has come of waiting, the last times.
    in_vain: u32,
}

/// A target that works on when a trial is over.
pub trait WorksOn: Target {
    /// The tester's ports, and what the last trials were like.
    fn overdue(&mut self) -> (&mut LiveRig, &mut Overdue);
}

impl Overdue {
    /// Keeps what the target and the kernel have lost until now.
    pub fn note(&mut self, snapshot: &Snapshot) {
        self.lost = lost(snapshot);
    }

    /// How long a target is waited for; none for one step.
    fn longest(&self) -> Option<Nanos> {
        (self.in_vain < IN_VAIN_MAX).then_some(DRAIN_MAX)
    }

    /// Notes whether waiting brought anything.
    fn judge(&mut self, missing: [u64; 2]) {
        let [before, after] = missing;
        self.in_vain = if after < before { 0 } else { self.in_vain + 1 };
    }
}

/// Whether what is missing of a trial's frames is waited for: it has some, and nobody has to be told meanwhile
/// that they are sent.
pub fn covers(trial: &Trial) -> bool {
    trial.orders.is_none() && !trial.streams.is_empty()
}

/// Offers a trial that [is covered](covers), and waits for what nobody accounts for. The target was asked what it had lost
/// right before.
pub fn trial(target: &mut impl WorksOn, trial: &Trial) -> Result<TrialReport, RigError> {
    let (rig, overdue) = target.overdue();
    let lost_before = overdue.lost;
    let most = overdue.longest();
    let mut open = rig.open(trial)?;
    let first = rig.missing(&open);
    let mut missing = first;
    while missing > 0 {
        // Whoever cannot tell now says so when it is asked next.
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

/// Frames that others than the tester's ports lost.
fn lost(snapshot: &Snapshot) -> u64 {
    snapshot.drops.values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_waited_for_again_when_that_helped() {
        let mut overdue = Overdue::default();
        let mut judged = |missing| {
            overdue.judge(missing);
            overdue.longest() == Some(DRAIN_MAX)
        };
        assert!(judged([5, 5]) && judged([5, 4]) && judged([9, 9]), "one in three helped");
        assert!(!judged([1, 1]), "twice in vain: one step only");
        assert!(judged([3, 1]), "that step helped");
    }
}
