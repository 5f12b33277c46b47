//! Input and output of the process: data ports, control channels and clocks.
//!
//! Data ports carry frames ([`port::Port`]). Control channels carry byte streams
//! ([`channel::Channel`]). A wrapper (a trace, a fault, a delay, a rate) adds a function to a port
//! and is itself a port. The clock is part of this crate because reading it is input. Only this
//! crate and `lab` make system calls.

/// The interface of all data ports.
pub mod port;
/// The state and abilities of a port's link.
pub mod link;
/// The monotonic clock, and waiting for a time or for descriptors.
pub mod clock;
/// CPU time stolen by the hypervisor.
pub mod steal;
/// A port in shared memory of one process.
pub mod memory;
/// A port on a Linux network interface, by packet sockets (AF_PACKET).
pub mod afpacket;
/// A port on a Linux network interface that bypasses the network stack (AF_XDP).
pub mod xdp;
/// eBPF programs and maps.
pub mod bpf;
/// VLAN tags pushed and popped in the kernel.
pub mod tagging;
/// A port on a TAP interface of this host.
pub mod tap;
/// A shared-memory port to another process (memif).
pub mod memif;
/// A shared-memory port to a virtual machine or another vhost-user front end.
pub mod vhost;
/// A port that reads one capture file and writes another.
pub mod pcap;
/// A port that replays frames from memory.
pub mod replay;
/// Wrappers: ports around a port.
pub mod wrap;
/// Opens a port from its specification.
pub mod open;
/// Reads and writes capture files.
pub mod capture;
/// Byte streams that carry control messages.
pub mod channel;
/// Datagrams to and from one peer.
pub mod datagram;
/// CPU affinity of threads.
pub mod core;
/// Measures the time that a core is taken away from a thread.
pub mod hiccup;
/// Yields a core while there is nothing to do.
pub mod courtesy;
/// Requests huge pages from the kernel.
pub mod pages;
mod guard;
mod home;
mod interface;
mod sys;
