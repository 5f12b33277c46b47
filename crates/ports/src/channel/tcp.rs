//! Channels over TCP.
//!
//! Small control messages leave at once: Nagle's delay (RFC 896) is off on every connection.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use super::stream::Stream;
use super::{Channel, Source};

/// A channel over a TCP connection to `peer`.
pub(super) fn channel(socket: TcpStream, peer: SocketAddr) -> io::Result<Box<dyn Channel>> {
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)?;
    Ok(Box::new(Stream::new(socket, format!("tcp:{peer}"), Some(Source::Host(peer.ip())))))
}

/// A non-blocking socket that listens on `address`, and the address that it got.
pub(super) fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = TcpListener::bind(address)?;
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}
