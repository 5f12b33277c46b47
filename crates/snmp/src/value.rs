//! Values of objects in the Structure of Management Information (RFC 2578).

use std::fmt;

use rasn::types::{FixedOctetString, Integer, OctetString};
use rasn_smi::v1;
use rasn_smi::v2::{ApplicationSyntax, Counter64, ObjectSyntax, SimpleSyntax};
use rasn_snmp::v2::{VarBind, VarBindValue};

use crate::{DecodeError, Oid};

/// A value, or the reason for its absence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// No value, as in a request.
    Null,
    /// INTEGER, Integer32.
    Integer(i64),
    /// OCTET STRING: text, an address, bits.
    Octets(Vec<u8>),
    /// The name of an object.
    Name(Oid),
    /// An IPv4 address.
    Address([u8; 4]),
    /// Counter32, which wraps after 4294967295.
    Counter32(u32),
    /// Gauge32, Unsigned32.
    Gauge(u32),
    /// Hundredths of a second.
    Ticks(u32),
    /// Bytes of another syntax.
    Opaque(Vec<u8>),
    /// Counter64.
    Counter64(u64),
    /// The agent has no object with this name.
    NoSuchObject,
    /// The object has no instance with this name.
    NoSuchInstance,
    /// There is no name after this one.
    EndOfMibView,
}

/// An instance and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The name.
    pub name: Oid,
    /// The value.
    pub value: Value,
}

impl Value {
    /// Returns a numeric value, if it is not negative.
    pub fn count(&self) -> Option<u64> {
        match *self {
            Value::Integer(number) => u64::try_from(number).ok(),
            Value::Counter32(number) | Value::Gauge(number) | Value::Ticks(number) => {
                Some(number.into())
            }
            Value::Counter64(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the value as text, if it is an octet string; invalid UTF-8 is replaced.
    pub fn text(&self) -> Option<String> {
        match self {
            Value::Octets(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }

    /// Whether this is a reason for absence.
    pub fn is_absent(&self) -> bool {
        matches!(self, Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMibView)
    }

    fn wire(&self) -> VarBindValue {
        let simple = |value| VarBindValue::Value(ObjectSyntax::Simple(value));
        let wide = |value| VarBindValue::Value(ObjectSyntax::ApplicationWide(value));
        let bytes = |bytes: &[u8]| OctetString::from(bytes);
        match self {
            Value::Null => VarBindValue::Unspecified,
            Value::Integer(number) => simple(SimpleSyntax::Integer(Integer::from(*number))),
            // The simulated agent has no opaque values.
            Value::Octets(octets) | Value::Opaque(octets) => {
                simple(SimpleSyntax::String(bytes(octets)))
            }
            Value::Name(name) => simple(SimpleSyntax::ObjectId(name.wire())),
            Value::Address(address) => {
                wide(ApplicationSyntax::Address(v1::IpAddress(FixedOctetString::new(*address))))
            }
            Value::Counter32(number) => wide(ApplicationSyntax::Counter(v1::Counter(*number))),
            Value::Gauge(number) => wide(ApplicationSyntax::Unsigned(v1::Gauge(*number))),
            Value::Ticks(number) => wide(ApplicationSyntax::Ticks(v1::TimeTicks(*number))),
            Value::Counter64(number) => wide(ApplicationSyntax::BigCounter(Counter64(*number))),
            Value::NoSuchObject => VarBindValue::NoSuchObject,
            Value::NoSuchInstance => VarBindValue::NoSuchInstance,
            Value::EndOfMibView => VarBindValue::EndOfMibView,
        }
    }

    fn of_wire(value: &VarBindValue) -> Result<Value, DecodeError> {
        let name = |name| Oid::of_wire(name).ok_or(DecodeError("a name is too long"));
        Ok(match value {
            VarBindValue::Unspecified => Value::Null,
            VarBindValue::NoSuchObject => Value::NoSuchObject,
            VarBindValue::NoSuchInstance => Value::NoSuchInstance,
            VarBindValue::EndOfMibView => Value::EndOfMibView,
            VarBindValue::Value(ObjectSyntax::Simple(value)) => match value {
                SimpleSyntax::Integer(number) => {
                    let number = i64::try_from(number);
                    Value::Integer(
                        number.map_err(|_| DecodeError("a number has more than 64 bits"))?,
                    )
                }
                SimpleSyntax::String(bytes) => Value::Octets(bytes.to_vec()),
                SimpleSyntax::ObjectId(it) => Value::Name(name(it)?),
            },
            VarBindValue::Value(ObjectSyntax::ApplicationWide(value)) => match value {
                ApplicationSyntax::Address(address) => Value::Address(*address.0),
                ApplicationSyntax::Counter(number) => Value::Counter32(number.0),
                ApplicationSyntax::Ticks(number) => Value::Ticks(number.0),
                ApplicationSyntax::Arbitrary(bytes) => Value::Opaque(bytes.as_ref().to_vec()),
                ApplicationSyntax::BigCounter(number) => Value::Counter64(number.0),
                ApplicationSyntax::Unsigned(number) => Value::Gauge(number.0),
            },
        })
    }
}

impl Binding {
    /// Creates the binding of a request.
    pub fn question(name: Oid) -> Binding {
        Binding { name, value: Value::Null }
    }

    pub(crate) fn wire(&self) -> VarBind {
        VarBind { name: self.name.wire(), value: self.value.wire() }
    }

    pub(crate) fn of_wire(binding: &VarBind) -> Result<Binding, DecodeError> {
        let name = Oid::of_wire(&binding.name).ok_or(DecodeError("a name is too long"))?;
        Ok(Binding { name, value: Value::of_wire(&binding.value)? })
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Integer(number) => write!(f, "{number}"),
            Value::Octets(bytes) | Value::Opaque(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if !text.chars().any(char::is_control) => f.write_str(text),
                _ => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            },
            Value::Name(name) => write!(f, "{name}"),
            Value::Address([a, b, c, d]) => write!(f, "{a}.{b}.{c}.{d}"),
            Value::Counter32(number) | Value::Gauge(number) | Value::Ticks(number) => {
                write!(f, "{number}")
            }
            Value::Counter64(number) => write!(f, "{number}"),
            Value::NoSuchObject => f.write_str("no such object"),
            Value::NoSuchInstance => f.write_str("no such instance"),
            Value::EndOfMibView => f.write_str("end of the MIB view"),
        }
    }
}
