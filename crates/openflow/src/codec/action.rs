//! Encodes and decodes actions.
//!
//! Source: OpenFlow 1.0.0 section 5.2.4, 1.1.0 section A.2.5 and later.
//!
//! - Each action has a type and a length, which is a multiple of eight.
//! - A wrong type, length or value is a fault with a bad action error.
//! - In 1.0, Nicira actions express what the specification has no action for.

mod nicira;

use packet::error::{Malformed, MalformedReason};

use super::bytes::{Put, Reader, pad, put_length_of_eights};
use super::matching::oxm;
use super::port::{port_from_wire, port_to_wire};
use super::{Fault, MessagePart};
use crate::model::action::{Action, CopyField};
use crate::model::matching::{Field, FieldMatch, VLAN_PRESENT, bits_mac};
use crate::version::{ActionKind, ErrorCode, Version};

/// Bytes of an action's type and length, and of the smallest action.
const ACTION_BYTES_MIN: usize = 8;

/// Appends actions.
pub(super) fn put_actions(
    version: Version,
    actions: &[Action],
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    actions.iter().try_for_each(|action| put_action(version, action, out))
}

fn put_action(version: Version, action: &Action, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    check_value(action).map_err(|(field, value)| MessagePart::Value { field, value })?;
    let start = out.len();
    match kind_in(version, action) {
        Some(kind) => {
            out.put_u16(kind.code(version).ok_or(MessagePart::Action(kind))?);
            out.put_u16(0);
            put_arguments(version, action, out)?;
        }
        None if version == Version::V1_0 => {
            out.put_u16(ActionKind::Experimenter.code(version).expect("1.0 has vendor actions"));
            out.put_u16(0);
            nicira::put_arguments(action, out)?;
        }
        None => {
            return Err(match action {
                Action::SetField(row) => MessagePart::Field(row.field),
                action => MessagePart::Action(action.kind()),
            });
        }
    }
    put_length_of_eights("action", out, start, 2)
}

/// Returns the type that expresses an action in a version, if there is one.
fn kind_in(version: Version, action: &Action) -> Option<ActionKind> {
    let kind = match action {
        Action::SetField(row) if version <= Version::V1_1 => {
            ActionKind::of_field(version, row.field).filter(|_| row.is_exact())?
        }
        // In 1.0 these add a missing tag; no action of a later version does.
        Action::SetVlanVid(_) | Action::SetVlanPcp(_) if version != Version::V1_0 => return None,
        action => action.kind(),
    };
    kind.code(version).map(|_| kind)
}

fn put_arguments(version: Version, action: &Action, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    match action {
        Action::Output { port, bytes_max } if version == Version::V1_0 => {
            out.put_u16(port_to_wire(*port)?);
            out.put_u16(*bytes_max);
        }
        Action::Output { port, bytes_max } => {
            out.put_u32(*port);
            out.put_u16(*bytes_max);
            out.put_zeros(6);
        }
        Action::Enqueue { port, queue } => {
            out.put_u16(port_to_wire(*port)?);
            out.put_zeros(6);
            out.put_u32(*queue);
        }
        Action::Group(number) | Action::SetQueue(number) | Action::Meter(number) => {
            out.put_u32(*number);
        }
        Action::SetField(row) if version <= Version::V1_1 => put_own_field(row, out),
        Action::SetField(row) => put_field(version, row, out)?,
        Action::CopyField(copy) => put_copy(version, copy, out)?,
        Action::PushVlan(value)
        | Action::PushMpls(value)
        | Action::PopMpls(value)
        | Action::PushPbb(value)
        | Action::SetVlanVid(value)
        | Action::SetTransportSrc(value)
        | Action::SetTransportDst(value) => {
            out.put_u16(*value);
            out.put_zeros(2);
        }
        Action::SetVlanPcp(value) | Action::SetMplsTtl(value) | Action::SetNwTtl(value) => {
            out.put_u8(*value);
            out.put_zeros(3);
        }
        Action::PopVlan
        | Action::PopPbb
        | Action::CopyTtlOut
        | Action::CopyTtlIn
        | Action::DecMplsTtl
        | Action::DecNwTtl => out.put_zeros(4),
        Action::Experimenter(vendor) => super::message::put_experimenter(vendor, out),
    }
    Ok(())
}

/// Appends the value of a field whose action sets only that field (1.0 and 1.1).
fn put_own_field(row: &FieldMatch, out: &mut Vec<u8>) {
    match row.field {
        Field::EthSrc | Field::EthDst => {
            out.extend_from_slice(&bits_mac(row.value));
            out.put_zeros(6);
        }
        Field::VlanVid => {
            out.put_u16((row.value & 0xfff) as u16);
            out.put_zeros(2);
        }
        Field::Ipv4Src | Field::Ipv4Dst | Field::MplsLabel => out.put_u32(row.value as u32),
        Field::IpDscp => {
            out.put_u8((row.value as u8) << 2);
            out.put_zeros(3);
        }
        _ => {
            out.put_u8(row.value as u8);
            out.put_zeros(3);
        }
    }
}

/// Appends a set-field action's field and its padding.
fn put_field(version: Version, row: &FieldMatch, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    if !is_settable(version, row.field) {
        return Err(MessagePart::Field(row.field));
    }
    if !row.is_exact() && (version < Version::V1_5 || !row.field.maskable()) {
        return Err(MessagePart::Mask(row.field));
    }
    let start = out.len() - 4;
    oxm::put_field(version, row, out)?;
    pad(out, start);
    Ok(())
}

/// Returns whether a set-field action may set the field.
fn is_settable(version: Version, field: Field) -> bool {
    match field {
        Field::InPort
        | Field::InPhyPort
        | Field::Ipv6Exthdr
        | Field::ActsetOutput
        | Field::PacketType => false,
        Field::Metadata => version >= Version::V1_5,
        _ => true,
    }
}

fn put_copy(version: Version, copy: &CopyField, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let start = out.len() - 4;
    out.put_u16(copy.bits);
    out.put_u16(copy.src_offset);
    out.put_u16(copy.dst_offset);
    out.put_zeros(2);
    for field in [copy.src, copy.dst] {
        let place = oxm::place(version, field).ok_or(MessagePart::Field(field))?;
        out.put_u32(place.header(false).to_wire());
    }
    pad(out, start);
    Ok(())
}

/// Reads actions up to the end.
pub(super) fn read_actions(version: Version, reader: &mut Reader) -> Result<Vec<Action>, Fault> {
    let mut actions = Vec::new();
    while reader.left() > 0 {
        actions.push(read_action(version, reader)?);
    }
    Ok(actions)
}

fn bad_length(malformed: Malformed) -> Fault {
    Fault::new(malformed, ErrorCode::ActionBadLength)
}

fn read_action(version: Version, reader: &mut Reader) -> Result<Action, Fault> {
    let start = reader.at();
    let code = reader.u16().map_err(bad_length)?;
    let length = usize::from(reader.u16().map_err(bad_length)?);
    if length < ACTION_BYTES_MIN || !length.is_multiple_of(8) {
        return Err(bad_length(Malformed {
            at: start + 2,
            why: MalformedReason::BadLength(length),
        }));
    }
    let mut body = reader.within(length - 4).map_err(bad_length)?;
    let Some(kind) = ActionKind::from_code(version, code) else {
        return Err(Fault::value(start, code, ErrorCode::ActionBadType));
    };
    let action = match kind {
        ActionKind::SetField => return read_set_field(version, &mut body),
        ActionKind::CopyField => read_copy(version, &mut body)?,
        ActionKind::Experimenter => read_experimenter(version, &mut body).map_err(bad_length)?,
        kind => {
            let action = read_arguments(version, kind, &mut body).map_err(bad_length)?;
            body.finish().map_err(bad_length)?;
            action
        }
    };
    check_value(&action)
        .map_err(|(_, value)| Fault::value(start + 4, value, ErrorCode::ActionBadArgument))?;
    Ok(action)
}

/// Reads a value and the padding after it.
fn padded<'a, T>(
    body: &mut Reader<'a>,
    padding: usize,
    read: impl Fn(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let value = read(body)?;
    body.skip(padding)?;
    Ok(value)
}

fn read_arguments(
    version: Version,
    kind: ActionKind,
    body: &mut Reader,
) -> Result<Action, Malformed> {
    let word = |body: &mut Reader| padded(body, 2, |body| body.u16());
    let byte = |body: &mut Reader| padded(body, 3, |body| body.u8());
    let field = |field: Field, value: u128| {
        Action::SetField(FieldMatch { field, value, mask: field.ones() })
    };
    let mac = |body: &mut Reader| padded(body, 6, |body| body.array::<6>());
    Ok(match kind {
        ActionKind::Output if version == Version::V1_0 => {
            Action::Output { port: port_from_wire(body.u16()?), bytes_max: body.u16()? }
        }
        ActionKind::Output => {
            let port = body.u32()?;
            Action::Output { port, bytes_max: padded(body, 6, Reader::u16)? }
        }
        ActionKind::Enqueue => {
            let port = port_from_wire(body.u16()?);
            body.skip(6)?;
            Action::Enqueue { port, queue: body.u32()? }
        }
        ActionKind::SetVlanVid if version == Version::V1_0 => Action::SetVlanVid(word(body)?),
        // Shifts an ID that is too large above the tag bit, so that the range check fails.
        ActionKind::SetVlanVid => match word(body)? {
            id @ 0..=0xfff => field(Field::VlanVid, VLAN_PRESENT | u128::from(id)),
            id => field(Field::VlanVid, u128::from(id) << 4),
        },
        ActionKind::SetVlanPcp if version == Version::V1_0 => Action::SetVlanPcp(byte(body)?),
        ActionKind::SetVlanPcp => field(Field::VlanPcp, byte(body)?.into()),
        ActionKind::SetEthSrc => Action::set_mac(Field::EthSrc, mac(body)?),
        ActionKind::SetEthDst => Action::set_mac(Field::EthDst, mac(body)?),
        ActionKind::SetIpSrc => field(Field::Ipv4Src, body.u32()?.into()),
        ActionKind::SetIpDst => field(Field::Ipv4Dst, body.u32()?.into()),
        // Moves the two bits below the DSCP above it, so that the range check fails.
        ActionKind::SetIpDscp => field(Field::IpDscp, byte(body)?.rotate_right(2).into()),
        ActionKind::SetIpEcn => field(Field::IpEcn, byte(body)?.into()),
        ActionKind::SetMplsLabel => field(Field::MplsLabel, body.u32()?.into()),
        ActionKind::SetMplsTc => field(Field::MplsTc, byte(body)?.into()),
        ActionKind::SetTransportSrc => Action::SetTransportSrc(word(body)?),
        ActionKind::SetTransportDst => Action::SetTransportDst(word(body)?),
        ActionKind::SetMplsTtl => Action::SetMplsTtl(byte(body)?),
        ActionKind::SetNwTtl => Action::SetNwTtl(byte(body)?),
        ActionKind::PushVlan => Action::PushVlan(word(body)?),
        ActionKind::PushMpls => Action::PushMpls(word(body)?),
        ActionKind::PopMpls => Action::PopMpls(word(body)?),
        ActionKind::PushPbb => Action::PushPbb(word(body)?),
        ActionKind::SetQueue => Action::SetQueue(body.u32()?),
        ActionKind::Group => Action::Group(body.u32()?),
        ActionKind::Meter => Action::Meter(body.u32()?),
        kind => {
            body.skip(4)?;
            plain(kind)
        }
    })
}

/// Returns the action of a type without arguments.
fn plain(kind: ActionKind) -> Action {
    match kind {
        ActionKind::PopVlan => Action::PopVlan,
        ActionKind::PopPbb => Action::PopPbb,
        ActionKind::CopyTtlOut => Action::CopyTtlOut,
        ActionKind::CopyTtlIn => Action::CopyTtlIn,
        ActionKind::DecMplsTtl => Action::DecMplsTtl,
        ActionKind::DecNwTtl => Action::DecNwTtl,
        other => unreachable!("{other} has arguments"),
    }
}

fn read_experimenter(version: Version, body: &mut Reader) -> Result<Action, Malformed> {
    let known = if version == Version::V1_0 { nicira::read(body.clone()) } else { None };
    Ok(match known {
        Some(action) => action,
        None => Action::Experimenter(super::message::read_experimenter(body)?),
    })
}

/// Reads a set-field action: exactly one field, and fewer than eight bytes of padding.
fn read_set_field(version: Version, body: &mut Reader) -> Result<Action, Fault> {
    let at = body.at();
    let set_error = |wrong: oxm::FieldFault| {
        let answer = match wrong.answer {
            ErrorCode::MatchBadLength => ErrorCode::ActionBadSetLength,
            ErrorCode::MatchBadField => ErrorCode::ActionBadSetType,
            _ => ErrorCode::ActionBadSetArgument,
        };
        Fault::new(wrong.malformed, answer)
    };
    let oxm::DecodedField::Known(row, header) =
        oxm::read_field(version, body).map_err(set_error)?
    else {
        return Err(Fault::value(at, 0u8, ErrorCode::ActionBadSetType));
    };
    if !is_settable(version, row.field) {
        return Err(Fault::value(at, row.field as u64, ErrorCode::ActionBadSetType));
    }
    if header.has_mask && version < Version::V1_5 {
        return Err(Fault::value(at, row.field as u64, ErrorCode::ActionBadSetType));
    }
    if !row.is_exact() && !row.field.maskable() {
        return Err(Fault::value(at, row.field as u64, ErrorCode::ActionBadSetMask));
    }
    if body.left() >= 8 {
        return Err(bad_length(Malformed {
            at: body.at(),
            why: MalformedReason::BadLength(body.left()),
        }));
    }
    let action = Action::SetField(row);
    check_value(&action)
        .map_err(|(_, value)| Fault::value(at + 4, value, ErrorCode::ActionBadSetArgument))?;
    Ok(action)
}

fn read_copy(version: Version, body: &mut Reader) -> Result<Action, Fault> {
    let (bits, src_offset) = (body.u16().map_err(bad_length)?, body.u16().map_err(bad_length)?);
    let dst_offset = padded(body, 2, Reader::u16).map_err(bad_length)?;
    let mut field = || {
        let at = body.at();
        let wire = body.u32().map_err(bad_length)?;
        let header = oxm::FieldHeader::from_wire(wire);
        match oxm::field_of(version, header, None) {
            Some((field, place)) if header == place.header(false) => Ok(field),
            Some(_) => Err(Fault::value(at, wire, ErrorCode::ActionBadSetLength)),
            None => Err(Fault::value(at, wire, ErrorCode::ActionBadSetType)),
        }
    };
    let (src, dst) = (field()?, field()?);
    if body.left() >= 8 {
        return Err(bad_length(Malformed {
            at: body.at(),
            why: MalformedReason::BadLength(body.left()),
        }));
    }
    if !is_settable(version, dst) {
        return Err(Fault::value(body.at(), dst as u64, ErrorCode::ActionBadSetType));
    }
    Ok(Action::CopyField(CopyField { bits, src, src_offset, dst, dst_offset }))
}

/// Rejects values that the header field cannot hold, and invalid Ethernet types.
fn check_value(action: &Action) -> Result<(), (&'static str, u64)> {
    let fits = |name, value: u64, is_right: bool| {
        if is_right { Ok(()) } else { Err((name, value)) }
    };
    match *action {
        Action::SetVlanVid(id) => fits("vlan id", id.into(), id <= 0xfff),
        Action::SetVlanPcp(pcp) => fits("vlan priority", pcp.into(), pcp <= 7),
        Action::PushVlan(kind) => fits("VLAN type", kind.into(), matches!(kind, 0x8100 | 0x88a8)),
        Action::PushMpls(kind) => fits("MPLS type", kind.into(), matches!(kind, 0x8847 | 0x8848)),
        Action::PushPbb(kind) => fits("PBB type", kind.into(), kind == 0x88e7),
        Action::CopyField(copy) => {
            let ends = [(copy.src, copy.src_offset), (copy.dst, copy.dst_offset)];
            let fit = ends
                .iter()
                .all(|&(field, offset)| u32::from(offset) + u32::from(copy.bits) <= field.bits());
            fits("bits to copy", copy.bits.into(), copy.bits > 0 && fit)
        }
        Action::SetField(row) => {
            let is_tag = row.field != Field::VlanVid
                || row.mask & VLAN_PRESENT == 0
                || row.value & VLAN_PRESENT != 0;
            let fit = row.value & !row.field.ones() == 0 && is_tag && row.mask != 0;
            fits(row.field.name(), row.value as u64, fit)
        }
        _ => Ok(()),
    }
}
