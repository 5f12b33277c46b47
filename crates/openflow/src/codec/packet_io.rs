//! Encodes and decodes packet-in and packet-out.
//!
//! Source: OpenFlow 1.0.0 sections 5.3.6 and 5.4.1, 1.1.0 section A.4.1, 1.2 section A.4.1, 1.3.5
//! sections 7.3.7 and 7.4.1, 1.5.1 section 7.3.6.
//!
//! From 1.2 on a packet-in has its ingress port and the other pipeline fields in a match; a
//! packet-out has them there from 1.5 on.

use packet::error::{Malformed, MalformedReason};
use packet::field::Field;

use super::action::{put_actions, read_actions};
use super::bytes::{Put, Reader, put_length_at};
use super::flow::{put_buffer, read_buffer};
use super::matching::{put_match, read_match};
use super::port::{put_port, read_port};
use super::{Fault, MessagePart};
use crate::model::matching::Match;
use crate::model::packet_io::{COOKIE_NONE, PacketIn, PacketInReason, PacketOut};
use crate::model::port::{PortNo, reserved};
use crate::version::{ErrorCode, Version};

/// Bytes between match and frame of a packet-in, which align the frame's second header.
const PAD_BYTES: usize = 2;

/// Appends a packet-in's body.
pub(super) fn put_packet_in(
    version: Version,
    frame: &PacketIn,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    put_buffer(frame.buffer_id, out)?;
    let reason = reason_to_wire(version, frame.reason);
    match version {
        Version::V1_0 => {
            out.put_u16(frame.frame_bytes);
            put_port(version, frame.in_port, out)?;
            out.put_u8(reason);
            out.put_zeros(1);
        }
        Version::V1_1 => {
            put_port(version, frame.in_port, out)?;
            put_port(version, physical_port(frame), out)?;
            out.put_u16(frame.frame_bytes);
            out.put_u8(reason);
            out.put_u8(frame.table);
        }
        _ => {
            out.put_u16(frame.frame_bytes);
            out.put_u8(reason);
            out.put_u8(frame.table);
            if version >= Version::V1_3 {
                out.put_u64(frame.cookie);
            }
            put_fields(version, frame.in_port, &frame.fields, out)?;
            out.put_zeros(PAD_BYTES);
        }
    }
    out.extend_from_slice(&frame.data);
    Ok(())
}

/// Returns the physical port of the frame.
fn physical_port(frame: &PacketIn) -> PortNo {
    frame.fields.value(Field::InPhyPort).map_or(frame.in_port, |port| port as PortNo)
}

/// Returns the reason's code; `OFPR_ACTION` for reasons of later versions.
pub(super) fn reason_to_wire(version: Version, reason: PacketInReason) -> u8 {
    const ACTION: u8 = 1;
    match reason {
        PacketInReason::NoMatch => 0,
        PacketInReason::Action => ACTION,
        PacketInReason::InvalidTtl if version >= Version::V1_2 => 2,
        PacketInReason::ActionSet if version >= Version::V1_4 => 3,
        PacketInReason::Group if version >= Version::V1_4 => 4,
        PacketInReason::PacketOut if version >= Version::V1_4 => 5,
        _ => ACTION,
    }
}

/// Reads the reason's code.
pub(super) fn read_reason(version: Version, reader: &mut Reader) -> Result<PacketInReason, Fault> {
    let at = reader.at();
    Ok(match reader.u8()? {
        0 => PacketInReason::NoMatch,
        1 => PacketInReason::Action,
        2 if version >= Version::V1_2 => PacketInReason::InvalidTtl,
        3 if version >= Version::V1_4 => PacketInReason::ActionSet,
        4 if version >= Version::V1_4 => PacketInReason::Group,
        5 if version >= Version::V1_4 => PacketInReason::PacketOut,
        other => return Err(Malformed { at, why: MalformedReason::BadValue(other.into()) }.into()),
    })
}

/// Appends ingress port and other fields as a match.
fn put_fields(
    version: Version,
    in_port: PortNo,
    fields: &Match,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let mut all = fields.clone();
    if in_port != reserved::NONE {
        all = all.with(Field::InPort, in_port);
    }
    put_match(version, &all, out)
}

/// Reads a match and extracts the ingress port.
fn read_fields(version: Version, reader: &mut Reader) -> Result<(PortNo, Match), Fault> {
    let fields = read_match(version, reader)?;
    let in_port = fields.value(Field::InPort).map_or(reserved::NONE, |port| port as PortNo);
    Ok((in_port, fields.without(Field::InPort)))
}

/// Reads a packet-in's body.
pub(super) fn read_packet_in(version: Version, reader: &mut Reader) -> Result<PacketIn, Fault> {
    let buffer_id = read_buffer(reader)?;
    let mut frame = PacketIn { buffer_id, cookie: COOKIE_NONE, ..PacketIn::default() };
    match version {
        Version::V1_0 => {
            frame.frame_bytes = reader.u16()?;
            frame.in_port = read_port(version, reader)?;
            frame.reason = read_reason(version, reader)?;
            reader.skip(1)?;
        }
        Version::V1_1 => {
            frame.in_port = read_port(version, reader)?;
            let physical = read_port(version, reader)?;
            if physical != frame.in_port {
                frame.fields = Match::ANY.with(Field::InPhyPort, physical);
            }
            frame.frame_bytes = reader.u16()?;
            frame.reason = read_reason(version, reader)?;
            frame.table = reader.u8()?;
        }
        _ => {
            frame.frame_bytes = reader.u16()?;
            frame.reason = read_reason(version, reader)?;
            frame.table = reader.u8()?;
            if version >= Version::V1_3 {
                frame.cookie = reader.u64()?;
            }
            (frame.in_port, frame.fields) = read_fields(version, reader)?;
            reader.skip(PAD_BYTES)?;
        }
    }
    frame.data = reader.rest().to_vec();
    Ok(frame)
}

/// Appends a packet-out's body.
pub(super) fn put_packet_out(
    version: Version,
    frame: &PacketOut,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    if version < Version::V1_5 && frame.fields != Match::ANY {
        return Err(MessagePart::Bit("fields of a packet-out"));
    }
    put_buffer(frame.buffer_id, out)?;
    if version < Version::V1_5 {
        put_port(version, frame.in_port, out)?;
    }
    let length_at = out.len();
    out.put_u16(0);
    match version {
        Version::V1_0 => {}
        Version::V1_5 => {
            out.put_zeros(2);
            put_fields(version, frame.in_port, &frame.fields, out)?;
        }
        _ => out.put_zeros(6),
    }
    let actions_at = out.len();
    put_actions(version, &frame.actions, out)?;
    put_length_at("actions", out, actions_at, length_at)?;
    out.extend_from_slice(&frame.data);
    Ok(())
}

/// Reads a packet-out's body.
pub(super) fn read_packet_out(version: Version, reader: &mut Reader) -> Result<PacketOut, Fault> {
    let buffer_id = read_buffer(reader)?;
    let mut in_port = reserved::NONE;
    if version < Version::V1_5 {
        in_port = read_port(version, reader)?;
    }
    let at = reader.at();
    let length = usize::from(reader.u16()?);
    let mut fields = Match::ANY;
    match version {
        Version::V1_0 => {}
        Version::V1_5 => {
            reader.skip(2)?;
            (in_port, fields) = read_fields(version, reader)?;
        }
        _ => reader.skip(6)?,
    }
    let mut body = reader.within(length).map_err(|_| {
        let malformed = Malformed { at, why: MalformedReason::BadLength(length) };
        Fault::new(malformed, ErrorCode::RequestBadLength)
    })?;
    let actions = read_actions(version, &mut body)?;
    let data = reader.rest().to_vec();
    Ok(PacketOut { buffer_id, in_port, fields, actions, data })
}
