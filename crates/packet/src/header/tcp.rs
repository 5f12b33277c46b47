//! TCP with options.
//!
//! ```text
//!  0     4         8              16                       31
//! +---------------+--------------+-------------------------+
//! |         source port          |     destination port    |  0
//! |                    sequence number                     |  4
//! |                 acknowledgement number                 |  8
//! +-----+---------+--------------+-------------------------+
//! |words|reserved | flags        |          window         | 12
//! +-----+---------+--------------+-------------------------+
//! |           checksum           |     urgent pointer      | 16
//! |              options, words * 4 - 20 bytes             | 20
//! +--------------------------------------------------------+
//! ```
//!
//! RFC 9293 section 3.1. The checksum also covers the pseudo-header of the network layer.

use std::fmt;

use super::options::Options;
use super::{u16_at, u32_at};
use crate::error::{Malformed, MalformedReason};

/// Bytes of the header without options.
pub const HEADER_BYTES: usize = 20;
/// Offset of the source port.
pub const SOURCE_PORT_AT: usize = 0;
/// Offset of the destination port.
pub const DESTINATION_PORT_AT: usize = 2;
/// Offset of the flags.
pub const FLAGS_AT: usize = 13;
/// Offset of the checksum.
pub const CHECKSUM_AT: usize = 16;

/// Flag: no more data from the sender.
pub const FIN: u8 = 0x01;
/// Flag: synchronise sequence numbers.
pub const SYN: u8 = 0x02;
/// Flag: reset.
pub const RST: u8 = 0x04;
/// Flag: push.
pub const PSH: u8 = 0x08;
/// Flag: the acknowledgement number is valid.
pub const ACK: u8 = 0x10;

/// Letters of the flags, lowest bit first.
const FLAG_LETTERS: [char; 8] = ['F', 'S', 'R', 'P', '.', 'U', 'E', 'W'];

/// A view of a TCP header, without validation.
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

    /// Sequence number of the first payload byte.
    pub fn sequence(&self) -> u32 {
        u32_at(self.0, 4)
    }

    /// Next sequence number that the sender expects.
    pub fn acknowledgement(&self) -> u32 {
        u32_at(self.0, 8)
    }

    /// Header length from the header, 0 to 60 bytes.
    #[inline]
    pub fn header_length(&self) -> usize {
        usize::from(self.0[12] >> 4) * 4
    }

    /// Flags.
    pub fn flags(&self) -> u8 {
        self.0[FLAGS_AT]
    }

    /// Window: number of bytes that the sender accepts.
    pub fn window(&self) -> u16 {
        u16_at(self.0, 14)
    }

    /// Checksum.
    pub fn checksum(&self) -> u16 {
        u16_at(self.0, CHECKSUM_AT)
    }

    /// Returns the available bytes of the options.
    pub fn options(&self) -> &'a [u8] {
        let end = self.header_length().clamp(HEADER_BYTES, self.0.len().max(HEADER_BYTES));
        &self.0[HEADER_BYTES..end]
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tcp {} > {} flags ", self.source_port(), self.destination_port())?;
        for (bit, letter) in FLAG_LETTERS.iter().enumerate() {
            if self.flags() & 1 << bit != 0 {
                write!(f, "{letter}")?;
            }
        }
        if self.flags() == 0 {
            write!(f, "none")?;
        }
        write!(f, " seq {}", self.sequence())?;
        if self.flags() & ACK != 0 {
            write!(f, " ack {}", self.acknowledgement())?;
        }
        write!(f, " win {}", self.window())
    }
}

/// A valid TCP header: its length fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number of the first payload byte.
    pub sequence: u32,
    /// Next sequence number that the sender expects.
    pub acknowledgement: u32,
    /// Flags.
    pub flags: u8,
    /// Window: number of bytes that the sender accepts.
    pub window: u16,
    /// Checksum, set by a builder.
    pub checksum: u16,
    /// Offset of urgent data.
    pub urgent: u16,
    /// Options.
    pub options: Options,
}

impl Header {
    /// Creates a segment with these ports and flags. All other fields except the window are zero.
    pub fn new(source_port: u16, destination_port: u16, flags: u8) -> Self {
        Header {
            source_port,
            destination_port,
            sequence: 0,
            acknowledgement: 0,
            flags,
            window: 0xffff,
            checksum: 0,
            urgent: 0,
            options: Options::NONE,
        }
    }

    /// Parses the header at the start of `bytes`. Returns it with its length.
    ///
    /// Rejects too few bytes, and a header length below 20 bytes or longer than the bytes. The
    /// checksum requires the network layer: see [`crate::parse::Packet::verify_checksums`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let view = View::new(bytes).ok_or(Malformed::truncated(0, HEADER_BYTES, bytes.len()))?;
        let length = view.header_length();
        if length < HEADER_BYTES || length > bytes.len() {
            return Err(Malformed { at: 12, why: MalformedReason::BadLength(length) });
        }
        let header = Header {
            source_port: view.source_port(),
            destination_port: view.destination_port(),
            sequence: view.sequence(),
            acknowledgement: view.acknowledgement(),
            flags: view.flags(),
            window: view.window(),
            checksum: view.checksum(),
            urgent: u16_at(bytes, 18),
            options: Options::from_bytes(view.options()).expect("a header has at most 15 words"),
        };
        Ok((header, length))
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let length = HEADER_BYTES + self.options.bytes().len();
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.acknowledgement.to_be_bytes());
        out.extend_from_slice(&[(length * 4) as u8, self.flags]);
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&self.checksum.to_be_bytes());
        out.extend_from_slice(&self.urgent.to_be_bytes());
        out.extend_from_slice(self.options.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_with_options_is_written_formatted_and_parsed() {
        let header = Header {
            sequence: 7,
            acknowledgement: 9,
            options: Options::from_bytes(&[2, 4, 5, 180]).unwrap(),
            ..Header::new(80, 40_000, SYN | ACK)
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        assert_eq!(bytes.len(), 24);
        assert_eq!(Header::parse(&bytes), Ok((header, 24)));
        let text = View::new(&bytes).unwrap().to_string();
        assert_eq!(text, "tcp 80 > 40000 flags S. seq 7 ack 9 win 65535");
    }

    #[test]
    fn invalid_lengths_are_rejected() {
        let mut bytes = [0; 20];
        for words in [0u8, 4, 6, 15] {
            bytes[12] = words << 4;
            let why = MalformedReason::BadLength(usize::from(words) * 4);
            assert_eq!(Header::parse(&bytes).unwrap_err(), Malformed { at: 12, why });
            assert!(View::new(&bytes).unwrap().options().is_empty());
        }
        assert_eq!(Header::parse(&bytes[..19]).unwrap_err(), Malformed::truncated(0, 20, 19));
    }
}
