//! The sums that guard headers and payloads, whole and incremental.
//!
//! The Internet checksum is the complement of the ones-complement sum of 16-bit words (RFC 1071).
//! When one field changes, the checksum follows from the old and the new value of that field
//! (RFC 1624 equation 3), so that a forwarder touches no payload. Ones-complement arithmetic has
//! two zeros; equation 3 never gives the wrong one for a header that is not all zero, and UDP,
//! where a checksum of zero means "none", gets the functions of its own that keep to it: zero
//! stays zero, and a computed zero becomes 0xffff. SCTP uses CRC32c (RFC 9260 appendix A).

use core::net::{Ipv4Addr, Ipv6Addr};

/// A ones-complement sum in the making.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes as 16-bit words in network order. An odd last byte counts as if a zero
    /// followed, so only the last piece of what is summed may have an odd length.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut total = 0u64;
        for word in words {
            total += u64::from(u32::from_be_bytes(*word));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        self.add(total).add(u64::from(u32::from_be_bytes(last)))
    }

    /// Adds bytes but for the two at `at`, an even offset: what a checksum that stands there covers.
    /// To add all and then the complement of the checksum would be the same, but for bytes that
    /// are all zero, of which it makes the other zero.
    #[inline]
    pub fn bytes_around(self, bytes: &[u8], at: usize) -> Sum {
        self.bytes(&bytes[..at]).bytes(&bytes[at + 2..])
    }

    /// Adds one 16-bit word.
    #[inline]
    pub fn u16(self, word: u16) -> Sum {
        self.add(u64::from(word))
    }

    /// Adds two 16-bit words.
    #[inline]
    pub fn u32(self, words: u32) -> Sum {
        self.add(u64::from(words))
    }

    /// Adds four 16-bit words.
    #[inline]
    pub fn u64(self, words: u64) -> Sum {
        self.add(words)
    }

    /// Adds what another sum added.
    #[inline]
    pub fn plus(self, other: Sum) -> Sum {
        self.add(other.0)
    }

    /// The sum, 16 bits, carries added back.
    #[inline]
    pub fn fold(self) -> u16 {
        let sum = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        ((sum >> 16) + (sum & 0xffff)) as u16
    }

    /// The checksum: the complement of the sum.
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.fold()
    }

    /// The checksum as UDP carries it: 0xffff instead of zero, which would mean "none".
    #[inline]
    pub fn checksum_udp(self) -> u16 {
        not_none(self.checksum())
    }

    #[inline]
    fn add(self, value: u64) -> Sum {
        let (sum, carry) = self.0.overflowing_add(value);
        Sum(sum + u64::from(carry))
    }
}

/// The ones-complement sum of `bytes` as 16-bit words in network order, folded to 16 bits.
#[inline]
pub fn sum(bytes: &[u8]) -> u16 {
    Sum::default().bytes(bytes).fold()
}

/// The Internet checksum of `bytes`; over a header that contains its right checksum it is zero.
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// What TCP, UDP and others add for the IPv4 header: addresses, protocol and length of the
/// transport header with its payload, in bytes.
#[inline]
pub fn pseudo_ipv4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, length: u16) -> Sum {
    Sum::default().u32(source.to_bits()).u32(destination.to_bits()).u16(protocol.into()).u16(length)
}

/// What TCP, UDP, ICMPv6 and others add for the IPv6 header (RFC 8200 section 8.1).
pub fn pseudo_ipv6(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, length: u32) -> Sum {
    Sum::default()
        .bytes(&source.octets())
        .bytes(&destination.octets())
        .u16(protocol.into())
        .u32(length)
}

/// The checksum after a 16-bit word that it covers changed from `old` to `new`.
#[inline]
pub fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::default().u16(!checksum).u16(!old).u16(new).checksum()
}

/// The checksum after two adjacent 16-bit words that it covers changed from `old` to `new`.
#[inline]
pub fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    Sum::default().u16(!checksum).u32(!old).u32(new).checksum()
}

/// As [`update_u16`] for UDP: zero (no checksum) stays, and a computed zero becomes 0xffff.
#[inline]
pub fn update_udp_u16(checksum: u16, old: u16, new: u16) -> u16 {
    if checksum == 0 { 0 } else { not_none(update_u16(checksum, old, new)) }
}

/// As [`update_u32`] for UDP: zero (no checksum) stays, and a computed zero becomes 0xffff.
#[inline]
pub fn update_udp_u32(checksum: u16, old: u32, new: u32) -> u16 {
    if checksum == 0 { 0 } else { not_none(update_u32(checksum, old, new)) }
}

#[inline]
fn not_none(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// CRC32c (Castagnoli), as SCTP uses it. SCTP carries it least significant byte first.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_extend(0, bytes)
}

/// The CRC32c of what gave `crc` followed by `bytes`.
pub fn crc32c_extend(crc: u32, bytes: &[u8]) -> u32 {
    let step = |crc: u32, &byte: &u8| (crc >> 8) ^ CRC32C_TABLE[usize::from(crc as u8 ^ byte)];
    !bytes.iter().fold(!crc, step)
}

/// The CRC32c after some of the bytes that it covers changed: `change` is the exclusive or of the
/// old and the new ones, and `behind` more bytes follow them. A wrong CRC stays as wrong.
///
/// The CRC is linear: that of a sum of messages is the sum of theirs. Bytes that follow multiply a
/// remainder by a power of x, which takes as many steps as their number has bits.
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

/// The generator polynomial without its highest power, the lowest power in the highest bit.
const CRC32C_POLYNOMIAL: u32 = 0x82f6_3b78;

/// The product of two polynomials, reduced by the generator.
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

/// x to the power of 8, 16, 32, ...: what 1, 2, 4, ... bytes behind multiply by. The powers repeat
/// after 31 of them, because the order of x divides 2^31 - 1.
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
