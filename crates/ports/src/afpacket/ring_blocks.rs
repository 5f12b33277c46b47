//! The ring of blocks (TPACKET_V3): frames lie packed in a block, which is ours as a whole.
//!
//! The kernel hands a block over when the next frame does not fit any more, or when its time is
//! up. A block in the course of being read is remembered, so that a caller with little room gets
//! the rest later; its room goes back to the kernel with its last frame.

#![allow(unsafe_code)]

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use super::ring::{Fields, Mapping, Raw, frame};
use crate::sys;

/// Bytes of a block: small enough that a loaded link fills one within a millisecond.
const BLOCK_BYTES: usize = 64 << 10;

/// After how many milliseconds a block that is not full is handed over: the least there is.
const TIMEOUT_MS: u32 = 1;

/// Where the link-layer address of a frame stands, from its header on.
const ADDRESS: usize = size_of::<libc::tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// Where the status word stands in a block.
const STATUS: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, block_status);

/// The ring, and where we are in it.
pub struct BlockRing {
    mapping: Mapping,
    block_bytes: usize,
    blocks: usize,
    next: usize,
    /// Frames of block `next` that are not read yet, if reading it has begun, and where the first
    /// of them starts.
    left: Option<(u32, usize)>,
}

impl BlockRing {
    /// Gives the socket a ring of about `ring_bytes` for frames of up to `frame_bytes`.
    pub fn new(socket: &OwnedFd, ring_bytes: usize, frame_bytes: usize) -> io::Result<Self> {
        let block_bytes = BLOCK_BYTES.max((2 * frame_bytes).next_power_of_two());
        let blocks = (ring_bytes / block_bytes).max(2);
        // The slot size only has to be acceptable: frames take the room that they need.
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

    /// As [`super::ring::Ring::take`]; finished blocks are given back.
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

    /// The number of frames in the next block and where its first one starts, if it is ours.
    fn begin(&self) -> Option<(u32, usize)> {
        let block = self.next * self.block_bytes;
        let status = self.mapping.status(block + STATUS).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let start = self.mapping.at(block, self.block_bytes);
        // SAFETY: the block is inside the mapping and aligned, starts with this descriptor, and is
        // ours until `finish`.
        let header = unsafe { &(*start.cast::<libc::tpacket_block_desc>()).hdr.bh1 };
        Some((header.num_pkts, block + header.offset_to_first_pkt as usize))
    }

    /// Shows the frame whose header starts at `offset`; returns how far the next one is, and
    /// whether to go on.
    #[inline]
    fn show(
        &self,
        offset: usize,
        use_frame: &mut impl FnMut(Option<Raw<'_>>) -> bool,
    ) -> (usize, bool) {
        let end = (self.next + 1) * self.block_bytes;
        let slot = self.mapping.at(offset, size_of::<libc::tpacket3_hdr>());
        // SAFETY: the kernel says that a header starts here, aligned; it and the rest of the block
        // are inside the mapping and ours until `finish`.
        unsafe {
            let header = &*slot.cast::<libc::tpacket3_hdr>();
            let raw = frame(slot, end - offset, ADDRESS, &fields(header));
            (header.tp_next_offset as usize, use_frame(raw))
        }
    }

    /// Gives the block back and goes on to the next.
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
