//! Losses of packet sockets: the kernel's only counter of frames that a program was too slow to
//! receive.
//!
//! A socket with a receive ring (`PACKET_RX_RING`) has no counter here: the kernel reports a ring's
//! losses only to its owner, by `PACKET_STATISTICS`. So a planimeter target reports its own rings,
//! and Open vSwitch, which has no rings, is read here.
//!
//! Source: `sock_diag(7)`, the kernel's `packet_diag.h`, `SK_MEMINFO_DROPS` in `sock_diag.h`.
//!
//! Invariant: reading does not reset the counters (unlike `PACKET_STATISTICS`), so other processes
//! may read them.

use crate::netlink::{self, Message, diagnosis};
use crate::{LabError, Namespace};

const WHAT: &str = "list the packet sockets";
const SHOW_INFO_AND_MEMORY: u32 = 0x1 | 0x10;
const ATTRIBUTE_INFO: u16 = 0;
const ATTRIBUTE_MEMORY: u16 = 6;
/// Index of the drop counter among the 32-bit words of the memory attribute.
const MEMORY_DROPS: usize = 8;

/// A packet socket of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketSocket {
    /// Identifies the socket while it is open.
    pub inode: u32,
    /// Index of the interface that the socket is bound to; 0 for all.
    pub interface: u32,
    /// Frames lost on a full queue, modulo 2^32; 0 if the socket has a ring.
    pub dropped: u32,
}

/// Returns the packet sockets of a namespace.
pub fn packet_sockets(namespace: &Namespace) -> Result<Vec<PacketSocket>, LabError> {
    diagnosis::list(&diagnosis::socket(namespace)?, WHAT, &request(), parse)
}

/// `struct packet_diag_req`.
fn request() -> Vec<u8> {
    let mut bytes = vec![libc::AF_PACKET as u8, 0, 0, 0];
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(SHOW_INFO_AND_MEMORY.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes
}

/// `struct packet_diag_msg` of 16 bytes (the inode at 4), then attributes.
fn parse(message: &Message<'_>) -> Option<PacketSocket> {
    let inode = word(message.body, 1)?;
    let mut socket = PacketSocket { inode, interface: 0, dropped: 0 };
    for (kind, value) in netlink::attributes(message.body.get(16..)?) {
        match kind {
            ATTRIBUTE_INFO => socket.interface = word(value, 0)?,
            ATTRIBUTE_MEMORY => socket.dropped = word(value, MEMORY_DROPS)?,
            _ => {}
        }
    }
    Some(socket)
}

fn word(bytes: &[u8], index: usize) -> Option<u32> {
    let bytes = bytes.get(index * 4..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}
