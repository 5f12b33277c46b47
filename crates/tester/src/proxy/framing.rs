//! Message boundaries in a byte stream, from the headers alone.
//!
//! Only the first [`HEAD_BYTES`] of each message are stored: header, type of statistics or error,
//! datapath id. After an invalid length the boundaries are lost, and all following bytes count as
//! unparsed. Encrypted TLS streams also count as unparsed.
//!
//! Invariant: memory is bounded by the head of one message.

use openflow::header::{HEADER_BYTES, Header};

/// Stored bytes of a message.
pub const HEAD_BYTES: usize = 16;

/// First byte of a TLS stream (RFC 8446, section 5.1: a handshake record).
const TLS_HANDSHAKE: u8 = 22;

/// Parser of one direction of a channel.
#[derive(Debug, Default)]
pub struct MessageFramer {
    head: [u8; HEAD_BYTES],
    have: usize,
    /// Remaining bytes of the current message.
    left: usize,
    heard: u64,
    is_lost: bool,
    /// Bytes that belong to no message.
    pub lost_bytes: u64,
}

/// The stored part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    /// Header.
    pub header: Header,
    /// Up to eight bytes after the header.
    pub body: &'a [u8],
}

impl MessageFramer {
    /// Parses bytes and calls the closure for each completed message.
    pub fn take(&mut self, mut bytes: &[u8], told: &mut impl FnMut(Head<'_>)) {
        if self.heard == 0 && bytes.first() == Some(&TLS_HANDSHAKE) {
            self.is_lost = true;
        }
        self.heard += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.is_lost {
                self.lost_bytes += bytes.len() as u64;
                return;
            }
            if self.have < HEADER_BYTES {
                bytes = self.keep(bytes, HEADER_BYTES);
                if self.have < HEADER_BYTES {
                    return;
                }
                match Header::parse(&self.head) {
                    Ok(header) => self.left = usize::from(header.length) - HEADER_BYTES,
                    Err(_) => {
                        (self.is_lost, self.lost_bytes) = (true, HEADER_BYTES as u64);
                        continue;
                    }
                }
            }
            let before = bytes.len();
            let wanted = (self.have + self.left).min(HEAD_BYTES);
            bytes = self.keep(bytes, wanted);
            self.left -= before - bytes.len();
            let skipped = if self.have >= wanted { self.left.min(bytes.len()) } else { 0 };
            bytes = &bytes[skipped..];
            self.left -= skipped;
            if self.left == 0 {
                let header = Header::parse(&self.head).expect("the header was parsed before");
                let body = &self.head[HEADER_BYTES..self.have];
                told(Head { header, body });
                self.have = 0;
            }
        }
    }

    /// Stores bytes until `until` bytes of the message are stored. Returns the remaining bytes.
    fn keep<'a>(&mut self, bytes: &'a [u8], until: usize) -> &'a [u8] {
        let count = until.saturating_sub(self.have).min(bytes.len());
        self.head[self.have..self.have + count].copy_from_slice(&bytes[..count]);
        self.have += count;
        &bytes[count..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Concatenated messages of these lengths.
    fn messages(lengths: &[u16]) -> Vec<u8> {
        let message = |(number, &length): (usize, &u16)| {
            let header = Header { version: 4, kind: 10, length, xid: number as u32 };
            let mut bytes = header.bytes().to_vec();
            bytes.resize(usize::from(length), number as u8);
            bytes
        };
        lengths.iter().enumerate().flat_map(message).collect()
    }

    fn cut(bytes: &[u8], step: usize) -> (Vec<(u32, u16, usize)>, u64) {
        let (mut cutter, mut found) = (MessageFramer::default(), Vec::new());
        for part in bytes.chunks(step) {
            cutter.take(part, &mut |head| {
                assert!(head.body.iter().all(|byte| u32::from(*byte) == head.header.xid));
                found.push((head.header.xid, head.header.length, head.body.len()));
            });
        }
        (found, cutter.lost_bytes)
    }

    #[test]
    fn messages_are_found_for_any_segmentation() {
        let bytes = messages(&[8, 9, 16, 17, 65_535, 8, 40]);
        let all = cut(&bytes, bytes.len());
        assert_eq!(all.0.iter().map(|it| it.2).collect::<Vec<_>>(), [0, 1, 8, 8, 8, 0, 8]);
        for step in [1, 3, 7, 8, 9, 15, 16, 17, 1000] {
            assert_eq!(cut(&bytes, step), all, "{step}");
        }
    }

    #[test]
    fn bytes_without_a_message_header_are_counted() {
        let mut bytes = messages(&[8, 20]);
        bytes.extend([4, 0, 0, 3, 0, 0, 0, 0]);
        bytes.extend(messages(&[8]));
        for step in [1, 5, 100] {
            let (found, lost) = cut(&bytes, step);
            assert_eq!((found.len(), lost), (2, 16));
        }
        let tls = [22, 3, 1, 0, 200, 1, 0, 0, 196];
        assert_eq!(cut(&tls, 4), (Vec::new(), 9));
    }
}
