//! Interface of every data plane: frames in, frames and events out.
//!
//! A [`Forwarder`] takes the frames that one port received, decides where they go, and moves them
//! into the [`Outputs`]. It uses no socket, clock or thread and cannot fail: every dropped frame is
//! counted with a reason. The process that runs it (or a simulation) moves frames between ports and
//! forwarders. The forwarder reports to its control plane with [`Event`]s.

use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::flow::{FlowChange, FlowRecord, FlowRemovedReason, Source};
use crate::rewrite;

/// Maximum number of frames in a port's output queue; more are dropped and counted.
pub const OUTPUT_FRAMES_MAX: usize = 1024;

/// Maximum number of pending events; more are dropped and counted.
pub const EVENTS_MAX: usize = 4096;

/// A data plane: a bridge, a router or an OpenFlow pipeline.
pub trait Forwarder {
    /// Work that remains after [`Forwarder::decide`]; `()` if there is never any.
    type Pending<'a>: PendingBatch
    where
        Self: 'a;

    /// Forwards the frames that `port` received at about `now`. Consumes the frames of the batch:
    /// their buffers may have been swapped for others when this returns.
    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs);

    /// Executes due timeouts, ageing and retries, and returns when to call it again, if ever.
    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos>;

    /// Whether [`Forwarder::decide`] is supported.
    fn decides(&self) -> bool {
        false
    }

    /// Decides on frames in their receive buffers, at most [`SIGHTS_MAX`], from their first bytes.
    ///
    /// The first slice has the frames to decide on; their decisions are in `decisions`. The second
    /// slice has the frames of the next call, if they are known; the next call must then be for
    /// these.
    fn decide(
        &mut self,
        _port: PortNo,
        _sights: [&[FrameHead<'_>]; 2],
        _now: Nanos,
        _decisions: &mut [Decision; SIGHTS_MAX],
    ) -> BatchDecision<Self::Pending<'_>> {
        BatchDecision::Done(0)
    }
}

/// Work that remains after [`Forwarder::decide`], depending on its result.
pub trait PendingBatch: Sized {
    /// Rewrites the headers of a frame that is sent out. Returns where the new frame begins in
    /// `head`, and its length.
    ///
    /// `place` is the frame's index in the batch. `head` has [`GROWS_MAX`] free bytes and then the
    /// first bytes of the frame. The new length is the old one, plus or minus the bytes by which the
    /// front has moved, or less if `head` has the whole frame.
    fn rewrite(&self, _place: usize, _head: &mut [u8], bytes: usize) -> (usize, usize) {
        (GROWS_MAX, bytes)
    }

    /// Continues with the frames that [`BatchDecision::Needs`] counts, in the same order. Consumes
    /// them as [`Forwarder::forward`] does.
    fn resume(self, _frames: &mut [Frame], _now: Nanos, _out: &mut Outputs) {}
}

impl PendingBatch for () {}

/// Maximum number of bytes that a frame may grow at its front in the receive buffer.
pub const GROWS_MAX: usize = 64;

/// Maximum number of frames per call of [`Forwarder::decide`].
pub const SIGHTS_MAX: usize = 32;

/// View of a frame in its receive buffer.
#[derive(Debug, Clone, Copy)]
pub struct FrameHead<'a> {
    /// The first bytes, or all of them.
    pub head: &'a [u8],
    /// Length of the frame in bytes.
    pub bytes: usize,
}

/// Decision on a frame in its receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The frame is dropped and counted.
    Dropped,
    /// The frame leaves by this port, unchanged or rewritten by [`PendingBatch::rewrite`].
    Output(PortNo),
}

/// Result of [`Forwarder::decide`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum BatchDecision<P> {
    /// The first so many frames are decided. The others must be forwarded.
    Done(usize),
    /// Like `Done`, and [`PendingBatch::rewrite`] must be called for each frame that is sent out.
    Rewrites(usize, P),
    /// The first so many frames must be passed to [`PendingBatch::resume`]. The others must be
    /// forwarded after that.
    Needs(usize, P),
}

impl<P> BatchDecision<P> {
    /// Converts the remaining work.
    #[inline]
    pub fn map<Q>(self, convert: impl FnOnce(P) -> Q) -> BatchDecision<Q> {
        match self {
            BatchDecision::Done(count) => BatchDecision::Done(count),
            BatchDecision::Rewrites(count, pending) => {
                BatchDecision::Rewrites(count, convert(pending))
            }
            BatchDecision::Needs(count, pending) => BatchDecision::Needs(count, convert(pending)),
        }
    }
}

/// Output of a forwarder: a queue of frames for each port, and events for the control plane.
pub struct Outputs {
    /// Index in `queues` by port number, or `None` if the port does not exist.
    place: Vec<Option<u16>>,
    queues: Vec<(PortNo, Batch)>,
    /// Events in order of occurrence; the caller of the forwarder drains them.
    pub events: Vec<Event>,
    /// Events lost because [`EVENTS_MAX`] were pending.
    pub events_lost: u64,
    /// Time of the next tick, if it is earlier than the last tick returned; the caller of the
    /// forwarder takes this value.
    pub wake: Option<Nanos>,
}

/// Result of sending a frame to an output port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The frame is in the port's queue.
    Queued,
    /// The port does not exist.
    NoSuchPort,
    /// The port's queue is full.
    QueueFull,
}

/// An event for the control plane.
#[derive(Debug, Clone)]
pub enum Event {
    /// A frame for the controller.
    PacketIn {
        /// The ingress port.
        port: PortNo,
        /// Maximum number of bytes for the controller, if the action has one.
        bytes_max: Option<u16>,
        /// The reason, and the position in the pipeline.
        context: Context,
        /// The whole frame.
        frame: Frame,
    },
    /// An entry with the flow-removed flag was removed.
    FlowRemoved {
        /// The entry with its last counters.
        flow: Box<FlowRecord>,
        /// The reason.
        why: FlowRemovedReason,
    },
    /// A frame matched an entry that may have reached a limit of its trigger.
    /// [`Pipeline::heard`](crate::pipeline::Pipeline::heard) checks this and reports it.
    FlowReached {
        /// The entry's slot.
        place: u32,
    },
    /// An entry was added, changed or removed while flow monitoring is enabled (see
    /// [`crate::table::Tables::watch`]).
    FlowChanged {
        /// The entry after the change, or before its removal.
        flow: Box<FlowRecord>,
        /// The change.
        change: FlowChange,
        /// Origin of the request, if there was one.
        source: Option<Source>,
    },
    /// The counters of an entry reached a limit of its trigger.
    FlowTriggered {
        /// The entry with its counters.
        flow: Box<FlowRecord>,
    },
    /// The space left in a table crossed a threshold.
    Vacancy {
        /// The table.
        table: u8,
        /// True if the space is below the lower threshold, false if it is above the upper one.
        down: bool,
    },
}

/// Position and fields of a frame in a pipeline, for packet-ins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Reason of a packet-in that an action causes here.
    pub why: PacketInReason,
    /// The current table.
    pub table: u8,
    /// The cookie of the matched entry.
    pub cookie: u64,
    /// The fields that are not in the frame's bytes.
    pub fields: rewrite::Context,
    /// In an egress table, the output port.
    pub actset_output: Option<PortNo>,
    /// The queue of the output, if an action selected one.
    pub queue: Option<u32>,
}

/// Cookie of a frame that matched no entry.
pub const NO_COOKIE: u64 = u64::MAX;

impl Context {
    /// A frame before the first table.
    pub const START: Context = Context {
        why: PacketInReason::Action,
        table: 0,
        cookie: NO_COOKIE,
        fields: rewrite::Context { in_port: 0, in_phy_port: 0, metadata: 0, tunnel_id: 0 },
        actset_output: None,
        queue: None,
    };
}

/// Reason of a packet-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketInReason {
    /// The frame matched no entry, or a table-miss entry.
    NoMatch,
    /// An action of an apply-actions list sent it.
    Action,
    /// The TTL is invalid.
    InvalidTtl,
    /// An action of the action set sent it.
    ActionSet,
    /// An action of a group bucket sent it.
    Group,
    /// An action of a packet-out sent it.
    PacketOut,
}

impl Outputs {
    /// Creates empty queues for these ports. Port numbers are below 65,536.
    pub fn new(ports: &[PortNo]) -> Self {
        let mut outputs = Outputs {
            place: Vec::new(),
            queues: Vec::new(),
            events: Vec::new(),
            events_lost: 0,
            wake: None,
        };
        for &port in ports {
            assert!(port < 0x1_0000, "port numbers are below 65,536");
            if outputs.place.len() <= port as usize {
                outputs.place.resize(port as usize + 1, None);
            }
            outputs.place[port as usize] = Some(outputs.queues.len() as u16);
            outputs.queues.push((port, Batch::new(OUTPUT_FRAMES_MAX)));
        }
        outputs
    }

    /// Returns the queues, in the order of the ports in [`Outputs::new`].
    pub fn queues(&self) -> &[(PortNo, Batch)] {
        &self.queues
    }

    /// Returns the queues mutably, so that the caller can drain them.
    pub fn queues_mut(&mut self) -> &mut [(PortNo, Batch)] {
        &mut self.queues
    }

    #[inline]
    fn queue(&mut self, port: PortNo) -> Option<&mut Batch> {
        let place = (*self.place.get(port as usize)?)?;
        Some(&mut self.queues[place as usize].1)
    }

    /// Queues the frame on `port` by swapping buffers: afterwards, `frame` has a recycled buffer.
    #[inline]
    pub fn send(&mut self, port: PortNo, frame: &mut Frame) -> Sent {
        match self.queue(port).map(|queue| queue.push_swap(frame)) {
            None => Sent::NoSuchPort,
            Some(true) => Sent::Queued,
            Some(false) => Sent::QueueFull,
        }
    }

    /// Returns a frame with unspecified contents at the end of the queue of `port`, for the caller
    /// to write. Returns `None` if the port does not exist or its queue is full.
    #[inline]
    pub fn slot(&mut self, port: PortNo) -> Option<&mut Frame> {
        self.queue(port)?.push_slot()
    }

    /// Queues a copy of the frame on `port`.
    #[inline]
    pub fn send_copy(&mut self, port: PortNo, frame: &Frame) -> Sent {
        match self.queue(port) {
            None => Sent::NoSuchPort,
            Some(queue) => match queue.push_slot() {
                Some(slot) => {
                    slot.copy_from(frame);
                    Sent::Queued
                }
                None => Sent::QueueFull,
            },
        }
    }

    /// Requests a tick at this time, if any.
    #[inline]
    pub fn wake_at(&mut self, due: Option<Nanos>) {
        self.wake = self.wake.into_iter().chain(due).min();
    }

    /// Returns how many more events fit.
    #[inline]
    pub fn events_room(&self) -> usize {
        EVENTS_MAX.saturating_sub(self.events.len())
    }

    /// Adds an event, or counts it as lost if too many are pending. Returns whether it was added.
    pub fn event(&mut self, event: Event) -> bool {
        let room = self.events_room() > 0;
        if room {
            self.events.push(event);
        } else {
            self.events_lost += 1;
        }
        room
    }
}
