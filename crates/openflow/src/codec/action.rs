//! Actions as bytes.
//!
//! Source: OpenFlow 1.0.0 section 5.2.4. Each action says its type and its length, a multiple of
//! eight; a wrong type, length or value is answered with an error of the bad-action family.

use packet::error::{Malformed, Why};

use super::bytes::{Put, Reader};
use super::matching::in_range;
use super::port::{port_from_wire, port_to_wire};
use super::{Fault, What};
use crate::header::MESSAGE_BYTES_MAX;
use crate::model::action::{Action, Experimenter};
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

fn put_action(version: Version, action: &Action, out: &mut Vec<u8>) -> Result<(), What> {
    let kind = action.kind();
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
            out.put_u8(in_range("vlan priority", *pcp, 7)?);
            out.put_zeros(3);
        }
        Action::StripVlan => out.put_zeros(4),
        Action::SetEthSrc(mac) | Action::SetEthDst(mac) => {
            out.extend_from_slice(mac);
            out.put_zeros(6);
        }
        Action::SetIpSrc(ip) | Action::SetIpDst(ip) => out.extend_from_slice(&ip.octets()),
        Action::SetIpDscp(dscp) => {
            out.put_u8(in_range("DSCP", *dscp, 63)? << 2);
            out.put_zeros(3);
        }
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
    }
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
        ActionKind::StripVlan => Action::StripVlan,
        ActionKind::SetEthSrc => Action::SetEthSrc(body.array()?),
        ActionKind::SetEthDst => Action::SetEthDst(body.array()?),
        ActionKind::SetIpSrc => Action::SetIpSrc(body.array::<4>()?.into()),
        ActionKind::SetIpDst => Action::SetIpDst(body.array::<4>()?.into()),
        // The two bits below the DSCP end up above it, where the range check finds them.
        ActionKind::SetIpDscp => Action::SetIpDscp(body.u8()?.rotate_right(2)),
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
    };
    body.skip(padding(kind))?;
    Ok(action)
}

/// Bytes of padding at the end of an action.
fn padding(kind: ActionKind) -> usize {
    match kind {
        ActionKind::SetVlanPcp | ActionKind::SetIpDscp => 3,
        ActionKind::SetVlanVid | ActionKind::SetTransportSrc | ActionKind::SetTransportDst => 2,
        ActionKind::StripVlan => 4,
        ActionKind::SetEthSrc | ActionKind::SetEthDst => 6,
        ActionKind::Output
        | ActionKind::SetIpSrc
        | ActionKind::SetIpDst
        | ActionKind::Enqueue
        | ActionKind::Experimenter => 0,
    }
}

/// Refuses values that the header field cannot hold.
fn check_range(action: &Action, at: usize) -> Result<(), Fault> {
    let (value, most) = match *action {
        Action::SetVlanVid(vid) => (vid, 0xfff),
        Action::SetVlanPcp(pcp) => (pcp.into(), 7),
        Action::SetIpDscp(dscp) => (dscp.into(), 63),
        _ => return Ok(()),
    };
    if value > most {
        let malformed = Malformed { at, why: Why::BadValue(value.into()) };
        return Err(Fault::new(malformed, ErrorCode::ActionBadArgument));
    }
    Ok(())
}
