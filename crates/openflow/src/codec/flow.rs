//! Entries as bytes: flow-mod and flow-removed.
//!
//! Source: OpenFlow 1.0.0 sections 5.3.3 and 5.4.2.

use packet::error::{Malformed, Why};
use packet::time::Nanos;

use super::bytes::{Put, Reader};
use super::instruction::{put_action_list, read_action_list};
use super::matching::{put_match, read_match};
use super::port::{port_from_wire, port_to_wire};
use super::{Fault, What};
use crate::model::flow::{
    BufferId, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason,
};
use crate::version::{ErrorCode, Version};

/// Buffer number that means none.
const BUFFER_NONE: u32 = 0xffff_ffff;

/// The commands, in the order of their codes.
const COMMANDS: [FlowModCommand; 5] = [
    FlowModCommand::Add,
    FlowModCommand::Modify,
    FlowModCommand::ModifyStrict,
    FlowModCommand::Delete,
    FlowModCommand::DeleteStrict,
];

const SECOND: u64 = 1_000_000_000;

/// Appends a buffer's number.
pub(super) fn put_buffer(buffer: Option<BufferId>, out: &mut Vec<u8>) -> Result<(), What> {
    if buffer == Some(BUFFER_NONE) {
        return Err(What::Value { field: "buffer", value: BUFFER_NONE.into() });
    }
    out.put_u32(buffer.unwrap_or(BUFFER_NONE));
    Ok(())
}

/// Reads a buffer's number.
pub(super) fn read_buffer(reader: &mut Reader) -> Result<Option<BufferId>, Malformed> {
    let id = reader.u32()?;
    Ok((id != BUFFER_NONE).then_some(id))
}

/// Appends a span as seconds and nanoseconds.
pub(super) fn put_span(span: Nanos, out: &mut Vec<u8>) -> Result<(), What> {
    let seconds = span.0 / SECOND;
    let seconds =
        u32::try_from(seconds).map_err(|_| What::Value { field: "seconds", value: seconds })?;
    out.put_u32(seconds);
    out.put_u32((span.0 % SECOND) as u32);
    Ok(())
}

/// Reads a span; nanoseconds that make a second or more are cut to just below it.
pub(super) fn read_span(reader: &mut Reader) -> Result<Nanos, Malformed> {
    let (seconds, nanos) = (reader.u32()?, reader.u32()?);
    Ok(Nanos(u64::from(seconds) * SECOND + u64::from(nanos).min(SECOND - 1)))
}

/// Appends a flow-mod's body.
pub(super) fn put_flow_mod(
    version: Version,
    change: &FlowMod,
    out: &mut Vec<u8>,
) -> Result<(), What> {
    put_match(version, &change.matching, out)?;
    out.put_u64(change.cookie);
    out.put_u8(change.table);
    out.put_u8(change.command as u8);
    out.put_u16(change.idle_timeout_s);
    out.put_u16(change.hard_timeout_s);
    out.put_u16(change.priority);
    put_buffer(change.buffer_id, out)?;
    out.put_u16(port_to_wire(version, change.out_port)?);
    out.put_u16(change.flags.to_wire(version).map_err(What::Bit)? as u16);
    put_action_list(version, &change.instructions, out)
}

/// Reads a flow-mod's body. A flag that the version does not have is refused: what it asks for
/// would not be done.
pub(super) fn read_flow_mod(version: Version, reader: &mut Reader) -> Result<FlowMod, Fault> {
    let matching = read_match(version, reader)?;
    let cookie = reader.u64()?;
    let (table, command) = read_table_command(reader)?;
    let (idle_timeout_s, hard_timeout_s) = (reader.u16()?, reader.u16()?);
    let priority = reader.u16()?;
    let buffer_id = read_buffer(reader)?;
    let out_port = port_from_wire(version, reader.u16()?);
    let flags = read_flags(version, reader)?;
    let instructions = read_action_list(version, reader)?;
    Ok(FlowMod {
        command,
        table,
        matching,
        priority,
        cookie,
        idle_timeout_s,
        hard_timeout_s,
        buffer_id,
        out_port,
        flags,
        instructions,
        ..FlowMod::default()
    })
}

/// The command; its upper byte is a table for those who have agreed on it (Nicira).
fn read_table_command(reader: &mut Reader) -> Result<(u8, FlowModCommand), Fault> {
    let at = reader.at();
    let [table, code] = reader.array()?;
    match COMMANDS.get(usize::from(code)) {
        Some(&command) => Ok((table, command)),
        None => {
            let malformed = Malformed { at, why: Why::BadValue(code.into()) };
            Err(Fault::new(malformed, ErrorCode::FlowModBadCommand))
        }
    }
}

fn read_flags(version: Version, reader: &mut Reader) -> Result<FlowModFlags, Fault> {
    let at = reader.at();
    let (flags, unknown) = FlowModFlags::from_wire(version, reader.u16()?.into());
    if unknown != 0 {
        let malformed = Malformed { at, why: Why::BadValue(unknown.into()) };
        return Err(Fault::new(malformed, ErrorCode::FlowModUnsupported));
    }
    Ok(flags)
}

/// Appends a flow-removed's body.
pub(super) fn put_flow_removed(
    version: Version,
    removed: &FlowRemoved,
    out: &mut Vec<u8>,
) -> Result<(), What> {
    put_match(version, &removed.matching, out)?;
    out.put_u64(removed.cookie);
    out.put_u16(removed.priority);
    out.put_u8(reason_to_wire(version, removed.reason)?);
    out.put_zeros(1);
    put_span(removed.age, out)?;
    out.put_u16(removed.idle_timeout_s);
    out.put_zeros(2);
    out.put_u64(removed.packets);
    out.put_u64(removed.bytes);
    Ok(())
}

/// Reads a flow-removed's body.
pub(super) fn read_flow_removed(
    version: Version,
    reader: &mut Reader,
) -> Result<FlowRemoved, Fault> {
    let matching = read_match(version, reader)?;
    let cookie = reader.u64()?;
    let priority = reader.u16()?;
    let reason = read_reason(version, reader)?;
    reader.skip(1)?;
    let age = read_span(reader)?;
    let idle_timeout_s = reader.u16()?;
    reader.skip(2)?;
    let (packets, bytes) = (reader.u64()?, reader.u64()?);
    Ok(FlowRemoved {
        reason,
        table: 0,
        matching,
        priority,
        cookie,
        age,
        idle_timeout_s,
        hard_timeout_s: 0,
        packets,
        bytes,
    })
}

/// How many of the reasons a version has.
fn reasons(version: Version) -> usize {
    match version {
        Version::V1_0 => 3,
        Version::V1_1 | Version::V1_2 | Version::V1_3 => 4,
        Version::V1_4 | Version::V1_5 => 6,
    }
}

pub(super) fn reason_to_wire(version: Version, reason: FlowRemovedReason) -> Result<u8, What> {
    let known = FlowRemovedReason::ALL[..reasons(version)].iter();
    let place = known.clone().position(|&other| other == reason);
    place.map(|place| place as u8).ok_or(What::Bit(reason.name()))
}

fn read_reason(version: Version, reader: &mut Reader) -> Result<FlowRemovedReason, Fault> {
    let (at, code) = (reader.at(), reader.u8()?);
    match FlowRemovedReason::ALL[..reasons(version)].get(usize::from(code)) {
        Some(&reason) => Ok(reason),
        None => Err(Malformed { at, why: Why::BadValue(code.into()) }.into()),
    }
}
