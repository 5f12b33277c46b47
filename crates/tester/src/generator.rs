//! Traffic generation: schedules, frame contents, and transmission on time.
//!
//! The load is open loop: frames are sent on schedule, independent of the received ones.

pub mod schedule;
pub mod poisson;
pub mod ramp;
pub mod field_writer;
pub mod build;
pub mod template;
pub mod templates;
pub mod pace;
mod queue;
pub mod sender;
pub mod replay_schedule;
pub mod replay_signature;
pub mod replay_sender;
