//! Splits a byte stream into messages, in bounded memory.
//!
//! - The length in its header determines the end of a message.
//! - A stream holds at most `BUFFER_BYTES_MAX` bytes, regardless of the lengths that a peer
//!   announces. A full stream accepts no more bytes until messages are cut off.
//! - A length below the header's own eight bytes is a permanent error, because the stream cannot be
//!   resynchronized.

use packet::error::Malformed;

use crate::header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX};

/// Maximum number of bytes that a stream holds: twice the largest message.
pub const BUFFER_BYTES_MAX: usize = 2 * (MESSAGE_BYTES_MAX + 1);

/// Received bytes, and the offset of the next message in them.
#[derive(Debug, Default)]
pub struct Stream {
    buffer: Vec<u8>,
    start: usize,
    /// Offset of the message that was cut off last.
    last: usize,
}

impl Stream {
    /// Appends as many of `bytes` as fit and returns their number.
    ///
    /// If the caller cuts off every complete message after each call, at least
    /// [`MESSAGE_BYTES_MAX`] more bytes fit.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        } else if self.start > MESSAGE_BYTES_MAX {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.last = self.start;
        let count = bytes.len().min(BUFFER_BYTES_MAX - self.waiting());
        self.buffer.extend_from_slice(&bytes[..count]);
        count
    }

    /// Returns the number of received bytes that have not been cut off.
    pub fn waiting(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Cuts off the next message, if it is complete.
    ///
    /// An error is permanent: every later call returns it again, because no message boundary
    /// follows.
    pub fn cut(&mut self) -> Result<Option<&[u8]>, Malformed> {
        let rest = &self.buffer[self.start..];
        if rest.len() < HEADER_BYTES {
            return Ok(None);
        }
        let length = usize::from(Header::parse(rest)?.length);
        if rest.len() < length {
            return Ok(None);
        }
        self.last = self.start;
        self.start += length;
        Ok(Some(self.last()))
    }

    /// Returns the message that was cut off last; empty after more bytes have been pushed.
    pub fn last(&self) -> &[u8] {
        &self.buffer[self.last..self.start]
    }

    /// Returns the received bytes that have not been cut off.
    pub fn rest(&self) -> &[u8] {
        &self.buffer[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECHO: [u8; 10] = [1, 2, 0, 10, 0, 0, 0, 7, 0xaa, 0xbb];

    #[test]
    fn messages_are_split_for_any_segmentation() {
        let mut stream = Stream::default();
        let mut cut = 0;
        for byte in ECHO.iter().chain(&ECHO).chain(&ECHO[..9]) {
            assert_eq!(stream.push(&[*byte]), 1);
            while let Some(message) = stream.cut().unwrap() {
                assert_eq!(message, ECHO);
                cut += 1;
                assert_eq!(stream.last(), ECHO);
            }
        }
        assert_eq!((cut, stream.rest(), stream.last()), (2, &ECHO[..9], &ECHO[..0]));
    }

    #[test]
    fn a_length_below_eight_is_a_permanent_error() {
        let mut stream = Stream::default();
        assert_eq!(stream.push(&[1, 0, 0, 4, 0, 0, 0, 0]), 8);
        assert!(stream.cut().is_err());
        assert_eq!(stream.push(&ECHO), 10);
        assert!(stream.cut().is_err());
    }

    #[test]
    fn memory_stays_bounded_without_a_reader() {
        let mut stream = Stream::default();
        let chunk = [1, 2, 0xff, 0xff, 0, 0, 0, 0];
        let mut taken = 0;
        for _ in 0..100_000 {
            taken += stream.push(&chunk);
        }
        assert_eq!((taken, stream.waiting()), (BUFFER_BYTES_MAX, BUFFER_BYTES_MAX));
        assert!(stream.buffer.capacity() <= 2 * BUFFER_BYTES_MAX);
        assert_eq!(stream.cut().unwrap().map(<[u8]>::len), Some(MESSAGE_BYTES_MAX));
    }

    #[test]
    fn a_long_stream_is_split_without_growth() {
        let mut stream = Stream::default();
        for _ in 0..100_000 {
            assert_eq!(stream.push(&ECHO), 10);
            assert_eq!(stream.push(&ECHO[..3]), 3);
            assert_eq!(stream.cut().unwrap(), Some(&ECHO[..]));
            assert_eq!(stream.push(&ECHO[3..]), 7);
            assert_eq!(stream.cut().unwrap(), Some(&ECHO[..]));
        }
        assert_eq!(stream.waiting(), 0);
        assert!(stream.buffer.capacity() <= 2 * BUFFER_BYTES_MAX);
    }
}
