//! Parsing and building of frames and protocol headers.
//!
//! Modules are listed in the order in which a frame passes through them. The crate does no I/O,
//! reads no clock and has no unsafe code. Malformed bytes return `error::Malformed` and never
//! panic.

pub mod frame;
pub mod batch_copy;
pub mod time;
pub mod error;
pub mod header;
pub mod field;
pub mod parse;
pub mod build;
pub mod segment;
pub mod checksum;
pub mod filter;
pub mod traffic;
pub mod show;
pub mod capture;
