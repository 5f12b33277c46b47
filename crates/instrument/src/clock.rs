//! How well the tester's clock goes: beside others of this machine, and by one outside it.
//!
//! Everything is dated on one line, the kernel's monotonic clock, control and data alike. Delays
//! between two ports of one tester need no other clock; those between two testers do. Nothing here
//! reads a clock: readings are arguments.

/// How fast the clock goes, beside one that nobody steers.
pub mod drift;
/// The clock made to follow a reference.
pub mod servo;
