//! How long something has been there, if that is known, as bytes.
//!
//! Source: OpenFlow 1.3.5 section 7.3.5.6 (`duration_sec`, `duration_nsec`). All bits set mean that
//! the switch does not know.

use packet::error::Malformed;
use packet::time::Nanos;

use super::What;
use super::bytes::{Put, Reader};
use super::flow::{put_span, read_span};

/// Appends seconds and nanoseconds.
pub(super) fn put_age(age: Option<Nanos>, out: &mut Vec<u8>) -> Result<(), What> {
    match age {
        Some(age) => put_span(age, out),
        None => {
            out.put_u64(u64::MAX);
            Ok(())
        }
    }
}

/// Reads seconds and nanoseconds.
pub(super) fn read_age(reader: &mut Reader) -> Result<Option<Nanos>, Malformed> {
    let mut ahead = reader.clone();
    if ahead.u64()? == u64::MAX {
        *reader = ahead;
        return Ok(None);
    }
    read_span(reader).map(Some)
}
