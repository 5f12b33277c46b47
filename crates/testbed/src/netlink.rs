//! Changes the kernel's network configuration by netlink, and waits for each reply.
//!
//! - Requests are synchronous with acknowledgement, because each step of building a lab must be
//!   complete before the next.
//! - Many small requests (a full routing table) are sent in batches with one acknowledgement, for
//!   the last request. The kernel processes a batch in order and reports each failure by its
//!   sequence number, so no failure is missed.
//!
//! Source: `netlink(7)`, `rtnetlink(7)`; encoding by the `netlink-packet-*` crates.
//!
//! Invariant: a request that returns `Ok` has taken effect completely.

#![allow(unsafe_code)]

pub mod link;
pub mod ingress;
pub mod route;
pub mod neighbor;
pub mod uses;
pub(crate) mod diagnosis;

use crate::LabError;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::os::fd::AsRawFd;

/// Bytes per send; well below the default send buffer.
const BATCH_BYTES: usize = 32 * 1024;
/// Timeout of a reply in seconds.
const PATIENCE_S: i64 = 10;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// A netlink socket of one network namespace.
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket for the calling thread's namespace (see `Namespace::netlink` for another).
    pub fn open() -> Result<Netlink, LabError> {
        let socket = socket(netlink_sys::protocols::NETLINK_ROUTE)?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Sends one request and waits for its reply.
    pub fn request(
        &mut self,
        what: &'static str,
        subject: &str,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<(), LabError> {
        self.request_all(what, std::iter::once((subject.to_owned(), message)), flags)
    }

    /// Sends many requests in order. Stops after the batch with the first failure, and names it.
    pub fn request_all(
        &mut self,
        what: &'static str,
        messages: impl IntoIterator<Item = (String, RouteNetlinkMessage)>,
        flags: u16,
    ) -> Result<(), LabError> {
        let mut batch = RequestBatch::default();
        for (subject, message) in messages {
            self.sequence = self.sequence.wrapping_add(1);
            batch.add(subject, message, self.sequence, flags);
            if batch.bytes.len() >= BATCH_BYTES {
                self.exchange(what, &mut batch)?;
            }
        }
        if batch.subjects.is_empty() { Ok(()) } else { self.exchange(what, &mut batch) }
    }

    /// Lists all objects of a kind, such as all links.
    pub fn dump(
        &mut self,
        what: &'static str,
        message: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>, LabError> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = encode(message, self.sequence, NLM_F_REQUEST | NLM_F_DUMP);
        self.send(what, &bytes)?;
        let mut listed = Vec::new();
        loop {
            for reply in self.replies(what)? {
                match reply.payload {
                    NetlinkPayload::InnerMessage(message) => listed.push(message),
                    NetlinkPayload::Done(_) => return Ok(listed),
                    NetlinkPayload::Error(error) => {
                        return Err(LabError::system(what, "list", error.to_io()));
                    }
                    _ => {}
                }
            }
        }
    }

    fn exchange(&mut self, what: &'static str, batch: &mut RequestBatch) -> Result<(), LabError> {
        batch.ask_for_acknowledgement();
        let last = self.sequence;
        let first = last.wrapping_sub(batch.subjects.len() as u32 - 1);
        self.send(what, &batch.bytes)?;
        let mut failure: Option<(usize, i32)> = None;
        'answers: loop {
            let bytes = receive(&self.socket, what)?;
            for message in messages(&bytes) {
                if message.kind != NLMSG_ERROR {
                    continue;
                }
                if message.code() != 0 {
                    let index = message.sequence.wrapping_sub(first) as usize;
                    failure.get_or_insert((index, message.code()));
                }
                if message.sequence == last {
                    break 'answers;
                }
            }
        }
        let subjects = std::mem::take(batch).subjects;
        match failure {
            None => Ok(()),
            Some((index, code)) => {
                let subject = subjects.into_iter().nth(index).unwrap_or_default();
                Err(LabError::system(what, subject, io::Error::from_raw_os_error(-code)))
            }
        }
    }

    fn send(&self, what: &'static str, bytes: &[u8]) -> Result<(), LabError> {
        send(&self.socket, what, bytes)
    }

    fn replies(
        &self,
        what: &'static str,
    ) -> Result<Vec<NetlinkMessage<RouteNetlinkMessage>>, LabError> {
        let bytes = receive(&self.socket, what)?;
        let decode = |message: Message<'_>| {
            NetlinkMessage::deserialize(message.whole).map_err(|error| LabError::Answer {
                from: "the kernel".to_owned(),
                request: what.to_owned(),
                answer: error.to_string(),
            })
        };
        messages(&bytes).map(decode).collect()
    }
}

/// Requests of one batch, and the object of each.
#[derive(Default)]
struct RequestBatch {
    bytes: Vec<u8>,
    subjects: Vec<String>,
    last_at: usize,
}

impl RequestBatch {
    fn add(&mut self, subject: String, message: RouteNetlinkMessage, sequence: u32, flags: u16) {
        self.last_at = self.bytes.len();
        self.bytes.extend(encode(message, sequence, NLM_F_REQUEST | flags));
        self.subjects.push(subject);
    }

    /// Sets the acknowledgement flag (bytes 6 and 7 of the header) of the last request.
    fn ask_for_acknowledgement(&mut self) {
        let at = self.last_at + 6;
        let flags = u16::from_ne_bytes([self.bytes[at], self.bytes[at + 1]]) | NLM_F_ACK;
        self.bytes[at..at + 2].copy_from_slice(&flags.to_ne_bytes());
    }
}

/// Encodes a request, padded to a multiple of four.
fn encode(message: RouteNetlinkMessage, sequence: u32, flags: u16) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = flags;
    header.sequence_number = sequence;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len().next_multiple_of(4)];
    message.serialize(&mut bytes);
    bytes
}

/// One message from the kernel, with its boundaries.
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) sequence: u32,
    pub(crate) body: &'a [u8],
    whole: &'a [u8],
}

impl Message<'_> {
    /// Returns the code of an error message: 0 for an acknowledgement, else the negated error
    /// number.
    pub(crate) fn code(&self) -> i32 {
        self.body.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes))
    }

    pub(crate) fn is_end(&self) -> bool {
        self.kind == NLMSG_DONE
    }

    pub(crate) fn is_error(&self) -> bool {
        self.kind == NLMSG_ERROR
    }
}

/// Splits a datagram into messages; ends at the first invalid one.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
        let whole = bytes.get(..length).filter(|whole| whole.len() >= 16)?;
        let message = Message {
            kind: u16::from_ne_bytes([whole[4], whole[5]]),
            sequence: u32::from_ne_bytes([whole[8], whole[9], whole[10], whole[11]]),
            body: &whole[16..],
            whole,
        };
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// Splits a message's body into attributes (kind, value); ends at the first invalid one.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let head: [u8; 4] = *bytes.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([head[2], head[3]]) & 0x3fff, value))
    })
}

/// Opens a netlink socket of the calling thread's namespace, with a receive timeout.
pub(crate) fn socket(protocol: isize) -> Result<Socket, LabError> {
    let open = || {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(socket)
    };
    let socket = open().map_err(|error| LabError::system("open a socket", "netlink", error))?;
    let time = libc::timeval { tv_sec: PATIENCE_S, tv_usec: 0 };
    // SAFETY: `time` is a valid timeval of the length given, only read by the call.
    let failed = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const time).cast(),
            size_of::<libc::timeval>() as libc::socklen_t,
        )
    } != 0;
    if failed { Err(LabError::last("set a timeout", "netlink")) } else { Ok(socket) }
}

pub(crate) fn send(socket: &Socket, what: &'static str, bytes: &[u8]) -> Result<(), LabError> {
    socket.send(bytes, 0).map(drop).map_err(|error| LabError::system(what, "netlink", error))
}

pub(crate) fn receive(socket: &Socket, what: &'static str) -> Result<Vec<u8>, LabError> {
    let received = socket.recv_from_full();
    received.map(|(bytes, _)| bytes).map_err(|error| LabError::system(what, "netlink", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_datagrams_never_panic() {
        for bytes in [&[][..], &[16, 0, 0], &[8, 0, 0, 0, 1, 1, 1, 1], &[255; 64]] {
            assert_eq!(messages(bytes).count(), 0, "{bytes:?}");
        }
        let mut bytes = vec![0; 36];
        bytes[0] = 20;
        bytes[4] = 2;
        bytes[16] = 0xff;
        let found: Vec<i32> = messages(&bytes).map(|message| message.code()).collect();
        assert_eq!(found, vec![0xff]);
    }

    #[test]
    fn attributes_are_padded() {
        let bytes = [5, 0, 1, 0, 9, 0, 0, 0, 4, 0, 2, 0x80, 3, 0, 7, 7];
        let found: Vec<(u16, &[u8])> = attributes(&bytes).collect();
        assert_eq!(found, vec![(1, &[9][..]), (2, &[][..])]);
    }
}
