//! A port on a Linux network interface, by packet sockets.
//!
//! - Frames arrive through a ring shared with the kernel (packet_mmap, Linux
//!   `Documentation/networking/packet_mmap.rst`). They leave in batches and bypass the queueing
//!   discipline.
//! - A received frame is identical to the frame on the link, byte for byte. The port puts back the
//!   VLAN tag that the kernel removed, and completes a checksum that the kernel left to hardware.
//! - A frame that the kernel merged from several is segmented again, if [`Options`] request it.
//! - Frames sent through this interface are never received.
//!
//! `docs/decisions/0002-tpacket-v2-forwards-tpacket-v3-measures.md` explains the choice of rings.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use os::clock::RealtimeLine;
use os::sys;
use packet::frame::{Batch, FRAME_BYTES_MAX};
use packet::time::{Clock, Nanos, Stamp};

use crate::interface::{self, Interface};
use crate::link::Link;
use crate::netns::NetNs;
use crate::port::{Port, PortCounters, PortDrop, PortError, PortFacts};

mod merged;
mod restore;
mod ring;
mod ring_blocks;
mod ring_frames;
mod socket;
mod transmit;

use merged::MergedFrame;
use ring::{Raw, Ring};
use transmit::Transmitter;

/// How received frames are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Each frame immediately (TPACKET_V2), for forwarding or replies.
    Prompt,
    /// In blocks, full ones immediately and others after at most about a millisecond (TPACKET_V3).
    ///
    /// Cheaper per frame, for measurements that use the kernel's timestamps.
    Batched,
}

/// When the kernel timestamps a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampMode {
    /// When the kernel writes the frame into the ring, after its receive queue.
    AtDelivery,
    /// When the network stack takes the frame.
    ///
    /// While the port is open, the kernel then timestamps every frame of every interface of the
    /// host, at some 20 ns each.
    AtArrival,
}

/// Options of a packet socket port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How received frames are delivered.
    pub delivery: Delivery,
    /// When the kernel timestamps them.
    pub stamps: TimestampMode,
    /// Size of the receive ring in bytes, at least 64 KiB.
    pub ring_bytes: usize,
    /// Whether frames for other hardware addresses are received too.
    pub promiscuous: bool,
    /// Whether sent frames bypass the interface's queueing discipline.
    pub qdisc_bypass: bool,
    /// If set, only frames with this EtherType are received.
    pub ether_type: Option<u16>,
    /// Whether to segment frames that the kernel merged (TSO, GSO, GRO), and to receive frames
    /// longer than a ring slot. Otherwise such frames are counted as lost.
    pub segment_merged: bool,
}

impl Options {
    /// Options for forwarding: prompt delivery, timestamps at delivery, 2 MiB (1024 frames of up to
    /// 1500 bytes), merged frames segmented.
    pub fn forwarder() -> Self {
        Options {
            delivery: Delivery::Prompt,
            stamps: TimestampMode::AtDelivery,
            ring_bytes: 2 << 20,
            promiscuous: true,
            qdisc_bypass: true,
            ether_type: None,
            segment_merged: true,
        }
    }

    /// Options for measurement: delivery in blocks, timestamps at arrival, 16 MiB.
    ///
    /// Merged frames are counted as lost, because no traffic generator sends them.
    pub fn monitor() -> Self {
        Options {
            delivery: Delivery::Batched,
            stamps: TimestampMode::AtArrival,
            ring_bytes: 16 << 20,
            segment_merged: false,
            ..Options::forwarder()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::forwarder()
    }
}

/// Bytes of an Ethernet header without tags.
const HEADER_BYTES: usize = 14;

/// Interval of state checks on an idle interface.
const CHECK_INTERVAL: Nanos = Nanos::from_millis(10);

/// An open network interface.
pub struct AfPacketPort {
    facts: PortFacts,
    options: Options,
    home: NetNs,
    interface: Interface,
    socket: OwnedFd,
    ring: Ring,
    transmitter: Transmitter,
    merged: MergedFrame,
    line: RealtimeLine,
    counters: PortCounters,
    state: State,
    check_at: Nanos,
}

/// State of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Up,
    Down,
    Gone,
}

impl AfPacketPort {
    /// Opens the interface `name` in the calling thread's network namespace; it must be up.
    ///
    /// Requires CAP_NET_RAW in that namespace.
    pub fn open(name: &str, options: &Options) -> Result<Self, PortError> {
        let interface = interface::look_up(name)?;
        if !interface.up {
            return Err(PortError::InterfaceDown(name.to_owned()));
        }
        let failed = |(doing, error)| interface::system(doing, name, error);
        let (socket, ring) = socket::receiving(&interface, options).map_err(failed)?;
        let sending = socket::sending(&interface, options).map_err(failed)?;
        Ok(AfPacketPort {
            facts: PortFacts {
                name: name.to_owned(),
                kind: "afpacket",
                mac: interface.mac,
                frame_bytes_max: frame_bytes_max(&interface),
                stamps: Clock::Kernel,
            },
            options: options.clone(),
            home: NetNs::of_this_thread(),
            transmitter: Transmitter::new(sending, interface.mtu),
            interface,
            socket,
            ring,
            merged: MergedFrame::default(),
            line: RealtimeLine::measure(),
            counters: PortCounters::default(),
            state: State::Up,
            check_at: Nanos::ZERO,
        })
    }

    /// Updates the state after a failure, and returns the error.
    fn lost(&mut self, now: Nanos) -> PortError {
        self.check_at = now.saturating_add(CHECK_INTERVAL);
        self.state = match interface::look_up_by(self.socket.as_raw_fd(), &self.facts.name) {
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
    fn revive(&mut self, now: Nanos) -> Result<(), PortError> {
        if self.state == State::Up {
            return Ok(());
        }
        if now < self.check_at {
            return Err(self.error());
        }
        self.check_at = now.saturating_add(CHECK_INTERVAL);
        match interface::look_up_by(self.socket.as_raw_fd(), &self.facts.name) {
            Ok(interface) if interface.up => self.reopen(interface)?,
            Ok(_) => self.state = State::Down,
            Err(_) => self.state = State::Gone,
        }
        if self.state == State::Up { Ok(()) } else { Err(self.error()) }
    }

    /// Opens new sockets under the old descriptor numbers if the interface is a new one.
    ///
    /// Waiting frames and counts are kept only if it is still the same interface.
    fn reopen(&mut self, interface: Interface) -> Result<(), PortError> {
        sys::pending_error(self.socket.as_raw_fd());
        if interface.index != self.interface.index {
            self.collect_drops();
            let name = self.facts.name.clone();
            let failed = |(doing, error)| interface::system(doing, &name, error);
            let anew = self.home.enter(|| {
                let receiving = socket::receiving(&interface, &self.options)?;
                Ok((receiving, socket::sending(&interface, &self.options)?))
            });
            let ((socket, ring), sending) = anew.map_err(failed)?;
            sys::replace(&self.socket, socket).map_err(|error| failed(("reopening", error)))?;
            self.ring = ring;
            self.transmitter = Transmitter::new(sending, interface.mtu);
        }
        self.facts.mac = interface.mac;
        self.facts.frame_bytes_max = frame_bytes_max(&interface);
        self.interface = interface;
        self.state = State::Up;
        Ok(())
    }

    /// Replaces the receiving socket with one that has another ring, under the old descriptor's
    /// number.
    fn set_delivery(&mut self, delivery: Delivery) -> Result<(), PortError> {
        let options = Options { delivery, ..self.options.clone() };
        let anew = self.home.enter(|| socket::receiving(&self.interface, &options));
        let failed = |(doing, error)| interface::system(doing, &self.facts.name, error);
        let (socket, ring) = anew.map_err(failed)?;
        self.collect_drops();
        sys::replace(&self.socket, socket)
            .map_err(|error| interface::system("replace the ring of", &self.facts.name, error))?;
        (self.ring, self.options) = (ring, options);
        Ok(())
    }

    /// Appends at most `limit` frames from the ring, up to and excluding the next merged one.
    #[inline]
    fn take(&mut self, batch: &mut Batch, limit: usize, now: Nanos) {
        let AfPacketPort { ring, merged, line, counters, socket, options, .. } = self;
        ring.take(limit, |raw| {
            let Some(raw) = raw else {
                counters.lose(PortDrop::ReceiveInvalid, 1);
                return true;
            };
            if raw.outgoing && !raw.is_queued {
                return true;
            }
            let at = line.monotonic(raw.realtime_ns, now);
            let stamp = Stamp { at, clock: Clock::Kernel };
            if raw.is_cut() || raw.merged.is_some() {
                let socket = options.segment_merged.then_some(socket.as_raw_fd());
                return merged.take(&raw, stamp, (batch, counters), socket);
            }
            deliver(&raw, batch, counters, stamp);
            true
        });
    }

    /// Adds the drops that the kernel counted since the last call.
    fn collect_drops(&mut self) {
        let drops = socket::drops(self.socket.as_raw_fd(), self.options.delivery);
        self.counters.lose(PortDrop::ReceiveRingFull, drops);
    }
}

fn frame_bytes_max(interface: &Interface) -> usize {
    (interface.mtu + HEADER_BYTES).min(FRAME_BYTES_MAX)
}

impl Port for AfPacketPort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.revive(now)?;
        let before = batch.len();
        loop {
            self.merged.segment_into(batch, &mut self.counters);
            let room = batch.room();
            self.take(batch, room, now);
            if !self.merged.has_next() || batch.room() == 0 {
                break;
            }
        }
        let count = batch.len() - before;
        if count == 0 && now >= self.check_at {
            self.check_at = now.saturating_add(CHECK_INTERVAL);
            if sys::pending_error(self.socket.as_raw_fd()).is_some() {
                return Err(self.lost(now));
            }
        }
        Ok(count)
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.revive(now)?;
        let (count, failure) = self.transmitter.send(batch.frames(), &mut self.counters);
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

    fn set_low_latency(&mut self, promptly: bool) {
        let delivery = if promptly { Delivery::Prompt } else { Delivery::Batched };
        if delivery != self.options.delivery && self.state == State::Up {
            // A change that the kernel rejects now, it always rejects. The port works with its old
            // delivery.
            let _ = self.set_delivery(delivery);
        }
    }

    fn counters(&mut self) -> PortCounters {
        self.collect_drops();
        self.counters.clone()
    }

    fn has_link(&self) -> bool {
        interface::has_link(self.socket.as_raw_fd(), &self.facts.name)
    }

    fn link(&self) -> Link {
        interface::link(self.socket.as_raw_fd(), &self.facts.name)
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.socket.as_raw_fd())
    }

    fn next_event(&self) -> Option<Nanos> {
        // The descriptor does not signal the rest of a merged frame.
        self.merged.has_next().then_some(Nanos::ZERO)
    }
}

/// Copies a frame out of the ring, restored as it was on the link.
#[inline]
fn deliver(raw: &Raw<'_>, batch: &mut Batch, counters: &mut PortCounters, stamp: Stamp) {
    if raw.bytes.len() + restore::TAG_BYTES > FRAME_BYTES_MAX {
        counters.lose(PortDrop::ReceiveTooLong, 1);
        return;
    }
    let Some(frame) = batch.push_slot() else { return };
    restore::fill(frame, raw);
    frame.stamp = Some(stamp);
    counters.rx_frames += 1;
    counters.rx_bytes += frame.len() as u64;
}
