//! What each frame looks like: a template, and the few bytes that differ from frame to frame.
//!
//! Checksums are kept right without touching the payload: the sum over everything constant is
//! taken once (RFC 1071), and each frame adds what varies. A template of how frames should look
//! on arrival serves the monitor, so that sending and checking agree by construction.

use packet::build::Builder;
use packet::checksum::{Sum, pseudo_ipv4};
use packet::frame::FCS_BYTES;
use packet::header::{ipv4, udp};

use crate::generate::patch::Group;
use crate::signature::{SIGNATURE_BYTES, Sent, Sequence, Signature};
use crate::stream::{Arrival, Field, Headers, Stream};

/// Words of a frame's first bytes, which hold all headers before the signature.
const HEAD_WORDS: usize = 6;

const _: () = assert!(crate::stream::HEADER_BYTES + crate::stream::TAG_BYTES <= HEAD_WORDS * 8);

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
    /// The first bytes without what varies, and ones where they do not.
    head: [[u64; HEAD_WORDS]; 2],
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

    /// The frames of `stream` as they leave and as they ought to arrive, with one copy of the
    /// values that both share.
    pub fn both(stream: &Stream, key: u64) -> [Self; 2] {
        let leaving = Template::leaving(stream, key);
        let arriving = match stream.arrival {
            Arrival::Unchanged => leaving.clone(),
            Arrival::Routed { .. } => Template::arriving(stream, key),
        };
        [leaving, arriving]
    }

    fn new(stream: &Stream, headers: Headers, constant: &[Field], key: u64) -> Self {
        let signature_at = stream.signature_offset();
        let ip_at = signature_at - udp::HEADER_BYTES - ipv4::HEADER_BYTES;
        let group = |vary| Group::new(vary, constant, &headers, ip_at);
        let groups = stream.vary.iter().map(group).collect();
        let mut template = Template {
            bytes: bytes_of(&headers, stream.frame_bytes),
            key,
            stream: stream.id,
            signature_at,
            ip_at,
            groups,
            ip_sum: None,
            udp_sum: Sum::default(),
            head: Default::default(),
        };
        template.sum_constant();
        template.find_constant();
        template
    }

    /// Takes the sums over the template with zeros where something varies.
    fn sum_constant(&mut self) {
        let mut blank = self.bytes.clone();
        let udp_at = self.ip_at + ipv4::HEADER_BYTES;
        blank[self.signature_at..self.signature_at + SIGNATURE_BYTES].fill(0);
        blank[udp_at + udp::CHECKSUM_AT..][..2].fill(0);
        blank[self.ip_at + ipv4::CHECKSUM_AT..][..2].fill(0);
        let patches = || self.groups.iter().flat_map(Group::patches);
        for patch in patches().filter(|patch| patch.is_in_udp() || patch.is_in_ip()) {
            blank[patch.places()].fill(0);
        }
        let (ip, datagram) = blank[self.ip_at..].split_at(ipv4::HEADER_BYTES);
        let address = |at: usize| {
            let bytes: [u8; 4] = *ip[at..].first_chunk().expect("a whole IPv4 header");
            bytes.into()
        };
        let (source, destination) = (address(ipv4::SOURCE_AT), address(ipv4::DESTINATION_AT));
        let pseudo = pseudo_ipv4(source, destination, ipv4::PROTOCOL_UDP, datagram.len() as u16);
        self.udp_sum = pseudo.bytes(datagram);
        let varies = patches().any(|patch| patch.is_in_ip());
        self.ip_sum = varies.then(|| Sum::default().bytes(ip));
    }

    /// Notes which of the first bytes are the same in all frames.
    fn find_constant(&mut self) {
        let mut mask = [0; HEAD_WORDS * 8];
        for (at, byte) in mask.iter_mut().enumerate().take(self.signature_at) {
            *byte = if self.varies_at(at) { 0 } else { 0xff };
        }
        let ones = words_of(&mask);
        let mut head = words_of(self.bytes.first_chunk().expect("room for a signature"));
        head.iter_mut().zip(ones).for_each(|(word, ones)| *word &= ones);
        self.head = [head, ones];
    }

    /// Whether the byte at `at`, before the signature, differs from frame to frame.
    fn varies_at(&self, at: usize) -> bool {
        let udp_checksum = self.signature_at - udp::HEADER_BYTES + udp::CHECKSUM_AT;
        let ip_checksum = self.ip_at + ipv4::CHECKSUM_AT;
        let mut patches = self.groups.iter().flat_map(Group::patches);
        patches.any(|patch| patch.places().contains(&at))
            || (udp_checksum..udp_checksum + 2).contains(&at)
            || self.ip_sum.is_some() && (ip_checksum..ip_checksum + 2).contains(&at)
    }

    /// The number of the stream.
    pub fn stream(&self) -> u16 {
        self.stream
    }

    /// The constant bytes; what varies holds values of no particular frame.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the signature lies.
    pub fn signature_at(&self) -> usize {
        self.signature_at
    }

    /// How many indices [`Template::draw`] appends.
    #[inline]
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Appends the indices that frame `number` draws, for [`Template::write`] and
    /// [`Template::matches`]. It is a step of its own because their values may lie far away in
    /// memory: they are asked for here, and have come when frames drawn before are done.
    #[inline]
    pub fn draw(&self, number: u64, indices: &mut Vec<u64>) {
        for group in &self.groups {
            indices.push(group.draw(number));
        }
    }

    /// Makes `frame`, which is as long as the template, the stream's frame with this sequence
    /// number and what it draws, sent at this moment.
    #[inline]
    pub fn write(&self, sequence: Sequence, sent: Sent, indices: &[u64], frame: &mut [u8]) {
        copy(&self.bytes, frame);
        let mut sums = (0, 0);
        for (group, &index) in self.groups.iter().zip(indices) {
            for (patch, value) in group.values(index) {
                patch.write(value, frame);
                add(&mut sums, patch.sums(value));
            }
        }
        let end = self.signature_at + SIGNATURE_BYTES;
        let signature = Signature { stream: self.stream, sequence, sent };
        let signature_sum = signature.write(self.key, &mut frame[self.signature_at..end]);
        let (ip, udp) = self.checksums(sums, signature_sum);
        if let Some(checksum) = ip {
            put(frame, self.ip_at + ipv4::CHECKSUM_AT, checksum);
        }
        let udp_at = self.signature_at - udp::HEADER_BYTES;
        put(frame, udp_at + udp::CHECKSUM_AT, udp);
    }

    /// Whether `bytes`, in which a signature of this stream was found at `signature_at`, are to
    /// the last one those of the frame with that signature, which draws these indices.
    #[inline]
    pub fn matches(&self, signature_at: usize, indices: &[u64], bytes: &[u8]) -> bool {
        if bytes.len() != self.bytes.len() || signature_at != self.signature_at {
            return false;
        }
        let Some(head) = bytes.first_chunk() else { return false };
        let Some(sum) = Signature::sum(&bytes[signature_at..]) else { return false };
        let mut difference = 0;
        let (have, [want, ones]) = (words_of(head), &self.head);
        for place in 0..HEAD_WORDS {
            difference |= have[place] & ones[place] ^ want[place];
        }
        let mut sums = (0, 0);
        for (group, &index) in self.groups.iter().zip(indices) {
            for (patch, value) in group.values(index) {
                difference |= patch.read(bytes) ^ value;
                add(&mut sums, patch.sums(value));
            }
        }
        let (ip, udp) = self.checksums(sums, sum);
        if let Some(checksum) = ip {
            difference |= u64::from(take(bytes, self.ip_at + ipv4::CHECKSUM_AT) ^ checksum);
        }
        let udp_at = self.signature_at - udp::HEADER_BYTES;
        difference |= u64::from(take(bytes, udp_at + udp::CHECKSUM_AT) ^ udp);
        let end = signature_at + SIGNATURE_BYTES;
        difference == 0 && (bytes.len() == end || bytes[end..] == self.bytes[end..])
    }

    /// The checksum of the IPv4 header, if it varies, and that of UDP, from the sums of what varies
    /// in them.
    #[inline(always)]
    fn checksums(&self, (ip, udp): (u64, u64), signature: Sum) -> (Option<u16>, u16) {
        let ip = self.ip_sum.map(|sum| sum.u64(ip).checksum());
        (ip, self.udp_sum.plus(signature).u64(udp).checksum_udp())
    }

    /// Whether these bytes, which carry no valid signature, look like a damaged frame of this
    /// stream: as long, with at least three quarters of the constant header bytes right, and
    /// with an Internet checksum that says they were damaged. A frame that is whole is somebody
    /// else's.
    pub fn resembles(&self, bytes: &[u8]) -> bool {
        if bytes.len() != self.bytes.len() || self.is_whole(bytes) {
            return false;
        }
        let constant = || (0..self.signature_at).filter(|&at| !self.varies_at(at));
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
    let builder = builder.ipv4(ip).udp(headers.port_source, headers.port_destination);
    let mut bytes = builder.payload(&payload).bytes();
    let ip_at = head_bytes - udp::HEADER_BYTES - ipv4::HEADER_BYTES;
    let ip = &mut bytes[ip_at..][..ipv4::HEADER_BYTES];
    ip[ipv4::PROTOCOL_AT] = headers.ip_protocol;
    put(ip, ipv4::CHECKSUM_AT, 0);
    let checksum = Sum::default().bytes(ip).checksum();
    put(ip, ipv4::CHECKSUM_AT, checksum);
    bytes
}

/// Copies `from` over `to`, which is as long. Most frames are short, and a known length is
/// copied without a call.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    const SHORT: usize = 60;
    match (from.first_chunk::<SHORT>(), to.first_chunk_mut::<SHORT>()) {
        (Some(first), Some(into)) if from.len() == SHORT => *into = *first,
        _ => to.copy_from_slice(from),
    }
}

/// Adds to two sums of at most 33 bits each time: there are not so many fields that they overflow.
#[inline]
fn add(sums: &mut (u64, u64), more: (u64, u64)) {
    *sums = (sums.0 + more.0, sums.1 + more.1);
}

#[inline]
fn words_of(bytes: &[u8; HEAD_WORDS * 8]) -> [u64; HEAD_WORDS] {
    let mut words = [0; HEAD_WORDS];
    for (place, word) in words.iter_mut().enumerate() {
        *word = u64::from_ne_bytes(bytes.as_chunks::<8>().0[place]);
    }
    words
}

#[inline]
fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

#[inline]
fn take(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
pub(crate) mod tests;
