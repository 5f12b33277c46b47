//! Ports to another process by shared memory: memif 2.0, as spoken by VPP and DPDK's `net_memif`,
//! and so by Open vSwitch on DPDK.
//!
//! A client makes a piece of memory with rings and buffers and hands it to a server over a Unix
//! socket; from then on both sides read and write it, without a system call unless one of them
//! sleeps. The peer is another process, which may lie: whatever it writes is copied before it is
//! looked at and checked before it is used, all access stays inside the shared regions, and a
//! [`fault::Fault`] is counted and ends the connection. Frames can be used where they lie:
//! [`queue::Receiver::peek`] shows them and [`queue::Transmitter::put`] copies one into another
//! port's buffer, which is the only copy on its way.
//!
//! Sources: the public header `memif.h` and the driver's guide (`doc/guides/nics/memif.rst`) of
//! DPDK.

/// From an agreement to ends of rings.
mod attach;
/// A client's calls.
mod caller;
/// The part that talks to the peer.
pub mod control;
pub(crate) mod copy;
mod door;
/// How sleepers are woken.
pub mod doorbell;
/// What a peer can do wrong.
pub mod fault;
/// How two ends agree.
pub mod handshake;
/// Where things are in shared memory.
pub mod layout;
mod line;
/// The port.
pub mod port;
/// Control messages.
pub mod protocol;
/// Queues, which come and go with the peer.
pub mod queue;
/// Queues that one thread has.
pub mod queues;
/// The receiving end of a ring.
pub mod receive;
/// Shared memory.
pub mod region;
/// A ring in shared memory.
pub mod ring;
/// The sockets of control messages.
pub mod socket;
/// What a port is to be.
pub mod spec;
/// The sending end of a ring.
pub mod transmit;
/// Frames where they lie.
pub mod view;

#[cfg(test)]
mod tests;
