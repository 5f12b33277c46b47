//! What may follow the fixed part of a pcapng block (draft-ietf-opsawg-pcapng, section 3.5): rows of
//! code, length and value, each filled up to four bytes.
//!
//! Invariant: options are walked once when their block is taken, so that walking them again cannot
//! go wrong.

use super::fault::{Fault, Why};
use super::{NAME_BYTES_MAX, Order};

/// The last option, where there is one.
pub const END: u16 = 0;

/// Text about the block, in any block.
pub const COMMENT: u16 = 1;

/// A block's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl<'a> Options<'a> {
    /// No options.
    pub const NONE: Options<'static> = Options { bytes: &[], order: Order::Little };

    /// The options that these bytes are, which begin at offset `at` of their block.
    #[inline]
    pub fn new(bytes: &'a [u8], order: Order, at: usize) -> Result<Self, Fault> {
        let mut here = 0;
        while here < bytes.len() {
            if bytes.len() - here < 4 {
                let why = Why::Truncated { need: 4, have: (bytes.len() - here) as u64 };
                return Err(Fault::new((at + here) as u64, why));
            }
            let (code, length) = (order.u16(bytes, here), order.u16(bytes, here + 2));
            if code == END {
                break;
            }
            let filled = usize::from(length).next_multiple_of(4);
            if filled > bytes.len() - here - 4 {
                let why = Why::Option { code, bytes: length };
                return Err(Fault::new((at + here) as u64, why));
            }
            here += 4 + filled;
        }
        Ok(Options { bytes: &bytes[..here], order })
    }

    /// Code and value of each.
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

    /// The value of the first option of this code, if it has as many bytes as such a value has.
    pub fn value<const BYTES: usize>(&self, code: u16) -> Result<Option<[u8; BYTES]>, Fault> {
        let Some((_, value)) = self.iter().find(|(other, _)| *other == code) else {
            return Ok(None);
        };
        let why = Why::Option { code, bytes: value.len() as u16 };
        value.try_into().map(Some).map_err(|_| Fault::new(0, why))
    }

    /// The number of 64 bits that the first option of this code is.
    pub fn number(&self, code: u16) -> Result<Option<u64>, Fault> {
        Ok(self.value::<8>(code)?.map(|bytes| self.order.u64(&bytes, 0)))
    }

    /// The beginning of the text that the first option of this code is.
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

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
