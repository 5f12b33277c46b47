//! Reading numbers off a message and appending them, big end first; lengths, and padding to eight
//! bytes.
//!
//! A `Reader` knows its place in the whole message, so that faults name offsets from its start.

use packet::error::{Malformed, Why};

use super::What;
use crate::model::text::Text;

/// What is left of a message, or of a structure in it.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    /// The message up to the end of the structure.
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads `message` from offset `at` (at most its length) on.
    pub fn new(message: &'a [u8], at: usize) -> Reader<'a> {
        Reader { bytes: message, at }
    }

    /// Offset from the message's start.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Bytes left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `count` bytes.
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

    /// The next `N` bytes.
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

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    /// The next two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// The next four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// The next eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// Passes over padding.
    #[inline]
    pub fn skip(&mut self, count: usize) -> Result<(), Malformed> {
        self.take(count).map(|_| ())
    }

    /// Passes over what fills a structure of `length` bytes up to a multiple of eight.
    pub fn skip_padding(&mut self, length: usize) -> Result<(), Malformed> {
        self.skip(length.next_multiple_of(8) - length)
    }

    /// Text in a field of `count` bytes, whose last one is a zero whatever it says.
    pub fn text(&mut self, count: usize) -> Result<Text, Malformed> {
        let field = self.take(count)?;
        Ok(Text::from_bytes(&field[..count.saturating_sub(1)]))
    }

    /// Everything that is left, which stays to be read.
    #[inline]
    pub fn ahead(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = self.ahead();
        self.at = self.bytes.len();
        rest
    }

    /// The next `count` bytes as a structure of its own.
    pub fn within(&mut self, count: usize) -> Result<Reader<'a>, Malformed> {
        let at = self.at;
        self.take(count)?;
        Ok(Reader { bytes: &self.bytes[..at + count], at })
    }

    /// Refuses bytes that nothing has a use for.
    pub fn finish(&self) -> Result<(), Malformed> {
        match self.left() {
            0 => Ok(()),
            _ => Err(Malformed { at: self.at, why: Why::BadLength(self.bytes.len()) }),
        }
    }
}

/// Appending numbers to a message.
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
    /// Appends text in a field of `count` bytes, the last of them zero.
    fn put_text(&mut self, field: &'static str, text: &Text, count: usize) -> Result<(), What>;
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

    fn put_text(&mut self, field: &'static str, text: &Text, count: usize) -> Result<(), What> {
        let (bytes, bytes_max) = (text.as_bytes(), count - 1);
        if bytes.len() > bytes_max {
            return Err(What::TooLong { field, bytes: bytes.len(), bytes_max });
        }
        self.extend_from_slice(bytes);
        self.put_zeros(count - bytes.len());
        Ok(())
    }
}

/// Appends zeros until what starts at `start` has a multiple of eight bytes.
pub(super) fn pad(out: &mut Vec<u8>, start: usize) {
    let bytes = out.len() - start;
    out.put_zeros(bytes.next_multiple_of(8) - bytes);
}

/// Writes the length of what starts at `start` into its field, `offset` bytes in.
pub(super) fn put_length(
    field: &'static str,
    out: &mut [u8],
    start: usize,
    offset: usize,
) -> Result<(), What> {
    put_length_at(field, out, start, start + offset)
}

/// Writes how many bytes there are from `start` on into the two bytes at `at`.
pub(super) fn put_length_at(
    field: &'static str,
    out: &mut [u8],
    start: usize,
    at: usize,
) -> Result<(), What> {
    let bytes = out.len() - start;
    let bytes_max = usize::from(u16::MAX);
    let length = u16::try_from(bytes).map_err(|_| What::TooLong { field, bytes, bytes_max })?;
    out[at..at + 2].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// The same for a structure whose length has to be a multiple of eight.
pub(super) fn put_length_of_eights(
    field: &'static str,
    out: &mut [u8],
    start: usize,
    offset: usize,
) -> Result<(), What> {
    let bytes = out.len() - start;
    if !bytes.is_multiple_of(8) {
        return Err(What::Value {
            field: "length that is no multiple of eight",
            value: bytes as u64,
        });
    }
    put_length(field, out, start, offset)
}

/// Reads the length of a structure that has at least `least` bytes and began `before` bytes ago,
/// and gives what of it comes after the length.
pub(super) fn read_length<'a>(
    reader: &mut Reader<'a>,
    least: usize,
    before: usize,
) -> Result<Reader<'a>, Malformed> {
    let at = reader.at();
    let length = usize::from(reader.u16()?);
    let bad = Malformed { at, why: Why::BadLength(length) };
    if length < least {
        return Err(bad);
    }
    reader.within(length - before - 2).map_err(|_| bad)
}
