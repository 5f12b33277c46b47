//! Prefetch instructions.
//!
//! A prefetch only affects when a cache line is loaded. On processors without a known instruction,
//! it does nothing.

#![allow(unsafe_code)]

/// Prefetches the cache line in which `what` begins.
#[inline(always)]
pub fn read<T: ?Sized>(what: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch accesses nothing, for any address; every x86-64 has SSE.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(what).cast()) };
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    let _ = what;
}
