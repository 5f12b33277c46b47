//! Encodes and decodes durations as seconds and nanoseconds.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5 and 1.3.5 section 7.3.5.6 (`duration_sec`,
//! `duration_nsec`). Where a duration may be unknown, all bits set encode that.

use packet::error::Malformed;
use packet::time::Nanos;

use super::MessagePart;
use super::bytes::{Put, Reader};

/// Nanoseconds in a second.
pub(super) const SECOND: u64 = 1_000_000_000;

/// Appends a duration as seconds and nanoseconds.
pub(super) fn put_span(span: Nanos, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let seconds = span.0 / SECOND;
    let seconds = u32::try_from(seconds)
        .map_err(|_| MessagePart::Value { field: "seconds", value: seconds })?;
    out.put_u32(seconds);
    out.put_u32((span.0 % SECOND) as u32);
    Ok(())
}

/// Reads a duration; limits the nanoseconds to 999,999,999.
pub(super) fn read_span(reader: &mut Reader) -> Result<Nanos, Malformed> {
    let (seconds, nanos) = (reader.u32()?, reader.u32()?);
    Ok(Nanos(u64::from(seconds) * SECOND + u64::from(nanos).min(SECOND - 1)))
}

/// Appends a duration that may be unknown.
pub(super) fn put_age(age: Option<Nanos>, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    match age {
        Some(age) => put_span(age, out),
        None => {
            out.put_u64(u64::MAX);
            Ok(())
        }
    }
}

/// Reads a duration that may be unknown.
pub(super) fn read_age(reader: &mut Reader) -> Result<Option<Nanos>, Malformed> {
    let mut ahead = reader.clone();
    if ahead.u64()? == u64::MAX {
        *reader = ahead;
        return Ok(None);
    }
    read_span(reader).map(Some)
}
