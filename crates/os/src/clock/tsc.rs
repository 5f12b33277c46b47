//! The processor's time-stamp counter: whether it is invariant, and its readings next to the
//! kernel's clocks.
//!
//! An invariant counter runs at one rate, independent of the core's frequency, also in sleep states
//! (Intel SDM volume 3, 18.17.1; AMD APM volume 3, function 8000_0007h). `CLOCK_MONOTONIC_RAW` is
//! not adjusted. `CLOCK_MONOTONIC`, the time base of all timestamps, is slewed with the realtime
//! clock.

#![allow(unsafe_code)]

use packet::time::Nanos;

use super::{cycles, now, read};

/// Type of the processor's time-stamp counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// The rate is constant.
    Invariant,
    /// The rate follows the core's frequency, or the counter stops in sleep states.
    Variable,
    /// Programs cannot read a counter: the kernel's clock is used instead.
    Absent,
}

impl Counter {
    /// Queries the processor.
    pub fn of_processor() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            const ADVANCED_POWER: u32 = 0x8000_0007;
            const INVARIANT_BIT: u32 = 1 << 8;
            #[allow(unused_unsafe, reason = "newer compilers treat it as safe")]
            // SAFETY: every processor of this architecture has the instruction, and its first leaf
            // returns the highest valid leaf.
            let (highest, power) = unsafe {
                let highest = core::arch::x86_64::__cpuid(0x8000_0000).eax;
                (highest, core::arch::x86_64::__cpuid(ADVANCED_POWER).edx)
            };
            match highest >= ADVANCED_POWER && power & INVARIANT_BIT != 0 {
                true => Counter::Invariant,
                false => Counter::Variable,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Counter::Absent
    }

    /// Returns a description of the counter, with its replacement.
    pub fn words(self) -> &'static str {
        match self {
            Counter::Invariant => "invariant",
            Counter::Variable => "not invariant: cycles have varying length",
            Counter::Absent => "absent: the kernel's monotonic clock replaces it",
        }
    }
}

/// A reading of the three clocks at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// `CLOCK_MONOTONIC`.
    pub monotonic: Nanos,
    /// `CLOCK_MONOTONIC_RAW`.
    pub raw: Nanos,
    /// Time-stamp counter.
    pub cycles: u64,
    /// Largest difference in time between the three readings: half of the duration of reading them.
    pub error: Nanos,
}

/// Number of attempts; the fastest counts.
const ATTEMPTS: usize = 9;

impl Reading {
    /// Reads the clocks, as close together as possible.
    pub fn take() -> Self {
        let once = |_| {
            let before = now();
            let raw = Nanos(read(libc::CLOCK_MONOTONIC_RAW));
            let cycles = cycles();
            let half = now().since(before).0 / 2;
            Reading { monotonic: before + Nanos(half), raw, cycles, error: Nanos(half + 1) }
        };
        (0..ATTEMPTS)
            .map(once)
            .min_by_key(|reading| reading.error)
            .expect("there is at least one attempt")
    }
}

/// Returns the cost of reading the clock in nanoseconds: the median of a series of readings.
pub fn reading_ns() -> u64 {
    const READINGS: usize = 1001;
    const EACH: u64 = 16;
    let once = |_| {
        let before = now();
        (1..EACH).for_each(|_| {
            std::hint::black_box(now());
        });
        now().since(before).0 / EACH
    };
    let mut spans: Vec<u64> = (0..READINGS).map(once).collect();
    spans.sort_unstable();
    spans[READINGS / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_increase_on_every_clock() {
        let (first, second) = (Reading::take(), Reading::take());
        assert!(second.monotonic > first.monotonic && second.raw > first.raw);
        if Counter::of_processor() == Counter::Invariant {
            assert!(second.cycles > first.cycles);
        }
        assert!(first.error > Nanos::ZERO);
    }
}
