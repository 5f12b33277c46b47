//! Fast path for basic fields without a mask, which nearly all fields are.
//!
//! A table has everything that is known of them in advance. The general decoder handles all other
//! fields.

use super::{CLASS_BASIC, FieldHeader, HEADER_BYTES};
use crate::codec::bytes::Reader;
use crate::model::matching::{Field, FieldMatch, VLAN_PRESENT};
use crate::version::{Version, oxm_bytes, oxm_since};

/// Maximum bytes of a value in the table.
const VALUE_BYTES_MAX: usize = 8;

/// Number of values of the header's seven-bit field number.
const NUMBERS: usize = 128;

/// A field in the table.
#[derive(Debug, Clone, Copy)]
struct Plain {
    field: Field,
    since: Version,
    /// The expected header.
    header: u32,
    bytes: usize,
    ones: u64,
}

/// The fields by number.
static FIELDS: [Option<Plain>; NUMBERS] = {
    let mut fields = [None; NUMBERS];
    let mut at = 0;
    while at < Field::ALL.len() {
        let field = Field::ALL[at];
        let ((number, since), bytes) = (oxm_since(field), oxm_bytes(field));
        if bytes <= VALUE_BYTES_MAX {
            let length = bytes as u8;
            let header = FieldHeader { class: CLASS_BASIC, number, has_mask: false, length };
            let (header, ones) = (header.to_wire(), field.ones() as u64);
            fields[number as usize] = Some(Plain { field, since, header, bytes, ones });
        }
        at += 1;
    }
    fields
};

/// Returns the next field and its bytes with the header, if this version has it and its value is
/// valid.
///
/// The reader does not advance.
#[inline]
pub(super) fn look(version: Version, reader: &Reader) -> Option<(FieldMatch, usize)> {
    let rest = reader.ahead();
    let header = u32::from_be_bytes(*rest.first_chunk::<HEADER_BYTES>()?);
    let number = FieldHeader::from_wire(header).number;
    let plain = FIELDS[usize::from(number)].as_ref()?;
    if header != plain.header || version < plain.since {
        return None;
    }
    let body = &rest[HEADER_BYTES..];
    let value = match body.first_chunk::<VALUE_BYTES_MAX>() {
        Some(bytes) => u64::from_be_bytes(*bytes) >> (64 - 8 * plain.bytes),
        None => {
            body.get(..plain.bytes)?.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
        }
    };
    // A VLAN ID without the tag bit is invalid.
    let tag = u128::from(value);
    let is_idle = plain.field == Field::VlanVid && (1..VLAN_PRESENT).contains(&tag);
    if value & !plain.ones != 0 || is_idle {
        return None;
    }
    let (value, mask) = (value.into(), plain.ones.into());
    Some((FieldMatch { field: plain.field, value, mask }, HEADER_BYTES + plain.bytes))
}
