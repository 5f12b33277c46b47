//! The front end's connection; the `vhost` crate reads from it only when a whole message waits.
//!
//! That crate blocks until a message is complete. A front end that sends half a message, or does
//! not read replies, would block it forever. Therefore it is called only if a whole message waits
//! in the socket and there is ample room for a reply. The socket's own timeout is the last resort.

#![allow(unsafe_code)]

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use os::sys;
use vhost::vhost_user::{BackendReqHandler, Error};

use super::device::Device;
use crate::memif::fault::Fault;

/// Bytes of a message header; its last four are the length of the body.
const HEADER_BYTES: usize = 12;

/// Bytes of a body; `vhost` accepts no longer one.
const BODY_BYTES_MAX: usize = 4096;

/// Maximum number of reply bytes that a front end may leave unread (as counted by the kernel, which
/// is more than their length).
const UNREAD_BYTES_MAX: libc::c_int = 32 << 10;

/// Socket timeout; it applies only if a front end circumvents the checks above.
const LAST_RESORT: Duration = Duration::from_millis(100);

/// A connection.
pub struct Connection {
    stream: UnixStream,
    handler: BackendReqHandler<Mutex<Device>>,
}

/// Result of [`Connection::hear`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveResult {
    /// There is no whole message; the value is whether there is part of one.
    Nothing(bool),
    /// A message was processed.
    Message,
    /// The front end closed the connection.
    End,
}

impl Connection {
    /// Creates a connection whose messages go to `device`.
    pub fn new(socket: OwnedFd, device: &Arc<Mutex<Device>>) -> io::Result<Connection> {
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LAST_RESORT))?;
        let handler = BackendReqHandler::from_stream(stream.try_clone()?, Arc::clone(device));
        Ok(Connection { stream, handler })
    }

    /// Returns the socket's descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Returns whether [`Connection::hear`] has nothing to do.
    pub fn is_quiet(&self) -> bool {
        self.poll(libc::POLLIN) == 0
    }

    /// Returns which of these events are pending.
    fn poll(&self, events: libc::c_short) -> libc::c_short {
        let mut wait = libc::pollfd { fd: self.descriptor(), events, revents: 0 };
        // SAFETY: the pointer is to one pollfd.
        unsafe { libc::poll(&mut wait, 1, 0) };
        wait.revents
    }

    /// Returns the result for an incomplete message: the rest may arrive, unless the connection has
    /// ended.
    fn part(&self) -> ReceiveResult {
        let has_ended = self.poll(libc::POLLRDHUP) != 0;
        if has_ended { ReceiveResult::End } else { ReceiveResult::Nothing(true) }
    }

    /// Processes one message, if a whole one waits.
    pub fn hear(&mut self) -> Result<ReceiveResult, Fault> {
        let mut header = [0u8; HEADER_BYTES];
        let length = match self.peek(&mut header) {
            Ok(0) => return Ok(ReceiveResult::End),
            Ok(length) => length,
            Err(error) => {
                return match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::Interrupted => {
                        Ok(ReceiveResult::Nothing(false))
                    }
                    _ => Ok(ReceiveResult::End),
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
            Ok(()) => Ok(ReceiveResult::Message),
            Err(Error::Disconnected | Error::SocketBroken(_)) => Ok(ReceiveResult::End),
            Err(_) => Err(Fault::Message),
        }
    }

    /// Reads the first waiting bytes without consuming them.
    fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        let (start, bytes) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: the pointer and the length describe `into`.
        let length = unsafe { libc::recv(self.descriptor(), start, bytes, flags) };
        usize::try_from(length).map_err(|_| io::Error::last_os_error())
    }

    /// Returns how many bytes wait, to be read by us or by the peer.
    fn count(&self, which: libc::c_ulong) -> Result<libc::c_int, Fault> {
        let mut count: libc::c_int = 0;
        // SAFETY: both requests fill one integer.
        sys::check(unsafe { libc::ioctl(self.descriptor(), which, &mut count) })
            .map_err(|_| Fault::Message)?;
        Ok(count)
    }
}
