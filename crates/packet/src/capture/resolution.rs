//! Time stamp resolutions: powers of ten or of two, as in `if_tsresol` (draft-ietf-opsawg-pcapng,
//! section 4.2).
//!
//! Time stamps finer than a nanosecond are rounded down, as in other programs.

use crate::time::Nanos;

const SECOND: i128 = 1_000_000_000;

/// A time stamp resolution: the byte of the option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolution(pub u8);

impl Resolution {
    /// Microseconds, the default.
    pub const MICRO: Resolution = Resolution(6);
    /// Nanoseconds.
    pub const NANO: Resolution = Resolution(9);

    /// Converts a time stamp in units, plus `offset_seconds`, to a time. Returns none if it is
    /// before 1970 or too late for [`Nanos`].
    #[inline]
    pub fn moment(self, units: u64, offset_seconds: i64) -> Option<Nanos> {
        if self == Resolution::NANO && offset_seconds == 0 {
            return Some(Nanos(units));
        }
        let exponent = u32::from(self.0 & 0x7f);
        let nanos = match (self.0 & 0x80 != 0, exponent) {
            (true, _) => ((u128::from(units) * SECOND as u128) >> exponent) as i128,
            (false, 0..=9) => i128::from(units) * 10i128.pow(9 - exponent),
            (false, 10..=28) => i128::from(units) / 10i128.pow(exponent - 9),
            (false, _) => 0,
        };
        let sum = nanos + i128::from(offset_seconds) * SECOND;
        u64::try_from(sum).ok().map(Nanos)
    }

    /// Converts a time, minus `offset_seconds`, to units, rounded down. Returns none if the result
    /// is negative or exceeds 64 bits.
    pub fn units(self, at: Nanos, offset_seconds: i64) -> Option<u64> {
        let nanos = i128::from(at.0) - i128::from(offset_seconds) * SECOND;
        let nanos = u128::try_from(nanos).ok()?;
        let exponent = u32::from(self.0 & 0x7f);
        let units = match (self.0 & 0x80 != 0, exponent) {
            // A second is 2^9 * 5^9 nanoseconds: the quotient is exact in two steps, or too large.
            (true, 0..=63) => {
                let (seconds, rest) = (nanos / SECOND as u128, nanos % SECOND as u128);
                (seconds << exponent).checked_add((rest << exponent) / SECOND as u128)?
            }
            (false, 0..=9) => nanos / 10u128.pow(9 - exponent),
            (false, 10..=28) => nanos.checked_mul(10u128.pow(exponent - 9))?,
            _ => return None,
        };
        u64::try_from(units).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_round_trip_at_fine_resolutions() {
        let at = Nanos(1_700_000_000_123_456_789);
        for (unit, want) in [
            (0, 1_700_000_000_000_000_000),
            (3, 1_700_000_000_123_000_000),
            (6, 1_700_000_000_123_456_000),
            (9, 1_700_000_000_123_456_789),
            (10, 1_700_000_000_123_456_789),
            (0x80, 1_700_000_000_000_000_000),
            (0x80 | 1, 1_700_000_000_000_000_000),
            (0x80 | 3, 1_700_000_000_000_000_000),
        ] {
            let unit = Resolution(unit);
            for offset in [0, 1_600_000_000, -5] {
                let units = unit.units(at, offset).unwrap();
                let moment = unit.moment(units, offset).unwrap();
                assert_eq!(moment, Nanos(want), "{unit:?} from {offset} s on");
            }
        }
        // 2^-30 s is less than a nanosecond, so rounding twice loses at most one.
        let fine = Resolution(0x80 | 30);
        let back = fine.moment(fine.units(at, 0).unwrap(), 0).unwrap();
        assert!((at - back).0 <= 1);
        assert_eq!(Resolution(0x80 | 1).moment(3, 0), Some(Nanos(1_500_000_000)));
    }

    #[test]
    fn moments_outside_the_range_convert_to_none() {
        for unit in 0..=255 {
            for units in [0, 1, u64::MAX] {
                for offset in [0, i64::MIN, i64::MAX] {
                    let moment = Resolution(unit).moment(units, offset);
                    assert!(offset == 0 || moment.is_none());
                    Resolution(unit).units(Nanos(units), offset);
                }
            }
        }
        assert_eq!(Resolution(0).moment(u64::MAX, 0), None);
        assert_eq!(Resolution(127).moment(u64::MAX, 0), Some(Nanos(0)));
        assert_eq!(Resolution(6).units(Nanos(5), 1), None);
    }
}
