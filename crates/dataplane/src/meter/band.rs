//! One band of a meter: a bucket of tokens in integer arithmetic.
//!
//! Tokens come in at the band's rate and each frame that keeps to the rate takes as many as it is
//! worth; a frame that does not find enough exceeds the rate and takes none (a "continuous-state
//! leaky bucket", ITU-T I.371, annex A). Without a burst of its own a band lets frames be early by
//! [`SLACK`], or by one frame if that is more: without such slack the rate let through would
//! depend on how the frames happen to be spaced.
//!
//! A token is 10⁻⁶ bit or 10⁻⁹ frame, so that one nanosecond brings as many tokens as the rate is
//! kilobits or frames a second, and nothing is ever rounded. Invariant: over any span a band lets
//! pass no more than its rate times the span, its burst and slack, and one frame.

use packet::time::Nanos;

use crate::counter::Traffic;

/// By how much frames may be early where a band names no burst.
pub const SLACK: Nanos = Nanos::from_millis(10);

/// What a meter's rates and bursts count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Rates are in 1000 bit/s, bursts in 1000 bits. Bits are those of frames as they are counted
    /// everywhere: without frame check sequence.
    Kilobits,
    /// Rates are in frames per second, bursts in frames.
    Packets,
}

/// What a band does with the frames that exceed its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BandKind {
    /// Drop them.
    Drop,
    /// Raise the drop precedence of their DSCP within its assured forwarding class (RFC 2597).
    DscpRemark {
        /// By how many levels, at least 1.
        levels: u8,
    },
}

/// A rate, and what is done with frames beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Band {
    /// What is done.
    pub kind: BandKind,
    /// The rate, in the meter's unit per second, at least 1.
    pub rate: u32,
    /// How much may come at once, in the meter's unit; used if the meter says so, and zero stands
    /// for none.
    pub burst: u32,
}

/// The tokens of one band, and what it was applied to.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    /// Frames that exceeded its rate and that it was applied to.
    pub(super) traffic: Traffic,
    unit: Unit,
    /// Tokens per nanosecond.
    rate: i64,
    /// Tokens.
    burst: i64,
    tokens: i64,
    /// Tokens that the dearest frame so far was worth.
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

    /// Whether a frame of so many bytes keeps to the rate; if so it takes its tokens.
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

    /// Adds the tokens that came in since this was last asked, as far as they fit.
    fn fill(&mut self, now: Nanos) {
        let span = i64::try_from(now.since(self.filled_at).0).unwrap_or(i64::MAX);
        let slack = (self.rate * SLACK.0 as i64).max(self.dearest);
        let room = self.burst.max(self.burst.min(self.dearest) + slack);
        self.tokens = self.tokens.saturating_add(span.saturating_mul(self.rate)).min(room);
        self.filled_at = self.filled_at.max(now);
    }
}
