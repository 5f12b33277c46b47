//! Fragmentation of packets longer than the MTU.
//!
//! Source: RFC 791, section 3.2, and RFC 1812, section 4.2.2.7. Every fragment but the last carries
//! as many bytes as fit, in multiples of eight. Options with the copy bit are in all fragments, the
//! others in the first. A fragment can be fragmented again.

use packet::frame::{Frame, PortNo};
use packet::header::options::Options;
use packet::header::{ethernet, ipv4};

use super::{FrameContext, Router, Target};
use crate::counter::DropReason;

impl Router {
    /// Fragments a packet without the DF bit, and sends the fragments to a neighbor.
    #[cold]
    pub(super) fn deliver_pieces(
        &mut self,
        target: Target,
        frame: &Frame,
        from: Option<PortNo>,
        way: &mut FrameContext,
    ) {
        let mtu = usize::from(self.interfaces[target.interface].mtu);
        let Some(pieces) = cut(&frame.bytes()[ethernet::HEADER_BYTES..], mtu) else {
            return self.lose(from, DropReason::TooLong);
        };
        if from.is_some() {
            self.counters.fragmented += 1;
            self.counters.fragments += pieces.len() as u64;
        }
        for mut piece in pieces {
            self.deliver(target, &mut piece, from, way);
        }
    }
}

/// Returns the frames of a packet's fragments of at most `mtu` bytes, without Ethernet addresses.
/// `mtu` is at least [`MTU_MIN`](super::MTU_MIN). Returns `None` if the packet's header is invalid.
pub fn cut(packet: &[u8], mtu: usize) -> Option<Vec<Frame>> {
    let (header, length) = ipv4::Header::parse(packet).ok()?;
    let end = length + usize::from(header.payload_bytes);
    let mut rest = packet.get(length..end)?;
    let mut offset = header.fragment_offset;
    let mut options = header.options;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let room = mtu - ipv4::HEADER_BYTES - options.bytes().len();
        let last = rest.len() <= room;
        let (part, after) = rest.split_at(if last { rest.len() } else { room & !7 });
        let piece = ipv4::Header {
            payload_bytes: part.len() as u16,
            more_fragments: !last || header.more_fragments,
            fragment_offset: offset,
            options,
            ..header
        };
        pieces.push(frame(&piece, part));
        rest = after;
        offset += part.len() as u16;
        options = copied(&header.options);
    }
    Some(pieces)
}

fn frame(header: &ipv4::Header, payload: &[u8]) -> Frame {
    let mut bytes = vec![0; ethernet::TYPE.start];
    bytes.extend_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
    header.emit(&mut bytes);
    bytes.extend_from_slice(payload);
    let mut frame = Frame::from_bytes(&bytes);
    frame.pad_to(ethernet::FRAME_BYTES_MIN);
    frame
}

/// Returns the options for every fragment: those with the highest bit set.
fn copied(options: &Options) -> Options {
    let mut rest = options.bytes();
    let mut kept = Vec::new();
    while let [kind, after @ ..] = rest {
        let length = match kind {
            0 => break,
            1 => 1,
            _ => after.first().map_or(0, |&length| usize::from(length)),
        };
        let Some(option) = rest.get(..length).filter(|option| !option.is_empty()) else { break };
        if kind & 0x80 != 0 {
            kept.extend_from_slice(option);
        }
        rest = &rest[length..];
    }
    Options::from_bytes(&kept).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(header: ipv4::Header, payload: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        ipv4::Header { payload_bytes: payload as u16, ..header }.emit(&mut bytes);
        bytes.extend((0..payload).map(|at| at as u8));
        bytes
    }

    fn plain() -> ipv4::Header {
        ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 1, 1].into())
    }

    /// Reassembles fragments, and checks the size and position of each.
    fn whole(pieces: &[Frame], mtu: usize, start: usize) -> (Vec<u8>, bool) {
        let mut payload = Vec::new();
        let mut more = true;
        for piece in pieces {
            let (header, length) = ipv4::Header::parse(&piece.bytes()[14..]).unwrap();
            assert!(more, "a piece after the last");
            assert_eq!(usize::from(header.fragment_offset), start + payload.len());
            let end = length + usize::from(header.payload_bytes);
            assert!(end <= mtu);
            payload.extend_from_slice(&piece.bytes()[14 + length..14 + end]);
            more = header.more_fragments;
        }
        (payload, more)
    }

    #[test]
    fn fragments_reassemble_to_the_whole_packet() {
        for (payload, mtu, pieces) in
            [(1480, 1500, 1), (1481, 1500, 2), (3000, 576, 6), (60, 68, 2)]
        {
            let bytes = packet(plain(), payload);
            let cut = cut(&bytes, mtu).unwrap();
            assert_eq!(cut.len(), pieces, "{payload} bytes by {mtu}");
            assert_eq!(whole(&cut, mtu, 0), (bytes[20..].to_vec(), false));
        }
    }

    #[test]
    fn a_fragment_can_be_fragmented_again() {
        let header = ipv4::Header { more_fragments: true, fragment_offset: 1480, ..plain() };
        let bytes = packet(header, 1480);
        let (payload, more) = whole(&cut(&bytes, 600).unwrap(), 600, 1480);
        assert_eq!((payload, more), (bytes[20..].to_vec(), true));
    }

    #[test]
    fn only_options_with_the_copy_bit_are_in_all_fragments() {
        let options = Options::from_bytes(&[7, 3, 4, 1, 148, 4, 0, 0]).unwrap();
        let pieces = cut(&packet(ipv4::Header { options, ..plain() }, 200), 100).unwrap();
        let parse = |frame: &Frame| ipv4::Header::parse(&frame.bytes()[14..]).unwrap().0;
        assert_eq!(parse(&pieces[0]).options, options);
        let rest = Options::from_bytes(&[148, 4, 0, 0]).unwrap();
        assert!(pieces[1..].iter().all(|piece| parse(piece).options == rest));
        assert_eq!(whole(&pieces, 100, 0).0.len(), 200);
    }
}
