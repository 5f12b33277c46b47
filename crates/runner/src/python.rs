//! Measurement modules in Python, which run without rebuilding the program.
//!
//! A script runs in a separate process and exchanges lines of JSON over pipes
//! (`python/planimeter/protocol.py` is the other end): events go to the process in batches, and
//! commands come back. In real time the event loop continues while Python computes; in virtual time
//! it waits, so that runs are repeatable. For the reason for a process, see
//! `docs/decisions/0012-python-modules-run-in-a-separate-process.md`.
//!
//! Invariant: if a script raises, blocks, prints, allocates or exits, the event loop continues,
//! earlier data remains, and nothing of the process remains.

pub mod script;
pub mod module;
mod exchange;
mod events;
mod commands;
mod message;
mod flow;
mod package;

use openflow::model::message::Message;
use packet::time::Nanos;
use serde_json::Value;

pub use message::{forms, told};
pub use script::{Script, ScriptFault};

/// Parses the OpenFlow message in an object, in the notation of scripts; the error states the
/// cause.
pub fn message(value: &Value) -> Result<Message, String> {
    message::read(value, &commands::Names::default(), Nanos(0))
}
