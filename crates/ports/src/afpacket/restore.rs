//! A received frame as it was on the link: its tag put back, its checksum completed.
//!
//! Linux takes the outermost VLAN tag out of a frame before anybody sees it, and leaves checksums
//! of frames from this host to the hardware that they never reach. Both would show on a wire that
//! such a frame is forwarded to. The sum is the one of RFC 1071.

use packet::frame::Frame;

use super::ring::Raw;

/// Bytes of a VLAN tag.
pub const TAG_BYTES: usize = 4;

/// Where the tag belongs: after both addresses.
const TAG_AT: usize = 12;

/// Makes `frame` the frame that `raw` was on the link.
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
    whole[TAG_AT..TAG_AT + 2].copy_from_slice(&tpid.to_be_bytes());
    whole[TAG_AT + 2..TAG_AT + 4].copy_from_slice(&tci.to_be_bytes());
    whole[TAG_AT + 4..].copy_from_slice(&bytes[TAG_AT..]);
}

/// Sums the bytes from `from` to the end, over the partial sum that already stands there, and
/// puts the result `place` bytes behind `from`. Offsets outside the frame change nothing.
fn complete(bytes: &mut [u8], from: usize, place: usize) {
    let at = from + place;
    if at + 2 > bytes.len() {
        return;
    }
    // Zero means "no checksum" to UDP, and its complement sums up the same.
    let sum = match !folded_sum(&bytes[from..]) {
        0 => u16::MAX,
        sum => sum,
    };
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// The ones' complement sum of big-endian 16-bit words, an odd last byte padded with zero.
fn folded_sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2);
    let last = words.remainder().first().map_or(0, |&byte| u64::from(byte) << 8);
    let mut sum =
        last + words.map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u64>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
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
            merged: false,
        }
    }

    #[test]
    fn a_tag_goes_back_behind_the_addresses_even_if_it_is_all_zero() {
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
    fn a_frame_without_room_for_a_tag_stays_as_it_is() {
        let mut frame = Frame::default();
        fill(&mut frame, &Raw { tag: Some((0x8100, 5)), ..raw(&[1, 2, 3]) });
        assert_eq!(frame.bytes(), [1, 2, 3]);
    }

    /// The worked sum of RFC 1071 section 3: 0001 f203 f4f5 f6f7 sums to ddf2.
    #[test]
    fn the_sum_is_the_one_of_the_rfc() {
        assert_eq!(folded_sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(folded_sum(&[0x01]), 0x0100);
        assert_eq!(folded_sum(&[]), 0);
    }

    #[test]
    fn a_checksum_is_completed_behind_the_tag_and_then_sums_to_all_ones() {
        let mut bytes = vec![9u8; 12];
        bytes.extend([0x08, 0x00]);
        bytes.extend([0x12, 0x34, 0, 7, 0xab, 0xcd, 1]);
        let mut frame = Frame::default();
        // The partial sum, 0007, stands two bytes behind the start of what is summed.
        let partial = Raw { tag: Some((0x8100, 1)), checksum: Some((14, 2)), ..raw(&bytes) };
        fill(&mut frame, &partial);
        assert_ne!(frame.bytes()[20..22], [0, 7]);
        // Adding the pseudo header's 0007 again, all words together give ffff.
        let sum = u32::from(folded_sum(&frame.bytes()[18..])) + 7;
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }

    #[test]
    fn a_sum_of_zero_is_sent_as_all_ones_and_wild_offsets_do_nothing() {
        let mut bytes = [0xff, 0xff, 0, 0];
        complete(&mut bytes, 0, 2);
        assert_eq!(bytes, [0xff, 0xff, 0xff, 0xff]);
        for (from, place) in [(3, 0), (0, 3), (9, 9), (65535, 65535)] {
            complete(&mut bytes, from, place);
        }
        assert_eq!(bytes, [0xff; 4]);
    }
}
