//! Encodes and decodes flow monitor requests and updates.
//!
//! Source: OpenFlow 1.4.1 section 7.3.5.19.

use packet::error::{Malformed, MalformedReason};

use super::super::bytes::{Put, Reader, put_length, read_length};
use super::super::instruction::{put_instructions, read_instructions};
use super::super::matching::{put_match, read_match};
use super::super::multipart::MultipartRow;
use super::super::port::{put_port, read_port};

use super::super::{Fault, MessagePart};
use super::{read_reason, reason_to_wire};
use crate::model::flow::monitor::{
    FlowEvent, FlowMonitorCommand, FlowMonitorFlags, FlowMonitorRequest, FlowUpdate, FlowUpdateFull,
};
use crate::version::{ErrorCode, Version};

/// Bytes of a full update without match and instructions.
const FULL_BYTES_MIN: usize = 24;

/// Bytes of the smallest update.
const UPDATE_BYTES_MIN: usize = 8;

const INITIAL: u16 = 0;

const ADDED: u16 = 1;

const REMOVED: u16 = 2;

const MODIFIED: u16 = 3;

const ABBREVIATED: u16 = 4;

const PAUSED: u16 = 5;

const RESUMED: u16 = 6;

impl MultipartRow for FlowMonitorRequest {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        out.put_u32(self.id);
        put_port(version, self.out_port, out)?;
        out.put_u32(self.out_group);
        out.put_u16(self.flags.to_wire(version).map_err(MessagePart::Bit)? as u16);
        out.put_u8(self.table);
        out.put_u8(match self.command {
            FlowMonitorCommand::Add => 0,
            FlowMonitorCommand::Modify => 1,
            FlowMonitorCommand::Delete => 2,
        });
        put_match(version, &self.matching, out)
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let id = reader.u32()?;
        let out_port = read_port(version, reader)?;
        let out_group = reader.u32()?;
        let at = reader.at();
        let (flags, unknown) = FlowMonitorFlags::from_wire(version, reader.u16()?.into());
        if unknown != 0 {
            return Err(Fault::value(at, unknown, ErrorCode::FlowMonitorBadFlags));
        }
        let table = reader.u8()?;
        let command = match reader.u8()? {
            0 => FlowMonitorCommand::Add,
            1 => FlowMonitorCommand::Modify,
            2 => FlowMonitorCommand::Delete,
            other => return Err(Fault::value(at + 3, other, ErrorCode::FlowMonitorBadCommand)),
        };
        let matching = read_match(version, reader)?;
        Ok(FlowMonitorRequest { id, command, flags, matching, table, out_port, out_group })
    }
}

impl MultipartRow for FlowUpdate {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        let start = out.len();
        out.put_u16(0);
        match self {
            FlowUpdate::Full(update) => put_full(version, update, out)?,
            FlowUpdate::Abbreviated { xid } => {
                out.put_u16(ABBREVIATED);
                out.put_u32(*xid);
            }
            FlowUpdate::Paused => {
                out.put_u16(PAUSED);
                out.put_zeros(4);
            }
            FlowUpdate::Resumed => {
                out.put_u16(RESUMED);
                out.put_zeros(4);
            }
        }
        put_length("flow update", out, start, 0)
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let mut row = read_length(reader, UPDATE_BYTES_MIN, 0)?;
        let at = row.at();
        let update = match row.u16()? {
            event @ INITIAL..=MODIFIED => {
                if row.left() < FULL_BYTES_MIN - 4 {
                    let why = MalformedReason::BadLength(row.left() + 4);
                    return Err(Malformed { at: at - 2, why }.into());
                }
                FlowUpdate::Full(read_full(version, event, &mut row)?)
            }
            ABBREVIATED => FlowUpdate::Abbreviated { xid: row.u32()? },
            PAUSED => {
                row.skip(4)?;
                FlowUpdate::Paused
            }
            RESUMED => {
                row.skip(4)?;
                FlowUpdate::Resumed
            }
            other => {
                return Err(Malformed { at, why: MalformedReason::BadValue(other.into()) }.into());
            }
        };
        row.finish()?;
        Ok(update)
    }
}

fn put_full(
    version: Version,
    update: &FlowUpdateFull,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let (event, reason) = match update.event {
        FlowEvent::Initial => (INITIAL, 0),
        FlowEvent::Added => (ADDED, 0),
        FlowEvent::Removed(reason) => (REMOVED, reason_to_wire(version, reason)?),
        FlowEvent::Modified => (MODIFIED, 0),
    };
    out.put_u16(event);
    out.put_u8(update.table);
    out.put_u8(reason);
    out.put_u16(update.idle_timeout_s);
    out.put_u16(update.hard_timeout_s);
    out.put_u16(update.priority);
    out.put_zeros(4);
    out.put_u64(update.cookie);
    put_match(version, &update.matching, out)?;
    put_instructions(version, &update.instructions, out)
}

fn read_full(version: Version, event: u16, row: &mut Reader) -> Result<FlowUpdateFull, Fault> {
    let table = row.u8()?;
    let event = match event {
        REMOVED => FlowEvent::Removed(read_reason(version, row)?),
        other => {
            row.skip(1)?;
            match other {
                INITIAL => FlowEvent::Initial,
                ADDED => FlowEvent::Added,
                _ => FlowEvent::Modified,
            }
        }
    };
    let (idle_timeout_s, hard_timeout_s, priority) = (row.u16()?, row.u16()?, row.u16()?);
    row.skip(4)?;
    let cookie = row.u64()?;
    let matching = read_match(version, row)?;
    let instructions = read_instructions(version, row)?;
    Ok(FlowUpdateFull {
        event,
        table,
        matching,
        priority,
        cookie,
        idle_timeout_s,
        hard_timeout_s,
        instructions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::check::{check, refused};
    use crate::model::flow::FlowRemovedReason;
    use crate::model::matching::Match;
    use crate::model::message::Message;
    use crate::model::multipart::{MultipartReplyBody, MultipartRequestBody};
    use crate::version::MessageKind;

    const ANY: &str = "0001 0004 00000000";

    #[test]
    fn a_monitor_request_lists_its_monitors() {
        let request = FlowMonitorRequest {
            id: 5,
            flags: FlowMonitorFlags::ADD | FlowMonitorFlags::ONLY_OWN,
            ..FlowMonitorRequest::default()
        };
        let hex = format!("0010 0000 00000000 00000005 ffffffff ffffffff 0042 ff 00 {ANY}");
        let message = Message::ask(MultipartRequestBody::FlowMonitor(vec![request]));
        check(Version::V1_4, &message, &hex);
        let refused = |hex: &str| refused(Version::V1_4, MessageKind::MultipartRequest, hex);
        let flags = format!("0010 0000 00000000 00000005 ffffffff ffffffff 0080 ff 00 {ANY}");
        assert_eq!(refused(&flags), ErrorCode::FlowMonitorBadFlags);
        let command = format!("0010 0000 00000000 00000005 ffffffff ffffffff 0000 ff 03 {ANY}");
        assert_eq!(refused(&command), ErrorCode::FlowMonitorBadCommand);
    }

    #[test]
    fn updates_have_a_full_and_an_abbreviated_form() {
        let full = FlowUpdateFull {
            event: FlowEvent::Removed(FlowRemovedReason::Delete),
            table: 1,
            matching: Match::ANY,
            priority: 4,
            cookie: 9,
            idle_timeout_s: 2,
            hard_timeout_s: 3,
            instructions: Vec::new(),
        };
        let rows = vec![
            FlowUpdate::Full(full),
            FlowUpdate::Abbreviated { xid: 7 },
            FlowUpdate::Paused,
            FlowUpdate::Resumed,
        ];
        let hex = format!(
            "0010 0000 00000000 0020 0002 01 02 0002 0003 0004 00000000 0000000000000009 {ANY}
            0008 0004 00000007 0008 0005 00000000 0008 0006 00000000"
        );
        let message = Message::MultipartReply(MultipartReplyBody::FlowMonitor(rows).into());
        check(Version::V1_4, &message, &hex);
    }
}
