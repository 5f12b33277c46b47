//! A connection's control messages: bytes and descriptors on one side, messages or faults on the
//! other.

use std::os::fd::{OwnedFd, RawFd};

use super::fault::Fault;
use super::protocol::Message;
use super::socket::{Received, Socket};

/// What was heard.
pub enum Heard {
    /// Nothing yet.
    Nothing,
    /// A message, and the descriptor that came with it.
    Message(Message, Option<OwnedFd>),
    /// The other end is gone.
    End,
}

/// Listens to the other end; anything but a message with at most one descriptor is a fault.
pub fn hear(socket: &Socket) -> Result<Heard, Fault> {
    match socket.receive() {
        Ok(Received::Nothing) => Ok(Heard::Nothing),
        Ok(Received::End) | Err(_) => Ok(Heard::End),
        Ok(Received::Message { bytes, length, mut descriptors }) => {
            if length != bytes.len() {
                return Err(Fault::Message);
            }
            let message = Message::decode(&bytes)?;
            let descriptor = descriptors.pop();
            if !descriptors.is_empty() {
                return Err(Fault::Descriptor);
            }
            Ok(Heard::Message(message, descriptor))
        }
    }
}

/// Says something. Messages are few and short: who has no room for one does not listen.
pub fn say(socket: &Socket, message: &Message, beside: Option<RawFd>) -> Result<(), Fault> {
    socket.send(&message.encode(), beside).map_err(|_| Fault::Slow)
}

/// Tells a peer why it is left. Whether it hears is its own affair.
pub fn say_farewell(socket: &Socket, fault: Fault) {
    let _ = say(socket, &Message::farewell(fault), None);
}
