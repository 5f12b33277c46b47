//! The ring of fixed slots (TPACKET_V2): every frame is available as soon as the kernel has written
//! it.
//!
//! Slot sizes are powers of two, so slots are contiguous across the kernel's blocks. `next` is the
//! next slot to read; the kernel fills slots in the same order.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use os::sys;

use super::ring::{Fields, Mapping, Raw, VIRTIO_BYTES, frame};

/// Bytes of a block that the kernel allocates in one piece.
const BLOCK_BYTES: usize = 64 << 10;

/// Offset of a frame's link-layer address in its slot.
const ADDRESS: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// Maximum number of bytes before the frame in its slot: headers, virtio header and alignment.
const BEFORE_FRAME: usize = libc::TPACKET2_HDRLEN + 16 + libc::TPACKET_ALIGNMENT + VIRTIO_BYTES;

/// The ring, and the current position in it.
pub struct FrameRing {
    mapping: Mapping,
    slot_bytes: usize,
    slots: usize,
    next: usize,
}

impl FrameRing {
    /// Sets up a ring of about `ring_bytes` on the socket, for frames of up to `frame_bytes`.
    pub fn new(socket: &OwnedFd, ring_bytes: usize, frame_bytes: usize) -> io::Result<Self> {
        let slot_bytes = (BEFORE_FRAME + frame_bytes).next_power_of_two();
        let block_bytes = BLOCK_BYTES.max(slot_bytes);
        let blocks = (ring_bytes / block_bytes).max(1);
        let slots = blocks * (block_bytes / slot_bytes);
        let request = libc::tpacket_req {
            tp_block_size: block_bytes as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        let descriptor = socket.as_raw_fd();
        sys::set_option(descriptor, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let mapping = Mapping::new(socket, blocks * block_bytes)?;
        Ok(FrameRing { mapping, slot_bytes, slots, next: 0 })
    }

    /// Like [`super::ring::Ring::take`].
    #[inline]
    pub fn take(&mut self, limit: usize, mut use_frame: impl FnMut(Option<Raw<'_>>) -> bool) {
        for _ in 0..limit {
            let offset = self.next * self.slot_bytes;
            let status = self.mapping.status(offset).load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                return;
            }
            let slot = self.mapping.at(offset, self.slot_bytes);
            // SAFETY: the slot is inside the mapping and aligned, and starts with this header. It
            // belongs to this process until its status is set to the kernel's below.
            let goes_on = unsafe {
                let header = &*slot.cast::<libc::tpacket2_hdr>();
                use_frame(frame(slot, self.slot_bytes, ADDRESS, &fields(header, status)))
            };
            self.mapping.status(offset).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = if self.next + 1 == self.slots { 0 } else { self.next + 1 };
            if !goes_on {
                return;
            }
        }
    }
}

fn fields(header: &libc::tpacket2_hdr, status: u32) -> Fields {
    Fields {
        status,
        length: header.tp_len,
        length_here: header.tp_snaplen,
        mac: header.tp_mac,
        seconds: header.tp_sec,
        nanoseconds: header.tp_nsec,
        tci: header.tp_vlan_tci,
        tpid: header.tp_vlan_tpid,
    }
}
