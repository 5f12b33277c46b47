//! Feeds any bytes as a vhost-user front end: its messages on the socket, and its writes to
//! correctly configured rings. The port neither panics nor blocks, it returns only valid frames,
//! and it serves the next front end.
//!
//! The first byte selects the mode: even for messages, odd for rings. A message is a request, its
//! number of descriptors and its body; ring input is a list of positions and bytes to write.

#![no_main]

use std::cell::RefCell;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use packet::frame::{Batch, FRAME_BYTES_MAX};
use packet::time::Nanos;
use netio::port::Port;
use netio::vhost::port::VhostPort;
use netio::vhost::spec::Spec;

/// The driver's memory. Driver and front end use the same addresses in it.
const BYTES: usize = 1 << 16;
const BASE: u64 = 1 << 32;
/// Distance between the rings, and offsets of the parts inside a ring.
const RING: u64 = 0x2000;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x1800;
const ENTRIES: u64 = 64;

/// VIRTIO 1, protocol features, frames over several buffers.
const FEATURES: u64 = 1 << 32 | 1 << 30 | 1 << 15;

thread_local! {
    static PORT: RefCell<(VhostPort, PathBuf, u64)> = RefCell::new({
        let path = std::env::temp_dir().join(format!("planimeter-fuzz-{}", std::process::id()));
        (VhostPort::open(&Spec::new(&path)).expect("a socket of its own"), path, 0)
    });
}

struct Front {
    stream: UnixStream,
    file: OwnedFd,
    memory: *mut u8,
}

impl Front {
    fn connect(path: &PathBuf) -> Front {
        let stream = UnixStream::connect(path).expect("the port listens");
        stream.set_nonblocking(true).expect("a socket can");
        // SAFETY: a name that ends in zero, a fresh descriptor, and a fresh mapping of that length.
        let (file, memory) = unsafe {
            let file = libc::memfd_create(c"fuzz".as_ptr(), libc::MFD_CLOEXEC);
            assert_eq!(libc::ftruncate(file, BYTES as libc::off_t), 0);
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let start = libc::mmap(std::ptr::null_mut(), BYTES, rights, libc::MAP_SHARED, file, 0);
            assert_ne!(start, libc::MAP_FAILED);
            (OwnedFd::from_raw_fd(file), start.cast())
        };
        Front { stream, file, memory }
    }

    fn say(&self, request: u32, body: &[u8], beside: &[RawFd]) {
        let mut message = [request, 1, body.len() as u32].map(u32::to_ne_bytes).concat();
        message.extend(body);
        if beside.is_empty() {
            let _ = (&self.stream).write_all(&message);
            return;
        }
        let mut control = [0u64; 16];
        let mut piece =
            libc::iovec { iov_base: message.as_mut_ptr().cast(), iov_len: message.len() };
        // SAFETY: zeros are a value of this struct; its pointers are to live buffers of the lengths
        // beside them, and there is room for as many descriptors.
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
            libc::sendmsg(self.stream.as_raw_fd(), &header, libc::MSG_NOSIGNAL);
        }
    }

    fn say_words(&self, request: u32, words: &[u64], beside: &[RawFd]) {
        self.say(
            request,
            &words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>(),
            beside,
        );
    }

    fn set_up(&self) {
        self.say_words(2, &[FEATURES], &[]);
        self.say_words(5, &[1, BASE, BYTES as u64, BASE, 0], &[self.file.as_raw_fd()]);
        for ring in [0, 1] {
            let at = BASE + ring * RING;
            self.say_words(8, &[ring | ENTRIES << 32], &[]);
            self.say_words(9, &[ring, at, at + USED, at + AVAILABLE, 0], &[]);
            self.say_words(12, &[ring | 1 << 8], &[]);
            self.say_words(18, &[ring | 1 << 32], &[]);
        }
    }

    fn write(&self, place: usize, bytes: &[u8]) {
        for (at, byte) in (place % BYTES..BYTES).zip(bytes) {
            // SAFETY: inside the mapping.
            unsafe { self.memory.add(at).write_volatile(*byte) };
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // SAFETY: the range that was mapped.
        unsafe { libc::munmap(self.memory.cast(), BYTES) };
    }
}

fn use_port(port: &mut VhostPort, now: &mut u64) {
    *now += 2_000_000;
    let now = Nanos(*now);
    let mut batch = Batch::new(64);
    port.receive(&mut batch, now).expect("a peer is no error");
    assert!(batch.frames().iter().all(|frame| (1..=FRAME_BYTES_MAX).contains(&frame.len())));
    batch.push_bytes(&[7; 60]);
    batch.push_bytes(&[7; 3000]);
    port.transmit(&mut batch, now).expect("a peer is no error");
}

fn words(front: &Front, bytes: &[u8]) {
    for word in bytes.chunks(60) {
        let [request, beside, body @ ..] = word else { return };
        let file = front.file.as_raw_fd();
        front.say(u32::from(request % 48), body, &vec![file; usize::from(beside % 10)]);
    }
}

fn rings(front: &Front, port: &mut VhostPort, now: &mut u64, bytes: &[u8]) {
    for piece in bytes.chunks(20) {
        let [low, high, written @ ..] = piece else { return };
        front.write(usize::from(*low) | usize::from(*high) << 8, written);
        use_port(port, now);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    PORT.with_borrow_mut(|(port, path, now)| {
        let front = Front::connect(path);
        if first % 2 == 0 {
            words(&front, rest);
            use_port(port, now);
        } else {
            front.set_up();
            use_port(port, now);
            assert!(port.has_link());
            rings(&front, port, now, rest);
        }
        drop(front);
        // The last message may be incomplete; the port then detects the disconnect.
        use_port(port, now);
        use_port(port, now);
        assert!(!port.has_link());
    });
});
