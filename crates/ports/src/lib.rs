//! Every way bytes enter or leave the process; with `lab`, the only system calls of planimeter.
//!
//! Data ports carry frames ([`port::Port`]); control channels carry byte streams
//! ([`channel::Channel`]). What a port adds to another (a trace, a fault, a delay, a rate) is a
//! wrapper that is a port itself. The clock lives here too, because asking it is input.

/// What every data port is.
pub mod port;
/// What a port's link is.
pub mod link;
/// The monotonic clock, waiting for it, and waiting for descriptors.
pub mod clock;
/// Time that a hypervisor took away.
pub mod steal;
/// A port that is a piece of shared memory.
pub mod memory;
/// A port that is a Linux network interface.
pub mod afpacket;
/// A port that is a Linux network interface, past the network stack.
pub mod xdp;
/// Programs in the kernel, where frames arrive.
pub mod bpf;
/// VLAN tags put on and taken off in the kernel.
pub mod tagging;
/// A port that is a virtual interface of this host.
pub mod tap;
/// A port to another process by shared memory.
pub mod memif;
/// A port to a virtual machine, or whoever plays one, by shared memory.
pub mod vhost;
/// A port that is a capture file in and another one out.
pub mod pcap;
/// A port that plays frames from memory.
pub mod replay;
/// Ports around a port.
pub mod wrap;
/// A port from its specification.
pub mod open;
/// Capture files on their way in and out.
pub mod capture;
/// Byte streams that control messages travel on.
pub mod channel;
/// Datagrams to one other end and back.
pub mod datagram;
/// Which cores a thread may run on.
pub mod core;
/// How long a core is taken away from a thread.
pub mod hiccup;
/// Offering a core around.
pub mod courtesy;
/// Asking the system for huge pages.
pub mod pages;
mod guard;
mod home;
mod interface;
mod sys;
