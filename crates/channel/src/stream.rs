//! The common part of TCP, SCTP and Unix channels: a non-blocking stream socket.
//!
//! A reset, a broken pipe and an orderly end all mean that the peer is gone.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use os::sys;

use super::{Channel, ChannelError, Progress, Source};

/// Operations of the sockets of all families.
pub trait Socket: Read + Write + AsRawFd + Send {
    /// Shuts down one direction, or both.
    fn shut(&self, how: Shutdown) -> io::Result<()>;

    /// Resets the connection when the socket is closed.
    fn reset(&self) -> io::Result<()>;

    /// Sets the type of the messages, if the transport carries it.
    fn label(&self, _payload: u32) -> io::Result<()> {
        Ok(())
    }
}

impl Socket for TcpStream {
    fn shut(&self, how: Shutdown) -> io::Result<()> {
        self.shutdown(how)
    }

    fn reset(&self) -> io::Result<()> {
        let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
        sys::set_option(self.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &at_once)
    }
}

impl Socket for UnixStream {
    fn shut(&self, how: Shutdown) -> io::Result<()> {
        self.shutdown(how)
    }

    /// Unix sockets have no resets, except for unread bytes.
    fn reset(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A connected, non-blocking stream socket.
pub struct Stream<S> {
    socket: S,
    peer: String,
    source: Option<Source>,
    progress: Progress,
    was_reset: bool,
}

impl<S> Stream<S> {
    /// Creates the channel over `socket`, which must be non-blocking, to a peer with this name and
    /// source.
    pub fn new(socket: S, peer: String, source: Option<Source>) -> Self {
        Stream { socket, peer, source, progress: Progress::Silent, was_reset: false }
    }

    fn failed(&mut self, doing: &'static str, error: io::Error) -> ChannelError {
        self.was_reset = true;
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::NotConnected => {
                ChannelError::Closed(self.peer.clone())
            }
            _ => ChannelError::System { doing, what: self.peer.clone(), error },
        }
    }
}

impl<S: Socket> Channel for Stream<S> {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        if buffer.is_empty() {
            return Ok(0);
        }
        match self.socket.read(buffer) {
            Ok(0) => Err(ChannelError::Closed(self.peer.clone())),
            Ok(count) => {
                self.progress = Progress::Open;
                Ok(count)
            }
            Err(error) if waits(&error) => Ok(0),
            Err(error) => Err(self.failed("receive from", error)),
        }
    }

    fn transmit(&mut self, bytes: &[u8]) -> Result<usize, ChannelError> {
        if bytes.is_empty() {
            return Ok(0);
        }
        match self.socket.write(bytes) {
            Ok(count) => Ok(count),
            Err(error) if waits(&error) => Ok(0),
            Err(error) => Err(self.failed("send to", error)),
        }
    }

    fn label(&mut self, payload: u32) {
        // Messages without the identifier can still be assigned by their channel.
        let _ = self.socket.label(payload);
    }

    fn finish(&mut self) -> bool {
        // If the peer is gone, this fails; a read reports the end.
        let _ = self.socket.shut(Shutdown::Write);
        true
    }

    fn abort(&mut self) {
        // On failure, the peer sees an ordinary end.
        let _ = self.socket.reset();
    }

    fn was_reset(&self) -> bool {
        self.was_reset
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.socket.as_raw_fd())
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn source(&self) -> Option<Source> {
        self.source
    }

    fn peer(&self) -> &str {
        &self.peer
    }
}

/// Returns whether the error means "try again later".
fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
