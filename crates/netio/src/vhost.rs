//! Ports to virtual machines and other vhost-user front ends: the device side of virtio network
//! rings in the driver's memory. QEMU, Cloud Hypervisor and DPDK's virtio-user are such front ends.
//!
//! - The front end passes its memory and rings over a Unix socket. rust-vmm's `vhost` crate reads
//!   the messages and replies to them (`device`).
//! - This module implements the ring ends: in batches, and without a system call unless the driver
//!   sleeps.
//! - The peer is not trusted, as in memif, and this module shares much code with memif. Data
//!   written by the peer is copied once and checked before use. A [`Fault`] is counted and ends the
//!   connection. All accesses stay inside the peer's regions.
//! - The regions need not be sealed; the port survives a peer that truncates them
//!   (`sigbus_guard`).
//!
//! Sources: "Vhost-user Protocol" (QEMU documentation); "Virtual I/O Device (VIRTIO)" 1.2, 2.7
//! (split virtqueues) and 5.1 (network device). The device does not offer offloads, packed rings,
//! indirect descriptors, event indices or migration.
//!
//! [`Fault`]: crate::memif::fault::Fault

mod control;
mod device;
mod connection;
mod memory;
pub mod port;
mod receive;
mod ring;
pub mod spec;
mod transmit;

#[cfg(test)]
mod tests;
