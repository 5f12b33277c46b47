//! Memory that programs and this process share: the only value of an array map that is mapped into
//! memory.
//!
//! Source: Linux `include/uapi/linux/bpf.h` (`BPF_F_MMAPABLE`, since Linux 5.5). Programs get the
//! address by [`Assembly::load_map_value`](crate::Assembly::load_map_value).
//!
//! Both sides may access the memory at any time. They agree by positions, which this process reads
//! and writes as whole words: what was written before a stored word is visible to the reader of
//! this word.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::map;

/// Memory shared with programs.
#[derive(Debug)]
pub struct SharedMemory {
    descriptor: OwnedFd,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to the process, not to a thread. Words are atomic. Bytes are copied by
// raw pointers, and no reference to them exists.
unsafe impl Send for SharedMemory {}

// SAFETY: as above. Two threads that access the same bytes get undefined values at most for these
// bytes, which both sides exclude by positions.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Creates memory of this many bytes, a non-zero multiple of 8, all zero.
    pub fn new(bytes: usize) -> io::Result<Self> {
        assert!(bytes > 0 && bytes.is_multiple_of(8), "memory consists of words");
        let descriptor = map::create_mappable(1, bytes as u32)?;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
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
        Ok(SharedMemory { descriptor, start, bytes })
    }

    /// Returns the word at this offset, a multiple of 8.
    #[inline]
    pub fn word(&self, at: usize) -> u64 {
        self.atomic(at).load(Ordering::Acquire)
    }

    /// Sets the word at this offset, a multiple of 8.
    #[inline]
    pub fn set_word(&self, at: usize, word: u64) {
        self.atomic(at).store(word, Ordering::Release);
    }

    /// Copies bytes to this offset.
    #[inline]
    pub fn write(&self, at: usize, bytes: &[u8]) {
        self.check(at, bytes.len());
        // SAFETY: the range is inside the mapping, and outside of memory that Rust owns.
        unsafe {
            let to = self.start.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    /// Copies bytes from this offset.
    #[inline]
    pub fn read(&self, at: usize, into: &mut [u8]) {
        self.check(at, into.len());
        // SAFETY: as above.
        unsafe {
            let from = self.start.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len());
        }
    }

    /// Returns the map's descriptor, for use in programs.
    pub fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    fn atomic(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8), "words are aligned");
        self.check(at, 8);
        // SAFETY: the word is inside the mapping and aligned, and is accessed only as an atomic.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    #[inline]
    fn check(&self, at: usize, bytes: usize) {
        assert!(bytes <= self.bytes && at <= self.bytes - bytes, "the range is in the memory");
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the range is the mapped one, and no borrow of it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Assembly, Program, Register, Width};

    #[test]
    fn a_program_sees_what_the_process_writes_and_the_process_what_it_stores() {
        let memory = match SharedMemory::new(64) {
            Ok(memory) => memory,
            Err(error) => {
                eprintln!("skipped: cannot create a map: {error}");
                return;
            }
        };
        let mut program = Assembly::new();
        program.load_map_value(Register::R1, memory.descriptor(), 8);
        program.load(Width::Word, Register::R0, Register::R1, 4);
        program.add(Register::R0, 1);
        program.store(Width::Double, Register::R1, 16, Register::R0);
        program.exit();
        let program = Program::load(&program.finish().unwrap(), c"Apache-2.0").unwrap();
        memory.write(12, &7_u32.to_ne_bytes());
        assert_eq!(program.run_once(&[0; 64], 1).unwrap().result, 8);
        assert_eq!((memory.word(24), memory.word(32)), (8, 0));
        memory.set_word(32, u64::MAX);
        let mut bytes = [0; 16];
        memory.read(24, &mut bytes);
        assert_eq!(bytes, [[8, 0, 0, 0, 0, 0, 0, 0], [255; 8]].concat()[..]);
    }

    #[test]
    #[should_panic(expected = "the range is in the memory")]
    fn access_outside_panics() {
        match SharedMemory::new(64) {
            Ok(memory) => memory.write(60, &[0; 5]),
            Err(error) => panic!("skipped, the range is in the memory: {error}"),
        }
    }
}
