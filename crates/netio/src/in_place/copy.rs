//! Copies from memory that another process may be writing.
//!
//! The compiler may read ordinary memory twice where the program reads once. That is wrong for
//! memory that a peer can change in between. So shared bytes are loaded by instructions that the
//! compiler can neither repeat nor omit, sixteen bytes at a time. From then on they are ordinary
//! values. There is no guarantee which of several versions of a byte is read, only that it is read
//! once.

#![allow(unsafe_code)]

/// Copies `count` bytes.
///
/// # Safety
/// `count` bytes from `from` must be readable and `count` bytes from `to` writable, and the two
/// ranges must not overlap. Other processes may write to either at the same time.
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, count: usize) {
    // SAFETY: each arm moves whole pieces that are inside the `count` bytes on both sides; pieces
    // may overlap each other.
    unsafe {
        if count > 64 {
            let mut at = 0;
            while at + 64 < count {
                move_64(from.add(at), to.add(at));
                at += 64;
            }
            move_64(from.add(count - 64), to.add(count - 64));
        } else if count > 32 {
            move_32(from, to);
            move_32(from.add(count - 32), to.add(count - 32));
        } else if count >= 16 {
            move_16(from, to);
            move_16(from.add(count - 16), to.add(count - 16));
        } else {
            copy_short(from, to, count);
        }
    }
}

/// Copies fewer than 16 bytes.
///
/// # Safety
/// As [`copy`].
unsafe fn copy_short(from: *const u8, to: *mut u8, count: usize) {
    for place in 0..count {
        // SAFETY: the place is inside both ranges.
        unsafe { to.add(place).write(from.add(place).read_volatile()) };
    }
}

#[cfg(target_arch = "x86_64")]
mod pieces {
    use std::arch::asm;
    use std::arch::x86_64::{__m128i, _mm_storeu_si128};

    /// # Safety
    /// As [`super::copy`], with 16 bytes.
    #[inline(always)]
    pub unsafe fn move_16(from: *const u8, to: *mut u8) {
        let value: __m128i;
        // SAFETY: the instruction only reads 16 readable bytes. The store is to 16 writable bytes
        // and needs no alignment.
        unsafe {
            asm!(
                "movdqu {value}, [{from}]",
                value = out(xmm_reg) value,
                from = in(reg) from,
                options(nostack, preserves_flags, readonly),
            );
            _mm_storeu_si128(to.cast(), value);
        }
    }

    /// # Safety
    /// As [`super::copy`], with 32 bytes.
    #[inline(always)]
    pub unsafe fn move_32(from: *const u8, to: *mut u8) {
        let (first, second): (__m128i, __m128i);
        // SAFETY: as in `move_16`, for two adjacent pieces.
        unsafe {
            asm!(
                "movdqu {first}, [{from}]",
                "movdqu {second}, [{from} + 16]",
                first = out(xmm_reg) first,
                second = out(xmm_reg) second,
                from = in(reg) from,
                options(nostack, preserves_flags, readonly),
            );
            _mm_storeu_si128(to.cast(), first);
            _mm_storeu_si128(to.add(16).cast(), second);
        }
    }

    /// # Safety
    /// As [`super::copy`], with 64 bytes.
    #[inline(always)]
    pub unsafe fn move_64(from: *const u8, to: *mut u8) {
        let (first, second, third, fourth): (__m128i, __m128i, __m128i, __m128i);
        // SAFETY: as in `move_16`, for four adjacent pieces.
        unsafe {
            asm!(
                "movdqu {first}, [{from}]",
                "movdqu {second}, [{from} + 16]",
                "movdqu {third}, [{from} + 32]",
                "movdqu {fourth}, [{from} + 48]",
                first = out(xmm_reg) first,
                second = out(xmm_reg) second,
                third = out(xmm_reg) third,
                fourth = out(xmm_reg) fourth,
                from = in(reg) from,
                options(nostack, preserves_flags, readonly),
            );
            _mm_storeu_si128(to.cast(), first);
            _mm_storeu_si128(to.add(16).cast(), second);
            _mm_storeu_si128(to.add(32).cast(), third);
            _mm_storeu_si128(to.add(48).cast(), fourth);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod pieces {
    /// # Safety
    /// As [`super::copy`], with `N` bytes.
    #[inline(always)]
    unsafe fn move_bytes<const N: usize>(from: *const u8, to: *mut u8) {
        for place in 0..N {
            // SAFETY: the place is inside both ranges.
            unsafe { to.add(place).write(from.add(place).read_volatile()) };
        }
    }

    /// # Safety
    /// As [`super::copy`], with 16 bytes.
    #[inline(always)]
    pub unsafe fn move_16(from: *const u8, to: *mut u8) {
        // SAFETY: the caller's guarantee.
        unsafe { move_bytes::<16>(from, to) }
    }

    /// # Safety
    /// As [`super::copy`], with 32 bytes.
    #[inline(always)]
    pub unsafe fn move_32(from: *const u8, to: *mut u8) {
        // SAFETY: the caller's guarantee.
        unsafe { move_bytes::<32>(from, to) }
    }

    /// # Safety
    /// As [`super::copy`], with 64 bytes.
    #[inline(always)]
    pub unsafe fn move_64(from: *const u8, to: *mut u8) {
        // SAFETY: the caller's guarantee.
        unsafe { move_bytes::<64>(from, to) }
    }
}

use pieces::{move_16, move_32, move_64};

/// Prefetches the cache line at `address`. Any address is allowed.
#[inline(always)]
pub fn will_read(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults and changes no memory, for any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_exactly() {
        let from: Vec<u8> = (0..400u32).map(|n| (n * 7 + 1) as u8).collect();
        for count in (0..200).chain([255, 256, 257, 320, 383]) {
            for start in [0, 1, 15] {
                let mut to = vec![0xee; 420];
                // SAFETY: both ranges are inside their vectors.
                unsafe { copy(from[start..].as_ptr(), to[3..].as_mut_ptr(), count) };
                assert_eq!(&to[3..3 + count], &from[start..start + count], "{count} at {start}");
                assert!(to[..3].iter().chain(&to[3 + count..]).all(|&byte| byte == 0xee));
            }
        }
    }
}
