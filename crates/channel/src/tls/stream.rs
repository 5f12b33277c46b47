//! A channel over TLS: receiving and transmitting drive the handshake and the records.
//!
//! Nothing waits. Bytes that the socket does not accept stay in the connection's buffer, which has
//! a limit. The owner of the channel also limits the time of the handshake, by the protocol on top.
//!
//! Invariant: no byte is accepted from the owner before the peer is authenticated. A turn reads a
//! bounded number of bytes, whatever their content.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustls::Connection;

use super::{Tls, errors};
use crate::{Channel, ChannelError, Progress, Source};

/// Maximum number of encrypted bytes that wait for the socket.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Maximum number of socket reads in one turn, each of at most the 4 KiB that rustls accepts.
const READS_A_TURN: usize = 8;

/// Number of decrypted bytes at which a turn stops reading.
const DECRYPTED_BYTES: usize = 8 << 10;

/// A connected, non-blocking socket with TLS.
pub(crate) struct TlsStream {
    socket: TcpStream,
    tls: Connection,
    /// Decrypted bytes that have not been received.
    decrypted: usize,
    ended: bool,
    /// Whether anything was received.
    heard: bool,
    peer: String,
    source: IpAddr,
    ca_cert: Option<Arc<PathBuf>>,
}

/// Creates the channel on a connection that this end made to `peer`.
pub(crate) fn connected(
    tls: &Tls,
    socket: TcpStream,
    peer: SocketAddr,
) -> io::Result<Box<dyn Channel>> {
    channel(tls, tls.connecting(peer.ip()), socket, peer)
}

/// Creates the channel on a connection that `peer` made to this end.
pub(crate) fn accepted(
    tls: &Tls,
    socket: TcpStream,
    peer: SocketAddr,
) -> io::Result<Box<dyn Channel>> {
    channel(tls, tls.accepting(), socket, peer)
}

fn channel(
    tls: &Tls,
    connection: Result<Connection, rustls::Error>,
    socket: TcpStream,
    peer: SocketAddr,
) -> io::Result<Box<dyn Channel>> {
    let mut connection = connection.map_err(io::Error::other)?;
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)?;
    connection.set_buffer_limit(Some(BUFFER_BYTES_MAX));
    Ok(Box::new(TlsStream {
        socket,
        tls: connection,
        decrypted: 0,
        ended: false,
        heard: false,
        peer: format!("ssl:{peer}"),
        source: peer.ip(),
        ca_cert: tls.ca_cert.clone(),
    }))
}

impl TlsStream {
    fn failed(&self, doing: &'static str, error: io::Error) -> ChannelError {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::NotConnected => {
                self.over()
            }
            // rustls limits the size of an unfinished message.
            ErrorKind::Other | ErrorKind::InvalidData => {
                ChannelError::Tls { peer: self.peer.clone(), why: error.to_string() }
            }
            _ => ChannelError::System { doing, what: self.peer.clone(), error },
        }
    }

    /// Returns the error for a closed connection.
    fn over(&self) -> ChannelError {
        let peer = self.peer.clone();
        match self.tls.is_handshaking() {
            true => ChannelError::Tls {
                peer,
                why: "the peer closed the connection during the handshake".to_string(),
            },
            false => ChannelError::Closed(peer),
        }
    }

    /// Reads and decrypts received bytes, until there are enough for one turn.
    fn pull(&mut self) -> Result<(), ChannelError> {
        for _ in 0..READS_A_TURN {
            match self.tls.read_tls(&mut self.socket) {
                Ok(0) => self.ended = true,
                Ok(_) => self.heard = true,
                Err(error) if waits(&error) => return Ok(()),
                Err(error) => return Err(self.failed("receive from", error)),
            }
            match self.tls.process_new_packets() {
                Ok(state) => self.decrypted = state.plaintext_bytes_to_read(),
                Err(error) => {
                    // The alert reports the reason to the peer; a failure to send it is ignored.
                    let _ = self.push();
                    let why = errors::explain(&error, self.ca_cert.as_ref().map(|ca| ca.as_path()));
                    return Err(ChannelError::Tls { peer: self.peer.clone(), why });
                }
            }
            if self.ended || self.decrypted >= DECRYPTED_BYTES {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns decrypted bytes: 0 if there are none.
    fn take(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        match self.tls.reader().read(buffer) {
            Ok(0) => Err(self.over()),
            Ok(count) => {
                self.decrypted = self.decrypted.saturating_sub(count);
                Ok(count)
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(self.over()),
            Err(error) if waits(&error) => Ok(0),
            Err(error) => Err(self.failed("receive from", error)),
        }
    }

    /// Writes encrypted bytes as far as there is room.
    fn push(&mut self) -> Result<(), ChannelError> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if waits(&error) => return Ok(()),
                Err(error) => return Err(self.failed("send to", error)),
            }
        }
        Ok(())
    }
}

impl Channel for TlsStream {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let mut count = self.take(buffer)?;
        if count == 0 {
            self.pull()?;
            count = self.take(buffer)?;
        }
        match self.push() {
            // Bytes received before the end are returned before the end is reported.
            Err(error) if count == 0 => Err(error),
            _ => Ok(count),
        }
    }

    fn transmit(&mut self, bytes: &[u8]) -> Result<usize, ChannelError> {
        self.push()?;
        let mut taken = 0;
        while taken < bytes.len() && !self.tls.is_handshaking() {
            let written = self.tls.writer().write(&bytes[taken..]);
            let count = written.map_err(|error| self.failed("send to", error))?;
            if count == 0 {
                break;
            }
            taken += count;
            self.push()?;
        }
        Ok(taken)
    }

    /// The peer reads the end of TLS, and may send on after it.
    fn finish(&mut self) -> bool {
        self.tls.send_close_notify();
        // Bytes that cannot be sent now wait for room.
        let _ = self.push();
        true
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.socket.as_raw_fd())
    }

    fn waits_for_room(&self, owes: bool) -> bool {
        self.tls.wants_write() || (owes && !self.tls.is_handshaking())
    }

    fn holds_received(&self) -> bool {
        self.decrypted > 0
    }

    fn progress(&self) -> Progress {
        match (self.heard, self.tls.is_handshaking()) {
            (false, _) => Progress::Silent,
            (true, true) => Progress::Agreeing,
            (true, false) => Progress::Open,
        }
    }

    fn source(&self) -> Option<Source> {
        Some(Source::Host(self.source))
    }

    fn peer(&self) -> &str {
        &self.peer
    }
}

impl Drop for TlsStream {
    /// Sends `close_notify` as far as there is room, so that the peer can tell an end from a
    /// truncation.
    fn drop(&mut self) {
        if !self.tls.is_handshaking() {
            self.tls.send_close_notify();
        }
        let _ = self.push();
    }
}

/// Returns whether the error means "try again later".
fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
