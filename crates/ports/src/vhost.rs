//! Ports to a virtual machine, or to whoever plays one, by vhost-user: the device's side of virtio
//! network rings that lie in the driver's memory. QEMU, Cloud Hypervisor and DPDK's virtio-user plug in.
//!
//! The front end hands its memory and rings over a Unix socket; rust-vmm's `vhost` reads and answers
//! the messages ([`device`]), and what they say becomes ends of rings, whose path is ours: batches, no
//! system call unless the driver sleeps. The peer may lie, as memif's may, and much is shared with
//! memif: what the peer wrote is copied once and checked before it is used, a [`Fault`] is counted and
//! ends the connection, and whatever is accessed is inside the regions that the peer gave. Those need
//! not be sealed, so that a peer that takes them away is survived ([`crate::guard`]).
//!
//! Sources: "Vhost-user Protocol" (QEMU documentation); "Virtual I/O Device (VIRTIO)" 1.2, 2.7 (split
//! virtqueues) and 5.1 (network device). No offload is offered, nor packed rings, indirect
//! descriptors, event indices or migration.
//!
//! [`Fault`]: crate::memif::fault::Fault

/// Meeting a front end.
mod control;
/// What a front end says of its device.
mod device;
/// Whole messages, or none.
mod line;
/// The driver's memory.
mod memory;
/// The port.
pub mod port;
/// The device's receiving end of a ring.
mod receive;
/// A split ring.
mod ring;
/// What a port is to be.
pub mod spec;
/// The device's sending end of a ring.
mod transmit;

#[cfg(test)]
mod tests;
