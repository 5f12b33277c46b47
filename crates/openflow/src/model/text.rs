//! Strings of bounded length in fixed-size fields of messages.
//!
//! On the wire such a field is padded with zero bytes and may contain invalid UTF-8. [`Text`] keeps
//! the bytes as received; `Display` makes them printable.

use std::fmt;

/// A human-readable string of bytes, without zero bytes.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text(Vec<u8>);

impl Text {
    /// Returns the bytes up to the first zero byte.
    pub fn from_bytes(bytes: &[u8]) -> Text {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Text(bytes[..end].to_vec())
    }

    /// Returns the bytes.
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

/// Bytes as hexadecimal digits.
pub(crate) struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Writes values separated by commas.
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
