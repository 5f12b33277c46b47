//! Input and output of the process: data ports, control channels and clocks.
//!
//! Data ports carry frames ([`port::Port`]). Control channels carry byte streams
//! ([`channel::Channel`]). A wrapper (a trace, a fault, a delay, a rate) adds a function to a port
//! and is itself a port. The clock is part of this crate because reading it is input. Only this
//! crate and `testbed` make system calls.

pub mod port;
pub mod link;
pub mod clock;
pub mod steal;
pub mod memory;
pub mod afpacket;
pub mod xdp;
pub mod bpf;
pub mod tagging;
pub mod tap;
pub mod memif;
pub mod vhost;
pub mod pcap;
pub mod replay;
pub mod wrap;
pub mod open;
pub mod capture;
pub mod channel;
pub mod datagram;
pub mod core;
pub mod os_jitter;
pub mod yield_poll;
pub mod pages;
mod sigbus_guard;
mod netns;
mod interface;
mod sys;
