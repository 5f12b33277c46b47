//! Traffic generation: schedules, frame contents, and transmission on time.
//!
//! The load is open loop: frames are sent on schedule, independent of the received ones.

/// Exact schedules.
pub mod schedule;
/// Poisson processes with random access.
pub mod poisson;
/// Linear rate ramps.
pub mod ramp;
/// Varying fields of a frame.
pub mod patch;
/// Construction of frames from headers.
pub mod form;
/// Frame templates.
pub mod template;
/// Frame templates of streams with several sizes.
pub mod templates;
/// Statistics of schedule deviations.
pub mod pace;
/// Queue of streams by due time.
mod agenda;
/// Transmission on time, with counts of unsent frames.
pub mod sender;
/// Schedule of a replay.
pub mod course;
/// Marking of replayed frames with a signature.
pub mod seal;
/// Transmission of a replay.
pub mod player;
