//! The tester: traffic generator, analyzer and test controller.
//!
//! Modules are listed in the order in which a measurement uses them.
//!
//! - The tester has no access to a switch's internals. It shares only frames, control messages and
//!   `netio` with this project's own forwarder.
//! - All decisions are pure functions: time and seeds are arguments.
//! - All I/O goes through `netio`, `channel` and `os`.

pub mod procedure;
pub mod stream;
pub mod trial;
pub mod account;
pub mod rig;
pub mod search;
pub mod generator;
pub mod calibrate;
pub mod signature;
pub mod analyzer;
pub mod capture;
pub mod pauses;
pub mod gauge;
pub mod controller;
pub mod control_element;
pub mod module;
pub mod executor;
pub mod controller_self_test;
pub mod proxy;
pub mod clock;
mod mix;
mod grouping;
