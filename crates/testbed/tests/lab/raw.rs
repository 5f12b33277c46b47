//! Sends and receives frames on an interface by a separate packet socket of the tests.

use std::io;
use std::time::{Duration, Instant};
use testbed::veth::Interface;

/// A packet socket on one interface.
pub struct Raw {
    socket: i32,
}

impl Raw {
    /// Opens the socket; frames that the interface itself sends are not received.
    pub fn open(interface: &Interface) -> Raw {
        let socket = interface
            .namespace
            .run(|| unsafe {
                let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
                libc::socket(libc::AF_PACKET, kind, i32::from((libc::ETH_P_ALL as u16).to_be()))
            })
            .unwrap();
        assert!(socket >= 0, "{}", io::Error::last_os_error());
        let raw = Raw { socket };
        raw.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1);
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface.index as i32;
        let length = size_of::<libc::sockaddr_ll>() as u32;
        let bound = unsafe { libc::bind(socket, (&raw const address).cast(), length) };
        assert_eq!(bound, 0, "{}", io::Error::last_os_error());
        raw
    }

    pub fn set(&self, level: i32, option: i32, value: i32) {
        let length = size_of::<i32>() as u32;
        let value = (&raw const value).cast();
        let set = unsafe { libc::setsockopt(self.socket, level, option, value, length) };
        assert_eq!(set, 0, "{}", io::Error::last_os_error());
    }

    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        let sent = unsafe { libc::send(self.socket, frame.as_ptr().cast(), frame.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Returns the next frame that `wanted` accepts, within `patience`.
    pub fn receive(&self, patience: Duration, wanted: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let start = Instant::now();
        let mut buffer = [0_u8; 2048];
        while let Some(left) = patience.checked_sub(start.elapsed()) {
            let mut poll = libc::pollfd { fd: self.socket, events: libc::POLLIN, revents: 0 };
            unsafe { libc::poll(&mut poll, 1, left.as_millis() as i32 + 1) };
            let flags = libc::MSG_DONTWAIT;
            let length =
                unsafe { libc::recv(self.socket, buffer.as_mut_ptr().cast(), buffer.len(), flags) };
            if length > 0 && wanted(&buffer[..length as usize]) {
                return Some(buffer[..length as usize].to_vec());
            }
        }
        None
    }

    /// Returns all waiting frames.
    pub fn drain(&self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.receive(Duration::from_millis(1), |_| true)).collect()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        unsafe { libc::close(self.socket) };
    }
}

/// Builds a 60-byte frame of an experimental type (IEEE 802, local experiments) that contains a
/// number.
pub fn frame(to: [u8; 6], from: [u8; 6], number: u8) -> Vec<u8> {
    let mut frame = [&to[..], &from[..], &[0x88, 0xb5], &[number; 46]].concat();
    frame.truncate(60);
    frame
}

/// Builds an IPv4 packet to UDP port 9 with a correct header checksum, in a frame of 60 bytes.
pub fn packet(to: [u8; 6], from: [u8; 6], source: [u8; 4], target: [u8; 4], ttl: u8) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 46, 0, 0, 0, 0, ttl, 17, 0, 0];
    header.extend(source);
    header.extend(target);
    let checksum = !ones_sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    let udp = [0x30, 0x39, 0, 9, 0, 26, 0, 0];
    [&to[..], &from[..], &[0x08, 0x00], &header, &udp, &[0x5a; 18]].concat()
}

/// Builds the `number`th segment of a TCP stream, with 100 bytes of payload and correct checksums,
/// which GRO would merge with its neighbors.
pub fn segment(to: [u8; 6], number: u32) -> Vec<u8> {
    let (source, target) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let mut header = vec![0x45, 0, 0, 140, 0, 0, 0x40, 0, 64, 6, 0, 0];
    header.extend([source, target].concat());
    let checksum = !ones_sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    let mut tcp = vec![0x30, 0x39, 0, 9];
    tcp.extend((number * 100).to_be_bytes());
    tcp.extend([0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend([number as u8; 100]);
    let pseudo = [&source[..], &target, &[0, 6, 0, 120], &tcp].concat();
    let checksum = !ones_sum(&pseudo);
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    [&to[..], &[2, 0, 0, 0, 0, 1], &[0x08, 0x00], &header, &tcp].concat()
}

/// Returns the ones' complement sum of 16-bit words: 0xffff over a header with a correct checksum.
pub fn ones_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
