//! Literal values in a stream file: numbers and addresses.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use crate::stream::{Field, Headers, Network};

/// A MAC address as text, `02:00:00:00:00:01`.
pub struct Mac(pub [u8; 6]);

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = || de::Error::custom(format!("{text:?} is not a MAC address"));
        mac(&text).map(Mac).ok_or_else(wrong)
    }
}

/// A field's value: a number, or an address as text.
#[derive(Clone, Copy)]
pub struct Literal {
    pub value: u64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Number,
    Mac,
    Address,
    /// Upper half of an IPv6 address.
    LongAddress(u64),
}

impl Literal {
    /// Returns whether the field accepts such a value.
    ///
    /// Only the lower half of IPv6 addresses varies. The upper half must be the stream's, or zero.
    pub fn suits(self, field: Field, headers: &Headers) -> bool {
        match field {
            Field::MacSource | Field::MacDestination => {
                matches!(self.kind, Kind::Number | Kind::Mac)
            }
            Field::IpSource | Field::IpDestination => {
                matches!(self.kind, Kind::Number | Kind::Address)
            }
            Field::Ipv6Source | Field::Ipv6Destination => match self.kind {
                Kind::Number | Kind::LongAddress(0) => true,
                Kind::LongAddress(upper) => upper_half(field, headers) == Some(upper),
                Kind::Mac | Kind::Address => false,
            },
            _ => self.kind == Kind::Number,
        }
    }
}

/// Returns the upper half of the stream's own address.
fn upper_half(field: Field, headers: &Headers) -> Option<u64> {
    let Network::Ipv6 { source, destination, .. } = headers.network else { return None };
    let address = if field == Field::Ipv6Source { source } else { destination };
    Some((address.to_bits() >> 64) as u64)
}

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Literal;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a MAC address or an IP address")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Literal, E> {
                let value = u64::try_from(number)
                    .map_err(|_| E::custom(format!("{number} is negative")))?;
                Ok(Literal { value, kind: Kind::Number })
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Literal, E> {
                Ok(Literal { value, kind: Kind::Number })
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Literal, E> {
                if let Some(bytes) = mac(text) {
                    let value = bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
                    return Ok(Literal { value, kind: Kind::Mac });
                }
                if let Ok(address) = text.parse::<Ipv6Addr>() {
                    let bits = address.to_bits();
                    let kind = Kind::LongAddress((bits >> 64) as u64);
                    return Ok(Literal { value: bits as u64, kind });
                }
                let address: Ipv4Addr = text
                    .parse()
                    .map_err(|_| E::custom(format!("{text:?} is not a MAC or IP address")))?;
                Ok(Literal { value: address.to_bits().into(), kind: Kind::Address })
            }
        }
        from.deserialize_any(Reader)
    }
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next()?;
        let is_hex = part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
        *byte = if is_hex { u8::from_str_radix(part, 16).ok()? } else { return None };
    }
    parts.next().is_none().then_some(bytes)
}
