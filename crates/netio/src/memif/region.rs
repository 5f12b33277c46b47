//! Memory shared by two processes: a mapped memory file.
//!
//! Access to a mapping beyond the end of its file kills the process, and the peer owns the file.
//! Therefore:
//! - A peer's region is accepted only if its file is sealed against shrinking (`F_SEAL_SHRINK`;
//!   every implementation seals its own). It must be at least as long as the message states. Once
//!   checked, this stays true. A check of the size before each use would cost a system call and
//!   still come too late.
//! - Seals also prove that the file is memory, not a file of a file system whose owner controls
//!   when reads complete.
//! - A peer can punch a hole into a sealed file. With huge pages, an access to the hole fails if no
//!   free huge page is left. (Small pages read as zeros.) So regions of huge pages are accepted
//!   only from our own user or root, who could kill this process anyway.
//! - vhost-user peers do not seal their memory. Such a region is guarded instead
//!   (`sigbus_guard`): truncated memory reads as zeros, and [`Region::is_broken`] reports it.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use os::pages::HUGE_BYTES;
use os::sys;

use super::fault::Fault;
use crate::sigbus_guard::Guard;

/// Bytes of a small page.
const PAGE_BYTES: usize = 4096;

/// `fstatfs` type of a file of huge pages (`linux/magic.h`).
const HUGETLBFS_MAGIC: libc::c_long = 0x9584_58f6;

/// `fstatfs` type of a memory file (`linux/magic.h`).
const TMPFS_MAGIC: libc::c_long = 0x0102_1994;

/// Regions of one connection, by index. They stay mapped until the last end that uses them is
/// dropped.
pub type Regions = Arc<[Region]>;

/// Shared memory, unmapped when dropped.
///
/// Every frame reads its address, so it is on its own cache line that is never written.
#[repr(align(128))]
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
    mapped: usize,
    /// Dropped before the mapping.
    guard: Option<Guard>,
}

// SAFETY: the memory belongs to the process, not to a thread. All access to it is through raw
// pointers and atomics that tolerate other writers.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Creates a region of at least `bytes` zero bytes, on huge pages if `huge` and enough are
    /// free.
    ///
    /// The size of its file is sealed.
    pub fn create(bytes: usize, huge: bool) -> io::Result<(Region, OwnedFd)> {
        if huge {
            let flags = libc::MFD_HUGETLB | libc::MFD_HUGE_2MB;
            if let Ok(made) = Region::create_of(bytes.next_multiple_of(HUGE_BYTES), flags) {
                return Ok(made);
            }
        }
        Region::create_of(bytes.next_multiple_of(PAGE_BYTES), 0)
    }

    fn create_of(bytes: usize, flags: libc::c_uint) -> io::Result<(Region, OwnedFd)> {
        let flags = flags | libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name ends in zero, and this process alone owns the returned descriptor.
        let file = unsafe {
            OwnedFd::from_raw_fd(sys::check(libc::memfd_create(c"memif".as_ptr(), flags))?)
        };
        // SAFETY: no pointers are passed.
        sys::check(unsafe { libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t) })?;
        let region = Region::map_file(&file, bytes, bytes, libc::MAP_POPULATE)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: no pointers are passed.
        sys::check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
        Ok((region, file))
    }

    /// Maps `bytes` bytes of a peer's file; `is_trusted` means that the peer could harm this
    /// process anyway.
    pub fn map(file: &OwnedFd, bytes: u64, is_trusted: bool) -> Result<Region, Fault> {
        // SAFETY: no pointers are passed.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            return Err(Fault::RegionUnsealed);
        }
        let is_huge = kind_of(file).ok_or(Fault::RegionMapping)? == HUGETLBFS_MAGIC;
        if is_huge && !is_trusted {
            return Err(Fault::RegionHuge);
        }
        // Checked for seals first, then measured: from now on the file cannot shrink.
        Region::map_measured(file, bytes, is_huge)
    }

    /// Maps `bytes` bytes of a peer's file that may be truncated at any time; it then reads as
    /// zeros.
    ///
    /// The file must be memory, because the owner of another file could control when reads
    /// complete.
    pub fn map_guarded(file: &OwnedFd, bytes: u64) -> Result<Region, Fault> {
        let kind = kind_of(file).ok_or(Fault::RegionMapping)?;
        if kind != TMPFS_MAGIC && kind != HUGETLBFS_MAGIC {
            return Err(Fault::RegionMapping);
        }
        let mut region = Region::map_measured(file, bytes, kind == HUGETLBFS_MAGIC)?;
        // SAFETY: the range is the whole new mapping, in whole pages of its kind. Its bytes are
        // always treated as writable by another process. It is unmapped after its guard is dropped.
        let guard = unsafe { Guard::new(region.start.as_ptr(), region.mapped) };
        region.guard = Some(guard.ok_or(Fault::RegionMapping)?);
        Ok(region)
    }

    /// Returns whether a guarded region was truncated, so that recently read data may be invalid.
    #[inline]
    pub fn is_broken(&self) -> bool {
        self.guard.as_ref().is_some_and(Guard::is_broken)
    }

    fn map_measured(file: &OwnedFd, bytes: u64, is_huge: bool) -> Result<Region, Fault> {
        let size = size_of_file(file).ok_or(Fault::RegionMapping)?;
        let bytes = usize::try_from(bytes).map_err(|_| Fault::RegionSize)?;
        if bytes == 0 || bytes as u64 > size {
            return Err(Fault::RegionSize);
        }
        let page = if is_huge { HUGE_BYTES } else { PAGE_BYTES };
        let mapped = bytes.checked_next_multiple_of(page).ok_or(Fault::RegionSize)?;
        Region::map_file(file, bytes, mapped, 0).map_err(|_| Fault::RegionMapping)
    }

    fn map_file(
        file: &OwnedFd,
        bytes: usize,
        mapped: usize,
        flags: libc::c_int,
    ) -> io::Result<Region> {
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | flags,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("a mapping never starts at address zero");
        Ok(Region { start, bytes, mapped, guard: None })
    }

    /// Returns the region's bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the address at `offset` in the region, if `length` bytes from there are inside it.
    #[inline(always)]
    pub fn at(&self, offset: usize, length: usize) -> Option<*mut u8> {
        let end = offset.checked_add(length)?;
        // SAFETY: the offset is inside the mapping, as checked above.
        (end <= self.bytes).then(|| unsafe { self.start.as_ptr().add(offset) })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.guard = None;
        // SAFETY: the range is the mapped one. Owners of pointers into it also held the `Regions`,
        // which is dropped last.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

/// Returns the file system type of a file.
fn kind_of(file: &OwnedFd) -> Option<libc::c_long> {
    let mut status = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the pointer is to a statfs, for which all-zero bytes are a value, and which the call
    // fills.
    let status = unsafe {
        sys::check(libc::fstatfs(file.as_raw_fd(), status.as_mut_ptr())).ok()?;
        status.assume_init()
    };
    Some(status.f_type as libc::c_long)
}

fn size_of_file(file: &OwnedFd) -> Option<u64> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the pointer is to a stat, for which all-zero bytes are a value, and which the call
    // fills.
    let status = unsafe {
        sys::check(libc::fstat(file.as_raw_fd(), status.as_mut_ptr())).ok()?;
        status.assume_init()
    };
    u64::try_from(status.st_size).ok()
}

#[cfg(test)]
mod tests;
