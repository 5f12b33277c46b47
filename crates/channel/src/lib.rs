//! Control connections: byte streams over TCP, TLS, SCTP and Unix sockets, and in memory for
//! simulations.
//!
//! - A [`Channel`] never waits: it reads the bytes that have arrived and writes as many as there is
//!   room for. [`framed`] divides a stream into messages, [`datagram`] sends single ones over UDP.
//! - Addresses are [`Url`]s in the syntax of Open vSwitch. A [`Listener`] serves the passive ones
//!   and [`Connecting`] connects to the active ones.
//! - [`admission`] limits the connections of a listener. Without authentication, a listener that
//!   other hosts can reach is an error ([`Url::require_authentication`]).
//! - Protocols, versions and keep-alive belong to the users of this crate, and so do frames:
//!   `netio::control_tap` captures channels at an interface.
//!
//! ```
//! use channel::{Channel, Connecting, Listener, memory};
//! use packet::time::Nanos;
//!
//! let mut listener = Listener::open(&"ptcp:0:127.0.0.1".parse()?)?;
//! let _switch = Connecting::wait(&listener.address_to_connect(), Nanos::from_secs(5))?;
//! let controller = listener.accept()?.expect("the connection is established");
//! assert!(controller.peer().starts_with("tcp:127.0.0.1:"));
//!
//! let (mut switch, mut controller) = memory::pair(1024, "openflow");
//! assert_eq!(switch.transmit(b"hello")?, 5);
//! let mut buffer = [0; 16];
//! let count = controller.receive(&mut buffer)?;
//! assert_eq!(&buffer[..count], b"hello");
//! # Ok::<(), channel::ChannelError>(())
//! ```

use std::os::fd::RawFd;

use packet::time::Stamp;

pub mod admission;
pub mod datagram;
pub mod framed;
pub mod multi;
pub mod memory;
pub mod passage;
pub mod sctp;
pub mod tcp;
pub mod tls;
pub mod unix;
pub mod url;

mod dial;
mod exposure;
mod listen;
mod stream;

pub use admission::{ConnectionLimits, Source};
pub use dial::Connecting;
pub use listen::Listener;
pub use passage::{CaptureAnomalies, Direction, UnknownTime};
pub use tls::Tls;
pub use url::Url;

/// A bidirectional byte stream.
pub trait Channel: Send {
    /// Reads received bytes into the front of `buffer`, without waiting. Returns their number.
    ///
    /// Returns 0 if none wait (or `buffer` is empty). The end of the stream is
    /// [`ChannelError::Closed`].
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError>;

    /// Writes the front of `bytes`, as much as there is room for, without waiting. Returns the
    /// number of bytes.
    ///
    /// The caller keeps the rest. A channel that has own bytes to send (see
    /// [`Channel::waits_for_room`]) sends those first, also if `bytes` is empty.
    fn transmit(&mut self, bytes: &[u8]) -> Result<usize, ChannelError>;

    /// Closes the sending direction and keeps receiving. Returns whether the channel can do this.
    ///
    /// The peer reads the end of the stream after the rest of the bytes. A channel that cannot do
    /// this must be dropped instead.
    fn finish(&mut self) -> bool {
        false
    }

    /// Resets the connection when this channel is dropped, if the transport supports resets.
    fn abort(&mut self) {}

    /// Returns whether the stream that is over ([`ChannelError::Closed`]) was reset, and did not
    /// end in order.
    fn was_reset(&self) -> bool {
        false
    }

    /// Sets the type of the messages, if the transport carries it: SCTP's payload protocol
    /// identifier.
    fn label(&mut self, _payload: u32) {}

    /// Returns the descriptor, if any, that becomes readable when bytes wait and writable when
    /// there is room.
    fn descriptor(&self) -> Option<RawFd>;

    /// Returns whether to wait until the descriptor is writable. The caller has bytes to send if
    /// `owes`.
    ///
    /// A channel may have own bytes to send, and may be unable to accept any yet.
    fn waits_for_room(&self, owes: bool) -> bool {
        owes
    }

    /// Returns whether the channel has received bytes that left the descriptor but were not
    /// returned by [`Channel::receive`].
    ///
    /// If so, do not wait for the descriptor.
    fn holds_received(&self) -> bool {
        false
    }

    /// Returns the state of the connection.
    fn progress(&self) -> Progress {
        Progress::Open
    }

    /// Returns the peer's host or user, if known.
    fn source(&self) -> Option<Source> {
        None
    }

    /// Returns the name of the peer, for display and reports.
    fn peer(&self) -> &str;

    /// Returns when the first `end` bytes of a direction had passed the interface, or why this is
    /// unknown.
    ///
    /// Bytes are counted since the connection was made; call this in stream order. Returns `None`
    /// if the interface is not captured.
    fn passed(&mut self, _direction: Direction, _end: u64) -> Option<Result<Stamp, UnknownTime>> {
        None
    }

    /// Returns anomalies of the captured segments; none if the interface is not captured.
    fn remarks(&self) -> Option<CaptureAnomalies> {
        None
    }
}

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// Nothing has been received from the peer.
    Silent,
    /// The handshake is in progress.
    Agreeing,
    /// Bytes can pass.
    Open,
}

/// Error of a channel.
#[derive(Debug)]
#[non_exhaustive]
pub enum ChannelError {
    /// The peer closed or reset the stream (its name).
    Closed(String),
    /// No process listens at the address.
    Refused(Url),
    /// The peer did not reply in time.
    TimedOut(Url),
    /// Another process listens on this address.
    AddressInUse(Url),
    /// A text is not an address (the text, and the reason).
    BadUrl(String, &'static str),
    /// An address to listen on was given where one to connect to is required, or vice versa.
    WrongDirection(Url),
    /// The kernel has no SCTP (the address).
    NoSctp(Url),
    /// Other hosts can reach this listen address without authentication.
    Unauthenticated(Url),
    /// The TLS handshake failed, or TLS broke: peer and reason.
    Tls {
        /// The peer.
        peer: String,
        /// The reason.
        why: String,
    },
    /// A key, a certificate or a CA is unusable or missing.
    Credentials {
        /// The setting that names it.
        setting: &'static str,
        /// Its file, if one is named.
        file: Option<std::path::PathBuf>,
        /// The reason.
        why: String,
    },
    /// Any other failed system call: operation, object and error.
    System {
        /// The operation, to follow "cannot".
        doing: &'static str,
        /// The address or peer.
        what: String,
        /// The error of the system call.
        error: std::io::Error,
    },
}

impl std::fmt::Display for ChannelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ChannelError::Closed(peer) => write!(f, "{peer} closed the connection"),
            ChannelError::Refused(url) => write!(f, "cannot connect to {url}: connection refused"),
            ChannelError::TimedOut(url) => write!(f, "cannot connect to {url}: no reply in time"),
            ChannelError::AddressInUse(url) => {
                write!(f, "cannot listen on {url}: address in use by another process")
            }
            ChannelError::BadUrl(text, why) => write!(f, "invalid address {text:?}: {why}"),
            ChannelError::WrongDirection(url) if url.is_passive() => {
                write!(f, "cannot connect to {url}: it is an address to listen on")
            }
            ChannelError::WrongDirection(url) => {
                write!(f, "cannot listen on {url}: it is an address to connect to")
            }
            ChannelError::NoSctp(url) => write!(
                f,
                "cannot use {url}: the kernel has no SCTP (hint: run 'modprobe sctp' \
                 (CONFIG_IP_SCTP), or use tcp:)"
            ),
            ChannelError::Unauthenticated(url) => write!(
                f,
                "cannot listen on {url}: other hosts can connect to it without authentication (hint: use pssl: with \
                 --ca-cert, listen on 127.0.0.1, or allow it with --insecure)"
            ),
            ChannelError::Tls { peer, why } => write!(f, "TLS with {peer}: {why}"),
            ChannelError::Credentials { setting, file: Some(file), why } => {
                write!(f, "{setting} {}: {why}", file.display())
            }
            ChannelError::Credentials { setting, file: None, why } => {
                write!(f, "{setting}: {why}")
            }
            ChannelError::System { doing, what, error } => {
                write!(f, "cannot {doing} {what}: {error}")
            }
        }
    }
}

impl std::error::Error for ChannelError {}

#[cfg(test)]
mod tests;
