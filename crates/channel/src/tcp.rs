//! Channels over TCP.
//!
//! Small control messages are sent immediately: Nagle's algorithm (RFC 896) is disabled on every
//! connection.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use super::stream::Stream;
use super::{Channel, Source};

/// Creates a channel over a TCP connection to `peer`.
pub(super) fn channel(socket: TcpStream, peer: SocketAddr) -> io::Result<Box<dyn Channel>> {
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)?;
    Ok(Box::new(Stream::new(socket, format!("tcp:{peer}"), Some(Source::Host(peer.ip())))))
}

/// Opens a non-blocking listening socket on `address`. Returns it with its actual address.
pub(super) fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = TcpListener::bind(address)?;
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}
