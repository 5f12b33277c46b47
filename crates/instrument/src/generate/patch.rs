//! What varies from frame to frame: where it lies, and which value it takes.
//!
//! Values from lists of one group are kept side by side, as narrow as their fields: whatever the
//! number of fields, a frame costs one access to far memory for each group. Values that follow
//! from an index by calculation are calculated; that is quicker than to look them up.

use std::ops::Range;
use std::sync::Arc;

use packet::header::{ipv4, udp};

use crate::stream::{Field, Headers, Order, Values, Vary};

/// Fields that take their values from one index.
#[derive(Debug, Clone)]
pub struct Group {
    count: u64,
    order: Order,
    fields: usize,
    /// For each index a row: the values of those fields that have lists.
    rows: Arc<[u8]>,
    row_bytes: usize,
}

/// A field of a frame that varies.
#[derive(Debug, Clone)]
pub struct Patch {
    field: Field,
    source: Source,
    at: usize,
    /// Bits of the 16-bit word that are not the field's (a VLAN's priority).
    around: u64,
}

/// Where a field's values come from.
#[derive(Debug, Clone)]
enum Source {
    /// From the group's row, at this offset.
    Row(usize),
    /// By calculation.
    Values(Values),
}

impl Group {
    /// A valid stream's group without those fields that are constant after all, and its patches.
    pub fn new(
        vary: &Vary,
        constant: &[Field],
        headers: &Headers,
        ip_at: usize,
    ) -> (Self, Vec<Patch>) {
        let (mut patches, mut lists, mut row_bytes) = (Vec::new(), Vec::new(), 0);
        for (field, values) in vary.fields.iter().filter(|(field, _)| !constant.contains(field)) {
            let source = match values {
                Values::List(list) if !list.is_empty() => {
                    lists.push((list, width(*field)));
                    row_bytes += width(*field);
                    Source::Row(row_bytes - width(*field))
                }
                others => Source::Values(others.clone()),
            };
            patches.push(Patch::new(*field, source, headers, ip_at));
        }
        let mut rows = Vec::new();
        if !lists.is_empty() {
            for index in 0..vary.count as usize {
                for &(list, width) in &lists {
                    rows.extend_from_slice(&list[index].to_be_bytes()[8 - width..]);
                }
            }
        }
        let (count, order, fields) = (vary.count, vary.order, patches.len());
        (Group { count, order, fields, rows: rows.into(), row_bytes }, patches)
    }

    /// How many patches belong to it.
    #[inline]
    pub fn fields(&self) -> usize {
        self.fields
    }

    /// Appends the values that its patches take in frame `number`.
    #[inline]
    pub fn draw(&self, number: u64, patches: &[Patch], values: &mut Vec<u64>) {
        let index = match self.order {
            Order::Sequential if self.count == 1 => 0,
            order => order.index_at(number, self.count),
        };
        let row = &self.rows[index as usize * self.row_bytes..];
        for patch in patches {
            let value = match &patch.source {
                Source::Row(at) => load(patch.field, &row[*at..]),
                Source::Values(values) => values.at(patch.field, index),
            };
            values.push(value | patch.around);
        }
    }
}

impl Patch {
    fn new(field: Field, source: Source, headers: &Headers, ip_at: usize) -> Self {
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
        Patch { field, source, at, around }
    }

    /// Where in the frame it lies.
    pub fn places(&self) -> Range<usize> {
        self.at..self.at + width(self.field)
    }

    /// Whether the checksum of IPv4 covers the field.
    #[inline]
    pub fn is_address(&self) -> bool {
        matches!(self.field, Field::IpSource | Field::IpDestination)
    }

    /// Whether the UDP checksum covers the field.
    #[inline]
    pub fn is_summed(&self) -> bool {
        self.is_address() || matches!(self.field, Field::PortSource | Field::PortDestination)
    }

    /// Writes a drawn value where it belongs.
    #[inline]
    pub fn write(&self, value: u64, frame: &mut [u8]) {
        let (frame, bytes) = (&mut frame[self.at..], value.to_be_bytes());
        match width(self.field) {
            2 => frame[..2].copy_from_slice(&bytes[6..]),
            4 => frame[..4].copy_from_slice(&bytes[4..]),
            _ => frame[..6].copy_from_slice(&bytes[2..]),
        }
    }

    /// What lies where the value belongs.
    #[inline]
    pub fn read(&self, frame: &[u8]) -> u64 {
        load(self.field, &frame[self.at..])
    }
}

/// Bytes of a field and what surrounds it in its words.
#[inline]
fn width(field: Field) -> usize {
    match field {
        Field::MacSource | Field::MacDestination => 6,
        Field::IpSource | Field::IpDestination => 4,
        Field::VlanId | Field::PortSource | Field::PortDestination => 2,
    }
}

/// The first bytes, as many as the field has, as a number.
#[inline]
fn load(field: Field, bytes: &[u8]) -> u64 {
    match width(field) {
        2 => u16::from_be_bytes([bytes[0], bytes[1]]).into(),
        4 => u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).into(),
        _ => u64::from_be_bytes([0, 0, bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]]),
    }
}
