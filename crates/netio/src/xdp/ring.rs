//! A ring of an AF_XDP socket: one side writes slots and advances `producer`, the other reads them
//! and advances `consumer`. Both indices only increase, and wrap.
//!
//! Source: Linux `Documentation/networking/af_xdp.rst`, `include/uapi/linux/if_xdp.h`.
//!
//! Invariant: indices are masked to the ring's size, and the other side's index is limited to the
//! ring's length. No wrong index leads outside the mapping.

#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ring flag: the kernel needs a system call to continue.
const NEED_WAKEUP: u32 = 1;

/// The content of a slot.
///
/// # Safety
/// Every bit pattern must be a value.
pub(super) unsafe trait Slot: Copy {}
// SAFETY: an integer. Slots of the fill and the completion ring are addresses.
unsafe impl Slot for u64 {}
// SAFETY: three integers. Slots of the receive and the transmit ring are frame descriptors.
unsafe impl Slot for libc::xdp_desc {}

/// A mapped ring. This process is the producer of some rings and the consumer of others.
pub(super) struct Ring<S> {
    start: NonNull<u8>,
    bytes: usize,
    producer: usize,
    consumer: usize,
    flags: usize,
    slots: usize,
    mask: u32,
    /// This side's index, which may not be published yet.
    own: u32,
    /// The other side's index when last read, limited to the ring's length.
    others: u32,
    kind: PhantomData<S>,
}

// SAFETY: the memory belongs to the process, not to a thread, and is accessed only through `&mut`
// or by atomics.
unsafe impl<S> Send for Ring<S> {}

impl<S: Slot> Ring<S> {
    /// Maps a socket's ring of `slots` slots (a power of two) by the kernel's offsets.
    pub(super) fn map(
        socket: &OwnedFd,
        page_offset: u64,
        slots: u32,
        offsets: &libc::xdp_ring_offset,
    ) -> io::Result<Self> {
        assert!(slots.is_power_of_two(), "the number of slots is a power of two");
        let at = |offset: u64| usize::try_from(offset).expect("offsets fit into usize");
        let bytes = at(offsets.desc) + slots as usize * size_of::<S>();
        for word in [offsets.producer, offsets.consumer, offsets.flags] {
            let inside = at(word) + size_of::<u32>() <= bytes && at(word).is_multiple_of(4);
            assert!(inside, "the indices are inside the ring's mapping");
        }
        assert!(at(offsets.desc).is_multiple_of(align_of::<S>()), "slots are aligned");
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.as_raw_fd(),
                page_offset as libc::off_t,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring {
            start: NonNull::new(start.cast()).expect("a mapping never starts at address zero"),
            bytes,
            producer: at(offsets.producer),
            consumer: at(offsets.consumer),
            flags: at(offsets.flags),
            slots: at(offsets.desc),
            mask: slots - 1,
            own: 0,
            others: 0,
            kind: PhantomData,
        })
    }

    #[inline(always)]
    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the word is inside the mapping and aligned, which was checked when it was mapped.
        // It lives as long as `self`, and all access to it is atomic, in the kernel too.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    #[inline(always)]
    fn slot(&self, index: u32) -> *mut S {
        // SAFETY: the masked index is less than the number of slots, which are all inside the
        // mapping and aligned.
        unsafe { self.start.as_ptr().add(self.slots).cast::<S>().add((index & self.mask) as usize) }
    }

    /// Returns the number of slots.
    #[inline(always)]
    fn size(&self) -> u32 {
        self.mask + 1
    }

    /// Returns whether the kernel needs a system call to continue with this ring.
    #[inline(always)]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.word(self.flags).load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }

    // Producer side.

    /// Returns how many slots are free. Reads the kernel's index only if fewer than `wanted` are
    /// known to be free.
    #[inline(always)]
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let known = self.size() - self.own.wrapping_sub(self.others);
        if known >= wanted {
            return known;
        }
        let consumer = self.word(self.consumer).load(Ordering::Acquire);
        let waiting = self.own.wrapping_sub(consumer).min(self.size());
        self.others = self.own.wrapping_sub(waiting);
        self.size() - waiting
    }

    /// Writes the next slot; there must be room.
    #[inline(always)]
    pub(super) fn put(&mut self, value: S) {
        // SAFETY: the slot is inside the mapping; the kernel reads it only after its publication.
        unsafe { self.slot(self.own).write(value) };
        self.own = self.own.wrapping_add(1);
    }

    /// Publishes the written slots to the kernel.
    #[inline(always)]
    pub(super) fn tell(&self) {
        self.word(self.producer).store(self.own, Ordering::Release);
    }

    /// Returns how many slots the kernel has not consumed yet.
    #[inline(always)]
    pub(super) fn waiting(&mut self) -> u32 {
        self.size() - self.room(u32::MAX)
    }

    /// Returns the slot that the kernel consumed last.
    pub(super) fn last_taken(&self) -> S {
        let consumer = self.word(self.consumer).load(Ordering::Acquire);
        // SAFETY: the slot is inside the mapping, and every bit pattern is a value.
        unsafe { self.slot(consumer.wrapping_sub(1)).read() }
    }

    // Consumer side.

    /// Returns how many slots can be read, at most `limit`. Reads the kernel's index only if fewer
    /// are known.
    #[inline(always)]
    pub(super) fn available(&mut self, limit: u32) -> u32 {
        let known = self.others.wrapping_sub(self.own);
        if known >= limit {
            return limit;
        }
        let producer = self.word(self.producer).load(Ordering::Acquire);
        let ahead = producer.wrapping_sub(self.own).min(self.size());
        self.others = self.own.wrapping_add(ahead);
        ahead.min(limit)
    }

    /// Returns the slot `ahead` places after the current one; it must be available.
    #[inline(always)]
    pub(super) fn read(&self, ahead: u32) -> S {
        // SAFETY: the slot is inside the mapping, and every bit pattern is a value.
        unsafe { self.slot(self.own.wrapping_add(ahead)).read() }
    }

    /// Returns the first `count` slots to the kernel.
    #[inline(always)]
    pub(super) fn release(&mut self, count: u32) {
        self.own = self.own.wrapping_add(count);
        self.word(self.consumer).store(self.own, Ordering::Release);
    }
}

impl<S> Drop for Ring<S> {
    fn drop(&mut self) {
        // SAFETY: the range is the mapped one, and no pointer into it remains.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a ring of addresses in ordinary memory; the test writes the other side's index.
    fn ring(slots: u32) -> Ring<u64> {
        let bytes = 64 + slots as usize * 8;
        // SAFETY: a new mapping of anonymous memory overlaps nothing.
        let start = unsafe {
            let (access, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        Ring {
            start: NonNull::new(start.cast()).unwrap(),
            bytes,
            producer: 0,
            consumer: 4,
            flags: 8,
            slots: 64,
            mask: slots - 1,
            own: 0,
            others: 0,
            kind: PhantomData,
        }
    }

    #[test]
    fn a_producer_fills_free_slots_across_the_wrap() {
        let mut ring = ring(4);
        let start = u32::MAX - 1;
        (ring.own, ring.others) = (start, start);
        ring.word(4).store(start, Ordering::Relaxed);
        for round in 0..3_u32 {
            assert_eq!(ring.room(4), 4);
            (0..4).for_each(|value| ring.put(value));
            ring.tell();
            assert_eq!((ring.room(1), ring.waiting()), (0, 4));
            let reported = ring.word(0).load(Ordering::Relaxed);
            assert_eq!(reported, start.wrapping_add(4 * (round + 1)));
            ring.word(4).store(reported, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_consumer_reads_published_slots_across_the_wrap() {
        let mut ring = ring(4);
        let start = u32::MAX - 2;
        (ring.own, ring.others) = (start, start);
        ring.word(0).store(start, Ordering::Relaxed);
        assert_eq!(ring.available(4), 0);
        ring.word(0).store(start.wrapping_add(3), Ordering::Relaxed);
        for ahead in 0..3 {
            // SAFETY: the slot is inside the ring.
            unsafe { ring.slot(start.wrapping_add(ahead)).write(u64::from(ahead) + 7) };
        }
        assert_eq!((ring.available(2), ring.available(4)), (2, 3));
        assert_eq!((0..3).map(|ahead| ring.read(ahead)).collect::<Vec<_>>(), [7, 8, 9]);
        ring.release(3);
        assert_eq!(ring.word(4).load(Ordering::Relaxed), 0);
        assert_eq!(ring.available(4), 0);
    }

    #[test]
    fn an_invalid_index_is_limited_to_the_ring_length() {
        let mut ring = ring(4);
        for wild in [5, 1 << 20, u32::MAX, u32::MAX / 2] {
            ring.word(0).store(wild, Ordering::Relaxed);
            ring.word(4).store(wild, Ordering::Relaxed);
            (ring.own, ring.others) = (0, 0);
            assert_eq!(ring.available(u32::MAX), 4, "producer at {wild}");
            (ring.own, ring.others) = (0, u32::MAX - 3);
            assert!(ring.room(u32::MAX) <= 4, "consumer at {wild}");
        }
    }
}
