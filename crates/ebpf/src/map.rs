//! A kernel map that programs and this process share: 4-byte keys to 4-byte values, or an array of
//! counters.
//!
//! Source: Linux `include/uapi/linux/bpf.h` (`BPF_MAP_CREATE`, `BPF_MAP_UPDATE_ELEM`).

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::call::{self, Argument, Command};

/// Type of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum MapKind {
    /// Array of numbers.
    Array = 2,
    /// Interfaces by index, to which frames can be redirected.
    Devices = 14,
    /// AF_XDP sockets by index.
    XdpSockets = 17,
}

/// A map.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
}

impl Map {
    /// Creates a map with this many entries.
    pub fn new(kind: MapKind, entries: u32) -> io::Result<Self> {
        let argument =
            Create { kind: kind as u32, key_bytes: 4, value_bytes: 4, entries, flags: 0 };
        Ok(Map { descriptor: call::open(Command::MapCreate, &argument)? })
    }

    /// Sets the entry at `place` to a value (a number, or a socket's descriptor).
    pub fn put(&self, place: u32, value: u32) -> io::Result<()> {
        let argument = Element {
            map: self.descriptor.as_raw_fd() as u32,
            padding: 0,
            key: std::ptr::from_ref(&place) as u64,
            value: std::ptr::from_ref(&value) as u64,
            flags: 0,
        };
        call::call(Command::MapUpdate, &argument).map(drop)
    }

    /// Returns the number at `place`. Sockets cannot be read.
    pub fn get(&self, place: u32) -> io::Result<u32> {
        let mut value = 0_u32;
        let argument = Element {
            map: self.descriptor.as_raw_fd() as u32,
            padding: 0,
            key: std::ptr::from_ref(&place) as u64,
            value: std::ptr::from_mut(&mut value) as u64,
            flags: 0,
        };
        call::call(Command::MapLookUp, &argument)?;
        // SAFETY: the kernel wrote the value through the pointer, which the compiler cannot see.
        Ok(unsafe { std::ptr::read_volatile(&value) })
    }

    /// Returns the map's descriptor, for use in programs.
    pub fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

/// Creates an array map that can be mapped into memory.
pub(super) fn create_mappable(entries: u32, value_bytes: u32) -> io::Result<OwnedFd> {
    /// `BPF_F_MMAPABLE`.
    const MAPPABLE: u32 = 1 << 10;
    let kind = MapKind::Array as u32;
    let argument = Create { kind, key_bytes: 4, value_bytes, entries, flags: MAPPABLE };
    call::open(Command::MapCreate, &argument)
}

/// An array of 8-byte counters that a program increments and this process reads together.
#[derive(Debug)]
pub struct Counters {
    map: Map,
    count: usize,
}

impl Counters {
    /// Creates this many counters, all 0.
    pub fn new(count: usize) -> io::Result<Self> {
        let value_bytes = (count.max(1) * 8) as u32;
        let kind = MapKind::Array as u32;
        let argument = Create { kind, key_bytes: 4, value_bytes, entries: 1, flags: 0 };
        Ok(Counters { map: Map { descriptor: call::open(Command::MapCreate, &argument)? }, count })
    }

    /// Reads all counters with one call.
    pub fn read(&self) -> io::Result<Vec<u64>> {
        let (key, mut values) = (0_u32, vec![0_u64; self.count.max(1)]);
        let argument = Element {
            map: self.map.descriptor() as u32,
            padding: 0,
            key: std::ptr::from_ref(&key) as u64,
            value: values.as_mut_ptr() as u64,
            flags: 0,
        };
        call::call(Command::MapLookUp, &argument)?;
        values.truncate(self.count);
        Ok(values)
    }

    /// Returns the map's descriptor, for use in programs.
    pub fn descriptor(&self) -> RawFd {
        self.map.descriptor()
    }
}

#[repr(C)]
struct Create {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

// SAFETY: five integers of 4 bytes, none of them an address.
unsafe impl Argument for Create {}

#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

// SAFETY: integers without padding. The addresses are those of a 4-byte key and of a value of the
// map's value size, which live throughout the call. The value is writable for lookups.
unsafe impl Argument for Element {}
