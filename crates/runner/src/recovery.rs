//! Recovery of a target whose switch stopped responding, or disconnected, during a measurement.
//!
//! Invariant: the results are always stored, and the notes of the trial's line record the recovery.

use packet::time::Nanos;
use tester::module::Ended;

use experiments::control_plane::recovery::{Recovery, is_wanted};
use targets::name::TargetKind;
use targets::{Target, TargetError};
use workload::Technology;

/// Result of a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryResult {
    /// Note for the trial's line.
    pub note: String,
    /// Whether a switch still does not respond.
    pub needs_reset: bool,
}

/// Waits until every switch of a target responds again after its module ended this way, and empties
/// the target.
///
/// Returns `None` if no switch had a fault.
pub fn poll_again(
    target: &mut dyn Target,
    ended: &Ended,
    limit: Nanos,
) -> Result<Option<RecoveryResult>, TargetError> {
    let kind = target.kind();
    if !is_wanted(ended) || kind.technology() != Technology::OpenFlow {
        return Ok(None);
    }
    let switches = match kind {
        TargetKind::Network(network) => network.network().switches.len(),
        _ => 1,
    };
    let mut longest = Nanos::ZERO;
    for switch in 0..switches {
        let mut module = Recovery::new(switch, limit);
        let report = target.stage(&mut module)?;
        match module.took() {
            Some(took) => longest = longest.max(took),
            None if report.ended == Ended::Interrupted => return Ok(None),
            None => {
                let note = format!(
                    "the switch did not reply within {:.0} s ({}) and needs a reset",
                    limit.as_secs_f64(),
                    report.ended
                );
                return Ok(Some(RecoveryResult { note, needs_reset: true }));
            }
        }
    }
    let note = format!(
        "the switch replied on a new connection within {:.3} s, and its flow entries were deleted",
        longest.as_secs_f64()
    );
    Ok(Some(RecoveryResult { note, needs_reset: false }))
}
