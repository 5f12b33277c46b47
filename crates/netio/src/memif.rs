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

mod attach;
mod reconnect;
pub mod control;
mod pending_peers;
pub mod doorbell;
pub mod fault;
pub mod handshake;
pub mod layout;
mod control_socket;
pub mod port;
pub mod protocol;
pub mod queue;
pub mod queues;
pub mod receive;
pub mod region;
pub mod ring;
pub mod socket;
pub mod spec;
pub mod transmit;

#[cfg(test)]
mod tests;
