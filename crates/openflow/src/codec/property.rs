//! Properties as bytes: a type, a length, what they say, and padding up to eight bytes.
//!
//! Source: OpenFlow 1.3.5 section 7.3.5.5.2 and 1.4.1 section 7.2 (the `*_prop_header`
//! structures). The length does not count the padding behind it. Faults are answered with
//! [`Errors::of`] the version: 1.3 has properties of tables only, and errors of their own.

use packet::error::{Malformed, Why};

use super::bytes::{Put, Reader};
use super::{Fault, What};
use crate::model::action::Experimenter;
use crate::version::{ErrorCode, Version};

/// Type of an experimenter's property nearly everywhere.
pub(super) const EXPERIMENTER: u16 = 0xffff;

/// Bytes of a property's type and length.
const HEADER_BYTES: usize = 4;

/// The errors that answer bad properties.
#[derive(Debug, Clone, Copy)]
pub(super) struct Errors {
    /// The type is unknown.
    pub bad_type: ErrorCode,
    /// A length does not fit.
    pub bad_length: ErrorCode,
    /// A value cannot be.
    pub bad_value: ErrorCode,
    /// A type is there twice.
    pub duplicate: ErrorCode,
}

impl Errors {
    /// Those of the version.
    pub fn of(version: Version) -> Errors {
        if version >= Version::V1_4 {
            Errors {
                bad_type: ErrorCode::PropertyBadType,
                bad_length: ErrorCode::PropertyBadLength,
                bad_value: ErrorCode::PropertyBadValue,
                duplicate: ErrorCode::PropertyDuplicateType,
            }
        } else {
            Errors {
                bad_type: ErrorCode::TableFeaturesBadType,
                bad_length: ErrorCode::TableFeaturesBadLength,
                bad_value: ErrorCode::TableFeaturesBadArgument,
                duplicate: ErrorCode::TableFeaturesBadType,
            }
        }
    }

    /// A length that does not fit.
    pub fn length(self, malformed: Malformed) -> Fault {
        Fault::new(malformed, self.bad_length)
    }

    /// A value that cannot be.
    pub fn value(self, at: usize, value: u64) -> Fault {
        Fault::new(Malformed { at, why: Why::BadValue(value) }, self.bad_value)
    }
}

/// A property as it came.
pub(super) struct Property<'a> {
    /// Its type.
    pub kind: u16,
    /// Offset of its type.
    pub at: usize,
    /// What follows its length.
    pub body: Reader<'a>,
    errors: Errors,
}

impl Property<'_> {
    /// Reads all that it says.
    pub fn read<T>(
        mut self,
        read: impl FnOnce(&mut Reader) -> Result<T, Malformed>,
    ) -> Result<T, Fault> {
        let value = read(&mut self.body).map_err(|malformed| self.errors.length(malformed))?;
        self.body.finish().map_err(|malformed| self.errors.length(malformed))?;
        Ok(value)
    }

    /// Reads numbers up to its end.
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

    /// Reads what somebody else says: a number, a type of theirs, and anything.
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

    /// Why it cannot be.
    pub fn unknown(&self) -> Fault {
        let why = Why::BadValue(self.kind.into());
        Fault::new(Malformed { at: self.at, why }, self.errors.bad_type)
    }
}

/// Reads the next property and the padding behind it, if there is one.
pub(super) fn read_property<'a>(
    version: Version,
    reader: &mut Reader<'a>,
) -> Result<Option<Property<'a>>, Fault> {
    if reader.left() == 0 {
        return Ok(None);
    }
    let errors = Errors::of(version);
    let at = reader.at();
    let kind = reader.u16().map_err(|malformed| errors.length(malformed))?;
    let length = usize::from(reader.u16().map_err(|malformed| errors.length(malformed))?);
    let bad = Malformed { at: at + 2, why: Why::BadLength(length) };
    let bytes = length.checked_sub(HEADER_BYTES).ok_or_else(|| errors.length(bad))?;
    let body = reader.within(bytes).map_err(|_| errors.length(bad))?;
    let padding = length.next_multiple_of(8) - length;
    reader.skip(padding).map_err(|_| errors.length(bad))?;
    Ok(Some(Property { kind, at, body, errors }))
}

/// Reads properties up to the end.
pub(super) fn read_properties<T>(
    version: Version,
    reader: &mut Reader,
    mut read: impl FnMut(Property) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut properties = Vec::new();
    while let Some(property) = read_property(version, reader)? {
        properties.push(read(property)?);
    }
    Ok(properties)
}

/// Reads properties of which there are only experimenters'.
pub(super) fn read_experimenters(
    version: Version,
    reader: &mut Reader,
) -> Result<Vec<Experimenter>, Fault> {
    read_properties(version, reader, |property| match property.kind {
        EXPERIMENTER => property.experimenter(),
        _ => Err(property.unknown()),
    })
}

/// Appends a property and the padding behind it.
pub(super) fn put_property(
    kind: u16,
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), What>,
) -> Result<(), What> {
    let start = out.len();
    out.put_u16(kind);
    out.put_u16(0);
    body(out)?;
    put_length("property", out, start, 2)?;
    pad(out, start);
    Ok(())
}

/// Appends somebody else's property.
pub(super) fn put_experimenter(
    kind: u16,
    property: &Experimenter,
    out: &mut Vec<u8>,
) -> Result<(), What> {
    if property.body.len() < 4 {
        return Err(no_experimenter_type(property));
    }
    put_property(kind, out, |out| {
        out.put_u32(property.experimenter);
        out.extend_from_slice(&property.body);
        Ok(())
    })
}

/// Somebody else's bytes do not begin with the four of a type.
pub(super) fn no_experimenter_type(body: &Experimenter) -> What {
    What::Value { field: "length of the experimenter's type", value: body.body.len() as u64 }
}

/// Appends properties of which there are only experimenters'.
pub(super) fn put_experimenters(
    version: Version,
    properties: &[Experimenter],
    out: &mut Vec<u8>,
) -> Result<(), What> {
    if version < Version::V1_4 && !properties.is_empty() {
        return Err(What::Bit("properties"));
    }
    properties.iter().try_for_each(|property| put_experimenter(EXPERIMENTER, property, out))
}

/// Appends zeros until what starts at `start` has a multiple of eight bytes.
pub(super) fn pad(out: &mut Vec<u8>, start: usize) {
    let bytes = out.len() - start;
    out.put_zeros(bytes.next_multiple_of(8) - bytes);
}

/// Writes the length of what starts at `start` into its field, `offset` bytes in.
pub(super) fn put_length(
    field: &'static str,
    out: &mut [u8],
    start: usize,
    offset: usize,
) -> Result<(), What> {
    let bytes = out.len() - start;
    let length = u16::try_from(bytes).map_err(|_| What::TooLong {
        field,
        bytes,
        bytes_max: u16::MAX.into(),
    })?;
    out[start + offset..start + offset + 2].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Reads the length of a structure that has at least `least` bytes and began `before` bytes ago,
/// and gives what of it comes after the length.
pub(super) fn read_length<'a>(
    reader: &mut Reader<'a>,
    least: usize,
    before: usize,
) -> Result<Reader<'a>, Malformed> {
    let at = reader.at();
    let length = usize::from(reader.u16()?);
    let bad = Malformed { at, why: Why::BadLength(length) };
    if length < least {
        return Err(bad);
    }
    reader.within(length - before - 2).map_err(|_| bad)
}
