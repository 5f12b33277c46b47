//! Traffic generation: schedules, frame contents, and transmission on time.
//!
//! The load is open loop: frames are sent on schedule, independent of the received ones.

pub mod schedule;
pub mod poisson;
pub mod ramp;
pub mod patch;
pub mod form;
pub mod template;
pub mod templates;
pub mod pace;
mod agenda;
pub mod sender;
pub mod course;
pub mod seal;
pub mod player;
