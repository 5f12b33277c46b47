//! Encodes and decodes matches.
//!
//! Source: OpenFlow 1.0.0 section 5.2.3, 1.1.0 section A.2.3, 1.2.0 section A.2.3 and later.
//!
//! - `fixed` and `wide` handle the fixed structures of 1.0 and 1.1, `oxm` the lists of OXM fields.
//! - From 1.1 on a match has a type and a length; from 1.2 on it is padded to eight bytes.

pub(super) mod field_id;
mod fixed;
pub(super) mod oxm;
mod wide;

use packet::error::{Malformed, MalformedReason};

use super::bytes::{Put, Reader, pad, put_length};

use super::{Fault, MessagePart};
use crate::model::matching::Match;
use crate::version::{ErrorCode, Version};

pub(super) use fixed::{wildcards_from_wire, wildcards_to_wire};

/// Match type of a list of OXM fields.
const ROW_OF_FIELDS: u16 = 1;

/// Bytes of a match's type and length.
const PREFIX_BYTES: usize = 4;

/// Appends the match.
pub(super) fn put_match(
    version: Version,
    value: &Match,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    match version {
        Version::V1_0 => fixed::put_match(value, out),
        Version::V1_1 => wide::put_match(value, out),
        _ => put_row(version, value, out),
    }
}

fn put_row(version: Version, value: &Match, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let start = out.len();
    out.put_u16(ROW_OF_FIELDS);
    out.put_u16(0);
    oxm::put_fields(version, value, out)?;
    put_length("match", out, start, 2)?;
    pad(out, start);
    Ok(())
}

/// Appends the match of a reported flow entry.
///
/// With 1.1, Open vSwitch encodes as Nicira fields what the fixed structure cannot express.
pub(super) fn put_told_match(
    version: Version,
    value: &Match,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let start = out.len();
    put_match(version, value, out).or_else(|what| {
        out.truncate(start);
        if version == Version::V1_1 { put_row(Version::V1_0, value, out) } else { Err(what) }
    })
}

/// Reads the match of a reported flow entry; with 1.1 possibly a list of Nicira fields.
pub(super) fn read_told_match(version: Version, reader: &mut Reader) -> Result<Match, Fault> {
    let is_row = reader.clone().u16()? == ROW_OF_FIELDS;
    match version {
        Version::V1_1 if is_row => read_row(Version::V1_0, reader),
        version => read_match(version, reader),
    }
}

/// Reads a match.
pub(super) fn read_match(version: Version, reader: &mut Reader) -> Result<Match, Fault> {
    match version {
        Version::V1_0 => fixed::read_match(reader),
        Version::V1_1 => wide::read_match(reader),
        _ => read_row(version, reader),
    }
}

fn read_row(version: Version, reader: &mut Reader) -> Result<Match, Fault> {
    let at = reader.at();
    let kind = reader.u16()?;
    if kind != ROW_OF_FIELDS {
        return Err(Fault::value(at, kind, ErrorCode::MatchBadType));
    }
    let length = usize::from(reader.u16()?);
    let bad = |_| {
        let malformed = Malformed { at: at + 2, why: MalformedReason::BadLength(length) };
        Fault::new(malformed, ErrorCode::MatchBadLength)
    };
    let body = length.checked_sub(PREFIX_BYTES).ok_or(()).map_err(bad)?;
    let mut fields = reader.within(body).map_err(|_| bad(()))?;
    reader.skip_padding(length).map_err(|_| bad(()))?;
    oxm::read_fields(version, &mut fields)
}

#[cfg(test)]
mod tests;
