//! Errors of the test controller, each displayed as one line.

use channel::{ChannelError, Url};
use openflow::codec::DecodeError;
use openflow::model::message::ErrorMessage;
use openflow::session::{DownReason, SendError};
use openflow::version::MessageKind;

/// Why communication with a switch failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ControlError {
    /// The connection could not be opened, or broke.
    Channel(ChannelError),
    /// The session ended: peer and reason.
    Down(String, DownReason),
    /// The peer sent an invalid message.
    Garbage(String, Box<DecodeError>),
    /// The peer sent bytes without valid message boundaries.
    Unframed(String),
    /// Timeout of a reply: peer and kind of the request.
    Silent(String, MessageKind),
    /// No switch connected in time to this address.
    NotConnected(Url),
    /// The switch rejected a request: its kind and the error.
    Refused(MessageKind, ErrorMessage),
    /// The reply has the wrong type for this kind of request.
    WrongAnswer(MessageKind),
    /// A user interrupted it.
    Interrupted,
    /// The request cannot be sent.
    Send(SendError),
    /// The switch sent more than a named limit allows.
    LimitReached(&'static str),
}

impl From<ChannelError> for ControlError {
    fn from(error: ChannelError) -> Self {
        ControlError::Channel(error)
    }
}

impl From<SendError> for ControlError {
    fn from(error: SendError) -> Self {
        ControlError::Send(error)
    }
}

impl std::fmt::Display for ControlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ControlError::Channel(error) => write!(f, "{error}"),
            ControlError::Down(peer, why) => write!(f, "switch at {peer}: {why}"),
            ControlError::Garbage(peer, error) => {
                write!(f, "invalid message from the switch at {peer}: {error}")
            }
            ControlError::Unframed(peer) => {
                write!(f, "invalid message from the switch at {peer}")
            }
            ControlError::Silent(peer, kind) => {
                write!(f, "no reply to a {kind} from the switch at {peer} in time")
            }
            ControlError::NotConnected(url) => write!(f, "no switch connected to {url} in time"),
            ControlError::Refused(kind, error) => {
                write!(f, "the switch rejected a {kind}: {error}")
            }
            ControlError::WrongAnswer(kind) => {
                write!(f, "unexpected reply of the switch to a {kind}")
            }
            ControlError::Interrupted => write!(f, "interrupted"),
            ControlError::Send(error) => write!(f, "{error}"),
            ControlError::LimitReached(limit) => {
                write!(f, "the switch sent more than {limit} allows")
            }
        }
    }
}

impl std::error::Error for ControlError {}
