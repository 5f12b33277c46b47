//! ForCES without I/O: the model of a forwarding element, its values, its messages and both ends of
//! an association.
//!
//! A forwarding element (FE) consists of instances of logical functional blocks (LFBs) and the
//! links between them. Libraries of LFB classes describe them (RFC 5812, RFC 7408). A control
//! element (CE) reads and changes their components by paths (RFC 5810).
//!
//! - [`model`]: classes and data types
//! - [`model::value`]: values of components
//! - [`library`]: reads and writes class libraries
//! - [`wire`]: encodes and decodes messages
//! - [`association`]: either end of a control channel
//!
//! This crate has no frames, sockets or clocks. Untrusted bytes and documents never cause a panic.
//! Named limits bound memory.

#[cfg(test)]
mod arbitrary;
pub mod association;
pub mod library;
pub mod model;
pub mod wire;

pub use model::value::{Fields, Rows, Value};
pub use model::{Catalog, Class, Component, DataType, Library};
