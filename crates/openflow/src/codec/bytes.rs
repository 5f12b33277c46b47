//! Reads and appends big-endian numbers, lengths, and padding to eight bytes.
//!
//! A `Reader` knows its offset in the whole message, so that faults have offsets from the message
//! start.

use packet::error::{Malformed, MalformedReason};

use super::MessagePart;
use crate::model::text::Text;

/// The unread rest of a message, or of a structure in it.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    /// The message up to the end of the structure.
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Returns a reader of `message` from offset `at` on, which is at most its length.
    pub fn new(message: &'a [u8], at: usize) -> Reader<'a> {
        Reader { bytes: message, at }
    }

    /// Returns the offset from the message start.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the number of unread bytes.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Reads the next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        match self.bytes[self.at..].get(..count) {
            Some(bytes) => {
                self.at += count;
                Ok(bytes)
            }
            None => Err(Malformed::truncated(self.at, count, self.left())),
        }
    }

    /// Reads the next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        match self.bytes[self.at..].first_chunk::<N>() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => Err(Malformed::truncated(self.at, N, self.left())),
        }
    }

    /// Reads one byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Reads four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Reads eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// Skips `count` bytes of padding.
    #[inline]
    pub fn skip(&mut self, count: usize) -> Result<(), Malformed> {
        self.take(count).map(|_| ())
    }

    /// Skips the padding of a structure of `length` bytes to a multiple of eight.
    pub fn skip_padding(&mut self, length: usize) -> Result<(), Malformed> {
        self.skip(length.next_multiple_of(8) - length)
    }

    /// Reads text from a field of `count` bytes; ignores the last byte, which should be zero.
    pub fn text(&mut self, count: usize) -> Result<Text, Malformed> {
        let field = self.take(count)?;
        Ok(Text::from_bytes(&field[..count.saturating_sub(1)]))
    }

    /// Returns all unread bytes without reading them.
    #[inline]
    pub fn ahead(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Reads all remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = self.ahead();
        self.at = self.bytes.len();
        rest
    }

    /// Returns a reader of the next `count` bytes as a separate structure.
    pub fn within(&mut self, count: usize) -> Result<Reader<'a>, Malformed> {
        let at = self.at;
        self.take(count)?;
        Ok(Reader { bytes: &self.bytes[..at + count], at })
    }

    /// Rejects unread bytes.
    pub fn finish(&self) -> Result<(), Malformed> {
        match self.left() {
            0 => Ok(()),
            _ => Err(Malformed { at: self.at, why: MalformedReason::BadLength(self.bytes.len()) }),
        }
    }
}

/// Appends numbers to a message.
pub(super) trait Put {
    /// Appends one byte.
    fn put_u8(&mut self, value: u8);
    /// Appends two bytes.
    fn put_u16(&mut self, value: u16);
    /// Appends four bytes.
    fn put_u32(&mut self, value: u32);
    /// Appends eight bytes.
    fn put_u64(&mut self, value: u64);
    /// Appends padding.
    fn put_zeros(&mut self, count: usize);
    /// Appends text in a field of `count` bytes; the last byte is zero.
    fn put_text(
        &mut self,
        field: &'static str,
        text: &Text,
        count: usize,
    ) -> Result<(), MessagePart>;
}

impl Put for Vec<u8> {
    #[inline]
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    #[inline]
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn put_zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }

    fn put_text(
        &mut self,
        field: &'static str,
        text: &Text,
        count: usize,
    ) -> Result<(), MessagePart> {
        let (bytes, bytes_max) = (text.as_bytes(), count - 1);
        if bytes.len() > bytes_max {
            return Err(MessagePart::TooLong { field, bytes: bytes.len(), bytes_max });
        }
        self.extend_from_slice(bytes);
        self.put_zeros(count - bytes.len());
        Ok(())
    }
}

/// Appends zeros until the structure at `start` has a multiple of eight bytes.
pub(super) fn pad(out: &mut Vec<u8>, start: usize) {
    let bytes = out.len() - start;
    out.put_zeros(bytes.next_multiple_of(8) - bytes);
}

/// Writes the length of the structure at `start` into its field at `offset` from the start.
pub(super) fn put_length(
    field: &'static str,
    out: &mut [u8],
    start: usize,
    offset: usize,
) -> Result<(), MessagePart> {
    put_length_at(field, out, start, start + offset)
}

/// Writes the number of bytes from `start` on into the two bytes at `at`.
pub(super) fn put_length_at(
    field: &'static str,
    out: &mut [u8],
    start: usize,
    at: usize,
) -> Result<(), MessagePart> {
    let bytes = out.len() - start;
    let bytes_max = usize::from(u16::MAX);
    let length =
        u16::try_from(bytes).map_err(|_| MessagePart::TooLong { field, bytes, bytes_max })?;
    out[at..at + 2].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Writes the length of a structure, which must be a multiple of eight.
pub(super) fn put_length_of_eights(
    field: &'static str,
    out: &mut [u8],
    start: usize,
    offset: usize,
) -> Result<(), MessagePart> {
    let bytes = out.len() - start;
    if !bytes.is_multiple_of(8) {
        return Err(MessagePart::Value {
            field: "length that is not a multiple of eight",
            value: bytes as u64,
        });
    }
    put_length(field, out, start, offset)
}

/// Reads the length of a structure, and returns a reader of its rest.
///
/// The structure has at least `least` bytes and began `before` bytes ago.
pub(super) fn read_length<'a>(
    reader: &mut Reader<'a>,
    least: usize,
    before: usize,
) -> Result<Reader<'a>, Malformed> {
    let at = reader.at();
    let length = usize::from(reader.u16()?);
    let bad = Malformed { at, why: MalformedReason::BadLength(length) };
    if length < least {
        return Err(bad);
    }
    reader.within(length - before - 2).map_err(|_| bad)
}
