//! What every data port is: batches of frames in, batches of frames out, and an account of both.
//!
//! Time is an argument: a port on a real interface ignores it or uses it to stamp, a simulated
//! link lives by it.

use std::os::fd::RawFd;

use packet::copies::Copies;
use packet::filter::Entry;
use packet::frame::Batch;
use packet::time::{Clock, Nanos};
use packet::traffic::Count;

use crate::link::Link;
use crate::memif::receive::Views;
use crate::memif::view::View;

/// A way for frames in and out.
pub trait Port: Send {
    /// What this port is.
    fn facts(&self) -> &PortFacts;

    /// Appends frames that have arrived to `batch`, as many as fit, without waiting. Each frame
    /// carries the stamp that the port took, if it takes any. Returns how many were appended.
    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError>;

    /// Hands the first frames of `batch` over for sending, as many as there is room for, without
    /// waiting, and returns how many. Those frames' buffers may have been swapped for others; the
    /// caller drops them from the batch, and keeps, retries or counts the rest.
    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError>;

    /// As [`Port::receive`], for whoever only looks at frames: replaces `copies` by copies of
    /// frames that have arrived. Ports whose frames lie in shared memory copy them once.
    fn receive_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        copies.receive_by(|batch| self.receive(batch, now))
    }

    /// As [`Port::transmit`], for whoever makes frames: sends copies of the first frames of
    /// `copies`, as many as there is room for, and returns how many. The frames stay.
    fn transmit_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        copies.transmit_by(|batch| self.transmit(batch, now))
    }

    /// The port's frames where they lie, for whoever decides by their first bytes and copies them
    /// once, if they lie in shared memory.
    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        None
    }

    /// Keeps some of the port's queues and gives the others away as ports of their own, so that
    /// there are at most `parts` of it, for as many threads. Each counts what it carries; what is
    /// known of the link is known to this one. None, and nothing changes, where a port cannot be
    /// shared out.
    fn divide(&mut self, _parts: usize) -> Vec<Box<dyn Port>> {
        Vec::new()
    }

    /// Has the port keep back, where frames enter the host, what a filter of these entries drops;
    /// false where it cannot. It need not decide about every frame: whoever receives the others decides.
    fn keep_back(&mut self, _entries: &[Entry]) -> bool {
        false
    }

    /// What was kept back, by entry as far as the port decides by them, and last what matched none;
    /// nothing if nothing can be.
    fn kept_back(&mut self) -> Vec<Count> {
        Vec::new()
    }

    /// Has frames handed over one by one as they come, for whoever answers them, or several at once if that
    /// is cheaper for the port; frames that wait meanwhile may be lost. It stays as it was where the
    /// system refuses, and where a port knows one way only, which is prompt.
    fn hand_over_promptly(&mut self, _promptly: bool) {}

    /// The port's own account since it was opened.
    fn counters(&mut self) -> PortCounters;

    /// Whether the link carries frames, as far as the port can tell. It may ask the system: for
    /// now and then, not for every batch. A port that is down says so by its errors.
    fn has_link(&self) -> bool {
        true
    }

    /// What is known of the link's speed and abilities. It may ask the system.
    fn link(&self) -> Link {
        Link::default()
    }

    /// A descriptor that becomes readable when frames wait, where the port has one. To be asked
    /// for before each wait: a port to another process has itself woken from then on until the
    /// next frames are received.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// Whether no frame will ever arrive here again, because they came from a file that has ended.
    fn is_over(&self) -> bool {
        false
    }

    /// When a frame that is already inside (delayed, serialising) can be received or leaves, if
    /// the port knows: what a simulation waits for next.
    fn next_event(&self) -> Option<Nanos> {
        None
    }
}

/// A port's frames where they lie: what arrived is shown until it is released, and what is to be
/// sent is copied from wherever it is.
pub trait InPlace {
    /// Looks for at most `limit` frames that have arrived, unless some are shown already, and says
    /// how many are shown.
    fn look(&mut self, limit: usize, now: Nanos) -> usize;

    /// The frames that are shown, oldest first.
    fn shown(&self) -> Views<'_>;

    /// Gives back the first `count` of them.
    fn release(&mut self, count: usize);

    /// Copies frames for sending, each of two parts, as many as there is room for, and returns how
    /// many are done with. The other end sees them after [`InPlace::flush`].
    fn put(&mut self, frames: &[Parts<'_>]) -> usize;

    /// Shows the other end what was put.
    fn flush(&mut self);
}

/// A frame in two parts: what its decision was made by, and what follows.
pub type Parts<'a> = (View<'a>, View<'a>);

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

    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        (**self).in_place()
    }

    fn divide(&mut self, parts: usize) -> Vec<Box<dyn Port>> {
        (**self).divide(parts)
    }

    fn keep_back(&mut self, entries: &[Entry]) -> bool {
        (**self).keep_back(entries)
    }

    fn kept_back(&mut self) -> Vec<Count> {
        (**self).kept_back()
    }

    fn hand_over_promptly(&mut self, promptly: bool) {
        (**self).hand_over_promptly(promptly);
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

/// What a port is, for records and for those who must send from its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortFacts {
    /// Name for people: the interface, or the memory port's label.
    pub name: String,
    /// Which kind of port: `afpacket`, `memory`, `tap`...
    pub kind: &'static str,
    /// The interface's hardware address, zero where there is none.
    pub mac: [u8; 6],
    /// Largest frame that goes through, in bytes without frame check sequence.
    pub frame_bytes_max: usize,
    /// Who stamps received frames.
    pub stamps: Clock,
}

/// A port's own account. Frames that a port loses it counts by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames handed to a receiver.
    pub rx_frames: u64,
    /// Bytes of those.
    pub rx_bytes: u64,
    /// Frames accepted for sending.
    pub tx_frames: u64,
    /// Bytes of those.
    pub tx_bytes: u64,
    /// Frames lost on the way in or out, by reason; only reasons that occurred.
    pub drops: Vec<(PortDrop, u64)>,
    /// How often the other end of a shared memory broke its rules and was disconnected.
    pub peer_faults: u64,
}

impl PortCounters {
    /// Adds `count` frames lost for `reason`; nothing happens for 0.
    pub fn lose(&mut self, reason: PortDrop, count: u64) {
        if count == 0 {
            return;
        }
        match self.drops.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, lost)) => *lost += count,
            None => self.drops.push((reason, count)),
        }
    }

    /// Adds the account of another part of the same port.
    pub fn add(&mut self, other: &PortCounters) {
        self.rx_frames += other.rx_frames;
        self.rx_bytes += other.rx_bytes;
        self.tx_frames += other.tx_frames;
        self.tx_bytes += other.tx_bytes;
        self.peer_faults += other.peer_faults;
        other.drops.iter().for_each(|&(reason, count)| self.lose(reason, count));
    }

    /// What was counted since it stood at `before`.
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

    /// Frames lost for `reason`.
    pub fn lost(&self, reason: PortDrop) -> u64 {
        self.drops.iter().find(|(known, _)| *known == reason).map_or(0, |&(_, lost)| lost)
    }
}

/// Why a port lost a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortDrop {
    /// The receive ring was full: whoever reads the port was too slow.
    ReceiveRingFull,
    /// A frame arrived that is longer than the port takes, or that the kernel merged of several.
    ReceiveTooLong,
    /// A frame arrived that the kernel merged and that cannot be segmented again, or its slot is invalid.
    ReceiveInvalid,
    /// The kernel or the link refused the frame on sending.
    TransmitRefused,
    /// Longer than the link that it was to be sent on allows.
    TooLong,
    /// Lost on purpose by a fault wrapper.
    InjectedLoss,
    /// The queue in front of a rate-limited link was full.
    LinkQueueFull,
    /// What the other end of a shared memory wrote about the frame was wrong.
    PeerBroken,
}

impl PortDrop {
    /// Its name in accounts.
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

/// What goes wrong with a port as a whole. Lost frames are counters, not errors.
#[derive(Debug)]
#[non_exhaustive]
pub enum PortError {
    /// The interface does not exist in this namespace.
    NoSuchInterface(String),
    /// The interface exists and is down.
    InterfaceDown(String),
    /// The system refused for lack of rights (what was attempted).
    NotPermitted(&'static str),
    /// The other end went away (a memory port's other half was dropped).
    PeerGone(String),
    /// A capture file that is a port cannot be read or written on (its path, and why).
    File(String, String),
    /// A port specification cannot be read (the text, and what is wrong with it).
    BadSpec(String, &'static str),
    /// Any other refusal of the system: what was attempted, on what, and its error.
    System {
        /// The operation.
        doing: &'static str,
        /// The interface, file or address.
        what: String,
        /// What the system answered.
        error: std::io::Error,
    },
}

impl std::fmt::Display for PortError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PortError::NoSuchInterface(name) => write!(f, "there is no interface {name}"),
            PortError::InterfaceDown(name) => write!(f, "interface {name} is down"),
            PortError::NotPermitted(doing) => write!(f, "not permitted: {doing}"),
            PortError::PeerGone(what) => write!(f, "the other end of {what} is gone"),
            PortError::File(path, error) => write!(f, "{path}: {error}"),
            PortError::BadSpec(spec, why) => write!(f, "port {spec:?}: {why}"),
            PortError::System { doing, what, error } => write!(f, "{doing} {what}: {error}"),
        }
    }
}

impl std::error::Error for PortError {}
