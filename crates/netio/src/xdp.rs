//! A port on a Linux network interface, by AF_XDP sockets.
//!
//! An XDP program at the interface redirects frames to a socket per receive queue, before the
//! kernel's network stack. Frames pass through rings and memory shared with the kernel (Linux
//! `Documentation/networking/af_xdp.rst`).
//!
//! The port uses the first available path: native mode without a copy, native mode with one copy,
//! or generic mode. [`port::XdpPort::path`] returns the path in use. The kernel is trusted as for
//! any system call. Still, every index or address from a ring is checked before use, so that no
//! error in a ring leads to memory outside.

mod driver_features;
mod filter;
pub mod live;
mod partial;
pub mod port;
mod program;
mod queue;
mod ring;
mod socket;
pub mod spec;
mod umem;

pub use program::{FastPath, FastPathLoader, LoadedFastPath};
