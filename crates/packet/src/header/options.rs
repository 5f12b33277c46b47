//! Header options: at most forty bytes, stored inline.
//!
//! IPv4 (RFC 791 section 3.1) and TCP (RFC 9293 section 3.1) have a 4-bit header length in 4-byte
//! words. This leaves 40 bytes for options. The length of the options is always a whole number of
//! words. The padding is zero, which means "end of options" in both protocols.

/// Maximum size of the options of a header in bytes.
pub const OPTIONS_BYTES_MAX: usize = 40;

/// Options of a header, not interpreted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Options {
    bytes: [u8; OPTIONS_BYTES_MAX],
    length: u8,
}

impl Options {
    /// No options.
    pub const NONE: Options = Options { bytes: [0; OPTIONS_BYTES_MAX], length: 0 };

    /// Creates options from bytes, padded to whole words. Returns `None` if they exceed
    /// [`OPTIONS_BYTES_MAX`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut options = Options::NONE;
        options.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        options.length = bytes.len().next_multiple_of(4) as u8;
        Some(options)
    }

    /// Returns the bytes, a whole number of 4-byte words.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::NONE
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Options({:02x?})", self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_padded_to_words_and_limited() {
        assert_eq!(Options::from_bytes(&[1, 2, 3]).unwrap().bytes(), [1, 2, 3, 0]);
        assert_eq!(Options::from_bytes(&[7; 40]).unwrap().bytes(), [7; 40]);
        assert_eq!(Options::from_bytes(&[7; 41]), None);
        assert_eq!(Options::default().bytes(), []);
    }
}
