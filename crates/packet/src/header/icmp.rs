//! ICMP for IPv4.
//!
//! ```text
//!  0     1     2         4                8
//! +-----+-----+---------+----------------+-----------------------------
//! |type |code |checksum | depends on type| data, or the refused packet's
//! |     |     |         |                | header and first payload bytes
//! +-----+-----+---------+----------------+-----------------------------
//! ```
//!
//! RFC 792, RFC 1191 for the next hop's MTU, RFC 1812 section 4.3 for messages of routers. The
//! checksum covers the whole message and no pseudo-header.

use std::fmt;

use super::{u16_at, u32_at};
use crate::checksum;
use crate::error::{Malformed, MalformedReason};

/// Bytes of the header, including the word that depends on the type.
pub const HEADER_BYTES: usize = 8;
/// Offset of the checksum.
pub const CHECKSUM_AT: usize = 2;

/// Type: echo reply.
pub const ECHO_REPLY: u8 = 0;
/// Type: destination unreachable.
pub const UNREACHABLE: u8 = 3;
/// Type: source quench (RFC 6633: deprecated).
pub const SOURCE_QUENCH: u8 = 4;
/// Type: redirect.
pub const REDIRECT: u8 = 5;
/// Type: echo request.
pub const ECHO_REQUEST: u8 = 8;
/// Type: time exceeded.
pub const TIME_EXCEEDED: u8 = 11;
/// Type: parameter problem.
pub const PARAMETER_PROBLEM: u8 = 12;

/// Code of [`UNREACHABLE`]: no route to the network.
pub const CODE_NET: u8 = 0;
/// Code of [`UNREACHABLE`]: host unreachable.
pub const CODE_HOST: u8 = 1;
/// Code of [`UNREACHABLE`]: protocol unreachable.
pub const CODE_PROTOCOL: u8 = 2;
/// Code of [`UNREACHABLE`]: port unreachable.
pub const CODE_PORT: u8 = 3;
/// Code of [`UNREACHABLE`]: fragmentation needed, but DF is set.
pub const CODE_FRAGMENTATION_NEEDED: u8 = 4;
/// Code of [`TIME_EXCEEDED`]: TTL exceeded in transit.
pub const CODE_TTL: u8 = 0;

/// Returns true if this type is an error. Errors must not cause further errors (RFC 1812 section
/// 4.3.2.7).
pub fn is_error(type_: u8) -> bool {
    matches!(type_, UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM)
}

/// A view of an ICMP header, without validation.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Creates a view of the header at the start of `bytes`, if they are long enough.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= HEADER_BYTES).then_some(View(bytes))
    }

    /// Type.
    pub fn kind(&self) -> u8 {
        self.0[0]
    }

    /// Code, which depends on the type.
    pub fn code(&self) -> u8 {
        self.0[1]
    }

    /// Checksum.
    pub fn checksum(&self) -> u16 {
        u16_at(self.0, CHECKSUM_AT)
    }

    /// The word that depends on the type: identifier and sequence number of an echo, a gateway, an
    /// MTU.
    pub fn word(&self) -> u32 {
        u32_at(self.0, 4)
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, word) = (self.code(), self.word());
        match (self.kind(), code) {
            (ECHO_REQUEST, 0) => write!(f, "icmp echo-request {}", ShowEcho(word)),
            (ECHO_REPLY, 0) => write!(f, "icmp echo-reply {}", ShowEcho(word)),
            (UNREACHABLE, CODE_NET) => write!(f, "icmp net-unreachable"),
            (UNREACHABLE, CODE_HOST) => write!(f, "icmp host-unreachable"),
            (UNREACHABLE, CODE_PROTOCOL) => write!(f, "icmp protocol-unreachable"),
            (UNREACHABLE, CODE_PORT) => write!(f, "icmp port-unreachable"),
            (UNREACHABLE, CODE_FRAGMENTATION_NEEDED) => {
                write!(f, "icmp fragmentation-needed mtu {}", word & 0xffff)
            }
            (TIME_EXCEEDED, CODE_TTL) => write!(f, "icmp time-exceeded"),
            (kind, code) => write!(f, "icmp type {kind} code {code}"),
        }
    }
}

/// Displays the word of an echo message.
pub(super) struct ShowEcho(pub u32);

impl fmt::Display for ShowEcho {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "id {} seq {}", self.0 >> 16, self.0 & 0xffff)
    }
}

/// A valid ICMP header: the checksum is correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Type.
    pub kind: u8,
    /// Code, which depends on the type.
    pub code: u8,
    /// Checksum, set by a builder.
    pub checksum: u16,
    /// The word that depends on the type.
    pub word: u32,
}

impl Header {
    /// Creates a message with this type, code and word.
    pub fn new(kind: u8, code: u8, word: u32) -> Self {
        Header { kind, code, checksum: 0, word }
    }

    /// Creates an echo request.
    pub fn echo_request(identifier: u16, sequence: u16) -> Self {
        Header::new(ECHO_REQUEST, 0, u32::from(identifier) << 16 | u32::from(sequence))
    }

    /// Parses a message. Returns its header with the length.
    ///
    /// Rejects too few bytes, and a wrong checksum over all of `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let view = View::new(bytes).ok_or(Malformed::truncated(0, HEADER_BYTES, bytes.len()))?;
        let have = view.checksum();
        let want =
            checksum::InternetChecksum::default().bytes_around(bytes, CHECKSUM_AT).checksum();
        if checksum::sum(bytes) != 0xffff {
            let why = MalformedReason::BadChecksum { want: want.into(), have: have.into() };
            return Err(Malformed { at: CHECKSUM_AT, why });
        }
        let header =
            Header { kind: view.kind(), code: view.code(), checksum: have, word: view.word() };
        Ok((header, HEADER_BYTES))
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.kind, self.code]);
        out.extend_from_slice(&self.checksum.to_be_bytes());
        out.extend_from_slice(&self.word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_parsed_formatted_and_written() {
        let bytes = [8, 0, 0xf7, 0xfb, 0, 1, 0, 2, 0, 1];
        let (header, length) = Header::parse(&bytes).unwrap();
        assert_eq!((header.word, length), (0x0001_0002, 8));
        let mut out = Vec::new();
        header.emit(&mut out);
        assert_eq!(out, bytes[..8]);
        assert_eq!(View::new(&bytes).unwrap().to_string(), "icmp echo-request id 1 seq 2");
        let why = MalformedReason::BadChecksum { want: 0xf7fc, have: 0xf7fb };
        assert_eq!(Header::parse(&bytes[..8]).unwrap_err(), Malformed { at: 2, why });
    }

    #[test]
    fn error_messages_are_distinguished_from_queries() {
        assert!(is_error(UNREACHABLE) && is_error(TIME_EXCEEDED));
        assert!(!is_error(ECHO_REQUEST) && !is_error(ECHO_REPLY));
    }
}
