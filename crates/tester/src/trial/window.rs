//! Time windows of streams, missed frames and delay variation.
//!
//! A load that changes within a trial is a sequence of streams, each with its own window.

use packet::time::Nanos;

/// Window of a stream's measured frames, relative to the start of the measurement. A stream whose
/// window starts later has no warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// When the first frame is due.
    pub from: Nanos,
    /// All frames are due before this time.
    pub until: Nanos,
}

/// When a stream's measured frames were missing.
///
/// Times are scheduled send times, relative to the start of the measurement. Frames that the tester
/// did not send count as missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MissingSpan {
    /// First frame that did not arrive intact on the expected port. None if all did.
    pub first: Option<Nanos>,
    /// Last such frame.
    pub last: Option<Nanos>,
    /// Longest gap between two successive arrivals. If the tester stalled just before the second
    /// one, the gap ends at the start of the stall: the tester may then have caused the rest of it.
    pub silence: Nanos,
}

/// Latency differences between each frame and the one sent just before it, if both arrived (RFC
/// 3393; RFC 8219, section 7.3.2).
///
/// In nanoseconds. Negative if the later frame was faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variation {
    /// Number of differences.
    pub count: u64,
    /// Smallest difference.
    pub ns_min: i64,
    /// Median, to three significant digits.
    pub ns_median: i64,
    /// Largest difference.
    pub ns_max: i64,
}

impl Window {
    /// Returns the length of the window.
    pub fn span(self) -> Nanos {
        self.until.since(self.from)
    }
}
