//! Packet-in and packet-out as bytes.
//!
//! Source: OpenFlow 1.0.0 sections 5.3.6 and 5.4.1.

use packet::error::{Malformed, Why};

use super::action::{put_actions, read_actions};
use super::bytes::{Put, Reader};
use super::flow::{put_buffer, read_buffer};
use super::port::{port_from_wire, port_to_wire};
use super::{Fault, What};
use crate::model::matching::Match;
use crate::model::packet_io::{COOKIE_NONE, PacketIn, PacketInReason, PacketOut};
use crate::version::{ErrorCode, Version};

/// Appends a packet-in's body.
pub(super) fn put_packet_in(
    version: Version,
    frame: &PacketIn,
    out: &mut Vec<u8>,
) -> Result<(), What> {
    put_buffer(frame.buffer_id, out)?;
    out.put_u16(frame.frame_bytes);
    out.put_u16(port_to_wire(version, frame.in_port)?);
    out.put_u8(match frame.reason {
        PacketInReason::NoMatch => 0,
        _ => 1,
    });
    out.put_zeros(1);
    out.extend_from_slice(&frame.data);
    Ok(())
}

/// Reads a packet-in's body.
pub(super) fn read_packet_in(version: Version, reader: &mut Reader) -> Result<PacketIn, Fault> {
    let buffer_id = read_buffer(reader)?;
    let frame_bytes = reader.u16()?;
    let in_port = port_from_wire(version, reader.u16()?);
    let at = reader.at();
    let reason = match reader.u8()? {
        0 => PacketInReason::NoMatch,
        1 => PacketInReason::Action,
        other => return Err(Malformed { at, why: Why::BadValue(other.into()) }.into()),
    };
    reader.skip(1)?;
    let data = reader.rest().to_vec();
    Ok(PacketIn {
        buffer_id,
        frame_bytes,
        in_port,
        fields: Match::ANY,
        reason,
        table: 0,
        cookie: COOKIE_NONE,
        data,
    })
}

/// Appends a packet-out's body.
pub(super) fn put_packet_out(
    version: Version,
    frame: &PacketOut,
    out: &mut Vec<u8>,
) -> Result<(), What> {
    put_buffer(frame.buffer_id, out)?;
    out.put_u16(port_to_wire(version, frame.in_port)?);
    let length_at = out.len();
    out.put_u16(0);
    put_actions(version, &frame.actions, out)?;
    let bytes = out.len() - length_at - 2;
    let length = u16::try_from(bytes).map_err(|_| What::TooLong {
        field: "actions",
        bytes,
        bytes_max: u16::MAX.into(),
    })?;
    out[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&frame.data);
    Ok(())
}

/// Reads a packet-out's body.
pub(super) fn read_packet_out(version: Version, reader: &mut Reader) -> Result<PacketOut, Fault> {
    let buffer_id = read_buffer(reader)?;
    let in_port = port_from_wire(version, reader.u16()?);
    let at = reader.at();
    let length = usize::from(reader.u16()?);
    let mut body = reader.within(length).map_err(|_| {
        let malformed = Malformed { at, why: Why::BadLength(length) };
        Fault::new(malformed, ErrorCode::RequestBadLength)
    })?;
    let actions = read_actions(version, &mut body)?;
    let data = reader.rest().to_vec();
    Ok(PacketOut { buffer_id, in_port, fields: Match::ANY, actions, data })
}
