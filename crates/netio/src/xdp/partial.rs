//! Detects and completes checksums that a sender on this host left to hardware.
//!
//! The kernel leaves the checksum of TCP and UDP to the interface, with the pseudo-header sum in
//! the field. A veth pair passes such frames on unchanged and does not inform an XDP program. This
//! module therefore checks the field: if it is exactly that sum and is not a correct checksum, it
//! must be completed. (One wrong checksum in 65,536 looks the same.)

use packet::checksum::{InternetChecksum, pseudo_ipv4, pseudo_ipv6};

/// Offset of the type of a frame without tags; the payload follows it.
const TYPE_AT: usize = 12;

/// Maximum number of VLAN tags that are skipped in a frame.
const TAGS_MAX: usize = 2;

/// Position of a checksum to complete: start and length of the checksummed bytes, and offset of the
/// field in them.
struct ChecksumPosition {
    from: usize,
    bytes: usize,
    field: usize,
}

/// Completes the checksum of TCP or UDP over IPv4 or IPv6 if it was left to hardware.
///
/// Other frames, and frames whose checksum is only wrong, stay unchanged.
#[inline]
pub(super) fn complete(frame: &mut [u8]) {
    let Some((place, pseudo)) = find(frame) else { return };
    let covered = &mut frame[place.from..place.from + place.bytes];
    let field = place.field..place.field + 2;
    let held = u16::from_be_bytes([covered[field.start], covered[field.start + 1]]);
    let pseudo = pseudo.fold();
    if held != pseudo {
        return;
    }
    let sum = InternetChecksum::default().bytes(covered);
    if sum.u16(pseudo).fold() == 0xffff {
        return;
    }
    // The field already contains the pseudo-header's part of the sum.
    covered[field].copy_from_slice(&sum.checksum_udp().to_be_bytes());
}

#[inline]
fn find(frame: &[u8]) -> Option<(ChecksumPosition, InternetChecksum)> {
    let half = |at: usize| frame.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]));
    let mut at = TYPE_AT;
    for _ in 0..TAGS_MAX {
        if !matches!(half(at)?, 0x8100 | 0x88a8) {
            break;
        }
        at += 4;
    }
    let kind = half(at)?;
    let packet = frame.get(at + 2..)?;
    let (header, bytes, protocol, pseudo) = match kind {
        0x0800 => ipv4(packet)?,
        0x86dd => ipv6(packet)?,
        _ => return None,
    };
    let field = match protocol {
        6 => 16,
        17 => 6,
        _ => return None,
    };
    let from = at + 2 + header;
    let fits = bytes >= field + 2 && frame.len() - from >= bytes;
    fits.then_some((ChecksumPosition { from, bytes, field }, pseudo))
}

/// Length of the header and of its payload, the payload's protocol, and the pseudo-header's sum.
type Network = (usize, usize, u8, InternetChecksum);

#[inline]
fn ipv4(packet: &[u8]) -> Option<Network> {
    let fixed: &[u8; 20] = packet.first_chunk()?;
    let header = usize::from(fixed[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let is_fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0;
    if fixed[0] >> 4 != 4 || header < 20 || total < header || packet.len() < total || is_fragment {
        return None;
    }
    let address = |at: usize| [fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]].into();
    let bytes = total - header;
    let pseudo = pseudo_ipv4(address(12), address(16), fixed[9], bytes as u16);
    Some((header, bytes, fixed[9], pseudo))
}

#[inline]
fn ipv6(packet: &[u8]) -> Option<Network> {
    let fixed: &[u8; 40] = packet.first_chunk()?;
    let bytes = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    if fixed[0] >> 4 != 6 || packet.len() - 40 < bytes {
        return None;
    }
    let address = |at: usize| {
        let octets: [u8; 16] = std::array::from_fn(|place| fixed[at + place]);
        octets.into()
    };
    let pseudo = pseudo_ipv6(address(8), address(24), fixed[6], bytes as u32);
    Some((40, bytes, fixed[6], pseudo))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a frame with tags and an IP packet with TCP or UDP of this many bytes and this
    /// checksum.
    fn frame(tags: usize, version: u8, protocol: u8, bytes: usize, checksum: u16) -> Vec<u8> {
        let mut frame = vec![2; TYPE_AT];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 5]));
        if version == 4 {
            let total = (20 + bytes) as u16;
            let [high, low] = total.to_be_bytes();
            frame.extend([8, 0, 0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
            frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        } else {
            let [high, low] = (bytes as u16).to_be_bytes();
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, high, low, protocol, 64]);
            frame.extend((0..32).map(|n| n + 0x20));
        }
        let from = frame.len();
        frame.extend((0..bytes).map(|n| n as u8 ^ 0x5a));
        let field = from + if protocol == 6 { 16 } else { 6 };
        frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        frame
    }

    fn pseudo(frame: &[u8]) -> u16 {
        find(frame).unwrap().1.fold()
    }

    /// Returns whether the checksum over pseudo-header and segment is right.
    fn is_right(frame: &[u8]) -> bool {
        let (place, pseudo) = find(frame).unwrap();
        pseudo
            .plus(InternetChecksum::default().bytes(&frame[place.from..place.from + place.bytes]))
            .fold()
            == 0xffff
    }

    #[test]
    fn checksums_left_to_hardware_are_completed_once() {
        for tags in 0..=2 {
            for (version, protocol) in [(4, 6), (4, 17), (6, 6), (6, 17)] {
                for bytes in [20, 33, 1200] {
                    let blank = frame(tags, version, protocol, bytes, 0);
                    let mut left = frame(tags, version, protocol, bytes, pseudo(&blank));
                    assert!(!is_right(&left));
                    complete(&mut left);
                    assert!(is_right(&left), "{tags} {version} {protocol} {bytes}");
                    let before = left.clone();
                    complete(&mut left);
                    assert_eq!(left, before);
                }
            }
        }
    }

    #[test]
    fn wrong_and_absent_checksums_are_unchanged() {
        for checksum in [0, 1, 0xffff] {
            let wrong = frame(0, 4, 17, 40, checksum);
            let mut same = wrong.clone();
            complete(&mut same);
            assert_eq!(same, wrong);
        }
    }

    #[test]
    fn damaged_frames_are_not_read_beyond_their_end() {
        for (version, protocol) in [(4, 6), (4, 17), (6, 6), (6, 17)] {
            let blank = frame(1, version, protocol, 24, 0);
            let whole = frame(1, version, protocol, 24, pseudo(&blank));
            for length in 0..whole.len() {
                complete(&mut whole[..length].to_vec());
            }
            for at in 0..whole.len() {
                for byte in [0, 0x0f, 0x45, 0x4f, 0x7f, 0xff] {
                    let mut bent = whole.clone();
                    bent[at] = byte;
                    complete(&mut bent);
                }
            }
        }
    }
}
