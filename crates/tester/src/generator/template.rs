//! Frame templates, with the few bytes that differ from frame to frame.
//!
//! - Checksums are updated without reading the payload: the sum over all constant bytes is computed
//!   once (RFC 1071). Each frame adds its varying bytes, the signature included.
//! - Only SCTP's CRC is computed over the whole packet.
//! - The monitor uses templates of expected frames. So transmission and verification agree by
//!   construction.

use netio::departure::{ChecksumPlace, StampPlace};
use packet::checksum::{InternetChecksum, pseudo_ipv4, pseudo_ipv6};
use packet::frame::FCS_BYTES;
use packet::header::{icmp, icmpv6, ipv4, ipv6, sctp, tcp, udp};
use packet::time::Nanos;

use crate::generator::build::bytes_of;
use crate::generator::field_writer::{Group, Patch};
use crate::signature::{SEQUENCE_AT, SIGNATURE_BYTES, SendTime, Sequence, Signature};
use crate::stream::{Headers, Network, Stream, Transport};

/// Words of a frame's first bytes, which include all headers before most signatures.
const HEAD_WORDS: usize = 6;

const HEAD_BYTES: usize = HEAD_WORDS * 8;

const _: () = assert!(crate::stream::HEADER_BYTES + crate::stream::TAG_BYTES <= HEAD_BYTES);

/// Frames of one stream and one size, without varying bytes.
#[derive(Debug, Clone)]
pub struct Template {
    bytes: Vec<u8>,
    key: u64,
    stream: u16,
    signature_at: usize,
    network: Network,
    network_at: usize,
    transport_at: usize,
    groups: Vec<Group>,
    /// Sum over the IPv4 header without varying bytes, or none if its checksum is constant.
    ip_sum: Option<InternetChecksum>,
    guard: Guard,
    /// Offset of the transport checksum.
    check_at: usize,
    /// Sum over transport header, payload and pseudo header, without varying bytes.
    check_sum: InternetChecksum,
    /// The first bytes without varying ones, and their mask.
    head: [[u64; HEAD_WORDS]; 2],
    /// The bytes from there to the signature without varying ones, and their mask.
    middle: [Vec<u8>; 2],
    /// Whether these exist, or the guard is no Internet checksum. One check skips both rare cases.
    is_odd: bool,
}

/// Checksum of the transport header and payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// An Internet checksum, the replacement for a result of zero (UDP's must not be zero), and
    /// whether it covers a pseudo header.
    Internet { protocol: u8, zero: u16, is_pseudo: bool },
    /// SCTP's CRC32c, up to this offset.
    Crc { end: usize },
    /// No checksum.
    None,
}

impl Template {
    /// Creates the template of a valid stream's frames with these headers and varying fields.
    ///
    /// `frame_bytes` includes the frame check sequence. Frames are signed with the run's `key`.
    pub(super) fn new(
        stream: &Stream,
        headers: &Headers,
        groups: Vec<Group>,
        frame_bytes: usize,
        key: u64,
    ) -> Self {
        let layout = headers.layout();
        let (bytes, packet_end) = bytes_of(headers, frame_bytes - FCS_BYTES);
        let at = layout.transport_at;
        let (protocol, is_pseudo) =
            (headers.transport.protocol(), headers.transport.sums_addresses());
        let internet = |zero| Guard::Internet { protocol, zero, is_pseudo };
        let (guard, check_at) = match (headers.network, headers.transport) {
            (network, _) if !network.has_transport() => (Guard::None, at),
            (_, Transport::Udp) => (internet(0xffff), at + udp::CHECKSUM_AT),
            (_, Transport::Tcp { .. }) => (internet(0), at + tcp::CHECKSUM_AT),
            (_, Transport::Sctp { .. }) => (Guard::Crc { end: packet_end }, at + sctp::CHECKSUM_AT),
            (_, Transport::Icmp { .. }) => (internet(0), at + icmp::CHECKSUM_AT),
            (_, Transport::Icmpv6 { .. } | Transport::Neighbour { .. }) => {
                (internet(0), at + icmpv6::CHECKSUM_AT)
            }
        };
        let mut template = Template {
            bytes,
            key,
            stream: stream.id,
            signature_at: stream.signature_offset(),
            network: headers.network,
            network_at: layout.network_at,
            transport_at: layout.transport_at,
            groups,
            ip_sum: None,
            guard,
            check_at,
            check_sum: InternetChecksum::default(),
            head: Default::default(),
            middle: Default::default(),
            is_odd: false,
        };
        template.sum_constant(headers.transport);
        template.find_constant();
        let is_internet = matches!(guard, Guard::Internet { .. });
        template.is_odd = !(is_internet && template.middle[0].is_empty());
        template
    }

    /// Computes the sums over the template, with zeros for varying bytes.
    fn sum_constant(&mut self, transport: Transport) {
        let mut blank = self.bytes.clone();
        blank[self.signature_at..self.signature_at + SIGNATURE_BYTES].fill(0);
        blank[self.check_at..][..self.guard.bytes()].fill(0);
        let patches = || self.groups.iter().flat_map(Group::patches);
        for patch in patches().filter(|patch| patch.is_in_transport() || patch.is_in_ip()) {
            blank[patch.places()].fill(0);
        }
        let protocol = transport.protocol();
        let segment = &blank[self.transport_at..];
        let pseudo = match transport.sums_addresses() {
            true => pseudo(self.network, &blank[self.network_at..], protocol, segment.len()),
            false => InternetChecksum::default(),
        };
        self.check_sum = pseudo.bytes(segment);
        if self.network == Network::Ipv4 && patches().any(Patch::is_in_ip) {
            let ip = &mut blank[self.network_at..self.transport_at];
            ip[ipv4::CHECKSUM_AT..][..2].fill(0);
            self.ip_sum = Some(InternetChecksum::default().bytes(ip));
        }
    }

    /// Determines which of the bytes before the signature are constant.
    fn find_constant(&mut self) {
        let mut mask = vec![0; self.signature_at.max(HEAD_BYTES)];
        for (at, byte) in mask.iter_mut().enumerate().take(self.signature_at) {
            *byte = if self.varies_at(at) { 0 } else { 0xff };
        }
        let ones = words_of(mask.first_chunk().expect("at least as long as the head"));
        let mut head = words_of(self.bytes.first_chunk().expect("at least as long as a signature"));
        head.iter_mut().zip(ones).for_each(|(word, ones)| *word &= ones);
        self.head = [head, ones];
        let ones = mask.split_off(HEAD_BYTES);
        let rest = self.bytes[HEAD_BYTES..].iter().zip(&ones);
        self.middle = [rest.map(|(byte, ones)| byte & ones).collect(), ones];
    }

    /// Returns whether the byte at `at`, before the signature, varies.
    pub fn varies_at(&self, at: usize) -> bool {
        let ip_checksum = self.network_at + ipv4::CHECKSUM_AT;
        let mut patches = self.groups.iter().flat_map(Group::patches);
        patches.any(|patch| patch.places().contains(&at))
            || (self.check_at..self.check_at + self.guard.bytes()).contains(&at)
            || self.ip_sum.is_some() && (ip_checksum..ip_checksum + 2).contains(&at)
    }

    /// Returns the template's bytes. Varying bytes have arbitrary values.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the stream id.
    pub fn stream(&self) -> u16 {
        self.stream
    }

    /// Returns whether the frames have a CRC.
    pub(super) fn has_crc(&self) -> bool {
        matches!(self.guard, Guard::Crc { .. })
    }

    /// Returns the number of indices that [`Template::draw`] appends.
    #[inline]
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Returns the offset of the signature.
    pub fn signature_at(&self) -> usize {
        self.signature_at
    }

    /// Appends the indices of frame `number`, for [`Template::write`] and [`Template::matches`].
    ///
    /// This separate step prefetches the values, which can be in distant memory. They are available
    /// once the frames drawn earlier are processed.
    #[inline]
    pub fn draw(&self, number: u64, indices: &mut Vec<u64>) {
        for group in &self.groups {
            indices.push(group.draw(number));
        }
    }

    /// Writes the frame with this sequence number, send time and indices into `frame`, which has
    /// the template's length.
    #[inline]
    pub fn write(&self, sequence: Sequence, sent: SendTime, indices: &[u64], frame: &mut [u8]) {
        let varied = self.write_varying(indices, frame);
        let end = self.signature_at + SIGNATURE_BYTES;
        let signature = Signature { stream: self.stream, sequence, sent };
        let signature_sum = signature.write(self.key, &mut frame[self.signature_at..end]);
        if !self.is_odd || self.is_summed(frame) {
            put(frame, self.check_at, self.checksum(varied, signature_sum));
        }
    }

    /// Writes the frame like [`Template::write`], for a port that writes the sequence number and the
    /// send time. Returns their place.
    ///
    /// A port cannot complete a CRC: such a frame has the send time `due`.
    #[inline]
    pub fn write_open(
        &self,
        sequence: Sequence,
        due: Nanos,
        indices: &[u64],
        frame: &mut [u8],
    ) -> Option<StampPlace> {
        if self.has_crc() {
            self.write(sequence, SendTime::new(due), indices, frame);
            return None;
        }
        let varied = self.write_varying(indices, frame);
        let signature = &mut frame[self.signature_at..];
        let (sum, seed) = Signature::write_open(self.stream, signature);
        let checksum = match self.guard {
            Guard::Internet { zero, .. } => {
                let sum = self.check_sum.plus(sum).u64(varied).fold();
                Some(ChecksumPlace { at: self.check_at, sum, zero })
            }
            Guard::Crc { .. } | Guard::None => None,
        };
        let (at, number) = (self.signature_at + SEQUENCE_AT, sequence.bits());
        Some(StampPlace { at, number, key: self.key, seed, checksum })
    }

    /// Writes all but the signature and the transport checksum. Returns the sum of the varying
    /// bytes for the latter.
    #[inline(always)]
    fn write_varying(&self, indices: &[u64], frame: &mut [u8]) -> u64 {
        copy(&self.bytes, frame);
        let mut sums = (0, 0);
        for (group, &index) in self.groups.iter().zip(indices) {
            for (patch, value) in group.values(index) {
                patch.write(value, frame);
                add(&mut sums, patch.sums(value));
            }
        }
        if let Some(sum) = self.ip_sum {
            put(frame, self.network_at + ipv4::CHECKSUM_AT, sum.u64(sums.0).checksum());
        }
        sums.1
    }

    /// Returns whether the frame has an Internet checksum. Writes a CRC if it has one.
    #[cold]
    fn is_summed(&self, frame: &mut [u8]) -> bool {
        if let Guard::Crc { end } = self.guard {
            let crc = sctp::checksum(&frame[self.transport_at..end]).to_le_bytes();
            frame[self.check_at..][..4].copy_from_slice(&crc);
        }
        matches!(self.guard, Guard::Internet { .. })
    }

    /// Returns whether `bytes` equal the expected frame with the signature at `signature_at`, which
    /// draws these indices.
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
        if let Some(ip) = self.ip_sum {
            let checksum = ip.u64(sums.0).checksum();
            difference |= u64::from(take(bytes, self.network_at + ipv4::CHECKSUM_AT) ^ checksum);
        }
        let checksum = self.checksum(sums.1, sum);
        if !self.is_odd {
            difference |= u64::from(take(bytes, self.check_at) ^ checksum);
        } else if !self.is_oddly_right(checksum, bytes) {
            return false;
        }
        let end = signature_at + SIGNATURE_BYTES;
        difference == 0 && (bytes.len() == end || bytes[end..] == self.bytes[end..])
    }

    /// Returns the transport checksum, from the sum of varying bytes and the signature's sum.
    #[inline(always)]
    fn checksum(&self, varied: u64, signature: InternetChecksum) -> u16 {
        match self.check_sum.plus(signature).u64(varied).checksum() {
            0 => self.guard.zero(),
            checksum => checksum,
        }
    }

    /// Verifies the rare parts: constant bytes between the first ones and the signature, and a
    /// guard that is not this Internet checksum.
    #[cold]
    fn is_oddly_right(&self, checksum: u16, bytes: &[u8]) -> bool {
        let [want, ones] = &self.middle;
        let have = bytes[HEAD_BYTES..].iter();
        let is_guarded = match self.guard {
            Guard::Internet { .. } => take(bytes, self.check_at) == checksum,
            Guard::Crc { .. } | Guard::None => self.is_guarded(bytes),
        };
        is_guarded && have.zip(ones).zip(want).all(|((have, ones), want)| have & ones == *want)
    }

    /// Returns whether these bytes without a valid signature resemble a damaged frame of this
    /// stream.
    ///
    /// They must have its length, an invalid checksum, and at least three quarters of its constant
    /// header bytes. A frame with valid checksums is foreign.
    pub fn resembles(&self, bytes: &[u8]) -> bool {
        if bytes.len() != self.bytes.len() || self.is_whole(bytes) {
            return false;
        }
        let constant = || (0..self.signature_at).filter(|&at| !self.varies_at(at));
        let same = constant().filter(|&at| bytes[at] == self.bytes[at]).count();
        same * 4 >= constant().count() * 3
    }

    /// Returns whether all checksums are valid, if parsed as a frame of this template that has one.
    fn is_whole(&self, bytes: &[u8]) -> bool {
        let ip = &bytes[self.network_at..self.transport_at];
        let is_header_right =
            self.network != Network::Ipv4 || InternetChecksum::default().bytes(ip).checksum() == 0;
        self.guard != Guard::None && is_header_right && self.is_guarded(bytes)
    }

    /// Returns whether the transport checksum is valid, if parsed as a frame of this template.
    fn is_guarded(&self, bytes: &[u8]) -> bool {
        let segment = &bytes[self.transport_at..];
        match self.guard {
            Guard::Internet { is_pseudo: false, .. } => {
                InternetChecksum::default().bytes(segment).checksum() == 0
            }
            Guard::Internet { protocol, .. } => {
                let ip = &bytes[self.network_at..];
                pseudo(self.network, ip, protocol, segment.len()).bytes(segment).checksum() == 0
            }
            Guard::Crc { end } => {
                let crc = sctp::checksum(&bytes[self.transport_at..end]).to_le_bytes();
                bytes[self.check_at..][..4] == crc
            }
            Guard::None => true,
        }
    }
}

impl Guard {
    /// Returns the replacement for a result of zero. Rare (one in 65,536), so it is kept out of
    /// line.
    #[cold]
    #[inline(never)]
    fn zero(self) -> u16 {
        match self {
            Guard::Internet { zero, .. } => zero,
            Guard::Crc { .. } | Guard::None => 0,
        }
    }

    /// Returns the length of the checksum in bytes.
    fn bytes(self) -> usize {
        match self {
            Guard::Internet { .. } => 2,
            Guard::Crc { .. } => 4,
            Guard::None => 0,
        }
    }
}

/// Returns the pseudo header's sum for the network header at the start of `bytes`.
fn pseudo(network: Network, bytes: &[u8], protocol: u8, length: usize) -> InternetChecksum {
    let short = |at: usize| -> [u8; 4] { *bytes[at..].first_chunk().expect("a complete header") };
    let long = |at: usize| -> [u8; 16] { *bytes[at..].first_chunk().expect("a complete header") };
    match network {
        Network::Ipv4 => {
            let (source, destination) = (short(ipv4::SOURCE_AT), short(ipv4::DESTINATION_AT));
            pseudo_ipv4(source.into(), destination.into(), protocol, length as u16)
        }
        Network::Ipv6 { .. } => {
            let (source, destination) = (long(ipv6::SOURCE_AT), long(ipv6::DESTINATION_AT));
            pseudo_ipv6(source.into(), destination.into(), protocol, length as u32)
        }
        Network::Arp { .. } | Network::Loopback { .. } => InternetChecksum::default(),
    }
}

/// Copies `from` to `to`, which has the same length. Most frames are short, and a known length is
/// copied without a call.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    const SHORT: usize = 60;
    match (from.first_chunk::<SHORT>(), to.first_chunk_mut::<SHORT>()) {
        (Some(first), Some(into)) if from.len() == SHORT => *into = *first,
        _ => to.copy_from_slice(from),
    }
}

/// Adds to two sums. Each addend has at most 33 bits, so the few fields cannot overflow them.
#[inline]
fn add(sums: &mut (u64, u64), more: (u64, u64)) {
    *sums = (sums.0 + more.0, sums.1 + more.1);
}

#[inline]
fn words_of(bytes: &[u8; HEAD_BYTES]) -> [u64; HEAD_WORDS] {
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
