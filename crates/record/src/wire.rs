//! Control channels on the wire during a module.
//!
//! Invariant: a message without a timestamp is counted as unknown and is in no distribution.

use serde::{Deserialize, Serialize};

use super::{ClockSource, Distribution};

/// Captured control channels of a module, combined.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// Source of the timestamps; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<ClockSource>,
    /// Time from a message's arrival at the interface to its delivery by the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Distribution>,
    /// Time from before the write of messages until all of them had passed the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Distribution>,
    /// Messages without a timestamp.
    pub unknown: u64,
    /// Retransmitted TCP segments.
    pub retransmitted: u64,
    /// Gaps in the capture: acknowledged bytes that were not captured.
    pub gaps: u64,
    /// Bytes in these gaps.
    pub bytes_unseen: u64,
    /// Reason for a missing capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Capture file in the run's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}
