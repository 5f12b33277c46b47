//! The receiving end of a ring: shows frames where they lie, then gives their buffers back.
//!
//! Descriptors are copied once, checked, and forgotten; what a frame is afterwards is decided by
//! our copy. Frames in several buffers, which are rare, are put together in memory of our own.
//! Nothing is given back before it is released, so a view stays what it was checked to be: inside
//! its region.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering, fence};

use packet::frame::FRAME_BYTES_MAX;

use super::copy::{copy, will_read};
use super::doorbell::Doorbell;
use super::fault::Fault;
use super::ring::{Buffers, CHAIN_MAX, Descriptor, FLAG_NEXT, Ring};
use super::view::View;

/// Most frames that are shown at once.
pub const VIEWS_MAX: usize = 256;

/// Room for frames in several buffers that are shown at once.
const JOINED_BYTES: usize = 8 * FRAME_BYTES_MAX;

/// A frame that was found: where it lies, and the index after its last slot.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(crate) start: *const u8,
    pub(crate) bytes: u32,
    pub(crate) after: u16,
}

impl Found {
    pub(crate) const NOTHING: Found = Found { start: std::ptr::null(), bytes: 0, after: 0 };
}

/// Frames in a row, on cache lines of their own.
#[repr(align(128))]
pub(crate) struct Row(pub(crate) [Found; VIEWS_MAX]);

/// The receiving end of one ring.
pub struct ReceiveEnd {
    ring: Ring,
    buffers: Buffers,
    doorbell: Doorbell,
    /// The first slot that was not looked at.
    next: u16,
    /// The peer's index as it was last read.
    seen: u16,
    /// Up to where buffers were given back.
    released: u16,
    found: Box<Row>,
    first: usize,
    count: usize,
    joined: Box<[AtomicU8]>,
    joined_used: usize,
    too_long: u64,
}

// SAFETY: the pointers are into the ring's regions and into `joined`, both of which it owns.
unsafe impl Send for ReceiveEnd {}

/// Frames that were received and not yet released, oldest first.
#[derive(Clone, Copy)]
pub struct Views<'a> {
    found: &'a [Found],
}

impl<'a> Views<'a> {
    /// No frames.
    pub const NONE: Views<'static> = Views { found: &[] };

    /// These frames.
    ///
    /// # Safety
    /// All their bytes must stay readable for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn of(found: &'a [Found]) -> Self {
        Views { found }
    }

    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The frame at `place`, which must be less than [`Views::len`].
    #[inline(always)]
    pub fn get(&self, place: usize) -> View<'a> {
        let found = &self.found[place];
        // SAFETY: the bytes were checked to lie inside a region or in joined memory, both of which
        // the end that is borrowed for `'a` keeps, or whoever made this from others said so.
        unsafe { View::new(found.start, found.bytes as usize) }
    }

    /// All of them.
    #[inline(always)]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = View<'a>> + use<'a> {
        // SAFETY: as in `get`.
        self.found.iter().map(|found| unsafe { View::new(found.start, found.bytes as usize) })
    }
}

impl ReceiveEnd {
    /// The receiving end of `ring`, which is empty.
    pub fn new(ring: Ring, buffers: Buffers, doorbell: Doorbell) -> Self {
        ReceiveEnd {
            ring,
            buffers,
            doorbell,
            next: 0,
            seen: 0,
            released: 0,
            found: Box::new(Row([Found::NOTHING; VIEWS_MAX])),
            first: 0,
            count: 0,
            joined: Box::new([]),
            joined_used: 0,
            too_long: 0,
        }
    }

    /// Says that it does not sleep, and supplies all its buffers where they are its to supply.
    /// To be done once frames may flow.
    pub fn open(&mut self) {
        self.ring.set_awake(true);
        for slot in 0..self.ring.slots() {
            if let Some(empty) = self.buffers.of_slot(self.ring.slots(), slot) {
                self.ring.set_descriptor(slot, empty);
            }
        }
        self.ring.publish(self.ring.lead());
    }

    /// Looks for at most `limit` frames that have arrived, unless some that were found before are
    /// not released yet.
    #[inline]
    pub fn look(&mut self, limit: usize) -> Result<(), Fault> {
        if self.first == self.count { self.gather(limit.min(VIEWS_MAX)) } else { Ok(()) }
    }

    /// The first `limit` frames that were found and not released.
    #[inline]
    pub fn views(&self, limit: usize) -> Views<'_> {
        let end = self.count.min(self.first.saturating_add(limit));
        Views { found: &self.found.0[self.first..end] }
    }

    /// All frames that were found and not released.
    #[inline]
    pub fn shown(&self) -> Views<'_> {
        self.views(VIEWS_MAX)
    }

    /// Whether all bytes of a view are where they may be.
    #[cfg(test)]
    pub fn shows(&self, view: View<'_>) -> bool {
        let (start, end) = (view.start() as usize, view.start() as usize + view.len());
        let joined = self.joined.as_ptr() as usize;
        let regions = self.ring.regions().iter().filter_map(|region| {
            region.at(0, region.bytes()).map(|at| (at as usize, at as usize + region.bytes()))
        });
        let mut places = regions.chain([(joined, joined + self.joined_used)]);
        places.any(|(first, last)| first <= start && end <= last)
    }

    /// Gives back the buffers of the first `count` frames that were shown.
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

    /// Frames that were left out because they are longer than any frame may be, since last asked.
    pub fn take_too_long(&mut self) -> u64 {
        std::mem::take(&mut self.too_long)
    }

    /// Says that it is going to sleep until the doorbell rings. False if frames wait already: then
    /// there is nothing to sleep for.
    pub fn arm(&self) -> bool {
        self.ring.set_awake(false);
        // Either the sender sees that we sleep, or we see what it sent.
        fence(Ordering::SeqCst);
        self.first == self.count && self.ring.peers_index() == self.next
    }

    /// Says that it is awake again.
    pub fn disarm(&self) {
        self.ring.set_awake(true);
        self.doorbell.drain();
    }

    /// What the sender rings.
    pub fn doorbell(&self) -> &Doorbell {
        &self.doorbell
    }

    /// Looks at up to `limit` frames that follow the released ones.
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
                    Some(Found { start, bytes: descriptor.length, after })
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
                // What came before is good; the fault is found again when that is done.
                Err(_) if self.count > 0 => break,
                Err(fault) => return Err(fault),
            }
        }
        if self.count == 0 {
            self.give_back(self.next);
        }
        Ok(())
    }

    /// Where the bytes of a descriptor in the slot of `index` lie.
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

    /// Puts a frame in several buffers together. `None` if there is no room for it beside those
    /// that are shown already. One that is too long is found, with its length, and not copied.
    #[cold]
    fn join(&mut self) -> Result<Option<Found>, Fault> {
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
        let mut found = Found { start: std::ptr::null(), bytes: bytes as u32, after: index };
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
            // SAFETY: the piece was checked to be inside its region; its target lies inside
            // `joined`, whose elements may be written through a shared borrow, behind all that
            // is shown.
            unsafe { copy(from, start.add(at), length) };
            at += length;
        }
        self.joined_used = at;
        self.unchain(index);
        Ok(Some(found))
    }

    /// Says of the slots before `until` that no frame goes on behind them. DPDK 22.11 as client
    /// leaves this flag as it finds it, and would chain frames that have nothing to do with each
    /// other.
    fn unchain(&self, until: u16) {
        let mut index = self.next;
        while index != until {
            self.ring.set_descriptor(index, Descriptor { flags: 0, ..self.ring.descriptor(index) });
            index = index.wrapping_add(1);
        }
    }

    /// Hands all slots before `until` to the peer, with fresh buffers where they are ours.
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
