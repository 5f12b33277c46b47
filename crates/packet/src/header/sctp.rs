//! SCTP: the common header.
//!
//! ```text
//!  0       2           4              8          12
//! +-------+-----------+--------------+----------+------------
//! | source|destination| verification | CRC32c,  | chunks
//! | port  | port      | tag          | LSB first|
//! +-------+-----------+--------------+----------+------------
//! ```
//!
//! RFC 9260 section 3.1. The checksum covers header and chunks, with its own field as zero, and no
//! pseudo-header. It is transmitted least significant byte first (appendix A).

use std::fmt;

use super::{array_at, u16_at, u32_at};
use crate::checksum::{crc32c, crc32c_extend};
use crate::error::Malformed;

/// Bytes of the common header.
pub const HEADER_BYTES: usize = 12;
/// Offset of the source port.
pub const SOURCE_PORT_AT: usize = 0;
/// Offset of the destination port.
pub const DESTINATION_PORT_AT: usize = 2;
/// Offset of the checksum.
pub const CHECKSUM_AT: usize = 8;

/// A view of a common header, without validation.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Creates a view of the header at the start of `bytes`, if they are long enough.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= HEADER_BYTES).then_some(View(bytes))
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        u16_at(self.0, SOURCE_PORT_AT)
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        u16_at(self.0, DESTINATION_PORT_AT)
    }

    /// Verification tag, which identifies the association to its receiver.
    pub fn verification_tag(&self) -> u32 {
        u32_at(self.0, 4)
    }

    /// CRC32c as a number; transmission uses the opposite byte order.
    pub fn checksum(&self) -> u32 {
        u32::from_le_bytes(array_at(self.0, CHECKSUM_AT))
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = (self.source_port(), self.destination_port());
        write!(f, "sctp {source} > {destination} tag {:#010x}", self.verification_tag())
    }
}

/// A common header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Verification tag, which identifies the association to its receiver.
    pub verification_tag: u32,
    /// CRC32c as a number, set by a builder.
    pub checksum: u32,
}

impl Header {
    /// Parses the header at the start of `bytes`. Returns it with its length.
    ///
    /// Rejects too few bytes. The checksum requires the end of the packet: see
    /// [`crate::parse::Packet::verify_checksums`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let view = View::new(bytes).ok_or(Malformed::truncated(0, HEADER_BYTES, bytes.len()))?;
        let header = Header {
            source_port: view.source_port(),
            destination_port: view.destination_port(),
            verification_tag: view.verification_tag(),
            checksum: view.checksum(),
        };
        Ok((header, HEADER_BYTES))
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&self.verification_tag.to_be_bytes());
        out.extend_from_slice(&self.checksum.to_le_bytes());
    }
}

/// Computes the checksum of the packet in `bytes`, which start with the common header.
///
/// # Panics
/// If the header is incomplete.
pub fn checksum(bytes: &[u8]) -> u32 {
    let crc = crc32c_extend(crc32c(&bytes[..CHECKSUM_AT]), &[0; 4]);
    crc32c_extend(crc, &bytes[HEADER_BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_written_formatted_and_parsed() {
        let header = Header {
            source_port: 2905,
            destination_port: 2906,
            verification_tag: 0xdead_beef,
            checksum: 0x0102_0304,
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        assert_eq!(bytes[8..], [4, 3, 2, 1]);
        assert_eq!(Header::parse(&bytes), Ok((header, 12)));
        assert_eq!(Header::parse(&bytes[..11]), Err(Malformed::truncated(0, 12, 11)));
        let text = View::new(&bytes).unwrap().to_string();
        assert_eq!(text, "sctp 2905 > 2906 tag 0xdeadbeef");
    }

    #[test]
    fn the_checksum_ignores_its_own_field() {
        let mut bytes = [7; 16];
        let before = checksum(&bytes);
        bytes[8..12].fill(9);
        assert_eq!(checksum(&bytes), before);
        bytes[15] = 0;
        assert_ne!(checksum(&bytes), before);
    }
}
