//! ICMP for IPv6, with neighbour discovery messages.
//!
//! ```text
//!  0     1     2         4                8
//! +-----+-----+---------+----------------+-----------------------------
//! |type |code |checksum | depends on type| target address, data, or the
//! |     |     |         |                | refused packet
//! +-----+-----+---------+----------------+-----------------------------
//! ```
//!
//! RFC 4443, RFC 4861 for neighbour discovery. The checksum covers the pseudo-header of IPv6.

use core::net::Ipv6Addr;
use std::fmt;

use super::icmp::ShowEcho;
use super::{array_at, u16_at, u32_at};
use crate::error::Malformed;

/// Bytes of the header, including the word that depends on the type.
pub const HEADER_BYTES: usize = 8;
/// Offset of the checksum.
pub const CHECKSUM_AT: usize = 2;

/// Type: destination unreachable. Types below 128 are errors.
pub const UNREACHABLE: u8 = 1;
/// Type: packet too big; the word is the MTU.
pub const TOO_BIG: u8 = 2;
/// Type: time exceeded.
pub const TIME_EXCEEDED: u8 = 3;
/// Type: echo request.
pub const ECHO_REQUEST: u8 = 128;
/// Type: echo reply.
pub const ECHO_REPLY: u8 = 129;
/// Type: router solicitation.
pub const ROUTER_SOLICITATION: u8 = 133;
/// Type: router advertisement.
pub const ROUTER_ADVERTISEMENT: u8 = 134;
/// Type: neighbour solicitation.
pub const NEIGHBOUR_SOLICITATION: u8 = 135;
/// Type: neighbour advertisement.
pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

/// Offset of the target address of a neighbour discovery message.
pub const TARGET_AT: usize = 8;
/// Offset of the options of a neighbour discovery message.
pub const OPTIONS_AT: usize = 24;
/// Neighbour discovery option: the sender's link-layer address.
pub const OPTION_SOURCE_LINK: u8 = 1;
/// Neighbour discovery option: the target's link-layer address.
pub const OPTION_TARGET_LINK: u8 = 2;
/// Bytes of a neighbour discovery option with an Ethernet address.
pub const OPTION_LINK_BYTES: usize = 8;

/// Returns the offset in `options` of the first option of this kind, if it is complete. An option
/// of length zero invalidates the following ones.
pub fn option_at(options: &[u8], kind: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        let &[found, eights, ..] = options.get(at..)? else { return None };
        let length = usize::from(eights) * 8;
        if length == 0 || length > options.len() - at {
            return None;
        }
        if found == kind {
            return Some(at);
        }
        at += length;
    }
}

/// A view of an ICMPv6 header, without validation.
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

    /// The word that depends on the type.
    pub fn word(&self) -> u32 {
        u32_at(self.0, 4)
    }

    /// Returns the target address of a neighbour solicitation or advertisement.
    pub fn target(&self) -> Option<Ipv6Addr> {
        let about_neighbours =
            matches!(self.kind(), NEIGHBOUR_SOLICITATION | NEIGHBOUR_ADVERTISEMENT);
        (about_neighbours && self.0.len() >= 24).then(|| array_at::<16>(self.0, 8).into())
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind(), self.target()) {
            (NEIGHBOUR_SOLICITATION, Some(target)) => write!(f, "icmpv6 who-has {target}"),
            (NEIGHBOUR_ADVERTISEMENT, Some(target)) => write!(f, "icmpv6 is-at {target}"),
            (ECHO_REQUEST, _) => write!(f, "icmpv6 echo-request {}", ShowEcho(self.word())),
            (ECHO_REPLY, _) => write!(f, "icmpv6 echo-reply {}", ShowEcho(self.word())),
            (ROUTER_SOLICITATION, _) => write!(f, "icmpv6 router-solicitation"),
            (ROUTER_ADVERTISEMENT, _) => write!(f, "icmpv6 router-advertisement"),
            (UNREACHABLE, _) => write!(f, "icmpv6 unreachable code {}", self.code()),
            (TOO_BIG, _) => write!(f, "icmpv6 too-big mtu {}", self.word()),
            (TIME_EXCEEDED, _) => write!(f, "icmpv6 time-exceeded code {}", self.code()),
            (kind, _) => write!(f, "icmpv6 type {kind} code {}", self.code()),
        }
    }
}

/// An ICMPv6 header.
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

    /// Parses a message. Returns its header with the length.
    ///
    /// Rejects too few bytes (24 for neighbour discovery messages). The checksum requires the
    /// network layer: see [`crate::parse::Packet::verify_checksums`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let view = View::new(bytes).ok_or(Malformed::truncated(0, HEADER_BYTES, bytes.len()))?;
        let need = match view.kind() {
            NEIGHBOUR_SOLICITATION | NEIGHBOUR_ADVERTISEMENT => 24,
            _ => HEADER_BYTES,
        };
        if bytes.len() < need {
            return Err(Malformed::truncated(0, need, bytes.len()));
        }
        let header = Header {
            kind: view.kind(),
            code: view.code(),
            checksum: view.checksum(),
            word: view.word(),
        };
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
    fn complete_options_are_found_after_others() {
        let options = [5, 1, 0, 0, 0, 0, 5, 0xdc, 2, 1, 2, 0, 0, 0, 0, 9];
        assert_eq!(option_at(&options, OPTION_TARGET_LINK), Some(8));
        assert_eq!(option_at(&options, OPTION_SOURCE_LINK), None);
        assert_eq!(option_at(&options[..15], OPTION_TARGET_LINK), None);
        assert_eq!(option_at(&[5, 0, 0, 0, 0, 0, 0, 0], 5), None);
        assert_eq!(option_at(&[5], 5), None);
    }

    #[test]
    fn a_solicitation_is_parsed_formatted_and_written() {
        let mut bytes = vec![135, 0, 0x12, 0x34, 0, 0, 0, 0];
        bytes.extend_from_slice(&"fe80::7".parse::<Ipv6Addr>().unwrap().octets());
        let (header, length) = Header::parse(&bytes).unwrap();
        let mut out = Vec::new();
        header.emit(&mut out);
        assert_eq!(out, bytes[..length]);
        assert_eq!(View::new(&bytes).unwrap().to_string(), "icmpv6 who-has fe80::7");
        assert_eq!(Header::parse(&bytes[..23]), Err(Malformed::truncated(0, 24, 23)));
        let text = View::new(&bytes[..23]).unwrap().to_string();
        assert_eq!(text, "icmpv6 type 135 code 0");
    }
}
