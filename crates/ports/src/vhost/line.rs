//! The front end's connection, of which `vhost` is only ever asked to read what is there.
//!
//! It reads and writes until a message is whole, which a front end that sends half of one, or reads no
//! answer, would have it do for ever. So it is asked only when a whole message waits in the socket
//! and when there is plenty of room for an answer; a last resort is the socket's own time-out.

#![allow(unsafe_code)]

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vhost::vhost_user::{BackendReqHandler, Error};

use super::device::Device;
use crate::memif::fault::Fault;
use crate::sys;

/// Bytes of a message before its body, of which the last four are the body's length.
const HEADER_BYTES: usize = 12;

/// Bytes of a body; `vhost` takes no longer one.
const BODY_BYTES_MAX: usize = 4096;

/// Bytes that a front end may leave unread (as the kernel counts, which is more than there are).
const UNREAD_BYTES_MAX: libc::c_int = 32 << 10;

/// Nothing waits for so long unless a front end found a way around all of the above.
const LAST_RESORT: Duration = Duration::from_millis(100);

/// A connection.
pub struct Line {
    stream: UnixStream,
    handler: BackendReqHandler<Mutex<Device>>,
}

/// What came of listening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// There is no whole message; whether there is part of one.
    Nothing(bool),
    /// A message was dealt with.
    Message,
    /// The front end has gone.
    End,
}

impl Line {
    /// A connection whose messages are for `device`.
    pub fn new(socket: OwnedFd, device: &Arc<Mutex<Device>>) -> io::Result<Line> {
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LAST_RESORT))?;
        let handler = BackendReqHandler::from_stream(stream.try_clone()?, Arc::clone(device));
        Ok(Line { stream, handler })
    }

    /// Its number.
    pub fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Whether [`Line::hear`] has something to do, so that it is worth getting ready for.
    pub fn is_quiet(&self) -> bool {
        self.poll(libc::POLLIN) == 0
    }

    /// Which of these events there are now.
    fn poll(&self, events: libc::c_short) -> libc::c_short {
        let mut wait = libc::pollfd { fd: self.descriptor(), events, revents: 0 };
        // SAFETY: the pointer is to one pollfd.
        unsafe { libc::poll(&mut wait, 1, 0) };
        wait.revents
    }

    /// Part of a message is there: of one that is to be waited for, or the last one of all.
    fn part(&self) -> Heard {
        let has_ended = self.poll(libc::POLLRDHUP) != 0;
        if has_ended { Heard::End } else { Heard::Nothing(true) }
    }

    /// Deals with one message, if a whole one is there.
    pub fn hear(&mut self) -> Result<Heard, Fault> {
        let mut header = [0u8; HEADER_BYTES];
        let length = match self.peek(&mut header) {
            Ok(0) => return Ok(Heard::End),
            Ok(length) => length,
            Err(error) => {
                return match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(Heard::Nothing(false)),
                    _ => Ok(Heard::End),
                };
            }
        };
        if length < HEADER_BYTES {
            return Ok(self.part());
        }
        let [.., a, b, c, d] = header;
        let body = u32::from_ne_bytes([a, b, c, d]) as usize;
        if body > BODY_BYTES_MAX {
            return Err(Fault::Message);
        }
        let (waiting, unread) = (self.count(libc::FIONREAD)?, self.count(libc::TIOCOUTQ)?);
        if (waiting as usize) < HEADER_BYTES + body {
            return Ok(self.part());
        }
        if unread > UNREAD_BYTES_MAX {
            return Err(Fault::Slow);
        }
        match self.handler.handle_request() {
            Ok(()) => Ok(Heard::Message),
            Err(Error::Disconnected | Error::SocketBroken(_)) => Ok(Heard::End),
            Err(_) => Err(Fault::Message),
        }
    }

    /// The first bytes that wait, left where they are.
    fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        let (start, bytes) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: the pointer and the length describe `into`.
        let length = unsafe { libc::recv(self.descriptor(), start, bytes, flags) };
        usize::try_from(length).map_err(|_| io::Error::last_os_error())
    }

    /// How many bytes wait, to be read or to have been read.
    fn count(&self, which: libc::c_ulong) -> Result<libc::c_int, Fault> {
        let mut count: libc::c_int = 0;
        // SAFETY: both requests fill one integer.
        sys::check(unsafe { libc::ioctl(self.descriptor(), which, &mut count) })
            .map_err(|_| Fault::Message)?;
        Ok(count)
    }
}
