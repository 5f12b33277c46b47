//! A run as those see it who watch it while it measures: events, what they come to, and a file by which other processes follow.
//!
//! Invariant: whoever watches holds nothing back (docs/decisions/0035-who-watches-holds-nothing-back.md). The thread that measures puts events
//! into queues with a limit and never waits; what does not fit is counted and lost.

/// What happens in a run.
pub mod event;
/// What all events so far come to.
pub mod picture;
/// Rates, from what the instrument shows of a trial.
pub mod sampler;
/// The file in the run's folder, as the run writes it.
pub mod teller;
/// The file, as others read it.
pub mod follow;
