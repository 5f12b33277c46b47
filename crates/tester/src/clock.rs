//! Quality of the tester's clock, compared to other clocks of this machine and an external
//! reference.
//!
//! All timestamps of control and data plane are on one timeline, the kernel's monotonic clock.
//! Delays between two ports of one tester need no other clock. Delays between two testers do.
//! Nothing here reads a clock: readings are arguments.

pub mod drift;
pub mod servo;
