//! Linear rate ramps, in integers.
//!
//! A ramp leads from a to b frames per second over a time T. Until time t, a t + (b - a) t² / 2T
//! frames are due. Frame k is due in the last nanosecond in which that is no more than k. Rates
//! have a resolution of a thousandth of a frame per second, and ramps take at most an hour. So all
//! values fit into 128 bits.

use crate::stream::burst_profile::RAMP_MAX;

/// One frame, in thousandths of a frame per second times nanoseconds.
const UNIT: i128 = 1_000_000_000_000;

/// A ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ramp {
    /// Thousandths of a frame per second.
    from: i128,
    to: i128,
    /// Nanoseconds.
    over: i128,
}

impl Ramp {
    /// Creates a ramp between two rates, each from 0.001 to a billion frames per second.
    ///
    /// `over_ns` is its duration in nanoseconds, from 1 to [`RAMP_MAX`].
    pub fn new(from_pps: f64, to_pps: f64, over_ns: u64) -> Self {
        let milli = |pps: f64| ((pps * 1000.0).round() as i128).clamp(1, UNIT);
        let over = i128::from(over_ns.clamp(1, RAMP_MAX.0));
        Ramp { from: milli(from_pps), to: milli(to_pps), over }
    }

    /// Returns when frame `number` is due after the start, in nanoseconds.
    pub fn at(&self, number: u64) -> u64 {
        let frames = i128::from(number) * UNIT;
        let whole = (self.from + self.to) * self.over;
        if 2 * frames >= whole {
            let after = (2 * frames - whole) / (2 * self.to);
            return u64::try_from(self.over + after).unwrap_or(u64::MAX);
        }
        let target = 2 * self.over * frames;
        let fits = |t: i128| t < self.over && self.area(t) <= target;
        let mut t = self.guess(number).clamp(0, self.over - 1);
        let mut step = 1;
        while !fits(t) {
            t = (t - step).max(0);
            step *= 2;
        }
        step = 1;
        while fits(t + step) {
            t += step;
            step *= 2;
        }
        while step > 1 {
            step /= 2;
            t += if fits(t + step) { step } else { 0 };
        }
        t as u64
    }

    /// Returns how many frames are due within `span` nanoseconds.
    pub fn frames_within(&self, span: u64) -> u64 {
        let t = i128::from(span);
        let (area, unit) = if t <= self.over {
            (self.area(t), 2 * self.over * UNIT)
        } else {
            ((self.from + self.to) * self.over + 2 * self.to * (t - self.over), 2 * UNIT)
        };
        u64::try_from((area + unit - 1) / unit).unwrap_or(u64::MAX)
    }

    /// Returns the frames due until `t`, times [`UNIT`] and twice the ramp's length.
    fn area(&self, t: i128) -> i128 {
        2 * self.over * self.from * t + (self.to - self.from) * t * t
    }

    /// Returns an estimate of when frame `number` is due.
    fn guess(&self, number: u64) -> i128 {
        let (from, over) = (self.from as f64, self.over as f64);
        let slope = (self.to - self.from) as f64 / over;
        let frames = number as f64 * UNIT as f64;
        let root = (from * from + 2.0 * slope * frames).max(0.0).sqrt();
        (2.0 * frames / (from + root)) as i128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_is_due_in_the_last_nanosecond_for_its_number() {
        for (from, to, over) in [
            (1000.0, 50_000.0, 1_000_000_000),
            (50_000.0, 0.001, 2_000_000_000),
            (1e9, 0.001, 5_000_000),
            (0.001, 1e9, 3_000_000),
            (7.0, 7.0, 999_999_999),
        ] {
            let ramp = Ramp::new(from, to, over);
            let end = ramp.frames_within(over);
            for number in (0..end.min(2000)).chain(end - end.min(50)..end + 3) {
                let at = ramp.at(number);
                // The number of earlier frames is at most its number, and it is itself due by then.
                assert!(ramp.frames_within(at) <= number, "{from} {to}: {number} at {at}");
                assert!(ramp.frames_within(at + 1) > number, "{from} {to}: {number} at {at}");
            }
        }
    }

    #[test]
    fn a_ramp_sends_the_mean_of_both_rates_and_continues_at_the_second() {
        let ramp = Ramp::new(1000.0, 3000.0, 10_000_000_000);
        assert_eq!(ramp.frames_within(10_000_000_000), 20_000);
        assert_eq!(ramp.frames_within(11_000_000_000), 23_000);
        assert_eq!(ramp.at(20_003), 10_001_000_000);
        // Half of the time: 1000 and 2000 frames per second at its ends.
        assert_eq!(ramp.frames_within(5_000_000_000), 7_500);
        // The longest and fastest possible ramp.
        let most = Ramp::new(1e9, 1e9, RAMP_MAX.0);
        assert_eq!(most.at(3_599_999_999_999), 3_599_999_999_999);
        assert_eq!(most.frames_within(RAMP_MAX.0), 3_600_000_000_000);
    }
}
