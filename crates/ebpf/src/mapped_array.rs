//! An array map that this process has mapped into memory: programs read what it writes there,
//! without a system call.
//!
//! Source: Linux `include/uapi/linux/bpf.h` (`BPF_F_MMAPABLE`, since Linux 5.5). Values are
//! contiguous, each at a multiple of 8 bytes.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::map;

/// A mapped array of values of equal size.
#[derive(Debug)]
pub struct MappedArray {
    descriptor: OwnedFd,
    start: NonNull<u8>,
    value_bytes: usize,
    values: usize,
}

// SAFETY: the memory belongs to the process, not to a thread, and is written only through `&mut` or
// by atomics.
unsafe impl Send for MappedArray {}
// SAFETY: as above.
unsafe impl Sync for MappedArray {}

impl MappedArray {
    /// Creates `values` values of `value_bytes` bytes, a non-zero multiple of 8, all zero.
    pub fn new(values: usize, value_bytes: usize) -> io::Result<Self> {
        assert!(
            values > 0 && value_bytes > 0 && value_bytes.is_multiple_of(8),
            "values are aligned"
        );
        let descriptor = map::create_mappable(values as u32, value_bytes as u32)?;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                values * value_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                descriptor.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("a mapping never starts at address zero");
        Ok(MappedArray { descriptor, start, value_bytes, values })
    }

    /// Returns the value at `place` for writing. Programs that run at the same time see it change.
    pub fn value_mut(&mut self, place: usize) -> &mut [u8] {
        assert!(place < self.values, "the index is within the map");
        // SAFETY: inside the mapping. Only programs that this process runs also read it, and they
        // do so while the process waits for them.
        unsafe {
            let start = self.start.as_ptr().add(place * self.value_bytes);
            std::slice::from_raw_parts_mut(start, self.value_bytes)
        }
    }

    /// Returns the first word of the value at `place`, which programs may change.
    pub fn word(&self, place: usize) -> u32 {
        self.word_at(place * self.value_bytes).load(Ordering::Acquire)
    }

    /// Returns the word at this offset in the map, which programs may read and change.
    ///
    /// # Panics
    /// If the offset is outside, or not a multiple of 4.
    pub fn word_at(&self, byte: usize) -> &AtomicU32 {
        assert!(byte.is_multiple_of(4) && byte + 4 <= self.bytes(), "the word is within the map");
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(byte).cast()) }
    }

    /// Returns the 8-byte number at this offset in the map, which programs may read and change.
    ///
    /// # Panics
    /// If the offset is outside, or not a multiple of 8.
    pub fn double_at(&self, byte: usize) -> &AtomicU64 {
        assert!(byte.is_multiple_of(8) && byte + 8 <= self.bytes(), "the number is within the map");
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(byte).cast()) }
    }

    fn bytes(&self) -> usize {
        self.values * self.value_bytes
    }

    /// Returns the map's descriptor, for use in programs.
    pub fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

impl Drop for MappedArray {
    fn drop(&mut self) {
        // SAFETY: the range is the mapped one, and no borrow of it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes()) };
    }
}
