//! A forwarder as a running process: what it is told, how it moves frames, who controls it.
//!
//! Modules are listed in the order in which a frame meets them, then a message. Sockets and
//! clocks are reached through `ports` only, so that the same switch runs in a process, in a
//! thread over memory ports, and in a simulation with virtual time.

/// What a process is told before it starts.
pub mod config;
/// The forward loop: inhale, decide, exhale.
pub mod forward;
/// The control socket: one line of JSON asks, one line of JSON answers.
pub mod control;
