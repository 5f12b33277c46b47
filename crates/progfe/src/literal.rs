//! Literals: decimal, `0x...`, MAC, IPv4 and IPv6 addresses.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt;

/// A value with its notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Literal {
    /// The value.
    pub value: u128,
    /// Notation in input and output.
    pub form: Form,
}

/// Notation of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// `40`.
    Decimal,
    /// `0x8100`.
    Hex,
    /// `02:00:00:00:00:01`.
    Mac,
    /// `10.0.0.1`.
    Ipv4,
    /// `fe80::1`.
    Ipv6,
}

impl Form {
    /// Returns the width of an address notation; none for numbers.
    pub fn bits(self) -> Option<u32> {
        match self {
            Form::Decimal | Form::Hex => None,
            Form::Mac => Some(48),
            Form::Ipv4 => Some(32),
            Form::Ipv6 => Some(128),
        }
    }
}

/// Parses a word.
pub fn read(word: &str) -> Option<Literal> {
    if let Some(value) = crate::xml::number(word) {
        let hex = word.trim().starts_with("0x") || word.trim().starts_with("0X");
        return Some(Literal { value, form: if hex { Form::Hex } else { Form::Decimal } });
    }
    if let Some(mac) = packet::header::ethernet::mac_from_text(word) {
        let value = mac.iter().fold(0u128, |sum, byte| (sum << 8) | u128::from(*byte));
        return Some(Literal { value, form: Form::Mac });
    }
    if let Ok(address) = word.parse::<Ipv4Addr>() {
        return Some(Literal { value: address.to_bits().into(), form: Form::Ipv4 });
    }
    let address = word.parse::<Ipv6Addr>().ok()?;
    Some(Literal { value: address.to_bits(), form: Form::Ipv6 })
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Decimal => write!(f, "{}", self.value),
            Form::Hex => write!(f, "0x{:x}", self.value),
            Form::Mac => {
                let bytes = self.value.to_be_bytes();
                let texts: Vec<String> = bytes[10..].iter().map(|b| format!("{b:02x}")).collect();
                f.write_str(&texts.join(":"))
            }
            Form::Ipv4 => write!(f, "{}", Ipv4Addr::from_bits(self.value as u32)),
            Form::Ipv6 => write!(f, "{}", Ipv6Addr::from_bits(self.value)),
        }
    }
}
