//! The AF_XDP port.
//!
//! Frames are received from all queues in turn and sent through the first, which preserves their
//! order. A received frame is as it was on the link, except for tags that the kernel stores outside
//! the frame. If the interface's peer is on this host, tag offload must be off at the peer.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use ebpf::XdpMode;
use os::sys;
use packet::batch_copy::Copies;
use packet::filter::Entry;
use packet::frame::{Batch, FRAME_BYTES_MAX};
use packet::time::{Clock, Nanos, Stamp};
use packet::traffic::Count;

use super::driver_features::DriverFeatures;
use super::partial;
use super::program::{FastPath, FastPathLoader, LoadedFastPath, RedirectProgram};
use super::queue::{Queue, ReceivedFrame};
use super::spec::{QUEUES_MAX, Spec};
use super::umem::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, HEADROOM, Umem};
use crate::interface::{self, Interface};
use crate::link::Link;
use crate::port::{Port, PortCounters, PortDrop, PortError, PortFacts};

/// Bytes of an Ethernet header without tags, and of a tag.
const HEADER_BYTES: usize = 14;
const TAG_BYTES: usize = 4;

/// Interval of state checks on an idle interface.
const CHECK_INTERVAL: Nanos = Nanos::from_millis(10);

/// End of the names of a driver's statistics of redirected frames that it lost, one for each queue.
const REDIRECTS_LOST: &str = "_xdp_xmit_errors";

/// Drivers that may deliver frames of this host with incomplete checksums.
const LEAVE_CHECKSUMS: [&str; 3] = ["veth", "tun", "virtio_net"];

/// The path of frames into this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// XDP mode.
    pub mode: XdpMode,
    /// Whether frames are received and sent without a copy.
    pub is_zero_copy: bool,
}

/// A network interface, opened by AF_XDP.
pub struct XdpPort {
    facts: PortFacts,
    spec: Spec,
    opened: OpenInterface,
    /// Counters from earlier interfaces of this name.
    past: PortCounters,
    /// The current filter, and the counts of frames that it dropped there.
    filter: Vec<Entry>,
    past_kept_back: Vec<Count>,
    /// Fast path in the kernel, before frames come to the sockets.
    fast_path: Option<FastPath>,
    /// Redirected frames that earlier interfaces of this name lost.
    past_redirects_lost: u64,
    /// Queries about the interface's features, if the kernel supports them.
    features: Option<DriverFeatures>,
    /// A socket for queries about the interface.
    asking: OwnedFd,
    /// Readable when a socket of any queue is.
    waiting: OwnedFd,
    state: State,
    check_at: Nanos,
}

/// An interface with sockets at its queues.
struct OpenInterface {
    // Declared before the queues, so that it is dropped first: no frame may be redirected to a
    // closing socket.
    redirect: RedirectProgram,
    queues: Vec<Queue>,
    /// The queue to receive from first.
    first: usize,
    interface: Interface,
    chunk_bytes: usize,
    path: Path,
    completes: bool,
    /// Redirected frames that the interface had lost when it was opened, and has lost since then.
    redirects_lost_before: u64,
    redirects_lost: u64,
}

/// State of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Up,
    Down,
    Gone,
}

impl XdpPort {
    /// Opens an interface of the calling thread's network namespace; it must be up.
    ///
    /// Requires CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW there, to load programs and open packet
    /// sockets. The interface must have no other XDP program.
    pub fn open(spec: &Spec) -> Result<Self, PortError> {
        let name = spec.interface.clone();
        let interface = interface::look_up(&name)?;
        if !interface.up {
            return Err(PortError::InterfaceDown(name));
        }
        let asking = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
            .map_err(|error| interface::system("read the settings of", &name, error))?;
        let waiting =
            sys::epoll().map_err(|error| interface::system("prepare to wait for", &name, error))?;
        let opened = OpenInterface::new(spec, interface, asking.as_raw_fd(), &waiting)?;
        let stamps = if spec.stamps { Clock::XdpProgram } else { Clock::UserSpace };
        let facts = PortFacts { name, kind: "xdp", mac: [0; 6], frame_bytes_max: 0, stamps };
        let mut port = XdpPort {
            facts,
            spec: spec.clone(),
            opened,
            past: PortCounters::default(),
            filter: Vec::new(),
            past_kept_back: Vec::new(),
            fast_path: None,
            past_redirects_lost: 0,
            features: DriverFeatures::open(),
            asking,
            waiting,
            state: State::Up,
            check_at: Nanos::ZERO,
        };
        port.know();
        Ok(port)
    }

    /// Returns the path of frames, which depends on the interface and the kernel.
    pub fn path(&self) -> Path {
        self.opened.path
    }

    /// Returns the number of receive queues in use.
    pub fn queues(&self) -> usize {
        self.opened.queues.len()
    }

    /// Returns the index of the interface, which changes with the interface of the port's name.
    pub fn interface_index(&self) -> u32 {
        self.opened.redirect.interface() as u32
    }

    /// Whether the program runs in the driver.
    pub fn is_native(&self) -> bool {
        self.opened.path.mode == XdpMode::Native
    }

    /// Whether senders on this host may leave checksums in received frames incomplete, and a
    /// redirected frame would keep them so. In generic mode the kernel completes them.
    pub fn is_partial(&self) -> bool {
        self.opened.completes && self.is_native()
    }

    /// Returns the length of the longest frame that the interface now carries, which follows changes
    /// of its MTU; `None` if it is gone.
    pub fn frame_bytes_now(&self) -> Option<usize> {
        let interface = interface::look_up_by(self.asking.as_raw_fd(), &self.facts.name);
        interface.ok().map(|interface| interface.mtu + HEADER_BYTES)
    }

    /// Whether the interface now sends frames that native programs redirect to it, which depends on
    /// the driver and, for a veth, on its peer. False if the kernel does not report it (before
    /// Linux 6.3).
    pub fn sends_redirects(&mut self) -> bool {
        let index = self.interface_index();
        let features = self.features.as_mut();
        features.and_then(|features| features.sends_redirects(index)).unwrap_or(false)
    }

    /// Returns the number of redirected frames that the interface lost, as of the last call of
    /// [`Port::counters`]. They count as rejected there.
    pub fn redirects_lost(&self) -> u64 {
        self.past_redirects_lost + self.opened.redirects_lost
    }

    /// Starts a fast path in the kernel, or ends it. It remains when the interface is replaced by
    /// one of the same name.
    pub fn set_fast_path(&mut self, fast_path: Option<FastPath>) -> Result<(), PortError> {
        let failed = |error| interface::system("start a fast path on", &self.facts.name, error);
        self.opened.redirect.forward(fast_path.as_ref()).map_err(failed)?;
        self.fast_path = fast_path;
        Ok(())
    }

    /// Returns what loads programs with a fast path for [`XdpPort::put_fast_path`].
    pub fn fast_path_loader(&self) -> FastPathLoader {
        self.opened.redirect.loader()
    }

    /// Starts a fast path whose program is loaded. If the interface was replaced since then, the
    /// program is loaded again.
    pub fn put_fast_path(&mut self, loaded: LoadedFastPath) -> Result<(), PortError> {
        let failed = |error| interface::system("start a fast path on", &self.facts.name, error);
        let LoadedFastPath { program, fast_path, of } = loaded;
        if !self.opened.redirect.put(&program, &of).map_err(failed)? {
            return self.set_fast_path(Some(fast_path));
        }
        self.fast_path = Some(fast_path);
        Ok(())
    }

    /// Copies the interface's properties to the port's facts.
    fn know(&mut self) {
        self.facts.mac = self.opened.interface.mac;
        self.facts.frame_bytes_max =
            (self.opened.interface.mtu + HEADER_BYTES).min(FRAME_BYTES_MAX);
        self.facts.kind = match self.opened.path {
            Path { mode: XdpMode::Native, is_zero_copy: true } => "xdp native zero-copy",
            Path { mode: XdpMode::Native, .. } => "xdp native copy",
            Path { mode: XdpMode::Generic, .. } => "xdp generic copy",
        };
    }

    /// Updates the state after a failure, and returns the error.
    fn lost(&mut self, now: Nanos) -> PortError {
        self.check_at = now.saturating_add(CHECK_INTERVAL);
        self.state = match interface::look_up_by(self.asking.as_raw_fd(), &self.facts.name) {
            Err(PortError::NoSuchInterface(_)) => State::Gone,
            _ => State::Down,
        };
        self.error()
    }

    fn error(&self) -> PortError {
        let name = self.facts.name.clone();
        match self.state {
            State::Gone => PortError::NoSuchInterface(name),
            State::Up | State::Down => PortError::InterfaceDown(name),
        }
    }

    /// Checks a failed interface again; succeeds if it is up, the same one or a new one of that
    /// name.
    #[inline]
    fn revive(&mut self, now: Nanos) -> Result<(), PortError> {
        if self.state == State::Up { Ok(()) } else { self.look_again(now) }
    }

    #[cold]
    fn look_again(&mut self, now: Nanos) -> Result<(), PortError> {
        if now < self.check_at {
            return Err(self.error());
        }
        self.check_at = now.saturating_add(CHECK_INTERVAL);
        match interface::look_up_by(self.asking.as_raw_fd(), &self.facts.name) {
            Ok(interface) if interface.up => self.reopen(interface)?,
            Ok(_) => self.state = State::Down,
            Err(_) => self.state = State::Gone,
        }
        if self.state == State::Up { Ok(()) } else { Err(self.error()) }
    }

    /// Opens new sockets, unless it is the same interface as before.
    fn reopen(&mut self, interface: Interface) -> Result<(), PortError> {
        let is_same = interface.index == self.opened.interface.index
            && chunk_bytes(&interface) == Some(self.opened.chunk_bytes);
        if is_same {
            self.opened.interface = interface;
        } else {
            let (account, kernel_filter_counters) =
                (self.counters(), self.kernel_filter_counters());
            let mut opened =
                OpenInterface::new(&self.spec, interface, self.asking.as_raw_fd(), &self.waiting)?;
            if !self.filter.is_empty() {
                let failed = |error| interface::system("set a filter on", &self.facts.name, error);
                opened.redirect.filter(&self.filter).map_err(failed)?;
            }
            if let Some(fast_path) = &self.fast_path {
                let failed =
                    |error| interface::system("start a fast path on", &self.facts.name, error);
                opened.redirect.forward(Some(fast_path)).map_err(failed)?;
            }
            self.past_redirects_lost += self.opened.redirects_lost;
            (self.opened, self.past, self.past_kept_back) =
                (opened, account, kernel_filter_counters);
        }
        self.know();
        self.state = State::Up;
        Ok(())
    }

    /// Checks an idle interface at intervals.
    #[inline]
    fn check(&mut self, now: Nanos) -> Result<(), PortError> {
        if now < self.check_at {
            return Ok(());
        }
        self.check_at = now.saturating_add(CHECK_INTERVAL);
        match self.opened.queues[0].trouble() {
            Some(_) => Err(self.lost(now)),
            None => Ok(()),
        }
    }

    #[inline]
    fn take(
        &mut self,
        limit: usize,
        now: Nanos,
        see: impl FnMut(ReceivedFrame<'_>),
    ) -> Result<usize, PortError> {
        self.revive(now)?;
        let count = self.opened.take(limit, see);
        if count == 0 {
            self.check(now)?;
        }
        Ok(count)
    }

    #[inline]
    fn send<'a>(
        &mut self,
        frames: impl ExactSizeIterator<Item = &'a [u8]>,
        now: Nanos,
    ) -> Result<usize, PortError> {
        self.revive(now)?;
        let (count, failure) = self.opened.queues[0].send(frames, self.opened.interface.mtu);
        match failure {
            None => Ok(count),
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                let error = self.lost(now);
                if count > 0 { Ok(count) } else { Err(error) }
            }
            Some(_) if count > 0 => Ok(count),
            Some(code) => {
                let error = std::io::Error::from_raw_os_error(code);
                Err(interface::system("send on", &self.facts.name, error))
            }
        }
    }
}

impl OpenInterface {
    fn new(
        spec: &Spec,
        interface: Interface,
        asking: RawFd,
        waiting: &OwnedFd,
    ) -> Result<Self, PortError> {
        let name = spec.interface.as_str();
        let failed = |(doing, error)| interface::system(doing, name, error);
        let chunk_bytes = chunk_bytes(&interface).ok_or_else(|| too_long(name, interface.mtu))?;
        let has = interface::receive_queues(asking, name);
        let count = spec.queues.unwrap_or(has.min(QUEUES_MAX));
        let chunks = 2 * spec.slots as usize * count as usize;
        let umem = Umem::new(chunks, chunk_bytes, spec.huge_pages)
            .map_err(|error| failed(("allocate memory for", error)))?;
        let mut queues: Vec<Queue> = Vec::new();
        for queue in 0..count {
            let first = queues.first();
            let opened = Queue::open(spec, interface.index, queue, &umem, first).map_err(failed)?;
            queues.push(opened);
        }
        let sockets: Vec<u32> =
            queues.iter().map(|queue| queue.socket.descriptor() as u32).collect();
        let redirect = RedirectProgram::attach(interface.index, &sockets, spec.stamps, spec.mode)
            .map_err(|error| failed(("attach an XDP program to", error)))?;
        for queue in &queues {
            sys::epoll_add(waiting, queue.socket.descriptor())
                .map_err(|error| failed(("prepare to wait for", error)))?;
        }
        let driver = interface::driver(asking, name);
        let is_zero_copy = queues[0].socket.is_zero_copy();
        Ok(OpenInterface {
            path: Path { mode: redirect.mode, is_zero_copy },
            redirect,
            queues,
            first: 0,
            interface,
            chunk_bytes,
            completes: LEAVE_CHECKSUMS.contains(&driver.as_str()),
            redirects_lost_before: redirects_lost(asking, name),
            redirects_lost: 0,
        })
    }

    /// Passes at most `limit` frames of the queues in turn to `see`.
    #[inline]
    fn take(&mut self, limit: usize, mut see: impl FnMut(ReceivedFrame<'_>)) -> usize {
        let mut taken = 0;
        let count = self.queues.len();
        for turn in 0..count {
            let place = (self.first + turn) % count;
            taken += self.queues[place].take(limit - taken, &mut see);
        }
        self.first = (self.first + 1) % count;
        if taken == 0 {
            // Retries frames that found no room before. A failure is reported to the next sender.
            let _ = self.queues[0].kick();
        }
        taken
    }
}

/// Returns the chunk size for an interface, if AF_XDP supports its MTU.
fn chunk_bytes(interface: &Interface) -> Option<usize> {
    let bytes = HEADROOM + HEADER_BYTES + 2 * TAG_BYTES + interface.mtu;
    (bytes <= CHUNK_BYTES_MAX).then(|| bytes.next_power_of_two().max(CHUNK_BYTES_MIN))
}

/// Returns the number of redirected frames that an interface lost, as far as its driver counts them.
fn redirects_lost(socket: RawFd, name: &str) -> u64 {
    let all = interface::statistics(socket, name);
    all.iter().filter(|(name, _)| name.ends_with(REDIRECTS_LOST)).map(|(_, count)| count).sum()
}

fn too_long(name: &str, mtu: usize) -> PortError {
    let most = CHUNK_BYTES_MAX - HEADROOM - HEADER_BYTES - 2 * TAG_BYTES;
    let why = format!("the MTU {mtu} exceeds the {most} bytes that AF_XDP supports");
    let error = std::io::Error::new(std::io::ErrorKind::InvalidInput, why);
    PortError::System { doing: "open an AF_XDP socket on", what: name.to_owned(), error }
}

impl Port for XdpPort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        let (room, completes) = (batch.room(), self.opened.completes);
        self.take(room, now, |received| {
            let frame = batch.push_slot().expect("frames are limited to the room");
            frame.set_bytes(received.bytes);
            if completes {
                partial::complete(frame.bytes_mut());
            }
            frame.stamp = Some(stamp(&received, now));
        })
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.send(batch.frames().iter().map(|frame| frame.bytes()), now)
    }

    fn receive_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        copies.clear();
        let (room, completes) = (copies.capacity(), self.opened.completes);
        self.take(room, now, |received| {
            let copy = copies.push(received.bytes.len(), Some(stamp(&received, now)));
            let copy = copy.expect("frames are limited to the room");
            copy.copy_from_slice(received.bytes);
            if completes {
                partial::complete(copy);
            }
        })
    }

    fn transmit_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        self.send(copies.frames(), now)
    }

    fn counters(&mut self) -> PortCounters {
        let mut counters = self.past.clone();
        for queue in &self.opened.queues {
            let own = &queue.counters;
            counters.rx_frames += own.rx_frames;
            counters.rx_bytes += own.rx_bytes;
            counters.tx_frames += own.tx_frames;
            counters.tx_bytes += own.tx_bytes;
            counters.lose(PortDrop::TooLong, own.too_long);
            counters.lose(PortDrop::TransmitRefused, own.refused);
            counters.lose(PortDrop::PeerBroken, own.broken);
            let Some(kernel) = queue.socket.statistics() else { continue };
            // The kernel also counts a frame without a free chunk as dropped, like one that is too
            // long.
            let without_chunk = kernel.rx_fill_ring_empty_descs.min(kernel.rx_dropped);
            counters.lose(PortDrop::ReceiveRingFull, kernel.rx_ring_full + without_chunk);
            counters.lose(PortDrop::ReceiveTooLong, kernel.rx_dropped - without_chunk);
            counters.lose(PortDrop::TransmitRefused, kernel.tx_invalid_descs);
        }
        if self.fast_path.is_some() {
            // A vanished interface has no statistics.
            let lost = redirects_lost(self.asking.as_raw_fd(), &self.facts.name);
            let lost = lost.saturating_sub(self.opened.redirects_lost_before);
            self.opened.redirects_lost = self.opened.redirects_lost.max(lost);
            counters.lose(PortDrop::TransmitRefused, self.opened.redirects_lost);
        }
        counters
    }

    fn install_kernel_filter(&mut self, entries: &[Entry]) -> bool {
        let is_kept = self.opened.redirect.filter(entries).is_ok();
        if is_kept {
            self.filter = entries.to_vec();
            self.past_kept_back.clear();
        }
        is_kept
    }

    fn kernel_filter_counters(&mut self) -> Vec<Count> {
        let mut counts = self.opened.redirect.kernel_filter_counters();
        counts.resize(counts.len().max(self.past_kept_back.len()), Count::default());
        for (count, past) in counts.iter_mut().zip(&self.past_kept_back) {
            count.add(past.frames, past.bytes);
        }
        counts
    }

    fn xdp(&mut self) -> Option<&mut XdpPort> {
        Some(self)
    }

    fn has_link(&self) -> bool {
        interface::has_link(self.asking.as_raw_fd(), &self.facts.name)
    }

    fn link(&self) -> Link {
        interface::link(self.asking.as_raw_fd(), &self.facts.name)
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.waiting.as_raw_fd())
    }
}

/// Returns a frame's timestamp: from the program on the monotonic clock, or else now.
#[inline(always)]
fn stamp(received: &ReceivedFrame<'_>, now: Nanos) -> Stamp {
    match received.stamp_ns {
        0 => Stamp { at: now, clock: Clock::UserSpace },
        at => Stamp { at: Nanos(at), clock: Clock::XdpProgram },
    }
}
