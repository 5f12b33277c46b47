//! Bytes to OpenFlow messages and back, and both ends of a session, without any I/O.
//!
//! A [`model::Message`] means the same in every version; [`codec::encode`] and [`codec::decode`]
//! turn it into the bytes of one version and back, guided by the table in [`version`]. What a
//! version cannot express is an error, never a silent loss. [`session::Session`] is one end of a
//! control channel as a state machine: bytes and time go in, bytes and events come out.
//!
//! Nothing here knows a flow table, a socket or a clock.

/// Which message, action, statistics type and error exists in which version.
pub mod version;
/// The eight bytes in front of each message.
pub mod header;
/// A stream of bytes cut into messages.
pub mod frame;
/// Messages and what is in them, the same for every version.
pub mod model;
/// Messages to bytes and back.
pub mod codec;
/// Port numbers changed in messages as they pass.
pub mod renumber;
/// One end of a control channel.
pub mod session;
