//! What TCP and Unix channels have in common: a non-blocking stream socket that is a channel.
//!
//! A reset, a broken pipe and an orderly end all mean that the other end is gone.

use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};

use super::{Channel, ChannelError, Progress};

/// A connected, non-blocking stream socket.
pub struct Stream<S> {
    socket: S,
    peer: String,
    source: Option<IpAddr>,
    progress: Progress,
}

impl<S> Stream<S> {
    /// The channel over `socket`, which must be non-blocking, to a peer of this name and host.
    pub fn new(socket: S, peer: String, source: Option<IpAddr>) -> Self {
        Stream { socket, peer, source, progress: Progress::Silent }
    }

    fn failed(&self, doing: &'static str, error: std::io::Error) -> ChannelError {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::NotConnected => {
                ChannelError::Closed(self.peer.clone())
            }
            _ => ChannelError::System { doing, what: self.peer.clone(), error },
        }
    }
}

impl<S: Read + Write + AsRawFd + Send> Channel for Stream<S> {
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
            Err(error) => Err(self.failed("receiving from", error)),
        }
    }

    fn transmit(&mut self, bytes: &[u8]) -> Result<usize, ChannelError> {
        if bytes.is_empty() {
            return Ok(0);
        }
        match self.socket.write(bytes) {
            Ok(count) => Ok(count),
            Err(error) if waits(&error) => Ok(0),
            Err(error) => Err(self.failed("sending to", error)),
        }
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.socket.as_raw_fd())
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn source(&self) -> Option<IpAddr> {
        self.source
    }

    fn peer(&self) -> &str {
        &self.peer
    }
}

/// Whether the error only says to come back later.
fn waits(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
