//! Live view of a run: events, the state they add up to, and a file that other processes read.
//!
//! Invariant: watchers never delay a measurement
//! (docs/decisions/0035-live-views-never-delay-a-measurement.md). The measuring thread puts events into
//! bounded queues and never waits; events beyond the limit are counted and lost.

/// Events of a run.
pub mod event;
/// State of a run, from all its events so far.
pub mod picture;
/// Port rates, from the tester's live counters.
pub mod sampler;
/// Writer of the events file in the run's folder.
pub mod teller;
/// Reader of the events file.
pub mod follow;
