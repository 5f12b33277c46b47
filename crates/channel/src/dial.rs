//! The active end: a non-blocking connection attempt.
//!
//! The socket is non-blocking before it connects (POSIX `connect`, `EINPROGRESS`). It becomes
//! writable when the attempt has ended, and `SO_ERROR` then has the result.

#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use os::clock::WaitSet;
use os::sys;
use packet::time::Nanos;

use super::url::PATH_BYTES_MAX;
use super::{Channel, ChannelError, Tls, Url, sctp, tcp, tls, unix};

/// A connection attempt.
pub struct Connecting {
    socket: Option<OwnedFd>,
    url: Url,
    tls: Option<Tls>,
    give_up: Nanos,
}

impl Connecting {
    /// Starts to connect to an active address at `now`, with a timeout of `patience`.
    pub fn start(url: &Url, now: Nanos, patience: Nanos) -> Result<Self, ChannelError> {
        Connecting::start_with(url, None, now, patience)
    }

    /// Like [`Connecting::start`], also for addresses with TLS.
    ///
    /// The channel exists as soon as TCP is connected; the handshake is part of receiving and
    /// transmitting.
    pub fn start_with(
        url: &Url,
        tls: Option<&Tls>,
        now: Nanos,
        patience: Nanos,
    ) -> Result<Self, ChannelError> {
        Tls::check(tls, url)?;
        let started = match url {
            Url::Tcp(address) | Url::Tls(address) => start_inet(*address, 0),
            Url::Sctp(address) => start_inet(*address, sctp::PROTOCOL),
            Url::Unix(path) => start_unix(path),
            _ => return Err(ChannelError::WrongDirection(url.clone())),
        };
        let socket = started.map_err(|error| failed(url, error))?;
        let give_up = now.saturating_add(patience);
        let tls = tls.cloned().filter(|_| url.is_tls());
        Ok(Connecting { socket: Some(socket), url: url.clone(), tls, give_up })
    }

    /// Returns the channel once it is connected; `None` while the attempt is pending and `now` is
    /// before the timeout.
    ///
    /// After a channel or an error, the attempt is over and further calls return errors.
    pub fn finish(&mut self, now: Nanos) -> Result<Option<Box<dyn Channel>>, ChannelError> {
        let Some(socket) = &self.socket else {
            return Err(ChannelError::Closed(self.url.to_string()));
        };
        let mut wait = WaitSet::new();
        let place = wait.add(socket.as_raw_fd(), true);
        wait.until(Some(Nanos::ZERO)).map_err(|error| failed(&self.url, error))?;
        if !wait.writable(place) {
            if now < self.give_up {
                return Ok(None);
            }
            self.socket = None;
            return Err(ChannelError::TimedOut(self.url.clone()));
        }
        let error = sys::pending_error(socket.as_raw_fd());
        let socket = self.socket.take().expect("checked above");
        if let Some(code) = error {
            return Err(failed(&self.url, io::Error::from_raw_os_error(code)));
        }
        let made = match &self.url {
            Url::Tcp(address) => tcp::channel(TcpStream::from(socket), *address),
            Url::Sctp(address) => sctp::channel(TcpStream::from(socket), *address),
            Url::Tls(address) => {
                let tls = self.tls.as_ref().expect("checked when the attempt started");
                tls::stream::connected(tls, TcpStream::from(socket), *address)
            }
            Url::Unix(path) => unix::channel(UnixStream::from(socket), path),
            _ => unreachable!("start accepts only active addresses"),
        };
        made.map(Some).map_err(|error| failed(&self.url, error))
    }

    /// Returns the descriptor that becomes writable when the attempt has ended.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.socket.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Returns when the attempt times out.
    pub fn deadline(&self) -> Nanos {
        self.give_up
    }

    /// Connects and waits for the result on the monotonic clock, for tests and command lines.
    pub fn wait(url: &Url, patience: Nanos) -> Result<Box<dyn Channel>, ChannelError> {
        Connecting::wait_with(url, None, patience)
    }

    /// Like [`Connecting::wait`], also for addresses with TLS.
    pub fn wait_with(
        url: &Url,
        tls: Option<&Tls>,
        patience: Nanos,
    ) -> Result<Box<dyn Channel>, ChannelError> {
        let mut attempt = Connecting::start_with(url, tls, os::clock::now(), patience)?;
        loop {
            if let Some(channel) = attempt.finish(os::clock::now())? {
                return Ok(channel);
            }
            let mut wait = WaitSet::new();
            wait.add(attempt.descriptor().expect("an attempt in progress"), true);
            wait.until(Some(attempt.give_up)).map_err(|error| failed(url, error))?;
        }
    }
}

fn failed(url: &Url, error: io::Error) -> ChannelError {
    match error.raw_os_error() {
        // A Unix socket with a full backlog returns EAGAIN: no process accepts connections there.
        Some(libc::ECONNREFUSED | libc::ENOENT | libc::EAGAIN) => {
            ChannelError::Refused(url.clone())
        }
        Some(libc::ETIMEDOUT) => ChannelError::TimedOut(url.clone()),
        Some(libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT) if matches!(url, Url::Sctp(_)) => {
            ChannelError::NoSctp(url.clone())
        }
        _ => ChannelError::System { doing: "connect to", what: url.to_string(), error },
    }
}

fn start_inet(address: SocketAddr, protocol: libc::c_int) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    sys::with_address(address, |pointer, length| start((family, protocol), pointer, length))
}

fn start_unix(path: &Path) -> io::Result<OwnedFd> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > PATH_BYTES_MAX {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    // SAFETY: all-zero bytes are a valid value of this C struct.
    let mut address = unsafe { zeroed::<libc::sockaddr_un>() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (place, &byte) in address.sun_path.iter_mut().zip(bytes) {
        *place = byte as libc::c_char;
    }
    let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    start((libc::AF_UNIX, 0), std::ptr::from_ref(&address).cast(), length)
}

/// Starts to connect a new stream socket of a family and protocol.
///
/// The socket address must have `length` bytes and outlive the call.
fn start(
    (family, protocol): (libc::c_int, libc::c_int),
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> io::Result<OwnedFd> {
    let socket = sys::socket(family, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, protocol)?;
    // SAFETY: the pointer and the length describe the caller's socket address.
    let result = sys::check(unsafe { libc::connect(socket.as_raw_fd(), address, length) });
    match result {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}
