//! Sends and receives the control messages of a connection.

use std::os::fd::{OwnedFd, RawFd};

use super::fault::Fault;
use super::protocol::Message;
use super::socket::{Socket, SocketInput};

/// Result of [`hear`].
pub enum ReceiveResult {
    /// No message waits.
    Nothing,
    /// A message, and its descriptor.
    Message(Message, Option<OwnedFd>),
    /// The peer closed the connection.
    End,
}

/// Receives a message with at most one descriptor; anything else is a fault.
pub fn hear(socket: &Socket) -> Result<ReceiveResult, Fault> {
    match socket.receive() {
        Ok(SocketInput::Nothing) => Ok(ReceiveResult::Nothing),
        Ok(SocketInput::End) | Err(_) => Ok(ReceiveResult::End),
        Ok(SocketInput::Message { bytes, length, mut descriptors }) => {
            if length != bytes.len() {
                return Err(Fault::Message);
            }
            let message = Message::decode(&bytes)?;
            let descriptor = descriptors.pop();
            if !descriptors.is_empty() {
                return Err(Fault::Descriptor);
            }
            Ok(ReceiveResult::Message(message, descriptor))
        }
    }
}

/// Sends a message. Messages are few and short, so a peer without room for one does not read.
pub fn say(socket: &Socket, message: &Message, beside: Option<RawFd>) -> Result<(), Fault> {
    socket.send(&message.encode(), beside).map_err(|_| Fault::Slow)
}

/// Sends a `disconnect` message with the reason; a failure is ignored.
pub fn say_farewell(socket: &Socket, fault: Fault) {
    let _ = say(socket, &Message::farewell(fault), None);
}
