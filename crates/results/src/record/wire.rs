//! What control channels looked like on the wire during a module.
//!
//! Invariant: a message whose moment nobody saw is counted as unknown, and stands in no distribution.

use serde::{Deserialize, Serialize};

use super::{ClockSource, Distribution};

/// Control channels on the wire, all of a module together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// Who stamped; absent if nobody could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<ClockSource>,
    /// From when a message had passed the interface to when the socket had handed it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Distribution>,
    /// From before the write of messages to when all of them had passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Distribution>,
    /// Messages whose moment nobody knows.
    pub unknown: u64,
    /// Segments that came again.
    pub retransmitted: u64,
    /// Places where bytes were acknowledged that nobody saw pass.
    pub gaps: u64,
    /// Bytes in those.
    pub bytes_unseen: u64,
    /// Why nothing was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What passed, a capture file under the run's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}
