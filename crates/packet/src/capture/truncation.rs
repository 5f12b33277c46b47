//! Comment on the bytes removed from a truncated frame, with a checksum that identifies them.
//!
//! The writer adds a comment to a frame longer than the snap length:
//! `cut 1436 bytes, crc32c 1a2b3c4d`. It contains the number of bytes missing at the end and their
//! CRC32c (Castagnoli, as in SCTP).
//!
//! The checksum covers only the missing bytes, so a frame remains identifiable after a router
//! rewrote its headers. Different missing bytes have the same checksum with probability 2^-32, and
//! never if they differ only within 32 consecutive bits. The pcapng option `epb_hash` covers a
//! whole frame and is therefore not suitable.

use std::fmt;

use super::Captured;
use crate::checksum::crc32c;

/// The missing bytes of a truncated frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Number of bytes missing at the end.
    pub bytes: u32,
    /// CRC32c of these bytes.
    pub crc32c: u32,
}

impl Cut {
    /// Computes it from the missing bytes.
    pub fn of(missing: &[u8]) -> Self {
        Cut { bytes: missing.len() as u32, crc32c: crc32c(missing) }
    }

    /// Parses a comment of this kind.
    pub fn parse(comment: &str) -> Option<Self> {
        let (bytes, sum) = comment.strip_prefix("cut ")?.split_once(" bytes, crc32c ")?;
        let is_sum = sum.len() == 8 && !sum.starts_with('+');
        let crc32c = u32::from_str_radix(sum, 16).ok().filter(|_| is_sum)?;
        Some(Cut { bytes: bytes.parse().ok()?, crc32c })
    }

    /// Returns true if these can be the missing bytes.
    pub fn fits(&self, missing: &[u8]) -> bool {
        *self == Cut::of(missing)
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cut {} bytes, crc32c {:08x}", self.bytes, self.crc32c)
    }
}

impl Captured<'_> {
    /// Returns the missing bytes from the frame's comments, if their number agrees with the
    /// lengths.
    pub fn cut(&self) -> Option<Cut> {
        let missing = u64::from(self.original_bytes).checked_sub(self.bytes.len() as u64)?;
        self.comments()
            .filter_map(|text| Cut::parse(std::str::from_utf8(text).ok()?))
            .find(|cut| u64::from(cut.bytes) == missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_description_round_trips_as_text() {
        let cut = Cut::of(b"123456789");
        assert_eq!(cut.to_string(), "cut 9 bytes, crc32c e3069283");
        assert_eq!(Cut::parse(&cut.to_string()), Some(cut));
        assert!(cut.fits(b"123456789") && !cut.fits(b"123456788") && !cut.fits(b"12345678"));
        for other in
            ["", "cut 9 bytes", "cut 9 bytes, crc32c e306928", "cut x bytes, crc32c e3069283"]
        {
            assert_eq!(Cut::parse(other), None, "{other}");
        }
    }
}
