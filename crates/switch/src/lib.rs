//! A forwarding device as a running process: configuration, data plane and control.
//!
//! Modules are listed in the order in which a process uses them: configuration, frame path, control
//! channels, and the node that combines them. Sockets and clocks are accessed only through `ports`.
//! The same switch therefore runs in a process, in a thread over memory ports, and in a simulation
//! with virtual time.

/// Configuration of a process.
pub mod config;
/// Emulation of hardware models.
pub mod behaviour;
/// Data planes: OpenFlow switch, bridge, router and others.
pub mod plane;
/// The forwarding loop: receive, process and transmit batches of frames.
pub mod forward;
/// Time budget of the control work in one turn.
pub mod budget;
/// OpenFlow agent of a switch.
pub mod agent;
/// ForCES agent of a forwarding element.
pub mod forces;
/// Conversion between OpenFlow values and values of the forwarding core.
pub mod lower;
/// Control socket: JSON requests and replies, one per line.
pub mod control;
/// Events that a running switch reports to the program that runs it.
pub mod event;
/// Reports of frames that ports lost.
mod losses;
/// A complete switch, bridge, router or ProGFE element.
pub mod node;
/// Protocol agents of a ProGFE element, and its events.
pub mod services;
/// Compilation of programs in a separate thread.
mod workshop;
/// A node as a process.
pub mod process;
/// Busy-polling while a controller is active.
mod talk;
/// Forwarding in separate threads.
pub mod apart;
