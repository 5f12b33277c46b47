//! Nicira actions, for actions that 1.0 does not have.
//!
//! Source: the `NXAST_*` structures of Open vSwitch. A subtype follows the vendor ID. Actions
//! without an equivalent in later versions remain experimenter data.
//! ```text
//! reg_load: subtype:2 offset:10bits bits-1:6bits field:4 value:8
//! reg_move: subtype:2 bits:2 source_offset:2 destination_offset:2 source:4 destination:4
//! ```

use super::super::MessagePart;
use super::super::bytes::{Put, Reader, pad};
use super::super::matching::oxm;
use crate::model::action::{Action, CopyField};
use crate::model::matching::{Field, FieldMatch};
use crate::model::nicira::NICIRA;
use crate::version::Version;

const SET_QUEUE: u16 = 4;
const REG_MOVE: u16 = 6;
const REG_LOAD: u16 = 7;
const DEC_TTL: u16 = 18;
const PUSH_MPLS: u16 = 23;
const POP_MPLS: u16 = 24;
const SET_MPLS_TTL: u16 = 25;
const DEC_MPLS_TTL: u16 = 26;
const REG_LOAD2: u16 = 33;

/// Appends vendor ID, subtype and arguments.
pub(super) fn put_arguments(action: &Action, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    out.put_u32(NICIRA);
    match action {
        Action::SetQueue(queue) => {
            out.put_u16(SET_QUEUE);
            out.put_zeros(2);
            out.put_u32(*queue);
        }
        Action::DecNwTtl => put_plain(DEC_TTL, out),
        Action::DecMplsTtl => put_plain(DEC_MPLS_TTL, out),
        Action::PushMpls(kind) => put_word(PUSH_MPLS, *kind, out),
        Action::PopMpls(kind) => put_word(POP_MPLS, *kind, out),
        Action::SetMplsTtl(ttl) => {
            out.put_u16(SET_MPLS_TTL);
            out.put_u8(*ttl);
            out.put_zeros(5);
        }
        Action::CopyField(copy) => {
            out.put_u16(REG_MOVE);
            out.put_u16(copy.bits);
            out.put_u16(copy.src_offset);
            out.put_u16(copy.dst_offset);
            out.put_u32(header(copy.src).ok_or(MessagePart::Field(copy.src))?);
            out.put_u32(header(copy.dst).ok_or(MessagePart::Field(copy.dst))?);
        }
        Action::SetField(row) => put_field(row, out)?,
        other => return Err(MessagePart::Action(other.kind())),
    }
    Ok(())
}

fn put_plain(subtype: u16, out: &mut Vec<u8>) {
    out.put_u16(subtype);
    out.put_zeros(6);
}

fn put_word(subtype: u16, word: u16, out: &mut Vec<u8>) {
    out.put_u16(subtype);
    out.put_u16(word);
    out.put_zeros(4);
}

/// Returns the header that these actions use for a field.
///
/// There is none for fields that NXM encodes differently from OXM, and for the VLAN tag, which NXM
/// combines with its priority.
fn header(field: Field) -> Option<u32> {
    if matches!(field, Field::InPort | Field::IpDscp) {
        return None;
    }
    Some(oxm::place(Version::V1_0, field)?.header(false).to_wire())
}

fn field_of(wire: u32) -> Option<Field> {
    let (field, place) = oxm::field_of(Version::V1_0, oxm::FieldHeader::from_wire(wire), None)?;
    (header(field) == Some(wire) && place.header(false).to_wire() == wire).then_some(field)
}

/// Appends a reg_load for up to 64 contiguous bits, otherwise a reg_load2 with a mask.
fn put_field(row: &FieldMatch, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let wire = header(row.field).ok_or(MessagePart::Field(row.field))?;
    let offset = row.mask.trailing_zeros();
    let bits = row.mask.count_ones();
    let in_a_row = row.mask >> offset == u128::MAX >> (128 - bits);
    if bits <= 64 && in_a_row {
        out.put_u16(REG_LOAD);
        out.put_u16((offset << 6 | (bits - 1)) as u16);
        out.put_u32(wire);
        out.put_u64((row.value >> offset) as u64);
        return Ok(());
    }
    let start = out.len();
    out.put_u16(REG_LOAD2);
    out.put_zeros(6);
    oxm::put_field(Version::V1_0, row, out)?;
    pad(out, start);
    Ok(())
}

/// Decodes the body of a vendor action, if it is one of these.
pub(super) fn read(mut body: Reader) -> Option<Action> {
    if body.u32().ok()? != NICIRA {
        return None;
    }
    let subtype = body.u16().ok()?;
    let action = match subtype {
        SET_QUEUE => {
            body.skip(2).ok()?;
            Action::SetQueue(body.u32().ok()?)
        }
        DEC_TTL | DEC_MPLS_TTL => {
            body.skip(6).ok()?;
            if subtype == DEC_TTL { Action::DecNwTtl } else { Action::DecMplsTtl }
        }
        PUSH_MPLS | POP_MPLS => {
            let kind = super::padded(&mut body, 4, Reader::u16).ok()?;
            if subtype == PUSH_MPLS { Action::PushMpls(kind) } else { Action::PopMpls(kind) }
        }
        SET_MPLS_TTL => Action::SetMplsTtl(super::padded(&mut body, 5, Reader::u8).ok()?),
        REG_MOVE => {
            let (bits, src_offset) = (body.u16().ok()?, body.u16().ok()?);
            let dst_offset = body.u16().ok()?;
            let (src, dst) = (field_of(body.u32().ok()?)?, field_of(body.u32().ok()?)?);
            Action::CopyField(CopyField { bits, src, src_offset, dst, dst_offset })
        }
        REG_LOAD => read_load(&mut body)?,
        REG_LOAD2 => {
            body.skip(6).ok()?;
            let oxm::DecodedField::Known(row, _) =
                oxm::read_field(Version::V1_0, &mut body).ok()?
            else {
                return None;
            };
            header(row.field)?;
            body.skip(body.left().min(7)).ok()?;
            Action::SetField(row)
        }
        _ => return None,
    };
    // An invalid action remains experimenter data.
    (body.left() == 0 && super::check_value(&action).is_ok()).then_some(action)
}

fn read_load(body: &mut Reader) -> Option<Action> {
    let place = body.u16().ok()?;
    let (offset, bits) = (u32::from(place >> 6), u32::from(place & 63) + 1);
    let field = field_of(body.u32().ok()?)?;
    let value = u128::from(body.u64().ok()?);
    let ones = u128::MAX >> (128 - bits);
    if offset + bits > field.bits() || value & !ones != 0 {
        return None;
    }
    Some(Action::SetField(FieldMatch::masked(field, value << offset, ones << offset)))
}
