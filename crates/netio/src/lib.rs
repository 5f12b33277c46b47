//! Packet input and output: ports, captures, and wrappers of ports.
//!
//! A [`port::Port`] receives and transmits batches of frames. A wrapper (a trace, a fault, a delay,
//! a rate) adds a function to a port and is itself a port.

pub mod port;
pub mod link;
pub mod memory;
pub mod afpacket;
pub mod xdp;
pub mod tagging;
pub mod tap;
pub mod memif;
pub mod vhost;
pub mod pcap;
pub mod replay;
pub mod wrap;
pub mod open;
pub mod capture;
pub mod control_tap;
mod sigbus_guard;
mod netns;
mod interface;
