//! Zeroed memory that the system commits on first use.
//!
//! The allocator gets large zeroed blocks from the system, which commits a page at its first write.
//! So a table can reserve space for a million entries and use only the memory that it needs.
//!
//! Invariant: the memory is initially all zero, which is a valid value of every [`Zero`] type, and
//! lives as long as its owner.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

/// Blocks of at least this size are aligned to it, so that they can use huge pages.
const HUGE_BYTES: usize = 2 << 20;

/// Requests huge pages from the system: address and length in bytes.
pub type Advice = fn(usize, usize);

static ADVICE: OnceLock<Advice> = OnceLock::new();

/// Sets the function to call for each new large row, so that it can request huge pages. The setting
/// is global, like the allocator, and affects performance only. Only the first call has an effect.
pub fn advise(advice: Advice) {
    ADVICE.get_or_init(|| advice);
}

/// A row of values that a model checker can replace.
#[cfg(not(loom))]
pub type Array<T> = ZeroedArray<T>;
/// A row of values under the model checker.
#[cfg(loom)]
pub type Array<T> = Box<[T]>;

/// Creates a row of `count` zero values.
#[cfg(not(loom))]
pub fn row<T: Zero>(count: usize) -> Array<T> {
    ZeroedArray::new(count)
}

/// Creates a row of `count` default values: those of a model are not plain numbers.
#[cfg(loom)]
pub fn row<T: Default>(count: usize) -> Array<T> {
    (0..count).map(|_| T::default()).collect()
}

/// Types whose initial value may be all zero bytes.
///
/// # Safety
/// All bytes zero is a valid value, and the type has nothing to drop.
pub unsafe trait Zero {}

// SAFETY: zero is a valid number.
unsafe impl Zero for AtomicU64 {}
// SAFETY: an array of types that may be zero, with nothing between the elements.
unsafe impl<T: Zero, const N: usize> Zero for [T; N] {}

/// A row of values in its own memory.
pub struct ZeroedArray<T: Zero> {
    /// The block from the allocator.
    block: NonNull<u8>,
    layout: Layout,
    first: NonNull<T>,
    count: usize,
}

// SAFETY: it owns its memory, as a boxed slice does.
unsafe impl<T: Zero + Send> Send for ZeroedArray<T> {}
// SAFETY: it gives out shared references only, as a boxed slice does.
unsafe impl<T: Zero + Sync> Sync for ZeroedArray<T> {}

impl<T: Zero> ZeroedArray<T> {
    /// Creates a row of `count` zero values.
    ///
    /// # Panics
    /// If the memory cannot be allocated, as in every collection.
    pub fn new(count: usize) -> ZeroedArray<T> {
        let bytes = count.checked_mul(size_of::<T>()).expect("the size fits into usize");
        let align = if bytes >= HUGE_BYTES { HUGE_BYTES } else { align_of::<T>().max(64) };
        // The allocator clears blocks with a large alignment, which commits them. So the alignment
        // is done here.
        let layout = Layout::from_size_align(bytes + align, 16).expect("the size fits into isize");
        // SAFETY: the layout is not empty, since `align` is at least 64.
        let Some(block) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            handle_alloc_error(layout);
        };
        let skip = block.as_ptr().align_offset(align);
        // SAFETY: `skip` is less than `align`, and the block is `align` bytes longer than the row.
        let first = unsafe { block.add(skip) }.cast();
        let row = ZeroedArray { block, layout, first, count };
        let (address, bytes) = row.extent();
        if bytes >= HUGE_BYTES
            && let Some(advise) = ADVICE.get()
        {
            advise(address, bytes);
        }
        row
    }

    fn extent(&self) -> (usize, usize) {
        (self.first.as_ptr() as usize, self.count * size_of::<T>())
    }
}

impl<T: Zero> Deref for ZeroedArray<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `first` is aligned, `count` values from it on are within the block, they were
        // zero at first, which is valid for a `Zero` type, and there are only shared references.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl<T: Zero> Drop for ZeroedArray<T> {
    fn drop(&mut self) {
        // SAFETY: block and layout are those of the allocation; `Zero` types have nothing to drop.
        unsafe { dealloc(self.block.as_ptr(), self.layout) };
    }
}

impl<T: Zero> std::fmt::Debug for ZeroedArray<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} values", self.count)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[repr(align(64))]
    struct Line([AtomicU64; 8]);
    // SAFETY: zero is a valid number.
    unsafe impl Zero for Line {}

    #[test]
    fn memory_of_any_size_is_zeroed_aligned_and_writable() {
        for count in [0, 1, 3, 1000, 1 << 15, (1 << 15) + 1] {
            let row: ZeroedArray<Line> = ZeroedArray::new(count);
            assert_eq!(row.len(), count);
            assert_eq!(row.as_ptr() as usize % 64, 0);
            if count * 64 >= HUGE_BYTES {
                assert_eq!(
                    row.extent(),
                    (row.as_ptr() as usize / HUGE_BYTES * HUGE_BYTES, count * 64)
                );
            }
            assert!(row.iter().flat_map(|line| &line.0).all(|it| it.load(Ordering::Relaxed) == 0));
            for line in row.iter() {
                line.0[7].store(u64::MAX, Ordering::Relaxed);
            }
        }
    }
}
