//! A forwarder as a running process: what it is told, how it moves frames, who controls it.
//!
//! Modules are listed in the order in which a process meets them: its configuration, a frame's
//! way, a message's way, and what ties them together. Sockets and clocks are reached through
//! `ports` only, so that the same switch runs in a process, in a thread over memory ports, and in
//! a simulation with virtual time.

/// What a process is told before it starts.
pub mod config;
/// Behaving like a model of hardware.
pub mod behaviour;
/// What a process can forward by.
pub mod plane;
/// The forward loop: inhale, decide, exhale.
pub mod forward;
/// Time budget of the control work in one turn.
pub mod budget;
/// The switch's end of OpenFlow.
pub mod agent;
/// An element's end of ForCES.
pub mod forces;
/// OpenFlow values to values of the forwarding core, and back.
pub mod lower;
/// The control socket: one line of JSON asks, one line of JSON answers.
pub mod control;
/// What a running switch tells whoever runs it.
pub mod event;
/// Reports of frames that ports lost.
mod losses;
/// One whole switch, bridge or router.
pub mod node;
/// Agents of an element that is programmed by a graph, and its events.
pub mod services;
/// Programs made ready apart from the frames.
mod workshop;
/// A node in a process of its own.
pub mod process;
/// Staying awake while a controller speaks.
mod talk;
/// Frames in a thread of their own.
pub mod apart;
