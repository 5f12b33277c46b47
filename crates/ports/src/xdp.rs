//! A port that is a Linux network interface, by way of AF_XDP sockets.
//!
//! A small program at the interface hands frames to a socket per receive queue, before the kernel's
//! network stack sees them; from and into memory that is shared with the kernel they go by rings
//! (Linux `Documentation/networking/af_xdp.rst`). Where driver and kernel can, in the driver itself
//! and without a copy; else with one copy; else behind the driver: [`port::XdpPort::path`] says
//! which it became. The kernel is trusted as for any system call, but no index or address from a
//! ring is used before it is checked, so that no error there reaches memory outside.

mod filter;
/// A port that has the kernel make its frames.
pub mod live;
mod partial;
/// The port.
pub mod port;
mod program;
mod queue;
mod ring;
mod socket;
/// What a port is to be.
pub mod spec;
mod umem;
