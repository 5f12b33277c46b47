//! Actions as bytes.
//!
//! Source: OpenFlow 1.0.0 section 5.2.4. Each action says its type and its length, a multiple of
//! eight; a wrong type, length or value is answered with an error of the bad-action family.

use packet::error::{Malformed, Why};

use super::bytes::{Put, Reader};
use super::port::{port_from_wire, port_to_wire};
use super::{Fault, What};
use crate::header::MESSAGE_BYTES_MAX;
use crate::model::action::{Action, Experimenter};
use crate::model::matching::{Field, FieldMatch, bits_mac};
use crate::version::{ActionKind, ErrorCode, Version};

/// Bytes of an action's type and length, and the smallest action.
const ACTION_BYTES_MIN: usize = 8;

/// Appends actions.
pub(super) fn put_actions(
    version: Version,
    actions: &[Action],
    out: &mut Vec<u8>,
) -> Result<(), What> {
    actions.iter().try_for_each(|action| put_action(version, action, out))
}

/// The kind by which a version says an action.
fn kind_in(version: Version, action: &Action) -> Result<ActionKind, What> {
    let kind = action.kind();
    match action {
        Action::SetField(field) if kind.code(version).is_none() => {
            let own = ActionKind::of_field(version, field.field);
            if own.is_some() && !field.is_exact() {
                return Err(What::Mask(field.field));
            }
            own.ok_or(What::Field(field.field))
        }
        _ => Ok(kind),
    }
}

fn put_action(version: Version, action: &Action, out: &mut Vec<u8>) -> Result<(), What> {
    let kind = kind_in(version, action)?;
    let start = out.len();
    out.put_u16(kind.code(version).ok_or(What::Action(kind))?);
    out.put_u16(0);
    put_arguments(version, action, out)?;
    let bytes = out.len() - start;
    if !bytes.is_multiple_of(8) {
        return Err(What::Value { field: "action length", value: bytes as u64 });
    }
    let length = u16::try_from(bytes).map_err(|_| What::TooLong {
        field: "action",
        bytes,
        bytes_max: MESSAGE_BYTES_MAX,
    })?;
    out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn put_arguments(version: Version, action: &Action, out: &mut Vec<u8>) -> Result<(), What> {
    match action {
        Action::Output { port, bytes_max } => {
            out.put_u16(port_to_wire(version, *port)?);
            out.put_u16(*bytes_max);
        }
        Action::SetVlanVid(vid) => {
            if *vid > 0xfff {
                return Err(What::Value { field: "vlan id", value: (*vid).into() });
            }
            out.put_u16(*vid);
            out.put_zeros(2);
        }
        Action::SetVlanPcp(pcp) => {
            if *pcp > 7 {
                return Err(What::Value { field: "vlan priority", value: (*pcp).into() });
            }
            out.put_u8(*pcp);
            out.put_zeros(3);
        }
        Action::PopVlan => out.put_zeros(4),
        Action::SetField(row) => put_own_field(row, out),
        Action::SetTransportSrc(port) | Action::SetTransportDst(port) => {
            out.put_u16(*port);
            out.put_zeros(2);
        }
        Action::Enqueue { port, queue } => {
            out.put_u16(port_to_wire(version, *port)?);
            out.put_zeros(6);
            out.put_u32(*queue);
        }
        Action::Experimenter(vendor) => super::message::put_experimenter(vendor, out),
        other => return Err(What::Action(other.kind())),
    }
    Ok(())
}

/// Appends the value of a field whose action has the field's name.
fn put_own_field(row: &FieldMatch, out: &mut Vec<u8>) {
    match row.field {
        Field::EthSrc | Field::EthDst => {
            out.extend_from_slice(&bits_mac(row.value));
            out.put_zeros(6);
        }
        Field::Ipv4Src | Field::Ipv4Dst => out.put_u32(row.value as u32),
        Field::IpDscp => {
            out.put_u8((row.value as u8) << 2);
            out.put_zeros(3);
        }
        _ => out.put_zeros(4),
    }
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
        return Err(bad_length(Malformed { at: start + 2, why: Why::BadLength(length) }));
    }
    let mut body = reader.within(length - 4).map_err(bad_length)?;
    let Some(kind) = ActionKind::from_code(version, code) else {
        let malformed = Malformed { at: start, why: Why::BadValue(code.into()) };
        return Err(Fault::new(malformed, ErrorCode::ActionBadType));
    };
    let action = read_arguments(version, kind, &mut body).map_err(bad_length)?;
    body.finish().map_err(bad_length)?;
    check_range(&action, start + 4)?;
    Ok(action)
}

fn read_arguments(
    version: Version,
    kind: ActionKind,
    body: &mut Reader,
) -> Result<Action, Malformed> {
    let action = match kind {
        ActionKind::Output => {
            Action::Output { port: port_from_wire(version, body.u16()?), bytes_max: body.u16()? }
        }
        ActionKind::SetVlanVid => Action::SetVlanVid(body.u16()?),
        ActionKind::SetVlanPcp => Action::SetVlanPcp(body.u8()?),
        ActionKind::PopVlan => Action::PopVlan,
        ActionKind::SetEthSrc => Action::set_mac(Field::EthSrc, body.array()?),
        ActionKind::SetEthDst => Action::set_mac(Field::EthDst, body.array()?),
        ActionKind::SetIpSrc => Action::set(Field::Ipv4Src, body.u32()?),
        ActionKind::SetIpDst => Action::set(Field::Ipv4Dst, body.u32()?),
        // The two bits below the DSCP end up above it, where the range check finds them.
        ActionKind::SetIpDscp => {
            let value = body.u8()?.rotate_right(2).into();
            let field = Field::IpDscp;
            Action::SetField(FieldMatch { field, value, mask: field.ones() })
        }
        ActionKind::SetTransportSrc => Action::SetTransportSrc(body.u16()?),
        ActionKind::SetTransportDst => Action::SetTransportDst(body.u16()?),
        ActionKind::Enqueue => {
            let port = port_from_wire(version, body.u16()?);
            body.skip(6)?;
            Action::Enqueue { port, queue: body.u32()? }
        }
        ActionKind::Experimenter => Action::Experimenter(Experimenter {
            experimenter: body.u32()?,
            body: body.rest().to_vec(),
        }),
        _ => return Err(Malformed { at: body.at(), why: Why::BadValue(kind as u64) }),
    };
    body.skip(padding(kind))?;
    Ok(action)
}

/// Bytes of padding at the end of an action.
fn padding(kind: ActionKind) -> usize {
    match kind {
        ActionKind::SetVlanPcp | ActionKind::SetIpDscp => 3,
        ActionKind::SetVlanVid | ActionKind::SetTransportSrc | ActionKind::SetTransportDst => 2,
        ActionKind::PopVlan => 4,
        ActionKind::SetEthSrc | ActionKind::SetEthDst => 6,
        _ => 0,
    }
}

/// Refuses values that the header field cannot hold.
fn check_range(action: &Action, at: usize) -> Result<(), Fault> {
    let (value, most) = match *action {
        Action::SetVlanVid(vid) => (vid, 0xfff),
        Action::SetVlanPcp(pcp) => (pcp.into(), 7),
        Action::SetField(row) if row.field == Field::IpDscp => (row.value as u16, 63),
        _ => return Ok(()),
    };
    if value > most {
        let malformed = Malformed { at, why: Why::BadValue(value.into()) };
        return Err(Fault::new(malformed, ErrorCode::ActionBadArgument));
    }
    Ok(())
}
