//! The sending end of a ring: copies frames into the next free buffers and publishes them together.
//!
//! A frame is copied once, from wherever it lies. Nothing is visible to the peer before
//! [`TransmitEnd::flush`], which is one store, and one ring of the doorbell if the peer sleeps.
//! The peer's index is read only when what is known of it is used up.

#![allow(unsafe_code)]

use std::sync::atomic::{Ordering, fence};

use super::copy::copy;
use super::doorbell::Doorbell;
use super::fault::Fault;
use super::ring::{Buffers, CHAIN_MAX, Descriptor, FLAG_NEXT, Ring};
use super::view::View;

/// Why a frame was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no free buffer.
    Full,
    /// The frame does not fit into as many buffers as one may have.
    TooLong,
    /// There is no peer.
    Down,
}

/// What stops a frame: the frame or the ring, or a peer that broke the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Our frame.
    Refused(Refusal),
    /// The peer.
    Broken(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Broken(fault)
    }
}

/// The sending end of one ring.
pub struct TransmitEnd {
    ring: Ring,
    buffers: Buffers,
    doorbell: Doorbell,
    /// The next slot to be filled.
    next: u16,
    /// Up to where slots were published.
    published: u16,
    /// Up to where slots may be filled, as far as is known.
    limit: u16,
}

impl TransmitEnd {
    /// The sending end of `ring`, which is empty.
    pub fn new(ring: Ring, buffers: Buffers, doorbell: Doorbell) -> Self {
        let limit = ring.lead();
        TransmitEnd { ring, buffers, doorbell, next: 0, published: 0, limit }
    }

    /// Free slots, looking again at what the peer has emptied if fewer than `wanted` are known.
    #[inline]
    pub fn room(&mut self, wanted: usize) -> Result<usize, Fault> {
        let known = self.limit.wrapping_sub(self.next);
        if usize::from(known) >= wanted {
            return Ok(usize::from(known));
        }
        let limit = self.ring.peers_index().wrapping_add(self.ring.lead());
        let room = limit.wrapping_sub(self.next);
        // Beyond what was published and what the ring holds, or behind what was known.
        let slots = self.ring.slots();
        if limit.wrapping_sub(self.published) > slots || room > slots || room < known {
            return Err(Fault::IndexJump);
        }
        self.limit = limit;
        Ok(usize::from(room))
    }

    /// Puts a frame into the next free buffer.
    #[inline(always)]
    pub fn put(&mut self, frame: View<'_>) -> Result<(), Stop> {
        self.put_parts(frame, View::of(&[]))
    }

    /// Puts a frame of two parts, such as a header that was rewritten and the rest of a received
    /// frame.
    #[inline(always)]
    pub fn put_parts(&mut self, first: View<'_>, second: View<'_>) -> Result<(), Stop> {
        if self.next == self.limit && self.room(1)? == 0 {
            return Err(Stop::Refused(Refusal::Full));
        }
        let bytes = first.len() + second.len();
        let (descriptor, to) = self.buffer(self.next)?;
        if bytes > descriptor.length as usize {
            return self.put_chain(first, second);
        }
        // SAFETY: both parts are readable; the buffer was checked to be inside its region for
        // more than their bytes; a view may lie in the same region only if the peer placed its
        // buffers on top of each other, and then these copies garble the peer's own bytes.
        unsafe {
            copy(first.start(), to, first.len());
            if second.len() > 0 {
                copy(second.start(), to.add(first.len()), second.len());
            }
        }
        let filled = Descriptor { flags: 0, length: bytes as u32, ..descriptor };
        self.ring.set_descriptor(self.next, filled);
        self.next = self.next.wrapping_add(1);
        Ok(())
    }

    /// Shows the peer what was put, and wakes it if it sleeps.
    #[inline]
    pub fn flush(&mut self) {
        if self.next == self.published {
            return;
        }
        self.ring.publish(self.next);
        self.published = self.next;
        // Either we see that the receiver sleeps, or it sees what was published.
        fence(Ordering::SeqCst);
        if !self.ring.is_awake() {
            self.doorbell.ring();
        }
    }

    /// The empty buffer in the slot of `index`: what its descriptor says, and where it is.
    #[inline(always)]
    fn buffer(&self, index: u16) -> Result<(Descriptor, *mut u8), Fault> {
        let ours = self.buffers.of_slot(self.ring.slots(), index);
        let descriptor = match ours {
            Some(ours) => ours,
            None => self.ring.descriptor(index),
        };
        let region = self.ring.regions().get(usize::from(descriptor.region));
        let to = region
            .and_then(|region| region.at(descriptor.offset as usize, descriptor.length as usize))
            .ok_or(Fault::BufferPlace)?;
        Ok((descriptor, to))
    }

    /// Puts a frame that is longer than a buffer.
    #[cold]
    fn put_chain(&mut self, first: View<'_>, second: View<'_>) -> Result<(), Stop> {
        let mut slots = [(Descriptor::default(), std::ptr::null_mut()); CHAIN_MAX];
        let (mut left, mut count) = (first.len() + second.len(), 0);
        while left > 0 {
            if count == CHAIN_MAX || count >= usize::from(self.ring.slots()) {
                return Err(Stop::Refused(Refusal::TooLong));
            }
            if self.room(count + 1)? <= count {
                return Err(Stop::Refused(Refusal::Full));
            }
            let (mut descriptor, to) = self.buffer(self.next.wrapping_add(count as u16))?;
            if descriptor.length == 0 {
                return Err(Fault::BufferLength.into());
            }
            descriptor.length = descriptor.length.min(left as u32);
            left -= descriptor.length as usize;
            descriptor.flags = if left > 0 { FLAG_NEXT } else { 0 };
            slots[count] = (descriptor, to);
            count += 1;
        }
        let mut source = [first, second].into_iter().filter(|part| part.len() > 0);
        let mut part = source.next().unwrap_or(first);
        for (place, &(descriptor, to)) in slots[..count].iter().enumerate() {
            let mut at = 0;
            while at < descriptor.length as usize {
                let piece = part.len().min(descriptor.length as usize - at);
                // SAFETY: the piece is inside its view, and the target inside the buffer.
                unsafe { copy(part.start(), to.add(at), piece) };
                at += piece;
                part = part.after(piece);
                if part.len() == 0 {
                    part = source.next().unwrap_or(part);
                }
            }
            self.ring.set_descriptor(self.next.wrapping_add(place as u16), descriptor);
        }
        self.next = self.next.wrapping_add(count as u16);
        Ok(())
    }
}
