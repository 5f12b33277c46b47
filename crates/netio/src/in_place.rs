//! Received frames in place, in memory that the peer may change at any time.
//!
//! Such bytes cannot be a `&[u8]`, because the compiler assumes that its contents are constant. A
//! [`View`] can be copied, as a whole or in part, and the copy is ordinary memory. Code that
//! decides by a header must copy the header first and use the copy.

#![allow(unsafe_code)]

use std::marker::PhantomData;

use self::copy::{copy, will_read};

pub(crate) mod copy;

/// Maximum number of frames that are visible at the same time.
pub const VIEWS_MAX: usize = 256;

/// A frame's bytes in place, valid while borrowed from a receive queue.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    start: *const u8,
    bytes: usize,
    memory: PhantomData<&'a [std::sync::atomic::AtomicU8]>,
}

// SAFETY: a view only reads, by loads that tolerate other writers, from memory that stays mapped
// while it lives.
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}

impl<'a> View<'a> {
    /// Creates a view of the `bytes` bytes from `start`.
    ///
    /// # Safety
    /// They must stay readable for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn new(start: *const u8, bytes: usize) -> Self {
        View { start, bytes, memory: PhantomData }
    }

    /// Creates a view of ordinary, constant bytes.
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Self {
        View { start: bytes.as_ptr(), bytes: bytes.len(), memory: PhantomData }
    }

    /// Returns the number of bytes.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.bytes
    }

    #[inline(always)]
    pub(crate) fn start(&self) -> *const u8 {
        self.start
    }

    /// Copies the first bytes into `into`, as many as there are and fit. Returns their number.
    #[inline(always)]
    pub fn copy_to(&self, into: &mut [u8]) -> usize {
        let count = self.bytes.min(into.len());
        // SAFETY: `count` bytes are readable from the view and fit into the slice, which is a
        // unique borrow and so overlaps no shared memory.
        unsafe { copy(self.start, into.as_mut_ptr(), count) };
        count
    }

    /// Returns a copy of the first `N` bytes, or `None` if there are fewer.
    #[inline(always)]
    pub fn head<const N: usize>(&self) -> Option<[u8; N]> {
        let mut head = [0; N];
        (self.copy_to(&mut head) == N).then_some(head)
    }

    /// Returns the bytes after the first `count`; none if there are fewer.
    #[inline(always)]
    pub fn after(&self, count: usize) -> View<'a> {
        let count = count.min(self.bytes);
        // SAFETY: the rest is inside the bytes of this view.
        unsafe { View::new(self.start.add(count), self.bytes - count) }
    }

    /// Prefetches the bytes around `offset`.
    #[inline(always)]
    pub fn prefetch(&self, offset: usize) {
        will_read(self.start.wrapping_add(offset));
    }

    /// Returns a copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = vec![0; self.bytes];
        self.copy_to(&mut copy);
        copy
    }
}

/// A received frame: its address, its length, and the index after its last slot.
#[derive(Clone, Copy)]
pub(crate) struct ReceivedFrame {
    pub(crate) start: *const u8,
    pub(crate) bytes: u32,
    pub(crate) after: u16,
}

impl ReceivedFrame {
    pub(crate) const NOTHING: ReceivedFrame =
        ReceivedFrame { start: std::ptr::null(), bytes: 0, after: 0 };
}

/// An array of frames, on its own cache lines.
#[repr(align(128))]
pub(crate) struct FrameArray(pub(crate) [ReceivedFrame; VIEWS_MAX]);

/// Received frames that are not released yet, oldest first.
#[derive(Clone, Copy)]
pub struct Views<'a> {
    found: &'a [ReceivedFrame],
}

impl<'a> Views<'a> {
    /// No frames.
    pub const NONE: Views<'static> = Views { found: &[] };

    /// Creates views of these frames.
    ///
    /// # Safety
    /// All their bytes must stay readable for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn of(found: &'a [ReceivedFrame]) -> Self {
        Views { found }
    }

    /// Returns the number of frames.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Returns whether there are no frames.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the frame at `place`, which must be less than [`Views::len`].
    #[inline(always)]
    pub fn get(&self, place: usize) -> View<'a> {
        let found = &self.found[place];
        // SAFETY: the caller of `of` guarantees that the bytes stay readable for `'a`.
        unsafe { View::new(found.start, found.bytes as usize) }
    }

    /// Returns an iterator over all frames.
    #[inline(always)]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = View<'a>> + use<'a> {
        // SAFETY: as in `get`.
        self.found.iter().map(|found| unsafe { View::new(found.start, found.bytes as usize) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_view_have_their_lengths() {
        let bytes: Vec<u8> = (0..100).collect();
        let view = View::of(&bytes);
        assert_eq!(view.to_vec(), bytes);
        assert_eq!(view.head::<3>(), Some([0, 1, 2]));
        assert_eq!(view.head::<101>(), None);
        assert_eq!(view.after(98).to_vec(), [98, 99]);
        assert_eq!(view.after(101).len(), 0);
        let mut some = [9; 4];
        assert_eq!(view.after(97).copy_to(&mut some), 3);
        assert_eq!(some, [97, 98, 99, 9]);
    }
}
