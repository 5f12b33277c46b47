//! What was cut off a frame when it was written, and a sum by which its bytes can be told again.
//!
//! A frame that is longer than the snap length is written with a comment, `cut 1436 bytes, crc32c
//! 1a2b3c4d`: how many bytes are missing at its end, and their CRC32c (Castagnoli's, as SCTP uses it).
//! It sums what is missing and nothing else, so that a frame whose headers a router has rewritten can
//! still be recognised. Two frames whose missing bytes differ have the same sum once in 2^32, and never
//! if they differ in one run of at most 32 bits. (The option `epb_hash` of pcapng is for the sum of a
//! whole frame.)

use std::fmt;

use super::Captured;
use crate::checksum::crc32c;

/// What is missing of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Bytes at its end.
    pub bytes: u32,
    /// Their CRC32c.
    pub crc32c: u32,
}

impl Cut {
    /// What is missing, if these are the missing bytes.
    pub fn of(missing: &[u8]) -> Self {
        Cut { bytes: missing.len() as u32, crc32c: crc32c(missing) }
    }

    /// From a comment, if it is one of this kind.
    pub fn parse(comment: &str) -> Option<Self> {
        let (bytes, sum) = comment.strip_prefix("cut ")?.split_once(" bytes, crc32c ")?;
        let is_sum = sum.len() == 8 && !sum.starts_with('+');
        let crc32c = u32::from_str_radix(sum, 16).ok().filter(|_| is_sum)?;
        Some(Cut { bytes: bytes.parse().ok()?, crc32c })
    }

    /// Whether these can be the missing bytes.
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
    /// What is missing at the frame's end, where a comment says it and the lengths agree with it.
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
    fn it_is_read_as_it_is_shown() {
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
