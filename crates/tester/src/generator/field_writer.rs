//! Varying fields of a frame: their offsets and values.
//!
//! - The values of a group's fields are stored side by side, as narrow as the fields.
//! - So a frame costs one access to distant memory per group, and that access is prefetched.
//! - Stored values of adjacent fields are written together.
//! - A value is computed instead if there are too many, or if computing is as fast as a lookup.

use std::ops::Range;
use std::sync::Arc;

use netio::in_place::View;
use packet::header::{arp, ethernet, ipv4, ipv6, mpls, udp, vlan};

use crate::mix::mix;
use crate::stream::{Field, FieldVariation, Headers, IndexOrder, Layout, Network, Values};

/// Maximum size of stored computed values, together with those from lists, in bytes.
const KEPT_BYTES_MAX: u64 = 4 << 20;

/// Fields that share one index.
#[derive(Debug, Clone)]
pub struct Group {
    count: u64,
    order: IndexOrder,
    patches: Vec<Patch>,
    /// A row of stored values for each index, followed by [`PATCH_BYTES_MAX`] bytes.
    rows: Arc<[u8]>,
    row_bytes: usize,
}

/// Maximum length of a patch in bytes.
const PATCH_BYTES_MAX: usize = 8;

/// A varying field of a frame, or several adjacent ones.
#[derive(Debug, Clone)]
pub struct Patch {
    source: ValueSource,
    at: usize,
    bytes: usize,
    /// Distance of the field from the end of its words, in bits.
    shift: u32,
    /// Bits of its words outside the field (for example a VLAN's priority, or the time to live).
    around: u64,
    /// All ones if the IPv4 checksum covers the field.
    in_ip: u64,
    /// All ones if the transport checksum covers the field.
    in_transport: u64,
}

/// Source of a field's values.
#[derive(Debug, Clone)]
enum ValueSource {
    /// The group's row, at this offset.
    Row(usize),
    /// Computed for this field.
    Values(Field, Values),
}

impl Group {
    /// Creates a valid stream's group, without the fields that are constant after all.
    pub fn new(vary: &FieldVariation, constant: &[Field], headers: &Headers) -> Self {
        let fields = || vary.fields.iter().filter(|(field, _)| !constant.contains(field));
        let kept_bytes: u64 = fields().map(|(field, _)| width(*field) as u64).sum();
        let keeps_all = vary.count.saturating_mul(kept_bytes) <= KEPT_BYTES_MAX;
        let is_kept = |values: &Values| match values {
            Values::List(_) => true,
            Values::Range { .. } => false,
            Values::Scattered { .. } => keeps_all,
        };
        let (mut kept, others): (Vec<_>, Vec<_>) =
            fields().map(|(field, values)| (*field, values)).partition(|(_, it)| is_kept(it));
        kept.sort_by_key(|(field, _)| *field);
        let (mut patches, mut row_bytes): (Vec<Patch>, usize) = (Vec::new(), 0);
        for &(field, _) in &kept {
            let patch = Patch::new(field, ValueSource::Row(row_bytes), headers);
            row_bytes += patch.bytes;
            let again = patch.again(field, headers);
            if !patches.last_mut().is_some_and(|last| last.join(&patch)) {
                patches.push(patch);
            }
            patches.extend(again);
        }
        for (field, values) in others {
            let source = ValueSource::Values(field, values.clone());
            let patch = Patch::new(field, source, headers);
            let again = patch.again(field, headers);
            patches.push(patch);
            patches.extend(again);
        }
        let mut rows = Vec::new();
        for index in (0..vary.count).take_while(|_| !kept.is_empty()) {
            for &(field, values) in &kept {
                let bytes = (values.at(field, index) << shift(field)).to_be_bytes();
                rows.extend_from_slice(&bytes[8 - width(field)..]);
            }
        }
        rows.extend_from_slice(&[0; PATCH_BYTES_MAX]);
        let (count, order) = (vary.count, vary.order.clone());
        Group { count, order, patches, rows: rows.into(), row_bytes }
    }

    /// Returns the fields.
    #[inline]
    pub fn patches(&self) -> &[Patch] {
        &self.patches
    }

    /// Returns the index of frame `number`, and prefetches its row.
    #[inline]
    pub fn draw(&self, number: u64) -> u64 {
        let index = match &self.order {
            IndexOrder::Sequential if self.count == 1 => 0,
            order => order.index_at(number, self.count),
        };
        if self.row_bytes > 0 {
            View::of(&self.rows).prefetch(index as usize * self.row_bytes);
        }
        index
    }

    /// Returns each field with its value at an index.
    #[inline(always)]
    pub fn values(&self, index: u64) -> impl Iterator<Item = (&Patch, u64)> {
        let row = &self.rows[index as usize * self.row_bytes..];
        let stirred = if self.row_bytes == 0 { mix(index) } else { 0 };
        self.patches.iter().map(move |patch| {
            let value = match &patch.source {
                ValueSource::Row(at) => load(patch.bytes, &row[*at..]),
                ValueSource::Values(field, Values::Scattered { seed }) if self.row_bytes == 0 => {
                    Values::scattered(*field, *seed, stirred) << patch.shift
                }
                ValueSource::Values(field, values) => values.at(*field, index) << patch.shift,
            };
            (patch, value | patch.around)
        })
    }
}

impl Patch {
    fn new(field: Field, source: ValueSource, headers: &Headers) -> Self {
        let (at, around) = place(field, headers);
        let is_address = matches!(field, Field::IpSource | Field::IpDestination);
        let is_long_address = matches!(field, Field::Ipv6Source | Field::Ipv6Destination);
        let is_port = matches!(field, Field::PortSource | Field::PortDestination);
        let ones = |is_summed: bool| if is_summed { u64::MAX } else { 0 };
        let in_ip = ones(is_address || matches!(field, Field::IpProtocol | Field::Tos));
        let is_summed = (is_address || is_long_address) && headers.transport.sums_addresses();
        let in_transport = ones(is_summed || is_port);
        let (bytes, shift) = (width(field), shift(field));
        Patch { source, at, bytes, shift, around, in_ip, in_transport }
    }

    /// Returns the same patch at the second location of an Ethernet address in a backbone tag or
    /// ARP, if any.
    fn again(&self, field: Field, headers: &Headers) -> Option<Self> {
        let Layout { labels_at, network_at, .. } = headers.layout();
        let customer_at = labels_at - 2 - 12;
        let at = match (headers.network, field) {
            (_, Field::MacDestination) if headers.backbone.is_some() => customer_at,
            (_, Field::MacSource) if headers.backbone.is_some() => customer_at + 6,
            (Network::Arp { sender: None, .. }, Field::MacSource) => {
                network_at + arp::SENDER_MAC_AT
            }
            (Network::Arp { operation: arp::REPLY, target: None, .. }, Field::MacDestination) => {
                network_at + arp::TARGET_MAC_AT
            }
            _ => return None,
        };
        Some(Patch { at, ..self.clone() })
    }

    /// Merges with `next` if it is adjacent in the frame and in the row, and has the same
    /// checksums.
    fn join(&mut self, next: &Patch) -> bool {
        let (ValueSource::Row(from), ValueSource::Row(next_from)) = (&self.source, &next.source)
        else {
            return false;
        };
        let is_behind = self.places().end == next.at && from + self.bytes == *next_from;
        let is_alike = (self.in_ip, self.in_transport) == (next.in_ip, next.in_transport);
        let has_room = self.bytes + next.bytes <= PATCH_BYTES_MAX;
        let is_plain = self.around == 0 && next.around == 0;
        let joins = is_behind && is_alike && has_room && is_plain;
        self.bytes += if joins { next.bytes } else { 0 };
        joins
    }

    /// Returns the byte range in the frame.
    pub fn places(&self) -> Range<usize> {
        self.at..self.at + self.bytes
    }

    /// Returns whether the IPv4 checksum covers the field.
    pub fn is_in_ip(&self) -> bool {
        self.in_ip != 0
    }

    /// Returns whether the transport checksum covers the field.
    pub fn is_in_transport(&self) -> bool {
        self.in_transport != 0
    }

    /// Returns what a value adds to the sums of IPv4 and transport header: at most 33 bits.
    #[inline]
    pub fn sums(&self, value: u64) -> (u64, u64) {
        let halves = (value >> 32) + (value & 0xffff_ffff);
        (halves & self.in_ip, halves & self.in_transport)
    }

    /// Writes a value into a frame.
    #[inline]
    pub fn write(&self, value: u64, frame: &mut [u8]) {
        let (frame, bytes) = (&mut frame[self.at..], value.to_be_bytes());
        match self.bytes {
            2 => frame[..2].copy_from_slice(&bytes[6..]),
            4 => frame[..4].copy_from_slice(&bytes[4..]),
            6 => frame[..6].copy_from_slice(&bytes[2..]),
            _ => frame[..8].copy_from_slice(&bytes),
        }
    }

    /// Reads the value in a frame.
    ///
    /// The frame must extend [`PATCH_BYTES_MAX`] bytes from the offset, as all with room for a
    /// signature do.
    #[inline]
    pub fn read(&self, frame: &[u8]) -> u64 {
        load(self.bytes, &frame[self.at..])
    }
}

/// Returns the offset of a field's words in frames with these headers, and the other bits in them.
fn place(field: Field, headers: &Headers) -> (usize, u64) {
    let Layout { labels_at, network_at, transport_at, .. } = headers.layout();
    let is_arp = matches!(headers.network, Network::Arp { .. });
    let of_tag = |depth: usize| {
        let priority = headers.vlans.get(depth).map_or(0, |vlan| vlan.priority);
        (ethernet::HEADER_BYTES + depth * vlan::TAG_BYTES, u64::from(priority) << vlan::PCP_SHIFT)
    };
    match field {
        Field::MacDestination => (ethernet::DESTINATION.start, 0),
        Field::MacSource => (ethernet::SOURCE.start, 0),
        Field::VlanId => of_tag(0),
        Field::VlanTag => (of_tag(0).0, 0),
        Field::VlanInnerId => of_tag(1),
        Field::MplsLabel => {
            let bottom = if headers.labels.len() == 1 { u64::from(mpls::BOTTOM) } else { 0 };
            let rest = headers.labels.first().map_or(0, |first| {
                u64::from(first.class) << mpls::CLASS_SHIFT | u64::from(first.ttl)
            });
            (labels_at, rest | bottom)
        }
        // With version and header length in the same word.
        Field::Tos => (network_at, 0x45 << 8),
        // With the time to live in the same word.
        Field::IpProtocol => (network_at + ipv4::PROTOCOL_AT - 1, u64::from(headers.ttl) << 8),
        Field::IpSource if is_arp => (network_at + arp::SENDER_IP_AT, 0),
        Field::IpDestination if is_arp => (network_at + arp::TARGET_IP_AT, 0),
        Field::IpSource => (network_at + ipv4::SOURCE_AT, 0),
        Field::IpDestination => (network_at + ipv4::DESTINATION_AT, 0),
        // With version and traffic class in the same word.
        Field::FlowLabel => (network_at, 6 << 28 | u64::from(headers.tos) << 20),
        Field::Ipv6Source => (network_at + ipv6::SOURCE_AT + 8, 0),
        Field::Ipv6Destination => (network_at + ipv6::DESTINATION_AT + 8, 0),
        // UDP, TCP and SCTP have ports at the same offsets.
        Field::PortSource => (transport_at + udp::SOURCE_PORT_AT, 0),
        Field::PortDestination => (transport_at + udp::DESTINATION_PORT_AT, 0),
    }
}

/// Returns the length of a field's words in bytes.
#[inline]
fn width(field: Field) -> usize {
    match field {
        Field::Ipv6Source | Field::Ipv6Destination => 8,
        Field::MacSource | Field::MacDestination => 6,
        Field::IpSource | Field::IpDestination | Field::MplsLabel | Field::FlowLabel => 4,
        Field::VlanId | Field::VlanTag | Field::VlanInnerId => 2,
        Field::IpProtocol | Field::Tos => 2,
        Field::PortSource | Field::PortDestination => 2,
    }
}

/// Returns the distance of a field from the end of its words, in bits.
fn shift(field: Field) -> u32 {
    if field == Field::MplsLabel { mpls::LABEL_SHIFT } else { 0 }
}

/// Returns the first `count` (at least one) of [`PATCH_BYTES_MAX`] bytes as a number.
#[inline(always)]
fn load(count: usize, bytes: &[u8]) -> u64 {
    let bytes = bytes.first_chunk().expect("a signature or the end of the table follows");
    u64::from_be_bytes(*bytes) >> (8 * (PATCH_BYTES_MAX - count))
}
