//! A target whose switch fell silent, or left, in the middle of a measurement: looked after before the next one.
//!
//! Invariant: what was measured is kept whatever comes of it, and what was done stands in the notes of its line.

use instrument::module::Ended;
use packet::time::Nanos;

use crate::experiments::modules::recovery::{Recovery, is_wanted};
use crate::target::name::{TargetKind, Technology};
use crate::target::{Target, TargetError};

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// For the notes of the line.
    pub note: String,
    /// Whether a switch does not answer again.
    pub needs_reset: bool,
}

/// Waits until every switch of a target whose module ended so answers again, and empties it; none where
/// nothing was wrong.
pub fn look_after(
    target: &mut dyn Target,
    ended: &Ended,
    limit: Nanos,
) -> Result<Option<Recovered>, TargetError> {
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
                    "the switch did not answer again within {:.0} s ({}): it needs its reset",
                    limit.as_secs_f64(),
                    report.ended
                );
                return Ok(Some(Recovered { note, needs_reset: true }));
            }
        }
    }
    let note = format!(
        "afterwards the switch answered on a new connection within {:.3} s, and was emptied",
        longest.as_secs_f64()
    );
    Ok(Some(Recovered { note, needs_reset: false }))
}
