//! Options of pcapng blocks (draft-ietf-opsawg-pcapng, section 3.5): sequences of code, length and
//! value, each padded to four bytes.
//!
//! Invariant: options are validated when their block is taken, so later iteration cannot fail.

use super::fault::{CaptureFaultKind, Fault};
use super::{Endianness, NAME_BYTES_MAX};

/// End of options.
pub const END: u16 = 0;

/// Comment, in any block.
pub const COMMENT: u16 = 1;

/// Options of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options<'a> {
    bytes: &'a [u8],
    order: Endianness,
}

impl<'a> Options<'a> {
    /// No options.
    pub const NONE: Options<'static> = Options { bytes: &[], order: Endianness::Little };

    /// Validates options, which start at offset `at` of their block.
    #[inline]
    pub fn new(bytes: &'a [u8], order: Endianness, at: usize) -> Result<Self, Fault> {
        let mut here = 0;
        while here < bytes.len() {
            if bytes.len() - here < 4 {
                let why =
                    CaptureFaultKind::Truncated { need: 4, have: (bytes.len() - here) as u64 };
                return Err(Fault::new((at + here) as u64, why));
            }
            let (code, length) = (order.u16(bytes, here), order.u16(bytes, here + 2));
            if code == END {
                break;
            }
            let filled = usize::from(length).next_multiple_of(4);
            if filled > bytes.len() - here - 4 {
                let why = CaptureFaultKind::Option { code, bytes: length };
                return Err(Fault::new((at + here) as u64, why));
            }
            here += 4 + filled;
        }
        Ok(Options { bytes: &bytes[..here], order })
    }

    /// Returns code and value of each option.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let (mut rest, order) = (self.bytes, self.order);
        std::iter::from_fn(move || {
            if rest.len() < 4 {
                return None;
            }
            let (code, length) = (order.u16(rest, 0), usize::from(order.u16(rest, 2)));
            let value = &rest[4..4 + length];
            rest = &rest[4 + length.next_multiple_of(4)..];
            Some((code, value))
        })
    }

    /// Returns the value of the first option with this code. Its length must be `BYTES`.
    pub fn value<const BYTES: usize>(&self, code: u16) -> Result<Option<[u8; BYTES]>, Fault> {
        let Some((_, value)) = self.iter().find(|(other, _)| *other == code) else {
            return Ok(None);
        };
        let why = CaptureFaultKind::Option { code, bytes: value.len() as u16 };
        value.try_into().map(Some).map_err(|_| Fault::new(0, why))
    }

    /// Returns the first option with this code as a 64-bit number.
    pub fn number(&self, code: u16) -> Result<Option<u64>, Fault> {
        Ok(self.value::<8>(code)?.map(|bytes| self.order.u64(&bytes, 0)))
    }

    /// Returns the first option with this code as text, truncated to [`NAME_BYTES_MAX`].
    pub fn text(&self, code: u16) -> String {
        let found = self.iter().find(|(other, _)| *other == code);
        let bytes = found.map_or(&[][..], |(_, value)| value);
        let mut text =
            String::from_utf8_lossy(&bytes[..bytes.len().min(NAME_BYTES_MAX)]).into_owned();
        while text.len() > NAME_BYTES_MAX {
            text.pop();
        }
        text
    }

    /// Returns true if there are no options.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
