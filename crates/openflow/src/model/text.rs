//! Text of bounded length, as fixed fields of messages hold it.
//!
//! On the wire such a field is padded with zero bytes, and nothing promises that it is UTF-8:
//! the bytes are kept as they came and made printable only when shown.

use std::fmt;

/// Bytes without a zero byte, meant to be read by people.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text(Vec<u8>);

impl Text {
    /// The bytes up to the first zero byte.
    pub fn from_bytes(bytes: &[u8]) -> Text {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Text(bytes[..end].to_vec())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::from_bytes(text.as_bytes())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Bytes shown as hexadecimal digits.
pub(crate) struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Values shown one after the other with a comma between them.
pub(crate) fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, values: &[T]) -> fmt::Result {
    for (place, value) in values.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        write!(f, "{comma}{value}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_the_first_zero_and_prints_any_byte() {
        let text = Text::from_bytes(b"eth\xff0\0rest");
        assert_eq!(text.as_bytes(), b"eth\xff0");
        assert_eq!(text.to_string(), "eth\\xff0");
        assert!(text != *"eth" && Text::from("eth0").as_bytes() == b"eth0");
    }
}
