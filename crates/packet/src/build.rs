//! Builds frames from headers, with correct lengths and checksums.
//!
//! ```
//! use packet::build::Builder;
//! use packet::header::ipv4;
//!
//! let frame = Builder::new([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
//!     .vlan(10)
//!     .ipv4(ipv4::Header { ttl: 3, ..ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into()) })
//!     .udp(4000, 9)
//!     .payload(b"hello")
//!     .bytes();
//! assert_eq!(frame.len(), 60);
//! ```
//!
//! Call the methods in order, outermost header first. Each header gets its types, protocols,
//! lengths and checksums from the headers and payload after it. To get wrong values, change the
//! bytes afterwards. Frames are padded with zeros to `ethernet::FRAME_BYTES_MIN`. Lengths that do
//! not fit their field wrap.

use crate::checksum::{self, InternetChecksum};
use crate::frame::Frame;
use crate::header::{arp, ethernet, icmp, icmpv6, ipv4, ipv6, mpls, pbb, put_u16, sctp, tcp, udp};

/// A builder of a frame.
#[derive(Debug, Clone)]
pub struct Builder {
    destination: ethernet::Mac,
    source: ethernet::Mac,
    layers: Vec<Layer>,
    payload: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Layer {
    /// TPID and tag control information.
    Vlan(u16, u16),
    Snap,
    Pbb(pbb::Header),
    Mpls(mpls::Header),
    Type(u16),
    Arp(arp::Header),
    Ipv4(ipv4::Header),
    Ipv6(ipv6::Header),
    /// Number of an extension header, and its bytes without the first one, which contains the next
    /// number.
    Extension(u8, Vec<u8>),
    Udp(udp::Header),
    Tcp(tcp::Header),
    Sctp(sctp::Header),
    Icmp(icmp::Header),
    Icmpv6(icmpv6::Header),
}

impl Builder {
    /// Starts a frame to `destination` from `source`.
    pub fn new(destination: ethernet::Mac, source: ethernet::Mac) -> Self {
        Builder { destination, source, layers: Vec::new(), payload: Vec::new() }
    }

    /// Adds an IEEE 802.1Q tag with this tag control information: identifier, and priority from bit
    /// 13 up.
    pub fn vlan(self, control: u16) -> Self {
        self.tag(ethernet::TYPE_VLAN, control)
    }

    /// Adds a tag with this TPID and tag control information.
    pub fn tag(self, type_: u16, control: u16) -> Self {
        self.layer(Layer::Vlan(type_, control))
    }

    /// Makes an IEEE 802.3 frame with length, LLC and a SNAP header with OUI 0.
    pub fn snap(self) -> Self {
        self.layer(Layer::Snap)
    }

    /// Adds an 802.1ah service instance tag. Subsequent headers belong to the customer's frame.
    pub fn pbb(self, header: pbb::Header) -> Self {
        self.layer(Layer::Pbb(header))
    }

    /// Adds an MPLS entry. The last of several is the bottom of the stack. No tag can follow.
    pub fn mpls(self, header: mpls::Header) -> Self {
        self.layer(Layer::Mpls(header))
    }

    /// Sets the EtherType. Its payload follows.
    pub fn ether_type(self, type_: u16) -> Self {
        self.layer(Layer::Type(type_))
    }

    /// Adds an ARP message.
    pub fn arp(self, header: arp::Header) -> Self {
        self.layer(Layer::Arp(header))
    }

    /// Adds an IPv4 header. Its `protocol` is used only if no transport header follows.
    pub fn ipv4(self, header: ipv4::Header) -> Self {
        self.layer(Layer::Ipv4(header))
    }

    /// Adds an IPv6 header. Its `next_header` is used only if no known header follows.
    pub fn ipv6(self, header: ipv6::Header) -> Self {
        self.layer(Layer::Ipv6(header))
    }

    /// Adds an IPv6 extension header with this number. `rest` is the header without its first byte;
    /// the length of both together is a multiple of 8 bytes.
    pub fn extension(self, kind: u8, rest: &[u8]) -> Self {
        self.layer(Layer::Extension(kind, rest.to_vec()))
    }

    /// Adds a UDP header.
    pub fn udp(self, source_port: u16, destination_port: u16) -> Self {
        let header = udp::Header { source_port, destination_port, payload_bytes: 0, checksum: 0 };
        self.layer(Layer::Udp(header))
    }

    /// Adds a TCP header.
    pub fn tcp(self, header: tcp::Header) -> Self {
        self.layer(Layer::Tcp(header))
    }

    /// Adds an SCTP common header.
    pub fn sctp(self, source_port: u16, destination_port: u16, verification_tag: u32) -> Self {
        let header = sctp::Header { source_port, destination_port, verification_tag, checksum: 0 };
        self.layer(Layer::Sctp(header))
    }

    /// Adds an ICMP header.
    pub fn icmp(self, header: icmp::Header) -> Self {
        self.layer(Layer::Icmp(header))
    }

    /// Adds an ICMPv6 header.
    pub fn icmpv6(self, header: icmpv6::Header) -> Self {
        self.layer(Layer::Icmpv6(header))
    }

    /// Sets the innermost payload.
    pub fn payload(mut self, bytes: &[u8]) -> Self {
        self.payload = bytes.to_vec();
        self
    }

    /// Extends the payload with zeros, or truncates it, so that the unpadded frame has `length`
    /// bytes without FCS. Headers are never truncated.
    pub fn frame_bytes(mut self, length: usize) -> Self {
        let headers = self.bytes_unpadded().len() - self.payload.len();
        self.payload.resize(length.saturating_sub(headers), 0);
        self
    }

    /// Returns the bytes of the frame, padded.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.bytes_unpadded();
        let length = bytes.len().max(ethernet::FRAME_BYTES_MIN);
        bytes.resize(length, 0);
        bytes
    }

    /// Returns the frame, padded.
    pub fn frame(&self) -> Frame {
        Frame::from_bytes(&self.bytes())
    }

    /// Returns the bytes of the frame without padding.
    pub fn bytes_unpadded(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + self.payload.len());
        bytes.extend_from_slice(&self.destination);
        bytes.extend_from_slice(&self.source);
        let mut starts = Vec::with_capacity(self.layers.len());
        if !matches!(self.layers.first(), Some(Layer::Vlan(..))) {
            let type_ = self.layers.first().map_or(ethernet::TYPE_NONE, link_type);
            bytes.extend_from_slice(&type_.to_be_bytes());
        }
        for (index, layer) in self.layers.iter().enumerate() {
            starts.push(bytes.len());
            layer.emit(self.layers.get(index + 1), &mut bytes);
        }
        bytes.extend_from_slice(&self.payload);
        self.fix(&starts, &mut bytes);
        bytes
    }

    /// Sets lengths and checksums, innermost first.
    fn fix(&self, starts: &[usize], bytes: &mut [u8]) {
        if self.layers.is_empty() {
            let length = bytes.len() - ethernet::HEADER_BYTES;
            put_u16(bytes, ethernet::TYPE.start, length as u16);
        }
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let length = bytes.len() - starts[index];
            let outer = self.layers[..index].iter().rev();
            let pseudo = |protocol| pseudo(outer.clone(), protocol, length);
            layer.fix(&mut bytes[starts[index]..], pseudo);
            if matches!(layer, Layer::Snap) {
                put_u16(bytes, starts[index] - 2, length as u16);
            }
        }
    }

    fn layer(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self
    }
}

/// Returns the sum of the pseudo-header that the innermost network header adds to a transport
/// checksum.
fn pseudo<'a>(
    outer: impl Iterator<Item = &'a Layer>,
    protocol: u8,
    length: usize,
) -> InternetChecksum {
    let mut last = None;
    for layer in outer {
        match layer {
            Layer::Ipv4(header) => {
                let (source, destination) = (header.source, header.destination);
                return checksum::pseudo_ipv4(source, destination, protocol, length as u16);
            }
            Layer::Ipv6(header) => {
                let (source, destination) = (header.source, last.unwrap_or(header.destination));
                return checksum::pseudo_ipv6(source, destination, protocol, length as u32);
            }
            Layer::Extension(ipv6::NEXT_ROUTING, rest) if last.is_none() => {
                last = ipv6::final_destination(&[&[0], rest.as_slice()].concat());
            }
            _ => {}
        }
    }
    InternetChecksum::default()
}

impl Layer {
    /// Appends the header with the type or protocol of the `next` one. Lengths and checksums are
    /// not set yet.
    fn emit(&self, next: Option<&Layer>, out: &mut Vec<u8>) {
        let protocol = next.and_then(Layer::protocol);
        match self {
            Layer::Vlan(type_, control) => {
                out.extend_from_slice(&type_.to_be_bytes());
                out.extend_from_slice(&control.to_be_bytes());
                if !matches!(next, Some(Layer::Vlan(..))) {
                    let type_ = next.map_or(ethernet::TYPE_NONE, link_type);
                    out.extend_from_slice(&type_.to_be_bytes());
                }
            }
            Layer::Snap => {
                out.extend_from_slice(&[0xaa, 0xaa, 3, 0, 0, 0]);
                let type_ = next.map_or(ethernet::TYPE_NONE, link_type);
                out.extend_from_slice(&type_.to_be_bytes());
            }
            Layer::Pbb(header) => {
                header.emit(out);
                if !matches!(next, Some(Layer::Vlan(..))) {
                    let type_ = next.map_or(ethernet::TYPE_NONE, link_type);
                    out.extend_from_slice(&type_.to_be_bytes());
                }
            }
            Layer::Mpls(header) => {
                let bottom = !matches!(next, Some(Layer::Mpls(_)));
                mpls::Header { bottom, ..*header }.emit(out);
            }
            Layer::Type(_) => {}
            Layer::Arp(header) => header.emit(out),
            Layer::Ipv4(header) => {
                let protocol = protocol.unwrap_or(header.protocol);
                ipv4::Header { protocol, payload_bytes: 0, ..*header }.emit(out);
            }
            Layer::Ipv6(header) => {
                let next_header = protocol.unwrap_or(header.next_header);
                ipv6::Header { next_header, ..*header }.emit(out);
            }
            Layer::Extension(_, rest) => {
                out.push(protocol.unwrap_or(ipv6::NEXT_NONE));
                out.extend_from_slice(rest);
            }
            Layer::Udp(header) => header.emit(out),
            Layer::Tcp(header) => tcp::Header { checksum: 0, ..*header }.emit(out),
            Layer::Sctp(header) => header.emit(out),
            Layer::Icmp(header) => icmp::Header { checksum: 0, ..*header }.emit(out),
            Layer::Icmpv6(header) => icmpv6::Header { checksum: 0, ..*header }.emit(out),
        }
    }

    /// Sets length and checksum in `bytes`, which extend from this header to the end.
    fn fix(&self, bytes: &mut [u8], pseudo: impl Fn(u8) -> InternetChecksum) {
        let length = bytes.len();
        match self {
            Layer::Ipv4(_) => {
                put_u16(bytes, ipv4::TOTAL_LENGTH_AT, length as u16);
                ipv4::set_checksum(bytes);
            }
            Layer::Ipv6(_) => {
                let payload = length - ipv6::HEADER_BYTES;
                put_u16(bytes, ipv6::PAYLOAD_LENGTH_AT, payload as u16);
            }
            Layer::Udp(_) => {
                put_u16(bytes, udp::LENGTH_AT, length as u16);
                let checksum = pseudo(ipv4::PROTOCOL_UDP).bytes(bytes).checksum_udp();
                put_u16(bytes, udp::CHECKSUM_AT, checksum);
            }
            Layer::Tcp(_) => {
                let checksum = pseudo(ipv4::PROTOCOL_TCP).bytes(bytes).checksum();
                put_u16(bytes, tcp::CHECKSUM_AT, checksum);
            }
            Layer::Icmp(_) => {
                let checksum = checksum::checksum(bytes);
                put_u16(bytes, icmp::CHECKSUM_AT, checksum);
            }
            Layer::Icmpv6(_) => {
                let checksum = pseudo(ipv4::PROTOCOL_ICMPV6).bytes(bytes).checksum();
                put_u16(bytes, icmpv6::CHECKSUM_AT, checksum);
            }
            Layer::Sctp(_) => {
                let crc = sctp::checksum(bytes).to_le_bytes();
                bytes[sctp::CHECKSUM_AT..sctp::HEADER_BYTES].copy_from_slice(&crc);
            }
            Layer::Vlan(..) | Layer::Snap | Layer::Type(_) | Layer::Arp(_) => {}
            Layer::Pbb(_) | Layer::Mpls(_) | Layer::Extension(..) => {}
        }
    }

    /// Returns the IP protocol number of the header, if it has one.
    fn protocol(&self) -> Option<u8> {
        match self {
            Layer::Udp(_) => Some(ipv4::PROTOCOL_UDP),
            Layer::Tcp(_) => Some(ipv4::PROTOCOL_TCP),
            Layer::Sctp(_) => Some(ipv4::PROTOCOL_SCTP),
            Layer::Icmp(_) => Some(ipv4::PROTOCOL_ICMP),
            Layer::Icmpv6(_) => Some(ipv4::PROTOCOL_ICMPV6),
            Layer::Extension(kind, _) => Some(*kind),
            Layer::Ipv4(_) => Some(4),
            Layer::Ipv6(_) => Some(41),
            Layer::Vlan(..) | Layer::Snap | Layer::Type(_) | Layer::Arp(_) => None,
            Layer::Pbb(_) | Layer::Mpls(_) => None,
        }
    }
}

/// Returns the EtherType of the header.
fn link_type(layer: &Layer) -> u16 {
    match layer {
        Layer::Vlan(type_, _) | Layer::Type(type_) => *type_,
        Layer::Pbb(_) => ethernet::TYPE_PBB,
        Layer::Mpls(_) => ethernet::TYPE_MPLS,
        Layer::Arp(_) => ethernet::TYPE_ARP,
        Layer::Ipv4(_) => ethernet::TYPE_IPV4,
        Layer::Ipv6(_) => ethernet::TYPE_IPV6,
        _ => ethernet::TYPE_NONE,
    }
}

#[cfg(test)]
mod tests;
