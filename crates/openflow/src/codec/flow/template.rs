//! Templates that encode flow statistics rows of the same form quickly.
//!
//! Source: OpenFlow 1.2.0 section A.3.5.2, 1.4.1 section 7.3.5.2 (`ofp_flow_stats`).
//!
//! Large tables have many entries that differ in their values only. The switch encodes one row of
//! each form. For the others it copies that row and overwrites the values.
//!
//! Invariant: the result equals the encoding of the row itself.

use super::super::bytes::put_length;
use super::super::multipart::MultipartRow;
use super::super::span::SECOND;
use super::super::{NotExpressible, encode};
use crate::header::{MESSAGE_BYTES_MAX, Xid};
use crate::model::message::Message;
use crate::model::multipart::{FlowStats, MultipartReply, MultipartReplyBody};
use crate::version::Version;

/// Offset of the match in a row, and of its fields.
const MATCH_AT: usize = 48;
const FIELDS_AT: usize = MATCH_AT + 4;
/// The OXM class of the specification's fields, the upper half of a field header.
const CLASS_BASIC: [u8; 2] = [0x80, 0x00];
/// The mask bit in a field's third byte.
const HAS_MASK: u8 = 1;

/// An encoded row, with the positions of its field values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowTemplate {
    bytes: Vec<u8>,
    /// Offset and length of each field's value, in the order of the match fields.
    values: Vec<(u16, u16)>,
}

impl FlowTemplate {
    /// Returns the template for rows like this one.
    ///
    /// There is none for versions other than 1.2 to 1.4, and for matches with masks, packet type or
    /// experimenter fields.
    pub fn of(version: Version, row: &FlowStats) -> Option<FlowTemplate> {
        if !(Version::V1_2..=Version::V1_4).contains(&version) {
            return None;
        }
        let (mut bytes, mut values) = (Vec::new(), Vec::new());
        row.put(version, &mut bytes).ok()?;
        let mut at = FIELDS_AT;
        for field in row.matching.fields() {
            let &[high, low, number, length] = bytes.get(at..at + 4)?.first_chunk()?;
            if [high, low] != CLASS_BASIC || number & HAS_MASK != 0 || !field.is_exact() {
                return None;
            }
            values.push((at as u16 + 4, length.into()));
            at += 4 + usize::from(length);
        }
        let is_plain = row.matching.experimenter().is_empty()
            && row.matching.get(packet::field::Field::PacketType).is_none();
        is_plain.then_some(FlowTemplate { bytes, values })
    }

    /// Returns the bytes of each row.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether a row has no bytes; always false.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends a row with these numbers. The caller puts the field values into the returned row.
    ///
    /// Flags, table and instructions are those of the template.
    #[inline]
    pub fn begin<'a>(&'a self, numbers: &FlowNumbers, out: &'a mut Vec<u8>) -> FlowRow<'a> {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let row = &mut out[start..];
        let (seconds, nanos) = (numbers.age.0 / SECOND, numbers.age.0 % SECOND);
        if let Ok(seconds) = u32::try_from(seconds) {
            row[4..8].copy_from_slice(&seconds.to_be_bytes());
            row[8..12].copy_from_slice(&(nanos as u32).to_be_bytes());
        }
        row[12..14].copy_from_slice(&numbers.priority.to_be_bytes());
        row[14..16].copy_from_slice(&numbers.idle_timeout_s.to_be_bytes());
        row[16..18].copy_from_slice(&numbers.hard_timeout_s.to_be_bytes());
        row[24..32].copy_from_slice(&numbers.cookie.to_be_bytes());
        row[32..40].copy_from_slice(&numbers.packets.to_be_bytes());
        row[40..48].copy_from_slice(&numbers.bytes.to_be_bytes());
        FlowRow { row, values: self.values.iter() }
    }
}

/// A row that still needs its field values.
pub struct FlowRow<'a> {
    row: &'a mut [u8],
    values: std::slice::Iter<'a, (u16, u16)>,
}

impl FlowRow<'_> {
    /// Sets the value of the next field, in the order of the match fields; ignores excess values.
    #[inline]
    pub fn put(&mut self, value: u128) {
        let Some(&(at, bytes)) = self.values.next() else { return };
        let row = &mut self.row[usize::from(at)..];
        // A constant length compiles to one store, a variable one to a call.
        match bytes {
            1 => row[0] = value as u8,
            2 => row[..2].copy_from_slice(&(value as u16).to_be_bytes()),
            4 => row[..4].copy_from_slice(&(value as u32).to_be_bytes()),
            6 => row[..6].copy_from_slice(&(value as u64).to_be_bytes()[2..]),
            8 => row[..8].copy_from_slice(&(value as u64).to_be_bytes()),
            _ => {
                let bytes = usize::from(bytes);
                row[..bytes].copy_from_slice(&value.to_be_bytes()[16 - bytes..]);
            }
        }
    }
}

/// The numbers in which rows of one form differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowNumbers {
    /// Time since the entry was installed.
    pub age: packet::time::Nanos,
    /// Its priority.
    pub priority: u16,
    /// Its idle timeout.
    pub idle_timeout_s: u16,
    /// Its hard timeout.
    pub hard_timeout_s: u16,
    /// Its cookie.
    pub cookie: u64,
    /// Matched frames.
    pub packets: u64,
    /// Matched bytes.
    pub bytes: u64,
}

/// Appends a row without a template. Returns false if the version cannot express it.
pub fn put_flow_row(version: Version, row: &FlowStats, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let said = row.put(version, out).is_ok();
    if !said {
        out.truncate(start);
    }
    said
}

/// Maximum bytes of the rows in one message.
pub const ROWS_BYTES_MAX: usize = MESSAGE_BYTES_MAX - 16;

/// Appends a part of a flow statistics reply with these encoded rows.
pub fn put_flow_rows(
    version: Version,
    xid: Xid,
    more: bool,
    rows: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), NotExpressible> {
    let none = Message::MultipartReply(MultipartReply {
        more,
        body: MultipartReplyBody::Flow(Vec::new()),
    });
    let start = out.len();
    encode(version, xid, &none, out)?;
    out.extend_from_slice(rows);
    put_length("message", out, start, 2).map_err(|what| {
        out.truncate(start);
        NotExpressible { version, what }
    })
}

#[cfg(test)]
mod tests {
    use packet::field::Field;
    use packet::time::Nanos;

    use super::*;
    use crate::model::action::Action;
    use crate::model::instruction::Instruction;
    use crate::model::matching::Match;

    fn row(seed: u64) -> FlowStats {
        FlowStats {
            table: 3,
            matching: Match::ANY
                .with(Field::InPort, seed as u32)
                .with_mac(Field::EthSrc, [2, 0, 0, 0, 0, seed as u8])
                .untagged()
                .with(Field::EthType, 0x800u16)
                .with(Field::IpProto, 17u8)
                .with(Field::Ipv4Src, seed as u32 * 77)
                .with(Field::UdpDst, seed as u16),
            priority: seed as u16,
            cookie: seed << 32,
            age: Nanos(seed * 1_234_567_891),
            idle_timeout_s: seed as u16 + 1,
            hard_timeout_s: seed as u16 + 2,
            importance: 9,
            packets: seed * 5,
            bytes: seed * 300,
            instructions: Instruction::apply(vec![Action::output(2)]),
            ..FlowStats::default()
        }
    }

    fn numbers(row: &FlowStats) -> FlowNumbers {
        FlowNumbers {
            age: row.age,
            priority: row.priority,
            idle_timeout_s: row.idle_timeout_s,
            hard_timeout_s: row.hard_timeout_s,
            cookie: row.cookie,
            packets: row.packets,
            bytes: row.bytes,
        }
    }

    #[test]
    fn an_entry_from_a_template_equals_its_encoding() {
        for version in [Version::V1_2, Version::V1_3, Version::V1_4] {
            let template = FlowTemplate::of(version, &row(1)).unwrap();
            for seed in [1, 2, 255, 65_000] {
                let (row, mut wanted, mut got) = (row(seed), vec![7], vec![7]);
                assert!(put_flow_row(version, &row, &mut wanted));
                let mut begun = template.begin(&numbers(&row), &mut got);
                row.matching.fields().iter().for_each(|field| begun.put(field.value));
                assert_eq!(got, wanted, "{version} {seed}");
                assert_eq!(got.len(), 1 + template.len());
            }
        }
    }

    #[test]
    fn entries_of_other_forms_have_no_template() {
        for version in [Version::V1_0, Version::V1_1, Version::V1_5] {
            assert_eq!(FlowTemplate::of(version, &row(1)), None);
        }
        let masked = Match::ANY.with_masked(Field::Metadata, 1u8, 1u8);
        let masked = FlowStats { matching: masked, ..row(1) };
        assert_eq!(FlowTemplate::of(Version::V1_4, &masked), None);
    }
}
