//! Messages on a channel, whose headers contain their length.
//!
//! This module knows only where a message ends, not its content. Invariant: memory is bounded by
//! the longest message that the length field allows. At most one read beyond a whole message is
//! buffered, and a message with an invalid length is rejected immediately.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use super::{Channel, ChannelError};

/// Returns the length of the message at the start of the bytes; `None` if more bytes are needed, or
/// an error.
pub type Length = fn(&[u8]) -> Result<Option<usize>, String>;

/// A channel that carries messages.
pub struct Framed {
    channel: Box<dyn Channel>,
    length: Length,
    input: Vec<u8>,
    /// Bytes of `input` that were returned already.
    used: usize,
    output: VecDeque<Vec<u8>>,
    /// Bytes of the first message of `output` that were sent.
    sent: usize,
    octets: usize,
}

impl Framed {
    /// Creates a message channel over this channel.
    pub fn new(channel: Box<dyn Channel>, length: Length) -> Framed {
        let (input, output) = (Vec::new(), VecDeque::new());
        Framed { channel, length, input, used: 0, output, sent: 0, octets: 0 }
    }

    /// Reads once into a buffer, without waiting. Returns the number of bytes.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        let count = self.channel.receive(buffer)?;
        if self.used > 0 {
            self.input.drain(..self.used);
            self.used = 0;
        }
        self.input.extend_from_slice(&buffer[..count]);
        Ok(count)
    }

    /// Returns the next whole message, if there is one.
    pub fn message(&mut self) -> Result<Option<&[u8]>, String> {
        let rest = &self.input[self.used..];
        match (self.length)(rest)? {
            Some(length) if length <= rest.len() => {
                let from = self.used;
                self.used += length.max(1);
                Ok(self.input.get(from..from + length))
            }
            _ => Ok(None),
        }
    }

    /// Queues a message.
    pub fn send(&mut self, message: Vec<u8>) {
        self.octets += message.len();
        self.output.push_back(message);
    }

    /// Sends queued messages as far as there is room, each with a separate write.
    pub fn flush(&mut self) -> Result<(), ChannelError> {
        loop {
            let rest = self.output.front().map_or(&[][..], |first| &first[self.sent..]);
            let sent = self.channel.transmit(rest)?;
            if rest.is_empty() || sent == 0 {
                return Ok(());
            }
            self.sent += sent;
            self.octets -= sent;
            if self.output.front().is_some_and(|first| first.len() == self.sent) {
                self.output.pop_front();
                self.sent = 0;
            }
        }
    }

    /// Returns the number of queued bytes.
    pub fn owed(&self) -> usize {
        self.octets
    }

    /// Returns the descriptor to wait for, and whether to wait until it is writable.
    pub fn descriptor(&self) -> Option<(RawFd, bool)> {
        let writable = self.channel.waits_for_room(self.octets > 0);
        Some((self.channel.descriptor()?, writable))
    }

    /// Returns whether received bytes wait that the descriptor does not signal.
    pub fn holds_received(&self) -> bool {
        self.channel.holds_received()
    }

    /// Returns the name of the peer.
    pub fn peer(&self) -> &str {
        self.channel.peer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;

    /// The first byte is the length of a message, including itself.
    fn length(bytes: &[u8]) -> Result<Option<usize>, String> {
        match bytes.first() {
            None => Ok(None),
            Some(0) => Err("a message has a length".into()),
            Some(count) => Ok(Some((*count).into())),
        }
    }

    #[test]
    fn messages_are_complete_for_any_segmentation() {
        let (mut near, far) = memory::pair(64, "m");
        let mut framed = Framed::new(Box::new(far), length);
        let mut seen = Vec::new();
        for part in [&[3u8, 1][..], &[2, 2], &[9, 1, 4], &[7, 7, 7]] {
            assert_eq!(near.transmit(part).unwrap(), part.len());
            while framed.receive(&mut [0; 2]).unwrap() > 0 {
                while let Some(message) = framed.message().unwrap() {
                    seen.push(message.to_vec());
                }
            }
        }
        assert_eq!(seen, [vec![3, 1, 2], vec![2, 9], vec![1], vec![4, 7, 7, 7]]);
        near.transmit(&[0, 5]).unwrap();
        framed.receive(&mut [0; 8]).unwrap();
        assert!(framed.message().is_err());
    }

    #[test]
    fn blocked_messages_are_sent_later_in_order() {
        let (mut near, far) = memory::pair(4, "m");
        let mut framed = Framed::new(Box::new(far), length);
        framed.send(vec![3, 1, 2]);
        framed.send(vec![4, 5, 6, 7]);
        let mut got: Vec<u8> = Vec::new();
        for _ in 0..4 {
            framed.flush().unwrap();
            let mut buffer = [0; 2];
            let count = near.receive(&mut buffer).unwrap();
            got.extend(&buffer[..count]);
        }
        assert_eq!(got, [3, 1, 2, 4, 5, 6, 7]);
        assert_eq!(framed.owed(), 0);
    }
}
