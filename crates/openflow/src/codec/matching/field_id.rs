//! Encodes and decodes field IDs without values.
//!
//! Source: OpenFlow 1.3.5 sections 7.2.3.2 and 7.3.5.5.2 (`oxm_ids`).
//!
//! - An ID is the OXM header: class, number, mask bit and length of the value. An experimenter
//!   field has the experimenter ID after it.
//! - Decoding keeps IDs that the version does not have, because switches report fields of later
//!   versions.

use super::super::bytes::Put;
use super::super::property::Property;
use super::super::{Fault, MessagePart};
use super::oxm::{CLASS_BASIC, CLASS_EXPERIMENTER};
use crate::model::matching::field_id::FieldId;
use crate::version::{Version, oxm_bytes, oxm_field, oxm_number};

/// Mask bit of the header.
const MASK_BIT: u32 = 1 << 8;

/// The header without mask bit and length.
const NAME_BITS: u32 = 0xffff_fe00;

/// Appends field IDs.
pub(in crate::codec) fn put_field_ids(
    version: Version,
    ids: &[FieldId],
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    ids.iter().try_for_each(|id| put_field_id(version, id, out))
}

fn put_field_id(version: Version, id: &FieldId, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    match *id {
        FieldId::Known { field, masked } => {
            let number = oxm_number(version, field).ok_or(MessagePart::Bit(field.name()))?;
            let bytes = oxm_bytes(field) << u32::from(masked);
            let class = u32::from(CLASS_BASIC) << 16;
            let mask_bit = if masked { MASK_BIT } else { 0 };
            out.put_u32(class | u32::from(number) << 9 | mask_bit | bytes as u32);
        }
        FieldId::Other { header, experimenter } => {
            out.put_u32(header);
            if let Some(whose) = experimenter {
                out.put_u32(whose);
            }
        }
    }
    Ok(())
}

/// Reads a property that is a list of field IDs.
pub(in crate::codec) fn read_field_ids(
    version: Version,
    property: Property,
) -> Result<Vec<FieldId>, Fault> {
    property.list(|body| {
        let header = body.u32()?;
        let is_others = header >> 16 == u32::from(CLASS_EXPERIMENTER);
        let experimenter = if is_others { Some(body.u32()?) } else { None };
        let other = FieldId::Other { header, experimenter };
        Ok(known(version, header).unwrap_or(other))
    })
}

/// Returns the field with this header, if the specification defines it.
fn known(version: Version, header: u32) -> Option<FieldId> {
    if header >> 16 != u32::from(CLASS_BASIC) {
        return None;
    }
    let field = oxm_field(version, ((header & NAME_BITS) >> 9 & 0x7f) as u8)?;
    Some(FieldId::Known { field, masked: header & MASK_BIT != 0 })
}
