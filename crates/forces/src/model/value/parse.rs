//! Parses values in the notation of command lines and documents.
//!
//! - Atomic values are the whole text: `10`, `0x0a`, `true`, `10.2.0.0`, `02:00:00:00:01:01`,
//!   `2001:db8::1`, `0x0102` for any octets, the name of a special value, or plain text.
//! - A struct is `{Prefixlen=16, 6=7}` with names or IDs. A union has exactly one such field.
//! - An array is `[7=..., 9=...]`, or `[..., ...]` from index 0.
//! - Inside these, ambiguous text is in double quotes with `\"`, `\\`, `\n`, `\r`, `\t` and `\xHH`.

use core::net::{Ipv4Addr, Ipv6Addr};

use super::check::{allowed, check_octets};
use super::fault::{ValueFault, ValueFaultKind, listed};
use super::{Fields, ROWS_MAX, Rows, TEXT_OCTETS_MAX, Value};
use crate::model::{Atomic, Base, DataType, Field, Kind};

/// Maximum octets of invalid text that a fault quotes.
const REPEATED_OCTETS_MAX: usize = 60;

impl DataType {
    /// Parses and checks a value.
    pub fn parse(&self, text: &str) -> Result<Value, ValueFault> {
        if text.len() > TEXT_OCTETS_MAX {
            let (octets, octets_max) = (text.len(), TEXT_OCTETS_MAX);
            return Err(ValueFault::here(ValueFaultKind::TextTooLong { octets, octets_max }));
        }
        let value = match self.atomic() {
            Some(atomic) => {
                let trimmed = text.trim();
                let value = match quoted_whole(trimmed) {
                    Some(inner) => quoted_value(atomic, inner),
                    None if matches!(atomic.base, Base::Text(_)) => atomic_value(atomic, text),
                    None => atomic_value(atomic, trimmed),
                };
                value.map_err(ValueFault::here)?
            }
            None => {
                let mut reader = Reader { text, at: 0 };
                let value = reader.value(self)?;
                reader.skip_space();
                if reader.at < text.len() {
                    return Err(reader.expected("nothing"));
                }
                value
            }
        };
        self.check(&value)?;
        Ok(value)
    }
}

impl Atomic {
    /// Parses a value without checking ranges.
    pub(crate) fn parse_loosely(&self, text: &str) -> Result<Value, ValueFaultKind> {
        atomic_value(self, text)
    }
}

/// Returns the text between the quotes, if the whole text is one quoted string.
fn quoted_whole(text: &str) -> Option<Vec<u8>> {
    let mut reader = Reader { text, at: 0 };
    let inner = reader.quoted()?.ok()?;
    (reader.at == text.len()).then_some(inner)
}

fn quoted_value(atomic: &Atomic, inner: Vec<u8>) -> Result<Value, ValueFaultKind> {
    match atomic.base {
        Base::Bytes(_) | Base::Octets(_) => Ok(Value::Bytes(inner)),
        Base::Text(_) => {
            Ok(Value::Text(String::from_utf8(inner).map_err(|_| ValueFaultKind::Utf8)?))
        }
        _ => {
            let text = String::from_utf8(inner).map_err(|_| ValueFaultKind::Utf8)?;
            atomic_value(atomic, text.trim())
        }
    }
}

/// Parses an integer, decimal or hexadecimal with `0x`.
pub(crate) fn parse_number(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((digits, 10), |digits| (digits, 16));
    // The standard parser accepts a second sign.
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return None;
    }
    i128::from_str_radix(digits, radix).ok().map(|number| sign * number)
}

fn atomic_value(atomic: &Atomic, text: &str) -> Result<Value, ValueFaultKind> {
    if let Some(value) = atomic.named(text) {
        return Ok(value.clone());
    }
    let base = atomic.base;
    let not_that = |expected: &str| {
        let mut end = text.len().min(REPEATED_OCTETS_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let names = listed(atomic.special.iter().map(|special| &special.name));
        ValueFaultKind::NotThat {
            text: text[..end].to_string(),
            expected: expected.to_string(),
            names,
        }
    };
    if let Some(range) = base.whole() {
        let number = parse_number(text).ok_or_else(|| not_that("an integer"))?;
        if !range.contains(&number) {
            return Err(ValueFaultKind::Range {
                number: number.to_string(),
                allowed: allowed(atomic),
            });
        }
        return Ok(match base.is_signed() {
            true => Value::Signed(number as i64),
            false => Value::Unsigned(number as u64),
        });
    }
    match base {
        Base::Boolean => match text {
            "true" | "1" => Ok(Value::Boolean(true)),
            "false" | "0" => Ok(Value::Boolean(false)),
            _ => Err(not_that("true or false")),
        },
        Base::Text(_) => {
            check_octets(base, text.len())?;
            Ok(Value::Text(text.to_string()))
        }
        Base::Float32 | Base::Float64 => {
            let number: f64 = text.parse().map_err(|_| not_that("a number"))?;
            Ok(Value::from(if base == Base::Float32 { f64::from(number as f32) } else { number }))
        }
        _ => {
            let literal = octets_literal(base, text);
            let bytes = literal.ok_or_else(|| not_that(octets_words(base)))?;
            check_octets(base, bytes.len())?;
            Ok(Value::Bytes(bytes))
        }
    }
}

fn octets_words(base: Base) -> &'static str {
    match base {
        Base::Bytes(4) => "an IPv4 address (10.2.0.0) or hexadecimal octets (0x0a020000)",
        Base::Bytes(6) => {
            "a MAC address (02:00:00:00:01:01) or hexadecimal octets (0x020000000101)"
        }
        Base::Bytes(16) => "an IPv6 address (2001:db8::1) or hexadecimal octets (0x...)",
        _ => "octets in hexadecimal (0x0102), or text in double quotes",
    }
}

/// Parses octets: an address of the type's length, `0x0102` or `01:02`.
fn octets_literal(base: Base, text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("0x") {
        let pairs = digits.as_bytes().chunks(2);
        return pairs.map(|pair| hexadecimal(pair).filter(|_| pair.len() == 2)).collect();
    }
    match base {
        Base::Bytes(4) => text.parse::<Ipv4Addr>().ok().map(|ip| ip.octets().to_vec()),
        Base::Bytes(16) => text.parse::<Ipv6Addr>().ok().map(|ip| ip.octets().to_vec()),
        _ if text.contains([':', '-']) => {
            let parts = text.split([':', '-']);
            parts.map(|part| hexadecimal(part.as_bytes())).collect()
        }
        _ => None,
    }
}

/// Parses one octet of one or two hexadecimal digits.
fn hexadecimal(digits: &[u8]) -> Option<u8> {
    if !(1..=2).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Parses a compound value; the type bounds the recursion.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, data_type: &DataType) -> Result<Value, ValueFault> {
        match &data_type.kind {
            Kind::Alias(target) => self.value(target),
            Kind::Atomic(atomic) => self.atomic(atomic),
            Kind::Struct(fields) => Ok(Value::Struct(self.fields(fields)?)),
            Kind::Union(fields) => {
                let values = self.fields(fields)?;
                let one = values.into_iter().next();
                let (id, value) = one.ok_or_else(|| self.expected("one field"))?;
                Ok(Value::Union(id, Box::new(value)))
            }
            Kind::Array(array) => self.rows(&array.element),
        }
    }

    fn fields(&mut self, fields: &[Field]) -> Result<Fields, ValueFault> {
        self.take('{').ok_or_else(|| self.expected("'{'"))?;
        let mut values = Fields::new();
        while self.take('}').is_none() {
            let word = self.word();
            let id = parse_number(&word);
            let same = |field: &&Field| field.name == word || id == Some(field.id.into());
            let Some(field) = fields.iter().find(same) else {
                let names = listed(fields.iter().map(|field| &field.name));
                return Err(ValueFault::here(ValueFaultKind::FieldUnknown { field: word, names }));
            };
            self.take('=').ok_or_else(|| self.expected("'='"))?;
            let value = self.value(&field.data_type).map_err(|fault| fault.below(&field.name))?;
            if values.insert(field.id, value).is_some() {
                return Err(ValueFault::here(ValueFaultKind::Twice { part: field.name.clone() }));
            }
            self.comma('}', "',' or '}'")?;
        }
        Ok(values)
    }

    fn rows(&mut self, element: &DataType) -> Result<Value, ValueFault> {
        self.take('[').ok_or_else(|| self.expected("'['"))?;
        let mut rows = Rows::new();
        let mut next = 0u32;
        while self.take(']').is_none() {
            let index = self.index().unwrap_or(next);
            let row = self.value(element);
            let row = row.map_err(|fault| fault.below(format_args!("[{index}]")))?;
            if rows.insert(index, row).is_some() {
                let part = format!("row {index}");
                return Err(ValueFault::here(ValueFaultKind::Twice { part }));
            }
            if rows.len() > ROWS_MAX {
                let (rows, allowed) = (rows.len(), format!("at most {ROWS_MAX}"));
                return Err(ValueFault::here(ValueFaultKind::Rows { rows, allowed }));
            }
            next = index.wrapping_add(1);
            self.comma(']', "',' or ']'")?;
        }
        Ok(Value::Array(rows))
    }

    /// Parses an index and its equals sign, if they are next.
    fn index(&mut self) -> Option<u32> {
        let before = self.at;
        let word = self.word();
        let index = parse_number(&word).and_then(|number| u32::try_from(number).ok());
        if index.is_some() && self.take('=').is_some() {
            return index;
        }
        self.at = before;
        None
    }

    fn atomic(&mut self, atomic: &Atomic) -> Result<Value, ValueFault> {
        self.skip_space();
        if let Some(inner) = self.quoted() {
            return quoted_value(atomic, inner?).map_err(ValueFault::here);
        }
        let word = self.word();
        if word.is_empty() {
            return Err(self.expected("a value"));
        }
        atomic_value(atomic, &word).map_err(ValueFault::here)
    }

    /// Reads text up to the next special character, without the space around it.
    fn word(&mut self) -> String {
        self.skip_space();
        let rest = &self.text[self.at..];
        let end = rest.find([',', '{', '}', '[', ']', '=', '"']).unwrap_or(rest.len());
        self.at += end;
        rest[..end].trim_end().to_string()
    }

    /// Parses a quoted string, if it is next.
    fn quoted(&mut self) -> Option<Result<Vec<u8>, ValueFault>> {
        self.take('"')?;
        let mut inner = Vec::new();
        let bytes = self.text.as_bytes();
        loop {
            let Some(&byte) = bytes.get(self.at) else { return Some(Err(self.expected("'\"'"))) };
            self.at += 1;
            match byte {
                b'"' => return Some(Ok(inner)),
                b'\\' => {
                    let escaped = match bytes.get(self.at) {
                        Some(b'n') => Some((b'\n', 1)),
                        Some(b'r') => Some((b'\r', 1)),
                        Some(b't') => Some((b'\t', 1)),
                        Some(&mark @ (b'"' | b'\\')) => Some((mark, 1)),
                        Some(b'x') => {
                            let digits = bytes.get(self.at + 1..self.at + 3);
                            digits.and_then(hexadecimal).map(|byte| (byte, 3))
                        }
                        _ => None,
                    };
                    let Some((byte, octets)) = escaped else {
                        return Some(Err(self.expected("one of n, r, t, \", \\, xHH")));
                    };
                    inner.push(byte);
                    self.at += octets;
                }
                byte => inner.push(byte),
            }
        }
    }

    fn comma(&mut self, end: char, expected: &'static str) -> Result<(), ValueFault> {
        self.skip_space();
        if self.take(',').is_some() || self.text[self.at..].starts_with(end) {
            return Ok(());
        }
        Err(self.expected(expected))
    }

    fn take(&mut self, mark: char) -> Option<()> {
        self.skip_space();
        self.text[self.at..].starts_with(mark).then(|| self.at += mark.len_utf8())
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn expected(&self, expected: &'static str) -> ValueFault {
        ValueFault::here(ValueFaultKind::Syntax { at: self.at, expected })
    }
}
