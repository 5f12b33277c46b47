//! Restores a received frame as it was on the link: inserts its tag and completes its checksum.
//!
//! Linux removes the outermost VLAN tag before it delivers a frame. It leaves the checksums of
//! frames from this host to hardware that they never reach. Both would be wrong on a link to which
//! the frame is forwarded. The checksums are those of RFC 1071 and, for SCTP, RFC 9260 appendix A.

use packet::checksum::{InternetChecksum, crc32c};
use packet::frame::Frame;

use super::ring::Raw;

/// Bytes of a VLAN tag.
pub const TAG_BYTES: usize = 4;

/// Offset of the tag: after both addresses.
pub const TAG_AT: usize = 12;

/// Restores into `frame` the frame that `raw` was on the link.
#[inline]
pub fn fill(frame: &mut Frame, raw: &Raw<'_>) {
    let shift = match raw.tag {
        Some((tpid, tci)) if raw.bytes.len() >= TAG_AT => {
            fill_tagged(frame, raw.bytes, tpid, tci);
            TAG_BYTES
        }
        _ => {
            frame.set_bytes(raw.bytes);
            0
        }
    };
    if let Some((from, place)) = raw.checksum {
        complete(frame.bytes_mut(), from + shift, place);
    }
}

fn fill_tagged(frame: &mut Frame, bytes: &[u8], tpid: u16, tci: u16) {
    frame.resize(bytes.len() + TAG_BYTES);
    let whole = frame.bytes_mut();
    whole[..TAG_AT].copy_from_slice(&bytes[..TAG_AT]);
    whole[TAG_AT..TAG_AT + TAG_BYTES].copy_from_slice(&tag_bytes(tpid, tci));
    whole[TAG_AT + TAG_BYTES..].copy_from_slice(&bytes[TAG_AT..]);
}

/// Encodes a tag as on the link.
pub fn tag_bytes(tpid: u16, tci: u16) -> [u8; TAG_BYTES] {
    let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
    [a, b, c, d]
}

/// Offset of the checksum in an SCTP header; no other protocol has one at this offset.
const SCTP_PLACE: usize = 8;

/// Checksums the bytes from `from` to the end, including the partial sum in the field, and writes
/// the result `place` bytes after `from`.
///
/// Offsets outside the frame change nothing.
pub fn complete(bytes: &mut [u8], from: usize, place: usize) {
    let Some(covered) = bytes.get_mut(from..) else { return };
    let is_sctp = place == SCTP_PLACE;
    let Some(field) = covered.get_mut(place..place + if is_sctp { 4 } else { 2 }) else { return };
    if is_sctp {
        field.fill(0);
        let sum = crc32c(covered).to_le_bytes();
        covered[place..place + 4].copy_from_slice(&sum);
    } else {
        // Zero means "no checksum" in UDP; its complement is an equivalent checksum.
        let sum = InternetChecksum::default().bytes(covered).checksum_udp().to_be_bytes();
        covered[place..place + 2].copy_from_slice(&sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(bytes: &[u8]) -> Raw<'_> {
        Raw {
            bytes,
            length: bytes.len(),
            realtime_ns: 0,
            tag: None,
            checksum: None,
            outgoing: false,
            merged: None,
            is_queued: false,
        }
    }

    #[test]
    fn a_tag_is_restored_after_the_addresses_even_if_all_zero() {
        let bytes: Vec<u8> = (0..20).collect();
        let mut frame = Frame::default();
        fill(&mut frame, &Raw { tag: Some((0x88a8, 0)), ..raw(&bytes) });
        assert_eq!(frame.bytes()[..12], bytes[..12]);
        assert_eq!(frame.bytes()[12..16], [0x88, 0xa8, 0, 0]);
        assert_eq!(frame.bytes()[16..], bytes[12..]);
        fill(&mut frame, &raw(&bytes));
        assert_eq!(frame.bytes(), bytes);
    }

    #[test]
    fn a_frame_without_space_for_a_tag_is_unchanged() {
        let mut frame = Frame::default();
        fill(&mut frame, &Raw { tag: Some((0x8100, 5)), ..raw(&[1, 2, 3]) });
        assert_eq!(frame.bytes(), [1, 2, 3]);
    }

    #[test]
    fn a_checksum_is_completed_after_the_tag() {
        let mut bytes = vec![9u8; 12];
        bytes.extend([0x08, 0x00]);
        bytes.extend([0x12, 0x34, 0, 7, 0xab, 0xcd, 1]);
        let mut frame = Frame::default();
        // The partial sum 0007 is two bytes after the start of the checksummed bytes.
        let partial = Raw { tag: Some((0x8100, 1)), checksum: Some((14, 2)), ..raw(&bytes) };
        fill(&mut frame, &partial);
        assert_ne!(frame.bytes()[20..22], [0, 7]);
        // With the pseudo header's 0007 added, the sum of all words is ffff.
        assert_eq!(InternetChecksum::default().bytes(&frame.bytes()[18..]).u16(7).fold(), 0xffff);
    }

    /// The check value of CRC-32C, e3069283 for "123456789", here over a header of SCTP's shape.
    #[test]
    fn the_sctp_checksum_covers_itself_as_zero_and_is_little_endian() {
        let mut bytes = *b"12345678\xaa\xbb\xcc\xdd9";
        complete(&mut bytes, 0, SCTP_PLACE);
        let sum = crc32c(b"12345678\0\0\0\09");
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(bytes[8..12], sum.to_le_bytes());
        assert_eq!((&bytes[..8], bytes[12]), (&b"12345678"[..], b'9'));
    }

    #[test]
    fn a_zero_checksum_is_sent_as_ones_and_invalid_offsets_are_ignored() {
        let mut bytes = [0xff, 0xff, 0, 0];
        complete(&mut bytes, 0, 2);
        assert_eq!(bytes, [0xff, 0xff, 0xff, 0xff]);
        for (from, place) in [(3, 0), (0, 3), (9, 9), (65535, 65535)] {
            complete(&mut bytes, from, place);
        }
        assert_eq!(bytes, [0xff; 4]);
    }
}
