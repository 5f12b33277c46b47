//! Restart of a target during a trial.

use os::clock;
use packet::time::Nanos;
use testbed::affinity::{self, Cores};
use tester::rig::live::LiveRig;
use tester::rig::{Rig, RigError};
use tester::trial::{Trial, TrialReport};

use super::TargetError;

/// Runs a trial, and calls `anew` at time `at` after the first measured frame was due.
pub fn trial(
    rig: &mut LiveRig,
    trial: &Trial,
    at: Nanos,
    cores: &Cores,
    anew: impl FnOnce() -> Result<(), TargetError> + Send,
) -> Result<TrialReport, RigError> {
    let resets_at = clock::now().saturating_add(trial.warmup).saturating_add(at);
    std::thread::scope(|scope| {
        let reset = scope.spawn(|| {
            // If pinning is not permitted, the scheduler chooses the core.
            let _ = affinity::pin(0, &cores.target);
            clock::sleep_until(resets_at);
            anew()
        });
        let report = rig.trial(trial);
        let done = reset.join().expect("a reset does not panic");
        done.map_err(|error| RigError::Reset(error.to_string()))?;
        report
    })
}
