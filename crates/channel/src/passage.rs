//! When a channel's bytes passed the interface: directions, anomalies and unknown times.

/// Maximum number of times that are stored per direction until they are queried.
pub const MARKS_MAX: usize = 1 << 16;

/// Direction of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From this end to the peer.
    Out,
    /// From the peer to this end.
    In,
}

/// Anomalies of the captured segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaptureAnomalies {
    /// Segments with bytes that had passed before: retransmissions.
    pub retransmitted: u64,
    /// Gaps: bytes that were acknowledged but never captured.
    pub gaps: u64,
    /// Bytes in the gaps.
    pub bytes_unseen: u64,
    /// Times that were dropped because they were not queried.
    pub forgotten: u64,
}

impl CaptureAnomalies {
    /// Returns the sum of both.
    #[must_use]
    pub fn and(self, other: CaptureAnomalies) -> CaptureAnomalies {
        CaptureAnomalies {
            retransmitted: self.retransmitted + other.retransmitted,
            gaps: self.gaps + other.gaps,
            bytes_unseen: self.bytes_unseen + other.bytes_unseen,
            forgotten: self.forgotten + other.forgotten,
        }
    }
}

/// Why a time is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownTime {
    /// The bytes have not passed yet, as far as is known.
    NotYet,
    /// The bytes have passed, but were not captured.
    Unknown,
}
