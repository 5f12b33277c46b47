//! Frame memory shared with the kernel (UMEM): chunks of equal size.
//!
//! Invariant: an offset from a ring is converted to bytes only if they are inside one chunk.

#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use os::pages::{self, HUGE_BYTES};

/// The kernel's smallest chunk, which works on every page size.
pub(super) const CHUNK_BYTES_MIN: usize = 2048;

/// The kernel's largest chunk on small pages.
pub(super) const CHUNK_BYTES_MAX: usize = 4096;

/// Bytes before a received frame that the kernel reserves for programs.
pub(super) const HEADROOM: usize = 256;

/// Shared memory, unmapped when its last user is dropped.
pub(super) struct Umem {
    start: NonNull<u8>,
    mapped: usize,
    bytes: usize,
    chunk_bytes: usize,
}

// SAFETY: the memory belongs to the process, not to a thread. At any time the kernel or one queue
// owns a chunk, and only the owner accesses it.
unsafe impl Send for Umem {}
// SAFETY: as above.
unsafe impl Sync for Umem {}

impl Umem {
    /// Allocates `chunks` zeroed chunks of `chunk_bytes` bytes, on huge pages if `huge` and enough
    /// are free.
    pub(super) fn new(chunks: usize, chunk_bytes: usize, huge: bool) -> io::Result<Arc<Self>> {
        assert!(chunk_bytes.is_power_of_two(), "chunk addresses are computed with a mask");
        let bytes = chunks * chunk_bytes;
        let mapped = bytes.next_multiple_of(HUGE_BYTES);
        let of_huge = huge.then(|| map(mapped, libc::MAP_HUGETLB | libc::MAP_HUGE_2MB));
        let start = match of_huge {
            Some(Ok(start)) => start,
            _ => {
                let start = map(mapped, 0)?;
                if huge {
                    pages::advise_huge(start.as_ptr() as usize, mapped);
                }
                start
            }
        };
        // Touched now, because the first access to a page costs microseconds.
        for offset in (0..bytes).step_by(CHUNK_BYTES_MAX) {
            // SAFETY: inside the mapping, which has no other user yet.
            unsafe { start.as_ptr().add(offset).write_volatile(0) };
        }
        Ok(Arc::new(Umem { start, mapped, bytes, chunk_bytes }))
    }

    /// Returns the registration for the kernel.
    pub(super) fn registration(&self) -> libc::xdp_umem_reg {
        libc::xdp_umem_reg {
            addr: self.start.as_ptr() as u64,
            len: self.bytes as u64,
            chunk_size: self.chunk_bytes as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        }
    }

    /// Returns the address of the `length` bytes at `address`, if they are inside one chunk.
    #[inline(always)]
    fn inside(&self, address: u64, length: usize) -> Option<*mut u8> {
        let address = usize::try_from(address).ok().filter(|&address| address < self.bytes)?;
        let offset = address & (self.chunk_bytes - 1);
        if length > self.chunk_bytes - offset {
            return None;
        }
        // SAFETY: below the mapping's length, as checked above.
        Some(unsafe { self.start.as_ptr().add(address) })
    }

    /// Returns the bytes of a received frame, or `None` if they are not inside one chunk.
    ///
    /// # Safety
    /// The chunk must have come from the receive ring and not yet be in the fill ring again.
    #[inline(always)]
    pub(super) unsafe fn received(&self, address: u64, length: usize) -> Option<&[u8]> {
        let start = self.inside(address, length)?;
        // SAFETY: inside the mapping; the caller guarantees that this process owns the chunk.
        Some(unsafe { std::slice::from_raw_parts(start, length) })
    }

    /// Copies a frame to the start of a chunk. Returns false if it is longer than a chunk, or the
    /// chunk is invalid.
    ///
    /// # Safety
    /// The chunk must be free: neither with the kernel nor borrowed by [`Umem::received`].
    #[inline(always)]
    pub(super) unsafe fn fill(&self, chunk: u64, bytes: &[u8]) -> bool {
        let Some(start) = self.inside(chunk, bytes.len()) else { return false };
        // SAFETY: the destination is inside the mapping. No other code accesses a free chunk. The
        // source cannot overlap it, because a free chunk has no borrows.
        unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        true
    }

    /// Reads the number that a program stored before a received frame, and sets it to zero.
    ///
    /// # Safety
    /// As for [`Umem::received`], and no slice of the number's bytes may be borrowed.
    #[inline(always)]
    pub(super) unsafe fn take_before(&self, address: u64) -> Option<u64> {
        let place = self.inside(address.checked_sub(8)?, 8)?.cast::<u64>();
        // SAFETY: inside the mapping; the caller guarantees that this process owns it.
        unsafe {
            let number = place.read_unaligned();
            place.write_unaligned(0);
            Some(number)
        }
    }

    /// Returns the start of the chunk that contains an address.
    #[inline(always)]
    pub(super) fn chunk_of(&self, address: u64) -> u64 {
        address & !(self.chunk_bytes as u64 - 1)
    }

    /// Returns whether a chunk starts at this address.
    #[inline(always)]
    pub(super) fn has(&self, chunk: u64) -> bool {
        self.inside(chunk, self.chunk_bytes).is_some()
    }

    /// Returns the bytes of a chunk.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }
}

fn map(bytes: usize, flags: libc::c_int) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(start.cast()).expect("a mapping never starts at address zero"))
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: the range is the mapped one. No pointer into it remains, because sockets hold the
        // pages themselves.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ranges_within_one_chunk_are_accepted() {
        let umem = Umem::new(3, 2048, false).unwrap();
        let found = |address, length| umem.inside(address, length).is_some();
        for (address, length) in [(0, 2048), (0, 0), (2047, 1), (2048, 2048), (6143, 1), (5000, 9)]
        {
            assert!(found(address, length), "{address}+{length}");
        }
        let outside = [(0, 2049), (2047, 2), (2049, 2048), (6144, 0), (6143, 2), (u64::MAX, 1)];
        for (address, length) in outside {
            assert!(!found(address, length), "{address}+{length}");
        }
        assert_eq!([0, 2047, 2048, 6143].map(|at| umem.chunk_of(at)), [0, 0, 2048, 4096]);
        assert_eq!(
            [0, 4096, 2047, 6144, u64::MAX].map(|at| umem.has(at)),
            [true, true, false, false, false]
        );
    }

    #[test]
    fn written_frames_are_readable_and_a_timestamp_is_read_once() {
        let umem = Umem::new(2, 2048, true).unwrap();
        // SAFETY: there is no kernel and no borrow.
        unsafe {
            assert!(umem.fill(2048, &[7; 2048]));
            assert!(!umem.fill(2048, &[7; 2049]));
            assert!(!umem.fill(4096, &[7]));
            assert_eq!(umem.received(2050, 3), Some(&[7; 3][..]));
            assert_eq!(umem.received(2047, 2), None);
            assert_eq!(umem.take_before(2056), Some(u64::from_ne_bytes([7; 8])));
            assert_eq!(umem.take_before(2056), Some(0));
            assert_eq!(umem.take_before(2050), None, "not all of it is in the previous chunk");
            assert_eq!(umem.take_before(7), None);
        }
    }
}
