//! `planimeter switch`, `bridge` and `router`: our forwarding elements as processes.
//!
//! The switch crate does the work; here are only the flags, and what goes wrong in words.

