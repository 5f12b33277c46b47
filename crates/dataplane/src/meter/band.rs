//! Token bucket of a meter band, in integer arithmetic.
//!
//! Tokens arrive at the band's rate. A frame within the rate takes tokens for its length; a frame
//! without enough tokens exceeds the rate and takes none (a "continuous-state leaky bucket", ITU-T
//! I.371, annex A). A band without a burst permits frames to be early by [`SLACK`], or by one frame
//! if that is more. Without this slack, the permitted rate would depend on the spacing of frames.
//!
//! A token is 10⁻⁶ bit or 10⁻⁹ frame. So one nanosecond adds as many tokens as the rate in kilobits
//! or frames per second, and nothing is rounded. Invariant: in any time span, a band passes at most
//! its rate times the span, its burst and slack, and one frame.

use packet::time::Nanos;

use crate::counter::Traffic;

/// Time that frames may be early if a band has no burst.
pub const SLACK: Nanos = Nanos::from_millis(10);

/// Unit of a meter's rates and bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Rates are in 1000 bit/s, bursts in 1000 bits. Bits count without frame check sequence, as in
    /// all counters.
    Kilobits,
    /// Rates are in frames per second, bursts in frames.
    Packets,
}

/// Action of a band on frames that exceed its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BandKind {
    /// Drop the frame.
    Drop,
    /// Raise the drop precedence of the DSCP within its assured forwarding class (RFC 2597).
    DscpRemark {
        /// Number of levels, at least 1.
        levels: u8,
    },
}

/// A rate, and the action on frames beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Band {
    /// The action.
    pub kind: BandKind,
    /// The rate, in the meter's unit per second, at least 1.
    pub rate: u32,
    /// The burst, in the meter's unit; zero means none. Used only if the meter enables bursts.
    pub burst: u32,
}

/// Tokens and counters of one band.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    /// Frames that exceeded the rate and to which the band was applied.
    pub(super) traffic: Traffic,
    unit: Unit,
    /// Tokens per nanosecond.
    rate: i64,
    /// Burst in tokens.
    burst: i64,
    tokens: i64,
    /// Token cost of the most expensive frame so far.
    dearest: i64,
    filled_at: Nanos,
}

impl Bucket {
    pub(super) fn new(band: &Band, unit: Unit, burst: bool, now: Nanos) -> Bucket {
        // A frame is 10⁹ tokens, and so are 1000 bits.
        let burst = if burst { i64::from(band.burst) * 1_000_000_000 } else { 0 };
        let (rate, traffic) = (i64::from(band.rate), Traffic::default());
        Bucket { traffic, unit, rate, burst, tokens: burst, dearest: 0, filled_at: now }
    }

    /// Whether a frame of `bytes` bytes is within the rate; if so, takes its tokens.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize, now: Nanos) -> bool {
        let worth = match self.unit {
            Unit::Kilobits => bytes as i64 * 8_000_000,
            Unit::Packets => 1_000_000_000,
        };
        self.dearest = self.dearest.max(worth);
        self.fill(now);
        let keeps = self.tokens >= worth.min(self.burst);
        if keeps {
            self.tokens -= worth;
        }
        keeps
    }

    /// Adds the tokens since the last call, up to the capacity.
    fn fill(&mut self, now: Nanos) {
        let span = i64::try_from(now.since(self.filled_at).0).unwrap_or(i64::MAX);
        let slack = (self.rate * SLACK.0 as i64).max(self.dearest);
        let room = self.burst.max(self.burst.min(self.dearest) + slack);
        self.tokens = self.tokens.saturating_add(span.saturating_mul(self.rate)).min(room);
        self.filled_at = self.filled_at.max(now);
    }
}
