//! Messages on a channel: those that say at their beginning how long they are.
//!
//! What a message means is not known here, only where it ends. Invariant: of what is received at most one
//! read beyond a whole message is kept, and a message is refused as soon as its length is, so that memory
//! is bounded by the longest message that the length can say.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use super::{Channel, ChannelError};

/// How many bytes the message at a beginning has; `None` until that can be told, or why it cannot be.
pub type Length = fn(&[u8]) -> Result<Option<usize>, String>;

/// A channel that carries messages.
pub struct Framed {
    channel: Box<dyn Channel>,
    length: Length,
    input: Vec<u8>,
    /// Bytes of `input` that were handed over.
    used: usize,
    output: VecDeque<Vec<u8>>,
    /// Bytes of the first message of `output` that were sent.
    sent: usize,
    octets: usize,
}

impl Framed {
    /// Messages on this channel.
    pub fn new(channel: Box<dyn Channel>, length: Length) -> Framed {
        let (input, output) = (Vec::new(), VecDeque::new());
        Framed { channel, length, input, used: 0, output, sent: 0, octets: 0 }
    }

    /// Reads once, without waiting, by way of a buffer; how many bytes came.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        let count = self.channel.receive(buffer)?;
        if self.used > 0 {
            self.input.drain(..self.used);
            self.used = 0;
        }
        self.input.extend_from_slice(&buffer[..count]);
        Ok(count)
    }

    /// The next whole message of what was read.
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

    /// Sends what is queued as far as there is room, each message by itself.
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

    /// Bytes that wait to be sent.
    pub fn owed(&self) -> usize {
        self.octets
    }

    /// The descriptor to wait for, and whether until it is writable.
    pub fn descriptor(&self) -> Option<(RawFd, bool)> {
        let writable = self.channel.waits_for_room(self.octets > 0);
        Some((self.channel.descriptor()?, writable))
    }

    /// Whether something was received that no descriptor tells of.
    pub fn holds_received(&self) -> bool {
        self.channel.holds_received()
    }

    /// Name of the other end.
    pub fn peer(&self) -> &str {
        self.channel.peer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::memory;

    /// The first byte says how long a message is, itself included.
    fn length(bytes: &[u8]) -> Result<Option<usize>, String> {
        match bytes.first() {
            None => Ok(None),
            Some(0) => Err("a message has a length".into()),
            Some(count) => Ok(Some((*count).into())),
        }
    }

    #[test]
    fn messages_come_out_whole_however_bytes_arrive() {
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
    fn what_finds_no_room_is_sent_later_and_in_order() {
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
