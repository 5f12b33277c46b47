//! OpenFlow 1.0 to 1.5 codec and control channel sessions, without I/O.
//!
//! - A [`model::Message`] means the same in every version.
//! - [`codec::encode`] and [`codec::decode`] convert it to and from the bytes of one version, with
//!   the code tables in [`version`]. Encoding returns an error for what a version cannot express;
//!   it never drops it silently.
//! - [`session::Session`] is one end of a control channel, controller or switch, as a state
//!   machine. Its inputs are bytes and time, its outputs bytes and events.
//!
//! This crate has no flow tables, sockets or clocks.

pub mod version;
pub mod header;
pub mod frame;
pub mod model;
pub mod codec;
pub mod renumber;
pub mod session;
