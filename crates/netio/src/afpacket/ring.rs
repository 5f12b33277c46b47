//! The common parts of both kinds of receive ring, in memory that the kernel fills.
//!
//! A status word gives the owner of a slot or block: zero is the kernel, [`libc::TP_STATUS_USER`]
//! is this process. The memory that a status word controls is accessed only while this process owns
//! it.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use packet::segment::Protocol;

use super::ring_blocks::BlockRing;
use super::ring_frames::FrameRing;

/// A received frame as the kernel delivers it.
pub struct Raw<'a> {
    /// The bytes without the removed tag; fewer than `length` if the frame was truncated.
    pub bytes: &'a [u8],
    /// Original length of the frame in bytes.
    pub length: usize,
    /// Timestamp in nanoseconds since 1970.
    pub realtime_ns: u64,
    /// The removed tag: protocol identifier and control information.
    pub tag: Option<(u16, u16)>,
    /// Position of a checksum to complete: the start of the checksummed bytes, and the offset of
    /// the checksum from there. Both are counted without the tag.
    pub checksum: Option<(usize, usize)>,
    /// Whether the frame was sent through the interface, not received.
    pub outgoing: bool,
    /// How to segment the frame, if the kernel merged it from several.
    pub merged: Option<Merged>,
    /// Whether the whole frame is in the socket's receive queue, because it did not fit here.
    pub is_queued: bool,
}

/// Description of a merged frame in its virtio header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged {
    /// The protocol to segment; none if unknown.
    pub protocol: Option<Protocol>,
    /// Payload bytes of a segment.
    pub size: usize,
}

impl Raw<'_> {
    /// Returns whether the frame is truncated.
    pub fn is_cut(&self) -> bool {
        self.bytes.len() < self.length
    }
}

/// The header fields that both kinds of ring have before a frame.
pub struct Fields {
    pub status: u32,
    pub length: u32,
    pub length_here: u32,
    pub mac: u16,
    pub seconds: u32,
    pub nanoseconds: u32,
    pub tci: u16,
    pub tpid: u16,
}

/// Bytes of the virtio header before the frame, which describes pending offloads.
pub const VIRTIO_BYTES: usize = 10;

/// Virtio header flag: a checksum must be completed.
const NEEDS_CHECKSUM: u8 = 1;

/// Virtio header types of merged frames (VIRTIO 1.2, section 5.1.6).
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// Returns the frame that `fields` describes, in the slot at `slot`, whose link-layer address is at
/// offset `address`.
///
/// # Safety
/// The `slot_bytes` bytes from `slot` must be readable, and unchanged as long as the frame lives.
pub unsafe fn frame<'a>(
    slot: *const u8,
    slot_bytes: usize,
    address: usize,
    fields: &Fields,
) -> Option<Raw<'a>> {
    let (start, here) = (usize::from(fields.mac), fields.length_here as usize);
    let inside = start >= VIRTIO_BYTES
        && start + here <= slot_bytes
        && address + size_of::<libc::sockaddr_ll>() <= slot_bytes;
    if !inside {
        return None;
    }
    // SAFETY: both ranges are inside the slot, as checked above.
    let (bytes, virtio, kind) = unsafe {
        (
            std::slice::from_raw_parts(slot.add(start), here),
            std::slice::from_raw_parts(slot.add(start - VIRTIO_BYTES), VIRTIO_BYTES),
            (*slot.add(address).cast::<libc::sockaddr_ll>()).sll_pkttype,
        )
    };
    let half = |at: usize| usize::from(u16::from_ne_bytes([virtio[at], virtio[at + 1]]));
    Some(Raw {
        bytes,
        length: fields.length as usize,
        realtime_ns: u64::from(fields.seconds) * 1_000_000_000 + u64::from(fields.nanoseconds),
        tag: tag(fields),
        checksum: (virtio[0] & NEEDS_CHECKSUM != 0).then(|| (half(6), half(8))),
        outgoing: kind == libc::PACKET_OUTGOING,
        merged: (virtio[1] != 0).then(|| merged(virtio[1], half(4))),
        is_queued: fields.status & libc::TP_STATUS_COPY != 0,
    })
}

fn merged(kind: u8, size: usize) -> Merged {
    let protocol = match kind & !GSO_ECN {
        GSO_TCPV4 | GSO_TCPV6 => Some(Protocol::Tcp),
        GSO_UDP => Some(Protocol::Udp),
        _ => None,
    };
    Merged { protocol, size }
}

/// Returns the tag that the kernel removed from the frame.
///
/// Linux before 3.14 does not report the protocol identifier; it then is that of IEEE 802.1Q.
fn tag(fields: &Fields) -> Option<(u16, u16)> {
    let has = |flag| fields.status & flag != 0;
    let tpid =
        if has(libc::TP_STATUS_VLAN_TPID_VALID) { fields.tpid } else { libc::ETH_P_8021Q as u16 };
    has(libc::TP_STATUS_VLAN_VALID).then_some((tpid, fields.tci))
}

/// A ring of either kind.
pub enum Ring {
    /// Frame by frame.
    Frames(FrameRing),
    /// Block by block.
    Blocks(BlockRing),
}

impl Ring {
    /// Passes at most `limit` frames to `use_frame`, oldest first, and returns their slots to the
    /// kernel.
    ///
    /// Passes none for a slot whose header points outside it. Stops after a frame for which
    /// `use_frame` returns false.
    #[inline]
    pub fn take(&mut self, limit: usize, use_frame: impl FnMut(Option<Raw<'_>>) -> bool) {
        match self {
            Ring::Frames(ring) => ring.take(limit, use_frame),
            Ring::Blocks(ring) => ring.take(limit, use_frame),
        }
    }
}

/// Memory shared with the kernel, unmapped when dropped.
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to the process, not to a thread, and is accessed only through `&mut`.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `bytes` bytes of a socket's rings.
    pub fn new(socket: &OwnedFd, bytes: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("a mapping never starts at address zero");
        Ok(Mapping { start, bytes })
    }

    /// Returns the address at `offset` in the mapping; the `length` bytes from there are inside it.
    #[inline]
    pub fn at(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(offset + length <= self.bytes);
        // SAFETY: the offset is inside the mapping, as checked above.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Returns the status word at `offset`.
    #[inline]
    pub fn status(&self, offset: usize) -> &AtomicU32 {
        let word = self.at(offset, size_of::<u32>()).cast::<u32>();
        assert!(word.is_aligned());
        // SAFETY: the word is inside the mapping, aligned, and lives as long as `self`. All access
        // to status words is atomic, in the kernel too.
        unsafe { AtomicU32::from_ptr(word) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is the mapped one, and no pointer into it remains.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
