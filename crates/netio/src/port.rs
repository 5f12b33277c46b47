//! The interface of all data ports: receive and send batches of frames, and count both.
//!
//! Time is an argument. A port on a real interface ignores it or uses it as a timestamp; a
//! simulated link is driven by it.

use std::os::fd::RawFd;

use packet::batch_copy::Copies;
use packet::filter::Entry;
use packet::frame::Batch;
use packet::time::{Clock, Nanos};
use packet::traffic::Count;

use crate::departure::{SendReport, SendSchedule};
use crate::in_place::View;
use crate::in_place::Views;
use crate::link::Link;
use crate::xdp::port::XdpPort;

/// A data port: receives and sends frames.
pub trait Port: Send {
    /// Returns the port's name, kind and properties.
    fn facts(&self) -> &PortFacts;

    /// Appends received frames to `batch`, as many as fit, without waiting. Returns how many were
    /// appended.
    ///
    /// A frame has a timestamp if the port takes timestamps.
    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError>;

    /// Sends the first frames of `batch`, as many as there is room for, without waiting. Returns
    /// their number.
    ///
    /// The port may swap the buffers of these frames for others. The caller removes them from the
    /// batch. The caller keeps, retries or counts the rest.
    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError>;

    /// Replaces `copies` with copies of received frames, for callers that only read frames.
    ///
    /// Otherwise like [`Port::receive`]. Ports whose frames are in shared memory copy them once.
    fn receive_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        copies.receive_by(|batch| self.receive(batch, now))
    }

    /// Sends copies of the first frames of `copies`, for callers that generate frames. Returns
    /// their number.
    ///
    /// Sends as many as there is room for, like [`Port::transmit`]. `copies` keeps its frames.
    fn transmit_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        copies.transmit_by(|batch| self.transmit(batch, now))
    }

    /// Starts (`true`) or ends the sending of frames at times in the future.
    ///
    /// Returns how long before its time a frame can then be handed over to
    /// [`Port::transmit_at`]; zero if the port sends every frame immediately.
    fn send_ahead(&mut self, _is_on: bool) -> Nanos {
        Nanos::ZERO
    }

    /// Sends copies of the first frames of `copies`, each at its time, like
    /// [`Port::transmit_copies`]. Their times do not decrease.
    ///
    /// Only for a port that sends ahead. Another one sends the frames immediately and without
    /// stamps.
    fn transmit_at(
        &mut self,
        copies: &mut Copies,
        _departures: &[SendSchedule],
        now: Nanos,
    ) -> Result<usize, PortError> {
        self.transmit_copies(copies, now)
    }

    /// Appends the results of frames that were handed over to [`Port::transmit_at`], in their
    /// order, each once.
    fn take_departed(&mut self, _departed: &mut Vec<SendReport>) {}

    /// Returns access to the port's frames in shared memory, if they are there.
    ///
    /// The caller decides by the first bytes of a frame and copies the frame once.
    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        None
    }

    /// Returns the port of an interface with an XDP program, if it is one. A program can forward
    /// frames in the kernel.
    fn xdp(&mut self) -> Option<&mut XdpPort> {
        None
    }

    /// Splits the port's queues into at most `parts` ports for as many threads. Returns the new
    /// ports.
    ///
    /// This port keeps some of its queues. Each port counts its own frames. Only this port knows
    /// the state of the link. Returns no ports and changes nothing if the port cannot be split.
    fn split_queues(&mut self, _parts: usize) -> Vec<Box<dyn Port>> {
        Vec::new()
    }

    /// Installs a filter with these entries where frames enter the host. Returns false if the port
    /// cannot.
    ///
    /// The filter need not decide about every frame. The receiver decides about the frames that
    /// pass.
    fn install_kernel_filter(&mut self, _entries: &[Entry]) -> bool {
        false
    }

    /// Returns how many frames the filter dropped, per entry as far as the filter decides by
    /// entries.
    ///
    /// The last count is for frames that matched no entry. Empty if the port has no filter.
    fn kernel_filter_counters(&mut self) -> Vec<Count> {
        Vec::new()
    }

    /// Selects how received frames are delivered: each when it arrives (`true`, for replies), or
    /// several together if that is cheaper for the port (`false`).
    ///
    /// Frames that wait during the change may be lost. Nothing changes if the system rejects the
    /// change, or if the port has only one mode, which is prompt.
    fn set_low_latency(&mut self, _promptly: bool) {}

    /// Returns the port's counters since it was opened.
    fn counters(&mut self) -> PortCounters;

    /// Returns whether the link is up, as far as the port knows.
    ///
    /// May make system calls, so do not call it for every batch. A port that is down reports this
    /// by its errors.
    fn has_link(&self) -> bool {
        true
    }

    /// Returns the known speed and abilities of the link. May make system calls.
    fn link(&self) -> Link {
        Link::default()
    }

    /// Returns a descriptor that becomes readable when frames wait, if the port has one.
    ///
    /// Call this before each wait. A port to another process then requests wake-ups until the next
    /// frames are received.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// Returns whether no more frames can arrive, because they came from a file that has ended.
    fn is_over(&self) -> bool {
        false
    }

    /// Returns when a frame inside the port (delayed or in serialization) can be received or
    /// leaves, if known.
    ///
    /// A simulation advances its time to this value.
    fn next_event(&self) -> Option<Nanos> {
        None
    }
}

/// Access to a port's frames in shared memory, without copies on receive.
///
/// Received frames stay visible until they are released. Frames to send are copied from where they
/// are.
pub trait InPlace {
    /// Looks for at most `limit` received frames, unless some are visible already. Returns how many
    /// are visible.
    fn look(&mut self, limit: usize, now: Nanos) -> usize;

    /// Returns the visible frames, oldest first.
    fn shown(&self) -> Views<'_>;

    /// Releases the first `count` visible frames.
    fn release(&mut self, count: usize);

    /// Copies frames for sending, each in two parts, as many as there is room for. Returns how many
    /// are done.
    ///
    /// The peer sees them after [`InPlace::flush`].
    fn put(&mut self, frames: &[FrameParts<'_>]) -> usize;

    /// Makes the copied frames visible to the peer.
    fn flush(&mut self);
}

/// A frame in two parts: the part that was classified, and the rest.
pub type FrameParts<'a> = (View<'a>, View<'a>);

impl<P: Port + ?Sized> Port for Box<P> {
    fn facts(&self) -> &PortFacts {
        (**self).facts()
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        (**self).receive(batch, now)
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        (**self).transmit(batch, now)
    }

    fn receive_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        (**self).receive_copies(copies, now)
    }

    fn transmit_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        (**self).transmit_copies(copies, now)
    }

    fn send_ahead(&mut self, is_on: bool) -> Nanos {
        (**self).send_ahead(is_on)
    }

    fn transmit_at(
        &mut self,
        copies: &mut Copies,
        departures: &[SendSchedule],
        now: Nanos,
    ) -> Result<usize, PortError> {
        (**self).transmit_at(copies, departures, now)
    }

    fn take_departed(&mut self, departed: &mut Vec<SendReport>) {
        (**self).take_departed(departed);
    }

    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        (**self).in_place()
    }

    fn xdp(&mut self) -> Option<&mut XdpPort> {
        (**self).xdp()
    }

    fn split_queues(&mut self, parts: usize) -> Vec<Box<dyn Port>> {
        (**self).split_queues(parts)
    }

    fn install_kernel_filter(&mut self, entries: &[Entry]) -> bool {
        (**self).install_kernel_filter(entries)
    }

    fn kernel_filter_counters(&mut self) -> Vec<Count> {
        (**self).kernel_filter_counters()
    }

    fn set_low_latency(&mut self, promptly: bool) {
        (**self).set_low_latency(promptly);
    }

    fn counters(&mut self) -> PortCounters {
        (**self).counters()
    }

    fn has_link(&self) -> bool {
        (**self).has_link()
    }

    fn link(&self) -> Link {
        (**self).link()
    }

    fn descriptor(&self) -> Option<RawFd> {
        (**self).descriptor()
    }

    fn is_over(&self) -> bool {
        (**self).is_over()
    }

    fn next_event(&self) -> Option<Nanos> {
        (**self).next_event()
    }
}

/// Name, kind and properties of a port, for reports and for senders that use its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortFacts {
    /// Display name: the interface, or the label of a memory port.
    pub name: String,
    /// Kind of port: `afpacket`, `memory`, `tap`...
    pub kind: &'static str,
    /// Hardware address of the interface; zero if there is none.
    pub mac: [u8; 6],
    /// Largest frame that the port carries, in bytes without frame check sequence.
    pub frame_bytes_max: usize,
    /// The clock that timestamps received frames.
    pub stamps: Clock,
}

/// Counters of a port. Frames that the port loses are counted by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Received frames.
    pub rx_frames: u64,
    /// Bytes of the received frames.
    pub rx_bytes: u64,
    /// Frames accepted for sending.
    pub tx_frames: u64,
    /// Bytes of the frames accepted for sending.
    pub tx_bytes: u64,
    /// Lost frames in both directions, by reason; only reasons that occurred.
    pub drops: Vec<(PortDrop, u64)>,
    /// Number of times that the peer of a shared memory violated the protocol and was disconnected.
    pub peer_faults: u64,
}

impl PortCounters {
    /// Adds `count` frames lost for `reason`; 0 changes nothing.
    pub fn lose(&mut self, reason: PortDrop, count: u64) {
        if count == 0 {
            return;
        }
        match self.drops.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, lost)) => *lost += count,
            None => self.drops.push((reason, count)),
        }
    }

    /// Adds the counters of another part of the same port.
    pub fn add(&mut self, other: &PortCounters) {
        self.rx_frames += other.rx_frames;
        self.rx_bytes += other.rx_bytes;
        self.tx_frames += other.tx_frames;
        self.tx_bytes += other.tx_bytes;
        self.peer_faults += other.peer_faults;
        other.drops.iter().for_each(|&(reason, count)| self.lose(reason, count));
    }

    /// Returns the difference from the earlier counters `before`.
    pub fn since(&self, before: &PortCounters) -> PortCounters {
        let mut counters = PortCounters {
            rx_frames: self.rx_frames.saturating_sub(before.rx_frames),
            rx_bytes: self.rx_bytes.saturating_sub(before.rx_bytes),
            tx_frames: self.tx_frames.saturating_sub(before.tx_frames),
            tx_bytes: self.tx_bytes.saturating_sub(before.tx_bytes),
            drops: Vec::new(),
            peer_faults: self.peer_faults.saturating_sub(before.peer_faults),
        };
        for &(reason, frames) in &self.drops {
            counters.lose(reason, frames.saturating_sub(before.lost(reason)));
        }
        counters
    }

    /// Returns the number of frames lost for `reason`.
    pub fn lost(&self, reason: PortDrop) -> u64 {
        self.drops.iter().find(|(known, _)| *known == reason).map_or(0, |&(_, lost)| lost)
    }
}

/// Reason for which a port lost a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortDrop {
    /// The receive ring was full: the receiver was too slow.
    ReceiveRingFull,
    /// A received frame is longer than the port accepts, or the kernel merged it from several.
    ReceiveTooLong,
    /// The kernel merged a received frame that cannot be segmented again, or its slot is invalid.
    ReceiveInvalid,
    /// The kernel or the link rejected the frame on sending.
    TransmitRefused,
    /// The frame is longer than the outgoing link allows.
    TooLong,
    /// A fault wrapper dropped the frame on purpose.
    InjectedLoss,
    /// The queue of a rate-limited link was full.
    LinkQueueFull,
    /// The peer of a shared memory wrote an invalid description of the frame.
    PeerBroken,
}

impl PortDrop {
    /// Returns the name of the reason in reports.
    pub fn name(self) -> &'static str {
        match self {
            PortDrop::ReceiveRingFull => "receive_ring_full",
            PortDrop::ReceiveTooLong => "receive_too_long",
            PortDrop::ReceiveInvalid => "receive_invalid",
            PortDrop::TransmitRefused => "transmit_refused",
            PortDrop::TooLong => "too_long",
            PortDrop::InjectedLoss => "injected_loss",
            PortDrop::LinkQueueFull => "link_queue_full",
            PortDrop::PeerBroken => "peer_broken",
        }
    }
}

/// Error of a port as a whole. Lost frames are counters, not errors.
#[derive(Debug)]
#[non_exhaustive]
pub enum PortError {
    /// The interface does not exist in this namespace.
    NoSuchInterface(String),
    /// The interface exists and is down.
    InterfaceDown(String),
    /// The process lacks a privilege (the operation, to follow "cannot").
    NotPermitted(&'static str),
    /// The peer is gone (for a memory port: its other end was dropped).
    PeerGone(String),
    /// A capture file cannot be read or written (its path, and the reason).
    File(String, String),
    /// A port specification is invalid (its text, and the reason).
    BadSpec(String, &'static str),
    /// Any other failed system call: operation, object and error.
    System {
        /// The operation, to follow "cannot".
        doing: &'static str,
        /// The interface, file or address.
        what: String,
        /// The error of the system call.
        error: std::io::Error,
    },
}

impl std::fmt::Display for PortError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PortError::NoSuchInterface(name) => write!(f, "there is no interface {name}"),
            PortError::InterfaceDown(name) => write!(f, "interface {name} is down"),
            PortError::NotPermitted(doing) => write!(f, "cannot {doing}: not permitted"),
            PortError::PeerGone(what) => write!(f, "the peer of {what} is gone"),
            PortError::File(path, error) => write!(f, "{path}: {error}"),
            PortError::BadSpec(spec, why) => write!(f, "port {spec:?}: {why}"),
            PortError::System { doing, what, error } => write!(f, "cannot {doing} {what}: {error}"),
        }
    }
}

impl std::error::Error for PortError {}
