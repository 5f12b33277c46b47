//! Rate of the tester's clock, from periodic readings during a run.
//!
//! The first and the last reading determine the rate and its accuracy. The readings between them
//! show deviations from a straight line, which a steered clock has.

use os::clock::tsc::Reading;
use packet::time::Nanos;

/// Maximum number of readings. When full, every second one is dropped, so that a run can last for
/// days.
const READINGS_MAX: usize = 256;

/// Minimum time span for a rate.
const SPAN_MIN: Nanos = Nanos::from_millis(100);

/// Readings of this machine's clocks over a run.
#[derive(Debug, Clone, Default)]
pub struct Drift {
    readings: Vec<Reading>,
    /// Number of readings per stored one.
    stride: usize,
    skipped: usize,
    last: Option<Reading>,
}

/// Rates of the clocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockDrift {
    /// Time from the first reading to the last.
    pub span: Nanos,
    /// Rate of the monotonic clock relative to the raw one, minus 1, in parts per 10^9.
    pub ppb: f64,
    /// Error bound of `ppb`.
    pub ppb_error: f64,
    /// Largest deviation of the monotonic clock from a constant rate, in nanoseconds.
    pub ns_wander: f64,
    /// Time-stamp counter cycles per second of the raw clock.
    pub counter_hz: f64,
    /// Error bound of `counter_hz`.
    pub counter_hz_error: f64,
}

impl Drift {
    /// Creates an empty set of readings.
    pub fn new() -> Self {
        Drift { stride: 1, ..Drift::default() }
    }

    /// Adds a reading, which must be later than the previous ones.
    pub fn add(&mut self, reading: Reading) {
        self.last = Some(reading);
        if self.skipped + 1 < self.stride {
            self.skipped += 1;
            return;
        }
        self.skipped = 0;
        self.readings.push(reading);
        if self.readings.len() == READINGS_MAX {
            let mut place = 0;
            self.readings.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// Returns the rates until now. None before a tenth of a second has passed.
    pub fn went(&self) -> Option<ClockDrift> {
        let (first, last) = (self.readings.first()?, self.last.as_ref()?);
        let span = last.raw.since(first.raw);
        if span < SPAN_MIN {
            return None;
        }
        let raw_ns = span.0 as f64;
        let error_ns = (first.error.0 + last.error.0) as f64;
        // A difference of two exact spans. A single floating-point number would not be exact.
        let gained = |to: &Reading| {
            let monotonic = to.monotonic.since(first.monotonic).0 as i64;
            (monotonic - to.raw.since(first.raw).0 as i64) as f64
        };
        let rate = gained(last) / raw_ns;
        let strays = |at: &Reading| {
            let even = rate * at.raw.since(first.raw).0 as f64;
            ((gained(at) - even).abs() - at.error.0 as f64 - first.error.0 as f64).max(0.0)
        };
        let counted = last.cycles.wrapping_sub(first.cycles) as f64;
        let counter_hz = counted * 1e9 / raw_ns;
        Some(ClockDrift {
            span,
            ppb: rate * 1e9,
            ppb_error: error_ns * 1e9 / raw_ns,
            ns_wander: self.readings.iter().map(strays).fold(0.0, f64::max),
            counter_hz,
            counter_hz_error: counter_hz * error_ns / raw_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that gains `ppb`, read with an error of 20 ns whose sign changes.
    fn readings(ppb: i64, count: u64) -> impl Iterator<Item = Reading> {
        (0..count).map(move |place| {
            let raw = 5_000_000_000 + place * 250_000_000;
            let gained = (raw - 5_000_000_000) as i64 * ppb / 1_000_000_000;
            let noise = if place % 3 == 0 { 15 } else { -15 };
            Reading {
                monotonic: Nanos((9_000_000_000 + raw as i64 + gained + noise) as u64),
                raw: Nanos(raw),
                cycles: raw * 3,
                error: Nanos(20),
            }
        })
    }

    fn of(readings: impl Iterator<Item = Reading>) -> Drift {
        let mut drift = Drift::new();
        readings.for_each(|reading| drift.add(reading));
        drift
    }

    #[test]
    fn rates_are_within_their_stated_errors() {
        for (ppb, count) in [(0, 3), (35_000, 5), (-500_000, 40), (12, 4_000)] {
            let went = of(readings(ppb, count)).went().unwrap();
            assert!((went.ppb - ppb as f64).abs() <= went.ppb_error, "{ppb}: {went:?}");
            assert!((went.counter_hz - 3e9).abs() <= went.counter_hz_error, "{went:?}");
            assert_eq!(went.span, Nanos((count - 1) * 250_000_000));
            assert!(went.ns_wander < 20.0, "{went:?}");
        }
        // The error shrinks with the length of the run.
        let error = |count| of(readings(0, count)).went().unwrap().ppb_error;
        assert!(error(4_000) < error(40) / 50.0 && error(4_000) < 0.1);
    }

    #[test]
    fn an_adjustment_of_the_clock_is_detected() {
        let steered = readings(0, 41).enumerate().map(|(place, reading)| {
            let pushed = if place < 20 { place } else { 40 - place } as u64 * 1_000;
            Reading { monotonic: reading.monotonic + Nanos(pushed), ..reading }
        });
        let went = of(steered).went().unwrap();
        assert!((19_000.0..20_100.0).contains(&went.ns_wander), "{went:?}");
        assert!(went.ppb.abs() <= went.ppb_error);
    }

    #[test]
    fn a_single_reading_gives_no_rate_and_memory_is_bounded() {
        assert_eq!(Drift::new().went(), None);
        assert_eq!(of(readings(5, 1)).went(), None);
        let long = of(readings(100, 100_000));
        assert!(long.readings.len() < READINGS_MAX);
        assert!((long.went().unwrap().ppb - 100.0).abs() < 0.1);
    }
}
