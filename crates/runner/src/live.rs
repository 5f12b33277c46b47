//! Live view of a run: events, the state they add up to, and a file that other processes read.
//!
//! Invariant: watchers never delay a measurement
//! (docs/decisions/0035-live-views-never-delay-a-measurement.md). The measuring thread puts events into
//! bounded queues and never waits; events beyond the limit are counted and lost.

pub mod event;
pub mod state;
pub mod example;
pub mod sampler;
pub mod writer;
pub mod follow;
