//! The block ring (TPACKET_V3): frames are packed in blocks, and a block has one owner as a whole.
//!
//! The kernel releases a block when the next frame does not fit, or on a timeout. The ring
//! remembers a partly read block, so that a caller with little room gets the rest later. The block
//! returns to the kernel after its last frame.

#![allow(unsafe_code)]

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use os::sys;

use super::ring::{Fields, Mapping, Raw, frame};

/// Bytes of a block: small enough that a loaded link fills one within a millisecond.
const BLOCK_BYTES: usize = 64 << 10;

/// Milliseconds after which the kernel releases a block that is not full: the minimum.
const TIMEOUT_MS: u32 = 1;

/// Offset of a frame's link-layer address from its header.
const ADDRESS: usize = size_of::<libc::tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// Offset of the status word in a block.
const STATUS: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, block_status);

/// The ring, and the current position in it.
pub struct BlockRing {
    mapping: Mapping,
    block_bytes: usize,
    blocks: usize,
    next: usize,
    /// Unread frames of block `next` if reading has begun, and the offset of the first of them.
    left: Option<(u32, usize)>,
}

impl BlockRing {
    /// Sets up a ring of about `ring_bytes` on the socket, for frames of up to `frame_bytes`.
    pub fn new(socket: &OwnedFd, ring_bytes: usize, frame_bytes: usize) -> io::Result<Self> {
        let block_bytes = BLOCK_BYTES.max((2 * frame_bytes).next_power_of_two());
        let blocks = (ring_bytes / block_bytes).max(2);
        // The slot size only has to be valid: frames take the space that they need.
        let slot_bytes = 2048;
        let request = libc::tpacket_req3 {
            tp_block_size: block_bytes as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: (blocks * (block_bytes / slot_bytes)) as u32,
            tp_retire_blk_tov: TIMEOUT_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        let descriptor = socket.as_raw_fd();
        sys::set_option(descriptor, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let mapping = Mapping::new(socket, blocks * block_bytes)?;
        Ok(BlockRing { mapping, block_bytes, blocks, next: 0, left: None })
    }

    /// Like [`super::ring::Ring::take`]; finished blocks return to the kernel.
    #[inline]
    pub fn take(&mut self, mut limit: usize, mut use_frame: impl FnMut(Option<Raw<'_>>) -> bool) {
        while limit > 0 {
            let Some((mut left, mut offset)) = self.left.or_else(|| self.begin()) else { return };
            while left > 0 && limit > 0 {
                let (bytes, goes_on) = self.show(offset, &mut use_frame);
                offset += bytes;
                left -= 1;
                limit = if goes_on { limit - 1 } else { 0 };
            }
            self.left = Some((left, offset));
            if left == 0 {
                self.finish();
            }
        }
    }

    /// Returns the number of frames in the next block and the offset of the first, if this process
    /// owns the block.
    fn begin(&self) -> Option<(u32, usize)> {
        let block = self.next * self.block_bytes;
        let status = self.mapping.status(block + STATUS).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let start = self.mapping.at(block, self.block_bytes);
        // SAFETY: the block is inside the mapping and aligned, starts with this descriptor, and
        // belongs to this process until `finish`.
        let header = unsafe { &(*start.cast::<libc::tpacket_block_desc>()).hdr.bh1 };
        Some((header.num_pkts, block + header.offset_to_first_pkt as usize))
    }

    /// Passes the frame whose header is at `offset`. Returns the distance to the next one, and
    /// whether to continue.
    #[inline]
    fn show(
        &self,
        offset: usize,
        use_frame: &mut impl FnMut(Option<Raw<'_>>) -> bool,
    ) -> (usize, bool) {
        let end = (self.next + 1) * self.block_bytes;
        let slot = self.mapping.at(offset, size_of::<libc::tpacket3_hdr>());
        // SAFETY: the kernel guarantees an aligned header at this offset. It and the rest of the
        // block are inside the mapping and belong to this process until `finish`.
        unsafe {
            let header = &*slot.cast::<libc::tpacket3_hdr>();
            let raw = frame(slot, end - offset, ADDRESS, &fields(header));
            (header.tp_next_offset as usize, use_frame(raw))
        }
    }

    /// Returns the block to the kernel and advances to the next.
    fn finish(&mut self) {
        let block = self.next * self.block_bytes;
        self.mapping.status(block + STATUS).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = if self.next + 1 == self.blocks { 0 } else { self.next + 1 };
        self.left = None;
    }
}

fn fields(header: &libc::tpacket3_hdr) -> Fields {
    Fields {
        status: header.tp_status,
        length: header.tp_len,
        length_here: header.tp_snaplen,
        mac: header.tp_mac,
        seconds: header.tp_sec,
        nanoseconds: header.tp_nsec,
        tci: header.hv1.tp_vlan_tci as u16,
        tpid: header.hv1.tp_vlan_tpid,
    }
}
