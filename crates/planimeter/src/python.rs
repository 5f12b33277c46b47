//! Modules that users write in Python, run without rebuilding.
//!
//! A script runs in a process of its own and speaks lines of JSON over pipes (`python/planimeter/conversation.py`
//! is the other end): events go there in batches, and commands come back. While Python thinks the stage
//! goes on in real time; in virtual time it waits, so that runs repeat. Why a process:
//! `docs/decisions/0012-python-in-a-process.md`.
//!
//! Invariant: whatever a script does (raise, block, print, grow, leave), the stage goes on, what was
//! seen is kept, and nothing of the process is left behind.

/// A script as an experiment.
pub mod script;
/// A script's class as a module on a stage.
pub mod module;
/// What passes between a stage and a process.
mod conversation;
/// Events as lines.
mod events;
/// Lines as commands.
mod commands;
/// OpenFlow messages as JSON.
mod message;
/// Fields, actions and instructions as JSON.
mod flow;
/// The package that scripts import.
mod package;

use openflow::model::message::Message;
use packet::time::Nanos;
use serde_json::Value;

pub use message::{forms, told};
pub use script::{Fault, Script};

/// The OpenFlow message that an object says, as scripts write it; what is wrong with it otherwise.
pub fn message(value: &Value) -> Result<Message, String> {
    message::read(value, &commands::Names::default(), Nanos(0))
}
