//! Searches for a load. Each proposes the next trial and receives its result.

pub mod measured;
pub mod bracket;
pub mod interference;
pub mod binary;
pub mod mlr;
