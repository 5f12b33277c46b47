//! Sending: when each frame is due, what it looks like, and getting it out on time.
//!
//! The load is open loop: frames leave on the schedule, whatever comes back.

/// When each frame is due, exactly.
pub mod schedule;
/// Random moments of which any can be found.
pub mod poisson;
/// Moments of a rate that becomes another.
pub mod ramp;
/// What varies from frame to frame.
pub mod patch;
/// Frames built from headers.
pub mod form;
/// What each frame looks like.
pub mod template;
/// What the frames of a stream look like that has several sizes.
pub mod templates;
/// How well moments were kept.
pub mod pace;
/// Which stream sends next.
mod agenda;
/// Getting frames out on time, and an honest account where that fails.
pub mod sender;
/// When each frame of a replay is due.
pub mod course;
/// A signature in a frame of somebody else's.
pub mod seal;
/// Sending a replay.
pub mod player;
