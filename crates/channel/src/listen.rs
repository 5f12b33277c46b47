//! The passive end: a listening socket.
//!
//! Accepting never waits. A connection that ended before it was accepted is skipped.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};

use super::{Channel, ChannelError, Tls, Url, sctp, tcp, tls, unix};

/// A listening socket.
pub struct Listener {
    socket: Socket,
    address: Url,
}

enum Socket {
    Tcp(TcpListener),
    Tls(TcpListener, Tls),
    Sctp(TcpListener),
    Unix(unix::Listening),
}

impl Listener {
    /// Listens on a passive address without TLS.
    pub fn open(url: &Url) -> Result<Self, ChannelError> {
        Listener::open_with(url, None)
    }

    /// Listens on a passive address; one with TLS needs a TLS configuration.
    pub fn open_with(url: &Url, tls: Option<&Tls>) -> Result<Self, ChannelError> {
        Tls::check(tls, url)?;
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::AddrInUse => ChannelError::AddressInUse(url.clone()),
            _ if matches!(url, Url::PassiveSctp(_)) && sctp::is_there().is_err() => {
                ChannelError::NoSctp(url.clone())
            }
            _ => ChannelError::System { doing: "listen on", what: url.to_string(), error },
        };
        match url {
            Url::PassiveTcp(address) => {
                let (socket, address) = tcp::listen(*address).map_err(failed)?;
                Ok(Listener { socket: Socket::Tcp(socket), address: Url::PassiveTcp(address) })
            }
            Url::PassiveTls(address) => {
                let (socket, address) = tcp::listen(*address).map_err(failed)?;
                let tls = tls.expect("checked above").clone();
                let address = Url::PassiveTls(address);
                Ok(Listener { socket: Socket::Tls(socket, tls), address })
            }
            Url::PassiveUnix(path) => {
                let socket = unix::Listening::open(path).map_err(failed)?;
                Ok(Listener { socket: Socket::Unix(socket), address: url.clone() })
            }
            Url::PassiveSctp(address) => {
                let (socket, address) = sctp::listen(*address).map_err(failed)?;
                Ok(Listener { socket: Socket::Sctp(socket), address: Url::PassiveSctp(address) })
            }
            Url::Tcp(_) | Url::Tls(_) | Url::Sctp(_) | Url::Unix(_) => {
                Err(ChannelError::WrongDirection(url.clone()))
            }
        }
    }

    /// Accepts the next connection, or returns `None` if none waits.
    pub fn accept(&mut self) -> Result<Option<Box<dyn Channel>>, ChannelError> {
        let accepted = match &self.socket {
            Socket::Tcp(socket) => {
                socket.accept().and_then(|(stream, peer)| tcp::channel(stream, peer))
            }
            Socket::Tls(socket, tls) => {
                socket.accept().and_then(|(stream, peer)| tls::stream::accepted(tls, stream, peer))
            }
            Socket::Sctp(socket) => {
                socket.accept().and_then(|(stream, peer)| sctp::channel(stream, peer))
            }
            Socket::Unix(unix) => {
                unix.socket.accept().and_then(|(stream, _)| unix::channel(stream, &unix.path))
            }
        };
        match accepted {
            Ok(channel) => Ok(Some(channel)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {
                    Ok(None)
                }
                _ => {
                    let what = self.address.to_string();
                    Err(ChannelError::System { doing: "accept a connection on", what, error })
                }
            },
        }
    }

    /// Returns the listen address, with the port that the system chose if 0 was requested.
    pub fn address(&self) -> &Url {
        &self.address
    }

    /// Returns the address for connections from this host.
    pub fn address_to_connect(&self) -> Url {
        match &self.address {
            Url::PassiveTcp(address) => Url::Tcp(on_this_host(*address)),
            Url::PassiveTls(address) => Url::Tls(on_this_host(*address)),
            Url::PassiveSctp(address) => Url::Sctp(on_this_host(*address)),
            Url::PassiveUnix(path) => Url::Unix(path.clone()),
            active => active.clone(),
        }
    }

    /// Returns the descriptor that becomes readable when a connection waits.
    pub fn descriptor(&self) -> RawFd {
        match &self.socket {
            Socket::Tcp(socket) | Socket::Tls(socket, _) | Socket::Sctp(socket) => {
                socket.as_raw_fd()
            }
            Socket::Unix(unix) => unix.socket.as_raw_fd(),
        }
    }
}

/// Returns the address itself, or the loopback address for an unspecified address.
fn on_this_host(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}
