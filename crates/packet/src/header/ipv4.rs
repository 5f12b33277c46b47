//! IPv4 with options and fragments.
//!
//! ```text
//!  0     4     8              16    19                      31
//! +-----+-----+--------------+-----+-----------------------+
//! |  4  | IHL | DSCP     ECN |        total length         |  0
//! +-----+-----+--------------+-----+-----------------------+
//! |      identification      |0 D M| fragment offset / 8   |  4
//! +-----------+--------------+-----+-----------------------+
//! |    TTL    |   protocol   |      header checksum        |  8
//! +-----------+--------------+-----------------------------+
//! |                     source address                     | 12
//! |                  destination address                   | 16
//! |            options, IHL * 4 - 20 bytes                 | 20
//! +--------------------------------------------------------+
//! ```
//!
//! RFC 791 section 3.1, RFC 2474 and RFC 3168 for the second byte, RFC 1812 section 5.2.2 for the
//! validity of a header.

use core::net::Ipv4Addr;
use std::fmt;

use super::options::Options;
use super::{array_at, put_u16, u16_at, u32_at};
use crate::checksum;
use crate::error::{Malformed, MalformedReason};

/// Bytes of the header without options.
pub const HEADER_BYTES: usize = 20;
/// Offset of the byte with DSCP and ECN.
pub const TOS_AT: usize = 1;
/// Offset of the total length.
pub const TOTAL_LENGTH_AT: usize = 2;
/// Offset of the identification.
pub const IDENTIFICATION_AT: usize = 4;
/// Offset of flags and fragment offset.
pub const FRAGMENT_AT: usize = 6;
/// Offset of the time to live.
pub const TTL_AT: usize = 8;
/// Offset of the protocol.
pub const PROTOCOL_AT: usize = 9;
/// Offset of the header checksum.
pub const CHECKSUM_AT: usize = 10;
/// Offset of the source address.
pub const SOURCE_AT: usize = 12;
/// Offset of the destination address.
pub const DESTINATION_AT: usize = 16;
/// Don't fragment flag (DF) of the fragment word.
pub const DONT_FRAGMENT: u16 = 0x4000;
/// More fragments flag (MF) of the fragment word.
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// Mask of the fragment offset in the fragment word, in units of 8 bytes.
pub const OFFSET_MASK: u16 = 0x1fff;

/// Protocol number of ICMP.
pub const PROTOCOL_ICMP: u8 = 1;
/// Protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;
/// Protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;
/// Protocol number of ICMPv6.
pub const PROTOCOL_ICMPV6: u8 = 58;
/// Protocol number of SCTP.
pub const PROTOCOL_SCTP: u8 = 132;

/// A view of an IPv4 header, without validation.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Creates a view of the header at the start of `bytes`, if they are long enough.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= HEADER_BYTES).then_some(View(bytes))
    }

    /// Version, normally 4.
    #[inline]
    pub fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// Header length from the header, 0 to 60 bytes.
    #[inline]
    pub fn header_length(&self) -> usize {
        usize::from(self.0[0] & 0xf) * 4
    }

    /// DSCP and ECN, formerly type of service.
    #[inline]
    pub fn tos(&self) -> u8 {
        self.0[TOS_AT]
    }

    /// Total length from the header: header and payload.
    #[inline]
    pub fn total_length(&self) -> u16 {
        u16_at(self.0, TOTAL_LENGTH_AT)
    }

    /// Identification, common to all fragments of a packet.
    pub fn identification(&self) -> u16 {
        u16_at(self.0, IDENTIFICATION_AT)
    }

    /// Returns true if the DF flag is set.
    pub fn dont_fragment(&self) -> bool {
        u16_at(self.0, FRAGMENT_AT) & DONT_FRAGMENT != 0
    }

    /// Returns true if the MF flag is set.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        u16_at(self.0, FRAGMENT_AT) & MORE_FRAGMENTS != 0
    }

    /// Fragment offset in bytes.
    #[inline]
    pub fn fragment_offset(&self) -> usize {
        usize::from(u16_at(self.0, FRAGMENT_AT) & OFFSET_MASK) * 8
    }

    /// Time to live.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.0[TTL_AT]
    }

    /// Protocol of the payload.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.0[PROTOCOL_AT]
    }

    /// Checksum of the header.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.0, CHECKSUM_AT)
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> Ipv4Addr {
        array_at::<4>(self.0, SOURCE_AT).into()
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> Ipv4Addr {
        array_at::<4>(self.0, DESTINATION_AT).into()
    }

    /// Returns the available bytes of the options.
    pub fn options(&self) -> &'a [u8] {
        let end = self.header_length().clamp(HEADER_BYTES, self.0.len().max(HEADER_BYTES));
        &self.0[HEADER_BYTES..end]
    }

    /// Returns the header with its options, if its length is valid and it is complete.
    #[inline]
    pub fn header(&self) -> Option<&'a [u8]> {
        let length = self.header_length();
        if length < HEADER_BYTES { None } else { self.0.get(..length) }
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ipv4 {} > {} ttl {}", self.source(), self.destination(), self.ttl())?;
        write!(f, " len {}", self.total_length())?;
        if self.tos() != 0 {
            write!(f, " tos {:#04x}", self.tos())?;
        }
        if self.dont_fragment() {
            write!(f, " df")?;
        }
        if self.more_fragments() || self.fragment_offset() != 0 {
            let more = if self.more_fragments() { "+" } else { "" };
            write!(f, " frag {:#06x}@{}{more}", self.identification(), self.fragment_offset())?;
        }
        if !self.options().is_empty() {
            write!(f, " options {}", self.options().len())?;
        }
        if self.header().is_some_and(|header| !checksum_is_right(header)) {
            write!(f, " bad-checksum")?;
        }
        Ok(())
    }
}

/// A valid IPv4 header: version, lengths and checksum are correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// DSCP and ECN.
    pub tos: u8,
    /// Bytes of payload, set by a builder.
    pub payload_bytes: u16,
    /// Identification, common to all fragments of a packet.
    pub identification: u16,
    /// Whether the DF flag is set.
    pub dont_fragment: bool,
    /// Whether the MF flag is set.
    pub more_fragments: bool,
    /// Fragment offset in bytes, a multiple of 8.
    pub fragment_offset: u16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload, set by a builder.
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Options.
    pub options: Options,
}

impl Header {
    /// Creates a header from `source` to `destination`, without payload: TTL 64, no options, not
    /// fragmented.
    pub fn new(source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Header {
            tos: 0,
            payload_bytes: 0,
            identification: 0,
            dont_fragment: false,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol: 0,
            source,
            destination,
            options: Options::NONE,
        }
    }

    /// Parses the header at the start of `bytes`. Returns it with its length.
    ///
    /// Rejects:
    ///
    /// - too few bytes or another version,
    /// - a header length below 20 bytes,
    /// - a total length shorter than the header or longer than the bytes,
    /// - a wrong checksum or the reserved flag,
    /// - a fragment that extends beyond 65,535 bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let view = View::new(bytes).ok_or(Malformed::truncated(0, HEADER_BYTES, bytes.len()))?;
        let length = check_lengths(bytes, &view)?;
        let have = view.checksum();
        let rest = checksum::InternetChecksum::default().bytes(&bytes[..length]).u16(!have);
        if !checksum_is_right(&bytes[..length]) {
            let why =
                MalformedReason::BadChecksum { want: rest.checksum().into(), have: have.into() };
            return Err(Malformed { at: CHECKSUM_AT, why });
        }
        let payload_bytes = view.total_length() - length as u16;
        if view.fragment_offset() + usize::from(payload_bytes) > 0xffff || bytes[6] & 0x80 != 0 {
            let why = MalformedReason::BadValue(u16_at(bytes, FRAGMENT_AT).into());
            return Err(Malformed { at: FRAGMENT_AT, why });
        }
        let header = Header {
            tos: view.tos(),
            payload_bytes,
            identification: view.identification(),
            dont_fragment: view.dont_fragment(),
            more_fragments: view.more_fragments(),
            fragment_offset: view.fragment_offset() as u16,
            ttl: view.ttl(),
            protocol: view.protocol(),
            source: view.source(),
            destination: view.destination(),
            options: Options::from_bytes(view.options()).expect("a header has at most 15 words"),
        };
        Ok((header, length))
    }

    /// Appends the header with its checksum. The total length wraps if header and payload exceed
    /// 65,535 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let length = HEADER_BYTES + self.options.bytes().len();
        let flags = if self.dont_fragment { DONT_FRAGMENT } else { 0 }
            | if self.more_fragments { MORE_FRAGMENTS } else { 0 };
        out.extend_from_slice(&[0x40 | (length / 4) as u8, self.tos]);
        out.extend_from_slice(&self.payload_bytes.wrapping_add(length as u16).to_be_bytes());
        out.extend_from_slice(&self.identification.to_be_bytes());
        out.extend_from_slice(&(flags | (self.fragment_offset / 8)).to_be_bytes());
        out.extend_from_slice(&[self.ttl, self.protocol, 0, 0]);
        out.extend_from_slice(&self.source.octets());
        out.extend_from_slice(&self.destination.octets());
        out.extend_from_slice(self.options.bytes());
        set_checksum(&mut out[start..]);
    }
}

/// Checks version, header length and total length against each other and the bytes. Returns the
/// header length. `view` must refer to the same bytes.
#[inline]
pub fn check_lengths(bytes: &[u8], view: &View<'_>) -> Result<usize, Malformed> {
    let (length, total) = (view.header_length(), usize::from(view.total_length()));
    if view.version() != 4 {
        return Err(Malformed { at: 0, why: MalformedReason::BadValue(bytes[0].into()) });
    }
    if length < HEADER_BYTES {
        return Err(Malformed { at: 0, why: MalformedReason::BadLength(length) });
    }
    if length > bytes.len() {
        return Err(Malformed::truncated(0, length, bytes.len()));
    }
    if total < length || total > bytes.len() {
        return Err(Malformed { at: TOTAL_LENGTH_AT, why: MalformedReason::BadLength(total) });
    }
    Ok(length)
}

/// Returns true if the checksum of a complete header is correct. Fastest without options.
#[inline]
pub fn checksum_is_right(header: &[u8]) -> bool {
    match <&[u8; HEADER_BYTES]>::try_from(header) {
        // Five words of a length known to the compiler: no loop.
        Ok(plain) => {
            let word = |at: usize| u64::from(u32_at(plain, at));
            let sum = word(0) + word(4) + word(8) + word(12) + word(16);
            sum % 0xffff == 0 && sum != 0
        }
        Err(_) => checksum::sum(header) == 0xffff,
    }
}

/// Computes the checksum of the header at the start of `bytes` and writes it.
///
/// # Panics
/// If the header is incomplete.
pub fn set_checksum(bytes: &mut [u8]) {
    let length = usize::from(bytes[0] & 0xf) * 4;
    put_u16(bytes, CHECKSUM_AT, 0);
    let checksum = checksum::checksum(&bytes[..length]);
    put_u16(bytes, CHECKSUM_AT, checksum);
}

/// Decrements the TTL of the header at the start of `bytes` and updates the checksum (RFC 1624).
/// Returns false without a change if the TTL is zero.
///
/// # Panics
/// If the header is incomplete.
#[inline]
pub fn decrement_ttl(bytes: &mut [u8]) -> bool {
    if bytes[TTL_AT] == 0 {
        return false;
    }
    let old = u16_at(bytes, TTL_AT);
    let checksum = checksum::update_u16(u16_at(bytes, CHECKSUM_AT), old, old - 0x100);
    bytes[TTL_AT] -= 1;
    put_u16(bytes, CHECKSUM_AT, checksum);
    true
}

#[cfg(test)]
mod tests;
