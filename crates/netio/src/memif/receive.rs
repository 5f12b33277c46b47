//! The receiving end of a ring: gives access to frames in place, then returns their buffers.
//!
//! - Descriptors are copied and checked once; only our copy is used afterwards.
//! - Frames in several buffers are rare and are joined in our own memory.
//! - No buffer returns before its frame is released, so a view stays inside its region, as checked.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering, fence};

use packet::frame::FRAME_BYTES_MAX;

use super::doorbell::Doorbell;
use super::fault::Fault;
use super::ring::{Buffers, CHAIN_MAX, Descriptor, FLAG_NEXT, Ring};
use crate::in_place::copy::{copy, will_read};
use crate::in_place::{FrameArray, ReceivedFrame, VIEWS_MAX, Views};

/// Bytes for joined frames that are visible at the same time.
const JOINED_BYTES: usize = 8 * FRAME_BYTES_MAX;

/// The receiving end of one ring.
pub struct ReceiveEnd {
    ring: Ring,
    buffers: Buffers,
    doorbell: Doorbell,
    /// The first slot that was not read.
    next: u16,
    /// The peer's index when last read.
    seen: u16,
    /// The index up to which buffers were returned.
    released: u16,
    found: Box<FrameArray>,
    first: usize,
    count: usize,
    joined: Box<[AtomicU8]>,
    joined_used: usize,
    too_long: u64,
}

// SAFETY: the pointers are into the ring's regions and into `joined`, both of which it owns.
unsafe impl Send for ReceiveEnd {}

impl ReceiveEnd {
    /// Creates the receiving end of `ring`, which is empty.
    pub fn new(ring: Ring, buffers: Buffers, doorbell: Doorbell) -> Self {
        ReceiveEnd {
            ring,
            buffers,
            doorbell,
            next: 0,
            seen: 0,
            released: 0,
            found: Box::new(FrameArray([ReceivedFrame::NOTHING; VIEWS_MAX])),
            first: 0,
            count: 0,
            joined: Box::new([]),
            joined_used: 0,
            too_long: 0,
        }
    }

    /// Marks the receiver as polling, and supplies all buffers if they are its own.
    ///
    /// Call this once the connection is up.
    pub fn open(&mut self) {
        self.ring.set_awake(true);
        for slot in 0..self.ring.slots() {
            if let Some(empty) = self.buffers.of_slot(self.ring.slots(), slot) {
                self.ring.set_descriptor(slot, empty);
            }
        }
        self.ring.publish(self.ring.lead());
    }

    /// Looks for at most `limit` received frames, unless earlier ones are not released yet.
    #[inline]
    pub fn look(&mut self, limit: usize) -> Result<(), Fault> {
        if self.first == self.count { self.gather(limit.min(VIEWS_MAX)) } else { Ok(()) }
    }

    /// Returns the first `limit` visible frames.
    #[inline]
    pub fn views(&self, limit: usize) -> Views<'_> {
        let end = self.count.min(self.first.saturating_add(limit));
        // SAFETY: the bytes were checked to be inside a region or in joined memory, and this end,
        // which is borrowed, keeps both.
        unsafe { Views::of(&self.found.0[self.first..end]) }
    }

    /// Returns all visible frames.
    #[inline]
    pub fn shown(&self) -> Views<'_> {
        self.views(VIEWS_MAX)
    }

    /// Returns whether all bytes of a view are in allowed memory.
    #[cfg(test)]
    pub fn shows(&self, view: crate::in_place::View<'_>) -> bool {
        let (start, end) = (view.start() as usize, view.start() as usize + view.len());
        let joined = self.joined.as_ptr() as usize;
        let regions = self.ring.regions().iter().filter_map(|region| {
            region.at(0, region.bytes()).map(|at| (at as usize, at as usize + region.bytes()))
        });
        let mut places = regions.chain([(joined, joined + self.joined_used)]);
        places.any(|(first, last)| first <= start && end <= last)
    }

    /// Returns the buffers of the first `count` visible frames.
    #[inline]
    pub fn release(&mut self, count: usize) {
        self.first = self.count.min(self.first.saturating_add(count));
        let until = if self.first == self.count {
            self.next
        } else if self.first > 0 {
            self.found.0[self.first - 1].after
        } else {
            return;
        };
        if until != self.released {
            self.give_back(until);
        }
    }

    /// Returns how many frames were skipped as too long since the last call.
    pub fn take_too_long(&mut self) -> u64 {
        std::mem::take(&mut self.too_long)
    }

    /// Requests an eventfd signal for the next frame. Returns false if frames wait already.
    pub fn arm(&self) -> bool {
        self.ring.set_awake(false);
        // Either the sender sees that this end sleeps, or this end sees the sender's frames.
        fence(Ordering::SeqCst);
        self.first == self.count && self.ring.peers_index() == self.next
    }

    /// Cancels the request, and drains the eventfd.
    pub fn disarm(&self) {
        self.ring.set_awake(true);
        self.doorbell.drain();
    }

    /// Returns the eventfd that the sender signals.
    pub fn doorbell(&self) -> &Doorbell {
        &self.doorbell
    }

    /// Reads up to `limit` frames after the released ones.
    fn gather(&mut self, limit: usize) -> Result<(), Fault> {
        (self.first, self.count, self.joined_used) = (0, 0, 0);
        if self.next == self.seen {
            let seen = self.ring.peers_index();
            if seen == self.seen {
                return Ok(());
            }
            if seen.wrapping_sub(self.next) > self.ring.slots() {
                return Err(Fault::IndexJump);
            }
            self.seen = seen;
        }
        while self.count < limit && self.next != self.seen {
            let descriptor = self.ring.descriptor(self.next);
            let outcome = if descriptor.flags & FLAG_NEXT == 0 {
                self.place(self.next, &descriptor).map(|start| {
                    let after = self.next.wrapping_add(1);
                    Some(ReceivedFrame { start, bytes: descriptor.length, after })
                })
            } else {
                self.join()
            };
            match outcome {
                Ok(Some(found)) if found.bytes as usize <= FRAME_BYTES_MAX => {
                    will_read(found.start);
                    self.found.0[self.count] = found;
                    self.count += 1;
                    self.next = found.after;
                }
                Ok(Some(found)) => {
                    self.too_long += 1;
                    self.next = found.after;
                }
                Ok(None) => break,
                // The frames before it are valid; the fault is found again after their release.
                Err(_) if self.count > 0 => break,
                Err(fault) => return Err(fault),
            }
        }
        if self.count == 0 {
            self.give_back(self.next);
        }
        Ok(())
    }

    /// Returns the address of the bytes of a descriptor in the slot of `index`.
    #[inline(always)]
    fn place(&self, index: u16, descriptor: &Descriptor) -> Result<*const u8, Fault> {
        if let Some(ours) = self.buffers.of_slot(self.ring.slots(), index) {
            if descriptor.length > ours.length {
                return Err(Fault::BufferLength);
            }
            if (descriptor.region, descriptor.offset) != (ours.region, ours.offset) {
                return Err(Fault::BufferPlace);
            }
        }
        let region = self.ring.regions().get(usize::from(descriptor.region));
        region
            .and_then(|region| region.at(descriptor.offset as usize, descriptor.length as usize))
            .map(<*mut u8>::cast_const)
            .ok_or(Fault::BufferPlace)
    }

    /// Joins a frame in several buffers.
    ///
    /// Returns `None` if there is no room next to the visible joined frames. A frame that is too
    /// long is returned with its length, without a copy.
    #[cold]
    fn join(&mut self) -> Result<Option<ReceivedFrame>, Fault> {
        let mut pieces = [(std::ptr::null(), 0); CHAIN_MAX];
        let (mut count, mut bytes, mut index) = (0, 0, self.next);
        loop {
            if index == self.seen || count == CHAIN_MAX {
                return Err(Fault::Chain);
            }
            let descriptor = self.ring.descriptor(index);
            let start = self.place(index, &descriptor)?;
            pieces[count] = (start, descriptor.length as usize);
            bytes += descriptor.length as usize;
            (count, index) = (count + 1, index.wrapping_add(1));
            if descriptor.flags & FLAG_NEXT == 0 {
                break;
            }
        }
        // Regions are limited to 2^30 bytes each, and pieces to 16: the sum does not overflow.
        let mut found =
            ReceivedFrame { start: std::ptr::null(), bytes: bytes as u32, after: index };
        if bytes > FRAME_BYTES_MAX {
            self.unchain(index);
            found.bytes = FRAME_BYTES_MAX as u32 + 1;
            return Ok(Some(found));
        }
        if self.joined.is_empty() {
            self.joined = (0..JOINED_BYTES).map(|_| AtomicU8::new(0)).collect();
        }
        if JOINED_BYTES - self.joined_used < bytes {
            return Ok(None);
        }
        let start = self.joined.as_ptr().cast::<u8>().cast_mut();
        let mut at = self.joined_used;
        found.start = start.wrapping_add(at);
        for &(from, length) in &pieces[..count] {
            // SAFETY: the piece was checked to be inside its region. Its target is inside `joined`,
            // after all visible frames; its elements may be written through a shared borrow.
            unsafe { copy(from, start.add(at), length) };
            at += length;
        }
        self.joined_used = at;
        self.unchain(index);
        Ok(Some(found))
    }

    /// Clears the chain flag in the slots before `until`.
    ///
    /// DPDK 22.11 as client does not clear this flag, and would chain unrelated frames.
    fn unchain(&self, until: u16) {
        let mut index = self.next;
        while index != until {
            self.ring.set_descriptor(index, Descriptor { flags: 0, ..self.ring.descriptor(index) });
            index = index.wrapping_add(1);
        }
    }

    /// Returns all slots before `until` to the peer, with empty buffers if they are ours.
    fn give_back(&mut self, until: u16) {
        let slots = self.ring.slots();
        if matches!(self.buffers, Buffers::Ours { .. }) {
            let mut index = self.released;
            while index != until {
                if let Some(empty) = self.buffers.of_slot(slots, index) {
                    self.ring.set_descriptor(index, empty);
                }
                index = index.wrapping_add(1);
            }
        }
        self.released = until;
        self.ring.publish(until.wrapping_add(self.ring.lead()));
    }
}
