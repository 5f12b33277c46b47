//! A ring in shared memory: two indices and a row of descriptors, read once and with suspicion.
//!
//! Indices count slots ever passed on and wrap at 65,536; the slot is the index modulo the ring's
//! size. In a ring to the server the client fills slots and advances the head, the server empties
//! them and advances the tail. In a ring to the client the client supplies empty buffers and
//! advances the head, the server fills them and advances the tail. So seen from either end there is
//! an index that it advances and one that the peer does, and in both kinds of ring the client may
//! be ahead by the size of the ring (`lead`). An end has its own record of what it wrote and never
//! reads it back from memory that the peer can change.

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

/// In a descriptor's flags: the frame goes on in the next one.
pub const FLAG_NEXT: u16 = 1;

/// A frame may lie in so many buffers.
pub const CHAIN_MAX: usize = 16;

/// Which end of a connection we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// We made the memory.
    Client,
    /// The peer made it.
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
    /// Where in the region the buffer starts.
    pub offset: u32,
    /// Nobody's.
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
    /// The ring at `offset` of a region, of `1 << slots_log2` slots, as `side` sees it.
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

    /// Writes an empty ring's header; the maker's first act.
    pub fn initialise(&self) {
        self.reset();
        self.cookie().store(COOKIE, Ordering::Relaxed);
        self.set_awake(true);
    }

    /// Sets both indices to zero, as both ends may before frames flow.
    pub fn reset(&self) {
        self.half(HEAD_AT).store(0, Ordering::Relaxed);
        self.half(TAIL_AT).store(0, Ordering::Relaxed);
    }

    /// Whether the header is that of a ring.
    pub fn has_cookie(&self) -> bool {
        self.cookie().load(Ordering::Relaxed) == COOKIE
    }

    /// Its slots.
    #[inline(always)]
    pub fn slots(&self) -> u16 {
        self.slots
    }

    /// The regions that it and its buffers lie in.
    #[inline(always)]
    pub fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Which end this is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// By how much the client's index may be ahead of the server's: all buffers of the ring.
    #[inline(always)]
    pub fn lead(&self) -> u16 {
        match self.side {
            Side::Client => self.slots,
            Side::Server => 0,
        }
    }

    /// Publishes this end's index and all that was written before.
    #[inline(always)]
    pub fn publish(&self, index: u16) {
        self.index(self.side == Side::Client).store(index, Ordering::Release);
    }

    /// The peer's index; what it wrote before is visible afterwards.
    #[inline(always)]
    pub fn peers_index(&self) -> u16 {
        self.index(self.side == Side::Server).load(Ordering::Acquire)
    }

    /// In both kinds of ring the client advances the head, the server the tail.
    #[inline(always)]
    fn index(&self, of_client: bool) -> &AtomicU16 {
        self.half(if of_client { HEAD_AT } else { TAIL_AT })
    }

    /// Says whether this receiver looks without being woken.
    pub fn set_awake(&self, awake: bool) {
        self.half(FLAGS_AT).store(if awake { FLAG_AWAKE } else { 0 }, Ordering::Relaxed);
    }

    /// Whether the receiver wants no doorbell.
    #[inline(always)]
    pub fn is_awake(&self) -> bool {
        self.half(FLAGS_AT).load(Ordering::Relaxed) & FLAG_AWAKE != 0
    }

    /// Which way frames go.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// A copy of the descriptor in the slot of `index`.
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
        // SAFETY: `new` checked that header and descriptors of all slots lie inside the region
        // and are aligned to 16; the region is mapped while `self` lives; all access of ours to
        // these words is atomic.
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

/// Where the buffers of an end are.
#[derive(Debug, Clone, Copy)]
pub enum Buffers {
    /// In our own region 0, at equal distances, and nowhere else: what descriptors say of it is not
    /// needed.
    Ours {
        /// Where the first one starts.
        first: u32,
        /// From one to the next.
        stride: u32,
        /// Bytes that each holds.
        capacity: u32,
    },
    /// Where the peer's descriptors say.
    Theirs,
}

impl Buffers {
    /// Our empty buffer of the slot of `index`, as its descriptor is to be; of theirs nothing is
    /// known.
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
