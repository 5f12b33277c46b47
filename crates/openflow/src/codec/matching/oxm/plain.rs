//! Fields of the basic class without a mask, which is how almost all of them come: what can be said of
//! them ahead stands in a table. Whatever is unusual about a field is left to who reads all of them.

use super::{CLASS_BASIC, FieldHeader, HEADER_BYTES};
use crate::codec::bytes::Reader;
use crate::model::matching::{Field, FieldMatch, VLAN_PRESENT};
use crate::version::{Version, oxm_bytes, oxm_since};

/// Bytes of the longest value that is plain.
const VALUE_BYTES_MAX: usize = 8;

/// Numbers in the header's seven bits.
const NUMBERS: usize = 128;

/// A field.
#[derive(Debug, Clone, Copy)]
struct Plain {
    field: Field,
    since: Version,
    /// The header that it has to have.
    header: u32,
    bytes: usize,
    ones: u64,
}

/// The plain fields by their numbers.
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

/// The field that comes next and how many bytes it has with its header, if it is a plain one that this
/// version has and asks for what it may. Nothing is read.
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
    // One bit says that there is a tag; an identifier without it means nothing.
    let tag = u128::from(value);
    let is_idle = plain.field == Field::VlanVid && (1..VLAN_PRESENT).contains(&tag);
    if value & !plain.ones != 0 || is_idle {
        return None;
    }
    let (value, mask) = (value.into(), plain.ones.into());
    Some((FieldMatch { field: plain.field, value, mask }, HEADER_BYTES + plain.bytes))
}
