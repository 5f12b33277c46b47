//! The sending end of a ring: copies frames into the next free buffers and publishes them together.
//!
//! A frame is copied once, from where it is. The peer sees nothing before [`TransmitEnd::flush`],
//! which is one store, and one eventfd signal if the peer sleeps. The peer's index is read only
//! when the known free slots are used up.

#![allow(unsafe_code)]

use std::sync::atomic::{Ordering, fence};

use super::doorbell::Doorbell;
use super::fault::Fault;
use super::ring::{Buffers, CHAIN_MAX, Descriptor, FLAG_NEXT, Ring};
use crate::in_place::View;
use crate::in_place::copy::copy;

/// Why a frame was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no free buffer.
    Full,
    /// The frame does not fit into the maximum number of buffers.
    TooLong,
    /// There is no peer.
    Down,
}

/// Why a put failed: the frame or the ring, or a fault of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutError {
    /// The frame was not accepted.
    Refused(Refusal),
    /// The peer is at fault.
    Broken(Fault),
}

impl From<Fault> for PutError {
    fn from(fault: Fault) -> Self {
        PutError::Broken(fault)
    }
}

/// The sending end of one ring.
pub struct TransmitEnd {
    ring: Ring,
    buffers: Buffers,
    doorbell: Doorbell,
    /// The next slot to fill.
    next: u16,
    /// The index up to which slots were published.
    published: u16,
    /// The known index up to which slots may be filled.
    limit: u16,
}

impl TransmitEnd {
    /// Creates the sending end of `ring`, which is empty.
    pub fn new(ring: Ring, buffers: Buffers, doorbell: Doorbell) -> Self {
        let limit = ring.lead();
        TransmitEnd { ring, buffers, doorbell, next: 0, published: 0, limit }
    }

    /// Returns the number of free slots. Reads the peer's index only if fewer than `wanted` are
    /// known.
    #[inline]
    pub fn room(&mut self, wanted: usize) -> Result<usize, Fault> {
        let known = self.limit.wrapping_sub(self.next);
        if usize::from(known) >= wanted {
            return Ok(usize::from(known));
        }
        let limit = self.ring.peers_index().wrapping_add(self.ring.lead());
        let room = limit.wrapping_sub(self.next);
        // Beyond the published slots or the ring's size, or less than was known.
        let slots = self.ring.slots();
        if limit.wrapping_sub(self.published) > slots || room > slots || room < known {
            return Err(Fault::IndexJump);
        }
        self.limit = limit;
        Ok(usize::from(room))
    }

    /// Puts a frame into the next free buffer.
    #[inline(always)]
    pub fn put(&mut self, frame: View<'_>) -> Result<(), PutError> {
        self.put_parts(frame, View::of(&[]))
    }

    /// Puts a frame in two parts, such as a rewritten header and the rest of a received frame.
    #[inline(always)]
    pub fn put_parts(&mut self, first: View<'_>, second: View<'_>) -> Result<(), PutError> {
        if self.next == self.limit && self.room(1)? == 0 {
            return Err(PutError::Refused(Refusal::Full));
        }
        let bytes = first.len() + second.len();
        let (descriptor, to) = self.buffer(self.next)?;
        if bytes > descriptor.length as usize {
            return self.put_chain(first, second);
        }
        // SAFETY: both parts are readable, and the buffer was checked to be inside its region for
        // more than their bytes. A view overlaps it only if the peer placed its buffers on top of
        // each other; then these copies corrupt only the peer's bytes.
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

    /// Publishes the put frames, and wakes the peer if it sleeps.
    #[inline]
    pub fn flush(&mut self) {
        if self.next == self.published {
            return;
        }
        self.ring.publish(self.next);
        self.published = self.next;
        // Either this end sees that the receiver sleeps, or the receiver sees the published frames.
        fence(Ordering::SeqCst);
        if !self.ring.is_awake() {
            self.doorbell.ring();
        }
    }

    /// Returns the descriptor and the address of the empty buffer in the slot of `index`.
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
    fn put_chain(&mut self, first: View<'_>, second: View<'_>) -> Result<(), PutError> {
        let mut slots = [(Descriptor::default(), std::ptr::null_mut()); CHAIN_MAX];
        let (mut left, mut count) = (first.len() + second.len(), 0);
        while left > 0 {
            if count == CHAIN_MAX || count >= usize::from(self.ring.slots()) {
                return Err(PutError::Refused(Refusal::TooLong));
            }
            if self.room(count + 1)? <= count {
                return Err(PutError::Refused(Refusal::Full));
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
