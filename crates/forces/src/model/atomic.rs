//! Base types, and atomic types derived from them (RFC 5812 sections 4.5 and 4.5.2).

use std::fmt;
use std::ops::RangeInclusive;

use super::ATOM_OCTETS_MAX;
use crate::model::value::Value;

/// A built-in type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Base {
    /// Signed, eight bits.
    Char,
    /// Unsigned, eight bits.
    Uchar,
    /// Signed, 16 bits.
    Int16,
    /// Unsigned, 16 bits.
    Uint16,
    /// Signed, 32 bits.
    Int32,
    /// Unsigned, 32 bits.
    Uint32,
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 64 bits.
    Uint64,
    /// False or true, in one octet.
    Boolean,
    /// UTF-8 text with a maximum number of octets.
    Text(Option<u32>),
    /// A fixed number of octets.
    Bytes(u32),
    /// Octets with a maximum number.
    Octets(u32),
    /// IEEE 754, 32 bits.
    Float32,
    /// IEEE 754, 64 bits.
    Float64,
}

impl Base {
    const PLAIN: [(&'static str, Base); 12] = [
        ("char", Base::Char),
        ("uchar", Base::Uchar),
        ("int16", Base::Int16),
        ("uint16", Base::Uint16),
        ("int32", Base::Int32),
        ("uint32", Base::Uint32),
        ("int64", Base::Int64),
        ("uint64", Base::Uint64),
        ("boolean", Base::Boolean),
        ("string", Base::Text(None)),
        ("float32", Base::Float32),
        ("float64", Base::Float64),
    ];

    /// Parses the name of a base type.
    ///
    /// Sizes of zero and above [`ATOM_OCTETS_MAX`] are invalid.
    pub fn parse(name: &str) -> Option<Base> {
        if let Some((_, base)) = Base::PLAIN.iter().find(|(plain, _)| *plain == name) {
            return Some(*base);
        }
        let (word, rest) = name.split_once('[')?;
        let digits = rest.strip_suffix(']')?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let count = digits.parse().ok().filter(|count| (1..=ATOM_OCTETS_MAX).contains(count))?;
        match word {
            "string" => Some(Base::Text(Some(count))),
            "byte" => Some(Base::Bytes(count)),
            "octetstring" => Some(Base::Octets(count)),
            _ => None,
        }
    }

    /// Returns the octets of a value on the wire, if their number is fixed.
    pub fn width(self) -> Option<usize> {
        Some(match self {
            Base::Char | Base::Uchar | Base::Boolean => 1,
            Base::Int16 | Base::Uint16 => 2,
            Base::Int32 | Base::Uint32 | Base::Float32 => 4,
            Base::Int64 | Base::Uint64 | Base::Float64 => 8,
            Base::Bytes(count) => count as usize,
            Base::Text(_) | Base::Octets(_) => return None,
        })
    }

    /// Returns the range of an integer type.
    pub fn whole(self) -> Option<RangeInclusive<i128>> {
        Some(match self {
            Base::Char => i8::MIN.into()..=i8::MAX.into(),
            Base::Uchar => 0..=u8::MAX.into(),
            Base::Int16 => i16::MIN.into()..=i16::MAX.into(),
            Base::Uint16 => 0..=u16::MAX.into(),
            Base::Int32 => i32::MIN.into()..=i32::MAX.into(),
            Base::Uint32 => 0..=u32::MAX.into(),
            Base::Int64 => i64::MIN.into()..=i64::MAX.into(),
            Base::Uint64 => 0..=u64::MAX.into(),
            _ => return None,
        })
    }

    /// Returns whether this is a signed integer type.
    pub fn is_signed(self) -> bool {
        matches!(self, Base::Char | Base::Int16 | Base::Int32 | Base::Int64)
    }

    /// Returns the maximum octets of a string, byte array or octet string.
    pub fn octets_max(self) -> Option<usize> {
        match self {
            Base::Text(max) => Some(max.unwrap_or(ATOM_OCTETS_MAX) as usize),
            Base::Bytes(max) | Base::Octets(max) => Some(max as usize),
            _ => None,
        }
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Base::Text(Some(max)) => write!(f, "string[{max}]"),
            Base::Bytes(count) => write!(f, "byte[{count}]"),
            Base::Octets(max) => write!(f, "octetstring[{max}]"),
            plain => {
                let known = Base::PLAIN.iter().find(|(_, base)| base == plain);
                f.write_str(known.map_or("?", |(name, _)| name))
            }
        }
    }
}

/// A special value: a value with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecialValue {
    /// The value.
    pub value: Value,
    /// Its name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
}

/// A base type with optional ranges and special values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Atomic {
    /// The base type.
    pub base: Base,
    /// Allowed numbers; empty if the whole base type is allowed.
    pub ranges: Vec<RangeInclusive<i128>>,
    /// Special values; they are allowed even outside the ranges.
    pub special: Vec<SpecialValue>,
}

impl Atomic {
    /// Returns a base type without restrictions.
    pub fn plain(base: Base) -> Atomic {
        Atomic { base, ranges: Vec::new(), special: Vec::new() }
    }

    /// Returns the special value with this name.
    pub fn named(&self, name: &str) -> Option<&Value> {
        self.special.iter().find(|special| special.name == name).map(|special| &special.value)
    }

    /// Returns the name of a special value.
    pub fn name_of(&self, value: &Value) -> Option<&str> {
        let special = self.special.iter().find(|special| special.value == *value)?;
        Some(&special.name)
    }

    /// Returns whether the ranges allow a number.
    pub fn allows(&self, number: i128) -> bool {
        self.ranges.is_empty() || self.ranges.iter().any(|range| range.contains(&number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_type_names_round_trip() {
        let names = ["char", "uint64", "boolean", "string", "string[40]", "byte[6]", "float32"];
        for name in names.into_iter().chain(["octetstring[128]", "int16", "float64"]) {
            assert_eq!(Base::parse(name).map(|base| base.to_string()).as_deref(), Some(name));
        }
        for name in ["", "int", "byte", "byte[0]", "byte[+4]", "byte[70000]", "byte[6", "text[3]"] {
            assert_eq!(Base::parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_range_determines_the_width_of_a_number() {
        for (_, base) in Base::PLAIN {
            let (Some(range), Some(width)) = (base.whole(), base.width()) else { continue };
            assert_eq!(range.end() - range.start(), (1i128 << (8 * width)) - 1, "{base}");
            assert_eq!(*range.start() < 0, base.is_signed(), "{base}");
        }
    }
}
