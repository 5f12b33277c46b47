//! Channels over SCTP, if the kernel supports it.
//!
//! One-to-one sockets (RFC 6458 section 4): each write is one message, with the payload protocol
//! identifier that was [set](super::Channel::label). Reads return a stream of messages without
//! gaps; the reader knows where each ends. Sources: RFC 9260, RFC 5811 section 4.2. Untested on
//! kernels without SCTP, where opening a channel returns an error.

#![allow(unsafe_code)]

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

use os::sys::{self, Plain};

use super::stream::{Socket, Stream};
use super::{Channel, Source};

/// The protocol's number.
pub(super) const PROTOCOL: libc::c_int = 132;
/// Bytes of the send buffer: a message is sent whole or not at all, and the longest of ForCES has
/// 262,140.
const SEND_BYTES: libc::c_int = 1 << 20;
/// Length of the listen queue.
const BACKLOG: libc::c_int = 128;
/// Options of the protocol level (linux/sctp.h).
const NODELAY: libc::c_int = 3;
const DEFAULT_SEND_PARAM: libc::c_int = 10;

/// `struct sctp_sndrcvinfo`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct SendParam {
    stream: u16,
    number: u16,
    flags: u16,
    unused: u16,
    payload: u32,
    context: u32,
    time_to_live: u32,
    tsn: u32,
    cumulative_tsn: u32,
    association: i32,
}

// SAFETY: a plain C struct of integers, whose only gap is a field here.
unsafe impl Plain for SendParam {}

/// Checks whether the kernel supports SCTP.
pub fn is_there() -> io::Result<()> {
    sys::socket(libc::AF_INET, libc::SOCK_STREAM, PROTOCOL).map(drop)
}

/// A socket that behaves like a TCP socket, except for its options.
struct SctpSocket(TcpStream);

impl Read for SctpSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for SctpSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for SctpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Socket for SctpSocket {
    fn shut(&self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }

    fn reset(&self) -> io::Result<()> {
        Socket::reset(&self.0)
    }

    fn label(&self, payload: u32) -> io::Result<()> {
        let param = SendParam { payload: payload.to_be(), ..SendParam::default() };
        sys::set_option(self.as_raw_fd(), PROTOCOL, DEFAULT_SEND_PARAM, &param)
    }
}

/// Creates a channel over an association with `peer`.
pub(super) fn channel(socket: TcpStream, peer: SocketAddr) -> io::Result<Box<dyn Channel>> {
    socket.set_nonblocking(true)?;
    let descriptor = socket.as_raw_fd();
    sys::set_option(descriptor, PROTOCOL, NODELAY, &(1 as libc::c_int))?;
    sys::set_option(descriptor, libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BYTES)?;
    let source = Some(Source::Host(peer.ip()));
    Ok(Box::new(Stream::new(SctpSocket(socket), format!("sctp:{peer}"), source)))
}

/// Opens a non-blocking listening socket on `address`. Returns it with its actual address.
pub(super) fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let socket = sys::socket(family, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, PROTOCOL)?;
    sys::with_address(address, |pointer, length| {
        // SAFETY: the pointer and the length describe a socket address that outlives the call.
        sys::check(unsafe { libc::bind(socket.as_raw_fd(), pointer, length) })
    })?;
    // SAFETY: no pointers are passed.
    sys::check(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
    let listener = TcpListener::from(socket);
    let address = listener.local_addr()?;
    Ok((listener, address))
}

#[cfg(test)]
mod tests {
    use os::clock::{self, WaitSet};
    use packet::time::Nanos;

    use crate::{ChannelError, Connecting, Listener, Url};

    #[test]
    fn messages_pass_if_the_kernel_has_sctp_and_otherwise_an_error_says_so() {
        let url: Url = "psctp:0:127.0.0.1".parse().unwrap();
        let patience = Nanos::from_secs(5);
        let mut listener = match Listener::open(&url) {
            Ok(listener) => listener,
            Err(error) => {
                assert!(super::is_there().is_err());
                assert!(matches!(error, ChannelError::NoSctp(_)), "{error}");
                assert!(error.to_string().contains("modprobe sctp"), "{error}");
                let url: Url = "sctp:127.0.0.1:6704".parse().unwrap();
                let dialled = Connecting::start(&url, clock::now(), patience).err();
                assert!(matches!(dialled, Some(ChannelError::NoSctp(_))), "{dialled:?}");
                return;
            }
        };
        let mut near = Connecting::wait(&listener.address_to_connect(), patience).unwrap();
        let mut wait = WaitSet::new();
        wait.add(listener.descriptor(), false);
        wait.until(Some(clock::now() + patience)).unwrap();
        let mut far = listener.accept().unwrap().expect("a connection was made");
        near.label(21);
        assert_eq!(near.transmit(&[7; 70_000]).unwrap(), 70_000);
        let (mut have, mut buffer) = (0, [0; 4096]);
        while have < 70_000 {
            have += far.receive(&mut buffer).unwrap();
        }
        assert_eq!(have, 70_000);
    }
}
