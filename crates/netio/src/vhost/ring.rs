//! A split virtqueue (VIRTIO 1.2, 2.7). The driver writes the descriptor table and the available
//! ring; the device writes the used ring.
//!
//! Indices count all chains ever passed on and wrap at 65,536. Data of the driver is read once, by
//! atomics, and checked before use. The device never reads back its own data.

#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use super::memory::SharedMemory;
use crate::memif::doorbell::Doorbell;
use crate::memif::fault::Fault;

/// Maximum number of entries of a ring (2.7: 32,768).
pub const ENTRIES_MAX: u32 = 1 << 15;

/// Maximum number of descriptors of one chain, and of pieces of one frame.
pub const CHAIN_MAX: usize = 32;

/// Descriptor flag (2.7.5): the chain continues at `next`.
pub const FLAG_NEXT: u16 = 1;
/// Descriptor flag: the device writes this buffer.
pub const FLAG_WRITE: u16 = 2;
/// Descriptor flag: the buffer is an indirect table, which was not offered.
pub const FLAG_INDIRECT: u16 = 4;

/// Flag of the available ring: the driver wants no interrupts (2.7.7).
const NO_INTERRUPT: u16 = 1;
/// Flag of the used ring: the device wants no kicks (2.7.10).
const NO_NOTIFY: u16 = 1;

const DESCRIPTOR_BYTES: usize = 16;
/// Bytes before the entries of either ring: flags and index.
const HEAD_BYTES: usize = 4;
const AVAILABLE_BYTES: usize = 2;
const USED_BYTES: usize = 8;

/// A copy of a descriptor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Driver's address of the buffer.
    pub address: u64,
    /// Bytes of the buffer.
    pub length: u32,
    /// [`FLAG_NEXT`] and others.
    pub flags: u16,
    /// Number of the next descriptor.
    pub next: u16,
}

/// Addresses of a ring's three parts, in the front end's address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingAddresses {
    /// The descriptor table.
    pub descriptors: u64,
    /// The available ring.
    pub available: u64,
    /// The used ring.
    pub used: u64,
}

/// The device's end of a split ring.
pub struct Ring {
    descriptors: NonNull<u8>,
    available: NonNull<u8>,
    used: NonNull<u8>,
    entries: u16,
    memory: SharedMemory,
    /// Call eventfd, signaled by the device; `None` if the driver only polls.
    call: Option<Doorbell>,
    /// Kick eventfd, signaled by the driver; `None` if it does not signal.
    kick: Option<Doorbell>,
    /// The first available entry that was not taken.
    next: u16,
    /// The driver's index when last read.
    seen: u16,
    /// The device's index, and its published value.
    used_next: u16,
    published: u16,
}

// SAFETY: the pointers are into `memory`, which is held; all access is atomic.
unsafe impl Send for Ring {}

impl Ring {
    /// Creates a ring with this many entries at `place`, starting at entry `base`.
    pub fn new(
        memory: SharedMemory,
        place: RingAddresses,
        entries: u32,
        base: u16,
        [kick, call]: [Option<Doorbell>; 2],
    ) -> Result<Ring, Fault> {
        if !entries.is_power_of_two() || entries > ENTRIES_MAX {
            return Err(Fault::RingSize);
        }
        let part = |address, head, each, align| {
            let bytes = head + entries as usize * each;
            let start = memory.user(address, bytes).and_then(NonNull::new);
            let is_aligned = |start: &NonNull<u8>| (start.as_ptr() as usize).is_multiple_of(align);
            start.filter(is_aligned).ok_or(Fault::RingPlace)
        };
        let ring = Ring {
            descriptors: part(place.descriptors, 0, DESCRIPTOR_BYTES, 16)?,
            available: part(place.available, HEAD_BYTES, AVAILABLE_BYTES, 2)?,
            used: part(place.used, HEAD_BYTES, USED_BYTES, 4)?,
            // 32,768 fits.
            entries: entries as u16,
            memory,
            call,
            kick,
            next: base,
            seen: base,
            used_next: base,
            published: base,
        };
        ring.set_awake(true);
        Ok(ring)
    }

    /// Returns the memory that contains the ring and its buffers.
    #[inline(always)]
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Returns the first available entry that was not taken, where another device can continue.
    pub fn next(&self) -> u16 {
        self.next
    }

    /// Returns the kick eventfd.
    pub fn kick(&self) -> Option<&Doorbell> {
        self.kick.as_ref()
    }

    /// Returns how many entries can be taken. Reads the driver's index only if fewer than `wanted`
    /// are known.
    #[inline(always)]
    pub fn waiting(&mut self, wanted: u16) -> Result<u16, Fault> {
        let known = self.seen.wrapping_sub(self.next);
        if known >= wanted {
            return Ok(known);
        }
        // SAFETY: the index is inside the available ring, two bytes in, and aligned as the ring is.
        let index = unsafe { self.available.add(2).cast::<AtomicU16>().as_ref() };
        let seen = u16::from_le(index.load(Ordering::Acquire));
        let waiting = seen.wrapping_sub(self.next);
        // More than the ring has, or less than was known.
        if waiting > self.entries || waiting < known {
            return Err(Fault::IndexJump);
        }
        self.seen = seen;
        Ok(waiting)
    }

    /// Returns the first descriptor's number of the available entry `ahead` places after the
    /// current one.
    #[inline(always)]
    pub fn head(&self, ahead: u16) -> Result<u16, Fault> {
        let slot = usize::from(self.next.wrapping_add(ahead) & (self.entries - 1));
        // SAFETY: a slot is less than the ring's entries, and the available ring has room for them
        // all.
        let entry = unsafe {
            self.available.add(HEAD_BYTES + AVAILABLE_BYTES * slot).cast::<AtomicU16>().as_ref()
        };
        let head = u16::from_le(entry.load(Ordering::Relaxed));
        if head < self.entries { Ok(head) } else { Err(Fault::Slot) }
    }

    /// Returns a copy of the descriptor of this number, after a range check.
    #[inline(always)]
    pub fn descriptor(&self, number: u16) -> Result<Descriptor, Fault> {
        if number >= self.entries {
            return Err(Fault::Slot);
        }
        // SAFETY: the number is less than the ring's entries; the table is aligned to 16 bytes.
        let [low, high] = unsafe {
            let at = self.descriptors.add(DESCRIPTOR_BYTES * usize::from(number));
            [at.cast::<AtomicU64>().as_ref(), at.add(8).cast::<AtomicU64>().as_ref()]
        };
        let high = u64::from_le(high.load(Ordering::Relaxed));
        Ok(Descriptor {
            address: u64::from_le(low.load(Ordering::Relaxed)),
            length: high as u32,
            flags: (high >> 32) as u16,
            next: (high >> 48) as u16,
        })
    }

    /// Takes `count` available entries.
    #[inline(always)]
    pub fn take(&mut self, count: u16) {
        self.next = self.next.wrapping_add(count);
    }

    /// Puts a chain into the used ring, with the number of bytes written. Visible after
    /// [`Ring::publish`].
    #[inline(always)]
    pub fn give_back(&mut self, head: u16, bytes: u32) {
        let slot = usize::from(self.used_next & (self.entries - 1));
        // SAFETY: a slot is less than the ring's entries, and the used ring has room for them all.
        // It is aligned to four bytes.
        let [number, length] = unsafe {
            let at = self.used.add(HEAD_BYTES + USED_BYTES * slot);
            [at.cast::<AtomicU32>().as_ref(), at.add(4).cast::<AtomicU32>().as_ref()]
        };
        number.store(u32::from(head).to_le(), Ordering::Relaxed);
        length.store(bytes.to_le(), Ordering::Relaxed);
        self.used_next = self.used_next.wrapping_add(1);
    }

    /// Publishes the used entries, and wakes the driver if it sleeps.
    #[inline]
    pub fn publish(&mut self) {
        if self.used_next == self.published {
            return;
        }
        // SAFETY: the index is inside the used ring, two bytes in, and aligned as the ring is.
        let index = unsafe { self.used.add(2).cast::<AtomicU16>().as_ref() };
        index.store(self.used_next.to_le(), Ordering::Release);
        self.published = self.used_next;
        let Some(call) = &self.call else { return };
        // Either this process sees that the driver sleeps, or the driver sees the published
        // entries.
        fence(Ordering::SeqCst);
        // SAFETY: the flags are the available ring's first two bytes.
        let flags = unsafe { self.available.cast::<AtomicU16>().as_ref() };
        if u16::from_le(flags.load(Ordering::Relaxed)) & NO_INTERRUPT == 0 {
            call.ring();
        }
    }

    /// Sets whether the device polls without kicks.
    fn set_awake(&self, is_awake: bool) {
        // SAFETY: the flags are the used ring's first two bytes.
        let flags = unsafe { self.used.cast::<AtomicU16>().as_ref() };
        flags.store(if is_awake { NO_NOTIFY.to_le() } else { 0 }, Ordering::Relaxed);
    }

    /// Enables kicks. Returns false if an entry already waits.
    pub fn arm(&self) -> bool {
        self.set_awake(false);
        // Either the driver sees that kicks are enabled, or this process sees its new entries.
        fence(Ordering::SeqCst);
        // SAFETY: the index is inside the available ring, two bytes in, and aligned as the ring is.
        let index = unsafe { self.available.add(2).cast::<AtomicU16>().as_ref() };
        u16::from_le(index.load(Ordering::Relaxed)) == self.next
    }

    /// Disables kicks, and drains the kick eventfd.
    pub fn disarm(&self) {
        self.set_awake(true);
        if let Some(kick) = &self.kick {
            kick.drain();
        }
    }
}
