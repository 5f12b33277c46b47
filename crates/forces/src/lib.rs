//! ForCES without I/O: the model of a forwarding element, its values, its messages and both ends of
//! an association.
//!
//! A forwarding element (FE) is instances of logical functional blocks (LFBs), joined by links and
//! described by classes in libraries (RFC 5812, RFC 7408). A control element (CE) reads and changes
//! them by paths (RFC 5810). [`model`] knows classes and data types, [`value`] what a component
//! holds, [`library`] reads and writes class libraries, [`wire`] turns messages into bytes and back, and
//! [`association`] is either end of a control channel.
//!
//! Nothing here knows a frame's bytes, a socket or a clock; bytes and documents of a stranger never
//! panic, and memory is bounded by limits with a name.

#[cfg(test)]
mod arbitrary;
/// Both ends of an association.
pub mod association;
/// Class libraries as XML.
pub mod library;
/// Classes, data types and what they are made of.
pub mod model;
/// What a component holds.
pub mod value;
/// Messages: bytes to messages and back.
pub mod wire;

pub use model::{Catalog, Class, Component, DataType, Library};
pub use value::{Fields, Rows, Value};
