//! Bytes of a frame in memory that the peer may change at any time.
//!
//! Such bytes are no `&[u8]`, whose contents the compiler takes for constant. A [`View`] can be
//! copied from, as a whole or in part, and what was copied is ordinary memory: whoever decides
//! something by a header copies the header first and decides by the copy.

#![allow(unsafe_code)]

use std::marker::PhantomData;

use super::copy::{copy, will_read};

/// A frame's bytes where they lie, valid as long as they are borrowed from a receive queue.
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
    /// The `bytes` bytes from `start`.
    ///
    /// # Safety
    /// They must stay readable for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn new(start: *const u8, bytes: usize) -> Self {
        View { start, bytes, memory: PhantomData }
    }

    /// A view of ordinary bytes, which nobody changes.
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Self {
        View { start: bytes.as_ptr(), bytes: bytes.len(), memory: PhantomData }
    }

    /// How many bytes there are.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.bytes
    }

    #[inline(always)]
    pub(crate) fn start(&self) -> *const u8 {
        self.start
    }

    /// Copies the first bytes into `into`, as many as there are and fit, and returns how many.
    #[inline(always)]
    pub fn copy_to(&self, into: &mut [u8]) -> usize {
        let count = self.bytes.min(into.len());
        // SAFETY: `count` bytes are readable from the view and fit into the slice, which as a
        // unique borrow overlaps no shared memory.
        unsafe { copy(self.start, into.as_mut_ptr(), count) };
        count
    }

    /// A copy of the first `N` bytes, or `None` if there are fewer.
    #[inline(always)]
    pub fn head<const N: usize>(&self) -> Option<[u8; N]> {
        let mut head = [0; N];
        (self.copy_to(&mut head) == N).then_some(head)
    }

    /// The bytes after the first `count`; none if there are not so many.
    #[inline(always)]
    pub fn after(&self, count: usize) -> View<'a> {
        let count = count.min(self.bytes);
        // SAFETY: the rest lies inside what this view may read.
        unsafe { View::new(self.start.add(count), self.bytes - count) }
    }

    /// Says that the bytes around `offset` will be read soon.
    #[inline(always)]
    pub fn prefetch(&self, offset: usize) {
        will_read(self.start.wrapping_add(offset));
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = vec![0; self.bytes];
        self.copy_to(&mut copy);
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_view_are_what_they_say() {
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
