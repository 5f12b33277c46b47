//! Time stamps of hardware testers in frames: 32 bits of seconds and 32 bits of fraction.
//!
//! The last bit is 2^-32 s, 0.23 ns, so nanoseconds survive the conversion in both directions.
//! Seconds wrap after 136 years; differences remain valid. Source: the time stamps of OSNT (Antichi
//! et al., IEEE Network 2014), which equal those of NTP (RFC 5905, section 6) except for their
//! epoch.

use super::Nanos;

/// Nanoseconds per second.
const SECOND_NS: u64 = 1_000_000_000;

/// A time in seconds and units of 2^-32 s, modulo 2^32 seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Fixed(pub u64);

impl Fixed {
    /// Bytes of a time stamp in a frame.
    pub const BYTES: usize = 8;

    /// Converts a time to the nearest time stamp.
    pub fn from_nanos(at: Nanos) -> Self {
        let (seconds, rest) = (at.0 / SECOND_NS, at.0 % SECOND_NS);
        // Below 2^32 even when rounded up: the last nanosecond is four units below it.
        let fraction = ((rest << 32) + SECOND_NS / 2) / SECOND_NS;
        Fixed(seconds << 32 | fraction)
    }

    /// Converts to the nearest nanosecond of the first 136 years.
    pub fn nanos(self) -> Nanos {
        Nanos(self.seconds() * SECOND_NS + nanos_of(self.fraction()))
    }

    /// Returns the whole seconds.
    pub fn seconds(self) -> u64 {
        self.0 >> 32
    }

    /// Returns the fraction in units of 2^-32 s.
    pub fn fraction(self) -> u64 {
        self.0 & u64::from(u32::MAX)
    }

    /// Returns the nanoseconds since `earlier`, negative if `earlier` is later. Correct across the
    /// wrap if the difference is less than 68 years.
    pub fn since(self, earlier: Fixed) -> i64 {
        let span = self.0.wrapping_sub(earlier.0) as i64;
        let size = span.unsigned_abs();
        let ns = (size >> 32) * SECOND_NS + nanos_of(size & u64::from(u32::MAX));
        if span < 0 { -(ns as i64) } else { ns as i64 }
    }

    /// Returns the bytes of the time stamp in a frame: seconds first, big-endian.
    pub fn to_bytes(self) -> [u8; Fixed::BYTES] {
        self.0.to_be_bytes()
    }

    /// Reads a time stamp at the start of `bytes`. Returns none if they are too short.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().map(|bytes| Fixed(u64::from_be_bytes(*bytes)))
    }
}

/// Converts units of 2^-32 s to the nearest nanosecond.
fn nanos_of(fraction: u64) -> u64 {
    (fraction * SECOND_NS + (1 << 31)) >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn halves_and_limits_are_converted_exactly() {
        assert_eq!(Fixed::from_nanos(Nanos(1_500_000_000)), Fixed(0x1_8000_0000));
        assert_eq!(Fixed::from_nanos(Nanos(999_999_999)), Fixed(0xffff_fffc));
        assert_eq!(Fixed(0xffff_ffff).nanos(), Nanos::from_secs(1), "the last part rounds up");
        assert_eq!(Fixed(u64::MAX).nanos(), Nanos::from_secs(1 << 32));
        let wrapped = Fixed::from_nanos(Nanos::from_secs((1 << 32) + 3));
        assert_eq!((wrapped.seconds(), wrapped.fraction()), (3, 0));
    }

    #[test]
    fn a_time_stamp_in_a_frame_begins_with_its_seconds() {
        let stamp = Fixed(0x0102_0304_0506_0708);
        assert_eq!(stamp.to_bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(Fixed::read(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), Some(stamp));
        assert_eq!(Fixed::read(&[1, 2, 3, 4, 5, 6, 7]), None);
    }

    #[test]
    fn differences_are_correct_across_the_wrap_and_may_be_negative() {
        let (before, after) = (Fixed(u64::MAX - (1 << 31) + 1), Fixed(1 << 32));
        assert_eq!(after.since(before), 1_500_000_000);
        assert_eq!(before.since(after), -1_500_000_000);
        assert_eq!(after.since(after), 0);
    }

    proptest! {
        #[test]
        fn nanoseconds_round_trip(ns in 0u64..(1u64 << 32) * SECOND_NS) {
            prop_assert_eq!(Fixed::from_nanos(Nanos(ns)).nanos(), Nanos(ns));
        }

        #[test]
        fn differences_agree_with_those_of_nanoseconds(start in 0u64..1 << 62, span in 0u64..1 << 60) {
            let (from, to) = (Nanos(start), Nanos(start + span));
            let have = Fixed::from_nanos(to).since(Fixed::from_nanos(from));
            prop_assert!(have.abs_diff(span as i64) <= 1, "{} and {}", have, span);
        }
    }
}
