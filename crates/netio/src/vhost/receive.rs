//! The device's receiving end of a ring: chains that the driver filled, each with a header and a
//! frame.
//!
//! - The end walks a chain once, by copies of its descriptors, and checks that it is inside the
//!   driver's memory before it accesses its bytes.
//! - Most frames are in one piece and are used in place. Others are joined in our own memory.
//! - A frame's chain returns to the driver only when the frame is released, so a view stays inside
//!   its region, as checked.

#![allow(unsafe_code)]

use std::sync::atomic::AtomicU8;

use packet::frame::FRAME_BYTES_MAX;

use super::ring::{CHAIN_MAX, FLAG_INDIRECT, FLAG_NEXT, FLAG_WRITE, Ring};
use crate::in_place::copy::{copy, will_read};
use crate::in_place::{FrameArray, ReceivedFrame, VIEWS_MAX, Views};
use crate::memif::fault::Fault;

/// Bytes for joined frames that are visible at the same time.
const JOINED_BYTES: usize = 8 * FRAME_BYTES_MAX;

/// A piece of a frame, checked to be inside the driver's memory.
type MemoryPiece = (*const u8, u32);

/// The receiving end of a ring.
pub struct ReceiveEnd {
    ring: Ring,
    /// Bytes of the header before each frame; its content is irrelevant without offloads.
    header_bytes: u32,
    /// Visible frames, each with its chain's first descriptor.
    found: Box<FrameArray>,
    first: usize,
    count: usize,
    joined: Box<[AtomicU8]>,
    joined_used: usize,
    too_long: u64,
}

// SAFETY: the pointers are into the ring's memory and into `joined`, both of which it owns.
unsafe impl Send for ReceiveEnd {}

/// Content of a chain.
enum Chain {
    /// A frame that can be used.
    Frame(ReceivedFrame),
    /// A frame that does not fit next to the visible joined frames.
    NoRoom,
    /// A frame that exceeds the maximum length.
    TooLong,
}

impl ReceiveEnd {
    /// Creates the receiving end of this ring, whose frames follow headers of this many bytes.
    pub fn new(ring: Ring, header_bytes: u32) -> Self {
        ReceiveEnd {
            ring,
            header_bytes,
            found: Box::new(FrameArray([ReceivedFrame::NOTHING; VIEWS_MAX])),
            first: 0,
            count: 0,
            joined: Box::new([]),
            joined_used: 0,
            too_long: 0,
        }
    }

    /// Returns the ring.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Returns how many frames were skipped as too long since the last call.
    pub fn take_too_long(&mut self) -> u64 {
        std::mem::take(&mut self.too_long)
    }

    /// Looks for at most `limit` received frames, unless earlier ones are not released yet.
    #[inline]
    pub fn look(&mut self, limit: usize) -> Result<(), Fault> {
        if self.ring.memory().is_broken() {
            return Err(Fault::RegionShrunk);
        }
        if self.first < self.count { Ok(()) } else { self.gather(limit.min(VIEWS_MAX)) }
    }

    /// Returns the visible frames.
    #[inline]
    pub fn views(&self) -> Views<'_> {
        // SAFETY: the bytes were checked to be in one region, which the ring keeps, or are in
        // joined memory. Joined memory of a visible frame is not written before its release.
        unsafe { Views::of(&self.found.0[self.first..self.count]) }
    }

    /// Returns the first `count` visible frames to the driver.
    #[inline]
    pub fn release(&mut self, count: usize) {
        let until = self.count.min(self.first.saturating_add(count));
        for found in &self.found.0[self.first..until] {
            self.ring.give_back(found.after, 0);
        }
        self.ring.take((until - self.first) as u16);
        self.first = until;
        self.ring.publish();
    }

    /// Returns whether all bytes of a view are in allowed memory.
    #[cfg(test)]
    pub fn shows(&self, view: crate::in_place::View<'_>) -> bool {
        let (start, joined) = (view.start() as usize, self.joined.as_ptr() as usize);
        let is_joined = joined <= start && start + view.len() <= joined + self.joined_used;
        is_joined || self.ring.memory().holds(view.start(), view.len())
    }

    fn gather(&mut self, limit: usize) -> Result<(), Fault> {
        (self.first, self.count, self.joined_used) = (0, 0, 0);
        let waiting = usize::from(self.ring.waiting(limit.min(1) as u16)?);
        for _ in 0..waiting {
            if self.count == limit {
                break;
            }
            match self.look_up(self.count as u16) {
                Ok((_, Chain::Frame(found))) => {
                    self.found.0[self.count] = found;
                    self.count += 1;
                }
                // Visible frames must be released first.
                Ok((_, Chain::NoRoom)) => break,
                Ok((_, Chain::TooLong)) | Err(_) if self.count > 0 => break,
                Ok((head, _)) => {
                    self.too_long += 1;
                    self.ring.take(1);
                    self.ring.give_back(head, 0);
                    self.ring.publish();
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    /// Looks up the chain `ahead` places after the current one. Returns its first descriptor and
    /// its content.
    #[inline(always)]
    fn look_up(&mut self, ahead: u16) -> Result<(u16, Chain), Fault> {
        let head = self.ring.head(ahead)?;
        let first = self.ring.descriptor(head)?;
        let header = self.header_bytes;
        if first.flags == 0
            && first.length > header
            && first.length <= FRAME_BYTES_MAX as u32
            && let Some(start) = self.ring.memory().guest(first.address, first.length)
        {
            let start = start.wrapping_add(header as usize).cast_const();
            will_read(start);
            let found = ReceivedFrame { start, bytes: first.length - header, after: head };
            return Ok((head, Chain::Frame(found)));
        }
        Ok((head, self.look_up_pieces(head)?))
    }

    /// Like [`ReceiveEnd::look_up`], for frames that may be in several pieces.
    #[cold]
    fn look_up_pieces(&mut self, head: u16) -> Result<Chain, Fault> {
        let mut pieces = [(std::ptr::null(), 0); CHAIN_MAX];
        let count = self.walk(head, &mut pieces)?;
        let bytes: u64 = pieces[..count].iter().map(|&(_, bytes)| u64::from(bytes)).sum();
        if bytes > FRAME_BYTES_MAX as u64 {
            return Ok(Chain::TooLong);
        }
        let bytes = bytes as u32;
        let start = match pieces[..count] {
            [(start, _)] => start,
            ref pieces => match self.join(pieces, bytes as usize) {
                Some(start) => start,
                None => return Ok(Chain::NoRoom),
            },
        };
        Ok(Chain::Frame(ReceivedFrame { start, bytes, after: head }))
    }

    /// Collects the pieces of a chain's frame, without its header. Returns their number.
    fn walk(&self, head: u16, pieces: &mut [MemoryPiece; CHAIN_MAX]) -> Result<usize, Fault> {
        let (mut number, mut count, mut header) = (head, 0, self.header_bytes);
        for _ in 0..CHAIN_MAX {
            let descriptor = self.ring.descriptor(number)?;
            if descriptor.flags & (FLAG_WRITE | FLAG_INDIRECT) != 0 {
                return Err(Fault::Chain);
            }
            let (mut address, mut left) = (descriptor.address, descriptor.length);
            while left > 0 {
                // A buffer may span several adjacent regions.
                let bytes = self.ring.memory().reach(address, left);
                let start = self.ring.memory().guest(address, bytes).filter(|_| bytes > 0);
                let start = start.ok_or(Fault::BufferPlace)?.cast_const();
                let skipped = header.min(bytes);
                if bytes > skipped {
                    let place = pieces.get_mut(count).ok_or(Fault::Chain)?;
                    *place = (start.wrapping_add(skipped as usize), bytes - skipped);
                    count += 1;
                }
                header -= skipped;
                (address, left) = (address.wrapping_add(u64::from(bytes)), left - bytes);
            }
            if descriptor.flags & FLAG_NEXT == 0 {
                return if count > 0 { Ok(count) } else { Err(Fault::BufferLength) };
            }
            number = descriptor.next;
        }
        Err(Fault::Chain)
    }

    /// Joins the pieces of a frame of `bytes` bytes. Returns its address, if there is room.
    fn join(&mut self, pieces: &[MemoryPiece], bytes: usize) -> Option<*const u8> {
        if self.joined.is_empty() {
            self.joined = (0..JOINED_BYTES).map(|_| AtomicU8::new(0)).collect();
        }
        if JOINED_BYTES - self.joined_used < bytes {
            return None;
        }
        let start = self.joined.as_ptr().cast::<u8>().cast_mut().wrapping_add(self.joined_used);
        let mut at = 0;
        for &(from, length) in pieces {
            // SAFETY: the piece was checked to be in one region. Its target is inside `joined`,
            // after all visible frames; its elements may be written through a shared borrow.
            unsafe { copy(from, start.add(at), length as usize) };
            at += length as usize;
        }
        self.joined_used += bytes;
        Some(start)
    }
}
