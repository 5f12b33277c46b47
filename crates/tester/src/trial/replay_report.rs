//! Results of a replay in a trial.

use packet::capture::fault::Warning;

use super::{Classes, Jitter, Latency, Pacing};
use crate::stream::replay::{Failure, ReplayCounts};

/// Results of a replay.
#[derive(Debug, Clone)]
pub struct ReplayReport {
    /// Id of the replay.
    pub id: u16,
    /// Index of the sending port.
    pub from: usize,
    /// Counts of sent and skipped frames.
    pub counts: ReplayCounts,
    /// Whether all passes were sent completely.
    pub is_complete: bool,
    /// Whether frames were still due at the end of the trial: the port or the file was too slow.
    pub is_behind: bool,
    /// Deviation from the schedule. Empty without one.
    pub pacing: Pacing,
    /// Warnings about the file, once it was read to its end.
    pub warnings: Vec<Warning>,
    /// Why it ended early.
    pub failure: Option<Failure>,
    /// Received marked frames, if the replay marks frames.
    pub back: Option<ReceivedMarked>,
}

/// Received marked frames of a replay.
///
/// A correct frame has an intact signature and is on the expected port. Its other bytes are not
/// checked.
#[derive(Debug, Clone)]
pub struct ReceivedMarked {
    /// Index of the expected receiving port.
    pub to: usize,
    /// Frame classes.
    pub classes: Classes,
    /// Distinct frames received in any state.
    pub received: u64,
    /// Latency of the correct frames, from their send time.
    pub latency: Latency,
    /// Variation of that latency.
    pub jitter: Jitter,
}
