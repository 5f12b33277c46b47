//! Byte streams between an agent and an external program. The caller transports the bytes.
//!
//! Both directions are bounded. A message that does not fit into the [`Outbox`] is dropped as a
//! whole and counted. A message longer than [`MESSAGE_BYTES_MAX`] closes the connection.

use std::collections::VecDeque;

use super::Around;

/// Maximum size of a message in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Maximum number of bytes that wait for transport.
pub const OUTBOX_BYTES_MAX: usize = 1 << 20;

/// An agent's end of a byte stream.
pub trait Wire {
    /// Handles a new connection.
    fn connected(&mut self, around: &mut Around<'_>);

    /// Returns true while the stream is connected.
    fn is_connected(&self) -> bool;

    /// Processes received bytes. An error closes the connection.
    fn received(&mut self, bytes: &[u8], around: &mut Around<'_>) -> Result<(), String>;

    /// Handles the end of the connection.
    fn closed(&mut self);

    /// Returns the outgoing data.
    fn outbox(&mut self) -> &mut Outbox;
}

/// Messages that wait for transport, each preceded by its length (four bytes, big-endian).
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: VecDeque<u8>,
    /// Size of each waiting message; the first one without the bytes already transported.
    messages: VecDeque<usize>,
}

impl Outbox {
    /// Appends a message, unless too many are waiting or there is no room.
    pub fn put(&mut self, message: &[u8], messages_max: usize) -> bool {
        let whole = message.len() + 4;
        let fits = self.messages.len() < messages_max
            && message.len() <= MESSAGE_BYTES_MAX
            && self.bytes.len() + whole <= OUTBOX_BYTES_MAX;
        if fits {
            self.bytes.extend((message.len() as u32).to_be_bytes());
            self.bytes.extend(message);
            self.messages.push_back(whole);
        }
        fits
    }

    /// Returns the number of waiting messages, including a partially sent one.
    pub fn waiting(&self) -> usize {
        self.messages.len()
    }

    /// Returns the next bytes to transport.
    pub fn front(&self) -> &[u8] {
        self.bytes.as_slices().0
    }

    /// Removes bytes that were transported.
    pub fn carried(&mut self, mut count: usize) {
        self.bytes.drain(..count);
        while count > 0
            && let Some(first) = self.messages.front_mut()
        {
            let part = count.min(*first);
            (*first, count) = (*first - part, count - part);
            if *first == 0 {
                self.messages.pop_front();
            }
        }
    }

    /// Discards all data.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.messages.clear();
    }
}

/// Reassembles messages from received bytes.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    at: usize,
}

impl Inbox {
    /// Appends received bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.at));
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next complete message.
    pub fn next_message(&mut self) -> Result<Option<Vec<u8>>, String> {
        let rest = &self.bytes[self.at..];
        let Some((length, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(format!(
                "message too long: {length} bytes, at most {MESSAGE_BYTES_MAX} are allowed"
            ));
        }
        let Some(message) = rest.get(..length) else { return Ok(None) };
        self.at += 4 + length;
        Ok(Some(message.to_vec()))
    }

    /// Discards all data.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.at = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_complete_for_any_segmentation() {
        let (mut outbox, mut inbox, mut got) = (Outbox::default(), Inbox::default(), Vec::new());
        let messages: Vec<Vec<u8>> = (0..50).map(|n| vec![n as u8; n * 7]).collect();
        assert!(messages.iter().all(|message| outbox.put(message, 100)));
        let mut step = 1;
        while outbox.waiting() > 0 {
            let part = outbox.front().len().min(step);
            inbox.extend(&outbox.front()[..part]);
            outbox.carried(part);
            step = step % 13 + 1;
            while let Some(message) = inbox.next_message().unwrap() {
                got.push(message);
            }
        }
        assert_eq!(got, messages);
        inbox.extend(&u32::MAX.to_be_bytes());
        assert!(inbox.next_message().unwrap_err().contains("4294967295 bytes"));
    }

    #[test]
    fn an_outbox_is_limited() {
        let mut outbox = Outbox::default();
        assert!(outbox.put(&[0; 10], 2) && outbox.put(&[0; 10], 2));
        assert!(!outbox.put(&[0; 10], 2));
        outbox.carried(15);
        assert_eq!(outbox.waiting(), 1);
        assert!(outbox.put(&[0; 10], 2));
        let big = vec![0; MESSAGE_BYTES_MAX];
        let fitted = (0..100).take_while(|_| outbox.put(&big, 1000)).count();
        assert_eq!(fitted, (OUTBOX_BYTES_MAX - 23) / (MESSAGE_BYTES_MAX + 4));
        assert!(!outbox.put(&[0; MESSAGE_BYTES_MAX + 1], 1000));
    }
}
