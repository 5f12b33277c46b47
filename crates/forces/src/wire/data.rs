//! Encodes and decodes values as FULLDATA and SPARSEDATA (RFC 5810 sections 7.1.1 and 7.1.8,
//! appendix C).
//!
//! FULLDATA has a complete value:
//!
//! - Fields are in the order of their definition. Numbers and byte arrays have no padding.
//! - Texts, octet strings, arrays and unions are in an inner FULLDATA, which is padded.
//! - An array has index and row for each row.
//!
//! SPARSEDATA has parts of a value: each field and each row follows its ID or index and its length.
//! A text or octet string that is the value itself fills the TLV.
//!
//! The RFC leaves open:
//!
//! - A struct within a struct is inline, because the RFC wraps only atomic values and arrays.
//! - A union is the ID of the selected field and its value.
//! - Fewer than four zero octets after a value are padding that was counted in a length. Some
//!   implementations count it (RFC 6053).

use super::ResultCode;
use super::fault::{WireFault, WireFaultKind, value_code};
use super::message::Data;
use super::tlv::{Part, Tlv, put_ilv, put_tlv};
use crate::model::value::{Fields, Rows, Value, ValueFault, ValueFaultKind};
use crate::model::{Array, Atomic, Base, DataType, Field, Kind};

/// Encodes a value: complete, or in parts if a field is missing.
pub fn write(data_type: &DataType, value: &Value) -> Result<Data, ValueFault> {
    data_type.check_partial(value)?;
    if is_whole(data_type, value) {
        let mut bytes = Vec::new();
        put_top(data_type, value, &mut bytes);
        return Ok(Data::Full(bytes));
    }
    let mut bytes = Vec::new();
    put_sparse(data_type, value, &mut bytes);
    Ok(Data::Sparse(bytes))
}

/// Encodes a value in parts, even if it is complete. Atomic values have no parts and stay complete.
pub fn write_sparse(data_type: &DataType, value: &Value) -> Result<Data, ValueFault> {
    data_type.check_partial(value)?;
    if data_type.atomic().is_some() {
        return write(data_type, value);
    }
    let mut bytes = Vec::new();
    put_sparse(data_type, value, &mut bytes);
    Ok(Data::Sparse(bytes))
}

/// Decodes and checks the value of a FULLDATA.
pub fn read_full(data_type: &DataType, bytes: &[u8]) -> Result<Value, WireFault> {
    let mut rest = Part { bytes, at: 0 };
    let value = top(data_type, &mut rest)?;
    ends(rest)?;
    checked(data_type.check(&value))?;
    Ok(value)
}

/// Decodes and checks the parts of a value in a SPARSEDATA.
pub fn read_sparse(data_type: &DataType, bytes: &[u8]) -> Result<Value, WireFault> {
    let value = sparse(data_type, Part { bytes, at: 0 })?;
    checked(data_type.check_partial(&value))?;
    Ok(value)
}

/// Decodes the value at a path, and returns whether it is complete; `None` if there is none.
pub fn read(data_type: &DataType, data: &Data) -> Option<Result<(Value, bool), WireFault>> {
    match data {
        Data::Full(bytes) => Some(read_full(data_type, bytes).map(|value| (value, true))),
        Data::Sparse(bytes) => Some(read_sparse(data_type, bytes).map(|value| (value, false))),
        _ => None,
    }
}

/// Returns the result code for an invalid value.
pub fn code_of(fault: &ValueFault) -> ResultCode {
    value_code(&fault.why)
}

fn checked(result: Result<(), ValueFault>) -> Result<(), WireFault> {
    result.map_err(|fault| WireFault { at: 0, why: WireFaultKind::Value(fault) })
}

fn wrong(rest: Part<'_>, why: ValueFaultKind) -> WireFault {
    rest.fault(WireFaultKind::Value(ValueFault::here(why)))
}

/// Returns whether all fields are present, so that FULLDATA can encode the value.
fn is_whole(data_type: &DataType, value: &Value) -> bool {
    match (&data_type.kind, value) {
        (Kind::Alias(target), value) => is_whole(target, value),
        (Kind::Struct(fields), Value::Struct(values)) => fields.iter().all(|field| {
            values.get(field.id).is_some_and(|value| is_whole(&field.data_type, value))
        }),
        (Kind::Union(fields), Value::Union(id, value)) => {
            let field = fields.iter().find(|field| field.id == *id);
            field.is_some_and(|field| is_whole(&field.data_type, value))
        }
        (Kind::Array(array), Value::Array(rows)) => {
            rows.values().all(|row| is_whole(&array.element, row))
        }
        _ => true,
    }
}

/// Appends a value that fills its TLV.
fn put_top(data_type: &DataType, value: &Value, out: &mut Vec<u8>) {
    match (&data_type.target().kind, value) {
        (Kind::Atomic(atomic), value) => put_atomic(atomic, value, out),
        (Kind::Array(array), Value::Array(rows)) => {
            for (index, row) in rows {
                out.extend(index.to_be_bytes());
                put_inner(&array.element, row, out);
            }
        }
        (Kind::Struct(fields), Value::Struct(values)) => {
            for field in fields {
                if let Some(value) = values.get(field.id) {
                    put_inner(&field.data_type, value, out);
                }
            }
        }
        (Kind::Union(fields), Value::Union(id, value)) => {
            if let Some(field) = fields.iter().find(|field| field.id == *id) {
                out.extend(id.to_be_bytes());
                put_inner(&field.data_type, value, out);
            }
        }
        _ => debug_assert!(false, "values are checked before encoding"),
    }
}

/// Appends a value among others.
fn put_inner(data_type: &DataType, value: &Value, out: &mut Vec<u8>) {
    match is_wrapped(data_type) {
        true => put_tlv(out, Tlv::FullData as u16, |out| put_top(data_type, value, out)),
        false => put_top(data_type, value, out),
    }
}

/// Returns whether a value among others has an inner FULLDATA.
fn is_wrapped(data_type: &DataType) -> bool {
    match &data_type.target().kind {
        Kind::Atomic(atomic) => atomic.base.width().is_none(),
        Kind::Struct(_) => false,
        Kind::Array(_) | Kind::Union(_) | Kind::Alias(_) => true,
    }
}

fn put_atomic(atomic: &Atomic, value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Boolean(it) => out.push(u8::from(*it)),
        Value::Text(text) => out.extend(text.as_bytes()),
        Value::Bytes(bytes) => out.extend(bytes),
        Value::Float(number) if atomic.base == Base::Float32 => {
            out.extend((number.get() as f32).to_be_bytes());
        }
        Value::Float(number) => out.extend(number.get().to_be_bytes()),
        value => {
            // Two's complement: the low octets are the same for signed and unsigned numbers.
            let number = value.whole().unwrap_or(0) as u64;
            let width = atomic.base.width().unwrap_or(8);
            out.extend(&number.to_be_bytes()[8 - width..]);
        }
    }
}

fn put_sparse(data_type: &DataType, value: &Value, out: &mut Vec<u8>) {
    let mut put = |id, data_type: &DataType, value| {
        put_ilv(out, id, |out| match data_type.atomic() {
            Some(atomic) => put_atomic(atomic, value, out),
            None => put_sparse(data_type, value, out),
        });
    };
    match (&data_type.target().kind, value) {
        (Kind::Struct(fields), Value::Struct(values)) => {
            for field in fields {
                if let Some(value) = values.get(field.id) {
                    put(field.id, &field.data_type, value);
                }
            }
        }
        (Kind::Union(fields), Value::Union(id, value)) => {
            if let Some(field) = fields.iter().find(|field| field.id == *id) {
                put(field.id, &field.data_type, value);
            }
        }
        (Kind::Array(array), Value::Array(rows)) => {
            rows.iter().for_each(|(index, row)| put(*index, &array.element, row));
        }
        _ => debug_assert!(false, "values are checked before encoding"),
    }
}

/// Checks that only padding that was counted in a length remains.
fn ends(rest: Part<'_>) -> Result<(), WireFault> {
    match rest.bytes {
        bytes if bytes.len() < 4 && bytes.iter().all(|byte| *byte == 0) => Ok(()),
        bytes => Err(rest.fault(WireFaultKind::Long { octets: bytes.len() })),
    }
}

/// Reads a value that fills its TLV; it may leave octets.
fn top(data_type: &DataType, rest: &mut Part<'_>) -> Result<Value, WireFault> {
    match &data_type.target().kind {
        Kind::Atomic(atomic) => {
            let width = atomic.base.width().unwrap_or(rest.bytes.len());
            let value = rest.take(width)?;
            atomic_value(atomic, value)
        }
        Kind::Struct(fields) => {
            let mut values = Fields::with_capacity(fields.len());
            for field in fields {
                values.insert(field.id, inner(&field.data_type, rest)?);
            }
            Ok(Value::Struct(values))
        }
        Kind::Union(fields) => {
            let start = *rest;
            let id = rest.word()?;
            let field = known(fields, id, start)?;
            Ok(Value::Union(id, Box::new(inner(&field.data_type, rest)?)))
        }
        Kind::Array(array) => rows(array, rest),
        Kind::Alias(_) => Err(rest.fault(WireFaultKind::Tlv(Tlv::FullData as u16))),
    }
}

fn rows(array: &Array, rest: &mut Part<'_>) -> Result<Value, WireFault> {
    let mut rows = Rows::new();
    // Fewer octets than an index has are padding or excess.
    while rest.bytes.len() >= 4 {
        let start = *rest;
        let index = rest.word()?;
        let row = inner(&array.element, rest)?;
        if rows.insert(index, row).is_some() {
            return Err(wrong(start, ValueFaultKind::Twice { part: format!("row {index}") }));
        }
    }
    Ok(Value::Array(rows))
}

fn inner(data_type: &DataType, rest: &mut Part<'_>) -> Result<Value, WireFault> {
    if !is_wrapped(data_type) {
        return top(data_type, rest);
    }
    let start = *rest;
    let (kind, mut value) = rest.tlv()?;
    if kind != Tlv::FullData as u16 {
        return Err(start.fault(WireFaultKind::Tlv(kind)));
    }
    let read = top(data_type, &mut value)?;
    ends(value)?;
    Ok(read)
}

fn atomic_value(atomic: &Atomic, part: Part<'_>) -> Result<Value, WireFault> {
    let bytes = part.bytes;
    let unsigned = bytes.iter().take(8).fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    Ok(match atomic.base {
        Base::Boolean => match bytes {
            [0] => Value::Boolean(false),
            [1] => Value::Boolean(true),
            _ => {
                let (number, allowed) = (unsigned.to_string(), "0 to 1".to_string());
                return Err(wrong(part, ValueFaultKind::Range { number, allowed }));
            }
        },
        Base::Text(_) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_string()),
            Err(_) => return Err(wrong(part, ValueFaultKind::Utf8)),
        },
        Base::Bytes(_) | Base::Octets(_) => Value::Bytes(bytes.to_vec()),
        Base::Float32 => Value::from(f64::from(f32::from_bits(unsigned as u32))),
        Base::Float64 => Value::from(f64::from_bits(unsigned)),
        base if base.is_signed() => {
            let unused = 64 - 8 * bytes.len() as u32;
            Value::Signed((unsigned << unused) as i64 >> unused)
        }
        _ => Value::Unsigned(unsigned),
    })
}

fn known<'a>(fields: &'a [Field], id: u32, at: Part<'_>) -> Result<&'a Field, WireFault> {
    fields.iter().find(|field| field.id == id).ok_or_else(|| {
        let names = crate::model::value::listed(fields.iter().map(|field| &field.name));
        wrong(at, ValueFaultKind::FieldUnknown { field: id.to_string(), names })
    })
}

/// Reads the parts of a value; the type bounds the recursion.
fn sparse(data_type: &DataType, mut rest: Part<'_>) -> Result<Value, WireFault> {
    let part = |data_type: &DataType, mut value: Part<'_>| match data_type.atomic() {
        Some(_) => {
            let read = top(data_type, &mut value)?;
            ends(value)?;
            Ok(read)
        }
        None => sparse(data_type, value),
    };
    let mut rows = Rows::new();
    let mut fields_read = Fields::new();
    while !rest.is_empty() {
        let start = rest;
        let (id, value) = rest.ilv()?;
        let twice = match &data_type.target().kind {
            Kind::Array(array) => rows.insert(id, part(&array.element, value)?),
            Kind::Struct(fields) | Kind::Union(fields) => {
                let field = known(fields, id, start)?;
                fields_read.insert(id, part(&field.data_type, value)?)
            }
            // Atomic values have no parts.
            _ => return Err(start.fault(WireFaultKind::Tlv(Tlv::SparseData as u16))),
        };
        if twice.is_some() {
            return Err(wrong(start, ValueFaultKind::Twice { part: id.to_string() }));
        }
    }
    match &data_type.target().kind {
        Kind::Array(_) => Ok(Value::Array(rows)),
        Kind::Struct(_) => Ok(Value::Struct(fields_read)),
        Kind::Union(_) if fields_read.len() == 1 => {
            let (id, value) = fields_read.into_iter().next().expect("the union has one field");
            Ok(Value::Union(id, Box::new(value)))
        }
        _ => Err(rest.fault(WireFaultKind::Tlv(Tlv::SparseData as u16))),
    }
}
