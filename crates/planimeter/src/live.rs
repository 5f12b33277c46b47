//! Live view of a run: events, the state they add up to, and a file by which other processes follow the run.
//!
//! Invariant: watchers never delay a measurement (docs/decisions/0035-who-watches-holds-nothing-back.md). The
//! measuring thread puts events into bounded queues and never waits; events beyond the limit are counted and lost.

pub mod event;
pub mod picture;
pub mod sampler;
pub mod teller;
pub mod follow;
