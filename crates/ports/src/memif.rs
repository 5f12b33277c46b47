//! Shared-memory ports to another process: memif 2.0, as implemented by VPP and DPDK's `net_memif`,
//! and so by Open vSwitch on DPDK.
//!
//! - A client allocates memory with rings and buffers and passes it to a server over a Unix socket.
//!   Then both sides read and write it, without a system call unless one of them sleeps.
//! - The peer is another process and is not trusted. Data written by the peer is copied before it
//!   is examined and checked before it is used. All access stays inside the shared regions. A
//!   [`fault::Fault`] is counted and ends the connection.
//! - Frames can be used in place: [`queue::Receiver::peek`] returns them, and
//!   [`queue::Transmitter::put`] copies one into another port's buffer, which is the only copy.
//!
//! Sources: the public header `memif.h` and the driver's guide (`doc/guides/nics/memif.rst`) of
//! DPDK.

/// Creates ring ends from a completed handshake.
mod attach;
/// Connects a client to its server.
mod caller;
/// The control part of a port.
pub mod control;
pub(crate) mod copy;
mod door;
/// Eventfds that wake sleeping receivers.
pub mod doorbell;
/// Protocol violations of a peer.
pub mod fault;
/// The handshake.
pub mod handshake;
/// Layout of shared memory.
pub mod layout;
mod line;
/// The port.
pub mod port;
/// Control messages.
pub mod protocol;
/// Queues whose rings come and go with the peer.
pub mod queue;
/// The queues of one thread.
pub mod queues;
/// The receiving end of a ring.
pub mod receive;
/// Shared memory.
pub mod region;
/// A ring in shared memory.
pub mod ring;
/// The sockets of control messages.
pub mod socket;
/// Port specification.
pub mod spec;
/// The sending end of a ring.
pub mod transmit;
/// Read access to frames in shared memory.
pub mod view;

#[cfg(test)]
mod tests;
