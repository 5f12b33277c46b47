//! Byte streams that control messages travel on: TCP, TLS, Unix sockets, and memory for simulations.
//!
//! A [`Channel`] never waits: it reads what is there and writes what there is room for. Addresses
//! are [`Url`]s as Open vSwitch writes them; [`Listener`] serves the passive ones and
//! [`Connecting`] dials the active ones. Framing, versions and keep-alive belong to whoever
//! speaks a protocol on top.

use std::os::fd::RawFd;

use packet::time::Stamp;

use wire::{Direction, Remarks, Unseen};

/// Limits on the connections that a listener accepts.
pub mod admission;
/// Messages on a channel.
pub mod framed;
/// Several channels to one other end.
pub mod group;
/// Channels between two ends in one process.
pub mod memory;
/// Channels over SCTP.
pub mod sctp;
/// Channels over TCP.
pub mod tcp;
/// Channels with stamps from the wire.
pub mod tap;
/// Channels over TLS, and what they are made from.
pub mod tls;
/// Channels over Unix sockets.
pub mod unix;
/// Where a channel leads to.
pub mod url;
/// When a channel's bytes passed the interface.
pub mod wire;

mod dial;
mod exposure;
mod listen;
mod stream;

pub use admission::{ConnectionLimits, Source};
pub use dial::Connecting;
pub use listen::Listener;
pub use tls::Tls;
pub use url::Url;

/// A stream of bytes in both directions.
pub trait Channel: Send {
    /// Reads what has arrived into the front of `buffer`, without waiting. Returns how many bytes:
    /// 0 when none wait (or `buffer` is empty). The end of the stream is [`ChannelError::Closed`].
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError>;

    /// Writes the front of `bytes`, as much as there is room for, without waiting. Returns how
    /// many bytes; the caller keeps the rest. A channel that holds bytes back itself (see
    /// [`Channel::waits_for_room`]) goes on with those first, also when `bytes` is empty.
    fn transmit(&mut self, bytes: &[u8]) -> Result<usize, ChannelError>;

    /// Sends no more, so that the other end reads the end of the stream once it has read the rest, and goes on
    /// receiving. Whether the channel can; one that cannot has to be dropped for that.
    fn finish(&mut self) -> bool {
        false
    }

    /// Has the other end see a reset when this one is dropped, where the channel has such.
    fn abort(&mut self) {}

    /// Whether the stream that is over ([`ChannelError::Closed`]) was reset, and did not end in order.
    fn was_reset(&self) -> bool {
        false
    }

    /// Says what kind of messages it carries, where the other end is told: by SCTP's payload protocol
    /// identifier.
    fn label(&mut self, _payload: u32) {}

    /// The descriptor that becomes readable when bytes wait and writable when there is room,
    /// where the channel has one.
    fn descriptor(&self) -> Option<RawFd>;

    /// Whether to wait until the descriptor is writable, for an owner who `owes` bytes or not. A
    /// channel can have bytes of its own to send, and can be unable to take any yet.
    fn waits_for_room(&self, owes: bool) -> bool {
        owes
    }

    /// Whether bytes have left the descriptor that [`Channel::receive`] has not handed over:
    /// waiting for the descriptor would then be in vain.
    fn holds_received(&self) -> bool {
        false
    }

    /// How far it has come.
    fn progress(&self) -> Progress {
        Progress::Open
    }

    /// The host or user at the other end, where the channel knows it.
    fn source(&self) -> Option<Source> {
        None
    }

    /// Name of the other end, for people and records.
    fn peer(&self) -> &str;

    /// When the first `end` bytes of a direction since the connection was made had passed the interface, or why that is not known; none if
    /// nobody looks there. To be asked in the order of the stream.
    fn passed(&mut self, _direction: Direction, _end: u64) -> Option<Result<Stamp, Unseen>> {
        None
    }

    /// What was remarkable on the wire; none if nobody looks there.
    fn remarks(&self) -> Option<Remarks> {
        None
    }
}

/// How far a channel has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// Nothing has been received from the other end.
    Silent,
    /// The ends are agreeing on how to talk.
    Agreeing,
    /// Bytes can pass.
    Open,
}

/// What goes wrong with a channel.
#[derive(Debug)]
#[non_exhaustive]
pub enum ChannelError {
    /// The other end closed or reset the stream (its name).
    Closed(String),
    /// Nobody listens there.
    Refused(Url),
    /// The other end did not answer in time.
    TimedOut(Url),
    /// Somebody else listens on this address.
    AddressInUse(Url),
    /// A text that is not an address (the text, and what is wrong with it).
    BadUrl(String, &'static str),
    /// An address that says to listen where one to connect to is needed, or the other way round.
    WrongDirection(Url),
    /// The kernel has no SCTP (the address).
    NoSctp(Url),
    /// Other hosts reach this address to listen on, and nothing authenticates them.
    Unauthenticated(Url),
    /// TLS did not come about, or broke: with whom, and why.
    Tls {
        /// The other end.
        peer: String,
        /// What is wrong.
        why: String,
    },
    /// A key, a certificate or a CA cannot be used, or is missing.
    Credentials {
        /// The setting that names it.
        setting: &'static str,
        /// Its file, where one is named.
        file: Option<std::path::PathBuf>,
        /// What is wrong with it.
        why: String,
    },
    /// Any other refusal of the system: what was attempted, on what, and its error.
    System {
        /// The operation.
        doing: &'static str,
        /// The address or peer.
        what: String,
        /// What the system answered.
        error: std::io::Error,
    },
}

impl std::fmt::Display for ChannelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ChannelError::Closed(peer) => write!(f, "{peer} closed the connection"),
            ChannelError::Refused(url) => write!(f, "nobody listens on {url}"),
            ChannelError::TimedOut(url) => write!(f, "{url} does not answer"),
            ChannelError::AddressInUse(url) => write!(f, "{url} is in use by another process"),
            ChannelError::BadUrl(text, why) => write!(f, "address {text:?}: {why}"),
            ChannelError::WrongDirection(url) if url.is_passive() => {
                write!(f, "{url} is an address to listen on, not to connect to")
            }
            ChannelError::WrongDirection(url) => {
                write!(f, "{url} is an address to connect to, not to listen on")
            }
            ChannelError::NoSctp(url) => write!(
                f,
                "{url}: this kernel has no SCTP; load it (modprobe sctp, CONFIG_IP_SCTP) or use tcp:"
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
            ChannelError::System { doing, what, error } => write!(f, "{doing} {what}: {error}"),
        }
    }
}

impl std::error::Error for ChannelError {}

#[cfg(test)]
mod tests;
