//! Encodes and decodes properties: type, length, value, and padding to eight bytes.
//!
//! Source: OpenFlow 1.3.5 section 7.3.5.5.2 and 1.4.1 section 7.2 (the `*_prop_header` structures).
//!
//! - The length does not include the padding.
//! - Faults have the errors of 1.4. 1.3 has only table properties; for it [`ErrorCode::nearest`]
//!   finds their errors.

use packet::error::{Malformed, MalformedReason};

use super::bytes::{Put, Reader, pad, put_length, read_length};
use super::{Fault, MessagePart};
use crate::model::action::Experimenter;
use crate::version::{ErrorCode, Version};

/// Type of most experimenter properties.
pub(super) const EXPERIMENTER: u16 = 0xffff;

/// Bytes of a property's type and length.
const HEADER_BYTES: usize = 4;

/// Returns the fault for a wrong length.
pub(super) fn bad_length(malformed: Malformed) -> Fault {
    Fault::new(malformed, ErrorCode::PropertyBadLength)
}

/// A property as received.
pub(super) struct Property<'a> {
    /// Its type.
    pub kind: u16,
    /// Offset of its type.
    pub at: usize,
    /// The bytes after its length.
    pub body: Reader<'a>,
}

impl Property<'_> {
    /// Reads the whole value.
    pub fn read<T>(
        mut self,
        read: impl FnOnce(&mut Reader) -> Result<T, Malformed>,
    ) -> Result<T, Fault> {
        let value = read(&mut self.body).map_err(bad_length)?;
        self.body.finish().map_err(bad_length)?;
        Ok(value)
    }

    /// Reads items up to the end.
    pub fn list<T>(
        self,
        mut read: impl FnMut(&mut Reader) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Fault> {
        self.read(|body| {
            let mut list = Vec::new();
            while body.left() > 0 {
                list.push(read(body)?);
            }
            Ok(list)
        })
    }

    /// Reads an experimenter property: experimenter ID, type and data.
    pub fn experimenter(self) -> Result<Experimenter, Fault> {
        self.read(|body| {
            let experimenter = body.u32()?;
            let rest = body.rest();
            let at = body.at() - rest.len();
            match rest.len() {
                0..4 => Err(Malformed::truncated(at, 4, rest.len())),
                _ => Ok(Experimenter { experimenter, body: rest.to_vec() }),
            }
        })
    }

    /// Returns the fault for an unknown type.
    pub fn unknown(&self) -> Fault {
        Fault::value(self.at, self.kind, ErrorCode::PropertyBadType)
    }
}

/// Reads the next property and its padding, if there is one.
pub(super) fn read_property<'a>(reader: &mut Reader<'a>) -> Result<Option<Property<'a>>, Fault> {
    if reader.left() == 0 {
        return Ok(None);
    }
    let at = reader.at();
    let kind = reader.u16().map_err(bad_length)?;
    let body = read_length(reader, HEADER_BYTES, 2).map_err(bad_length)?;
    let length = HEADER_BYTES + body.left();
    let why = MalformedReason::BadLength(length);
    reader.skip_padding(length).map_err(|_| bad_length(Malformed { at: at + 2, why }))?;
    Ok(Some(Property { kind, at, body }))
}

/// Reads properties up to the end.
pub(super) fn read_properties<T>(
    reader: &mut Reader,
    mut read: impl FnMut(Property) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut properties = Vec::new();
    while let Some(property) = read_property(reader)? {
        properties.push(read(property)?);
    }
    Ok(properties)
}

/// Reads properties; only experimenter properties are valid.
pub(super) fn read_experimenters(reader: &mut Reader) -> Result<Vec<Experimenter>, Fault> {
    read_properties(reader, |property| match property.kind {
        EXPERIMENTER => property.experimenter(),
        _ => Err(property.unknown()),
    })
}

/// Appends a property and its padding.
pub(super) fn put_property(
    kind: u16,
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), MessagePart>,
) -> Result<(), MessagePart> {
    let start = out.len();
    out.put_u16(kind);
    out.put_u16(0);
    body(out)?;
    put_length("property", out, start, 2)?;
    pad(out, start);
    Ok(())
}

/// Appends an experimenter property.
pub(super) fn put_experimenter(
    kind: u16,
    property: &Experimenter,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    if property.body.len() < 4 {
        return Err(no_experimenter_type(property));
    }
    put_property(kind, out, |out| {
        out.put_u32(property.experimenter);
        out.extend_from_slice(&property.body);
        Ok(())
    })
}

/// Returns the error for experimenter data without the four bytes of a type.
pub(super) fn no_experimenter_type(body: &Experimenter) -> MessagePart {
    MessagePart::Value { field: "length of the experimenter's type", value: body.body.len() as u64 }
}

/// Appends experimenter properties.
pub(super) fn put_experimenters(
    version: Version,
    properties: &[Experimenter],
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    if version < Version::V1_4 && !properties.is_empty() {
        return Err(MessagePart::Bit("properties"));
    }
    properties.iter().try_for_each(|property| put_experimenter(EXPERIMENTER, property, out))
}
