//! A forwarding device as a running process: configuration, data plane and control.
//!
//! Modules are listed in the order in which a process uses them: configuration, frame path, control
//! channels, and the node that combines them. Ports, sockets and clocks are accessed only through
//! `netio`, `channel` and `os`.
//! The same switch therefore runs in a process, in a thread over memory ports, and in a simulation
//! with virtual time.

pub mod config;
pub mod hardware_model;
pub mod datapath;
pub mod forward;
pub mod fast_path;
pub mod budget;
pub mod agent;
pub mod forces;
pub mod translate;
pub mod control;
pub mod event;
mod losses;
pub mod node;
pub mod services;
mod program_compiler;
pub mod process;
mod busy_poll;
pub mod pmd;
