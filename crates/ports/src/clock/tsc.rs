//! The processor's time-stamp counter: whether it can be relied on, and how it goes beside the
//! kernel's clocks.
//!
//! A counter that is invariant goes at one speed whatever the core's, and on in its sleep (Intel SDM
//! volume 3, 18.17.1; AMD APM volume 3, function 8000_0007h). `CLOCK_MONOTONIC_RAW` is steered by
//! nobody; `CLOCK_MONOTONIC`, by which everything is dated, is slewed with the realtime clock.

#![allow(unsafe_code)]

use packet::time::Nanos;

use super::{cycles, now, read};

/// What the processor says of its counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// It goes at one speed, always.
    Invariant,
    /// Its speed follows the core's, or it stops in its sleep.
    Variable,
    /// There is none that programs can read: the kernel's clock is counted instead.
    Absent,
}

impl Counter {
    /// Asks the processor.
    pub fn of_processor() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            const ADVANCED_POWER: u32 = 0x8000_0007;
            const INVARIANT_BIT: u32 = 1 << 8;
            #[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
            // SAFETY: every processor of this architecture has the instruction, and its first
            // leaf says which others there are.
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

    /// The word for it, with what is used instead.
    pub fn words(self) -> &'static str {
        match self {
            Counter::Invariant => "invariant",
            Counter::Variable => "not invariant: work is counted in cycles of varying length",
            Counter::Absent => "absent: the kernel's monotonic clock is counted instead",
        }
    }
}

/// The clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// By `CLOCK_MONOTONIC`.
    pub monotonic: Nanos,
    /// By `CLOCK_MONOTONIC_RAW`.
    pub raw: Nanos,
    /// By the counter.
    pub cycles: u64,
    /// By how much the three may be apart: half of the time that reading them took.
    pub error: Nanos,
}

/// Attempts of which the quickest counts.
const ATTEMPTS: usize = 9;

impl Reading {
    /// Reads the clocks now, as close together as it goes.
    pub fn take() -> Self {
        let once = |_| {
            let before = now();
            let raw = Nanos(read(libc::CLOCK_MONOTONIC_RAW));
            let cycles = cycles();
            let half = now().since(before).0 / 2;
            Reading { monotonic: before + Nanos(half), raw, cycles, error: Nanos(half + 1) }
        };
        (0..ATTEMPTS).map(once).min_by_key(|reading| reading.error).expect("there are attempts")
    }
}

/// What asking for the time takes, in nanoseconds: the median of a row of readings one after the
/// other.
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
    fn readings_follow_each_other_on_every_clock() {
        let (first, second) = (Reading::take(), Reading::take());
        assert!(second.monotonic > first.monotonic && second.raw > first.raw);
        if Counter::of_processor() == Counter::Invariant {
            assert!(second.cycles > first.cycles);
        }
        assert!(first.error > Nanos::ZERO);
    }
}
