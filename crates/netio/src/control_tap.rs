//! Packet timestamps for TCP control channels: a packet socket captures on their interface.
//!
//! The kernel copies every packet of the interface to an AF_PACKET socket and timestamps it:
//! outgoing packets before the device takes them, incoming packets before the stack does
//! (packet(7), SO_TIMESTAMPNS). A loopback interface shows each packet twice. For packets that
//! leave this end the outgoing copy counts, for others the incoming one.
//!
//! Invariants:
//! - The capture does not change the channel's bytes; it only timestamps them.
//! - The kernel's queue, the state of a connection, the number of connections and the capture file
//!   are bounded. Losses are counted.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use channel::{CaptureAnomalies, Channel, ChannelError, Direction, Progress, Source, UnknownTime};
use os::clock::{self, RealtimeLine};
use os::sys;
use packet::capture::write::FrameNotes;
use packet::header::{ethernet, ipv4, ipv6, tcp};
use packet::time::{Clock, Nanos, Stamp};

use self::tcp_reassembly::{ByteStreams, Segment};
use crate::capture::{CaptureOptions, CaptureWriter};
use crate::interface;

pub mod tcp_reassembly;

/// Maximum number of connections that are tracked.
const CONNECTIONS_MAX: usize = 256;

/// Bytes of the kernel's packet queue.
const QUEUE_BYTES: libc::c_int = 32 << 20;

/// Maximum number of bytes of one packet, including merged ones.
const PACKET_BYTES_MAX: usize = 66 << 10;

/// Maximum number of bytes of the capture file.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// Maximum number of packets that one call reads.
const PACKETS_AT_ONCE: usize = 4096;

/// TCP flags.
const SYN: u8 = 2;
const ACK: u8 = 16;

/// A capture of the packets on an interface to and from one port of other hosts.
pub struct Tap {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    socket: OwnedFd,
    port: u16,
    line: RealtimeLine,
    buffer: Box<[u8]>,
    /// Connections by local port.
    passages: BTreeMap<u16, ByteStreams>,
    lost: u64,
    file: Option<CaptureWriter<Vec<u8>>>,
    /// Packets that did not fit into the file.
    unwritten: u64,
}

/// Result of a capture of control channels.
#[derive(Debug, Clone, Default)]
pub struct Tapped {
    /// Packets that the kernel dropped for lack of room.
    pub lost: u64,
    /// The capture file in pcapng, if requested.
    pub file: Option<Vec<u8>>,
    /// Packets missing in the file because of its size limit.
    pub unwritten: u64,
}

impl Tap {
    /// Captures on the interface of this name in this thread's namespace, for connections to this
    /// remote port.
    ///
    /// Keeps a copy of all packets if `file` is set.
    pub fn open(name: &str, port: u16, file: bool) -> Result<Tap, ChannelError> {
        let failed = |doing: &'static str| {
            move |error: io::Error| ChannelError::System { doing, what: name.to_owned(), error }
        };
        let interface = interface::look_up(name)
            .map_err(|error| failed("capture on")(io::Error::other(error.to_string())))?;
        let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 0)
            .map_err(failed("open a packet socket on"))?;
        let on: libc::c_int = 1;
        let descriptor = socket.as_raw_fd();
        sys::set_option(descriptor, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
            .map_err(failed("enable timestamps on"))?;
        let queue = |name| sys::set_option(descriptor, libc::SOL_SOCKET, name, &QUEUE_BYTES);
        queue(libc::SO_RCVBUFFORCE)
            .or_else(|_| queue(libc::SO_RCVBUF))
            .map_err(failed("enlarge the receive buffer of"))?;
        bind(&socket, interface.index).map_err(failed("bind a packet socket to"))?;
        let file = match file {
            true => {
                let comment = "control channels at the interface";
                let options = CaptureOptions {
                    interface_comment: Some(comment.into()),
                    ..CaptureOptions::pcapng(name)
                };
                let unwritable =
                    |error: crate::capture::CaptureError| io::Error::other(error.to_string());
                let writer = CaptureWriter::new(Vec::new(), &options).map_err(unwritable);
                Some(writer.map_err(failed("start a capture on"))?)
            }
            false => None,
        };
        let inner = Inner {
            socket,
            port,
            line: RealtimeLine::measure(),
            buffer: vec![0; PACKET_BYTES_MAX].into(),
            passages: BTreeMap::new(),
            lost: 0,
            file,
            unwritten: 0,
        };
        Ok(Tap { inner: Arc::new(Mutex::new(inner)) })
    }

    /// Wraps a TCP channel to the captured port so that its bytes have packet timestamps; returns
    /// any other channel unchanged.
    pub fn around(&self, channel: Box<dyn Channel>) -> Box<dyn Channel> {
        match channel.descriptor().and_then(sys::local_port) {
            Some(port) if channel.peer().starts_with("tcp:") => {
                Box::new(TappedChannel { channel, tap: Arc::clone(&self.inner), port })
            }
            _ => channel,
        }
    }

    /// Ends the capture and returns its result. Channels continue, without further timestamps.
    pub fn finish(self) -> Tapped {
        let mut inner = lock(&self.inner);
        inner.read();
        let (file, unwritten) = (inner.file.take(), inner.unwritten);
        let file = file.and_then(|writer| writer.finish(None).ok());
        Tapped { lost: inner.lost, file, unwritten }
    }
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bind(socket: &OwnedFd, index: i32) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid value of this C struct.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index;
    // SAFETY: the pointer and the length describe `address`, which outlives the call.
    sys::check(unsafe {
        libc::bind(
            socket.as_raw_fd(),
            std::ptr::from_ref(&address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// A buffer for a packet's ancillary data, with the required alignment.
#[repr(align(8))]
struct Control([u8; 128]);

impl Inner {
    /// Reads all waiting packets.
    fn read(&mut self) {
        for _ in 0..PACKETS_AT_ONCE {
            let Some((count, is_outgoing, at)) = self.next() else { break };
            let moment = self.line.monotonic(at, clock::now());
            self.sort(count, is_outgoing, moment, at);
        }
        let statistics: io::Result<libc::tpacket_stats> =
            sys::option(self.socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS);
        self.lost += statistics.map_or(0, |it| u64::from(it.tp_drops));
    }

    /// Reads the next packet. Returns its bytes in the buffer, whether it is outgoing, and its
    /// timestamp since 1970.
    fn next(&mut self) -> Option<(usize, bool, u64)> {
        let mut control = Control([0; 128]);
        // SAFETY: all-zero bytes are valid values of these C structs.
        let (mut from, mut header): (libc::sockaddr_ll, libc::msghdr) =
            unsafe { (zeroed(), zeroed()) };
        let mut piece =
            libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: self.buffer.len() };
        header.msg_name = std::ptr::from_mut(&mut from).cast();
        header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        header.msg_iov = &mut piece;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = control.0.len();
        // SAFETY: the header's pointers are to live buffers with the given lengths.
        let count =
            unsafe { libc::recvmsg(self.socket.as_raw_fd(), &mut header, libc::MSG_DONTWAIT) };
        let count = usize::try_from(count).ok()?;
        // SAFETY: the kernel filled the control buffer and its length in the header, and it is
        // alive.
        let stamp = unsafe { stamp_of(&header) };
        let at = stamp.unwrap_or_else(|| clock::since_1970().0);
        Some((count, from.sll_pkttype == libc::PACKET_OUTGOING, at))
    }

    /// Processes a packet with `count` bytes in the buffer.
    fn sort(&mut self, count: usize, is_outgoing: bool, at: Nanos, since_1970: u64) {
        let bytes = &self.buffer[..count];
        let Some((tcp, payload_bytes)) = tcp_of(bytes) else { return };
        let direction = match (tcp.source_port(), tcp.destination_port()) {
            (_, to) if to == self.port && is_outgoing => Direction::Out,
            (from, _) if from == self.port && !is_outgoing => Direction::In,
            _ => return,
        };
        let here = match direction {
            Direction::Out => tcp.source_port(),
            Direction::In => tcp.destination_port(),
        };
        let is_first = tcp.flags() & SYN != 0;
        let segment = Segment {
            sequence: tcp.sequence(),
            acknowledged: (tcp.flags() & ACK != 0).then(|| tcp.acknowledgement()),
            is_first,
            bytes: payload_bytes as u32,
        };
        if is_first && direction == Direction::Out {
            // A reused port has a new stream.
            self.passages.remove(&here);
        }
        if self.passages.contains_key(&here) || self.passages.len() < CONNECTIONS_MAX {
            self.passages.entry(here).or_default().pass(direction, segment, at);
        }
        if let Some(writer) = &mut self.file {
            let has_room = writer.bytes() + (bytes.len() as u64) < FILE_BYTES_MAX;
            let is_written =
                has_room && writer.frame(Nanos(since_1970), bytes, FrameNotes::default()).is_ok();
            self.unwritten += u64::from(!is_written);
        }
    }
}

/// Returns the TCP header of a packet, and the length of its payload.
///
/// A packet before segmentation offload may exceed the IP length field; its length is then that of
/// the captured bytes.
fn tcp_of(bytes: &[u8]) -> Option<(tcp::View<'_>, usize)> {
    let frame = ethernet::View::new(bytes)?;
    let inside = frame.payload();
    let (transport, end) = match frame.type_or_length() {
        ethernet::TYPE_IPV4 => {
            let ip = ipv4::View::new(inside)?;
            if ip.protocol() != ipv4::PROTOCOL_TCP || ip.fragment_offset() > 0 {
                return None;
            }
            (ip.header_length(), usize::from(ip.total_length()))
        }
        ethernet::TYPE_IPV6 => {
            let ip = ipv6::View::new(inside)?;
            if ip.next_header() != ipv4::PROTOCOL_TCP {
                return None;
            }
            let length = usize::from(ip.payload_length());
            (ipv6::HEADER_BYTES, if length == 0 { 0 } else { ipv6::HEADER_BYTES + length })
        }
        _ => return None,
    };
    let end = if end == 0 { inside.len() } else { end.min(inside.len()) };
    let segment = inside.get(transport..end)?;
    let tcp = tcp::View::new(segment)?;
    let payload = segment.len().checked_sub(tcp.header_length())?;
    Some((tcp, payload))
}

/// Returns the kernel's timestamp of a packet, in nanoseconds since 1970.
///
/// # Safety
/// The kernel must have filled the header's control buffer, which must still be alive.
unsafe fn stamp_of(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: the walk stays inside the control buffer, by the lengths that the kernel wrote.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(header);
        while !next.is_null() {
            if (*next).cmsg_level == libc::SOL_SOCKET && (*next).cmsg_type == libc::SCM_TIMESTAMPNS
            {
                let time = libc::CMSG_DATA(next).cast::<libc::timespec>().read_unaligned();
                return Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
            }
            next = libc::CMSG_NXTHDR(header, next);
        }
    }
    None
}

/// A channel with packet timestamps.
struct TappedChannel {
    channel: Box<dyn Channel>,
    tap: Arc<Mutex<Inner>>,
    port: u16,
}

impl Channel for TappedChannel {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        self.channel.receive(buffer)
    }

    fn transmit(&mut self, bytes: &[u8]) -> Result<usize, ChannelError> {
        self.channel.transmit(bytes)
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.channel.descriptor()
    }

    fn waits_for_room(&self, owes: bool) -> bool {
        self.channel.waits_for_room(owes)
    }

    fn holds_received(&self) -> bool {
        self.channel.holds_received()
    }

    fn progress(&self) -> Progress {
        self.channel.progress()
    }

    fn source(&self) -> Option<Source> {
        self.channel.source()
    }

    fn peer(&self) -> &str {
        self.channel.peer()
    }

    fn passed(&mut self, direction: Direction, end: u64) -> Option<Result<Stamp, UnknownTime>> {
        let mut tap = lock(&self.tap);
        let ask = |tap: &mut Inner| match tap.passages.get_mut(&self.port) {
            Some(passage) => passage.moment(direction, end),
            None => Err(UnknownTime::NotYet),
        };
        let mut moment = ask(&mut tap);
        if moment == Err(UnknownTime::NotYet) {
            tap.read();
            moment = ask(&mut tap);
        }
        Some(moment.map(|at| Stamp { at, clock: Clock::Kernel }))
    }

    fn remarks(&self) -> Option<CaptureAnomalies> {
        let tap = lock(&self.tap);
        Some(tap.passages.get(&self.port).map(ByteStreams::remarks).unwrap_or_default())
    }
}
