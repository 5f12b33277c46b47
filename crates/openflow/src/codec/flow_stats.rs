//! Entries and their counters, as bytes.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5.

use packet::error::{Malformed, Why};

use super::bytes::{Put, Reader};
use super::flow::{put_span, read_span};
use super::instruction::{put_action_list, read_action_list};
use super::matching::{put_match, read_match};
use super::multipart::Row;
use super::port::{port_from_wire, port_to_wire};
use super::{Fault, What};
use crate::model::flow::FlowModFlags;
use crate::model::multipart::{AggregateStats, FlowStats, FlowStatsRequest};
use crate::version::Version;

/// Bytes of an entry before its actions.
const FLOW_BYTES_MIN: usize = 88;

/// Appends which entries are asked for.
pub(super) fn put_which(
    version: Version,
    which: &FlowStatsRequest,
    out: &mut Vec<u8>,
) -> Result<(), What> {
    put_match(version, &which.matching, out)?;
    out.put_u8(which.table);
    out.put_zeros(1);
    out.put_u16(port_to_wire(version, which.out_port)?);
    Ok(())
}

/// Reads which entries are asked for.
pub(super) fn read_which(version: Version, reader: &mut Reader) -> Result<FlowStatsRequest, Fault> {
    let matching = read_match(version, reader)?;
    let table = reader.u8()?;
    reader.skip(1)?;
    let out_port = port_from_wire(version, reader.u16()?);
    Ok(FlowStatsRequest { matching, table, out_port, ..FlowStatsRequest::default() })
}

/// Appends a sum.
pub(super) fn put_aggregate(sum: &AggregateStats, out: &mut Vec<u8>) {
    out.put_u64(sum.packets);
    out.put_u64(sum.bytes);
    out.put_u32(sum.flows);
    out.put_zeros(4);
}

/// Reads a sum.
pub(super) fn read_aggregate(reader: &mut Reader) -> Result<AggregateStats, Malformed> {
    let sum = AggregateStats { packets: reader.u64()?, bytes: reader.u64()?, flows: reader.u32()? };
    reader.skip(4)?;
    Ok(sum)
}

impl Row for FlowStats {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), What> {
        let start = out.len();
        out.put_u16(0);
        out.put_u8(self.table);
        out.put_zeros(1);
        put_match(version, &self.matching, out)?;
        put_span(self.age, out)?;
        out.put_u16(self.priority);
        out.put_u16(self.idle_timeout_s);
        out.put_u16(self.hard_timeout_s);
        out.put_zeros(6);
        out.put_u64(self.cookie);
        out.put_u64(self.packets);
        out.put_u64(self.bytes);
        put_action_list(version, &self.instructions, out)?;
        let bytes = out.len() - start;
        let length = u16::try_from(bytes).map_err(|_| What::TooLong {
            field: "flow",
            bytes,
            bytes_max: u16::MAX.into(),
        })?;
        out[start..start + 2].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let at = reader.at();
        let length = usize::from(reader.u16()?);
        let bad = Malformed { at, why: Why::BadLength(length) };
        if length < FLOW_BYTES_MIN {
            return Err(bad.into());
        }
        let mut row = reader.within(length - 2).map_err(|_| bad)?;
        let table = row.u8()?;
        row.skip(1)?;
        let matching = read_match(version, &mut row)?;
        let age = read_span(&mut row)?;
        let priority = row.u16()?;
        let (idle_timeout_s, hard_timeout_s) = (row.u16()?, row.u16()?);
        row.skip(6)?;
        let (cookie, packets, bytes) = (row.u64()?, row.u64()?, row.u64()?);
        let instructions = read_action_list(version, &mut row)?;
        Ok(FlowStats {
            table,
            matching,
            priority,
            cookie,
            age,
            idle_age: None,
            idle_timeout_s,
            hard_timeout_s,
            flags: FlowModFlags::NONE,
            importance: 0,
            packets,
            bytes,
            instructions,
        })
    }
}
