//! Encodes and decodes flow entry statistics as a list of types, lengths and values (OXS).
//!
//! Source: OpenFlow 1.5.1 section 7.2.4 (`ofp_stats`).
//! ```text
//! reserved:2 length:2   then for each: class:2 number:7bits reserved:1bit length:1 value:n
//! ```
//! The list is padded to eight bytes; its length does not include the padding. Decoding ignores
//! counters of other classes.

use packet::error::{Malformed, MalformedReason};

use super::super::bytes::{Put, Reader, pad, put_length, read_length};
use super::super::span::{put_span, read_span};
use super::super::{Fault, MessagePart};
use crate::model::instruction::Counters;

/// The OXS class of the specification's counters.
const CLASS_BASIC: u16 = 0x8002;

const PREFIX_BYTES: usize = 4;

const AGE: u8 = 0;
const IDLE: u8 = 1;
const FLOWS: u8 = 3;
const PACKETS: u8 = 4;
const BYTES: u8 = 5;

/// Appends the counters that are present.
pub(in crate::codec) fn put_counters(
    counters: &Counters,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let start = out.len();
    out.put_u16(0);
    out.put_u16(0);
    for (number, span) in [(AGE, counters.age), (IDLE, counters.idle)] {
        if let Some(span) = span {
            put_header(number, 8, out);
            put_span(span, out)?;
        }
    }
    if let Some(flows) = counters.flows {
        put_header(FLOWS, 4, out);
        out.put_u32(flows);
    }
    for (number, count) in [(PACKETS, counters.packets), (BYTES, counters.bytes)] {
        if let Some(count) = count {
            put_header(number, 8, out);
            out.put_u64(count);
        }
    }
    put_length("counters", out, start, 2)?;
    pad(out, start);
    Ok(())
}

fn put_header(number: u8, bytes: u8, out: &mut Vec<u8>) {
    out.put_u16(CLASS_BASIC);
    out.put_u8(number << 1);
    out.put_u8(bytes);
}

/// Reads counters and the padding after them.
pub(in crate::codec) fn read_counters(reader: &mut Reader) -> Result<Counters, Fault> {
    reader.skip(2)?;
    let mut row = read_length(reader, PREFIX_BYTES, 2)?;
    reader.skip_padding(PREFIX_BYTES + row.left())?;
    let mut counters = Counters::default();
    while row.left() > 0 {
        let at = row.at();
        let (class, number, bytes) = (row.u16()?, row.u8()? >> 1, row.u8()?);
        let mut value = row.within(bytes.into())?;
        match (class, number) {
            (CLASS_BASIC, AGE) => counters.age = Some(read_span(&mut value)?),
            (CLASS_BASIC, IDLE) => counters.idle = Some(read_span(&mut value)?),
            (CLASS_BASIC, FLOWS) => counters.flows = Some(value.u32()?),
            (CLASS_BASIC, PACKETS) => counters.packets = Some(value.u64()?),
            (CLASS_BASIC, BYTES) => counters.bytes = Some(value.u64()?),
            _ => {
                value.rest();
            }
        }
        if value.left() > 0 {
            return Err(Malformed { at, why: MalformedReason::BadLength(bytes.into()) }.into());
        }
    }
    Ok(counters)
}
