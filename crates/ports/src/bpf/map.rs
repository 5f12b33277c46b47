//! A table in the kernel that programs and this process share: from 4 bytes to 4 bytes, or a row of counters.
//!
//! Source: Linux `include/uapi/linux/bpf.h` (`BPF_MAP_CREATE`, `BPF_MAP_UPDATE_ELEM`).

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::call::{self, Argument, Command};

/// What a table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Numbers by place.
    Array = 2,
    /// Interfaces by place, that frames can be sent by.
    Devices = 14,
    /// AF_XDP sockets by place.
    XdpSockets = 17,
}

/// A table.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
}

impl Map {
    /// A table of so many places.
    pub fn new(kind: Kind, entries: u32) -> io::Result<Self> {
        let argument =
            Create { kind: kind as u32, key_bytes: 4, value_bytes: 4, entries, flags: 0 };
        Ok(Map { descriptor: call::open(Command::MapCreate, &argument)? })
    }

    /// Puts a value (a number, or a socket's descriptor) at a place.
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

    /// The number at a place. Sockets cannot be read.
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

    /// By which programs name it.
    pub fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

/// An array that can be mapped.
pub(super) fn create_mappable(entries: u32, value_bytes: u32) -> io::Result<OwnedFd> {
    /// `BPF_F_MMAPABLE`.
    const MAPPABLE: u32 = 1 << 10;
    let kind = Kind::Array as u32;
    let argument = Create { kind, key_bytes: 4, value_bytes, entries, flags: MAPPABLE };
    call::open(Command::MapCreate, &argument)
}

/// A row of counters of 8 bytes, that a program adds to and this process reads together.
#[derive(Debug)]
pub struct Counters {
    map: Map,
    count: usize,
}

impl Counters {
    /// So many counters, all 0.
    pub fn new(count: usize) -> io::Result<Self> {
        let value_bytes = (count.max(1) * 8) as u32;
        let kind = Kind::Array as u32;
        let argument = Create { kind, key_bytes: 4, value_bytes, entries: 1, flags: 0 };
        Ok(Counters { map: Map { descriptor: call::open(Command::MapCreate, &argument)? }, count })
    }

    /// All of them, by one call.
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

    /// By which programs name it.
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

// SAFETY: integers without padding; the addresses are those of a key of 4 bytes and of a value of as
// many as the map was made with, which live throughout the call, the value being writable where it
// is looked up.
unsafe impl Argument for Element {}
