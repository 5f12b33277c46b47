//! Settings, events and errors of a session.
//!
//! Source: OpenFlow 1.0.0 section 4.5. This module has values only; `super::Session` creates them.

use std::fmt;

use packet::error::Malformed;
use packet::time::Nanos;

use super::pending::AnsweredRequest;
use crate::codec::{DecodeError, MessageExcerpt, NotExpressible};
use crate::header::Xid;
use crate::model::message::{ErrorMessage, Message};
use crate::version::{End, Version};

/// Settings of a session.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Controller or switch.
    pub end: End,
    /// Offered versions, at least one; all of them in [`Version::SUPPORTED`].
    pub versions: Vec<Version>,
    /// Timeout for the peer's hello.
    pub hello_timeout: Nanos,
    /// Idle time after which the session sends an echo request; `None` for never.
    pub echo_idle: Option<Nanos>,
    /// Timeout for the echo reply.
    pub echo_timeout: Nanos,
    /// Maximum number of pending requests.
    pub pending_max: usize,
    /// Number of queued bytes at which the session rejects further messages.
    pub transmit_bytes_max: usize,
}

impl Settings {
    /// Returns the defaults.
    ///
    /// - All versions; 10 s for the hello
    /// - Echo request after 5 idle seconds; 5 s for its reply
    /// - 4096 pending requests; 1 MiB of queued bytes
    pub fn new(end: End) -> Settings {
        Settings {
            end,
            versions: Version::SUPPORTED.to_vec(),
            hello_timeout: Nanos::from_secs(10),
            echo_idle: Some(Nanos::from_secs(5)),
            echo_timeout: Nanos::from_secs(5),
            pending_max: 4096,
            transmit_bytes_max: 1 << 20,
        }
    }
}

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "nearly every event is a message")]
pub enum Event {
    /// Version negotiation succeeded; messages can now be sent.
    Up {
        /// The negotiated version.
        version: Version,
    },
    /// A message arrived that the session does not handle itself.
    Message {
        /// Its transaction ID.
        xid: Xid,
        /// The message.
        message: Message,
        /// Length of the message in bytes.
        bytes: usize,
        /// The message's first bytes, for an error about it.
        offending: MessageExcerpt,
        /// The request of this end that it replies to, if any.
        answers: Option<AnsweredRequest>,
        /// When its last byte was received.
        at: Nanos,
    },
    /// An invalid message arrived, or one that only this end may send.
    ///
    /// A switch has replied with the contained error; a controller does not reply.
    Refused(DecodeError),
    /// The session is over. The bytes that remain to transmit may contain the error for the peer.
    Down {
        /// The cause.
        why: DownReason,
    },
}

/// Cause of a session's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownReason {
    /// The peer's first bytes were not a hello.
    NoHello {
        /// First byte.
        version: u8,
        /// Second byte.
        kind: u8,
    },
    /// The peer sent no complete hello before the timeout.
    HelloTimeout,
    /// The two ends have no version in common.
    NoCommonVersion {
        /// The version byte of the peer's hello.
        theirs: u8,
    },
    /// The peer rejected this end's hello.
    RefusedByPeer(ErrorMessage),
    /// The peer sent no bytes before the echo timeout.
    EchoTimeout,
    /// The byte stream has no valid message boundaries.
    Malformed(Malformed),
}

/// Why a message could not be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendError {
    /// Version negotiation is not complete, or the session is over.
    NotUp,
    /// The version cannot express the message.
    NotExpressible(NotExpressible),
    /// Too many bytes wait to be transmitted.
    TransmitFull {
        /// Number of queued bytes.
        bytes: usize,
    },
    /// Too many requests wait for replies.
    PendingFull {
        /// Number of pending requests.
        requests: usize,
    },
}

impl fmt::Display for DownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DownReason::NoHello { version, kind } => {
                write!(f, "the peer started with {version:#04x} {kind:#04x} instead of a hello")
            }
            DownReason::HelloTimeout => f.write_str("the peer sent no hello in time"),
            DownReason::NoCommonVersion { theirs } => match Version::from_wire(*theirs) {
                Some(theirs) => write!(f, "no version in common: the peer offers {theirs}"),
                None => write!(f, "no version in common: the peer offers number {theirs:#04x}"),
            },
            DownReason::RefusedByPeer(error) => write!(f, "the peer rejected the session: {error}"),
            DownReason::EchoTimeout => f.write_str("the peer sent no echo reply in time"),
            DownReason::Malformed(malformed) => write!(f, "invalid message length: {malformed}"),
        }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::NotUp => f.write_str("the session is not up"),
            SendError::NotExpressible(what) => write!(f, "{what}"),
            SendError::TransmitFull { bytes } => write!(f, "the send queue is full: {bytes} bytes"),
            SendError::PendingFull { requests } => {
                write!(f, "too many requests without reply: {requests}")
            }
        }
    }
}

impl std::error::Error for SendError {}
