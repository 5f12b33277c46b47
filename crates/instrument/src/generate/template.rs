//! What each frame looks like: a template, and the few bytes that differ from frame to frame.
//!
//! Checksums are kept right without touching the payload: the sum over everything constant is
//! taken once (RFC 1071), and each frame adds what varies. A template of how frames should look
//! on arrival serves the monitor, so that sending and checking agree by construction.

use packet::build::Builder;
use packet::checksum::{Sum, pseudo_ipv4};
use packet::frame::{FCS_BYTES, Frame};
use packet::header::{ipv4, udp};

use crate::signature::{SIGNATURE_BYTES, Sent, Sequence, Signature};
use crate::stream::{Arrival, Field, Headers, Order, Stream, Values, Vary};

/// Frames of one stream, up to what varies.
#[derive(Debug, Clone)]
pub struct Template {
    bytes: Vec<u8>,
    key: u64,
    stream: u16,
    signature_at: usize,
    ip_at: usize,
    groups: Vec<Group>,
    /// Sum over the IPv4 header without what varies, or none where its checksum is constant.
    ip_sum: Option<Sum>,
    /// Sum over the UDP datagram and pseudo header without what varies.
    udp_sum: Sum,
}

/// Fields that take their values from one index.
#[derive(Debug, Clone)]
struct Group {
    count: u64,
    order: Order,
    patches: Vec<Patch>,
}

#[derive(Debug, Clone)]
struct Patch {
    field: Field,
    values: Values,
    at: usize,
    /// Bits of the 16-bit word that are not the field's (a VLAN's priority).
    around: u64,
}

impl Template {
    /// The frames of `stream` as they leave, signed with the run's `key`. The stream is valid.
    pub fn leaving(stream: &Stream, key: u64) -> Self {
        Template::new(stream, stream.headers, &[], key)
    }

    /// The frames of `stream` as they ought to arrive.
    pub fn arriving(stream: &Stream, key: u64) -> Self {
        match stream.arrival {
            Arrival::Unchanged => Template::leaving(stream, key),
            Arrival::Routed { mac_source, mac_destination } => {
                let ttl = stream.headers.ttl.saturating_sub(1);
                let headers = Headers { mac_source, mac_destination, ttl, ..stream.headers };
                Template::new(stream, headers, &[Field::MacSource, Field::MacDestination], key)
            }
        }
    }

    fn new(stream: &Stream, headers: Headers, constant: &[Field], key: u64) -> Self {
        let bytes = bytes_of(&headers, stream.frame_bytes);
        let signature_at = stream.signature_offset();
        let ip_at = signature_at - udp::HEADER_BYTES - ipv4::HEADER_BYTES;
        let patch = |(field, values): &(Field, Values)| {
            (!constant.contains(field)).then(|| Patch::new(*field, values.clone(), &headers, ip_at))
        };
        let group = |vary: &Vary| Group {
            count: vary.count,
            order: vary.order,
            patches: vary.fields.iter().filter_map(patch).collect(),
        };
        let groups: Vec<Group> = stream.vary.iter().map(group).collect();
        let mut template = Template {
            bytes,
            key,
            stream: stream.id,
            signature_at,
            ip_at,
            groups,
            ip_sum: None,
            udp_sum: Sum::default(),
        };
        template.sum_constant();
        template
    }

    /// Takes the sums over the template with zeros where something varies.
    fn sum_constant(&mut self) {
        let mut blank = self.bytes.clone();
        let udp_at = self.ip_at + ipv4::HEADER_BYTES;
        blank[self.signature_at..self.signature_at + SIGNATURE_BYTES].fill(0);
        blank[udp_at + udp::CHECKSUM_AT..][..2].fill(0);
        blank[self.ip_at + ipv4::CHECKSUM_AT..][..2].fill(0);
        let patches = || self.groups.iter().flat_map(|group| &group.patches);
        for patch in patches().filter(|patch| patch.is_summed()) {
            blank[patch.at..patch.at + patch.width()].fill(0);
        }
        let (ip, datagram) = blank[self.ip_at..].split_at(ipv4::HEADER_BYTES);
        let address = |at: usize| {
            let bytes: [u8; 4] = *ip[at..].first_chunk().expect("a whole IPv4 header");
            bytes.into()
        };
        let (source, destination) = (address(ipv4::SOURCE_AT), address(ipv4::DESTINATION_AT));
        let pseudo = pseudo_ipv4(source, destination, ipv4::PROTOCOL_UDP, datagram.len() as u16);
        self.udp_sum = pseudo.bytes(datagram);
        let varies = patches().any(Patch::is_address);
        self.ip_sum = varies.then(|| Sum::default().bytes(ip));
    }

    /// The constant bytes; what varies holds values of no particular frame.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the signature lies.
    pub fn signature_at(&self) -> usize {
        self.signature_at
    }

    /// Makes `frame` the stream's frame with this sequence number, sent at this moment.
    #[inline]
    pub fn write(&self, sequence: Sequence, sent: Sent, frame: &mut Frame) {
        frame.set_bytes(&self.bytes);
        self.patch(sequence, sent, frame.bytes_mut());
    }

    /// Turns `bytes`, which hold this template or any frame made from it, into the frame with
    /// this sequence number, sent at this moment.
    #[inline]
    pub fn patch(&self, sequence: Sequence, sent: Sent, bytes: &mut [u8]) {
        let mut udp_sum = self.udp_sum;
        let mut ip_sum = self.ip_sum;
        for group in &self.groups {
            let index = match group.order {
                Order::Sequential if group.count == 1 => 0,
                order => order.index_at(sequence.number, group.count),
            };
            for patch in &group.patches {
                let value = patch.write(index, bytes);
                if patch.is_address() {
                    ip_sum = ip_sum.map(|sum| sum.u32(value as u32));
                }
                if patch.is_summed() {
                    udp_sum = udp_sum.u32(value as u32);
                }
            }
        }
        if let Some(sum) = ip_sum {
            put(bytes, self.ip_at + ipv4::CHECKSUM_AT, sum.checksum());
        }
        let end = self.signature_at + SIGNATURE_BYTES;
        let place = &mut bytes[self.signature_at..end];
        Signature { stream: self.stream, sequence, sent }.write(self.key, place);
        let checksum = udp_sum.bytes(place).checksum_udp();
        let udp_at = self.signature_at - udp::HEADER_BYTES;
        put(bytes, udp_at + udp::CHECKSUM_AT, checksum);
    }

    /// Whether these bytes, which carry no valid signature, look like a damaged frame of this
    /// stream: as long, with at least three quarters of the constant header bytes right, and
    /// with an Internet checksum that says they were damaged. A frame that is whole is somebody
    /// else's.
    pub fn resembles(&self, bytes: &[u8]) -> bool {
        if bytes.len() != self.bytes.len() || self.is_whole(bytes) {
            return false;
        }
        let varies = |at: &usize| {
            let patches = self.groups.iter().flat_map(|group| &group.patches);
            let udp_checksum = self.signature_at - udp::HEADER_BYTES + udp::CHECKSUM_AT;
            let ip_checksum = self.ip_at + ipv4::CHECKSUM_AT;
            patches
                .map(|patch| (patch.at, patch.width()))
                .any(|(from, width)| (from..from + width).contains(at))
                || (udp_checksum..udp_checksum + 2).contains(at)
                || self.ip_sum.is_some() && (ip_checksum..ip_checksum + 2).contains(at)
        };
        let constant = || (0..self.signature_at).filter(|at| !varies(at));
        let same = constant().filter(|&at| bytes[at] == self.bytes[at]).count();
        same * 4 >= constant().count() * 3
    }

    /// Whether both checksums are right, read as a frame of this template's shape.
    fn is_whole(&self, bytes: &[u8]) -> bool {
        let (ip, datagram) = bytes[self.ip_at..].split_at(ipv4::HEADER_BYTES);
        let addresses = &ip[ipv4::SOURCE_AT..ipv4::SOURCE_AT + 8];
        let pseudo = Sum::default().bytes(addresses).u16(ipv4::PROTOCOL_UDP.into());
        let udp_sum = pseudo.u16(datagram.len() as u16).bytes(datagram);
        Sum::default().bytes(ip).checksum() == 0 && udp_sum.checksum() == 0
    }
}

impl Patch {
    fn new(field: Field, values: Values, headers: &Headers, ip_at: usize) -> Self {
        let udp_at = ip_at + ipv4::HEADER_BYTES;
        let at = match field {
            Field::MacDestination => 0,
            Field::MacSource => 6,
            Field::VlanId => 14,
            Field::IpSource => ip_at + ipv4::SOURCE_AT,
            Field::IpDestination => ip_at + ipv4::DESTINATION_AT,
            Field::PortSource => udp_at + udp::SOURCE_PORT_AT,
            Field::PortDestination => udp_at + udp::DESTINATION_PORT_AT,
        };
        let around = match (field, headers.vlan) {
            (Field::VlanId, Some(vlan)) => u64::from(vlan.priority) << 13,
            _ => 0,
        };
        Patch { field, values, at, around }
    }

    fn width(&self) -> usize {
        match self.field {
            Field::MacSource | Field::MacDestination => 6,
            Field::IpSource | Field::IpDestination => 4,
            Field::VlanId | Field::PortSource | Field::PortDestination => 2,
        }
    }

    #[inline]
    fn is_address(&self) -> bool {
        matches!(self.field, Field::IpSource | Field::IpDestination)
    }

    /// Whether the UDP checksum covers the field.
    #[inline]
    fn is_summed(&self) -> bool {
        self.is_address() || matches!(self.field, Field::PortSource | Field::PortDestination)
    }

    #[inline]
    fn write(&self, index: u64, bytes: &mut [u8]) -> u64 {
        let value = self.values.at(self.field, index) | self.around;
        let width = self.width();
        bytes[self.at..self.at + width].copy_from_slice(&value.to_be_bytes()[8 - width..]);
        value
    }
}

/// A frame with these headers and zeros for payload; `frame_bytes` includes the frame check
/// sequence.
fn bytes_of(headers: &Headers, frame_bytes: usize) -> Vec<u8> {
    let mut builder = Builder::new(headers.mac_destination, headers.mac_source);
    let mut head_bytes = crate::stream::HEADER_BYTES;
    if let Some(vlan) = headers.vlan {
        builder = builder.vlan(u16::from(vlan.priority) << 13 | vlan.id);
        head_bytes += crate::stream::TAG_BYTES;
    }
    let ip = ipv4::Header {
        ttl: headers.ttl,
        tos: headers.tos,
        ..ipv4::Header::new(headers.ip_source, headers.ip_destination)
    };
    let payload = vec![0; frame_bytes - FCS_BYTES - head_bytes];
    builder.ipv4(ip).udp(headers.port_source, headers.port_destination).payload(&payload).bytes()
}

#[inline]
fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

#[cfg(test)]
pub(crate) mod tests;
