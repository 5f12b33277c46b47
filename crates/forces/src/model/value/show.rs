//! Formats values as text that parses to the same value.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt::{self, Display, Write};

use super::Value;
use crate::model::{Atomic, Base, DataType, Field, Kind};

/// A value in the notation of its type.
pub struct DisplayedValue<'a> {
    data_type: &'a DataType,
    value: &'a Value,
}

impl DataType {
    /// Formats a value, with the type's names of fields and special values.
    ///
    /// [`DataType::parse`] parses it to the same value, if the value is valid for this type.
    pub fn show<'a>(&'a self, value: &'a Value) -> DisplayedValue<'a> {
        DisplayedValue { data_type: self, value }
    }
}

impl Display for DisplayedValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Text on its own needs quotes only if it is ambiguous without them.
        match (self.data_type.atomic(), self.value) {
            (Some(atomic), Value::Text(text)) => {
                let plain = text.trim() == text && !text.chars().any(char::is_control);
                let named = atomic.named(text).is_some();
                match plain && !text.starts_with('"') && !text.is_empty() && !named {
                    true => f.write_str(text),
                    false => show(self.data_type, self.value, f),
                }
            }
            _ => show(self.data_type, self.value, f),
        }
    }
}

fn show(data_type: &DataType, value: &Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (&data_type.kind, value) {
        (Kind::Alias(target), value) => show(target, value, f),
        (Kind::Atomic(atomic), value) => show_atomic(atomic, value, f),
        (Kind::Array(array), Value::Array(rows)) => {
            f.write_char('[')?;
            for (place, (index, row)) in rows.iter().enumerate() {
                write!(f, "{}{index}=", if place > 0 { ", " } else { "" })?;
                show(&array.element, row, f)?;
            }
            f.write_char(']')
        }
        (Kind::Struct(fields), Value::Struct(values)) => {
            f.write_char('{')?;
            // In the order of the type, then unknown fields.
            let known = fields.iter().filter_map(|field| Some((field.id, values.get(field.id)?)));
            let is_unknown = |id: u32| fields.iter().all(|field| field.id != id);
            let unknown = values.iter().filter(|(id, _)| is_unknown(*id));
            for (place, (id, value)) in known.chain(unknown).enumerate() {
                f.write_str(if place > 0 { ", " } else { "" })?;
                show_field(fields, id, value, f)?;
            }
            f.write_char('}')
        }
        (Kind::Union(fields), Value::Union(id, value)) => {
            f.write_char('{')?;
            show_field(fields, *id, value, f)?;
            f.write_char('}')
        }
        (_, stray) => write!(f, "{stray:?}"),
    }
}

fn show_field(fields: &[Field], id: u32, value: &Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fields.iter().find(|field| field.id == id) {
        Some(field) => {
            write!(f, "{}=", field.name)?;
            show(&field.data_type, value, f)
        }
        None => write!(f, "{id}={value:?}"),
    }
}

fn show_atomic(atomic: &Atomic, value: &Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some(name) = atomic.name_of(value) {
        return f.write_str(name);
    }
    match value {
        Value::Unsigned(number) => write!(f, "{number}"),
        Value::Signed(number) => write!(f, "{number}"),
        Value::Float(number) => write!(f, "{}", number.get()),
        Value::Boolean(it) => write!(f, "{it}"),
        Value::Text(text) => show_quoted(text, f),
        Value::Bytes(bytes) => show_bytes(atomic.base, bytes, f),
        stray => write!(f, "{stray:?}"),
    }
}

fn show_bytes(base: Base, bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (base, bytes) {
        (Base::Bytes(4), &[a, b, c, d]) => write!(f, "{}", Ipv4Addr::new(a, b, c, d)),
        (Base::Bytes(6), &[a, b, c, d, e, g]) => {
            write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
        }
        (Base::Bytes(16), bytes) => match <[u8; 16]>::try_from(bytes) {
            Ok(octets) => write!(f, "{}", Ipv6Addr::from(octets)),
            Err(_) => show_hexadecimal(bytes, f),
        },
        _ => show_hexadecimal(bytes, f),
    }
}

fn show_hexadecimal(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("0x")?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn show_quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(f, "\\{character}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            control if control.is_control() => {
                let mut octets = [0; 4];
                let octets = control.encode_utf8(&mut octets).bytes();
                octets.into_iter().try_for_each(|octet| write!(f, "\\x{octet:02x}"))?;
            }
            plain => f.write_char(plain)?,
        }
    }
    f.write_char('"')
}
