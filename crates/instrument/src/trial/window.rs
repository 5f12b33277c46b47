//! Times within a trial: when a stream is sent, when its frames were missed, how its latency varies.
//!
//! Loads that change within a trial are streams one after the other, each in its window.

use packet::time::Nanos;

/// When the measured frames of a stream are sent, after the beginning of the trial's own. A stream whose
/// window begins later has no warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first frame is due then.
    pub from: Nanos,
    /// The last frame is due before.
    pub until: Nanos,
}

/// When a stream's measured frames were missed. Moments are those at which frames were due to be sent,
/// after the beginning of the trial's measured frames; frames that the tester did not send are missed too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missed {
    /// The first frame that did not arrive where and as it should; none if all did.
    pub first: Option<Nanos>,
    /// The last such frame.
    pub last: Option<Nanos>,
    /// The longest time between two arrivals of which one followed the other. It ends when the tester went
    /// away, where something arrives as soon as it is back: then it was silent itself, or did not listen.
    pub silence: Nanos,
}

/// Differences of latency between a frame and the one that was sent just before it, where both
/// arrived (RFC 3393; RFC 8219, 7.3.2). In nanoseconds, below zero where the later one was quicker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variation {
    /// Differences that there were.
    pub count: u64,
    /// Smallest.
    pub ns_min: i64,
    /// Median, to three significant digits.
    pub ns_median: i64,
    /// Largest.
    pub ns_max: i64,
}

impl Window {
    /// How long it is open.
    pub fn span(self) -> Nanos {
        self.until.since(self.from)
    }
}
