//! Encodes and decodes flow statistics.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5, 1.1.0 section A.3.5 and 1.5.1 sections 7.3.5.3 to 7.3.5.5.
//!
//! 1.5 has two row formats, both with OXS counters: with instructions (`ofp_flow_desc`) and without
//! (`ofp_flow_stats`).

use packet::error::{Malformed, MalformedReason};

use super::super::bytes::{Put, Reader, put_length, read_length};
use super::super::instruction::{put_instructions, read_instructions};
use super::super::matching::{put_match, put_told_match, read_match, read_told_match};
use super::super::multipart::MultipartRow;
use super::super::port::{put_port, read_port};

use super::super::span::{put_span, read_span};
use super::super::{Fault, MessagePart};
use super::counters::{put_counters, read_counters};
use super::known;
use crate::model::flow::FlowModFlags;
use crate::model::flow::counters::{FlowCounters, FlowStatsReason};
use crate::model::group::GROUP_ANY;
use crate::model::instruction::Counters;
use crate::model::multipart::{AggregateStats, FlowStats, FlowStatsRequest};
use crate::model::port::stats::COUNTER_UNKNOWN;
use crate::version::Version;

/// Bytes of a row before its actions in 1.0.
const FLOW_BYTES_MIN_1_0: usize = 88;
/// Bytes of a row before its match.
const FLOW_BYTES_MIN: usize = 48;
/// Bytes of a row before its match in 1.5.
const FLOW_BYTES_MIN_1_5: usize = 24;
/// Bytes of a counters row before its match in 1.5.
const COUNTERS_BYTES_MIN: usize = 8;

/// Appends the filter of a request.
pub(in crate::codec) fn put_which(
    version: Version,
    which: &FlowStatsRequest,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    if version == Version::V1_0 {
        if which.cookie_mask != 0 {
            return Err(MessagePart::Bit("cookie_mask"));
        }
        if which.out_group != GROUP_ANY {
            return Err(MessagePart::Bit("out_group"));
        }
        put_match(version, &which.matching, out)?;
        out.put_u8(which.table);
        out.put_zeros(1);
        return put_port(version, which.out_port, out);
    }
    out.put_u8(which.table);
    out.put_zeros(3);
    out.put_u32(which.out_port);
    out.put_u32(which.out_group);
    out.put_zeros(4);
    out.put_u64(which.cookie);
    out.put_u64(which.cookie_mask);
    put_match(version, &which.matching, out)
}

/// Reads the filter of a request.
pub(in crate::codec) fn read_which(
    version: Version,
    reader: &mut Reader,
) -> Result<FlowStatsRequest, Fault> {
    if version == Version::V1_0 {
        let matching = read_match(version, reader)?;
        let table = reader.u8()?;
        reader.skip(1)?;
        let out_port = read_port(version, reader)?;
        return Ok(FlowStatsRequest { matching, table, out_port, ..FlowStatsRequest::default() });
    }
    let table = reader.u8()?;
    reader.skip(3)?;
    let (out_port, out_group) = (reader.u32()?, reader.u32()?);
    reader.skip(4)?;
    let (cookie, cookie_mask) = (reader.u64()?, reader.u64()?);
    let matching = read_match(version, reader)?;
    Ok(FlowStatsRequest { matching, table, out_port, out_group, cookie, cookie_mask })
}

/// Appends aggregate statistics.
pub(in crate::codec) fn put_aggregate(
    version: Version,
    sum: &AggregateStats,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    if version == Version::V1_5 {
        let counters = Counters {
            flows: Some(sum.flows),
            packets: known(sum.packets),
            bytes: known(sum.bytes),
            ..Counters::default()
        };
        return put_counters(&counters, out);
    }
    out.put_u64(sum.packets);
    out.put_u64(sum.bytes);
    out.put_u32(sum.flows);
    out.put_zeros(4);
    Ok(())
}

/// Reads aggregate statistics.
pub(in crate::codec) fn read_aggregate(
    version: Version,
    reader: &mut Reader,
) -> Result<AggregateStats, Fault> {
    if version == Version::V1_5 {
        let counters = read_counters(reader)?;
        return Ok(AggregateStats {
            packets: counters.packets.unwrap_or(COUNTER_UNKNOWN),
            bytes: counters.bytes.unwrap_or(COUNTER_UNKNOWN),
            flows: counters.flows.unwrap_or_default(),
        });
    }
    let sum = AggregateStats { packets: reader.u64()?, bytes: reader.u64()?, flows: reader.u32()? };
    reader.skip(4)?;
    Ok(sum)
}

impl MultipartRow for FlowStats {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        let start = out.len();
        out.put_u16(0);
        match version {
            Version::V1_0 => put_1_0(self, out)?,
            Version::V1_5 => put_1_5(self, out)?,
            _ => put_row(version, self, out)?,
        }
        put_instructions(version, &self.instructions, out)?;
        put_length("flow", out, start, 0)
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let least = match version {
            Version::V1_0 => FLOW_BYTES_MIN_1_0,
            Version::V1_5 => FLOW_BYTES_MIN_1_5,
            _ => FLOW_BYTES_MIN,
        };
        let mut body = read_length(reader, least, 0)?;
        let row = match version {
            Version::V1_0 => read_1_0(&mut body)?,
            Version::V1_5 => read_1_5(&mut body)?,
            _ => read_row(version, &mut body)?,
        };
        let instructions = read_instructions(version, &mut body)?;
        Ok(FlowStats { instructions, ..row })
    }
}

fn put_1_0(row: &FlowStats, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    out.put_u8(row.table);
    out.put_zeros(1);
    put_match(Version::V1_0, &row.matching, out)?;
    put_span(row.age, out)?;
    out.put_u16(row.priority);
    out.put_u16(row.idle_timeout_s);
    out.put_u16(row.hard_timeout_s);
    out.put_zeros(6);
    put_tail(row, out);
    Ok(())
}

fn put_tail(row: &FlowStats, out: &mut Vec<u8>) {
    out.put_u64(row.cookie);
    out.put_u64(row.packets);
    out.put_u64(row.bytes);
}

fn read_1_0(row: &mut Reader) -> Result<FlowStats, Fault> {
    let table = row.u8()?;
    row.skip(1)?;
    let matching = read_match(Version::V1_0, row)?;
    let age = read_span(row)?;
    let (priority, idle_timeout_s, hard_timeout_s) = (row.u16()?, row.u16()?, row.u16()?);
    row.skip(6)?;
    let (cookie, packets, bytes) = (row.u64()?, row.u64()?, row.u64()?);
    Ok(FlowStats {
        table,
        matching,
        priority,
        cookie,
        age,
        idle_timeout_s,
        hard_timeout_s,
        packets,
        bytes,
        ..FlowStats::default()
    })
}

/// Appends a row. Flags exist from 1.3 on, importance from 1.4 on; earlier versions have zeros
/// there.
fn put_row(version: Version, row: &FlowStats, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    out.put_u8(row.table);
    out.put_zeros(1);
    put_span(row.age, out)?;
    out.put_u16(row.priority);
    out.put_u16(row.idle_timeout_s);
    out.put_u16(row.hard_timeout_s);
    out.put_u16(match version >= Version::V1_3 {
        true => row.flags.to_wire(version).map_err(MessagePart::Bit)? as u16,
        false => 0,
    });
    out.put_u16(if version >= Version::V1_4 { row.importance } else { 0 });
    out.put_zeros(2);
    put_tail(row, out);
    put_told_match(version, &row.matching, out)
}

fn read_row(version: Version, row: &mut Reader) -> Result<FlowStats, Fault> {
    let table = row.u8()?;
    row.skip(1)?;
    let age = read_span(row)?;
    let (priority, idle_timeout_s, hard_timeout_s) = (row.u16()?, row.u16()?, row.u16()?);
    let (flags, importance) = (row.u16()?, row.u16()?);
    row.skip(2)?;
    let (cookie, packets, bytes) = (row.u64()?, row.u64()?, row.u64()?);
    let matching = read_told_match(version, row)?;
    let flags = match version >= Version::V1_3 {
        true => FlowModFlags::from_wire(version, flags.into()).0,
        false => FlowModFlags::NONE,
    };
    Ok(FlowStats {
        table,
        matching,
        priority,
        cookie,
        age,
        idle_timeout_s,
        hard_timeout_s,
        flags,
        importance: if version >= Version::V1_4 { importance } else { 0 },
        packets,
        bytes,
        ..FlowStats::default()
    })
}

fn put_1_5(row: &FlowStats, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let version = Version::V1_5;
    out.put_zeros(2);
    out.put_u8(row.table);
    out.put_zeros(1);
    out.put_u16(row.priority);
    out.put_u16(row.idle_timeout_s);
    out.put_u16(row.hard_timeout_s);
    out.put_u16(row.flags.to_wire(version).map_err(MessagePart::Bit)? as u16);
    out.put_u16(row.importance);
    out.put_u64(row.cookie);
    put_match(version, &row.matching, out)?;
    let counters = Counters {
        age: Some(row.age),
        idle: row.idle_age,
        flows: None,
        packets: known(row.packets),
        bytes: known(row.bytes),
    };
    put_counters(&counters, out)
}

fn read_1_5(row: &mut Reader) -> Result<FlowStats, Fault> {
    let version = Version::V1_5;
    row.skip(2)?;
    let table = row.u8()?;
    row.skip(1)?;
    let (priority, idle_timeout_s, hard_timeout_s) = (row.u16()?, row.u16()?, row.u16()?);
    let flags = FlowModFlags::from_wire(version, row.u16()?.into()).0;
    let (importance, cookie) = (row.u16()?, row.u64()?);
    let matching = read_match(version, row)?;
    let counters = read_counters(row)?;
    Ok(FlowStats {
        table,
        matching,
        priority,
        cookie,
        age: counters.age.unwrap_or_default(),
        idle_age: counters.idle,
        idle_timeout_s,
        hard_timeout_s,
        flags,
        importance,
        packets: counters.packets.unwrap_or(COUNTER_UNKNOWN),
        bytes: counters.bytes.unwrap_or(COUNTER_UNKNOWN),
        ..FlowStats::default()
    })
}

impl MultipartRow for FlowCounters {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        let start = out.len();
        out.put_zeros(4);
        out.put_u8(self.table);
        out.put_u8(match self.reason {
            FlowStatsReason::Request => 0,
            FlowStatsReason::Trigger => 1,
        });
        out.put_u16(self.priority);
        put_match(version, &self.matching, out)?;
        put_counters(&self.counters, out)?;
        put_length("flow", out, start, 0)
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let mut row = read_length(reader, COUNTERS_BYTES_MIN, 0)?;
        row.skip(2)?;
        let table = row.u8()?;
        let at = row.at();
        let reason = match row.u8()? {
            0 => FlowStatsReason::Request,
            1 => FlowStatsReason::Trigger,
            other => {
                return Err(Malformed { at, why: MalformedReason::BadValue(other.into()) }.into());
            }
        };
        let priority = row.u16()?;
        let matching = read_match(version, &mut row)?;
        let counters = read_counters(&mut row)?;
        row.finish()?;
        Ok(FlowCounters { table, reason, priority, matching, counters })
    }
}
