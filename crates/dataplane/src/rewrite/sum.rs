//! Incremental checksum updates.
//!
//! Source: RFC 1624 for the sums of IPv4, ICMP, ICMPv6, TCP and UDP. The CRC32c of SCTP is linear,
//! so it also follows from the changed bits. No payload is read, and a wrong checksum stays equally
//! wrong. A UDP checksum of zero (none) stays zero. In a fragmented datagram, the transport
//! checksum of the first fragment is updated, since it covers all fragments. That of SCTP cannot be
//! updated, since the number of following bytes is unknown.

use packet::checksum::{InternetChecksum, update_crc32c};
use packet::header::{icmp, icmpv6, ipv4, put_u16, sctp, tcp, u16_at, udp};

use crate::parse::{ChecksumCoverage, FieldPosition, Fragment, Headers, Network, Transport};

/// Updates the checksums that cover `place`, whose bytes change from `old` to `new`.
pub fn correct(headers: &Headers, bytes: &mut [u8], place: &FieldPosition, old: u128, new: u128) {
    if old == new || place.covered == ChecksumCoverage::No {
        return;
    }
    let change = Change { old, new, bytes: place.bytes.next_multiple_of(2) };
    let v4 = headers.network == Network::Ipv4;
    if v4 && place.covered != ChecksumCoverage::Transport {
        let at = usize::from(headers.network_at) + ipv4::CHECKSUM_AT;
        change.correct(bytes, at);
    }
    if place.covered == ChecksumCoverage::Header {
        return;
    }
    let own = place.covered == ChecksumCoverage::Transport;
    let start = usize::from(headers.transport_at);
    match headers.transport {
        Transport::Tcp => change.correct(bytes, start + tcp::CHECKSUM_AT),
        Transport::Udp => change.correct_udp(bytes, start + udp::CHECKSUM_AT),
        Transport::Icmpv6 => change.correct(bytes, start + icmpv6::CHECKSUM_AT),
        Transport::Icmp if own => change.correct(bytes, start + icmp::CHECKSUM_AT),
        Transport::Sctp if own && headers.fragment == Fragment::Whole => {
            let behind = usize::from(headers.end) - place.at - place.bytes;
            change.correct_crc(bytes, start + sctp::CHECKSUM_AT, behind);
        }
        Transport::Sctp | Transport::Icmp | Transport::None => {}
    }
}

/// Old and new bytes, as numbers: an even number of bytes at an even offset in the checksum's
/// range.
struct Change {
    old: u128,
    new: u128,
    bytes: usize,
}

impl Change {
    /// Updates the sum at `at`.
    fn correct(&self, bytes: &mut [u8], at: usize) {
        let sum = self.add_to(InternetChecksum::default().u16(!u16_at(bytes, at)));
        put_u16(bytes, at, sum.checksum());
    }

    fn correct_udp(&self, bytes: &mut [u8], at: usize) {
        let before = u16_at(bytes, at);
        if before != 0 {
            put_u16(
                bytes,
                at,
                self.add_to(InternetChecksum::default().u16(!before)).checksum_udp(),
            );
        }
    }

    /// Equation 3 of RFC 1624: adds the complement of the old words, and the new words.
    fn add_to(&self, sum: InternetChecksum) -> InternetChecksum {
        let gone = !self.old & (u128::MAX >> (128 - 8 * self.bytes));
        [gone, self.new].into_iter().fold(sum, |sum, words| {
            let parts = [words >> 96, words >> 64, words >> 32, words];
            parts.into_iter().fold(sum, |sum, part| sum.u32(part as u32))
        })
    }

    /// Updates the CRC at `at`, which covers `behind` more bytes after the changed ones.
    fn correct_crc(&self, bytes: &mut [u8], at: usize, behind: usize) {
        let changed = (self.old ^ self.new).to_be_bytes();
        let field: &mut [u8] = &mut bytes[at..at + 4];
        let before = u32::from_le_bytes(field.try_into().expect("four bytes"));
        let after = update_crc32c(before, &changed[16 - self.bytes..], behind);
        field.copy_from_slice(&after.to_le_bytes());
    }
}
