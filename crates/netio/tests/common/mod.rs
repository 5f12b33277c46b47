//! Network namespaces and frames for tests of ports on real interfaces.

#![allow(unsafe_code, dead_code)]
#![allow(clippy::unwrap_used)]

use std::process::Command;

use netio::port::{Port, PortError};
use os::clock::{self, WaitSet};
use packet::frame::Batch;
use packet::time::Nanos;

pub const PATIENCE: Nanos = Nanos::from_secs(10);

/// Runs `test` in a thread with a new network namespace.
///
/// If none can be created, prints the requirement and skips the test, except as root with `CI` set.
pub fn in_namespace(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(|| {
        // SAFETY: only this thread, which ends with the test, moves to a new namespace.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            let why = std::io::Error::last_os_error();
            assert!(!may_not_skip(), "need: a network namespace: {why}");
            println!("skipped; need: root with CAP_SYS_ADMIN, for a network namespace: {why}");
            return;
        }
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        ip("link set lo up");
        test();
    });
    if let Err(failure) = thread.join() {
        std::panic::resume_unwind(failure);
    }
}

#[allow(clippy::disallowed_methods)]
pub fn may_not_skip() -> bool {
    // SAFETY: the query of the user id has no preconditions.
    std::env::var_os("CI").is_some() && unsafe { libc::geteuid() } == 0
}

/// Runs `ip` in this thread's namespace.
pub fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {:?}", output);
}

/// Creates a pair of linked interfaces `left` and `right`, up.
pub fn veth() {
    ip("link add left type veth peer name right");
    ip("link set left up");
    ip("link set right up");
}

/// Sends all frames.
pub fn send(port: &mut impl Port, frames: &[Vec<u8>]) {
    let mut batch = Batch::new(frames.len());
    frames.iter().for_each(|bytes| assert!(batch.push_bytes(bytes)));
    while !batch.is_empty() {
        let gone = port.transmit(&mut batch, clock::now()).unwrap();
        batch.drop_front(gone);
    }
}

/// Receives until `count` frames satisfy `wanted`, and returns those frames.
pub fn collect(port: &mut impl Port, count: usize, wanted: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut batch = Batch::new(7);
    let deadline = clock::now() + PATIENCE;
    while frames.len() < count {
        batch.clear();
        if port.receive(&mut batch, clock::now()).unwrap() == 0 {
            let mut wait = WaitSet::new();
            wait.add(port.descriptor().unwrap(), false);
            let ready = wait.until(Some(deadline)).unwrap();
            let lengths: Vec<_> = frames.iter().map(Vec::len).collect();
            assert!(ready > 0, "of {count} frames, those of {lengths:?} bytes arrived");
        }
        let bytes = batch.frames().iter().map(|frame| frame.bytes());
        frames.extend(bytes.filter(|bytes| wanted(bytes)).map(<[u8]>::to_vec));
    }
    frames
}

/// Returns whether the test sent the frame: its source address starts with 02.
pub fn ours(bytes: &[u8]) -> bool {
    bytes[6] == 2
}

/// Builds a test frame with these bytes after the addresses.
pub fn frame(after_addresses: &[u8], payload: usize) -> Vec<u8> {
    let mut bytes = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1];
    bytes.extend(after_addresses);
    bytes.extend((0..payload).map(|n| n as u8));
    bytes
}

/// Builds a test frame that contains its number.
pub fn numbered(number: u32) -> Vec<u8> {
    let mut bytes = frame(&[0x88, 0xb5], 0);
    bytes.extend(number.to_be_bytes());
    bytes.resize(60, 0);
    bytes
}

pub fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[14..18].try_into().unwrap())
}

/// Returns the ones' complement sum of RFC 1071 over big-endian words.
pub fn sum(bytes: &[u8], start: u32) -> u16 {
    let mut sum = start;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Checks the TCP or UDP checksum of an IPv4 frame whose IP header starts at `at`.
pub fn check_transport(bytes: &[u8], at: usize) {
    let header = usize::from(bytes[at] & 15) * 4;
    let end = at + usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]]));
    let segment = &bytes[at + header..end];
    let pseudo = u32::from(sum(&bytes[at + 12..at + 20], 0));
    let all = sum(segment, pseudo + u32::from(bytes[at + 9]) + segment.len() as u32);
    assert_eq!(all, 0xffff, "the checksum of {bytes:02x?} is wrong");
}

/// Sends a frame whose checksum, `place` bytes after `from`, is left to the interface.
pub fn send_partial(interface: &str, bytes: &[u8], from: u16, place: u16) {
    send_virtio(interface, bytes, [0, 0], 0, [from, place]);
}

/// Sends a frame with a virtio header: type of merged frame and bytes of its headers, payload bytes
/// of a segment, and position of its checksum.
pub fn send_virtio(interface: &str, bytes: &[u8], [kind, head]: [u8; 2], size: u16, sum: [u16; 2]) {
    let mut message = vec![1, kind];
    let words = [u16::from(head), size, sum[0], sum[1]];
    message.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    message.extend(bytes);
    let name = std::ffi::CString::new(interface).unwrap();
    // SAFETY: every pointer is to a local value of the given length, and the descriptor is closed
    // at the end.
    unsafe {
        let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
        let on: libc::c_int = 1;
        let (option, size) = (std::ptr::from_ref(&on).cast(), size_of_val(&on) as u32);
        let set = libc::setsockopt(socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, option, size);
        assert_eq!(set, 0);
        let mut to: libc::sockaddr_ll = std::mem::zeroed();
        to.sll_family = libc::AF_PACKET as u16;
        to.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
        let sent = libc::sendto(
            socket,
            message.as_ptr().cast(),
            message.len(),
            0,
            std::ptr::from_ref(&to).cast(),
            size_of_val(&to) as u32,
        );
        assert_eq!(sent, message.len() as isize, "{}", std::io::Error::last_os_error());
        libc::close(socket);
    }
}

/// Receives until the port fails, and returns its error.
pub fn failure(port: &mut impl Port) -> PortError {
    let deadline = clock::now() + PATIENCE;
    loop {
        let mut batch = Batch::new(8);
        match port.receive(&mut batch, clock::now()) {
            Err(error) => return error,
            Ok(_) => assert!(clock::now() < deadline, "the port does not fail"),
        }
    }
}

/// Receives until the port works.
pub fn recovery(port: &mut impl Port) {
    let deadline = clock::now() + PATIENCE;
    while port.receive(&mut Batch::new(8), clock::now()).is_err() {
        assert!(clock::now() < deadline, "the port does not recover");
    }
}
