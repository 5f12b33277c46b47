//! A front end and driver for tests, which can send both valid and invalid messages and data.

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use os::sys;

use crate::memif::doorbell::Doorbell;

/// Size of the driver's memory, and its address for the front end and for the driver.
pub const BYTES: usize = 4 << 20;
pub const USER: u64 = 0x7000_0000_0000;
pub const GUEST: u64 = 0x1_0000_0000;

/// Entries of each ring, and offsets of its parts.
pub const ENTRIES: u16 = 256;
const RING_STRIDE: u64 = 0x4000;
const AVAILABLE_AT: u64 = 0x1000;
const USED_AT: u64 = 0x2000;

/// Offset of the buffers: those of a ring's descriptors, by number.
pub const BUFFERS_AT: u64 = 1 << 20;
pub const BUFFER_BYTES: u64 = 2048;

/// Requests (vhost-user protocol, "Front-end message types").
pub const GET_FEATURES: u32 = 1;
pub const SET_FEATURES: u32 = 2;
pub const SET_OWNER: u32 = 3;
pub const SET_MEM_TABLE: u32 = 5;
pub const SET_NUM: u32 = 8;
pub const SET_ADDRESS: u32 = 9;
pub const SET_BASE: u32 = 10;
pub const GET_BASE: u32 = 11;
pub const SET_KICK: u32 = 12;
pub const SET_CALL: u32 = 13;
pub const GET_PROTOCOL_FEATURES: u32 = 15;
pub const SET_PROTOCOL_FEATURES: u32 = 16;
pub const GET_QUEUE_NUM: u32 = 17;
pub const SET_ENABLE: u32 = 18;

/// Feature bits.
pub const VERSION_1: u64 = 1 << 32;
pub const PROTOCOL: u64 = 1 << 30;
pub const MERGE: u64 = 1 << 15;

pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;

/// Fields of a descriptor: address, length, flags and next.
pub type Words = (u64, u32, u16, u16);

/// A front end with its memory.
pub struct Front {
    pub stream: UnixStream,
    pub file: OwnedFd,
    start: *mut u8,
    pub kicks: [Doorbell; 2],
    pub calls: [Doorbell; 2],
    available: [u16; 2],
    seen: [u16; 2],
}

// SAFETY: one thread at a time uses its memory.
unsafe impl Send for Front {}

pub fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("planimeter-vhost-{}-{name}", std::process::id()))
}

/// Creates a memory file that its owner can truncate.
pub fn memory_file(bytes: usize) -> OwnedFd {
    // SAFETY: the name ends in zero, this process alone owns the descriptor, and there are no other
    // pointers.
    unsafe {
        let file = sys::check(libc::memfd_create(c"front".as_ptr(), libc::MFD_CLOEXEC)).unwrap();
        sys::check(libc::ftruncate(file, bytes as libc::off_t)).unwrap();
        OwnedFd::from_raw_fd(file)
    }
}

pub fn shorten(file: &OwnedFd, bytes: usize) {
    // SAFETY: no pointers are passed.
    sys::check(unsafe { libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t) }).unwrap();
}

impl Front {
    /// Creates a front end with its own memory, before any message.
    pub fn new(stream: UnixStream) -> Front {
        let file = memory_file(BYTES);
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of a file of this length.
        let start = unsafe {
            let null = std::ptr::null_mut();
            libc::mmap(null, BYTES, rights, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        let bells = || [Doorbell::create().unwrap(), Doorbell::create().unwrap()];
        let (kicks, calls) = (bells(), bells());
        let start = start.cast();
        Front { stream, file, start, kicks, calls, available: [0; 2], seen: [0; 2] }
    }

    pub fn connect(path: &std::path::Path) -> Front {
        Front::new(UnixStream::connect(path).unwrap())
    }

    /// Sends a message with descriptors. Returns an error if the connection is closed.
    pub fn try_say(&self, request: u32, body: &[u8], beside: &[RawFd]) -> std::io::Result<()> {
        let mut message = Vec::new();
        message.extend(request.to_ne_bytes());
        message.extend(1u32.to_ne_bytes());
        message.extend((body.len() as u32).to_ne_bytes());
        message.extend(body);
        if beside.is_empty() {
            return (&self.stream).write_all(&message);
        }
        let mut control = [0u64; 16];
        let mut piece =
            libc::iovec { iov_base: message.as_mut_ptr().cast(), iov_len: message.len() };
        // SAFETY: all-zero bytes are a value of this C struct. Its pointers are to live buffers
        // with the given lengths, and the control buffer has room for eight descriptors.
        unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            (header.msg_iov, header.msg_iovlen) = (&mut piece, 1);
            header.msg_control = control.as_mut_ptr().cast();
            let bytes = size_of_val(beside) as u32;
            header.msg_controllen = libc::CMSG_SPACE(bytes) as usize;
            let first = libc::CMSG_FIRSTHDR(&header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(bytes) as usize;
            for (place, descriptor) in beside.iter().enumerate() {
                libc::CMSG_DATA(first).cast::<RawFd>().add(place).write_unaligned(*descriptor);
            }
            let flags = libc::MSG_NOSIGNAL;
            let sent = libc::sendmsg(self.stream.as_raw_fd(), &header, flags);
            if sent < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
        }
    }

    pub fn say(&self, request: u32, words: &[u64], beside: &[RawFd]) {
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        // The port closes the connection after a fault.
        let _ = self.try_say(request, &body, beside);
    }

    /// Sends a message about one ring: its number and a value.
    pub fn say_ring(&self, request: u32, ring: u32, value: u32) {
        self.say(request, &[u64::from(ring) | u64::from(value) << 32], &[]);
    }

    /// Reads the value of the waiting reply.
    pub fn answer(&mut self) -> u64 {
        let mut message = [0; 20];
        self.stream.read_exact(&mut message).unwrap();
        u64::from_ne_bytes(message[12..].try_into().unwrap())
    }

    /// Sends the memory table with these regions: first address of driver and front end, bytes,
    /// offset in the file.
    pub fn say_memory(&self, regions: &[[u64; 4]]) {
        let mut words = vec![regions.len() as u64];
        for &[guest, user, bytes, offset] in regions {
            words.extend([guest, bytes, user, offset]);
        }
        self.say(SET_MEM_TABLE, &words, &vec![self.file.as_raw_fd(); regions.len()]);
    }

    /// Sends all messages before those of the rings.
    pub fn greet(&self, features: u64) {
        self.say(SET_OWNER, &[], &[]);
        self.say(SET_FEATURES, &[features], &[]);
        self.say_memory(&[[GUEST, USER, BYTES as u64, 0]]);
    }

    /// Places a ring, and starts it.
    pub fn start(&self, ring: u32) {
        self.say_ring(SET_NUM, ring, ENTRIES.into());
        let at = USER + u64::from(ring) * RING_STRIDE;
        self.place(ring, [at, at + USED_AT, at + AVAILABLE_AT]);
        self.say_ring(SET_BASE, ring, 0);
        self.go(ring);
    }

    /// Sends the addresses of a ring's descriptor table, used and available ring.
    pub fn place(&self, ring: u32, [descriptors, used, available]: [u64; 3]) {
        self.say(SET_ADDRESS, &[u64::from(ring), descriptors, used, available, 0], &[]);
    }

    /// Sends the eventfds of a ring, which starts it, and enables it.
    pub fn go(&self, ring: u32) {
        let bell = |bells: &[Doorbell; 2]| bells[ring as usize % 2].descriptor();
        self.say(SET_CALL, &[ring.into()], &[bell(&self.calls)]);
        self.say(SET_KICK, &[ring.into()], &[bell(&self.kicks)]);
        self.say_ring(SET_ENABLE, ring, 1);
    }

    /// Sends the complete setup, like a correct front end.
    pub fn set_up(&self, features: u64) {
        self.greet(features);
        self.start(0);
        self.start(1);
    }

    /// Writes bytes of its memory.
    pub fn write(&self, at: u64, bytes: &[u8]) {
        assert!(at as usize + bytes.len() <= BYTES);
        // SAFETY: inside the mapping; concurrent readers tolerate the write.
        unsafe {
            let to = self.start.add(at as usize);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    pub fn read(&self, at: u64, bytes: usize) -> Vec<u8> {
        assert!(at as usize + bytes <= BYTES);
        let mut copy = vec![0; bytes];
        // SAFETY: inside the mapping; concurrent writers are tolerated.
        unsafe {
            let from = self.start.add(at as usize);
            std::ptr::copy_nonoverlapping(from, copy.as_mut_ptr(), bytes);
        }
        copy
    }

    fn half(&self, at: u64) -> &AtomicU16 {
        // SAFETY: inside the mapping, and even.
        unsafe { &*self.start.add(at as usize).cast() }
    }

    fn word(&self, at: u64) -> &AtomicU32 {
        // SAFETY: inside the mapping, and a multiple of four.
        unsafe { &*self.start.add(at as usize).cast() }
    }

    /// Returns the offset of the buffer of a ring's descriptor in the memory.
    pub fn buffer(ring: u64, number: u16) -> u64 {
        BUFFERS_AT + ring * (1 << 20) + u64::from(number) * BUFFER_BYTES
    }

    /// Writes a descriptor: the buffer's driver address, its length, flags, and the next
    /// descriptor.
    pub fn describe(&self, ring: u64, number: u16, what: Words) {
        let (address, length, flags, next) = what;
        let at = ring * RING_STRIDE + u64::from(number) * 16;
        self.write(at, &address.to_le_bytes());
        self.write(at + 8, &length.to_le_bytes());
        self.write(at + 12, &flags.to_le_bytes());
        self.write(at + 14, &next.to_le_bytes());
    }

    /// Makes a chain available.
    pub fn offer(&mut self, ring: u64, head: u16) {
        let slot = u64::from(self.available[ring as usize] % ENTRIES);
        let row = ring * RING_STRIDE + AVAILABLE_AT;
        self.half(row + 4 + 2 * slot).store(head, Ordering::Relaxed);
        self.available[ring as usize] = self.available[ring as usize].wrapping_add(1);
        self.jump(ring, self.available[ring as usize]);
    }

    /// Sets the available index.
    pub fn jump(&self, ring: u64, index: u16) {
        self.half(ring * RING_STRIDE + AVAILABLE_AT + 2).store(index, Ordering::Release);
    }

    /// Returns the used entries since the last call: chains, and the bytes written.
    pub fn used(&mut self, ring: u64) -> Vec<(u16, u32)> {
        let row = ring * RING_STRIDE + USED_AT;
        let index = self.half(row + 2).load(Ordering::Acquire);
        let mut used = Vec::new();
        while self.seen[ring as usize] != index {
            let slot = row + 4 + 8 * u64::from(self.seen[ring as usize] % ENTRIES);
            let [head, bytes] = [slot, slot + 4].map(|at| self.word(at).load(Ordering::Relaxed));
            used.push((head as u16, bytes));
            self.seen[ring as usize] = self.seen[ring as usize].wrapping_add(1);
        }
        used
    }

    /// Returns whether the device disabled kicks.
    pub fn is_not_to_kick(&self, ring: u64) -> bool {
        self.half(ring * RING_STRIDE + USED_AT).load(Ordering::Relaxed) == 1
    }

    /// Sets whether the driver disables interrupts.
    pub fn want_no_calls(&self, ring: u64, no: bool) {
        self.half(ring * RING_STRIDE + AVAILABLE_AT).store(no.into(), Ordering::Relaxed);
    }

    /// Sends a frame in the buffer of descriptor `number`.
    pub fn send(&mut self, number: u16, frame: &[u8]) {
        let at = Front::buffer(1, number);
        self.write(at, &[0; 12]);
        self.write(at + 12, frame);
        self.describe(1, number, (GUEST + at, 12 + frame.len() as u32, 0, 0));
        self.offer(1, number);
    }

    /// Provides the empty buffer of descriptor `number`.
    pub fn lend(&mut self, number: u16) {
        self.describe(0, number, (GUEST + Front::buffer(0, number), BUFFER_BYTES as u32, WRITE, 0));
        self.offer(0, number);
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // SAFETY: the range is the mapped one, and no pointer into it remains.
        unsafe { libc::munmap(self.start.cast(), BYTES) };
    }
}
