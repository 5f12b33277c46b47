//! Rate limiting with a token bucket.
//!
//! Invariant: in any interval, at most `burst` plus `rate` times the interval pass.

use packet::time::Nanos;

const SECOND: u128 = 1_000_000_000;

/// Token bucket. It counts billionths of tokens, so that no rate is rounded.
#[derive(Debug)]
pub struct Pace {
    rate_per_s: u64,
    burst: u64,
    tokens: u128,
    filled_at: Nanos,
}

impl Pace {
    /// Creates a full bucket for this rate; 0 means no limit.
    pub fn new(rate_per_s: u64, burst: u64, now: Nanos) -> Self {
        Pace { rate_per_s, burst, tokens: u128::from(burst) * SECOND, filled_at: now }
    }

    /// Takes a token if there is one. Returns whether there was.
    pub fn admit(&mut self, now: Nanos) -> bool {
        if self.rate_per_s == 0 {
            return true;
        }
        let gained = u128::from(now.since(self.filled_at).0) * u128::from(self.rate_per_s);
        self.filled_at = self.filled_at.max(now);
        self.tokens = (self.tokens + gained).min(u128::from(self.burst) * SECOND);
        let one = self.tokens >= SECOND;
        if one {
            self.tokens -= SECOND;
        }
        one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut pace = Pace::new(10, 3, Nanos::ZERO);
        let passed =
            |pace: &mut Pace, at| (0..9).filter(|_| pace.admit(Nanos::from_millis(at))).count();
        assert_eq!(passed(&mut pace, 0), 3);
        assert_eq!(passed(&mut pace, 99), 0);
        assert_eq!(passed(&mut pace, 100), 1);
        assert_eq!(passed(&mut pace, 10_000), 3);
        assert_eq!(passed(&mut Pace::new(0, 1, Nanos::ZERO), 0), 9);
    }
}
