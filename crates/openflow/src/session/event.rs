//! What a session is told once, and what it tells: events, ends and refusals.
//!
//! Source: OpenFlow 1.0.0 section 4.5. Values only; `super::Session` makes them.

use std::fmt;

use packet::error::Malformed;
use packet::time::Nanos;

use super::pending::Answered;
use crate::codec::{DecodeError, NotExpressible, Offending};
use crate::header::Xid;
use crate::model::message::{ErrorMessage, Message};
use crate::version::{End, Version};

/// What a session is told once.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which end it is.
    pub end: End,
    /// Versions that it offers, all of them among [`Version::SPOKEN`], at least one.
    pub versions: Vec<Version>,
    /// How long the peer may take to say hello.
    pub hello_timeout: Nanos,
    /// After how long without a byte from the peer to ask for a sign of life; `None` for never.
    pub echo_idle: Option<Nanos>,
    /// How long the peer may take to give one.
    pub echo_timeout: Nanos,
    /// Requests that may wait for their replies.
    pub pending_max: usize,
    /// Bytes waiting to be transmitted from which on nothing more is taken.
    pub transmit_bytes_max: usize,
}

impl Settings {
    /// Every spoken version, ten seconds for a hello, an echo after five idle seconds with five
    /// to answer, 4096 pending requests and 1 MiB to transmit.
    pub fn new(end: End) -> Settings {
        Settings {
            end,
            versions: Version::SPOKEN.to_vec(),
            hello_timeout: Nanos::from_secs(10),
            echo_idle: Some(Nanos::from_secs(5)),
            echo_timeout: Nanos::from_secs(5),
            pending_max: 4096,
            transmit_bytes_max: 1 << 20,
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "nearly every event is a message")]
pub enum Event {
    /// The ends agreed on a version; from now on messages can be sent.
    Up {
        /// That version.
        version: Version,
    },
    /// A message came that the session does not deal with itself.
    Message {
        /// Its transaction id.
        xid: Xid,
        /// The message.
        message: Message,
        /// Bytes that it had.
        bytes: usize,
        /// Its first bytes, for an error about it.
        offending: Offending,
        /// The request of this end that it answers, if it does.
        answers: Option<Answered>,
        /// When its last byte was handed over.
        at: Nanos,
    },
    /// A message came that cannot be understood, or that only this end sends. A switch has
    /// answered it with the error in it; a controller says nothing.
    Refused(DecodeError),
    /// The session is over. What is left to transmit may still tell the peer why.
    Down {
        /// Why.
        why: DownReason,
    },
}

/// Why a session is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownReason {
    /// The peer's first bytes were no hello (its version and type bytes).
    NoHello {
        /// First byte.
        version: u8,
        /// Second byte.
        kind: u8,
    },
    /// The peer said nothing, or only half a hello, in time.
    HelloTimeout,
    /// No version in common (the one that the peer's hello named).
    NoCommonVersion {
        /// The version byte of the peer's hello.
        theirs: u8,
    },
    /// The peer refused our hello.
    RefusedByPeer(ErrorMessage),
    /// The peer gave no sign of life in time.
    EchoTimeout,
    /// The bytes cannot be cut into messages.
    Malformed(Malformed),
}

/// Why a message was not taken for sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendError {
    /// No version has been agreed on yet, or the session is over.
    NotUp,
    /// The version cannot say it.
    NotExpressible(NotExpressible),
    /// So many bytes wait to be transmitted that no more are taken.
    TransmitFull {
        /// That many.
        bytes: usize,
    },
    /// So many requests wait for replies that no more are taken.
    PendingFull {
        /// That many.
        requests: usize,
    },
}

impl fmt::Display for DownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DownReason::NoHello { version, kind } => {
                write!(f, "the peer began with {version:#04x} {kind:#04x}, which is no hello")
            }
            DownReason::HelloTimeout => f.write_str("the peer said no hello in time"),
            DownReason::NoCommonVersion { theirs } => match Version::from_wire(*theirs) {
                Some(theirs) => write!(f, "no version in common: the peer offers {theirs}"),
                None => write!(f, "no version in common: the peer offers number {theirs:#04x}"),
            },
            DownReason::RefusedByPeer(error) => write!(f, "the peer refused: {error}"),
            DownReason::EchoTimeout => f.write_str("the peer answered no echo in time"),
            DownReason::Malformed(malformed) => write!(f, "no message border: {malformed}"),
        }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::NotUp => f.write_str("the session is not up"),
            SendError::NotExpressible(what) => write!(f, "{what}"),
            SendError::TransmitFull { bytes } => write!(f, "{bytes} bytes wait to be sent"),
            SendError::PendingFull { requests } => {
                write!(f, "{requests} requests wait for replies")
            }
        }
    }
}

impl std::error::Error for SendError {}
