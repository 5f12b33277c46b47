//! UDP: two ports, a length, and an optional checksum.
//!
//! ```text
//!  0       2           4       6         8
//! +-------+-----------+-------+---------+
//! | source|destination|length |checksum |
//! | port  | port      |       | 0: none |
//! +-------+-----------+-------+---------+
//! ```
//!
//! RFC 768. The length includes header and payload. The checksum also covers the pseudo-header of
//! the network layer ([`crate::checksum::pseudo_ipv4`]).

use std::fmt;

use super::u16_at;
use crate::error::{Malformed, MalformedReason};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 8;
/// Offset of the source port.
pub const SOURCE_PORT_AT: usize = 0;
/// Offset of the destination port.
pub const DESTINATION_PORT_AT: usize = 2;
/// Offset of the length.
pub const LENGTH_AT: usize = 4;
/// Offset of the checksum.
pub const CHECKSUM_AT: usize = 6;

/// A view of a UDP header, without validation.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Creates a view of the header at the start of `bytes`, if they are long enough.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= HEADER_BYTES).then_some(View(bytes))
    }

    /// Source port.
    #[inline]
    pub fn source_port(&self) -> u16 {
        u16_at(self.0, SOURCE_PORT_AT)
    }

    /// Destination port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        u16_at(self.0, DESTINATION_PORT_AT)
    }

    /// Length from the header: header and payload.
    #[inline]
    pub fn length(&self) -> u16 {
        u16_at(self.0, LENGTH_AT)
    }

    /// Checksum; zero for none.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.0, CHECKSUM_AT)
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = (self.source_port(), self.destination_port());
        write!(f, "udp {source} > {destination} len {}", self.length())
    }
}

/// A valid UDP header: its length fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Bytes of payload, set by a builder.
    pub payload_bytes: u16,
    /// Checksum, set by a builder; zero for none.
    pub checksum: u16,
}

impl Header {
    /// Parses the header at the start of `bytes`. Returns it with its length.
    ///
    /// Rejects too few bytes, and a length below 8 or longer than the bytes. The checksum requires
    /// the network layer: see [`crate::parse::Packet::verify_checksums`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let view = View::new(bytes).ok_or(Malformed::truncated(0, HEADER_BYTES, bytes.len()))?;
        let length = usize::from(view.length());
        if length < HEADER_BYTES || length > bytes.len() {
            return Err(Malformed { at: LENGTH_AT, why: MalformedReason::BadLength(length) });
        }
        let header = Header {
            source_port: view.source_port(),
            destination_port: view.destination_port(),
            payload_bytes: view.length() - HEADER_BYTES as u16,
            checksum: view.checksum(),
        };
        Ok((header, HEADER_BYTES))
    }

    /// Appends the header. The length wraps if the payload exceeds 65,527 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&self.payload_bytes.wrapping_add(8).to_be_bytes());
        out.extend_from_slice(&self.checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_parsed_formatted_and_written() {
        let bytes = [0xd4, 0x31, 0, 53, 0, 10, 0x12, 0x34, 1, 2];
        let (header, length) = Header::parse(&bytes).unwrap();
        assert_eq!((header.payload_bytes, header.checksum, length), (2, 0x1234, 8));
        let mut out = Vec::new();
        header.emit(&mut out);
        assert_eq!(out, bytes[..8]);
        assert_eq!(View::new(&bytes).unwrap().to_string(), "udp 54321 > 53 len 10");
    }

    #[test]
    fn invalid_lengths_are_rejected() {
        for length in [0, 7, 11] {
            let bytes = [0, 1, 0, 2, 0, length, 0, 0, 1, 2];
            let why = MalformedReason::BadLength(length.into());
            assert_eq!(Header::parse(&bytes).unwrap_err(), Malformed { at: 4, why });
        }
        assert_eq!(Header::parse(&[0; 7]).unwrap_err(), Malformed::truncated(0, 8, 7));
    }
}
