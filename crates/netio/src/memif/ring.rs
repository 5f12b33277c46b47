//! A ring in shared memory: two indices and an array of descriptors, read once and not trusted.
//!
//! - Indices count all slots ever passed on and wrap at 65,536; the slot is the index modulo the
//!   ring's size.
//! - In a ring to the server, the client fills slots and advances the head. The server empties them
//!   and advances the tail.
//! - In a ring to the client, the client supplies empty buffers and advances the head. The server
//!   fills them and advances the tail.
//! - So each end advances one index and the peer the other. In both kinds of ring the client may be
//!   ahead by the size of the ring (`lead`).
//! - An end keeps its own record of its writes and never reads them back from memory that the peer
//!   can change.

#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::fault::Fault;
use super::layout::{
    COOKIE, DESCRIPTOR_BYTES, FLAG_AWAKE, FLAGS_AT, HEAD_AT, HEADER_BYTES, RING_ALIGNMENT,
    SLOTS_LOG2_MAX, TAIL_AT, ring_bytes,
};
use super::protocol::Direction;
use super::region::Regions;

/// Descriptor flag: the frame continues in the next descriptor.
pub const FLAG_NEXT: u16 = 1;

/// Maximum number of buffers of a frame.
pub const CHAIN_MAX: usize = 16;

/// The end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The end that allocated the memory.
    Client,
    /// The end that attached to the memory.
    Server,
}

/// A copy of a descriptor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// [`FLAG_NEXT`] or zero.
    pub flags: u16,
    /// Region of the buffer.
    pub region: u16,
    /// Bytes of the frame, or of an empty buffer.
    pub length: u32,
    /// Offset of the buffer in the region.
    pub offset: u32,
    /// Unused.
    pub metadata: u32,
}

impl Descriptor {
    #[inline(always)]
    fn from_words(low: u64, high: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = low.to_ne_bytes();
        let [i, j, k, l, m, n, o, p] = high.to_ne_bytes();
        Descriptor {
            flags: u16::from_ne_bytes([a, b]),
            region: u16::from_ne_bytes([c, d]),
            length: u32::from_ne_bytes([e, f, g, h]),
            offset: u32::from_ne_bytes([i, j, k, l]),
            metadata: u32::from_ne_bytes([m, n, o, p]),
        }
    }

    #[inline(always)]
    fn to_words(self) -> (u64, u64) {
        let ([a, b], [c, d]) = (self.flags.to_ne_bytes(), self.region.to_ne_bytes());
        let [e, f, g, h] = self.length.to_ne_bytes();
        let [i, j, k, l] = self.offset.to_ne_bytes();
        let [m, n, o, p] = self.metadata.to_ne_bytes();
        (u64::from_ne_bytes([a, b, c, d, e, f, g, h]), u64::from_ne_bytes([i, j, k, l, m, n, o, p]))
    }
}

/// One end of a ring.
pub struct Ring {
    start: NonNull<u8>,
    slots: u16,
    side: Side,
    direction: Direction,
    regions: Regions,
}

// SAFETY: the pointer is into `regions`, which are held; all access is atomic.
unsafe impl Send for Ring {}

impl Ring {
    /// Creates the end of `side` of a ring at `offset` of a region, with `1 << slots_log2` slots.
    pub fn new(
        regions: Regions,
        (region, offset): (u16, u32),
        slots_log2: u8,
        (side, direction): (Side, Direction),
    ) -> Result<Ring, Fault> {
        if slots_log2 > SLOTS_LOG2_MAX {
            return Err(Fault::RingSize);
        }
        let memory = regions.get(usize::from(region)).ok_or(Fault::RingPlace)?;
        let start = memory
            .at(offset as usize, ring_bytes(slots_log2))
            .and_then(NonNull::new)
            .filter(|start| (start.as_ptr() as usize).is_multiple_of(RING_ALIGNMENT))
            .ok_or(Fault::RingPlace)?;
        Ok(Ring { start, slots: 1 << slots_log2, side, direction, regions })
    }

    /// Writes an empty ring's header; the client does this first.
    pub fn initialise(&self) {
        self.reset();
        self.cookie().store(COOKIE, Ordering::Relaxed);
        self.set_awake(true);
    }

    /// Sets both indices to zero, which both ends may do before the connection is up.
    pub fn reset(&self) {
        self.half(HEAD_AT).store(0, Ordering::Relaxed);
        self.half(TAIL_AT).store(0, Ordering::Relaxed);
    }

    /// Returns whether the header is that of a ring.
    pub fn has_cookie(&self) -> bool {
        self.cookie().load(Ordering::Relaxed) == COOKIE
    }

    /// Returns the number of slots.
    #[inline(always)]
    pub fn slots(&self) -> u16 {
        self.slots
    }

    /// Returns the regions that contain the ring and its buffers.
    #[inline(always)]
    pub fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Returns which end this is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Returns by how much the client's index may be ahead of the server's: all buffers of the
    /// ring.
    #[inline(always)]
    pub fn lead(&self) -> u16 {
        match self.side {
            Side::Client => self.slots,
            Side::Server => 0,
        }
    }

    /// Publishes this end's index and all earlier writes.
    #[inline(always)]
    pub fn publish(&self, index: u16) {
        self.index(self.side == Side::Client).store(index, Ordering::Release);
    }

    /// Returns the peer's index; its earlier writes are visible afterwards.
    #[inline(always)]
    pub fn peers_index(&self) -> u16 {
        self.index(self.side == Side::Server).load(Ordering::Acquire)
    }

    /// In both kinds of ring the client advances the head, the server the tail.
    #[inline(always)]
    fn index(&self, of_client: bool) -> &AtomicU16 {
        self.half(if of_client { HEAD_AT } else { TAIL_AT })
    }

    /// Sets whether this receiver polls without signals.
    pub fn set_awake(&self, awake: bool) {
        self.half(FLAGS_AT).store(if awake { FLAG_AWAKE } else { 0 }, Ordering::Relaxed);
    }

    /// Returns whether the receiver needs no signals.
    #[inline(always)]
    pub fn is_awake(&self) -> bool {
        self.half(FLAGS_AT).load(Ordering::Relaxed) & FLAG_AWAKE != 0
    }

    /// Returns the ring's direction.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns a copy of the descriptor in the slot of `index`.
    #[inline(always)]
    pub fn descriptor(&self, index: u16) -> Descriptor {
        let [low, high] = self.words(index);
        Descriptor::from_words(low.load(Ordering::Relaxed), high.load(Ordering::Relaxed))
    }

    /// Overwrites the descriptor in the slot of `index`.
    #[inline(always)]
    pub fn set_descriptor(&self, index: u16, descriptor: Descriptor) {
        let [low, high] = self.words(index);
        let (first, second) = descriptor.to_words();
        low.store(first, Ordering::Relaxed);
        high.store(second, Ordering::Relaxed);
    }

    #[inline(always)]
    fn words(&self, index: u16) -> [&AtomicU64; 2] {
        let slot = usize::from(index & (self.slots - 1));
        // SAFETY: `new` checked that header and descriptors of all slots are inside the region and
        // aligned to 16. The region is mapped while `self` lives, and this process accesses these
        // words only atomically.
        unsafe {
            let at = self.start.as_ptr().add(HEADER_BYTES + slot * DESCRIPTOR_BYTES);
            [AtomicU64::from_ptr(at.cast()), AtomicU64::from_ptr(at.add(8).cast())]
        }
    }

    #[inline(always)]
    fn half(&self, at: usize) -> &AtomicU16 {
        debug_assert!(at + 2 <= HEADER_BYTES && at.is_multiple_of(2));
        // SAFETY: as in `words`; `at` is one of the constants above, inside the header and even.
        unsafe { AtomicU16::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    fn cookie(&self) -> &AtomicU32 {
        // SAFETY: as in `words`; the cookie is the header's first word.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().cast()) }
    }
}

/// Location of an end's buffers.
#[derive(Debug, Clone, Copy)]
pub enum Buffers {
    /// In our region 0, at equal distances; the peer's descriptors are not needed to find them.
    Ours {
        /// Offset of the first buffer.
        first: u32,
        /// Distance between buffers.
        stride: u32,
        /// Bytes of each buffer.
        capacity: u32,
    },
    /// Given by the peer's descriptors.
    Theirs,
}

impl Buffers {
    /// Returns the descriptor of our empty buffer in the slot of `index`; `None` if the buffers are
    /// the peer's.
    #[inline(always)]
    pub fn of_slot(&self, slots: u16, index: u16) -> Option<Descriptor> {
        match *self {
            Buffers::Ours { first, stride, capacity } => Some(Descriptor {
                length: capacity,
                offset: first + u32::from(index & (slots - 1)) * stride,
                ..Descriptor::default()
            }),
            Buffers::Theirs => None,
        }
    }
}
