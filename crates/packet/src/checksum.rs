//! Checksums of headers and payloads: complete and incremental computation.
//!
//! - The Internet checksum is the complement of the ones' complement sum of 16-bit words (RFC
//!   1071).
//! - After a field change, the new checksum follows from the old and new values of the field (RFC
//!   1624 equation 3). A forwarder therefore need not read the payload.
//! - Ones' complement arithmetic has two zeros. Equation 3 never gives the wrong one, except for a
//!   header that is all zero.
//! - In UDP, a checksum of zero means "none". The UDP functions preserve zero, and change a
//!   computed zero to 0xffff.
//! - SCTP uses CRC32c (RFC 9260 appendix A).

use core::net::{Ipv4Addr, Ipv6Addr};

/// A partial ones' complement sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InternetChecksum(u64);

impl InternetChecksum {
    /// Adds bytes as 16-bit words in network byte order. An odd last byte is padded with a zero, so
    /// only the last part of the data may have an odd length.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> InternetChecksum {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut total = 0u64;
        for word in words {
            total += u64::from(u32::from_be_bytes(*word));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        self.add(total).add(u64::from(u32::from_be_bytes(last)))
    }

    /// Adds all bytes except the two at the even offset `at`, where the checksum is. Adding all
    /// bytes and the complement of the checksum gives the same result, except for all-zero bytes,
    /// where it gives the other zero.
    #[inline]
    pub fn bytes_around(self, bytes: &[u8], at: usize) -> InternetChecksum {
        self.bytes(&bytes[..at]).bytes(&bytes[at + 2..])
    }

    /// Adds one 16-bit word.
    #[inline]
    pub fn u16(self, word: u16) -> InternetChecksum {
        self.add(u64::from(word))
    }

    /// Adds two 16-bit words.
    #[inline]
    pub fn u32(self, words: u32) -> InternetChecksum {
        self.add(u64::from(words))
    }

    /// Adds four 16-bit words.
    #[inline]
    pub fn u64(self, words: u64) -> InternetChecksum {
        self.add(words)
    }

    /// Adds another sum.
    #[inline]
    pub fn plus(self, other: InternetChecksum) -> InternetChecksum {
        self.add(other.0)
    }

    /// Returns the 16-bit sum, with carries added back.
    #[inline]
    pub fn fold(self) -> u16 {
        let sum = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        ((sum >> 16) + (sum & 0xffff)) as u16
    }

    /// Returns the checksum: the complement of the sum.
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.fold()
    }

    /// Returns the checksum for UDP: 0xffff instead of zero, which would mean "none".
    #[inline]
    pub fn checksum_udp(self) -> u16 {
        not_none(self.checksum())
    }

    #[inline]
    fn add(self, value: u64) -> InternetChecksum {
        let (sum, carry) = self.0.overflowing_add(value);
        InternetChecksum(sum + u64::from(carry))
    }
}

/// Returns the ones' complement sum of `bytes` as 16-bit words in network byte order, folded to 16
/// bits.
#[inline]
pub fn sum(bytes: &[u8]) -> u16 {
    InternetChecksum::default().bytes(bytes).fold()
}

/// Returns the Internet checksum of `bytes`. For a header with a correct checksum the result is
/// zero.
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// Returns the sum of the IPv4 pseudo-header for TCP, UDP and others: addresses, protocol, and
/// length of transport header and payload in bytes.
#[inline]
pub fn pseudo_ipv4(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    length: u16,
) -> InternetChecksum {
    InternetChecksum::default()
        .u32(source.to_bits())
        .u32(destination.to_bits())
        .u16(protocol.into())
        .u16(length)
}

/// Returns the sum of the IPv6 pseudo-header for TCP, UDP, ICMPv6 and others (RFC 8200 section
/// 8.1).
pub fn pseudo_ipv6(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: u8,
    length: u32,
) -> InternetChecksum {
    InternetChecksum::default()
        .bytes(&source.octets())
        .bytes(&destination.octets())
        .u16(protocol.into())
        .u32(length)
}

/// Updates a checksum after a covered 16-bit word changed from `old` to `new`.
#[inline]
pub fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    InternetChecksum::default().u16(!checksum).u16(!old).u16(new).checksum()
}

/// Updates a checksum after two adjacent covered 16-bit words changed from `old` to `new`.
#[inline]
pub fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    InternetChecksum::default().u16(!checksum).u32(!old).u32(new).checksum()
}

/// Updates a UDP checksum like [`update_u16`]. Zero (no checksum) remains, and a computed zero
/// becomes 0xffff.
#[inline]
pub fn update_udp_u16(checksum: u16, old: u16, new: u16) -> u16 {
    if checksum == 0 { 0 } else { not_none(update_u16(checksum, old, new)) }
}

/// Updates a UDP checksum like [`update_u32`]. Zero (no checksum) remains, and a computed zero
/// becomes 0xffff.
#[inline]
pub fn update_udp_u32(checksum: u16, old: u32, new: u32) -> u16 {
    if checksum == 0 { 0 } else { not_none(update_u32(checksum, old, new)) }
}

#[inline]
fn not_none(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// Returns the CRC32c (Castagnoli), as in SCTP, which transmits it least significant byte first.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_extend(0, bytes)
}

/// Extends the CRC32c `crc` of previous data by `bytes`.
pub fn crc32c_extend(crc: u32, bytes: &[u8]) -> u32 {
    let step = |crc: u32, &byte: &u8| (crc >> 8) ^ CRC32C_TABLE[usize::from(crc as u8 ^ byte)];
    !bytes.iter().fold(!crc, step)
}

/// Updates a CRC32c after a change of covered bytes. `change` is the XOR of old and new bytes, and
/// `behind` bytes follow them. A wrong CRC remains wrong by the same difference.
///
/// The CRC is linear: the CRC of a sum of messages is the sum of their CRCs. Bytes that follow
/// multiply the remainder by a power of x, in as many steps as their number has bits.
pub fn update_crc32c(crc: u32, change: &[u8], behind: usize) -> u32 {
    let step = |crc: u32, &byte: &u8| (crc >> 8) ^ CRC32C_TABLE[usize::from(crc as u8 ^ byte)];
    let mut remainder = change.iter().fold(0, step);
    let (mut left, mut power) = (behind, 0);
    while left != 0 {
        if left & 1 == 1 {
            remainder = crc32c_multiply(CRC32C_POWERS[power], remainder);
        }
        left >>= 1;
        power = (power + 1) % CRC32C_POWERS.len();
    }
    crc ^ remainder
}

/// Generator polynomial without its highest power; the lowest power is in the highest bit.
const CRC32C_POLYNOMIAL: u32 = 0x82f6_3b78;

/// Multiplies two polynomials, modulo the generator.
const fn crc32c_multiply(a: u32, mut b: u32) -> u32 {
    let (mut product, mut bit) = (0, 1 << 31);
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = if b & 1 == 1 { (b >> 1) ^ CRC32C_POLYNOMIAL } else { b >> 1 };
        bit >>= 1;
    }
    product
}

/// x to the power of 8, 16, 32, ...: the factors for 1, 2, 4, ... following bytes. The powers
/// repeat after 31 of them, because the order of x divides 2^31 - 1.
const CRC32C_POWERS: [u32; 31] = crc32c_powers();

const fn crc32c_powers() -> [u32; 31] {
    let mut powers = [1 << (31 - 8); 31];
    let mut index = 1;
    while index < powers.len() {
        powers[index] = crc32c_multiply(powers[index - 1], powers[index - 1]);
        index += 1;
    }
    powers
}

const CRC32C_TABLE: [u32; 256] = crc32c_table();

const fn crc32c_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ CRC32C_POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests;
