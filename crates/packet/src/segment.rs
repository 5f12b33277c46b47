//! Segmentation of merged frames.
//!
//! The kernel merges consecutive TCP segments or UDP datagrams of a flow into one large frame
//! (Linux `Documentation/networking/segmentation-offloads.rst`: TSO, GSO, GRO). Given the segment
//! size, this module does what an interface with segmentation offload does.
//!
//! Invariants:
//!
//! - The concatenated payloads of the segments are the payload of the merged frame.
//! - Every length and checksum of a segment is correct.
//! - No frame is longer than [`FRAME_BYTES_MAX`].

use crate::checksum::{InternetChecksum, pseudo_ipv4, pseudo_ipv6};
use crate::frame::{FRAME_BYTES_MAX, Frame};
use crate::header::{ethernet, ipv4, ipv6, put_u16, put_u32, tcp, u16_at, u32_at, udp, vlan};

/// Maximum length of a merged frame in bytes: an IP packet of 65,535 bytes after an Ethernet header
/// with tags.
pub const MERGED_BYTES_MAX: usize = 0xffff + ethernet::HEADER_BYTES + 4 * vlan::VLAN_DEPTH_MAX;

/// Protocol whose payload is segmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP: sequence numbers continue from segment to segment.
    Tcp,
    /// UDP: each segment is a datagram.
    Udp,
}

/// A merged frame and the segmentation progress. The buffer is reused for the next frame.
#[derive(Debug, Default)]
pub struct Segmenter {
    bytes: Vec<u8>,
    layout: Layout,
    size: usize,
    /// Offset of the next segment's payload; the end of the payload if there is none.
    next: usize,
    /// Number of segments so far.
    index: u16,
}

/// Positions of the headers of a merged frame.
#[derive(Debug, Clone, Copy, Default)]
struct Layout {
    is_ipv6: bool,
    is_tcp: bool,
    network_at: usize,
    transport_at: usize,
    payload_at: usize,
    end: usize,
}

impl Segmenter {
    /// Returns a buffer of `length` bytes for a merged frame, at most [`MERGED_BYTES_MAX`].
    /// Discards the previous frame.
    pub fn buffer(&mut self, length: usize) -> &mut [u8] {
        self.bytes.resize(length.min(MERGED_BYTES_MAX), 0);
        (self.layout, self.next) = (Layout::default(), 0);
        &mut self.bytes
    }

    /// Returns the bytes of the buffer, to modify them before segmentation.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Starts to segment the frame in the buffer into parts of `size` payload bytes; the last one
    /// may be shorter.
    ///
    /// If known, `transport_at` is the offset of the header of `protocol`. After tunnel headers it
    /// is not the first header of that protocol. Returns false, without segments, if the frame does
    /// not consist of Ethernet, IP and `protocol`, or if a segment would be too long.
    pub fn begin(&mut self, protocol: Protocol, size: usize, transport_at: Option<usize>) -> bool {
        let layout = Layout::of(&self.bytes, protocol);
        let is_right = |it: &Layout| {
            size > 0 && it.fits(size) && transport_at.is_none_or(|at| at == it.transport_at)
        };
        let Some(layout) = layout.filter(is_right) else {
            self.buffer(0);
            return false;
        };
        (self.layout, self.size, self.next, self.index) = (layout, size, layout.payload_at, 0);
        true
    }

    /// Returns true if segments are left.
    #[inline]
    pub fn has_next(&self) -> bool {
        self.next < self.layout.end
    }

    /// Writes the next segment to `frame`, without a time stamp. Returns false if there is none.
    pub fn next_into(&mut self, frame: &mut Frame) -> bool {
        if !self.has_next() {
            return false;
        }
        let layout = self.layout;
        let until = layout.end.min(self.next + self.size);
        let payload = &self.bytes[self.next..until];
        frame.resize(layout.payload_at + payload.len());
        let segment = frame.bytes_mut();
        segment[..layout.payload_at].copy_from_slice(&self.bytes[..layout.payload_at]);
        segment[layout.payload_at..].copy_from_slice(payload);
        let offset = (self.next - layout.payload_at) as u32;
        layout.finish(segment, offset, self.index, until == layout.end);
        self.next = until;
        self.index = self.index.wrapping_add(1);
        true
    }
}

impl Layout {
    fn of(bytes: &[u8], protocol: Protocol) -> Option<Layout> {
        let mut type_at = ethernet::HEADER_BYTES - 2;
        let half = |at: usize| bytes.get(at..at + 2).map(|_| u16_at(bytes, at));
        for _ in 0..vlan::VLAN_DEPTH_MAX {
            if !vlan::is_tag(half(type_at)?) {
                break;
            }
            type_at += 4;
        }
        let network_at = type_at + 2;
        let packet = bytes.get(network_at..)?;
        let (is_ipv6, found, header_bytes, packet_bytes) = match half(type_at)? {
            ethernet::TYPE_IPV4 => ipv4_header(packet)?,
            ethernet::TYPE_IPV6 => ipv6_header(packet)?,
            _ => return None,
        };
        // A packet too large for its length field has zero there and extends to the end of the
        // frame.
        let end = match packet_bytes {
            0 => bytes.len(),
            packet_bytes => network_at + packet_bytes,
        };
        let transport_at = network_at + header_bytes;
        let (is_tcp, payload_at) = match protocol {
            Protocol::Tcp if found == ipv4::PROTOCOL_TCP => {
                let words = bytes.get(transport_at + tcp::FLAGS_AT - 1)? >> 4;
                let header_bytes = usize::from(words) * 4;
                if header_bytes < tcp::HEADER_BYTES {
                    return None;
                }
                (true, transport_at + header_bytes)
            }
            Protocol::Udp if found == ipv4::PROTOCOL_UDP => {
                (false, transport_at + udp::HEADER_BYTES)
            }
            Protocol::Tcp | Protocol::Udp => return None,
        };
        let is_whole = payload_at < end && end <= bytes.len();
        is_whole.then_some(Layout { is_ipv6, is_tcp, network_at, transport_at, payload_at, end })
    }

    /// Returns true if segments of this payload size are short enough for frames and IP packets.
    fn fits(&self, size: usize) -> bool {
        self.payload_at + size.min(self.end - self.payload_at) <= FRAME_BYTES_MAX
    }

    /// Corrects the headers of a segment that starts `offset` bytes into the payload.
    fn finish(&self, segment: &mut [u8], offset: u32, index: u16, is_last: bool) {
        let transport_bytes = segment.len() - self.transport_at;
        let (headers, transport) = segment.split_at_mut(self.transport_at);
        let header = &mut headers[self.network_at..];
        let protocol = if self.is_tcp { ipv4::PROTOCOL_TCP } else { ipv4::PROTOCOL_UDP };
        let pseudo = if self.is_ipv6 {
            let length = header.len() - ipv6::HEADER_BYTES + transport_bytes;
            put_u16(header, ipv6::PAYLOAD_LENGTH_AT, length as u16);
            let view = ipv6::View::new(header).expect("the fixed header is complete");
            let (source, destination) = (view.source(), view.final_destination());
            pseudo_ipv6(source, destination, protocol, transport_bytes as u32)
        } else {
            put_u16(header, ipv4::TOTAL_LENGTH_AT, (header.len() + transport_bytes) as u16);
            let identification = u16_at(header, ipv4::IDENTIFICATION_AT).wrapping_add(index);
            put_u16(header, ipv4::IDENTIFICATION_AT, identification);
            put_u16(header, ipv4::CHECKSUM_AT, 0);
            let checksum = InternetChecksum::default().bytes(header).checksum();
            put_u16(header, ipv4::CHECKSUM_AT, checksum);
            let [source, destination] =
                [ipv4::SOURCE_AT, ipv4::DESTINATION_AT].map(|at| u32_at(header, at).into());
            pseudo_ipv4(source, destination, protocol, transport_bytes as u16)
        };
        if self.is_tcp {
            let sequence = u32_at(transport, SEQUENCE_AT).wrapping_add(offset);
            put_u32(transport, SEQUENCE_AT, sequence);
            if !is_last {
                transport[tcp::FLAGS_AT] &= !(tcp::FIN | tcp::PSH);
            }
            if index > 0 {
                transport[tcp::FLAGS_AT] &= !CWR;
            }
            put_u16(transport, tcp::CHECKSUM_AT, 0);
            let checksum = pseudo.plus(InternetChecksum::default().bytes(transport)).checksum();
            put_u16(transport, tcp::CHECKSUM_AT, checksum);
        } else {
            put_u16(transport, udp::LENGTH_AT, transport_bytes as u16);
            put_u16(transport, udp::CHECKSUM_AT, 0);
            let checksum = pseudo.plus(InternetChecksum::default().bytes(transport)).checksum_udp();
            put_u16(transport, udp::CHECKSUM_AT, checksum);
        }
    }
}

/// Offset of the TCP sequence number, and the flag that only the first segment retains (RFC 3168,
/// section 6.1.2).
const SEQUENCE_AT: usize = 4;
const CWR: u8 = 0x80;

/// Whether it is IPv6, the inner protocol, the bytes of all IP headers, and the bytes of the
/// packet. The last is zero if the length field does not give it.
type SegmentHeaders = (bool, u8, usize, usize);

fn ipv4_header(packet: &[u8]) -> Option<SegmentHeaders> {
    let fixed: &[u8; ipv4::HEADER_BYTES] = packet.first_chunk()?;
    let header_bytes = usize::from(fixed[0] & 15) * 4;
    let total = usize::from(u16_at(fixed, ipv4::TOTAL_LENGTH_AT));
    let fragment = u16_at(fixed, ipv4::FRAGMENT_AT) & (ipv4::MORE_FRAGMENTS | ipv4::OFFSET_MASK);
    let is_valid = fixed[0] >> 4 == 4
        && (ipv4::HEADER_BYTES..=packet.len()).contains(&header_bytes)
        && fragment == 0;
    is_valid.then_some((false, fixed[ipv4::PROTOCOL_AT], header_bytes, total))
}

fn ipv6_header(packet: &[u8]) -> Option<SegmentHeaders> {
    let fixed: &[u8; ipv6::HEADER_BYTES] = packet.first_chunk()?;
    let payload = usize::from(u16_at(fixed, ipv6::PAYLOAD_LENGTH_AT));
    let (mut protocol, mut at) = (fixed[ipv6::NEXT_HEADER_AT], ipv6::HEADER_BYTES);
    for _ in 0..ipv6::EXTENSIONS_MAX {
        if !matches!(protocol, ipv6::NEXT_HOP_BY_HOP | ipv6::NEXT_ROUTING | ipv6::NEXT_DESTINATION)
        {
            break;
        }
        protocol = *packet.get(at)?;
        at += (usize::from(*packet.get(at + 1)?) + 1) * 8;
    }
    let packet_bytes = if payload == 0 { 0 } else { ipv6::HEADER_BYTES + payload };
    let is_valid = fixed[0] >> 4 == 6 && at <= packet.len();
    is_valid.then_some((true, protocol, at, packet_bytes))
}
