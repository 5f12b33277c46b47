//! Encodes and decodes Nicira extensions of 1.0, as bodies of experimenter messages and statistics.
//!
//! Source: `nicira-ext.h` of Open vSwitch.
//!
//! - Each body starts with a subtype. Decoding returns `None` for unknown subtypes; their messages
//!   remain experimenter messages.
//! - A match is a list of NXM fields, padded to eight bytes; its length precedes it. A cookie
//!   filter is one of its fields.
//! - Errors may be those of any version; [`ErrorCode::nearest`] maps them to 1.0.

mod error;

pub use error::refusal;

use packet::time::Nanos;

use super::bytes::{Put, Reader, pad, put_length, put_length_at, read_length};
use super::flow::stats::{put_aggregate, read_aggregate};
use super::flow::{self, put_buffer, put_head_1_0, read_buffer, read_head_1_0};
use super::instruction::{put_instructions, read_instructions};
use super::matching::oxm::{put_fields, read_fields};
use super::packet_io::{read_reason, reason_to_wire};
use super::port::{put_port, read_port};

use super::span::{SECOND, put_span, read_span};
use super::{Fault, MessagePart, NotExpressible};
use crate::model::action::Experimenter;
use crate::model::flow::{FlowMod, FlowRemoved};
use crate::model::group::GROUP_ANY;
use crate::model::matching::{ExperimenterField, Field, Match};
use crate::model::multipart::{FlowStats, FlowStatsRequest};
use crate::model::nicira::{Form, NICIRA, NiciraMessage, NiciraReply, NiciraRequest};
use crate::model::packet_io::PacketIn;
use crate::model::port::reserved;
use crate::model::role::Role;
use crate::version::{ErrorCode, Version};

const ROLE_REQUEST: u32 = 10;
const ROLE_REPLY: u32 = 11;
const SET_FLOW_FORMAT: u32 = 12;
const FLOW_MOD: u32 = 13;
const FLOW_REMOVED: u32 = 14;
const FLOW_MOD_TABLE_ID: u32 = 15;
const SET_PACKET_IN_FORMAT: u32 = 16;
const PACKET_IN: u32 = 17;
const FLOW_AGE: u32 = 18;
const SET_ASYNC_CONFIG: u32 = 19;
const SET_CONTROLLER_ID: u32 = 20;

/// Subtypes of statistics.
const STATS_FLOW: u32 = 0;
const STATS_AGGREGATE: u32 = 1;

/// Codes of the flow formats and of the packet-in formats.
const FLOW_FORMATS: [u32; 2] = [0, 2];
const PACKET_IN_FORMATS: [u32; 2] = [0, 1];

const ROLES: [Role; 3] = [Role::Equal, Role::Master, Role::Slave];

/// Class and number of the cookie field.
const COOKIE: (u16, u8) = (1, 30);

/// Bytes of a row before its match.
const FLOW_BYTES_MIN: usize = 48;

const V: Version = Version::V1_0;

fn body(subtype: u32, put: impl FnOnce(&mut Vec<u8>) -> Result<(), MessagePart>) -> Outcome {
    let mut body = Vec::new();
    body.put_u32(subtype);
    match put(&mut body) {
        Ok(()) => Ok(Experimenter { experimenter: NICIRA, body }),
        Err(what) => Err(NotExpressible { version: V, what }),
    }
}

type Outcome = Result<Experimenter, NotExpressible>;

/// Encodes the message as the body of a 1.0 experimenter message.
pub fn put_message(message: &NiciraMessage) -> Outcome {
    match message {
        NiciraMessage::RoleRequest(role) => body(ROLE_REQUEST, |out| put_role(*role, out)),
        NiciraMessage::RoleReply(role) => body(ROLE_REPLY, |out| put_role(*role, out)),
        NiciraMessage::SetFlowFormat(form) => {
            body(SET_FLOW_FORMAT, |out| put_number(FLOW_FORMATS[*form as usize], out))
        }
        NiciraMessage::FlowMod(change) => body(FLOW_MOD, |out| put_flow_mod(change, out)),
        NiciraMessage::FlowRemoved(removed) => {
            body(FLOW_REMOVED, |out| put_flow_removed(removed, out))
        }
        NiciraMessage::FlowModTableId(on) => body(FLOW_MOD_TABLE_ID, |out| {
            out.put_u8(u8::from(*on));
            out.put_zeros(7);
            Ok(())
        }),
        NiciraMessage::SetPacketInFormat(form) => {
            body(SET_PACKET_IN_FORMAT, |out| put_number(PACKET_IN_FORMATS[*form as usize], out))
        }
        NiciraMessage::PacketIn(frame) => body(PACKET_IN, |out| put_packet_in(frame, out)),
        NiciraMessage::FlowAge => body(FLOW_AGE, |_| Ok(())),
        NiciraMessage::SetAsyncConfig { packet_in, port_status, flow_removed } => {
            body(SET_ASYNC_CONFIG, |out| {
                let masks = [packet_in, port_status, flow_removed];
                masks.iter().copied().flatten().for_each(|&mask| out.put_u32(mask));
                Ok(())
            })
        }
        NiciraMessage::SetControllerId(id) => body(SET_CONTROLLER_ID, |out| {
            out.put_zeros(6);
            out.put_u16(*id);
            Ok(())
        }),
    }
}

fn put_number(number: u32, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    out.put_u32(number);
    Ok(())
}

fn put_role(role: Role, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let place =
        ROLES.iter().position(|&other| other == role).ok_or(MessagePart::Bit("no_change"))?;
    put_number(place as u32, out)
}

/// Decodes a 1.0 experimenter message, if it is one of these. The error is the one to reply with.
pub fn read_message(from: &Experimenter) -> Result<Option<NiciraMessage>, ErrorCode> {
    if from.experimenter != NICIRA {
        return Ok(None);
    }
    let mut reader = Reader::new(&from.body, 0);
    let read = read_message_body(&mut reader).map_err(|fault| fault.answer)?;
    match read {
        Some(_) if reader.left() > 0 => Err(ErrorCode::RequestBadLength),
        read => Ok(read),
    }
}

fn read_message_body(reader: &mut Reader) -> Result<Option<NiciraMessage>, Fault> {
    Ok(Some(match reader.u32()? {
        ROLE_REQUEST => NiciraMessage::RoleRequest(read_choice(&ROLES, &[0, 1, 2], reader)?),
        ROLE_REPLY => NiciraMessage::RoleReply(read_choice(&ROLES, &[0, 1, 2], reader)?),
        SET_FLOW_FORMAT => NiciraMessage::SetFlowFormat(read_form(&FLOW_FORMATS, reader)?),
        FLOW_MOD => NiciraMessage::FlowMod(read_flow_mod(reader)?),
        FLOW_REMOVED => NiciraMessage::FlowRemoved(read_flow_removed(reader)?),
        FLOW_MOD_TABLE_ID => {
            let on = reader.u8()? != 0;
            reader.skip(7)?;
            NiciraMessage::FlowModTableId(on)
        }
        SET_PACKET_IN_FORMAT => {
            NiciraMessage::SetPacketInFormat(read_form(&PACKET_IN_FORMATS, reader)?)
        }
        PACKET_IN => NiciraMessage::PacketIn(read_packet_in(reader)?),
        FLOW_AGE => NiciraMessage::FlowAge,
        SET_ASYNC_CONFIG => NiciraMessage::SetAsyncConfig {
            packet_in: [reader.u32()?, reader.u32()?],
            port_status: [reader.u32()?, reader.u32()?],
            flow_removed: [reader.u32()?, reader.u32()?],
        },
        SET_CONTROLLER_ID => {
            reader.skip(6)?;
            NiciraMessage::SetControllerId(reader.u16()?)
        }
        _ => return Ok(None),
    }))
}

fn read_form(numbers: &[u32; 2], reader: &mut Reader) -> Result<Form, Fault> {
    read_choice(&[Form::Standard, Form::Nicira], numbers, reader)
}

fn read_choice<T: Copy>(values: &[T], numbers: &[u32], reader: &mut Reader) -> Result<T, Fault> {
    let (at, number) = (reader.at(), reader.u32()?);
    let place = numbers.iter().position(|&other| other == number);
    place
        .map(|place| values[place])
        .ok_or_else(|| Fault::value(at, number, ErrorCode::RequestBadExperimenterType))
}

/// Appends a match's fields and a cookie filter, and writes their length.
fn put_match(
    matching: &Match,
    cookie: Option<(u64, u64)>,
    length_at: usize,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let start = out.len();
    put_fields(V, matching, out)?;
    if let Some((value, mask)) = cookie {
        let (class, number) = COOKIE;
        let mut body = value.to_be_bytes().to_vec();
        body.extend(mask.to_be_bytes());
        let field = ExperimenterField { class, number, has_mask: true, body };
        put_fields(V, &Match::ANY.with_experimenter(field), out)?;
    }
    put_length_at("match", out, start, length_at)?;
    pad(out, start);
    Ok(())
}

/// Reads a match's fields and extracts the cookie filter.
fn read_match(length: u16, reader: &mut Reader) -> Result<(Match, Option<(u64, u64)>), Fault> {
    let length = usize::from(length);
    let fields = read_fields(V, &mut reader.within(length)?)?;
    reader.skip_padding(length)?;
    let mut matching: Match = fields.fields().iter().copied().collect();
    let is_cookie = |field: &&ExperimenterField| (field.class, field.number) == COOKIE;
    let cookie = fields.experimenter().iter().find(is_cookie).map(read_cookie).transpose()?;
    let others = fields.experimenter().iter().filter(|field| !is_cookie(field));
    matching.push_experimenters(others.cloned());
    Ok((matching, cookie))
}

/// Reads value and mask of a cookie filter.
fn read_cookie(field: &ExperimenterField) -> Result<(u64, u64), Fault> {
    let read = || {
        let mut body = Reader::new(&field.body, 0);
        let value = body.u64()?;
        let mask = if field.has_mask { body.u64()? } else { u64::MAX };
        body.finish()?;
        Ok((value & mask, mask))
    };
    read().map_err(|malformed| Fault::new(malformed, ErrorCode::MatchBadLength))
}

fn put_flow_mod(change: &FlowMod, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let head = FlowMod { cookie_mask: 0, instructions: Vec::new(), ..change.clone() };
    put_head_1_0(&head, out)?;
    let length_at = out.len();
    out.put_zeros(8);
    let cookie = (change.cookie_mask != 0).then_some((change.cookie, change.cookie_mask));
    put_match(&change.matching, cookie, length_at, out)?;
    put_instructions(V, &change.instructions, out)
}

fn read_flow_mod(reader: &mut Reader) -> Result<FlowMod, Fault> {
    let mut change = read_head_1_0(reader)?;
    let length = reader.u16()?;
    reader.skip(6)?;
    let (matching, cookie) = read_match(length, reader)?;
    change.matching = matching;
    if let Some((value, mask)) = cookie {
        (change.cookie, change.cookie_mask) = (value, mask);
    }
    change.instructions = read_instructions(V, reader)?;
    Ok(change)
}

fn put_flow_removed(removed: &FlowRemoved, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    out.put_u64(removed.cookie);
    out.put_u16(removed.priority);
    out.put_u8(flow::reason_to_wire(V, removed.reason)?);
    out.put_u8(removed.table.wrapping_add(1));
    put_span(removed.age, out)?;
    out.put_u16(removed.idle_timeout_s);
    let length_at = out.len();
    out.put_u16(0);
    out.put_u64(removed.packets);
    out.put_u64(removed.bytes);
    put_match(&removed.matching, None, length_at, out)
}

fn read_flow_removed(reader: &mut Reader) -> Result<FlowRemoved, Fault> {
    let (cookie, priority) = (reader.u64()?, reader.u16()?);
    let reason = flow::read_reason(V, reader)?;
    let table = reader.u8()?.wrapping_sub(1);
    let age = read_span(reader)?;
    let (idle_timeout_s, length) = (reader.u16()?, reader.u16()?);
    let (packets, bytes) = (reader.u64()?, reader.u64()?);
    let (matching, _) = read_match(length, reader)?;
    Ok(FlowRemoved {
        reason,
        table,
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

fn put_packet_in(frame: &PacketIn, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    put_buffer(frame.buffer_id, out)?;
    out.put_u16(frame.frame_bytes);
    // Open vSwitch uses the reasons of 1.3.
    out.put_u8(reason_to_wire(Version::V1_3, frame.reason));
    out.put_u8(frame.table);
    out.put_u64(frame.cookie);
    let length_at = out.len();
    out.put_zeros(8);
    let fields = match frame.in_port {
        reserved::NONE => frame.fields.clone(),
        port => frame.fields.clone().with(Field::InPort, port),
    };
    put_match(&fields, None, length_at, out)?;
    out.put_zeros(2);
    out.extend_from_slice(&frame.data);
    Ok(())
}

fn read_packet_in(reader: &mut Reader) -> Result<PacketIn, Fault> {
    let buffer_id = read_buffer(reader)?;
    let frame_bytes = reader.u16()?;
    // Open vSwitch uses the codes of later versions for its reasons.
    let reason = read_reason(Version::V1_5, reader)?;
    let (table, cookie) = (reader.u8()?, reader.u64()?);
    let length = reader.u16()?;
    reader.skip(6)?;
    let (fields, _) = read_match(length, reader)?;
    let in_port = fields.value(Field::InPort).map_or(reserved::NONE, |port| port as u32);
    let fields = fields.without(Field::InPort);
    reader.skip(2)?;
    let data = reader.rest().to_vec();
    Ok(PacketIn { buffer_id, frame_bytes, in_port, fields, reason, table, cookie, data })
}

/// Encodes the request as the body of 1.0 experimenter statistics.
pub fn put_request(request: &NiciraRequest) -> Outcome {
    let (subtype, which) = match request {
        NiciraRequest::Flow(which) => (STATS_FLOW, which),
        NiciraRequest::Aggregate(which) => (STATS_AGGREGATE, which),
    };
    body(subtype, |out| {
        if which.out_group != GROUP_ANY {
            return Err(MessagePart::Bit("out_group"));
        }
        out.put_zeros(4);
        put_port(V, which.out_port, out)?;
        let length_at = out.len();
        out.put_u16(0);
        out.put_u8(which.table);
        out.put_zeros(3);
        let cookie = (which.cookie_mask != 0).then_some((which.cookie, which.cookie_mask));
        put_match(&which.matching, cookie, length_at, out)
    })
}

/// Decodes a 1.0 experimenter statistics request, if it is one of these.
pub fn read_request(from: &Experimenter) -> Result<Option<NiciraRequest>, ErrorCode> {
    let read = |reader: &mut Reader| {
        let subtype = reader.u32()?;
        if subtype != STATS_FLOW && subtype != STATS_AGGREGATE {
            return Ok(None);
        }
        reader.skip(4)?;
        let which = read_which(reader)?;
        reader.finish()?;
        Ok(Some(match subtype {
            STATS_FLOW => NiciraRequest::Flow(which),
            _ => NiciraRequest::Aggregate(which),
        }))
    };
    match from.experimenter {
        NICIRA => read(&mut Reader::new(&from.body, 0)).map_err(|fault: Fault| fault.answer),
        _ => Ok(None),
    }
}

fn read_which(reader: &mut Reader) -> Result<FlowStatsRequest, Fault> {
    let out_port = read_port(V, reader)?;
    let (length, table) = (reader.u16()?, reader.u8()?);
    reader.skip(3)?;
    let (matching, cookie) = read_match(length, reader)?;
    let (cookie, cookie_mask) = cookie.unwrap_or_default();
    Ok(FlowStatsRequest { matching, table, out_port, out_group: GROUP_ANY, cookie, cookie_mask })
}

/// Encodes the reply as the body of 1.0 experimenter statistics.
pub fn put_reply(reply: &NiciraReply) -> Outcome {
    match reply {
        NiciraReply::Flow(rows) => body(STATS_FLOW, |out| {
            out.put_zeros(4);
            rows.iter().try_for_each(|row| put_row(row, out))
        }),
        NiciraReply::Aggregate(sum) => body(STATS_AGGREGATE, |out| {
            out.put_zeros(4);
            put_aggregate(V, sum, out)
        }),
    }
}

/// Decodes a 1.0 experimenter statistics reply, if it is one of these.
pub fn read_reply(from: &Experimenter) -> Result<Option<NiciraReply>, ErrorCode> {
    let read = |reader: &mut Reader| {
        let subtype = reader.u32()?;
        reader.skip(4)?;
        Ok(match subtype {
            STATS_FLOW => {
                let mut rows = Vec::new();
                while reader.left() > 0 {
                    rows.push(read_row(reader)?);
                }
                Some(NiciraReply::Flow(rows))
            }
            STATS_AGGREGATE => {
                let sum = read_aggregate(V, reader)?;
                reader.finish()?;
                Some(NiciraReply::Aggregate(sum))
            }
            _ => None,
        })
    };
    match from.experimenter {
        NICIRA => read(&mut Reader::new(&from.body, 0)).map_err(|fault: Fault| fault.answer),
        _ => Ok(None),
    }
}

/// Returns the whole seconds plus one; zero if unknown.
fn age_to_wire(age: Option<Nanos>) -> u16 {
    let seconds = age.map(|age| age.0 / SECOND + 1);
    seconds.map_or(0, |seconds| u16::try_from(seconds).unwrap_or(u16::MAX))
}

fn put_row(row: &FlowStats, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let start = out.len();
    out.put_u16(0);
    out.put_u8(row.table);
    out.put_zeros(1);
    put_span(row.age, out)?;
    out.put_u16(row.priority);
    out.put_u16(row.idle_timeout_s);
    out.put_u16(row.hard_timeout_s);
    let length_at = out.len();
    out.put_u16(0);
    out.put_u16(age_to_wire(row.idle_age));
    out.put_u16(0);
    out.put_u64(row.cookie);
    out.put_u64(row.packets);
    out.put_u64(row.bytes);
    put_match(&row.matching, None, length_at, out)?;
    put_instructions(V, &row.instructions, out)?;
    put_length("flow", out, start, 0)
}

fn read_row(reader: &mut Reader) -> Result<FlowStats, Fault> {
    let mut row = read_length(reader, FLOW_BYTES_MIN, 0)?;
    let table = row.u8()?;
    row.skip(1)?;
    let age = read_span(&mut row)?;
    let (priority, idle_timeout_s, hard_timeout_s) = (row.u16()?, row.u16()?, row.u16()?);
    let (length, idle_age) = (row.u16()?, row.u16()?);
    row.skip(2)?;
    let (cookie, packets, bytes) = (row.u64()?, row.u64()?, row.u64()?);
    let (matching, _) = read_match(length, &mut row)?;
    let instructions = read_instructions(V, &mut row)?;
    let idle_age = idle_age.checked_sub(1).map(|seconds| Nanos::from_secs(seconds.into()));
    Ok(FlowStats {
        table,
        matching,
        priority,
        cookie,
        age,
        idle_age,
        idle_timeout_s,
        hard_timeout_s,
        packets,
        bytes,
        instructions,
        ..FlowStats::default()
    })
}

#[cfg(test)]
mod tests;
