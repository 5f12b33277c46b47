//! A table in the kernel that programs and this process share, from 4 bytes to 4 bytes.
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

// SAFETY: integers without padding; the addresses are those of a key and a value of 4 bytes each,
// as every map here has them, which live throughout the call, the value being writable where it
// is looked up.
unsafe impl Argument for Element {}
