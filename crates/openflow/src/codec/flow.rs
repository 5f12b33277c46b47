//! Encodes and decodes flow-mod and flow-removed.
//!
//! Source: OpenFlow 1.0.0 sections 5.3.3 and 5.4.2, 1.1.0 sections A.3.4.1 and A.4.2, 1.5.1 section
//! 7.4.2.
//!
//! In 1.0 the upper byte of a flow-mod's command is zero. With Nicira's table ID extension enabled,
//! it is a table ID.

pub(super) mod counters;
mod monitor;
pub(super) mod stats;
pub(super) mod template;

use packet::error::{Malformed, MalformedReason};

use super::bytes::{Put, Reader};
use super::instruction::{put_instructions, read_instructions};
use super::matching::{put_match, read_match};
use super::port::{put_port, read_port};
use super::span::{put_span, read_span};
use super::{Fault, MessagePart};
use crate::model::flow::{
    BufferId, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason,
};
use crate::model::group::GROUP_ANY;
use crate::model::instruction::Counters;
use crate::model::matching::Match;
use crate::model::port::stats::COUNTER_UNKNOWN;
use crate::version::{ErrorCode, Version};
use counters::{put_counters, read_counters};

/// Buffer ID for no buffer.
const BUFFER_NONE: u32 = 0xffff_ffff;

/// The commands, in the order of their codes.
const COMMANDS: [FlowModCommand; 5] = [
    FlowModCommand::Add,
    FlowModCommand::Modify,
    FlowModCommand::ModifyStrict,
    FlowModCommand::Delete,
    FlowModCommand::DeleteStrict,
];

/// Appends a buffer ID.
pub(super) fn put_buffer(buffer: Option<BufferId>, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    if buffer == Some(BUFFER_NONE) {
        return Err(MessagePart::Value { field: "buffer", value: BUFFER_NONE.into() });
    }
    out.put_u32(buffer.unwrap_or(BUFFER_NONE));
    Ok(())
}

/// Reads a buffer ID.
pub(super) fn read_buffer(reader: &mut Reader) -> Result<Option<BufferId>, Malformed> {
    let id = reader.u32()?;
    Ok((id != BUFFER_NONE).then_some(id))
}

/// Appends a flow-mod's body.
pub(super) fn put_flow_mod(
    version: Version,
    change: &FlowMod,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    match version {
        Version::V1_0 => {
            put_match(version, &change.matching, out)?;
            put_head_1_0(change, out)?;
        }
        _ => {
            put_head(version, change, out)?;
            put_match(version, &change.matching, out)?;
        }
    }
    put_instructions(version, &change.instructions, out)
}

/// Appends the fields between match and actions in 1.0, which precede both in Nicira's flow-mod.
pub(super) fn put_head_1_0(change: &FlowMod, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let version = Version::V1_0;
    if change.cookie_mask != 0 {
        return Err(MessagePart::Bit("cookie_mask"));
    }
    if change.out_group != GROUP_ANY {
        return Err(MessagePart::Bit("out_group"));
    }
    if change.importance != 0 {
        return Err(MessagePart::Bit("importance"));
    }
    out.put_u64(change.cookie);
    put_order(change, out)?;
    put_port(version, change.out_port, out)?;
    out.put_u16(change.flags.to_wire(version).map_err(MessagePart::Bit)? as u16);
    Ok(())
}

/// Appends the fields that have the same order in every version.
fn put_order(change: &FlowMod, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    out.put_u8(change.table);
    out.put_u8(change.command as u8);
    out.put_u16(change.idle_timeout_s);
    out.put_u16(change.hard_timeout_s);
    out.put_u16(change.priority);
    put_buffer(change.buffer_id, out)
}

fn put_head(version: Version, change: &FlowMod, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    if change.importance != 0 && version < Version::V1_4 {
        return Err(MessagePart::Bit("importance"));
    }
    out.put_u64(change.cookie);
    out.put_u64(change.cookie_mask);
    put_order(change, out)?;
    out.put_u32(change.out_port);
    out.put_u32(change.out_group);
    out.put_u16(change.flags.to_wire(version).map_err(MessagePart::Bit)? as u16);
    out.put_u16(change.importance);
    Ok(())
}

/// Reads a flow-mod's body.
///
/// Rejects a flag that the version does not have, because the switch cannot do what it requests.
pub(super) fn read_flow_mod(version: Version, reader: &mut Reader) -> Result<FlowMod, Fault> {
    let mut change = match version {
        Version::V1_0 => {
            let matching = read_match(version, reader)?;
            FlowMod { matching, ..read_head_1_0(reader)? }
        }
        _ => {
            let head = read_head(version, reader)?;
            FlowMod { matching: read_match(version, reader)?, ..head }
        }
    };
    change.instructions = read_instructions(version, reader)?;
    Ok(change)
}

pub(super) fn read_head_1_0(reader: &mut Reader) -> Result<FlowMod, Fault> {
    let version = Version::V1_0;
    let cookie = reader.u64()?;
    let at = reader.at();
    let [table, code] = reader.array()?;
    Ok(FlowMod {
        cookie,
        table,
        command: command_of(at, code)?,
        idle_timeout_s: reader.u16()?,
        hard_timeout_s: reader.u16()?,
        priority: reader.u16()?,
        buffer_id: read_buffer(reader)?,
        out_port: read_port(version, reader)?,
        flags: read_flags(version, reader)?,
        ..FlowMod::default()
    })
}

fn read_head(version: Version, reader: &mut Reader) -> Result<FlowMod, Fault> {
    let (cookie, cookie_mask) = (reader.u64()?, reader.u64()?);
    let table = reader.u8()?;
    let at = reader.at();
    let code = reader.u8()?;
    let mut change = FlowMod {
        cookie,
        cookie_mask,
        table,
        command: command_of(at, code)?,
        idle_timeout_s: reader.u16()?,
        hard_timeout_s: reader.u16()?,
        priority: reader.u16()?,
        buffer_id: read_buffer(reader)?,
        out_port: reader.u32()?,
        out_group: reader.u32()?,
        flags: read_flags(version, reader)?,
        ..FlowMod::default()
    };
    let importance = reader.u16()?;
    if version >= Version::V1_4 {
        change.importance = importance;
    }
    Ok(change)
}

fn command_of(at: usize, code: u8) -> Result<FlowModCommand, Fault> {
    COMMANDS
        .get(usize::from(code))
        .copied()
        .ok_or_else(|| Fault::value(at, code, ErrorCode::FlowModBadCommand))
}

fn read_flags(version: Version, reader: &mut Reader) -> Result<FlowModFlags, Fault> {
    let at = reader.at();
    let (flags, unknown) = FlowModFlags::from_wire(version, reader.u16()?.into());
    if unknown != 0 {
        return Err(Fault::value(at, unknown, ErrorCode::FlowModBadFlags));
    }
    Ok(flags)
}

/// Appends a flow-removed's body.
pub(super) fn put_flow_removed(
    version: Version,
    removed: &FlowRemoved,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let reason = reason_to_wire(version, removed.reason)?;
    match version {
        Version::V1_0 => {
            put_match(version, &removed.matching, out)?;
            put_removed(version, removed, reason, out)
        }
        Version::V1_5 => {
            out.put_u8(removed.table);
            out.put_u8(reason);
            out.put_u16(removed.priority);
            out.put_u16(removed.idle_timeout_s);
            out.put_u16(removed.hard_timeout_s);
            out.put_u64(removed.cookie);
            put_match(version, &removed.matching, out)?;
            let counters = Counters {
                age: Some(removed.age),
                packets: known(removed.packets),
                bytes: known(removed.bytes),
                ..Counters::default()
            };
            put_counters(&counters, out)
        }
        _ => {
            put_removed(version, removed, reason, out)?;
            put_match(version, &removed.matching, out)
        }
    }
}

/// Returns the counter, if the switch supports it.
pub(super) fn known(counter: u64) -> Option<u64> {
    (counter != COUNTER_UNKNOWN).then_some(counter)
}

fn put_removed(
    version: Version,
    removed: &FlowRemoved,
    reason: u8,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_u64(removed.cookie);
    out.put_u16(removed.priority);
    out.put_u8(reason);
    out.put_u8(if version == Version::V1_0 { 0 } else { removed.table });
    put_span(removed.age, out)?;
    out.put_u16(removed.idle_timeout_s);
    out.put_u16(if version < Version::V1_2 { 0 } else { removed.hard_timeout_s });
    out.put_u64(removed.packets);
    out.put_u64(removed.bytes);
    Ok(())
}

/// Reads a flow-removed's body.
pub(super) fn read_flow_removed(
    version: Version,
    reader: &mut Reader,
) -> Result<FlowRemoved, Fault> {
    match version {
        Version::V1_0 => {
            let matching = read_match(version, reader)?;
            Ok(FlowRemoved { matching, ..read_removed(version, reader)? })
        }
        Version::V1_5 => read_removed_1_5(reader),
        _ => {
            let removed = read_removed(version, reader)?;
            Ok(FlowRemoved { matching: read_match(version, reader)?, ..removed })
        }
    }
}

fn read_removed(version: Version, reader: &mut Reader) -> Result<FlowRemoved, Fault> {
    let (cookie, priority) = (reader.u64()?, reader.u16()?);
    let reason = read_reason(version, reader)?;
    let table = reader.u8()?;
    let age = read_span(reader)?;
    let (idle_timeout_s, hard_timeout_s) = (reader.u16()?, reader.u16()?);
    Ok(FlowRemoved {
        reason,
        table: if version == Version::V1_0 { 0 } else { table },
        matching: Match::ANY,
        priority,
        cookie,
        age,
        idle_timeout_s,
        hard_timeout_s: if version < Version::V1_2 { 0 } else { hard_timeout_s },
        packets: reader.u64()?,
        bytes: reader.u64()?,
    })
}

fn read_removed_1_5(reader: &mut Reader) -> Result<FlowRemoved, Fault> {
    let version = Version::V1_5;
    let table = reader.u8()?;
    let reason = read_reason(version, reader)?;
    let priority = reader.u16()?;
    let (idle_timeout_s, hard_timeout_s) = (reader.u16()?, reader.u16()?);
    let cookie = reader.u64()?;
    let matching = read_match(version, reader)?;
    let counters = read_counters(reader)?;
    Ok(FlowRemoved {
        reason,
        table,
        matching,
        priority,
        cookie,
        age: counters.age.unwrap_or_default(),
        idle_timeout_s,
        hard_timeout_s,
        packets: counters.packets.unwrap_or(COUNTER_UNKNOWN),
        bytes: counters.bytes.unwrap_or(COUNTER_UNKNOWN),
    })
}

/// Returns the number of reasons that a version has.
fn reasons(version: Version) -> usize {
    match version {
        Version::V1_0 => 3,
        Version::V1_1 | Version::V1_2 | Version::V1_3 => 4,
        Version::V1_4 | Version::V1_5 => 6,
    }
}

/// Returns the reason's code.
pub(super) fn reason_to_wire(
    version: Version,
    reason: FlowRemovedReason,
) -> Result<u8, MessagePart> {
    let known = FlowRemovedReason::ALL[..reasons(version)].iter();
    let place = known.clone().position(|&other| other == reason);
    place.map(|place| place as u8).ok_or(MessagePart::Bit(reason.name()))
}

/// Reads the reason's code.
pub(super) fn read_reason(
    version: Version,
    reader: &mut Reader,
) -> Result<FlowRemovedReason, Fault> {
    let (at, code) = (reader.at(), reader.u8()?);
    match FlowRemovedReason::ALL[..reasons(version)].get(usize::from(code)) {
        Some(&reason) => Ok(reason),
        None => Err(Malformed { at, why: MalformedReason::BadValue(code.into()) }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::encode;
    use crate::model::message::Message;
    use crate::model::table::TABLE_ALL;

    /// Returns the bytes of table and command.
    fn told(version: Version, change: FlowMod, at: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(version, 1, &Message::FlowMod(change), &mut bytes).unwrap();
        bytes[at..at + 2].to_vec()
    }

    #[test]
    fn the_table_id_is_absent_in_1_0_and_present_later() {
        let all = |version| FlowMod::delete_all(version, Match::ANY);
        assert_eq!(told(Version::V1_0, all(Version::V1_0), 8 + 40 + 8), [0, 3]);
        assert_eq!(told(Version::V1_3, all(Version::V1_3), 8 + 16), [TABLE_ALL, 3]);
        // With Nicira's extension the encoding is that of later versions.
        let agreed = FlowMod::delete(TABLE_ALL, Match::ANY);
        assert_eq!(told(Version::V1_0, agreed, 8 + 40 + 8), [TABLE_ALL, 3]);
    }
}
